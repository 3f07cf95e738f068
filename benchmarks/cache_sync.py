"""How long ``cache-sync`` takes for parents of different sizes, one slot for each workload, on the lab.

    python -m benchmarks.cache_sync [--slots 1000 5000]

Each size is promoted over the one before it. Asked for: at most 5 s for 5,000 slots on an idle machine of two cores,
and growth that is linear: the seconds for each slot are printed as ratios to the smallest size.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

from benchmarks.small_deployment import ground

HEAD = "schema: dpone.workspace.v1\nname: many\nordinary:\n"
TRANSFER = """\
  - id: t{number}
    from: {{connection: shop, schema: public, table: planes}}
    to: {{connection: warehouse, schema: stage, table: t{number}}}
    columns: [{{name: tailnum, type: string, nullable: false}}]
    key: [tailnum]
    strategy: full_refresh
    state: {{atomicity: target_atomic, provisioning: external}}
"""
TAIL = "environments:\n  lab: environments/lab.yaml\n"


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--slots", type=int, nargs="+", default=[1000, 5000])
    sizes = parser.parse_args().slots
    least = 0.0
    with tempfile.TemporaryDirectory(prefix="dpone-bench-") as directory, ground(Path(directory)) as at:
        for size in sizes:
            text = HEAD + "".join(TRANSFER.format(number=number) for number in range(size)) + TAIL
            began = time.monotonic()
            released = at.release(f"slots-{size}", text)
            building, began = time.monotonic() - began, time.monotonic()
            at.promote(*released)
            took = time.monotonic() - began
            least = least or took / size
            print(
                f"{size:,} slots: cache-sync {took:.2f} s, each slot {1000 * took / size:.2f} ms "
                f"({took / size / least:.2f} of the smallest size's); compile, compose and build {building:.1f} s",
                flush=True,
            )


if __name__ == "__main__":
    main()
