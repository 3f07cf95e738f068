"""What a worker does not import, because it would cost more than everything that it needs."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Final

UNUSED: Final = "pandas"
"""Where Airflow has it installed, pyarrow asks for it as soon as a driver is loaded: that takes as long as all else."""


class _Absent(MetaPathFinder):
    """Finds nothing of the unused, as if it were not installed; what asks for it goes on without."""

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        if name == UNUSED:
            raise ModuleNotFoundError(f"{name} is not used by a worker", name=name)
        return None


def forbid_pandas() -> None:
    """Make pandas absent in this process, unless it is imported already."""
    sys.meta_path.insert(0, _Absent())
