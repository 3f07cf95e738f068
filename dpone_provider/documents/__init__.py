"""What is written down: versioned documents with one canonical JSON form and one digest.

Reading is strict and typed: ``registry.read_document`` gives the document or a refusal that names file, JSON path, what
was found and what is allowed. A document's digest is ``sha256:`` over ``Document.canonical_bytes()``.
"""
