"""Evidence documents: canonical whatever servers say, and what they say they are."""

from __future__ import annotations

from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st

from dpone_provider.application.evidence import MAX_VALUE, Said, proof_document, sessions_observed
from dpone_provider.application.ports.gate import SessionObservation
from dpone_provider.documents.attempt_proof import CompositionAttemptProofV1, Judgement, NamedGate
from dpone_provider.documents.reading import read
from dpone_provider.domain.attempt import AttemptState, ProofKind
from dpone_provider.domain.identity import AttemptId, GateName, Principal, ServiceId, digest_of

ATTEMPT = AttemptId("a" * 64)
AT = datetime(2026, 11, 29, 12, 0, tzinfo=UTC)
PRINCIPAL = Principal(service_id=ServiceId("5a1d4f0e-6a53-4b6f-9a39-0c8f6f2d7b11"), name="dpone_v3_x", sid="dpone_v3_x")
SAME, OTHER = ServiceId("00000000-0000-0000-0000-000000000001"), ServiceId("00000000-0000-0000-0000-000000000002")
GATES = (GateName(OTHER, "a"), GateName(SAME, "b"), GateName(SAME, "a"))
ANY_TEXT = st.text(st.characters(codec=None, exclude_categories=()))
SAID = st.none() | st.booleans() | st.integers() | ANY_TEXT | st.lists(ANY_TEXT, max_size=3)


def proof(observed: dict[str, Said]) -> CompositionAttemptProofV1:
    """Write a proof of a success, and read it back as strictly as any document."""
    data = proof_document(
        ProofKind.OUTCOME, ATTEMPT, observed, names_gates=(*GATES, GATES[0]), at=AT, outcome=AttemptState.SUCCEEDED
    )
    found = read(CompositionAttemptProofV1, data, "a proof")
    assert isinstance(found, CompositionAttemptProofV1), found
    return found


def said(observed: dict[str, Said]) -> dict[str, str]:
    """Return what a proof says of what was observed."""
    return {one.name: one.value for one in proof(observed).observed}


def observation(**changes: object) -> SessionObservation:
    """Return an observation of nothing, but for ``changes``."""
    values: dict[str, object] = {
        "principal": PRINCIPAL,
        "sessions": (),
        "half_open": (),
        "transactions": (),
        "blind": False,
        "evidence_digest": digest_of(b"x"),
    }
    return SessionObservation(**(values | changes))  # type: ignore[arg-type]


@given(st.dictionaries(st.sampled_from(["target", "rows", "unreadable"]), SAID, max_size=3))
def test_whatever_was_observed_reads_as_the_document_that_it_says_it_is(observed: dict[str, Said]) -> None:
    """Found: the ledger's evidence named a schema whose shape it did not have."""
    assert set(said(observed)) == set(observed)


def test_words_stay_as_they_are_and_the_rest_becomes_words() -> None:
    observed: dict[str, Said] = {"a": "é", "b": ["x", "y"], "c": 2**60, "d": True, "e": False, "f": None, "g": ()}
    words = {"a": "é", "b": "x; y", "c": str(2**60), "d": "yes", "e": "no", "f": "none", "g": ""}
    assert said(observed) == words


def test_text_without_canonical_form_gets_one() -> None:
    assert said({"a": "cafe\u0301 \ud800"}) == {"a": "caf\u00e9 ?"}


def test_long_words_are_cut_within_the_limit() -> None:
    cut = said({"a": "e\u0301" * MAX_VALUE + "x"})["a"]
    assert len(cut) == MAX_VALUE
    assert cut.endswith("…")


def test_gates_are_named_once_in_order() -> None:
    assert proof({}).names_gates == tuple(map(NamedGate.of, sorted(GATES)))


def test_a_judgement_stands_in_it() -> None:
    judged = Judgement(because="seen by eye", by="dpone_controller")
    data = proof_document(
        ProofKind.OUTCOME, ATTEMPT, {}, names_gates=(), at=AT, outcome=AttemptState.FAILED, judgement=judged
    )
    found = read(CompositionAttemptProofV1, data, "a proof")
    assert isinstance(found, CompositionAttemptProofV1)
    assert found.judgement == judged


def test_an_observation_of_sessions() -> None:
    seen = sessions_observed(observation(sessions=("pid 7",), blind=True))
    assert seen["sessions"] == ("pid 7",)
    assert seen["observer_sees_every_session"] is False
    assert "unverified" not in seen


def test_what_an_engine_cannot_show_is_named() -> None:
    assert sessions_observed(observation(unverified=("reconnect",)))["unverified"] == ("reconnect",)
