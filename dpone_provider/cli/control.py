"""``dpone control render|enroll|pin``: what an administrator and whoever writes an environment file need."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import click

from dpone_provider.cli.output import Output, format_option
from dpone_provider.domain.connection import TlsMode
from dpone_provider.domain.outcomes import refuse

Command = TypeVar("Command", bound=Callable[..., object])


@click.group()
def control() -> None:
    """Render the installation scripts, enrol a ClickHouse database, and read what an environment file pins."""


def _database_options(command: Command) -> Command:
    for option in (
        click.option("--control-schema", default="dpone_control", show_default=True, help="The control schema's name."),
        click.option(
            "--tls",
            type=click.Choice([mode.value for mode in TlsMode]),
            default=TlsMode.VERIFY.value,
            show_default=True,
            help="How to connect; the pinned entry says the same.",
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


@control.command()
@click.argument("script")
@click.option("--set", "settings", multiple=True, metavar="NAME=VALUE", help="A variable of the script; repeat it.")
def render(script: str, settings: tuple[str, ...]) -> None:
    """Print an installation script with its variables filled in, for an administrator to read and to run.

    SCRIPT is the name of a file of sql/postgres, such as 010_control_schema.sql. Nothing is sent anywhere.
    """
    from dpone_provider.lab.admin_script import fill_in
    from dpone_provider.sql_files import shipped_sql

    output = Output("text")
    folder = shipped_sql("postgres")
    known = sorted(path.name for path in folder.glob("*.sql"))
    if script not in known:
        output.end(
            refuse(
                "no_such_script",
                script,
                found="no installation script of that name",
                allowed=", ".join(known),
                next_command="name one of them",
            )
        )
    wrong = [each for each in settings if "=" not in each]
    if wrong:
        raise click.UsageError(f"--set takes NAME=VALUE, not {wrong[0]}")
    values = dict(each.split("=", 1) for each in settings)
    text = (folder / script).read_text(encoding="utf-8")
    click.echo(output.run(lambda: fill_in(text, values, where=script)), nl=False)


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
@format_option
def enroll(credential: str, tls: str, control_schema: str, authority: str, output_format: str) -> None:
    """Enrol a ClickHouse database with an authority: check that it is fit, and leave the authority's marker.

    The credential is the controller's. Once more changes nothing. PostgreSQL is enrolled by scripts: see render.
    """
    from dpone_provider.assembly import enrolling

    output = Output(output_format)
    login = output.run(lambda: enrolling.login_of(credential, TlsMode(tls)))
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
@format_option
def pin(credential: str, tls: str, control_schema: str, output_format: str) -> None:
    """Print a connection's entry of an environment file: who the server and the database are now. Reads only."""
    import yaml

    from dpone_provider.assembly import enrolling

    output = Output(output_format)
    entry = output.run(lambda: enrolling.pins(enrolling.login_of(credential, TlsMode(tls)), control_schema))
    output.result({"connection": entry}, yaml.safe_dump(entry, sort_keys=False, allow_unicode=True).rstrip())
