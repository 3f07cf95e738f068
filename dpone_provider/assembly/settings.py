"""What a process needs to know before it can reach the ledger and the cache."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from dpone_provider.application.times import AttemptTimes
from dpone_provider.domain.outcomes import Refused, refuse

CONTROL_SCHEMA = "dpone_control"
MOST_USERS = 2**32 - 1
"""The last number stands for nobody's (chown(2))."""
_NAME = re.compile(r"[a-z][a-z0-9_-]{0,62}")
"""As in the documents: safe in paths."""
ALL_ENVIRONMENTS = "*"
"""In place of an environment's name, where a process serves every environment of one authority."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Where the cache and the authority are, and which environment this process serves.

    ``grace`` seconds are left to a login's sessions before they are ended; ``child_user`` is another uid for workers.
    """

    cache_root: Path
    environment: str
    authority_connection_ref: str
    control_schema: str = CONTROL_SCHEMA
    dbt_python: Path | None = None
    child_user: int | None = None
    grace: float = 1.0
    times: AttemptTimes = field(default_factory=AttemptTimes)

    def variables(self) -> dict[str, str]:
        """Return the variables that say the same to another process."""
        said = {
            "DPONE_CACHE_ROOT": str(self.cache_root),
            "DPONE_ENVIRONMENT": self.environment,
            "DPONE_AUTHORITY_CONNECTION_REF": self.authority_connection_ref,
            "DPONE_CONTROL_SCHEMA": self.control_schema,
            "DPONE_ADMISSION_TIMEOUT": str(self.times.admission),
            "DPONE_EXECUTION_TIMEOUT": str(self.times.execution),
            "DPONE_CLOSING_TIMEOUT": str(self.times.closing),
            "DPONE_LEDGER_TIMEOUT": str(self.times.ledger),
        }
        if self.dbt_python is not None:
            said["DPONE_DBT_PYTHON"] = str(self.dbt_python)
        return said if self.child_user is None else {**said, "DPONE_CHILD_USER": str(self.child_user)}

    @classmethod
    def from_environment(cls, environ: Mapping[str, str]) -> Settings | Refused:
        """Read the settings from ``DPONE_…`` variables."""
        required = ("DPONE_CACHE_ROOT", "DPONE_ENVIRONMENT", "DPONE_AUTHORITY_CONNECTION_REF")
        missing = [name for name in required if not environ.get(name)]
        if missing:
            return _missing(missing)
        seconds = {}
        for name in ("ADMISSION", "EXECUTION", "CLOSING", "LEDGER"):
            value = environ.get(f"DPONE_{name}_TIMEOUT")
            if value is not None:
                parsed = _seconds(f"DPONE_{name}_TIMEOUT", value)
                if isinstance(parsed, Refused):
                    return parsed
                seconds[name.lower()] = parsed
        dbt = environ.get("DPONE_DBT_PYTHON")
        environment = environ["DPONE_ENVIRONMENT"]
        if not _NAME.fullmatch(environment):
            return _invalid(
                "DPONE_ENVIRONMENT", environment, "a name: a lower-case letter, then up to 62 of a-z 0-9 _ -"
            )
        user = environ.get("DPONE_CHILD_USER")
        if user and not (user.isascii() and user.isdecimal() and int(user) < MOST_USERS):
            return _invalid("DPONE_CHILD_USER", user, f"the number of a user (uid), below {MOST_USERS}")
        return cls(
            cache_root=Path(environ["DPONE_CACHE_ROOT"]),
            environment=environment,
            authority_connection_ref=environ["DPONE_AUTHORITY_CONNECTION_REF"],
            control_schema=environ.get("DPONE_CONTROL_SCHEMA") or CONTROL_SCHEMA,
            dbt_python=Path(dbt) if dbt else None,
            child_user=int(user) if user else None,
            times=AttemptTimes(**seconds),
        )


def _seconds(name: str, value: str) -> float | Refused:
    try:
        seconds = float(value)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < 10**6:
        return _invalid(name, value, "seconds, more than 0 and fewer than 1,000,000")
    return seconds


def _invalid(name: str, value: str, allowed: str) -> Refused:
    return refuse(
        "setting_invalid",
        f"setting {name}",
        found=ascii(value[:100]),
        allowed=allowed,
        next_command=f"correct {name}, or the option of the same name",
    )


def _missing(names: list[str]) -> Refused:
    return refuse(
        "settings_missing",
        "the process's environment",
        found=f"no {', '.join(names)}",
        allowed="DPONE_CACHE_ROOT, DPONE_ENVIRONMENT and DPONE_AUTHORITY_CONNECTION_REF set",
        next_command="set them for the scheduler, the workers and the command line (docs: how-to-configure)",
    )
