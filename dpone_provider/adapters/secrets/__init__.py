"""Credential references: from the environment, from a private file, from an Airflow connection."""
