"""Install and enrol on a given SQL Server what an administrator would, in the order of docs/how-to-enrol-mssql.md.

The scripts are those of ``sql/mssql``, sent batch by batch as they stand; the gate is tried at once after it was
enabled, from outside, while a session that was there before stays open and takes it out of the way if it does not hold.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from typing import Final, Protocol

from dpone_provider.adapters.mssql.errors import ServerError
from dpone_provider.adapters.mssql.session import Session
from dpone_provider.application.installation import shipped
from dpone_provider.application.installation.rendering import fill_in, variables
from dpone_provider.application.installation.tsql import batches
from dpone_provider.assembly import installing
from dpone_provider.assembly.worker_job import Login
from dpone_provider.domain.identity import Family
from dpone_provider.domain.outcomes import DponeError, fail
from dpone_provider.lab.mssql.given import GivenServer
from dpone_provider.lab.mssql.making import Names
from dpone_provider.sql_files import shipped_sql

CONTROL: Final = (*shipped.CONTROL, "030_signatures.sql")
ENABLE: Final = "021_enable_gate.sql"
BREAK_GLASS: Final = "022_break_glass.sql"
TARGET: Final = "040_enrol_target.sql"
SCHEMA: Final = "045_enrol_schema.sql"
VERIFY: Final = "050_verify.sql"
Told = Callable[[str], None]


class Instance(Protocol):
    """What an administrator does on an instance."""

    def run(self, script: str, values: Mapping[str, str]) -> None:
        """Run a script in a session of its own.

        Raises:
            DponeError: Failed with the server's own words, at its first error.
        """

    def kept(self) -> AbstractContextManager[Callable[[str], None]]:
        """Open a session that stays while a block runs, whatever happens to logons; give what runs a script in it."""

    def try_gate(self) -> None:
        """Try the gate from outside.

        Raises:
            DponeError: it does not hold, or nobody can tell.
        """

    def compare(self, target: str) -> None:
        """Compare what is installed with what is shipped; ``target``: ``database:schema,schema``.

        Raises:
            DponeError: Refused ``not_as_shipped``.
        """


@dataclass(frozen=True, slots=True, kw_only=True)
class GivenInstance:
    """The instance of a given server, with the lab's controller."""

    given: GivenServer
    controller: Login
    names: Names

    def run(self, script: str, values: Mapping[str, str]) -> None:
        """Run a script in a session of its own."""
        with self.given.session() as own:
            run_script(own, script, values)

    @contextmanager
    def kept(self) -> Iterator[Callable[[str], None]]:
        """Open a session that stays."""
        with self.given.session() as own:
            yield lambda script: run_script(own, script, {})

    def try_gate(self) -> None:
        """Try the gate through the controller's login."""
        installing.try_gate(installing.trial_of(self.controller, self.names.control_database), self.given.address)

    def compare(self, target: str) -> None:
        """Compare through the controller's login."""
        asked = installing.asked(self.names.control_database, self.names.controller_login, [target])
        reader = installing.reader_of(self.controller, self.names.control_database)
        installing.compare(reader, asked, self.given.address)


def run_script(own: Session, script: str, values: Mapping[str, str]) -> None:
    """Run one script to its end; ``values`` may hold more than its variables.

    Raises:
        DponeError: Failed with the server's own words and the line of the batch.
    """
    text = (shipped_sql("mssql") / script).read_text(encoding="utf-8")
    filled = fill_in(text, {name: values[name] for name in variables(text)}, where=script)
    for batch in batches(filled):
        try:
            own.as_written(batch.text)
        except ServerError as error:
            failure = fail(
                "admin_script_failed",
                f"sql/mssql/{script}:{batch.line}",
                found=error,
                allowed="a script that the server accepts; a batch that fails leaves nothing of itself",
                next_command="look at the batch that begins at the named line",
            )
            raise DponeError(failure) from error


def install(instance: Instance, names: Names, schemas: tuple[str, ...], told: Told) -> None:
    """Install control schema, gate, procedures and signatures; enable and try the gate; enrol; verify.

    Raises:
        DponeError: with what went wrong; a gate that does not hold was disabled again.
    """
    values = {
        "authority_id": str(uuid.uuid4()),
        "service_id": str(uuid.uuid4()),
        "family": Family.NONPRODUCTION.value,
        "control_database": names.control_database,
        "target_database": names.target_database,
        "controller_login": names.controller_login,
        "reader_login": names.reader_login,
    }
    for script in CONTROL:
        instance.run(script, values)
    told("enabling the LOGON gate, and trying it")
    enable(instance, values)
    told("enrolling the warehouse")
    instance.run(TARGET, values)
    for schema in schemas:
        instance.run(SCHEMA, {**values, "schema": schema})
    instance.run(VERIFY, values)
    instance.compare(f"{names.target_database}:{','.join(schemas)}")


def enable(instance: Instance, values: Mapping[str, str]) -> None:
    """Enable the gate and try it, beside a session that takes it out of the way if it does not hold.

    Raises:
        DponeError: why it does not hold, or that nobody can tell; it is disabled then.
    """
    with instance.kept() as run, ExitStack() as unless_it_holds:
        unless_it_holds.callback(run, BREAK_GLASS)
        instance.run(ENABLE, values)
        instance.try_gate()
        unless_it_holds.pop_all()
