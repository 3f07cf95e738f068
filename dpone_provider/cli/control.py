"""``dpone control …``: what an administrator and whoever writes an environment file need."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import click

from dpone_provider.cli.authority import bury, forget, readmit
from dpone_provider.cli.output import Output, format_option
from dpone_provider.domain.connection import TlsMode
from dpone_provider.domain.outcomes import refuse

Command = TypeVar("Command", bound=Callable[..., object])
ENGINES = ("postgres", "mssql")
"""Whose installation scripts are shipped."""


@click.group()
def control() -> None:
    """Install, compare, enrol and pin; put an authority that went back to use again; write off a lost service."""


for _command in (readmit, forget, bury):
    control.add_command(_command)


def _database_options(command: Command) -> Command:
    schema = click.option(
        "--control-schema", default="dpone_control", show_default=True, help="The control schema's name."
    )
    return _connection_options(schema(command))


def _connection_options(command: Command) -> Command:
    for option in (
        click.option(
            "--tls",
            type=click.Choice([mode.value for mode in TlsMode]),
            help="How to connect: without it as the URL says, else verify. The pinned entry says the same.",
        ),
        click.option(
            "--credential",
            required=True,
            metavar="REFERENCE",
            help="Who connects, and where: env:NAME, file:/PATH or airflow:CONN_ID.",
        ),
    ):
        command = option(command)
    return command


def _mode(tls: str | None) -> TlsMode | None:
    return None if tls is None else TlsMode(tls)


_control_database = click.option(
    "--control-database", default="dpone_control", show_default=True, help="The control database, as filled into 007."
)


@control.command()
@click.argument("script")
@click.option(
    "--engine",
    type=click.Choice(ENGINES),
    default="postgres",
    show_default=True,
    help="Whose scripts: sql/postgres or sql/mssql.",
)
@click.option("--set", "settings", multiple=True, metavar="NAME=VALUE", help="A variable of the script; repeat it.")
@format_option
def render(script: str, engine: str, settings: tuple[str, ...], output_format: str) -> None:
    """Print an installation script with its variables filled in, for an administrator to read and to run.

    SCRIPT is the name of a file of sql/postgres or sql/mssql, such as 020_gate.sql. Nothing is sent anywhere.
    """
    from dpone_provider.application.installation.rendering import fill_in
    from dpone_provider.sql_files import shipped_sql

    output = Output(output_format)
    shipped = {each: sorted(path.name for path in shipped_sql(each).glob("*.sql")) for each in ENGINES}
    if script not in shipped[engine]:
        elsewhere = "".join(f"; --engine {each} has one" for each in ENGINES if script in shipped[each])
        output.end(
            refuse(
                "no_such_script",
                script,
                found=f"no installation script of that name for {engine}{elsewhere}",
                allowed=", ".join(shipped[engine]),
                next_command="name one of them, with the engine that has it",
            )
        )
    text = (shipped_sql(engine) / script).read_text(encoding="utf-8")
    filled = output.run(lambda: fill_in(text, _values(settings), where=script))
    if output.is_json:
        output.result({"engine": engine, "script": script, "text": filled}, "")
        return
    click.echo(filled, nl=False)


def _values(settings: tuple[str, ...]) -> dict[str, str]:
    wrong = [each for each in settings if "=" not in each]
    if wrong:
        raise click.UsageError(f"--set takes NAME=VALUE, not {wrong[0]}")
    names = [each.partition("=")[0] for each in settings]
    twice = [name for name in names if names.count(name) > 1]
    if twice:
        raise click.UsageError(f"--set {twice[0]} is given more than once")
    return dict(each.split("=", 1) for each in settings)


@control.command()
@_database_options
@click.option(
    "--workspace-authority-connection-ref",
    "authority",
    envvar="DPONE_AUTHORITY_CONNECTION_REF",
    show_envvar=True,
    required=True,
    help="Where the control authority is: env:NAME, file:/PATH or airflow:CONN_ID.",
)
@_control_database
@format_option
def enroll(
    credential: str, tls: str | None, control_schema: str, control_database: str, authority: str, output_format: str
) -> None:
    """Enrol a ClickHouse database with an authority, or verify what scripts enrolled on SQL Server.

    On ClickHouse: check that it is fit, and leave the authority's marker. On SQL Server: check all that admission will,
    and list everybody who could write the database, with why it counts. The credential is the controller's. Once more
    changes nothing. PostgreSQL is enrolled by scripts: see render.
    """
    from dpone_provider.assembly import enrolling
    from dpone_provider.domain.identity import EngineKind

    output = Output(output_format)
    login = output.run(lambda: enrolling.login_of(credential, _mode(tls)))
    if login.endpoint.kind is EngineKind.MSSQL:
        found = output.read(lambda: enrolling.authority_of(authority, control_schema))
        verified = output.read(lambda: enrolling.verify_mssql(login, found, control_database))
        output.result(
            {
                "database": str(login.endpoint),
                "authority_id": found.authority_id,
                "managed_schemas": list(verified.managed_schemas),
                "could_write": list(verified.could_write),
            },
            "\n".join(
                (
                    f"{login.endpoint} is enrolled with authority {found.authority_id}",
                    f"managed schemas: {', '.join(verified.managed_schemas) or 'none yet'}",
                    "could write, beside the logins that are issued:",
                    *(
                        f"  {one['kind']} {one['principal']}: {one['why']} ({one['counts']})"
                        for one in verified.could_write
                    ),
                    f"next: dpone control pin --credential {credential}",
                )
            ),
        )
        return
    output.run(lambda: enrolling.require_clickhouse(login))
    found = output.run(lambda: enrolling.authority_of(authority, control_schema))
    output.run(lambda: enrolling.enrol_clickhouse(login, found))
    output.result(
        {"database": str(login.endpoint), "authority_id": found.authority_id},
        f"{login.endpoint} is enrolled with authority {found.authority_id}\n"
        f"next: dpone control pin --credential {credential}",
    )


@control.command()
@_database_options
@_control_database
@format_option
def pin(credential: str, tls: str | None, control_schema: str, control_database: str, output_format: str) -> None:
    """Print a connection's entry of an environment file: who the server and the database are now. Reads only.

    A target that is enrolled and not fit has no schemas in it: why is told on standard error.
    """
    import yaml

    from dpone_provider.assembly import enrolling
    from dpone_provider.assembly.engines import ControlNames

    output = Output(output_format)
    names = ControlNames(schema=control_schema, database=control_database)
    found = output.read(lambda: enrolling.pins(enrolling.login_of(credential, _mode(tls)), names))
    output.warn([] if found.refused is None else [found.refused])
    entry = dict(found.entry)
    output.result({"connection": entry}, yaml.safe_dump(entry, sort_keys=False, allow_unicode=True).rstrip())


def _instance_options(command: Command) -> Command:
    for option in (
        click.option(
            "--target",
            "targets",
            multiple=True,
            metavar="DATABASE:SCHEMA,…",
            help="An enrolled database with its managed schemas; repeat it.",
        ),
        click.option(
            "--controller-login", default="dpone_controller", show_default=True, help="The login, as filled into 018."
        ),
        _control_database,
    ):
        command = option(command)
    return command


@control.command()
@_instance_options
@format_option
def objects(control_database: str, controller_login: str, targets: tuple[str, ...], output_format: str) -> None:
    """List every object that the scripts of SQL Server install, with the digest of its definition.

    A digest is over the definition's words: layout, comments and the ends of lines do not count. Reads the shipped
    scripts only.
    """
    from dpone_provider.assembly import installing

    output = Output(output_format)
    asked = output.run(lambda: installing.asked(control_database, controller_login, targets))
    listed = installing.shipped(asked)
    output.result({"objects": listed}, "\n".join("  ".join(one.values()) for one in listed))


@control.command()
@_connection_options
@_instance_options
@format_option
def check(
    credential: str,
    tls: str | None,
    control_database: str,
    controller_login: str,
    targets: tuple[str, ...],
    output_format: str,
) -> None:
    """Compare what is installed on a SQL Server instance with what this version ships, object by object. Reads only.

    The credential is the controller's. PostgreSQL is verified by its script 050_verify.sql: see render.
    """
    from dpone_provider.assembly import enrolling, installing

    output = Output(output_format)
    asked = output.run(lambda: installing.asked(control_database, controller_login, targets))
    login = output.run(lambda: enrolling.login_of(credential, _mode(tls)))
    output.read(lambda: installing.compare(installing.reader_of(login, control_database), asked, str(login.endpoint)))
    output.result({"instance": str(login.endpoint), "deviations": []}, f"{login.endpoint}: all is as shipped")


@control.command(name="self-test")
@_connection_options
@_control_database
@format_option
def self_test(credential: str, tls: str | None, control_database: str, output_format: str) -> None:
    """Try the LOGON gate of a SQL Server instance: an ordinary login gets in, one of ours without READY does not.

    The credential is the controller's. A login is made for it and dropped again.
    """
    from dpone_provider.assembly import enrolling, installing

    output = Output(output_format)
    login = output.run(lambda: enrolling.login_of(credential, _mode(tls)))
    output.run(lambda: installing.try_gate(installing.trial_of(login, control_database), str(login.endpoint)))
    output.result({"instance": str(login.endpoint), "gate": "holds"}, f"{login.endpoint}: the gate holds")
