"""The deployment cache as a versioned DAG bundle.

    [dag_processor]
    dag_bundle_config_list = [{"name": "dpone", "classpath": "dpone_provider.airflow.bundle.DponeDagBundle",
                               "kwargs": {"refresh_interval": 10}}]

A version is what the pointer named (`Pin`), and its files are one DAG file that loads exactly that. So a run keeps
loading the deployment that it began with, and its tasks carry that occurrence: after a handover the ledger refuses them
("trigger a new run"), where the plain DAG file would show them the new deployment's code. Without a pointer, or with a
broken one, the bundle shows the plain file, which raises: the reason stands among Airflow's import errors. Raising here
would only be logged.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airflow.dag_processing.bundles.base import BaseDagBundle

from dpone_provider.airflow.configuration import cache_place
from dpone_provider.airflow.shown import current_pin
from dpone_provider.domain.outcomes import DponeError

if TYPE_CHECKING:
    from airflow.dag_processing.bundles.base import BundleVersion

DAG_FILE = "dpone_dags.py"
"""The same in every version, so that a new version is no new file to Airflow and no DAG is stale in between."""

CURRENT = '''\
"""The DAGs of the deployment that this environment's pointer names. Airflow finds them here."""

from __future__ import annotations

from dpone_provider.airflow.configuration import cache_place
from dpone_provider.airflow.loader import load_dags

globals().update(load_dags(cache_place()))
'''

PINNED = '''\
"""The DAGs of one deployment, pinned by Airflow's bundle version. Written by the bundle; a change is overwritten."""

from __future__ import annotations

from dpone_provider.airflow.configuration import cache_place
from dpone_provider.airflow.loader import load_pinned

globals().update(load_pinned(cache_place(), "{version}"))
'''


class DponeDagBundle(BaseDagBundle):
    """One environment's deployments; which environment, and where the cache is, the process's settings say."""

    supports_versioning = True

    def __init__(self, **kwargs: Any) -> None:
        """Take Airflow's own arguments: ``name``, ``refresh_interval``, ``version``, ``view_url_template``."""
        super().__init__(**kwargs)
        self._shown: str | None = self.version

    def initialize(self) -> None:
        """Make the files of the pinned version, or of what is current."""
        self._show(self.version or _current_version())
        super().initialize()

    def refresh(self) -> None:
        """Follow the pointer; make the files anew where Airflow has cleaned them up as long unused."""
        self._show(self.version or _current_version())

    @property
    def path(self) -> Path:
        """Where the DAG file of the shown version is."""
        return self.base_dir / "current" if self._shown is None else self.versions_dir / self._shown

    def get_current_version(self) -> str | BundleVersion | None:
        """Return the version that ``path`` shows; None when there is no readable pointer."""
        if self._shown is None:
            return None
        try:
            from airflow.dag_processing.bundles.base import BundleVersion
        except ImportError:  # Airflow before 3.3 takes the text
            return self._shown
        return BundleVersion(version=self._shown)

    def _show(self, version: str | None) -> None:
        changed = self._shown != version
        self._shown = version
        content = CURRENT if version is None else PINNED.format(version=version)
        with self.lock():
            _write(self.path / DAG_FILE, content, touch=changed)


def _current_version() -> str | None:
    try:
        pin = current_pin(cache_place())
    except DponeError:
        return None
    return None if pin is None else pin.version


def _write(file: Path, content: str, *, touch: bool) -> None:
    """Make the file say ``content``. ``touch``: it is newly shown, and a time later than the last parse has it parsed
    at once."""
    if file.is_file() and file.read_text(encoding="utf-8") == content:
        if touch:
            os.utime(file)
        return
    file.parent.mkdir(parents=True, exist_ok=True)
    written = file.with_suffix(".new")
    written.write_text(content, encoding="utf-8")
    written.replace(file)
