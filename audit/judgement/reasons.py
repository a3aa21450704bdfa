"""Turns the reasons of a verdict into text, for reports and the dashboard."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from heapq import nsmallest
from itertools import chain
from typing import Any, NamedTuple

from skidway.audit.counts.checksum import brief
from skidway.audit.counts.counts import NO_AGENT, Sums
from skidway.audit.evidence.evidence import GapNote, LossNote
from skidway.audit.evidence.refused import Reason, Refused
from skidway.audit.evidence.tallies import SenderKey
from skidway.audit.judgement.cause import Cause
from skidway.audit.judgement.verdict import AgentVerdict, Place
from skidway.audit.topic.decisions import Disownment
from skidway.audit.topic.messages import Certainty, Tier
from skidway.audit.topic.transactions import Held

NAMES_MAX = 3
"""A reason names at most this many hosts or schemas."""

REASONS_MAX = 20
"""At most this many reasons are listed for a bucket. If a tier lags behind, ten thousand hosts may
have different reasons."""


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
    checksums = brief(expected.checksum), brief(found.checksum)
    sums = (expected.count, checksums[0], found.count, checksums[1])
    return f"{words} ({', '.join(map(str, sums))})"


def name_of_lack(words: str, counted: Sums) -> str:
    """The name by which an acceptance refers to a lack of counts. The name contains the number and
    the checksum of the `counted` records. So if more records are counted later, the lack has
    another name, and the acceptance does not cover it."""
    return f"{words} ({counted.count}, {brief(counted.checksum)})"


def of_place(place: Place) -> str:
    """The words for a place (a cluster or an output in which a tier counted): the tier and, if the
    place has a name, this name."""
    word = place.tier.value.lower()
    named = f"{word} {place.name}" if place.name else word
    return f"{named} (retired)" if place.is_retired else named


def of_needed(tier: Tier) -> str:
    """Words that say that only retired places of a tier have the topic."""
    return f"no place of tier {tier.value.lower()} that is not retired has this topic"


def of_sender(key: SenderKey) -> str:
    """Words that name a sender of counts."""
    word = "agent" if key.tier is Tier.AGENT else f"the {key.tier.value.lower()} counter"
    return f"{word} {key.producer}"


def some_agents(agents: Sequence[int]) -> str:
    """Names some of these agents: anybody can make up thousands of ids for his host."""
    names = [str(agent) for agent in agents[:NAMES_MAX]]
    if len(agents) > NAMES_MAX:
        names.append(f"{len(agents) - NAMES_MAX} more")
    return " and ".join(names)


def of_namesakes(agents: Sequence[int]) -> str:
    """The remark about agents of one host that are alive at the same time."""
    return f"agents {some_agents(agents)} report under this host name, and each is waited for"


def of_epoch_before_its_seal(epoch: int) -> str:
    """Words that say that an agent began this epoch, and delivered lines of the bucket before the
    first seal of the epoch."""
    return (
        f"the agent's epoch {epoch} delivered lines of this bucket before its first seal: they may"
        " count twice (its state had been an older copy)"
    )


def of_gap(note: GapNote) -> str:
    """Words that say which offsets a sender could not read, and why."""
    gap = note.gap
    return (
        f"{of_sender(note.sender)} could not read offsets {gap.first} to {gap.end} of"
        f" partition {gap.partition}: {gap.reason}"
    )


def of_held_counter(key: SenderKey, found: Held) -> str:
    """Words that say why a counter cannot go on."""
    return f"{of_sender(key)} {'has stopped' if found.reason else 'waits'}: {of_held(found)}"


def of_counted_until(key: SenderKey, until_ms: int) -> str:
    """Words that say up to when a counter has counted a topic."""
    when = f"only until {of_time(until_ms)}" if until_ms else "not yet up to any known time"
    return f"{of_sender(key)} has counted this topic {when}"


def cause_of(found: Held) -> Cause:
    """The cause that holds a counter up."""
    return Cause.PARTITION_STOPPED if found.reason else Cause.TRANSACTION_OPEN


def of_held(found: Held) -> str:
    """Words that name an open transaction, or the place at which a counter has stopped."""
    if found.reason:
        return f"partition {found.partition} from offset {found.offset} on: {found.reason}"
    since = f" since {of_time(found.since_ms)}" if found.since_ms else ""
    return f"a transaction is open at offset {found.offset} of partition {found.partition}{since}"


class Said(NamedTuple):
    """A reason that one or more agents have. agents: the number of these agents. first: the first
    few of these agents, each as a pair: a sort key, and the name of the agent's host. The key sorts
    the reasons of all agents.
    """

    reason: str
    agents: int
    first: Sequence[tuple[tuple[Any, ...], str]]


def by_host(agents: Iterable[AgentVerdict]) -> list[str]:
    """Returns a text for each reason: the names of the hosts that have the reason, and the reason
    itself. See `listed`.
    """
    return listed(said_of((number,), verdict) for number, verdict in enumerate(agents))


def said_of(order: tuple[Any, ...], verdict: AgentVerdict) -> Iterator[Said]:
    """The reasons of one agent. order: a key that sorts the agent among all agents."""
    name = "" if verdict.agent == NO_AGENT else verdict.name
    for place, reason in enumerate(verdict.reasons):
        yield Said(reason, 1, (((*order, place), name),))


def listed(said: Iterable[Iterable[Said]]) -> list[str]:
    """Returns a text for each reason: the names of the hosts that have the reason, and the reason
    itself. The texts are sorted by the first agent that has the reason. After REASONS_MAX reasons,
    the last text says how many more there are.
    """
    found: dict[str, list[tuple[tuple[Any, ...], str]]] = {}
    counts: Counter[str] = Counter()
    for each in chain.from_iterable(said):
        counts[each.reason] += each.agents
        known = found.setdefault(each.reason, [])
        known.extend(each.first)
        if len(known) > NAMES_MAX:
            found[each.reason] = nsmallest(NAMES_MAX, known)
    firsts = ((min(named)[0], reason) for reason, named in found.items())
    shown = [reason for _, reason in nsmallest(REASONS_MAX, firsts)]
    words = [_of_hosts(reason, sorted(found[reason]), counts[reason]) for reason in shown]
    if len(found) > len(shown):
        words.append(f"and {len(found) - len(shown):,} more reasons")
    return words


def _of_hosts(reason: str, named: Sequence[tuple[tuple[Any, ...], str]], count: int) -> str:
    shown = ", ".join(dict.fromkeys(name for _, name in named if name))
    more = f" and {count - NAMES_MAX} more" if count > NAMES_MAX else ""
    return f"{shown}{more}: {reason}" if shown else reason


def of_unread(unread: Mapping[str, int]) -> str:
    """Words that say how many messages have schemas that this version of Skidway does not have."""
    names = ", ".join(sorted(unread)[:NAMES_MAX])
    return (
        f"{sum(unread.values())} audit messages have a schema that this version does not have"
        f" ({names}): a newer version wrote them, and what they say is not known here"
    )


def of_disowned(disownment: Disownment, messages: int) -> str:
    """Words that say who disowned the messages of a schema, and why."""
    are = "message" if messages == 1 else "messages"
    return (
        f"{messages:,} {are} with the schema {disownment.fingerprint} {_is_or_are(messages)}"
        f" disowned by {disownment.person}: {disownment.reason}"
    )


def of_refused(found: Sequence[Refused]) -> str:
    """Words about refused messages of one sender, for one reason; the newest come first."""
    newest, count = found[0], sum(x.count for x in found)
    are = "would be" if newest.is_admitted else _is_or_are(count)
    noun = "message" if newest.kind else "record"
    messages = noun if count == 1 else f"{noun}s"
    detail = f" ({newest.detail})" if newest.detail else ""
    sender = newest.sender or "an unknown sender"
    by = "of" if not newest.sender or newest.reason in tuple(Reason) else "in the name of"
    return f"{count:,} {messages} {by} {sender} {are} refused: {newest.reason}{detail}"


def _is_or_are(count: int) -> str:
    return "is" if count == 1 else "are"


NOT_VERIFIED = "messages were taken whose senders nobody has verified, so any of them may be forged"
"""The reason why nothing is complete if the ledger took messages without a proof."""

REBUILDING = "the audit's store is being rebuilt from the audit topics, so evidence is missing"
"""The reason why nothing is judged while the ledger has only a part of the evidence."""


def of_pruned(records: int) -> str:
    """Words that say that a bucket's counts were deleted. records: how many records came after the
    deletion."""
    if not records:
        return "the bucket is older than the audit keeps (keep.days): it was complete or accepted"
    return (
        f"{records:,} record{'' if records == 1 else 's'} came after the bucket's other counts were"
        " deleted: it is older than the audit keeps (keep.days), and was complete or accepted"
    )


def of_rebuilding(missing: int) -> str:
    """Says how many messages the ledger must still read before it is rebuilt."""
    return f"{REBUILDING}: {missing:,} message{'' if missing == 1 else 's'} to read"


def of_loss(note: LossNote, path: str = "") -> str:
    """Words that say which bytes an agent declared lost, and why. path: the path at which the file
    was first found; "" if no agent announced the file."""
    loss = note.loss
    fate = "lost" if loss.certainty is Certainty.LOST else "uncertain"
    if not path and loss.reason.startswith("/"):  # the reason begins with an unread file's path
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
    """The words of a warning that too many records were rejected. rejects: how many records were
    rejected. records: how many records there are in total. who: words for those that rejected the
    records."""
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
