"""SIDs with our tag, and password hashes as CREATE LOGIN … HASHED takes them."""

from __future__ import annotations

import pytest

from dpone_provider.adapters.mssql.logins import TAG, new_sid, password_hash, sid_bytes, sid_text
from dpone_provider.domain.secret import Secret

KNOWN = (
    "02000102030434ea1b17802fd95ea6316bd61d2c94622ca3812793e8fb1672487b5c904a45a31b2a"
    "b4a78890d563d2fcf5663e46fe797d71550494be50cf4915d3f4d55ec375"
)
"""Of the password ``hashcat`` with the salt 01020304: the published example of hashcat's mode 1731, MSSQL (2012)."""


def test_the_hash_is_the_servers_own() -> None:
    assert password_hash(Secret("hashcat"), bytes.fromhex("01020304")).hex() == KNOWN


def test_a_salt_has_four_bytes() -> None:
    with pytest.raises(ValueError, match="four bytes"):
        password_hash(Secret("hashcat"), b"\x01")


def test_a_sid_has_the_tag_and_is_never_the_same() -> None:
    sids = {new_sid() for _ in range(1000)}
    assert len(sids) == 1000
    assert all(len(sid) == 16 and sid[:6] == TAG == b"dpone\x01" for sid in sids)


def test_a_sid_is_written_as_the_server_writes_it() -> None:
    sid = TAG + bytes(range(0xF0, 0xFA))
    assert sid_text(sid) == "64706f6e6501f0f1f2f3f4f5f6f7f8f9"
    assert sid_bytes(sid_text(sid)) == sid


@pytest.mark.parametrize("text", ["", "64706f6e65", "0105000000000005150000000000000000", "zz"])
def test_a_sid_that_is_none_of_ours_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"SID of ours|fromhex"):
        sid_bytes(text)
