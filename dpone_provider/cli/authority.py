"""``dpone control readmit|forget|bury``: an authority that went back, a copy of one, a service lost for good."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar
from uuid import UUID

import click

from dpone_provider.application.failure_codec import to_json
from dpone_provider.cli.output import Output, format_option
from dpone_provider.cli.plain import attempt_json, occurrence_json
from dpone_provider.cli.reach import runtime_of_all
from dpone_provider.domain.identity import ServiceId

if TYPE_CHECKING:
    from dpone_provider.application.readmission import Readmitted
    from dpone_provider.application.standing import LedgerStanding, Witnessed
    from dpone_provider.assembly.control import Control

Command = TypeVar("Command", bound=Callable[..., object])
HEAD = ("target", "service", "authority", "incarnation", "mark", "note")
BECAUSE = click.option("--because", help="Why you judge so; recorded for good, under the ledger's login.")


def _options(command: Command) -> Command:
    for option in (
        format_option,
        click.option(
            "--workspace-authority-connection-ref",
            "authority",
            envvar="DPONE_AUTHORITY_CONNECTION_REF",
            show_envvar=True,
            help="Where the control authority is: env:NAME, file:/PATH or airflow:CONN_ID.",
        ),
        click.option(
            "--cache-root",
            type=click.Path(path_type=Path, file_okay=False),
            envvar="DPONE_CACHE_ROOT",
            required=True,
            show_envvar=True,
            help="The deployment cache: its registries say where the targets are, its pointers what was promoted.",
        ),
    ):
        command = option(command)
    return command


@click.command()
@BECAUSE
@click.option("--take-over", is_flag=True, help="Also where a target names another authority or incarnation.")
@_options
def readmit(because: str | None, take_over: bool, cache_root: Path, authority: str | None, output_format: str) -> None:
    """Put an authority that went back to use again.

    Without --because it only shows who the ledger says that it is and which authority each target names. With it: every
    login with our tag is closed, what ran becomes COMMIT_UNKNOWN, every occurrence stops, and epochs and generations go
    above whatever targets, receipts and pointers show. Run it again after a crash: it continues. Then reconcile what is
    unknown, and promote each environment anew.
    """
    output = Output(output_format)
    control = _control(output, cache_root, authority)
    if because is None:
        _show(output, output.read(control.look))
        return
    _, done = output.run(lambda: control.readmit(because, take_over=take_over))
    if done.readmission is None:
        output.result({"did": "nothing went back"}, "nothing went back: nothing was done")
        return
    output.result({"did": "readmitted", **_readmitted_json(done)}, _readmitted_text(done))


@click.command()
@click.option("--because", required=True, help="Why it is a copy; recorded for good, under the ledger's login.")
@_options
def forget(because: str, cache_root: Path, authority: str | None, output_format: str) -> None:
    """Make a copy of an authority give up everything that it believes about targets, without asking any of them.

    It takes another id, buries every service that it was copied with and ends every occurrence and attempt. No target
    is touched, now or ever after.
    """
    output = Output(output_format)
    control = _control(output, cache_root, authority)
    done = output.run(lambda: control.forget(because))
    output.result(
        {
            "did": "forgot",
            "authority_id": done.readmission.authority_id,
            "occurrences": [occurrence_json(one) for one in done.settled.occurrences],
            "buried": list(done.buried),
        },
        "\n".join(
            (
                f"forgotten: {done.readmission}; this authority is {done.readmission.authority_id} from now on",
                *(f"  {one}" for one in done.settled.occurrences),
                *(f"  service {one} is never touched again" for one in done.buried),
            )
        ),
    )


@click.command()
@click.argument("service_id", metavar="SERVICE", type=click.UUID)
@click.option("--because", required=True, help="Why it is lost for good; recorded, under the ledger's login.")
@_options
def bury(service_id: UUID, because: str, cache_root: Path, authority: str | None, output_format: str) -> None:
    """Write off a service that is lost for good. SERVICE is its id, as `dpone control readmit` lists it.

    Its gates become CLOSED and its publications UNKNOWN by this judgement, its attempts COMMIT_UNKNOWN; its id is never
    enrolled again. A service that answers is refused.
    """
    output = Output(output_format)
    control = _control(output, cache_root, authority)
    done = output.run(lambda: control.bury(ServiceId(str(service_id)), because))
    output.result(
        {
            "did": "buried",
            "service_id": done.burial.service_id,
            "attempts": [attempt_json(one) for one in done.attempts],
        },
        "\n".join(
            (
                f"buried: service {done.burial.service_id}",
                *(f"  {one}: dpone attempt reconcile {one.attempt_id}" for one in done.attempts),
                "next: settle what is COMMIT_UNKNOWN, then promote deployments that do not write it",
            )
        ),
    )


def _control(output: Output, cache_root: Path, authority: str | None) -> Control:
    from dpone_provider.assembly.control import Control

    return Control(runtime=runtime_of_all(output, cache_root, authority))


def _show(output: Output, standing: LedgerStanding) -> None:
    at, refusal = standing.authority, standing.refusal
    if output.is_json:
        output.result(
            {
                "authority_id": at.authority_id,
                "recorded_incarnation": at.recorded,
                "observed_incarnation": at.observed,
                "sequence": at.sequence,
                "open_readmission": None if at.opened is None else at.opened.readmission_id,
                "went_back": standing.went_back,
                "why": None if refusal is None else to_json(refusal),
                "targets": [_target_json(one) for one in standing.targets],
            },
            "",
        )
        return
    click.echo(f"authority {at.authority_id}: recorded {at.recorded}, observed {at.observed}, sequence {at.sequence}")
    output.table("Targets", HEAD, [_target_row(one) for one in standing.targets])
    if refusal is None:
        click.echo("nothing shows that it went back")
        return
    click.echo(f"it went back: {refusal.problem.found}")
    take_over = " --take-over" if standing.of_another else ""
    click.echo(f"next: dpone control readmit{take_over} --because TEXT; on a copy: dpone control forget --because TEXT")


def _target_json(one: Witnessed) -> dict[str, Any]:
    named = one.allegiance
    return {
        "connection": one.connection.reference,
        "service_id": one.connection.composition_service_id,
        "authority_id": None if named is None else named.authority_id,
        "authority_incarnation": None if named is None else named.authority_incarnation,
        "mark": None if named is None else named.mark,
        "copied_from": None if named is None else named.copied_from,
        "failure": None if one.failure is None else to_json(one.failure),
    }


def _target_row(one: Witnessed) -> tuple[str, ...]:
    named = one.allegiance
    at = (one.connection.reference, one.connection.composition_service_id)
    if named is None:
        return (*at, "?", "?", "?", "" if one.failure is None else one.failure.problem.found)
    note = "" if named.copied_from is None else f"a copy of {named.copied_from}"
    return (*at, named.authority_id, named.authority_incarnation, str(named.mark), note)


def _readmitted_json(done: Readmitted) -> dict[str, Any]:
    return {
        "readmission_id": None if done.readmission is None else done.readmission.readmission_id,
        "strays_closed": list(done.strays),
        "attempts": [attempt_json(one) for one in done.unknown],
        "occurrences": [occurrence_json(one) for one in done.stopped],
        "spent": list(done.spent),
        "dropped": list(done.dropped),
        "obeying": list(done.obeying),
        "copied": list(done.copied),
    }


def _readmitted_text(done: Readmitted) -> str:
    lines = [f"readmitted: {done.readmission}"]
    lines += [f"  closed login {name}, which the ledger did not know" for name in done.strays]
    lines += [f"  {one}: dpone attempt reconcile {one.attempt_id}" for one in done.unknown]
    lines += [f"  {one}" for one in done.stopped]
    lines.append(f"  {len(done.spent)} attempts of a forgotten time are spent")
    lines += [f"  {name} obeys it" for name in done.obeying]
    lines += [
        f"  {name} is a copy: an administrator adopts it (docs: how-to-readmit-an-authority), then pin it and build"
        for name in done.copied
    ]
    lines.append(
        "next: reconcile what is COMMIT_UNKNOWN, then promote each environment anew (dpone airflow cache-sync)"
    )
    return "\n".join(lines)
