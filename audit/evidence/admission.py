"""Decides which messages the ledger takes: those that their senders have signed, and that say
nothing about others.

    OFF       every message is taken
    WARN      every message is taken; those that REQUIRE would refuse are counted and named
    REQUIRE   messages that are not signed, or say what is not their sender's to say, are refused

The ledger also notes with which key each sender signed last, so that people know when nobody uses
an old key any more.

An agent's id says to which identity it belongs (see agent_ids).

What the ledger has taken, it keeps: if signatures are required later, the older messages stay what
they are.
"""

from __future__ import annotations

import sqlite3
from enum import StrEnum
from typing import Final, NamedTuple

from skidway import log
from skidway.audit.counts.counts import NO_AGENT
from skidway.audit.evidence.evidence import agent_named
from skidway.audit.evidence.hearing import Heard
from skidway.audit.evidence.refused import Reason
from skidway.audit.signing.agent_ids import is_id_of
from skidway.audit.signing.identity import Identity, Role
from skidway.audit.signing.verifier import Verified, Verifier
from skidway.audit.topic.claims import Claim, Rights, claim_of, content_overclaim, overclaim
from skidway.audit.topic.messages import Delta, Heartbeat, Message, Seal, Sender
from skidway.dataclass import dataclass

REFUSED_MAX: Final = 1_000
"""For at most this many combinations (see refused.Refused), refused messages are counted
separately. All others are counted together, under the name OTHERS."""

OTHERS: Final = "other senders"
NAME_MAX: Final = 200
"""Names in refused messages are cut after this many characters."""

AGENTS_MAX: Final = 1_000
"""One identity may speak for so many agents' ids and their epochs: a host needs a new one only when
its agent lost its state, or continued from an older copy. Without a bound, one host could keep the
audit busy with agents that it made up."""

KNOWN_MAX: Final = 1 << 16
"""The owners of at most this many agents' ids, and so many senders, stay in memory."""

_log = log.get(__name__)

_TRUSTED: Final = Verified()
"""What is known of a record whose signature is not looked at."""

_SAID_OFTEN: Final = (Delta, Seal, Heartbeat)
"""The kinds of nearly all messages."""

_COUNT: Final = """
INSERT INTO refused VALUES (?1, ?2, ?3, ?4, ?5, ?6, 1, ?7, ?8, ?8, ?9, ?10)
ON CONFLICT DO UPDATE SET
    count = count + 1, last = ?8, taken = max(taken, ?9), admitted = ?10
"""


class Mode(StrEnum):
    """What becomes of messages that their senders have not signed."""

    OFF = "off"
    WARN = "warn"
    REQUIRE = "require"


@dataclass(frozen=True, slots=True)
class Signatures:
    """How signatures are judged. verifier: has the master keys; None if this program has none."""

    mode: Mode = Mode.OFF
    verifier: Verifier | None = None


class _Own(NamedTuple):
    """A sender that has proven its identity, and what it may say. identity: as the store has it."""

    found: Verified
    sender: Sender
    rights: Rights
    identity: str


class Admission:
    """Owns the owners of agents' ids, the newest keys of senders, and the counts of refused
    messages. The same object serves one transaction after the other; after a failed transaction, it
    must not be used any more."""

    def __init__(self, connection: sqlite3.Connection, signatures: Signatures) -> None:
        self._connection = connection
        self._signatures = signatures
        self._is_off = signatures.mode is Mode.OFF
        self._owners: dict[tuple[str, int], str] = {}
        self._own: dict[tuple[int, int], _Own] = {}
        """By Python's `id` of what a verifier returns for a sender, and of the object `Sender`.
        The values keep both objects in memory, so no other object gets one of the ids. (Verifier
        and decoder mostly return the same objects for equal senders.)"""
        self._keys: dict[str, int | None] = {}
        """For identities that are heard often: the number of the key with which each signed
        last."""
        self._has_unproven = False

    def verify(self, value: bytes, where: Heard | None) -> Verified:
        """Checks the signature of a record. The result is for the other methods. A record that was
        not read from a topic is trusted."""
        if where is None or self._is_off:
            return _TRUSTED
        verifier = self._signatures.verifier
        if verifier is not None:
            return verifier.verify(value, where.signature)
        if self._signatures.mode is Mode.REQUIRE or where.signature is not None:
            self._note_unproven()
        return _TRUSTED

    def admits(self, found: Verified, message: Message, where: Heard | None) -> bool:
        """Whether the ledger takes a message. Counts it if it should be refused."""
        if found.flaw is not None:
            return self._counted(found, claim_of(message), found.flaw, "", where)
        if found.identity is None:
            return True
        if isinstance(message, _SAID_OFTEN):
            known = self._own.get((id(found), id(message.sender)))
            if (
                known is not None
                and self._keys.get(known.identity) == found.key
                and content_overclaim(known.rights, message) is None
            ):
                return True
        if what := overclaim(found.identity, message):
            return self._counted(found, claim_of(message), Reason.NOT_OWN, what, where)
        if flaw := self._flaw_of_agent(found.identity, message):
            return self._counted(found, claim_of(message), *flaw, where)
        if isinstance(message, _SAID_OFTEN):
            self._remember(found, found.identity, message.sender)
        self._note_key(str(found.identity), found.key)
        return True

    def admits_unread(self, found: Verified, where: Heard | None) -> bool:
        """Whether a message whose schema is unknown counts as unread. Counts it if it should be
        refused."""
        return found.flaw is None or self._counted(found, _UNREAD, found.flaw, "", where)

    def refuse(self, found: Verified, where: Heard | None) -> None:
        """Counts a record that is no message."""
        self._count(found, _NOTHING, Reason.NO_MESSAGE, "", where)

    def _note_unproven(self) -> None:
        if not self._has_unproven:
            self._connection.execute("UPDATE meta SET unproven = 1")
            self._has_unproven = True

    def _remember(self, found: Verified, identity: Identity, sender: Sender) -> None:
        """Notes that this sender is the holder of this identity."""
        if len(self._own) >= KNOWN_MAX:
            self._own.clear()
        own = _Own(found, sender, Rights.of(identity, sender), str(identity))
        self._own[id(found), id(sender)] = own

    def _note_key(self, identity: str, key: int | None) -> None:
        if identity in self._keys and self._keys[identity] == key:
            return
        if len(self._keys) >= KNOWN_MAX:
            self._keys.clear()
        self._keys[identity] = key
        self._connection.execute("INSERT OR REPLACE INTO signers VALUES (?, ?)", (identity, key))

    def _flaw_of_agent(self, identity: Identity, message: Message) -> tuple[Reason, str] | None:
        """Returns why the agent in a message may not speak, and a detail; None if it may, or if the
        message is none of an agent."""
        if identity.role is not Role.AGENT:
            return None
        epoch = message.sender.epoch if isinstance(message, Delta | Seal | Heartbeat) else 0
        agent, own = (claim_of(message).name, epoch), str(identity)
        if self._owners.get(agent) == own:
            return None
        flaw = self._owned(*agent, identity)
        if flaw is None:
            if len(self._owners) >= KNOWN_MAX:
                self._owners.clear()
            self._owners[agent] = own
        return flaw

    def _owned(self, agent: str, epoch: int, identity: Identity) -> tuple[Reason, str] | None:
        """Notes that the agent's id and this epoch belong to this identity, or returns why not."""
        number, own = agent_named(agent), str(identity)
        if number == NO_AGENT:
            return Reason.FOREIGN_AGENT, ""
        query = "SELECT epoch, identity FROM owners WHERE agent = ?"
        known = dict(self._connection.execute(query, (number,)))
        owner = next(iter(known.values()), own)
        if owner != own or not is_id_of(number, identity):
            return Reason.FOREIGN_AGENT, ""
        if epoch in known or (known and not epoch):
            return None
        (count,) = self._connection.execute(
            "SELECT count(*) FROM owners WHERE identity = ?", (own,)
        ).fetchone()
        if count >= AGENTS_MAX:
            return Reason.TOO_MANY, f"more than {AGENTS_MAX:,}"
        self._connection.execute("INSERT INTO owners VALUES (?, ?, ?)", (number, epoch, own))
        return None

    def _counted(
        self, found: Verified, claim: Claim, reason: str, detail: str, where: Heard | None
    ) -> bool:
        """Counts a message that should be refused. Returns whether it is taken nevertheless."""
        is_admitted = self._signatures.mode is not Mode.REQUIRE
        self._count(found, claim, reason, detail, where, is_admitted=is_admitted)
        return is_admitted

    def _count(
        self,
        found: Verified,
        claim: Claim,
        reason: str,
        detail: str,
        where: Heard | None,
        *,
        is_admitted: bool = False,
    ) -> None:
        sender = claim.sender if found.identity is None else str(found.identity)
        topic = "" if where is None else where.topic
        said = sender, claim.kind, reason, detail, claim.sender
        key = (*(x[:NAME_MAX] for x in said), topic)
        if not self._is_counted(key):
            (rows,) = self._connection.execute("SELECT count(*) FROM refused").fetchone()
            if rows < REFUSED_MAX:
                names = dict(zip(_KEY, key, strict=True))
                _log.info("audit_message_refused", **names)
            else:
                key = (OTHERS, "", reason, "", "", "")
        at = (0, 0, 0) if where is None else (where.partition, where.offset, where.taken_ms)
        self._connection.execute(_COUNT, (*key, *at, is_admitted))

    def _is_counted(self, key: tuple[str, ...]) -> bool:
        found = self._connection.execute(
            f"SELECT 1 FROM refused WHERE ({', '.join(_KEY)}) = (?, ?, ?, ?, ?, ?)",  # noqa: S608 - ours
            key,
        ).fetchone()
        return found is not None


_KEY: Final = ("sender", "kind", "reason", "detail", "claimed", "topic")
_UNREAD: Final = Claim("unread", "", "")
_NOTHING: Final = Claim("", "", "")


def signers(connection: sqlite3.Connection) -> dict[str, int]:
    """Returns, for each sender that has signed a message, the number of the key that it used
    last."""
    return dict(connection.execute("SELECT identity, key FROM signers ORDER BY identity"))
