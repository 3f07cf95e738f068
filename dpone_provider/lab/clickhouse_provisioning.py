"""Make the lab's databases in a ClickHouse that has just started, and its users where SQL can make them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from dpone_provider.adapters.clickhouse.names import quoted, with_names
from dpone_provider.domain.secret import Secret
from dpone_provider.lab.clickhouse_program import ChdbLibrary, ClickhouseBinary
from dpone_provider.lab.clickhouse_session import ClickhouseSession
from dpone_provider.lab.clickhouse_users import (
    CONTROLLER,
    ISSUING_GRANTS,
    MART,
    PROVISIONER,
    READER,
    STAGE,
    STATEMENTS,
    ClickhouseUser,
    create_statements,
    lab_users,
    no_users_xml,
    pool_names,
    pool_users,
    provisioner_xml,
    users_xml,
)
from dpone_provider.lab.provisioning import new_secret
from dpone_provider.lab.state import EngineState, url_of
from dpone_provider.lab.supervisor import ClickhouseJob


@dataclass(frozen=True, slots=True, kw_only=True)
class ClickhousePlan:
    """Passwords made for one run. ``pool`` is empty where users are made by SQL; ``extra`` are a test's own users."""

    program: ChdbLibrary | ClickhouseBinary
    passwords: dict[str, Secret]
    pool: dict[str, Secret]
    extra: tuple[ClickhouseUser, ...]

    @property
    def kind(self) -> str:
        """``library`` or ``server``, as the state document tells it."""
        return "library" if isinstance(self.program, ChdbLibrary) else "server"

    def job(self) -> ClickhouseJob:
        """Return what the supervisor needs."""
        if isinstance(self.program, ClickhouseBinary):
            return ClickhouseJob(program=self.program, users_xml=provisioner_xml(self.passwords[PROVISIONER]))
        users = [*lab_users(self.passwords), *pool_users(self.pool), *self.extra]
        return ClickhouseJob(program=self.program, users_xml=users_xml(users))


def new_plan(program: ChdbLibrary | ClickhouseBinary, *, extra: Sequence[ClickhouseUser] = ()) -> ClickhousePlan:
    """Make every password of one run."""
    names = pool_names() if isinstance(program, ChdbLibrary) else []
    return ClickhousePlan(
        program=program,
        passwords={name: new_secret() for name in (CONTROLLER, READER, PROVISIONER)},
        pool={name: new_secret() for name in names},
        extra=tuple(extra),
    )


def provision(plan: ClickhousePlan, port: int, users_file: Path) -> str:
    """Make users (real server only) and databases; return the server's version, as it tells it."""
    if isinstance(plan.program, ClickhouseBinary):
        _make_users(plan, port, users_file)
    controller = ClickhouseSession(port=port, user=CONTROLLER, password=plan.passwords[CONTROLLER])
    for database in (MART, STAGE):
        controller.ask(with_names(STATEMENTS["create_database"], {"database": quoted(database)}))
    return controller.ask("SELECT version()")


def credentials(plan: ClickhousePlan, clickhouse: EngineState) -> dict[str, Secret]:
    """Return the credentials that the lab writes down, each for the mart database."""
    files = {"analytics_controller": CONTROLLER, "analytics_reader": READER}
    return {
        name: url_of(
            "clickhouse",
            user=user,
            password=plan.passwords[user],
            host=clickhouse.host,
            port=clickhouse.port,
            database=MART,
        )
        for name, user in files.items()
    }


def _make_users(plan: ClickhousePlan, port: int, users_file: Path) -> None:
    """Make the users by SQL, then take away the one who made them: nobody may stay who can do everything."""
    provisioner = ClickhouseSession(port=port, user=PROVISIONER, password=plan.passwords[PROVISIONER])
    for user in (*lab_users(plan.passwords), *plan.extra):
        more = ISSUING_GRANTS if user.name == CONTROLLER else ()
        for statement in create_statements(user, more=more):
            provisioner.ask(statement)
    users_file.write_text(no_users_xml())
    provisioner.ask(STATEMENTS["reload"])
