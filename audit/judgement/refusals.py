"""Finds, without I/O, whose messages are refused: a sender that signs with a wrong key, or with
none, looks as if it were silent."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property

from skidway.audit.evidence.evidence import Evidence
from skidway.audit.evidence.refused import Reason, Refused
from skidway.audit.judgement import reasons
from skidway.audit.signing.identity import Role
from skidway.audit.signing.verifier import Flaw
from skidway.audit.topic.claims import sender_name
from skidway.audit.topic.messages import Tier
from skidway.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a sender is not heard. identity: the one whose key the sender needs; "" if it has the
    right key."""

    words: str
    identity: str


class Refusals:
    """The refused messages of senders that were not heard since."""

    def __init__(self, evidence: Evidence) -> None:
        self._evidence = evidence
        self._by_name: dict[str, list[Refused]] = {}
        self._of_hosts: dict[str, list[str]] = {}
        """By host, the names of agents of this host in `_by_name`."""
        for each in evidence.refused:
            if not each.is_admitted:
                self._by_name.setdefault(each.claimed, []).append(each)
        for name in self._by_name:
            role, _, rest = name.partition("/")
            if role == Role.AGENT:
                self._of_hosts.setdefault(rest.partition("/")[2], []).append(name)

    def of_host(self, cluster: str | None, host: str) -> Refusal | None:
        """Returns why the agent of a host is not heard; None if its messages are not refused.
        cluster: None for any."""
        names = self._of_hosts.get(host, [])
        own = sender_name(Tier.AGENT, cluster or "", "", host)
        return self._first(x for x in names if cluster is None or x == own)

    def of_place(self, tier: Tier, place: str) -> Refusal | None:
        """Like `of_host`, for the counters of a cluster, or the loader of an output and topic. If
        the place is not known (""), for those of any."""
        own = place.rpartition("/")[0] if tier is Tier.HDFS else place
        found = ((name, *_place_in(name)) for name in self._by_name)
        kind = tier.value.lower()
        return self._first(x for x, y, named in found if y == kind and own in ("", named))

    def _first(self, names: Iterable[str]) -> Refusal | None:
        rows = [x for name in names for x in self._by_name[name] if self._is_unheard(name, x)]
        if not rows:
            return None
        newest = max(rows, key=lambda x: x.taken_ms)
        alike = [x for x in rows if (x.sender, x.reason) == (newest.sender, newest.reason)]
        return Refusal(reasons.of_refused(alike), _needed(newest))

    def _is_unheard(self, name: str, found: Refused) -> bool:
        return found.taken_ms >= self._heard.get(name, 0)

    @cached_property
    def _heard(self) -> dict[str, int]:
        """When each sender was last heard, by its name."""
        found: dict[str, int] = {}
        for key, numbers in self._evidence.senders.items():
            name = sender_name(key.tier, numbers.cluster, key.producer, numbers.host)
            found[name] = max(found.get(name, 0), self._evidence.heard_ms(key[:2]))
        return found


def groups(found: Iterable[Refused]) -> list[Sequence[Refused]]:
    """Returns the refused messages that one sentence names together, in the order of `found`."""
    by_words: dict[tuple[object, ...], list[Refused]] = {}
    for each in found:
        by_words.setdefault((each.sender, each.reason, each.is_admitted), []).append(each)
    return list(by_words.values())


def _place_in(name: str) -> tuple[str, str]:
    """The tier of a counter or a loader, and the cluster or output in its identity; "" for other
    names, which may be anything."""
    match name.split("/", 2):
        case [Role.LOADER, _, output]:
            return Tier.HDFS.value.lower(), output
        case [Role.COUNTER, tier, place]:
            return tier, place.partition("/")[0]
    return "", ""


def _needed(found: Refused) -> str:
    if found.reason in (Reason.FOREIGN_AGENT, Reason.TOO_MANY):
        return ""
    is_of_key = found.reason in (Flaw.WRONG_SIGNATURE, Flaw.UNKNOWN_KEY)
    return found.sender if is_of_key else found.claimed
