"""Run dbt over a project twice with the stand-in in the place of pyodbc: ``python -I recording.py CHILD``.

Uses the child's own way of making, parsing and building; the job is the child's, on standard input. Twice, so that the
second run finds what the first left; tests in the second only. Writes ``results.json`` beside what the stand-in writes.
"""

from __future__ import annotations

import json
import os
import runpy
import sys
from pathlib import Path

path = sys.argv.pop()
sys.path.insert(0, str(Path(__file__).parent))
child = runpy.run_path(path, run_name="child")
place = Path(os.environ["DPONE_TEST_RECORD"])
job = json.loads(sys.stdin.readline())
child["forbid_pooling"](job["adapter"])
child["keep_letters"](job["adapter"])
dbt = child["Dbt"](job)
(place / "manifest.json").write_bytes(dbt.parse())
parsed = dbt.manifest
nodes = sorted(one for one, node in parsed.nodes.items() if node.config.materialized != "ephemeral")
written = [one for one in nodes if not one.startswith("test.")]
results = []
for run, chosen in {"first": written, "second": nodes}.items():
    with (place / "statements.jsonl").open("a") as record:
        record.write(json.dumps({"run": run}) + "\n")
    dbt.manifest = parsed.deepcopy()
    outcome = dbt.build(chosen, 1, lambda event: None)
    results.append({one.node.unique_id: [str(one.status), one.message] for one in child["results_of"](outcome)})
(place / "results.json").write_text(json.dumps(results))
