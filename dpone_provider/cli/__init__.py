"""The command line: parse, call one use case, render as text or JSON.

Commands are imported when they are called: ``dpone --help`` imports click and nothing heavier.
"""

from __future__ import annotations


def main() -> None:
    """Run ``dpone``; the console script's entry."""
    from dpone_provider.cli.root import dpone

    dpone(prog_name="dpone")
