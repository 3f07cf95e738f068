"""The deployment cache as files: one directory per deployment, one pointer per environment, one lock for writers."""
