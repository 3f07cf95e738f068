"""The one exception of the schema core: a value that must not exist was asked for."""

from __future__ import annotations


class InvalidSchemaValue(ValueError):
    """A logical type, name, column or table cannot be built from what was given.

    Raised by constructors and by ``parse_logical_type`` only; everything that compares or plans returns its failures.

    Attributes:
        subject: what was being built, for example ``column "price"``.
        found: the offending value as text.
        allowed: the values that would have been accepted, and so the way out.
    """

    def __init__(self, *, subject: str, found: str, allowed: str) -> None:
        self.subject = subject
        self.found = found
        self.allowed = allowed
        super().__init__(f"{subject} is not valid: found {found}; allowed is {allowed}")
