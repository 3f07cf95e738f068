"""Secrets: values that cannot be printed by accident."""

from __future__ import annotations

from typing import Never


class Secret:
    """A password or key in memory. ``reveal`` is the only way to the text; printing, formatting and pickling refuse.

    Equality is by identity: comparing secrets is never needed, and a comparison could leak through timing or a test's
    own output.
    """

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        """Hold ``text``, which must not be empty."""
        if not text:
            raise ValueError("a secret cannot be empty")
        self._text = text

    def reveal(self) -> str:
        """Return the clear text, for the one call that sends it."""
        return self._text

    def __repr__(self) -> str:
        """Return a fixed mask."""
        return "Secret('***')"

    __str__ = __repr__

    def __format__(self, spec: str) -> str:
        """Return the mask whatever the format."""
        return repr(self)

    def __reduce__(self) -> Never:
        """Refuse to be pickled."""
        raise TypeError("a secret cannot be serialised")
