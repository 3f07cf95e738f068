"""``dpone recover``."""

from __future__ import annotations

from pathlib import Path

import click

from dpone_provider.application.failure_codec import to_json
from dpone_provider.application.recovery import Recovered, RecoveredAttempt
from dpone_provider.cli.output import Output, format_option
from dpone_provider.cli.plain import attempt_json
from dpone_provider.cli.reach import reach_options, runtime
from dpone_provider.domain.exit_codes import ExitCode
from dpone_provider.domain.identity import AttemptId, short


@click.command()
@click.option("--attempt", "attempt_id", help="One attempt that you say is dead; without it Airflow is asked.")
@reach_options
@format_option
def recover(
    attempt_id: str | None, cache_root: Path, environment: str, authority: str | None, output_format: str
) -> None:
    """Take the front door (close, observe, seal) for attempts that are dead.

    Dead means: Airflow says now that the task instance is neither queued, running nor deferred. Never age. A mistake
    costs work, not safety. Before that, the sessions of controllers that are stopped inside a ledger transaction are
    ended: nothing of it was committed.
    """
    output = Output(output_format)
    at = runtime(output, cache_root, environment, authority)
    ended = output.run(at.end_stopped_controllers)
    if attempt_id is None:
        done = output.run(at.recover_dead)
    else:
        done = (output.run(lambda: at.recover_on_word(AttemptId(attempt_id))),)
    if output.is_json:
        output.result({"ended_sessions": list(ended), "attempts": [_json(one) for one in done]}, "")
    elif not done:
        click.echo("no live attempt")
    else:
        output.table("Recovered", ("attempt", "state", "did", "why"), [_row(one) for one in done])
    raise SystemExit(int(exit_code(done)))


def exit_code(done: tuple[RecoveredAttempt, ...]) -> ExitCode:
    """Return 0 when nothing dead is left, 12 when an outcome is unknown, 13 when something could not be ended."""
    did = {one.did for one in done}
    if did & {Recovered.FAILED, Recovered.CANNOT_ASK}:
        return ExitCode.INCOMPLETE
    return ExitCode.UNKNOWN if Recovered.UNKNOWN in did else ExitCode.OK


def _json(one: RecoveredAttempt) -> dict[str, object]:
    problem = to_json(one.problem) if one.problem is not None else None
    return {"attempt": attempt_json(one.attempt), "did": str(one.did), "problem": problem}


def _row(one: RecoveredAttempt) -> tuple[str, ...]:
    why = str(one.problem.problem) if one.problem is not None else ""
    return (short(one.attempt.attempt_id), str(one.attempt.state), str(one.did), why)
