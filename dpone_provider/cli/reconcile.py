"""``dpone reconcile``."""

from __future__ import annotations

from pathlib import Path
from typing import Any, assert_never

import click

from dpone_provider.application.failure_codec import to_json
from dpone_provider.application.reconcile import TableReconciliation, in_words
from dpone_provider.cli.output import Output, format_option
from dpone_provider.cli.reach import reach_options, runtime
from dpone_provider.columnar.reconcile import Agreement, Disagreement, Moved
from dpone_provider.domain.exit_codes import ExitCode
from dpone_provider.domain.outcomes import Busy, Failed, Refused, Unknown


@click.command()
@reach_options
@format_option
def reconcile(cache_root: Path, environment: str, authority: str | None, output_format: str) -> None:
    """Read every transfer's source and target again, through read-only logins, and compare every row by its key."""
    output = Output(output_format)
    at = runtime(output, cache_root, environment, authority)
    done = output.run(lambda: tuple(at.reconcile_tables()))
    if output.is_json:
        output.result({"tables": [_json(one) for one in done]}, "")
    else:
        rows = [(one.workload_id, one.source, one.target, in_words(one)) for one in done]
        output.table("Reconciliation", ("workload", "source", "target", "found"), rows)
    raise SystemExit(int(ExitCode.OK if all(one.agrees for one in done) else ExitCode.FAILED))


def _json(one: TableReconciliation) -> dict[str, Any]:
    said: dict[str, Any] = {
        "workload_id": one.workload_id,
        "source": one.source,
        "target": one.target,
        "agrees": one.agrees,
        "found": in_words(one),
    }
    match one.outcome:
        case Agreement(digest):
            return said | {"rows": digest.rows, "content_digest": str(digest)}
        case Disagreement() as found:
            return said | {
                "source_rows": found.source.rows,
                "target_rows": found.target.rows,
                "deviations": [str(deviation) for deviation in found.deviations],
                "complete": found.complete,
            }
        case Moved():
            return said
        case Refused() | Busy() | Failed() | Unknown() as failure:
            return said | {"failure": to_json(failure)}
        case _ as never:
            assert_never(never)
