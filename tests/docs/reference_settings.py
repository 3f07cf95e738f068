"""The settings: options of Airflow's section ``[dpone]``, and the variables that say the same."""

from __future__ import annotations

from dpone_provider.airflow.provider_info import OPTIONS, PRODUCT_OPTIONS
from tests.docs.tables import code, table


def options() -> str:
    """Return every option with its variable, type and default."""
    return table(
        ("option of `[dpone]`", "variable", "type", "default", "meaning"),
        (
            (
                code(name),
                code(f"DPONE_{name.upper()}") if name in PRODUCT_OPTIONS else "",
                option["type"],
                code(option["default"] or ""),
                f"{option['description'].strip()} Example: {code(option['example'])}.",
            )
            for name, option in OPTIONS.items()
        ),
    )
