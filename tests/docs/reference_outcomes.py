"""The exit codes, and the classes of outcomes that they tell."""

from __future__ import annotations

import dataclasses
import json

from dpone_provider.airflow import outcomes
from dpone_provider.application.failure_codec import to_json
from dpone_provider.domain.exit_codes import ExitCode
from dpone_provider.domain.outcomes import Busy, Failed, Refused, Unknown, busy
from tests.docs.tables import table

MEANINGS = {
    ExitCode.OK: "Done, or nothing was to be done.",
    ExitCode.FAILED: "An effect was attempted and is known not to have happened. For `reconcile`: rows differ.",
    ExitCode.USAGE: "The command line itself is wrong. Nothing was done.",
    ExitCode.CHANGES_PLANNED: "`--plan` found something to move. Nothing was written.",
    ExitCode.REFUSED: "Known before any effect. Nothing changed.",
    ExitCode.BUSY: "Somebody else holds what is needed; time alone can lift it.",
    ExitCode.UNKNOWN: "An effect was sent, and nobody can tell its outcome yet. Follow the next command.",
    ExitCode.INCOMPLETE: "Some of several things could not be brought to their end.",
    ExitCode.INTERRUPTED: "Ctrl-C. Run the same command again: it continues.",
}


def exit_codes() -> str:
    """Return every exit code with its meaning."""
    return table(("code", "name", "meaning"), ((str(int(each)), each.name, MEANINGS[each]) for each in ExitCode))


def outcome_classes() -> str:
    """Return the classes of outcomes, each with what its docstring says and its exit code."""
    rows = []
    for kind in (Refused, Busy, Failed, Unknown):
        fields = {field.name: field.default for field in dataclasses.fields(kind)}
        code, change = fields["exit_code"], fields["change"]
        assert isinstance(code, ExitCode)
        rows.append((kind.__name__.lower(), (kind.__doc__ or "").replace("``", "`"), str(change), str(int(code))))
    return table(("outcome", "what it says", "state, unless it says otherwise", "exit code"), rows)


def failure() -> str:
    """Return a failure as ``--format json`` writes it."""
    example = busy(
        "drain_timed_out",
        "occurrence 9a332063-6d2a-430f-b85e-68fa6ee8ed5c",
        holder="attempt 4405af74cd75 (RUNNING) of ordinary.planes",
        allowed="no RUNNING or COMMIT_UNKNOWN attempt before --drain-timeout",
        next_command="run the same cache-sync again (it continues), or `dpone recover`",
    )
    text = json.dumps({"outcome": "failure", **to_json(example)}, indent=2, sort_keys=True)
    return f"<!-- part -->\n\n```json\n{text}\n```"


def in_airflow() -> str:
    """Return what each outcome is in Airflow: the table of the module that decides it."""
    return "\n".join(line for line in (outcomes.__doc__ or "").splitlines() if line.startswith("|"))
