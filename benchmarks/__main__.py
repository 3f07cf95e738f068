"""Run every benchmark, one after the other, each in a process of its own.

    python -m benchmarks                      all of them
    python -m benchmarks attempt_overhead     these
    python -m benchmarks --list               what there is

Figures of one run may be compared with each other, and with those of another run only as ratios. The load that the
machine had when a benchmark began stands beside each.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from collections.abc import Sequence

BENCHMARKS = {
    "bulk_mssql": "rows into SQL Server and out of it, by each driver: exactness, speed, memory",
    "attempt_overhead": "the protocol around an attempt that does nothing",
    "cache_sync": "promotions of parents with thousands of slots",
    "transfers": "rows per second, beside the engines' own ways and a peer",
}
"""The modules of this package that measure something, and what."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the chosen ones; 1 if any of them ended with an error."""
    parser = argparse.ArgumentParser(prog="make bench ONLY=…", description="Measure, and print ratios.")
    parser.add_argument("benchmarks", nargs="*", metavar="BENCHMARK")
    parser.add_argument("--list", action="store_true", help="list the benchmarks")
    options = parser.parse_args(arguments)
    if options.list:
        for name, what in BENCHMARKS.items():
            print(f"{name:<20}{what}")
        return 0
    if unknown := [name for name in options.benchmarks if name not in BENCHMARKS]:
        parser.error(f"no benchmark named {', '.join(unknown)}; there are: {', '.join(BENCHMARKS)}")
    failed = 0
    for name in options.benchmarks or BENCHMARKS:
        load = ", ".join(f"{one:.2f}" for one in os.getloadavg())
        print(f"\n=== {name}: {BENCHMARKS[name]} (load average {load}; {os.cpu_count()} processors)", flush=True)
        failed += subprocess.run([sys.executable, "-m", f"benchmarks.{name}"], check=False).returncode != 0
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
