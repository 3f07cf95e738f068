"""Check the documentation against the code: what ``make docs`` runs.

    python -m tests.docs.check

Every link within the project leads somewhere, every page is linked, every command is one that is taken, every example
can be read, every generated part is current, and the code's own messages name only commands that exist.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator

from tests.docs.code_mentions import wrong_mentions
from tests.docs.commands import wrong_commands
from tests.docs.examples import wrong_examples
from tests.docs.generated import stale
from tests.docs.links import broken_links, unreachable_pages
from tests.docs.names import unknown_names
from tests.docs.pages import pages


def faults() -> Iterator[str]:
    """Say everything that is wrong."""
    found = pages()
    for page in found:
        yield from broken_links(page)
        yield from wrong_commands(page)
        yield from wrong_examples(page)
        yield from unknown_names(page)
    yield from unreachable_pages(found)
    yield from stale()
    yield from wrong_mentions()


def main() -> int:
    """Say what is wrong; return the exit code."""
    found = list(faults())
    sys.stdout.write("".join(f"{fault}\n" for fault in found))
    sys.stdout.write(f"{len(pages())} pages, {len(found)} faults\n")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
