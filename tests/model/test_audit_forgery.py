"""Nobody says for another what was counted: whatever others write into the audit topics, the ledger
has the evidence of the honest senders' own messages, and nothing else."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import fields
from typing import Any

import pytest

from skidway.audit.evidence import admission, ledger_rows
from skidway.audit.evidence.admission import Admission, Mode
from skidway.audit.evidence.ledger import Ledger
from skidway.audit.judgement import clocks
from skidway.audit.judgement.policy import Policy
from skidway.audit.judgement.rules.topic_facts import CommonFacts
from skidway.audit.judgement.topic_judgement import verdicts
from skidway.audit.judgement.verdict import Status
from skidway.audit.signing.verifier import Verified, Verifier
from skidway.audit.topic import claims
from skidway.audit.topic.messages import Tier
from support.forgery_model import (
    AGENT,
    BUCKETS,
    EVIL_AGENT,
    EVIL_COUNTER,
    READ,
    Forgery,
    Written,
    ledger_of,
)
from support.promises import promise
from support.randomness import Seeds

_OWN = {
    "unread_of_agents": {int(EVIL_AGENT.producer)},
    "unread_of_clusters": {EVIL_COUNTER.cluster},
}
POLICY = Policy(tiers=(Tier.AGENT, Tier.BROKER), lateness_ms=0)
STEPS = 60
RUNS = 60


@promise("6 signed")
def test_what_others_write_changes_nothing(seeds: Seeds) -> None:
    """Random sequences of true messages, forged messages and repeated messages, by somebody without
    a key, by another host, by the counter of another cluster and by another person, leave the
    evidence that the true messages alone give. Each refused message is counted."""
    for seed in seeds(range(RUNS)):
        found = _difference(seed)
        assert found is None, f"seed {seed}: {found}"


def test_without_signatures_the_model_forges() -> None:
    """The sequences of the model are dangerous: without signatures, nearly all change the
    evidence."""
    changed = [seed for seed in range(10) if _difference(seed, Mode.OFF) is not None]
    assert len(changed) >= 9


def _blind_verifier(monkeypatch: pytest.MonkeyPatch, flaw: str) -> None:
    verify = Verifier.verify

    def blind(self: Verifier, value: bytes, header: bytes | None) -> Verified:
        found = verify(self, value, header)
        return replace_flaw(found, flaw)

    def replace_flaw(found: Verified, name: str) -> Verified:
        return found._replace(flaw=None) if found.flaw == name else found

    monkeypatch.setattr(Verifier, "verify", blind)


def _blind_to_content(kind: str) -> Callable[[pytest.MonkeyPatch], None]:
    def blind(monkeypatch: pytest.MonkeyPatch) -> None:
        content = claims.content_overclaim

        def seen(rights: Any, message: Any) -> str | None:
            found = content(rights, message)
            return None if found is not None and found.startswith(kind) else found

        for module in (claims, admission):
            monkeypatch.setattr(module, "content_overclaim", seen)

    return blind


def _blind_to_sender(word: str) -> Callable[[pytest.MonkeyPatch], None]:
    def blind(monkeypatch: pytest.MonkeyPatch) -> None:
        own = claims.sender_overclaim

        def seen(identity: Any, sender: Any) -> str | None:
            found = own(identity, sender)
            return None if found is not None and found.startswith(word) else found

        monkeypatch.setattr(claims, "sender_overclaim", seen)

    return blind


def _blind_to_kind(role: str) -> Callable[[pytest.MonkeyPatch], None]:
    """Takes what is not of a role, in place of refusing it."""

    def blind(monkeypatch: pytest.MonkeyPatch) -> None:
        all_of_it = claims.overclaim

        def seen(identity: Any, message: Any) -> str | None:
            found = all_of_it(identity, message)
            return None if found is not None and found.startswith(role) else found

        monkeypatch.setattr(admission, "overclaim", seen)

    return blind


def _blind_to_owners(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Admission, "_flaw_of_agent", lambda *_: None)


def _blind_to_repeated_heartbeats(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ledger_rows.Rows, "_is_newest", lambda *_: True)


BLIND = {
    "unsigned": lambda x: _blind_verifier(x, "unsigned"),
    "damaged": lambda x: _blind_verifier(x, "damaged signature"),
    "wrong": lambda x: _blind_verifier(x, "wrong signature"),
    "owners": _blind_to_owners,
    "tier": _blind_to_sender("a message of tier"),
    "cluster": _blind_to_sender("a message of cluster"),
    "host": _blind_to_sender("a message of host"),
    "other agents": _blind_to_content("counts of another agent"),
    "other losses": _blind_to_content("losses"),
    "offsets": _blind_to_content("counts of offsets"),
    "seals": _blind_to_content("seals"),
    "clusters": _blind_to_content("topics of cluster"),
    "notes": _blind_to_kind("a note of the kind"),
    "brokers": _blind_to_kind("the status of brokers"),
    "decisions": _blind_to_kind("a decision"),
    "recounts": _blind_to_kind("a recount"),
    "heartbeats": _blind_to_repeated_heartbeats,
}


@pytest.mark.parametrize("check", BLIND)
def test_a_check_that_is_left_out_is_found(check: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """If the audit leaves out one of its checks, the model finds a sequence of forged messages that
    changes the evidence."""
    BLIND[check](monkeypatch)
    assert any(_difference(seed) is not None for seed in range(RUNS))


def _difference(seed: int, mode: Mode = Mode.REQUIRE) -> str | None:
    """Runs a sequence. Returns in what the evidence differs from that of the true messages."""
    written = Forgery(random.Random(seed)).run(STEPS)
    true = [x for x in written if x.is_true]
    both, alone = ledger_of(written, mode), ledger_of(true, mode)
    try:
        return next(_differences(both, alone, written), None)
    finally:
        both.close()
        alone.close()


def _differences(both: Ledger, alone: Ledger, written: list[Written]) -> Iterator[str]:
    found, expected = both.evidence(), alone.evidence()
    for name in (x.name for x in fields(found) if x.compare):
        of_both, of_true = getattr(found, name), getattr(expected, name)
        if name in _OWN:  # who has a key may send what nobody can read, about itself
            of_both = {key: x for key, x in of_both.items() if key not in _OWN[name]}
        if name != "taken_ms" and of_both != of_true:
            yield f"{name}: {of_both} is not {of_true}"
    if both.notes() != alone.notes():
        yield "notes"
    if both.decisions() != alone.decisions():
        yield "decisions"


@promise("6 signed")
def test_what_a_host_says_of_itself_changes_nothing_for_another(seeds: Seeds) -> None:
    """A host with its own key may say anything of itself: other bounds, times of other centuries,
    any number of agents, losses and seals. A bucket that is complete for another host's agent stays
    complete for it."""
    for seed in seeds(range(RUNS)):
        assert _is_complete(seed), f"seed {seed}"


def _bounds_of_all(monkeypatch: pytest.MonkeyPatch) -> None:
    def largest(self: CommonFacts, _key: object) -> int:
        said = (x.ahead_ms for x in self.evidence.bounds.values())
        return max(self.policy.ahead_ms, max(said, default=0))

    monkeypatch.setattr(CommonFacts, "ahead_ms", largest)


def _agents_count_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clocks, "_of_hosts", lambda _evidence, found: found.values())


@pytest.mark.parametrize("widen", [_bounds_of_all, _agents_count_one_by_one])
def test_what_holds_for_all_is_found(
    widen: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """If what one host says held for all, the model would find it."""
    widen(monkeypatch)
    assert not all(_is_complete(seed) for seed in range(RUNS))


def _is_complete(seed: int) -> bool:
    """Whether a bucket of an honest agent is complete, among lies of another host."""
    ledger = ledger_of(Forgery(random.Random(seed)).lies(STEPS))
    [found] = [x for x in verdicts(ledger.evidence(), POLICY, READ) if x.bucket == BUCKETS[0]]
    ledger.close()
    return [x.status for x in found.agents if x.agent == int(AGENT.producer)] == [Status.COMPLETE]
