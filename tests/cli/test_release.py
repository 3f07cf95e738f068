"""What the release commands say to a person."""

from __future__ import annotations

from dpone_provider.application.compile_parts import Pinned
from dpone_provider.cli.release import _pinned_lines
from dpone_provider.documents.transfer_pack import ColumnText


def test_pinned_columns_are_said_in_words() -> None:
    pinned = Pinned(
        workload_id="ordinary.planes",
        columns=(
            ColumnText(name="tailnum", type="string", nullable=False),
            ColumnText(name="year", type="int16", nullable=True),
        ),
        key=("tailnum",),
        came_from="shop public.planes, as read now",
    )
    assert _pinned_lines(pinned) == [
        "columns of ordinary.planes, from shop public.planes, as read now:",
        "  tailnum string not null, year int16; key tailnum",
    ]
