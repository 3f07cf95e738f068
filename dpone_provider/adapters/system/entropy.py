"""The kernel's random numbers behind the `Entropy` port."""

from __future__ import annotations

import secrets
import string
from uuid import UUID, uuid4

from dpone_provider.domain.secret import Secret

ALPHABET = string.ascii_letters + string.digits
SECRET_LENGTH = 48
"""Letters: 62^48 is 285 bits. SQL Server's password policy limits a password to 128 characters."""
_CLASSES = (string.ascii_lowercase, string.ascii_uppercase, string.digits)


class SystemEntropy:
    """Ids and secrets from the kernel's generator (getrandom(2))."""

    def uuid(self) -> UUID:
        """Return a random UUID (version 4)."""
        return uuid4()

    def secret(self) -> Secret:
        """Return 48 letters and digits with each class present, as SQL Server's password policy asks.

        Draws without all three classes are thrown away: less than one in a thousand, so no measurable entropy is lost.
        """
        while True:
            text = "".join(secrets.choice(ALPHABET) for _ in range(SECRET_LENGTH))
            if all(any(letter in text for letter in wanted) for wanted in _CLASSES):
                return Secret(text)
