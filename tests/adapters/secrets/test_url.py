from __future__ import annotations

from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpone_provider.adapters.secrets.url import UrlProblem, parse_url
from dpone_provider.domain.identity import EngineKind

CANARY = "c4n4ryS3cret"
printable = st.text(st.characters(exclude_categories=("C", "Z")), min_size=1, max_size=20)


def test_every_part_is_read_and_the_password_is_a_secret() -> None:
    read = parse_url("postgresql://a%40b:p%2Fw%23@db.example:6432/ware%20house?application_name=x&a=b")
    assert (read.kind, read.host, read.port, read.database) == (EngineKind.POSTGRES, "db.example", 6432, "ware house")
    assert read.credential.user == "a@b"
    assert read.credential.password.reveal() == "p/w#"
    assert read.options == (("a", "b"), ("application_name", "x"))
    assert "p/w#" not in repr(read)


@pytest.mark.parametrize(
    ("scheme", "kind", "port"),
    [
        ("postgresql", EngineKind.POSTGRES, 5432),
        ("postgres", EngineKind.POSTGRES, 5432),
        ("mssql", EngineKind.MSSQL, 1433),
        ("clickhouse", EngineKind.CLICKHOUSE, 8123),
    ],
)
def test_a_missing_port_is_the_engines_own(scheme: str, kind: EngineKind, port: int) -> None:
    read = parse_url(f"{scheme}://u:p@h/d")
    assert (read.kind, read.port) == (kind, port)


@given(printable, printable, printable)
def test_encoded_parts_come_back_exactly(user: str, password: str, database: str) -> None:
    encoded = [quote(part, safe="") for part in (user, password, database)]
    if "/" in database:
        return
    read = parse_url("mssql://{}:{}@h:1/{}".format(*encoded))
    assert (read.credential.user, read.credential.password.reveal(), read.database) == (user, password, database)


@pytest.mark.parametrize(
    "text",
    [
        CANARY,
        f"mysql://u:{CANARY}@h/d",
        f"postgresql://u:{CANARY}@h",
        f"postgresql://u:{CANARY}@h/",
        f"postgresql://u:{CANARY}@h/d/e",
        f"postgresql://u:{CANARY}@/d",
        f"postgresql://:{CANARY}@h/d",
        f"postgresql://{CANARY}@h/d",
        f"postgresql://u:{CANARY}/x@h/d",
        f"postgresql://u:{CANARY}#x@h/d",
        f"postgresql://u:{CANARY}@h:99999/d",
        f"postgresql://u:{CANARY}@h:port/d",
        f"postgresql://u:{CANARY}@[h/d",
        f"postgresql://u:{CANARY}@ h/d",
        f"postgresql://u:x@{CANARY}!/d",
        f"postgresql://u:{CANARY}@h/d?password={CANARY}",
        f"postgresql://u:{CANARY}@h/d?sslkey={CANARY}",
        f"postgresql://u:{CANARY}@h/d?{CANARY}",
        f" postgresql://u:{CANARY}@h/d",
        f"postgresql://u:{CANARY}@h/d\n",
        f"postgresql://u:{CANARY}@h/d" + "x" * 5000,
    ],
)
def test_a_problem_never_tells_any_part_of_the_value(text: str) -> None:
    with pytest.raises(UrlProblem) as caught:
        parse_url(text)
    assert CANARY not in str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__ or caught.value.__context__ is None
