"""The tutorial on the lab: what is typed works, and what is shown comes out. Airflow's part is stood in for."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.docs.pages import ROOT, page
from tests.docs.session import Session
from tests.docs.shell_blocks import typed_lines
from tests.docs.without_airflow import trigger

pytestmark = [pytest.mark.lab, pytest.mark.timeout(400)]
WITHOUT_AIRFLOW = "without Airflow"


@pytest.fixture
def session(tmp_path: Path) -> Iterator[Session]:
    """A reader's shell in a directory that looks like a clone; the lab that it may have started is taken down."""
    clone = tmp_path / "dpone"
    clone.mkdir(mode=0o755)
    for name in ("examples", "dags"):
        (clone / name).symlink_to(ROOT / name)
    session = Session.begin(clone, {})
    yield session
    session.execute("dpone lab down")


def test_the_tutorial(session: Session) -> None:
    ran = 0
    for block in page("tutorial-flights.md").blocks:
        if block.direction == WITHOUT_AIRFLOW:
            trigger(typed_lines(block)[0].line, session.environment)
        elif block.direction.startswith("run"):
            session.run(block)
        else:
            continue
        ran += 1
    assert ran > 20
