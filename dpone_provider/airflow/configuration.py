"""The settings of a process of Airflow: ``DPONE_…`` of its environment, and below them section ``[dpone]``."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from airflow.providers.common.compat.sdk import conf

from dpone_provider.airflow.provider_info import OPTIONS, PRODUCT_OPTIONS, SECTION
from dpone_provider.domain.outcomes import Refused, refuse, unwind

if TYPE_CHECKING:
    from dpone_provider.assembly.settings import Settings


@dataclass(frozen=True, slots=True, kw_only=True)
class CachePlace:
    """All that loading needs of the settings: where the cache is, and whose deployments are shown."""

    cache_root: Path
    environment: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskSettings:
    """What only Airflow's side needs: how a busy task waits, and how long a failed one (None: Airflow's default)."""

    busy_reschedules: int
    busy_delay: timedelta
    retry_delay: timedelta | None


def cache_place(environ: Mapping[str, str] = os.environ) -> CachePlace:
    """Return where this process finds its deployments.

    Raises:
        DponeError: Refused ``settings_missing``.
    """
    found = variables(environ)
    missing = [name for name in ("DPONE_CACHE_ROOT", "DPONE_ENVIRONMENT") if name not in found]
    if missing:
        unwind(
            refuse(
                "settings_missing",
                "this process of Airflow",
                found=f"no {', '.join(missing)}",
                allowed=f"cache_root and environment in section [{SECTION}] of airflow.cfg, or these variables",
                next_command="set them for the DAG processor and the workers (docs: how-to-configure)",
            )
        )
    return CachePlace(cache_root=Path(found["DPONE_CACHE_ROOT"]), environment=found["DPONE_ENVIRONMENT"])


def settings(environ: Mapping[str, str] = os.environ) -> Settings:
    """Return the product's settings for this process.

    Raises:
        DponeError: Refused when something is missing or cannot be read; the message names it.
    """
    from dpone_provider.assembly.settings import Settings

    found = Settings.from_environment(variables(environ))
    if isinstance(found, Refused):
        unwind(found)
    return found


def task_settings() -> TaskSettings:
    """Return how tasks wait.

    Raises:
        DponeError: Refused when an option is no number, or a negative one.
    """
    delay = _number("retry_delay_seconds")
    return TaskSettings(
        busy_reschedules=int(_number("busy_reschedules") or 0),
        busy_delay=timedelta(seconds=_number("busy_reschedule_seconds") or 0),
        retry_delay=None if delay is None else timedelta(seconds=delay),
    )


def variables(environ: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Return the variables, and the options of ``[dpone]`` under the names of the variables that say the same; what is
    empty says nothing."""
    options = {option: conf.get(SECTION, option, fallback=None) for option in PRODUCT_OPTIONS}
    configured = {f"DPONE_{option.upper()}": str(value) for option, value in options.items() if value}
    return configured | {name: value for name, value in environ.items() if value}


def _number(option: str) -> float | None:
    text = conf.get(SECTION, option, fallback=None) or OPTIONS[option]["default"]
    if text is None:
        return None
    try:
        number = float(text)
    except ValueError:
        number = -1.0
    if not 0 <= number < 10**6:
        unwind(
            refuse(
                "setting_invalid",
                f"Airflow's option [{SECTION}] {option}",
                found=repr(text),
                allowed="a number from 0 to 1,000,000",
                next_command=f"correct it (airflow config get-value {SECTION} {option})",
            )
        )
    return number
