"""A loader signs its messages to the audit, and believes only its own ones."""

from __future__ import annotations

from pathlib import Path

import pytest

from skidway.audit.signing.identity import Identity
from skidway.audit.signing.keys import KeyRefused, MasterKey, text_of
from skidway.audit.signing.signer import LOOK_EVERY_S, Signer
from skidway.audit.signing.verifier import Verifier
from skidway.audit.topic.claims import loads_overclaim
from skidway.audit.topic.messages import Delta, Sender, Tier
from support.memory_loading import PRODUCER, MemoryLoading
from support.promises import promise

MASTER = MasterKey(1, b"the audit's own master key......")
OWN = Identity.parse("loader/dc1/memory:")
MOVED = Identity.parse("loader/dc1/memory:/new")


@pytest.fixture
def loading(tmp_path: Path) -> MemoryLoading:
    made = MemoryLoading()
    made.signer = Signer(
        tmp_path / "key", lambda identity: loads_overclaim(identity, "dc1"), made.clock
    )
    _place(tmp_path, OWN)
    made.write(10)
    return made


def _place(folder: Path, identity: Identity) -> None:
    (folder / "key").write_text(text_of([MASTER.sender_key(identity)]))


@promise("6 signed")
def test_a_forged_message_of_the_loader_stops_no_load(loading: MemoryLoading) -> None:
    """Somebody who has no key of the loader publishes a message of a later epoch in its name. The
    loads go on in their epoch, with signed messages, and their output is no older copy."""
    assert loading.run().problems == []
    loading.say(Delta(Sender(Tier.HDFS, "dc1", PRODUCER, "h", 9), 7, 5))
    loading.write(10)
    assert loading.run().problems == []
    ours = [x for x in loading.records() if x.signature is not None]
    verifier = Verifier([MASTER])
    assert {verifier.verify(x.value, x.signature).identity for x in ours} == {OWN}
    assert [x.sender.epoch for x in loading.deltas()] == [1, 9, 1]


def test_a_load_without_a_usable_key_is_told_to_the_audit_later(
    loading: MemoryLoading, tmp_path: Path
) -> None:
    """If the loader's key is missing, or that of another output, the run ends with a sentence, and
    nothing is published. The next run with the right key publishes what the load has counted."""
    loading.run()
    loading.write(10)
    _place(tmp_path, MOVED)
    loading.clock.advance(LOOK_EVERY_S)
    [problem] = loading.run().problems
    assert "which may not sign a message of memory:/" in str(problem)
    (tmp_path / "key").unlink()
    loading.clock.advance(LOOK_EVERY_S)
    with pytest.raises(KeyRefused, match="cannot be read: No such file"):
        loading.run()
    assert len(loading.deltas()) == 1
    _place(tmp_path, OWN)
    loading.clock.advance(LOOK_EVERY_S)
    assert loading.run().problems == []
    assert sum(x.count for delta in loading.deltas() for x in delta.counts) == 20
