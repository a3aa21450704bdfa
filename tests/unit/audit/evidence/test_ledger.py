"""Tests that the ledger (the collector's store, in SQLite) and the fold (which sums up messages in
memory) give the same evidence. Also tests what the ledger does with damaged and with unusual
messages."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from itertools import permutations
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skidway.audit.database import DatabaseFailed, failures
from skidway.audit.evidence import ledger as ledger_module
from skidway.audit.evidence import tally_rows
from skidway.audit.evidence.evidence import FOREVER, sender_key
from skidway.audit.evidence.hearing import Heard
from skidway.audit.evidence.ledger import Ledger, Position, ledger_of
from skidway.audit.evidence.refused import Reason
from skidway.audit.evidence.tallies import SenderKey
from skidway.audit.judgement.policy import Policy
from skidway.audit.judgement.topic_judgement import verdicts
from skidway.audit.judgement.verdict import Status
from skidway.audit.reports import report
from skidway.audit.topic import messages
from skidway.audit.topic.count_columns import Count
from skidway.audit.topic.field_bounds import FARTHEST_MS
from skidway.audit.topic.messages import (
    Announcement,
    Bounds,
    Certainty,
    Delta,
    Gap,
    Heartbeat,
    Loss,
    Message,
    Range,
    Seal,
    Sender,
    Tier,
)
from skidway.audit.topic.seal_columns import SealedTopic
from skidway.errors import StateRefused
from skidway.kafka.source import Source
from skidway.kafka.types import TopicPartition
from support import one_bucket
from support.audit_senders import AGENT, BROKER, LOGS, REJECTED
from support.fold import Fold, judge
from support.ledgers import take
from support.promises import promise
from support.randomness import share_of

POLICY = Policy(lateness_ms=0, silence_ms=500, ahead_ms=50)

small = st.integers(0, 3)
_PARTITION = TopicPartition("_skidway_audit", 0)
topics = st.sampled_from([LOGS, REJECTED])
agents = st.sampled_from([0, 7, 8])
buckets = st.sampled_from([0, 100, 200])
times = st.integers(0, 400)
senders = st.one_of(
    st.builds(
        Sender, st.just(Tier.AGENT), st.just("dc1"), st.sampled_from(["7", "8"]),
        st.sampled_from(["h1", "h2"]), st.integers(1, 2),
        st.builds(Bounds, st.sampled_from([-5, 0, 0, 100]), st.sampled_from([-5, 0, 0, 200])),
    ),
    st.builds(
        Sender, st.sampled_from([Tier.BROKER, Tier.MIRROR, Tier.HDFS]),
        st.sampled_from(["dc1", "offline"]), st.sampled_from(["a", "b"]), st.just("h"),
        st.integers(1, 2),
    ),
)  # fmt: skip
counts = st.builds(
    Count, topics, agents, buckets, st.just(100), small, small, st.integers(-(2**63), 2**63 - 1),
    small, small, small,
)  # fmt: skip
losses = st.builds(
    Loss, topics, st.sampled_from([7, 8]), small, small, st.none() | small,
    st.sampled_from(Certainty), st.just("gone"), st.none() | buckets, st.none() | buckets,
)  # fmt: skip
deltas = st.builds(
    Delta, senders, st.integers(1, 5), times,
    st.lists(st.builds(Range, topics, st.integers(0, 1), small, small), max_size=2).map(tuple),
    st.lists(counts, max_size=2, unique_by=lambda x: (x.source, x.agent, x.bucket)).map(tuple),
    st.lists(losses, max_size=1).map(tuple),
    st.lists(st.builds(Gap, topics, small, small, small, st.just("gap")), max_size=1).map(tuple),
)  # fmt: skip
seals = st.builds(
    Seal, senders.filter(lambda x: x.tier is Tier.AGENT), st.integers(1, 5), times,
    st.lists(
        st.builds(SealedTopic, topics, times, st.integers(0, 5), st.just(()), st.booleans()),
        max_size=2,
        unique_by=lambda x: x.source,
    ).map(tuple),
)  # fmt: skip
announcements = st.builds(
    Announcement, times, st.sampled_from([7, 8]), small, st.sampled_from(["h1", "h2"]),
    st.sampled_from(["/p", "/q"]), st.sampled_from([1, 2]), small, st.sampled_from([b"f", b"g"]),
    st.sampled_from([0, 4]), topics, small, st.none() | small, st.none() | small,
    born_ns=st.none() | st.sampled_from([5, 6]),
)  # fmt: skip
any_message = st.one_of(
    deltas, deltas, seals, st.builds(Heartbeat, senders, st.integers(0, 6), times), announcements
)


def _encoded(chosen: list[Message]) -> list[bytes]:
    return [messages.encode(message) for message in chosen]


@promise("6 lateness")
@settings(max_examples=share_of(250))
@given(st.lists(any_message, max_size=14), st.randoms())
def test_the_ledger_and_the_fold_give_the_same_verdicts(
    chosen: list[Message], random: object
) -> None:
    """The ledger (in SQLite) gives the same verdicts as the fold (in memory), even if the ledger
    gets the messages in another order, or repeatedly, or in several transactions, or while the
    store is being rebuilt. In this test, the ledger gets the first message of each sender before
    all other messages, because the verdicts may depend on when these first messages come."""
    said = _without_clones(chosen)
    expected = judge(said, POLICY, 300)
    again = said * 2
    random.shuffle(again)
    ledger, left = Ledger(), _encoded([*_first_of_each_sender(said), *again])
    while left:
        count = random.randint(1, len(left))
        ledger.rebuild({_PARTITION: random.choice((0, 1 << 40))})
        take(ledger, left[:count], {_PARTITION: Position(1)})
        del left[:count]
    ledger.rebuild({_PARTITION: 0})
    assert verdicts(ledger.evidence(), POLICY, 300) == expected
    ledger.close()


@settings(max_examples=share_of(250))
@given(st.lists(st.one_of(announcements, deltas, seals), max_size=14), st.randoms())
def test_the_ledger_and_the_fold_know_the_same_files_again(
    chosen: list[Message], random: object
) -> None:
    """The ledger (in SQLite) and the fold (in memory) recognize which announcements of a host are
    about the same file: they compare inodes, and times of birth or first bytes. Both find the same
    agents that may have read a file again, whatever the order of the announcements is, and even if
    announcements come twice."""
    expected = Fold(_without_clones(chosen)).evidence()
    again = _without_clones(chosen) * 2
    random.shuffle(again)
    ledger = ledger_of(_encoded(again))
    found = ledger.evidence()
    for source in (LOGS, REJECTED):
        assert found.topic(source).rereadings == expected.topic(source).rereadings
    ledger.close()


def _first_of_each_sender(said: list[Message]) -> list[Message]:
    numbered = [message for message in said if isinstance(message, Delta | Seal | Heartbeat)]
    first: dict[SenderKey, Message] = {}
    for message in numbered:
        first.setdefault(sender_key(message.sender), message)
    return list(first.values())


def _without_clones(chosen: list[Message]) -> list[Message]:
    """Returns the messages as if there were no clones (second running copies of a sender): of
    several messages with the same sender, epoch and number, it returns only the first. With all of
    these messages, the verdicts would depend on their order."""
    kept: dict[object, Message] = {}
    for message in chosen:
        key: object = len(kept)
        if isinstance(message, Delta | Seal):
            sender = message.sender
            key = (sender.tier, sender.producer, sender.epoch, message.number)
        kept.setdefault(key, message)
    return list(kept.values())


@settings(max_examples=share_of(250))
@given(st.lists(any_message, max_size=14))
def test_the_ledger_and_the_fold_agree_on_clones(chosen: list[Message]) -> None:
    """If two messages with different contents have the same number, the ledger (in SQLite) and the
    fold (in memory) give the same verdicts. Both use the counts and seals of the message that comes
    first, so the test gives the messages to both in the same order."""
    ledger = ledger_of(_encoded(chosen))
    assert verdicts(ledger.evidence(), POLICY, 300) == judge(chosen, POLICY, 300)
    ledger.close()


def test_a_loss_that_only_a_clone_declares_counts() -> None:
    """An agent and its clone (a second running copy of the agent) send different messages with the
    same number. If only one of the two messages declares a loss, the bucket is lost, whichever
    message comes first. If only one of two running copies of a counter reports a gap, the bucket is
    unknown, whichever message comes first."""
    at = one_bucket
    gap = Gap(LOGS, 0, 12, 15, "a damaged batch")
    counted = at.delta(BROKER, 2, ranges=(Range(LOGS, 0, 10, 20),))
    silent, loud = at.delta(AGENT, 3), at.delta(AGENT, 3, losses=(at.LOSS,))
    for before, pair, status in (
        (at.good(), (silent, loud), Status.LOST),
        (at.from_the_broker_on(), (counted, replace(counted, gaps=(gap,))), Status.UNKNOWN),
    ):
        for said in ([*before, *pair], [*before, *reversed(pair)]):
            [found] = verdicts(ledger_of(_encoded(said)).evidence(), at.POLICY, at.NOW)
            assert found.status is status
            assert judge(said, at.POLICY, at.NOW) == [found]


@settings(max_examples=share_of(250))
@given(st.lists(any_message, max_size=14), buckets, topics)
def test_a_window_shows_what_the_whole_shows_of_it(
    chosen: list[Message], start: int, source: Source
) -> None:
    """For one bucket, the ledger can return only the evidence that concerns this bucket. A verdict
    from this part of the evidence is the same as the verdict from all evidence."""
    ledger = ledger_of(_encoded(chosen))
    whole = verdicts(ledger.evidence(), POLICY, 300)
    part = verdicts(ledger.evidence((start, start + 100), [source.topic]), POLICY, 300)
    assert part == [x for x in whole if x.source == source and x.bucket == start]
    ledger.close()


def _delta(number: int) -> Delta:
    sender = Sender(Tier.BROKER, "dc1", "a", "h", 1)
    return Delta(sender, number, 5, counts=(Count(LOGS, 7, 0, 100, 1, 2, 3, previous=0),))


def test_what_was_taken_is_durable_with_its_position(tmp_path: Path) -> None:
    """After a restart, the ledger has the stored messages and the position after them, from which
    the collector continues to read. If it reads stored messages again, the evidence does not
    change."""
    tp = _PARTITION
    ledger = Ledger(tmp_path / "audit.db")
    take(ledger, [messages.encode(_delta(1))], {tp: Position(17)})
    before = ledger.evidence()
    ledger.close()
    again = Ledger(tmp_path / "audit.db")
    assert again.positions() == {tp: Position(17)}
    take(again, [messages.encode(_delta(1))], {tp: Position(18)})
    assert again.evidence() == before
    again.close()


def test_records_that_are_no_messages_are_counted_and_change_nothing() -> None:
    """The ledger counts records that are not audit messages. Apart from this count, such records
    change nothing."""
    ledger = ledger_of([b"hello", messages.encode(_delta(1)), b""])
    assert sum(ledger.refused_by_reason().values()) == 2
    assert ledger.newest_buckets(5) == [0]
    assert ledger.newest_buckets(5, until=0) == []
    assert ledger.topics() == [LOGS]
    ledger.close()


@pytest.mark.parametrize("name", ["9" * 19, "9" * 20, "9" * 5000, "\u00b2", "\u0663", "", "-7"])
def test_an_agent_tier_sender_that_is_no_agent_id_harms_nobody(name: str) -> None:
    """If the tier of a message is `agent`, but its producer is not an agent id, the message is no
    message, and changes no verdict."""
    sender = Sender(Tier.AGENT, "dc1", name, "h", 1)
    chosen: list[Message] = [
        _delta(1),
        Delta(sender, 1, 5, counts=(Count(LOGS, 7, 0, 100, 1, 2, 3),)),
        Seal(sender, 2, 5, (SealedTopic(LOGS, 500, 1),)),
        Heartbeat(sender, 2, 5),
    ]
    ledger = ledger_of(_encoded(chosen))
    assert ledger.refused_by_reason()[Reason.NO_MESSAGE] == 3
    evidence = ledger.evidence()
    assert verdicts(evidence, POLICY, 300) == verdicts(Fold(chosen[:1]).evidence(), POLICY, 300)
    ledger.close()


@pytest.mark.parametrize(
    ("moment", "status"),
    [
        (-FARTHEST_MS, Status.UNKNOWN),
        (FARTHEST_MS, Status.COMPLETE),
    ],
)
def test_times_that_no_calendar_holds_harm_nobody(moment: int, status: Status) -> None:
    """If the time in a message is too large or too small for a calendar date, the audit still
    judges each bucket, also the bucket of this time, and the report shows this time as a number.
    Once this bucket is sealed and its time is over, it is complete. Before that, it is open or
    unknown."""
    sender = Sender(Tier.AGENT, "dc1", "7", "h", 1)
    count = Count(LOGS, 7, 0, 100, 1, 2, 3)
    bucket = max(moment - 100, -FARTHEST_MS)
    both = (count, replace(count, bucket=bucket))
    chosen: list[Message] = [
        Delta(sender, 1, moment, counts=both),
        Delta(BROKER, 1, moment, (Range(LOGS, 0, 0, 2),), both),
        Seal(sender, 2, moment, (SealedTopic(LOGS, moment, 1),)),
        Delta(sender, 3, 5, counts=(replace(count, previous=1),)),
    ]
    ledger = ledger_of(_encoded(chosen))
    assert sum(ledger.refused_by_reason().values()) == 0
    policy = replace(POLICY, tiers=(Tier.AGENT, Tier.BROKER))
    for now, expected in ((300, Status.OPEN), (1 << 62, status)):
        found = {x.bucket: x for x in verdicts(ledger.evidence(), policy, now)}
        assert (len(found), found[bucket].status) == (2, expected)
        assert "h: broker dc1 is short by 1 of 2" in found[0].words
        rows = report.table(found.values(), policy.tiers)
        assert f"{bucket} ms" in [row["buckets"] for row in rows]
    ledger.close()


@pytest.mark.parametrize("moment", [-FARTHEST_MS, FARTHEST_MS])
def test_a_rereading_at_the_end_of_all_times_harms_nobody(moment: int) -> None:
    """Two agents announce the same file. The time of their announcements is the least or the
    greatest that a message can have. Even then, the ledger gives the same verdicts as the fold (in
    memory)."""
    said: list[Message] = []
    for agent in (7, 8):
        sender = Sender(Tier.AGENT, "dc1", str(agent), "h", 1)
        said += [
            Announcement(moment, agent, 1, "h", "/log", 1, 1, b"f", 1, LOGS, born_ns=5),
            Delta(sender, 1, moment, (), (Count(LOGS, agent, 0, 100, 1, 2, 3),)),
            Seal(sender, 2, moment, (SealedTopic(LOGS, 500, 1),)),
        ]
    ledger = ledger_of(_encoded(said))
    evidence = ledger.evidence()
    assert set(evidence.topic(LOGS).rereadings) == {7, 8}
    assert verdicts(evidence, POLICY, 300) == verdicts(Fold(said).evidence(), POLICY, 300)
    ledger.close()


def test_a_failed_transaction_leaves_nothing_behind() -> None:
    """After a failed transaction, the ledger contains none of the transaction's messages, not even
    in part. The caches in memory contain no ids of rows that the transaction would have added."""
    ledger = Ledger()

    def broken() -> object:
        yield messages.encode(_delta(1))
        raise OSError("the disk is gone")

    with pytest.raises(OSError, match="gone"):
        ledger.take(broken())  # type: ignore[arg-type]
    assert ledger.topics() == []
    ledger.take([messages.encode(_delta(1))])
    assert ledger.evidence() == Fold([_delta(1)]).evidence()
    ledger.close()


def test_sums_wrap_around_like_the_checksums_they_hold() -> None:
    """Sums of checksums are modulo 2^64, in the ledger (in SQLite) as in the fold (in memory). The
    ledger does not add them in SQL, because SQLite would turn large sums into floating-point
    numbers."""
    top = replace(_delta(1).counts[0], checksum=2**63 - 1)
    parts = [replace(_delta(n), counts=(replace(top, previous=n - 1),)) for n in (1, 2, 3)]
    ledger = ledger_of(_encoded(parts))
    assert ledger.evidence() == Fold(parts).evidence()
    ledger.close()


def test_a_store_that_is_no_database_is_refused(tmp_path: Path) -> None:
    """A store file that is not a database is refused with one sentence."""
    (tmp_path / "audit.db").write_bytes(b"no database " * 1000)
    with pytest.raises(StateRefused, match=r"audit\.db"):
        Ledger(tmp_path / "audit.db")


def test_damage_that_nothing_reads_at_the_start_is_noticed_there(tmp_path: Path) -> None:
    """When the ledger starts, SQLite checks all pages of the database. So the ledger notices damage
    even in pages that it does not read at the start."""
    path = tmp_path / "audit.db"
    ledger = Ledger(path)
    ledger.take([messages.encode(_delta(number)) for number in range(1, 2000)])
    ledger.close()
    with path.open("r+b") as file:
        file.seek(-4096, os.SEEK_END)
        file.write(b"\xff" * 8)
    with pytest.raises(StateRefused, match="is damaged"):
        Ledger(path)


def test_a_full_disk_takes_nothing_and_loses_nothing(tmp_path: Path) -> None:
    """If the disk is full, the ledger stores neither the messages nor their position. When the disk
    has room again, the collector reads the same messages again."""
    path, tp = tmp_path / "audit.db", _PARTITION
    values = [messages.encode(_delta(number)) for number in range(1, 2000)]
    ledger = Ledger(path)
    take(ledger, values[:1], {tp: Position(1)})
    (pages,) = ledger._connection.execute("PRAGMA page_count").fetchone()
    ledger._connection.execute(f"PRAGMA max_page_count = {pages}")
    with pytest.raises(DatabaseFailed, match="Nothing is lost"), failures(path):
        take(ledger, values[1:], {tp: Position(1999)})
    assert ledger.positions() == {tp: Position(1)}
    ledger.close()
    ledger = Ledger(path)
    take(ledger, values[1:], {tp: Position(1999)})
    [numbers] = ledger.evidence().senders.values()
    assert (numbers.first, numbers.last, numbers.missing) == (1, 1999, None)


@promise("clocks host")
def test_a_host_is_called_what_its_newest_message_says_whatever_its_clock_said() -> None:
    """If an agent's messages name several hosts, the name in the message with the highest number
    counts. This is so in whatever order the messages come, and even if the time in an older message
    is years ahead."""
    before, now = (Sender(Tier.AGENT, "dc1", "7", name, 1) for name in ("before", "now"))
    ahead_ms = 1 << 50
    said: list[Message] = [
        Announcement(ahead_ms, 7, 1, "before", "/log", 1, 1, b"x", 1, LOGS),
        Heartbeat(before, 3, ahead_ms),
        Seal(now, 4, 100, (SealedTopic(LOGS, 100, 3),)),
    ]
    for ordered in permutations(said):
        values = [messages.encode(message) for message in ordered]
        assert ledger_of(values).evidence().hosts == {7: "now"}
        ledger = Ledger()
        for value in values:
            ledger.take([value])
        assert ledger.evidence().hosts == {7: "now"}
        assert Fold(ordered).evidence().hosts == {7: "now"}


def test_the_order_in_which_messages_come_changes_nothing() -> None:
    """The least, greatest and newest values in the ledger do not depend on the order in which the
    ledger takes the messages. They also do not depend on the number of messages in one transaction.
    (Only the audit's knowledge of which agents of a host ran at the same time depends on this
    order.)"""
    values, places = zip(*_said_at_their_times(), strict=True)
    found = []
    for step, size in ((1, 1), (-1, 1), (1, len(values)), (-1, len(values)), (1, 3)):
        ledger = Ledger()
        said, at = values[::step], places[::step]
        for first in range(0, len(values), size):
            end = first + size
            ledger.take_records(zip(said[first:end], at[first:end], strict=True), {}, 500)
        found.append(ledger.evidence())
        ledger.close()
    in_order = found[0].overlaps
    assert in_order == {7: {8}, 8: {7}}
    assert [each.overlaps for each in found] == [in_order, {}, in_order, {}, in_order]
    assert all(replace(each, overlaps=in_order) == found[0] for each in found)
    fold = Fold()
    for value, place in zip(values, places, strict=True):
        fold.apply(messages.decode(value), place)
    expected = fold.evidence()
    expected.taken_ms = 500
    assert found[0] == expected


def _said_at_their_times() -> Iterator[tuple[bytes, Heard]]:
    """Yields messages of a broker's counter and of two agents that announce the same files, each
    with its offset in the audit topic."""
    one = Sender(Tier.AGENT, "dc1", "7", "h1", 2, Bounds(100, 300))
    later = replace(one, host="h2", bounds=Bounds(200, 300))
    last = replace(one, host="h2", bounds=Bounds(50, 400))
    two = Sender(Tier.AGENT, "dc1", "8", "h3", 1)
    broker = Sender(Tier.BROKER, "dc1", "a", "h", 1)
    count = Count(LOGS, 7, 0, 100, 1, 2, 3)
    lost = Loss(LOGS, 7, 4, 0, None, Certainty.LOST, "gone", None, None)
    said: list[Message] = [
        Seal(two, 1, 65, (SealedTopic(LOGS, 65, 0),)),
        Seal(later, 3, 90, (SealedTopic(LOGS, 90, 1),)),
        Announcement(20, 7, 4, "h1", "/second", 1, 3, b"f", 4, LOGS, born_ns=5),
        Announcement(10, 7, 4, "h1", "/first", 1, 3, b"f", 4, LOGS, born_ns=5),
        Announcement(30, 7, 4, "h1", "/third", 1, 3, b"f", 4, LOGS),
        Announcement(110, 8, 6, "h1", "/first", 1, 3, b"g", 5, LOGS, born_ns=5),
        Announcement(160, 8, 5, "h1", "/second", 1, 3, b"g", 5, LOGS, 0, 6, 9, born_ns=5),
        Announcement(150, 8, 5, "h1", "/first", 1, 3, b"g", 5, LOGS, 0, 3, 9, born_ns=5),
        Announcement(170, 8, 5, "h1", "/third", 1, 3, b"g", 5, LOGS, 0, 6, 9),
        Announcement(30, 7, 10, "h1", "/r", 1, 4, b"f", 4, REJECTED),
        Announcement(190, 8, 11, "h1", "/r2", 1, 4, b"f", 4, REJECTED),
        Announcement(180, 8, 11, "h1", "/r1", 1, 4, b"f", 4, REJECTED),
        Announcement(200, 8, 11, "h1", "/r3", 1, 4, b"f", 4, REJECTED),
        Delta(one, 2, 80, losses=(lost,)),
        Seal(last, 4, 95, (SealedTopic(LOGS, 95, 1),)),
        Heartbeat(later, 6, 70),
        Heartbeat(two, 9, 60),
        Heartbeat(broker, 3, 99),
        Delta(broker, 2, 40, (Range(LOGS, 0, 5, 9),), (replace(count, previous=1),)),
        Delta(broker, 3, 50, (Range(LOGS, 0, 2, 12),), (replace(count, previous=2),)),
        Delta(broker, 1, 45, (Range(LOGS, 0, 3, 4),), (count,)),
        Delta(broker, 2, 41, (Range(LOGS, 0, 5, 9),), (replace(count, previous=1),)),
        Delta(broker, 3, 51, (Range(LOGS, 0, 2, 12),), (replace(count, previous=2),)),
        Delta(replace(two, host="h1"), 2, 66),
        Delta(one, 5, 81),
        Delta(replace(two, host="h1"), 3, 67),
    ]
    offsets = [5, 9, 2, 3, 8, 11, 4, 7, 1, 12, 6, 10, 0, 19, 13, 17, 14, 20, 16, 15, 18, 21, 22]
    offsets += [23, 24, 25]
    for offset, message in zip(offsets, said, strict=True):
        taken_ms = 100 + abs(offset - 7)
        yield messages.encode(message), Heard("t", "i", 0, offset, None, taken_ms, is_live=True)


@pytest.mark.parametrize("until", [(50, 500), (500, 50)])
def test_each_topic_of_a_seal_has_its_own_time_ahead_of_us(until: tuple[int, int]) -> None:
    """A seal arrives at the time 100. The seal has a time for each of its two topics: for one of
    them a time before 100, and for the other a time after 100, because the agent's clock was ahead.
    For the one topic, the seal proves that all lines before the seal's time for this topic are
    counted. For the other topic, it proves this only for lines before the time 100."""
    topics = [SealedTopic(x, y, 0) for x, y in zip((LOGS, REJECTED), until, strict=True)]
    where = Heard("t", "i", 0, 0, None, 100, is_live=True)
    ledger = Ledger()
    ledger.take_records([(*_encoded([Seal(AGENT, 1, 5, tuple(topics))]), where)], {}, 0)
    found = ledger.evidence()
    vouched = [found.topic(x.source).seals[7][0].vouched_until for x in topics]
    assert vouched == [min(x, 100) for x in until]
    ledger.close()


def test_a_reader_knows_a_sender_that_came_after_one_without_numbers(tmp_path: Path) -> None:
    """One ledger object reads the store while another object writes to it. The first sender has
    sent only heartbeats, which have no number of their own. The reading object still learns of all
    senders that come after this first sender. Its verdicts are the same as those from a `Fold`,
    which has all messages in memory."""
    path = tmp_path / "audit.db"
    writer, reader = Ledger(path), Ledger(path)
    silent = Sender(Tier.BROKER, "dc1", "count-dc1", "h9", 1)
    said: list[Message] = [Heartbeat(silent, 0, 5)]
    for agent in (7, 8, 9):
        sender = Sender(Tier.AGENT, "dc1", str(agent), f"h{agent}", 1)
        said.append(Delta(sender, 1, 5, counts=(Count(LOGS, agent, 0, 100, 1, 2, 3),)))
        writer.take(_encoded(said[-2:]))
        found = reader.evidence_of(reader.evidence_without_counts(), FOREVER)
        assert verdicts(found, POLICY, 300) == judge(said, POLICY, 300)
    reader.close()
    writer.close()


def test_after_two_failures_no_rolled_back_id_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    """If a transaction fails, and the ledger then cannot make new objects in memory, it takes no
    further messages. The old objects still contain what the failed transaction has added. So with
    these objects, the ledger would take the next message for a repetition, and lose the counts in
    this message."""

    def fail(*_: object) -> None:
        raise OSError("no")

    ledger, counted = Ledger(), (Count(LOGS, 7, 0, 9, 1, 1, 1),)
    said = [messages.encode(Delta(AGENT, 1, 5, counts=counted))]
    with monkeypatch.context() as patch:
        patch.setattr(tally_rows, "pack", fail)
        patch.setattr(ledger_module, "Rows", fail)
        with pytest.raises(OSError, match="no"):
            ledger.take(said)
    with pytest.raises(AttributeError):
        ledger.take(said)


def test_a_loss_at_the_end_of_all_times_stops_no_judgement() -> None:
    """The span of a declared loss may end at the greatest time that a message can have. The ledger
    still returns the evidence of a window in the middle of the span, and the loss is part of this
    evidence."""
    end = FARTHEST_MS
    loss = Loss(LOGS, 7, 1, 0, 5, Certainty.LOST, "gone", 0, end)
    ledger = ledger_of(_encoded([Delta(AGENT, 1, 5, losses=(loss,))]))
    assert ledger.evidence((0, 60_000)).topic(LOGS).losses
    assert ledger.evidence_of(ledger.evidence_without_counts(), (0, 60_000)).topic(LOGS).losses


@pytest.mark.parametrize("size", [1, 2, 4])
def test_two_machines_may_have_any_name(size: int) -> None:
    """A host's name may contain NUL characters. The ledger recognizes that two agents of hosts with
    such a name were alive at the same time, however many messages a transaction has. A host whose
    name is the part before the NUL character is another host."""
    ledger = Ledger()
    said = []
    for offset, (agent, host) in enumerate([("7", "x\0y"), ("8", "x\0y"), ("9", "x")] * 2):
        value = messages.encode(Heartbeat(Sender(Tier.AGENT, "dc1", agent, host, 1), 0, offset))
        said.append((value, Heard(messages.TOPIC, "id", 0, offset, 5, 5, is_live=True)))
    for begin in range(0, len(said), size):
        ledger.take_records(said[begin : begin + size], {}, 0)
    assert ledger.evidence().overlaps == {7: {8}, 8: {7}}


def test_a_sender_without_numbered_messages_is_called_what_its_newest_heartbeat_says() -> None:
    """If only heartbeats of a sender are left, the ledger has the host and the cluster of the
    heartbeat with the greatest number, in whatever order the heartbeats arrive."""
    beats = [
        Heartbeat(replace(AGENT, host="old"), 5, 10),
        Heartbeat(replace(AGENT, host="new"), 6, 20),
    ]
    for order in permutations(beats):
        ledger = Ledger()
        for each in order:
            ledger.take(_encoded([each]))
        together = ledger_of(_encoded(order))
        for found in (ledger.evidence(), together.evidence()):
            assert [x.host for x in found.senders.values()] == ["new"]
            assert found.senders == Fold(order).evidence().senders
