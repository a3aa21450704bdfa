"""Records of audit topics with signatures, and ledgers that check them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from skidway.audit.database import IN_MEMORY
from skidway.audit.evidence.admission import Mode, Signatures
from skidway.audit.evidence.hearing import Heard
from skidway.audit.evidence.ledger import Ledger
from skidway.audit.signing import signature
from skidway.audit.signing.identity import Identity
from skidway.audit.signing.keys import MasterKey
from skidway.audit.signing.verifier import Verifier
from skidway.audit.topic.claims import sender_name
from skidway.audit.topic.messages import TOPIC, Delta, Heartbeat, Message, Seal, encode

MASTER = MasterKey(1, bytes(range(32)))
STRANGE = MasterKey(1, b"s" * 32)
"""A key with the same number that is not the audit's."""


OWNERS = [(7, "agent/dc1/web1"), (8, "agent/dc1/web2")]
"""Whose the ids of the agents in `audit_senders` are, which do not say it."""


def verifying(
    mode: Mode = Mode.REQUIRE,
    path: Path | str = IN_MEMORY,
    masters: Sequence[MasterKey] = (MASTER,),
) -> Ledger:
    """Returns a ledger that checks signatures with these master keys. It has heard the agents of
    `audit_senders` before their hosts had keys."""
    ledger = Ledger(path, signatures=Signatures(mode, Verifier(masters)))
    ledger._connection.executemany("INSERT OR IGNORE INTO owners VALUES (?, 1, ?)", OWNERS)
    return ledger


def own_identity(message: Message) -> str:
    """The identity of the sender in a numbered message."""
    assert isinstance(message, Delta | Seal | Heartbeat)
    said = message.sender
    return sender_name(said.tier, said.cluster, said.producer, said.host)


def take_signed(
    ledger: Ledger,
    said: Iterable[Message | bytes],
    taken_ms: int,
    *,
    identity: str | None = None,
    master: MasterKey | None = MASTER,
    offset: int = 0,
) -> None:
    """Stores records that were read at `taken_ms` from one partition. identity: who signs; None for
    the sender in each message. master: whence the key comes; None for unsigned records."""
    records = []
    for number, each in enumerate(said, offset):
        value = each if isinstance(each, bytes) else encode(each)
        header = None
        if master is not None:
            name = identity or own_identity(each)  # type: ignore[arg-type]
            header = signature.sign(master.sender_key(Identity.parse(name)), value)
        where = Heard(TOPIC, "id", 0, number, taken_ms, taken_ms, is_live=False, signature=header)
        records.append((value, where))
    ledger.take_records(records, {}, taken_ms)
