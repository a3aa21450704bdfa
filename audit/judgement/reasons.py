"""Turns the reasons of a verdict into text, for reports and the dashboard."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime

from skidway.audit.counts.counts import NO_AGENT, Sums
from skidway.audit.evidence.evidence import GapNote, LossNote
from skidway.audit.evidence.tallies import SenderKey
from skidway.audit.judgement.verdict import AgentVerdict, Place
from skidway.audit.topic.messages import Certainty, Tier

_NAMES_MAX = 3  # a reason names this many hosts or schemas, and gives the number of the others


def difference(first: Place, expected: Sums, place: Place, found: Sums) -> str:
    """Words that say how the counts of two places differ."""
    name, other = of_place(place), of_place(first)
    missing = expected.count - found.count
    if missing > 0:
        return f"{name} is short by {missing} of {expected.count}"
    if missing < 0:
        return f"{name} has {-missing} more than the {expected.count} of {other}"
    return f"{name} counts as many as {other}, but not the same records"


def name_of_difference(words: str, expected: Sums, found: Sums) -> str:
    """The name by which an acceptance (a person's decision about known findings) refers to a
    difference. If the difference changes later, it has another name, and the acceptance does not
    cover it."""
    sums = (expected.count, expected.checksum, found.count, found.checksum)
    return f"{words} ({', '.join(map(str, sums))})"


def name_of_lack(words: str, counted: Sums) -> str:
    """The name by which an acceptance refers to a lack of counts. If more records are lacking
    later, the lack has another name, and the acceptance does not cover it."""
    return f"{words} ({counted.count}, {counted.checksum})"


def of_place(place: Place) -> str:
    """The words for a place (a cluster or an output in which a tier counted): the tier and, if the
    place has a name, this name."""
    word = place.tier.value.lower()
    named = f"{word} {place.name}" if place.name else word
    return f"{named} (retired)" if place.is_retired else named


def of_needed(tier: Tier) -> str:
    """The reason for a tier in which only retired places have the topic."""
    return f"no place of tier {tier.value.lower()} that is not retired has this topic"


def of_sender(key: SenderKey) -> str:
    """The words for a sender of counts."""
    word = "agent" if key.tier is Tier.AGENT else f"the {key.tier.value.lower()} counter"
    return f"{word} {key.producer}"


def of_namesakes(agents: Iterable[int]) -> str:
    """The remark about agents of one host that are alive at the same time."""
    names = " and ".join(map(str, agents))
    return f"agents {names} report under this host name, and each is waited for"


def of_epoch_before_its_seal(epoch: int) -> str:
    """The reason for an agent that began a new epoch, and delivered lines of the bucket before the
    first seal of that epoch."""
    return (
        f"the agent's epoch {epoch} delivered lines of this bucket before its first seal: they may"
        " count twice (its state had been an older copy)"
    )


def of_gap(note: GapNote) -> str:
    """The reason for offsets that a sender could not read."""
    gap = note.gap
    return (
        f"{of_sender(note.sender)} could not read offsets {gap.first} to {gap.end} of"
        f" partition {gap.partition}: {gap.reason}"
    )


def by_host(agents: Iterable[AgentVerdict]) -> Iterator[str]:
    """Yields each reason once, after the names of the hosts for which it is true."""
    hosts: dict[str, list[str]] = {}
    for verdict in agents:
        for reason in verdict.reasons:
            name = "" if verdict.agent == NO_AGENT else verdict.name
            hosts.setdefault(reason, []).append(name)
    for reason, names in hosts.items():
        shown = ", ".join(dict.fromkeys(name for name in names[:_NAMES_MAX] if name))
        more = f" and {len(names) - _NAMES_MAX} more" if len(names) > _NAMES_MAX else ""
        yield f"{shown}{more}: {reason}" if shown else reason


def of_unread(unread: Mapping[str, int]) -> str:
    """The reason for messages whose schemas this version of Skidway does not have."""
    names = ", ".join(sorted(name or "others" for name in unread)[:_NAMES_MAX])
    return (
        f"{sum(unread.values())} audit messages have a schema that this version does not have"
        f" ({names}): a newer version wrote them, and what they say is not known here"
    )


def of_loss(note: LossNote, path: str = "") -> str:
    """The reason for a declared loss. path: the path at which the file was first found; "" if no
    agent announced the file."""
    loss = note.loss
    fate = "lost" if loss.certainty is Certainty.LOST else "uncertain"
    if not path and loss.reason.startswith("/"):  # loss.reason names a file that nobody read
        return f"lines are {fate}: {loss.reason}"
    file = f"{path} (file {loss.file})" if path else f"file {loss.file}"
    if loss.end is None:
        return f"what follows byte {loss.first} of {file} is {fate}: {loss.reason}"
    return f"bytes {loss.first} to {loss.end} of {file} are {fate}: {loss.reason}"


def name_of_loss(note: LossNote) -> str:
    """The name by which an acceptance refers to a declared loss. The name stays the same even if
    the words of the reason change later."""
    loss = note.loss
    end = "?" if loss.end is None else loss.end
    return f"{loss.certainty.value} {loss.file} {loss.first}-{end}"


def of_rejects(rejects: int, records: int, who: str) -> str:
    """The words of a warning about too many rejects."""
    return f"{rejects:,} of {records:,} records were rejected by {who}"


def of_delay(behind_ms: int) -> str:
    """Words that say how far a sender is behind, although its messages still arrive."""
    return f"{behind_ms // 1000} s behind (its clock, or its messages come late)"


def of_time(time_ms: int) -> str:
    """The words for a time in ms."""
    try:
        moment = datetime.fromtimestamp(time_ms / 1000, UTC)
    except (OverflowError, ValueError):  # the calendar has no such time
        return f"{time_ms} ms"
    return moment.strftime("%Y-%m-%d %H:%M:%SZ")
