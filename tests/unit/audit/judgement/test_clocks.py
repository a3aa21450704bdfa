"""Tests how the audit finds out which clock is wrong. The audit compares the times in audit
messages with the times at which it received these messages. "Our clock" is the clock of the program
that received and judges the messages. To report a clock means to say that this clock is wrong."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from skidway.audit.evidence.collection import Collection
from skidway.audit.evidence.evidence import Evidence
from skidway.audit.evidence.hearing import WINDOW_MS, Heard, Reading, then
from skidway.audit.evidence.ledger import DATABASE, Ledger
from skidway.audit.judgement.clocks import Clocks, clocks, present_ms
from skidway.audit.judgement.host_proofs import proofs
from skidway.audit.judgement.hosts import HostStatus, survey
from skidway.audit.judgement.policy import Policy
from skidway.audit.judgement.sender_states import sender_states
from skidway.audit.judgement.topic_judgement import verdicts
from skidway.audit.judgement.verdict import Status
from skidway.audit.reports import clock_report, host_report
from skidway.audit.topic import messages
from skidway.audit.topic.count_columns import Count
from skidway.audit.topic.field_bounds import FARTHEST_MS
from skidway.audit.topic.messages import (
    TOPIC,
    Announcement,
    Delta,
    Heartbeat,
    Message,
    Range,
    Seal,
    Sender,
    Tier,
)
from skidway.audit.topic.seal_columns import SealedTopic
from skidway.cli.commands import main
from skidway.kafka import columns
from skidway.kafka.batch import read_header, stamp_append_time
from skidway.kafka.types import TopicPartition
from support.audit_senders import BROKER, LOGS
from support.clock import ManualClock
from support.fold import Fold
from support.memory_kafka import MemoryClient, MemoryCluster, MemoryFetcher
from support.promises import promise

NOW = 1_800_000_000_000
HOUR = 3_600_000
TP = TopicPartition(TOPIC, 0)
POLICY = Policy(tiers=(Tier.AGENT, Tier.BROKER), lateness_ms=0)
LAGS = st.integers(-9_000, 9_000)
LOADER = Sender(Tier.HDFS, "offline", "/logs", "l1", 1)


def agent(number: int) -> Sender:
    return Sender(Tier.AGENT, "dc1", str(number), f"app{number}", 1)


class Site:
    """Programs that send heartbeats to a cluster in memory, and a collector that reads the
    heartbeats."""

    def __init__(self, ledger: Ledger | None = None, *, is_brokers_time: bool = False) -> None:
        self.now_ms = NOW
        self.cluster, self.clock = MemoryCluster(), ManualClock(NOW)
        self.cluster.create(TOPIC)
        self.is_brokers_time = is_brokers_time
        self.ledger = ledger or Ledger()
        self.numbers: dict[Sender, int] = {}
        self.collection = self.collector()

    def collector(self, ledger: Ledger | None = None) -> Collection:
        client = MemoryClient(self.cluster, self.clock)
        chosen = self.ledger if ledger is None else ledger
        return Collection(client, MemoryFetcher(self.cluster), chosen, self.clock)

    def send(self, message: Message, sent_ms: int) -> None:
        values = pa.array([messages.encode(message)], pa.binary())
        log = self.cluster.log(TP)
        log.append(columns.encode(values, np.array([sent_ms], np.int64)))
        if self.is_brokers_time:
            stamp_append_time(log.batches[-1], 0, read_header(log.batches[-1]), self.now_ms)

    def say(self, sender: Sender, ahead_ms: int = 0, waited_ms: int = 0) -> None:
        """Sends a heartbeat now. The sender's clock is ahead by `ahead_ms`. The message was made
        `waited_ms` ago."""
        sent_ms = self.now_ms + ahead_ms
        self.send(Heartbeat(sender, 0, sent_ms - waited_ms), sent_ms)

    def pass_on(self, seconds: int) -> None:
        self.now_ms += 1000 * seconds
        self.clock.advance(seconds)

    def live(self, ahead: dict[Sender, int], rounds: int = 14) -> Clocks:
        """Lets 30 s pass, `rounds` times, and returns what the audit then says about the clocks. In
        each of these rounds, every sender in `ahead` sends a message, which the collector receives
        at once. `ahead` says by how many ms each sender's clock is ahead of the audit's clock."""
        for _ in range(rounds):
            self.pass_on(29)
            self.collection.turn(0)
            self.pass_on(1)
            for sender, ahead_ms in ahead.items():
                self.say(sender, ahead_ms)
            self.collection.turn(0)
        return self.judge()

    def present_ms(self, ledger: Ledger | None = None) -> int:
        """Lets the audit compute which time its own clock should show, and returns this time."""
        return present_ms((ledger or self.ledger).evidence(), POLICY, self.clock.time_ms())

    def judge(self, ledger: Ledger | None = None) -> Clocks:
        return clocks((ledger or self.ledger).evidence(), POLICY, self.clock.time_ms())


ALL = [agent(1), agent(2), BROKER]
GOOD = dict.fromkeys(ALL, 0)


def test_clocks_that_agree_are_not_spoken_of() -> None:
    """The audit reports no clock as wrong if all clocks agree, or differ by less than an allowed
    difference."""
    found = Site().live(GOOD | {agent(2): 50_000})
    assert found == Clocks(senders=3)
    assert clock_report.sentences(found) == []


@promise("clocks measured")
@pytest.mark.parametrize("ahead_ms", [HOUR, -HOUR])
def test_a_sender_whose_clock_differs_is_named_with_its_host_and_by_how_much(ahead_ms: int) -> None:
    """The audit reports a sender whose clock is ahead or behind, with the host and the difference.
    It reports no other sender, and the audit's own clock counts as right."""
    found = Site().live(GOOD | {agent(2): ahead_ms})
    assert [(x.host, x.ahead_ms) for x in found.others] == [("app2", ahead_ms)]
    assert not found.is_ours_wrong
    [said] = clock_report.sentences(found)
    side = "ahead of" if ahead_ms > 0 else "behind"
    assert said.startswith(f"The clock of the agent on app2 is 3600 s {side} the others")


@promise("clocks measured")
@pytest.mark.parametrize("ahead_ms", [HOUR, -HOUR])
def test_our_own_clock_is_told_by_most_others(ahead_ms: int) -> None:
    """If the clocks of most senders differ from the audit's own clock in the same direction, the
    audit reports its own clock as wrong. If one sender's clock differs from those of the other
    senders, the audit reports this clock as well. It says by how much this clock differs from the
    right time, and not from the audit's own wrong clock."""
    site = Site()
    site.clock.set_time_ms(NOW + ahead_ms)
    found = site.live(GOOD | {agent(3): 2 * HOUR})
    assert found.ours_ms == ahead_ms
    assert [(x.host, x.ahead_ms) for x in found.others] == [("app3", 2 * HOUR)]
    side = "ahead of" if ahead_ms > 0 else "behind"
    said = clock_report.sentences(found)[0]
    assert said.startswith(f"The clock of this host is 3600 s {side} those of most programs")


def test_with_one_sender_ours_is_doubted() -> None:
    """If there is only one sender and its clock differs from the audit's own clock, the audit
    reports its own clock as doubtful, because it cannot know which of the two clocks is wrong."""
    found = Site().live({agent(1): -HOUR})
    assert found.ours_ms == HOUR
    assert "that of the only program" in clock_report.sentences(found)[0]


def test_a_clock_that_was_set_right_is_not_spoken_of_any_more() -> None:
    """In the window of two minutes in which a clock is corrected, the audit still reports the
    clock. Some minutes later, it no longer does."""
    site = Site()
    assert site.live(GOOD | {agent(2): HOUR}).others
    assert [x.host for x in site.live(GOOD, rounds=1).others] == ["app2"]
    assert not site.live(GOOD).others


def test_who_is_not_heard_any_more_has_no_clock() -> None:
    """If no messages of a sender arrive any more, the audit no longer reports the sender's
    clock."""
    site = Site()
    site.live(GOOD | {agent(2): HOUR})
    assert not site.live({agent(1): 0, BROKER: 0}).wrong


def test_of_a_window_the_least_lag_counts() -> None:
    """The lag of a message is the time from its sending until the audit received it. In each window
    of two minutes, only the smallest lag counts, because messages may wait on their way. If the
    audit's own clock is set back into an earlier window, the audit forgets the lags of all other
    windows."""
    known = then(then(None, Reading(5, 10)), Reading(5, 3_000))
    assert known == Reading(5, 10)
    known = then(then(known, Reading(6, 20)), Reading(7, 30))
    assert known == Reading(7, 30, 20, 10)
    assert then(known, Reading(3, 40)) == Reading(3, 40)


@given(st.lists(st.tuples(st.sampled_from([0, 0, 1, 1, 2, -1]), LAGS, st.booleans()), max_size=9))
@example([(0, 5_000, False), (0, 20, True), (1, 4_000, False)])
def test_readings_do_not_depend_on_how_many_records_come_at_a_time(
    records: list[tuple[int, int, bool]],
) -> None:
    """What the audit knows about a sender's clock does not depend on how the records are divided
    among the transactions of the store. A transaction may have records of several windows of two
    minutes, and the audit's own clock may be changed in the middle of a transaction."""
    one_by_one, divided = Ledger(), Ledger()
    taken_ms, waiting = 10 * WINDOW_MS, list[tuple[bytes, Heard]]()
    for offset, (windows, lag_ms, is_last) in enumerate(records):
        taken_ms += windows * WINDOW_MS
        where = Heard(TOPIC, "id", 0, offset, taken_ms - lag_ms, taken_ms, is_live=True)
        waiting.append((messages.encode(Heartbeat(BROKER, 0, NOW)), where))
        one_by_one.take_records([(waiting[-1][0], where)], {}, 0)
        if is_last or offset == len(records) - 1:
            divided.take_records(waiting, {}, 0)
            waiting.clear()
    assert divided.evidence().readings == one_by_one.evidence().readings


@promise("clocks measured")
def test_a_backlog_behind_an_outage_is_no_slow_clock() -> None:
    """If messages waited in outboxes during an outage, or if a batch arrives late because of the
    outage, the audit does not report a slow clock."""
    site = Site()
    site.live(GOOD)
    late_ms = site.now_ms
    site.pass_on(3600)
    site.collection.turn(0)
    for sender in ALL:
        site.send(Heartbeat(sender, 0, late_ms), late_ms)
        site.say(sender, waited_ms=HOUR)
    site.collection.turn(0)
    assert not site.judge().wrong
    assert site.live(GOOD, rounds=1) == Clocks(senders=3)


def test_a_late_batch_alone_is_no_slow_clock() -> None:
    """If a single batch of a sender arrives late, the audit does not report a slow clock, even if
    this batch is the first in a window of two minutes. It reports a slow clock only if the sender's
    messages arrive late in several windows."""
    site = Site()
    site.live(GOOD)
    late_ms = site.now_ms
    site.pass_on(600)
    site.collection.turn(0)
    for sender in ALL:
        site.send(Heartbeat(sender, 0, late_ms), late_ms)
    site.collection.turn(0)
    assert not site.judge().wrong


@promise("clocks measured")
def test_what_shrinks_is_a_backlog() -> None:
    """The lag is the time from the sending of a message until the audit receives it. If the lag
    becomes smaller from one window of two minutes to the next, for example while a mirror catches
    up, messages have only waited on their way. So the audit does not report a slow clock."""
    site = Site()
    site.live(GOOD)
    for behind_ms in range(HOUR, 0, -HOUR // 5):
        found = site.live(dict.fromkeys(ALL, -behind_ms), rounds=4)
        assert not found.wrong, f"{behind_ms} ms behind"


def test_a_collector_that_reads_on_after_a_day_takes_nothing_for_a_slow_clock() -> None:
    """If a collector did not read for a day and then continues, the old messages that it then reads
    do not make it report a slow clock."""
    site = Site()
    site.live(GOOD)
    site.pass_on(3600)
    for sender in ALL:
        site.say(sender)
    site.pass_on(86_400)
    site.collection = site.collector()
    site.collection.turn(0)
    assert not site.judge().wrong
    assert site.present_ms() == site.now_ms


@promise("clocks measured")
def test_a_store_that_is_made_anew_from_old_topics_finds_no_wrong_clock() -> None:
    """A collector that fills a new store from old messages reports no clock as wrong, not even one
    that was wrong when the messages were sent."""
    site = Site()
    site.live(GOOD | {agent(2): HOUR})
    site.pass_on(86_400)
    anew = Ledger()
    site.collector(anew).catch_up()
    assert not site.judge(anew).wrong
    assert site.present_ms(anew) == site.now_ms


@promise("clocks measured")
def test_where_the_broker_writes_its_clock_messages_say_the_senders() -> None:
    """If the broker writes its own time into records (LogAppendTime), the audit takes the sender's
    time from the message itself."""
    site = Site(is_brokers_time=True)
    found = site.live(GOOD | {agent(2): -HOUR})
    assert [(x.host, x.ahead_ms) for x in found.others] == [("app2", -HOUR)]


def test_a_loaders_counts_of_yesterday_are_no_slow_clock() -> None:
    """If a loader publishes the counts of an earlier run, the audit does not report a slow clock,
    although the time in the message is that of the earlier run. The audit computes the lag of such
    a message from the record's timestamp. If the timestamp is the broker's own time
    (LogAppendTime), the audit does not use the message to judge the clock."""
    for is_brokers_time in (False, True):
        site = Site(is_brokers_time=is_brokers_time)
        site.live(GOOD)
        for number in range(1, 9):
            site.live(GOOD, rounds=1)
            counts = (Count(LOGS, 1, 0, 60_000, 1, 1, 1),)
            site.send(Delta(LOADER, number, NOW - HOUR, counts=counts), site.now_ms)
            site.collection.turn(0)
        assert not site.judge().wrong


def test_a_command_with_a_clock_that_is_behind_says_so() -> None:
    """If the clock of the host on which a command runs is behind, the recent messages of all
    senders seem to come from the future. The command then reports the clock of its own host."""
    site = Site()
    site.live(GOOD)
    found = Ledger()
    site.clock.set_time_ms(site.now_ms - HOUR)
    site.collector(found).catch_up()
    assert site.judge(found).ours_ms == -HOUR


def test_a_command_names_the_one_sender_that_is_ahead() -> None:
    """If only one sender's messages seem to come from the future, a command reports the clock of
    this sender and not its own clock."""
    site = Site()
    site.live(GOOD | {agent(2): HOUR})
    found = Ledger()
    site.collector(found).catch_up()
    assert [x.host for x in site.judge(found).others] == ["app2"]
    assert not site.judge(found).is_ours_wrong


def test_a_command_with_a_clock_that_is_ahead_names_it_as_a_likely_cause() -> None:
    """If the newest message is an hour old by the clock of the host on which a command runs, the
    command says that this clock may be ahead."""
    site = Site()
    site.live(GOOD)
    site.clock.set_time_ms(site.now_ms + HOUR)
    [said] = clock_report.sentences(site.judge())
    assert "The newest of all messages is 3600 s old" in said
    assert "the clock of this host is ahead" in said


@promise("clocks silence")
def test_hosts_that_report_are_not_silent_by_a_clock_that_is_ahead() -> None:
    """If the collector's clock is ahead, the collector still does not call a reporting host silent.
    It judges silence by the time that its own clock should show."""
    site = Site()
    site.clock.set_time_ms(NOW + HOUR)
    site.live(GOOD)
    evidence, now_ms = site.ledger.evidence(), site.clock.time_ms()
    states = survey(evidence, POLICY, now_ms)
    assert {x.status for x in states} == {HostStatus.REPORTING}
    assert present_ms(evidence, POLICY, now_ms) == site.now_ms


def test_a_host_whose_clock_is_far_behind_is_not_called_silent() -> None:
    """If a host reports but its clock is far behind, the audit calls the host "behind" and not
    "silent". The list of hosts, the reasons of `skidway audit wait` and the reasons of verdicts all
    use this word. The audit still counts the host among those that do not report in time, because
    the host's seals are old. When the host's messages no longer arrive, the audit calls the host
    silent."""
    site = Site()
    site.live(GOOD | {agent(2): -HOUR})
    evidence = site.ledger.evidence()
    late = [x for x in survey(evidence, POLICY, site.now_ms) if x.host == "app2"]
    assert [(x.status, x.behind_ms, x.is_missed) for x in late] == [(HostStatus.BEHIND, HOUR, True)]
    words = "3600 s behind (its clock, or its messages come late)"
    assert host_report.words(late[0]) == f"reports, {words}"
    assert host_report.sentence(late) == (
        "1 of 1 expected hosts does not report in time (behind: app2 (3600 s))."
    )
    [proof] = proofs(evidence, POLICY, ["app2"], site.now_ms - 60_000, site.now_ms)
    assert f"its agent is {words}" in proof.reasons
    bucket = site.now_ms - HOUR - site.now_ms % 60_000
    site.send(
        Delta(agent(2), 1, site.now_ms - HOUR, counts=(Count(LOGS, 2, bucket, 60_000, 1, 1, 1),)),
        site.now_ms - HOUR,
    )
    site.collection.turn(0)
    evidence = site.ledger.evidence()
    [state] = [x for x in sender_states(evidence, POLICY, site.now_ms) if x.numbers.host == "app2"]
    assert state.words == words
    [found] = verdicts(evidence, POLICY, site.now_ms)
    assert f"app2: the agent is {words}: unknown from its beginning on" in found.reasons
    [part] = [x for x in found.agents if x.agent == 2]
    # The name of a finding stays the same while the seconds in its sentence change.
    named = {x.name: x.status for x in part.findings}
    assert named["the agent is silent: unknown from its beginning on"] is Status.UNKNOWN
    site.live({agent(1): 0, BROKER: 0})
    states = {x.host: x.status for x in survey(site.ledger.evidence(), POLICY, site.now_ms)}
    assert states["app2"] is HostStatus.SILENT


def test_by_a_clock_of_ours_that_is_ahead_a_silent_host_is_not_called_behind() -> None:
    """If the audit's own clock is ahead, the clocks of all hosts seem to be behind. The audit still
    calls a silent host "silent", and not "behind"."""
    site = Site()
    site.clock.set_time_ms(NOW + HOUR)
    site.live(GOOD)
    site.live({agent(1): 0, BROKER: 0})
    states = survey(site.ledger.evidence(), POLICY, site.clock.time_ms())
    assert {x.host: x.status for x in states}["app2"] is HostStatus.SILENT


@promise("clocks silence")
def test_a_host_that_died_with_its_clock_ahead_is_silent() -> None:
    """If a host whose clock was ahead has stopped permanently, the audit calls the host silent. The
    audit uses the time at which it received the host's last message, and not the time in the
    message."""
    site = Site()
    site.live(GOOD | {agent(2): 1_000 * HOUR})
    site.live({agent(1): 0, BROKER: 0})
    states = {x.host: x.status for x in survey(site.ledger.evidence(), POLICY, site.now_ms)}
    assert states == {"app1": HostStatus.REPORTING, "app2": HostStatus.SILENT}


@promise("clocks due")
def test_a_bucket_is_not_taken_for_over_by_a_clock_that_is_ahead() -> None:
    """If a host's clock and the audit's own clock are ahead by the same time, the audit still calls
    no bucket complete before the bucket is over."""
    site = Site()
    site.clock.set_time_ms(NOW + HOUR)
    others = {agent(2): 0, agent(3): 0, BROKER: 0}
    site.live(others | {agent(1): HOUR})
    early_ms = site.now_ms + HOUR // 2
    bucket = early_ms - early_ms % 60_000
    part = Count(LOGS, 1, bucket, 60_000, 1, 1, 1)
    said = [
        Delta(agent(1), 1, site.now_ms + HOUR, counts=(part,)),
        Seal(agent(1), 2, site.now_ms + HOUR, (SealedTopic(LOGS, site.now_ms + HOUR, 1),)),
        Delta(BROKER, 1, site.now_ms, ranges=(Range(LOGS, 0, 0, 1),), counts=(part,)),
    ]
    for message in said:
        site.send(message, message.time_ms)
    site.collection.turn(0)
    [found] = verdicts(site.ledger.evidence(), POLICY, site.clock.time_ms())
    assert (found.status, found.due) == (Status.OPEN, False)


@promise("clocks counter")
def test_a_counter_whose_clock_is_ahead_is_not_heard_before_it_speaks() -> None:
    """A bucket of records without origin is not complete before a message of the broker's counter
    has arrived after the bucket's end. The audit's own clock decides when the message arrived,
    because the counter's own clock may be ahead."""
    part = Count(LOGS, 0, 0, 60_000, 1, 1, 1)
    delta = Delta(BROKER, 1, HOUR, ranges=(Range(LOGS, 0, 0, 1),), counts=(part,))
    fold = Fold()
    fold.apply(delta, _where(taken_ms=30_000, sent_ms=HOUR))
    [found] = verdicts(fold.evidence(), POLICY, 61_000)
    assert found.status is Status.OPEN
    assert any("was heard last at 1970-01-01 00:00:30Z" in x for x in found.reasons)


def _where(taken_ms: int, sent_ms: int, offset: int = 0) -> Heard:
    return Heard(TOPIC, "id", 0, offset, sent_ms, taken_ms, is_live=True)


@promise("6 moment of a seal")
@pytest.mark.parametrize("is_brokers_time", [True, False])
def test_where_the_broker_writes_its_clock_no_seal_vouches_for_what_came_later(
    is_brokers_time: bool,
) -> None:
    """An agent whose clock is ahead may send a seal for a future time. With LogAppendTime, the seal
    proves nothing about lines that were written after the broker received the seal, even for a
    collector that reads the seal a day later. Without LogAppendTime, a collector that reads the
    seal a day later accepts the seal's time."""
    site = Site(is_brokers_time=is_brokers_time)
    counts = (Count(LOGS, 1, NOW + HOUR // 2, 60_000, 1, 1, 1),)
    ahead_ms, ranges = NOW + HOUR, (Range(LOGS, 0, 0, 1),)
    site.send(Delta(agent(1), 1, ahead_ms, counts=counts), ahead_ms)
    site.send(Seal(agent(1), 2, ahead_ms, (SealedTopic(LOGS, ahead_ms, 1),)), ahead_ms)
    site.send(Delta(BROKER, 1, NOW, ranges=ranges, counts=counts), NOW)
    site.pass_on(86_400)
    site.collection.catch_up()
    [found] = verdicts(site.ledger.evidence(), POLICY, site.now_ms)
    assert found.status is (Status.UNKNOWN if is_brokers_time else Status.COMPLETE)


@promise("clocks between epochs")
@pytest.mark.parametrize("is_live", [True, False])
def test_what_lay_between_epochs_is_unknown_up_to_when_the_new_ones_seal_came(
    is_live: bool,
) -> None:
    """In this test, an agent continues in a new epoch with an older copy of its state, while its
    clock is an hour behind. Buckets after the old epoch's last seal are unknown up to the time at
    which the new epoch's first seal arrived. If a new store is filled later from the topics, this
    time of arrival is not known. The audit then uses the time in the seal."""
    old, new = (Sender(Tier.AGENT, "dc1", "1", "app1", epoch) for epoch in (1, 2))
    between = Count(LOGS, 1, NOW - HOUR // 2, 60_000, 1, 1, 1)
    behind = Count(LOGS, 1, NOW + 60_000, 60_000, 1, 1, 1)
    counts, ranges = (between, behind), (Range(LOGS, 0, 0, 2),)
    said: list[tuple[Message, int]] = [
        (Seal(old, 1, NOW - 2 * HOUR, (SealedTopic(LOGS, NOW - 2 * HOUR, 0),)), NOW - 2 * HOUR),
        (Seal(new, 1, NOW - HOUR, (SealedTopic(LOGS, NOW - HOUR, 0),)), NOW),
        (Delta(new, 2, NOW + HOUR, counts=counts), NOW + HOUR),
        (Seal(new, 3, NOW + HOUR, (SealedTopic(LOGS, NOW + HOUR, 2),)), NOW + HOUR),
        (Delta(BROKER, 1, NOW + HOUR, ranges=ranges, counts=counts), NOW + HOUR),
    ]
    ledger, fold = Ledger(), Fold()
    for offset, (message, taken_ms) in enumerate(said):
        where = _where(taken_ms, taken_ms, offset)._replace(is_live=is_live)
        fold.apply(message, where)
        ledger.take_records([(messages.encode(message), where)], {}, taken_ms)
    expected = [Status.UNKNOWN if is_live else Status.COMPLETE, Status.COMPLETE]
    for evidence in (fold.evidence(), ledger.evidence()):
        assert [x.status for x in verdicts(evidence, POLICY, NOW + HOUR)] == expected


@pytest.mark.parametrize("size", [1, 4, 5, 100])
def test_the_ledger_keeps_what_the_fold_keeps(size: int) -> None:
    """The ledger is the evidence in SQLite, and the fold is the evidence in memory. Both keep only
    one measurement of each sender's clock, however many messages arrive, and however many of them
    the ledger stores in one transaction."""
    ledger, fold, records = Ledger(), Fold(), list[tuple[bytes, Heard]]()
    for round_ in range(6):
        said: list[Message] = [Heartbeat(x, 0, NOW + round_) for x in ALL]
        said.append(Announcement(NOW, 1, 5, "app1", "/p", 1, 2, b"", 0, LOGS))
        taken_ms = NOW + round_ * WINDOW_MS // 2
        places = [_where(taken_ms, NOW - HOUR, offset=10 * round_ + n) for n in range(len(said))]
        for message, where in zip(said, places, strict=True):
            fold.apply(message, where)
            records.append((messages.encode(message), where))
    for begin in range(0, len(records), size):
        part = records[begin : begin + size]
        ledger.take_records(part, {}, part[-1][1].taken_ms)
    expected, found = fold.evidence(), ledger.evidence()
    for name in ("heard", "readings", "offsets", "taken_ms"):
        assert getattr(found, name) == getattr(expected, name), name
    assert len(found.readings) == len(ALL)


def test_clocks_gone_mad_harm_nobody() -> None:
    """The time in a message may be millions of years away. If it is not a plausible time, the audit
    says that a clock may be wrong, and does not fail. A message from the far past makes it
    doubt whether any program sends, and a message from the far future makes it doubt its own
    clock."""
    for moment, words in (
        (-FARTHEST_MS, "The newest of all messages is 11"),
        (FARTHEST_MS, "The clock of this host is 1152919704606846 s behind that of the only"),
    ):
        ledger = Ledger()
        ledger.take_records(
            [(messages.encode(Heartbeat(agent(1), 0, moment)), _mad(moment))], {}, NOW
        )
        found: Evidence = ledger.evidence()
        [said] = clock_report.sentences(clocks(found, POLICY, NOW))
        assert said.startswith(words)


def _mad(moment: int) -> Heard:
    return _where(NOW, moment)


# What the programs print.


@pytest.fixture
def stored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., int]:
    """Returns a function that runs `skidway audit <verb>` with a store that has one complete
    bucket. The command's clock is `ahead_ms` ahead of the clock by which the collector filled the
    store."""
    site = Site(Ledger(tmp_path / DATABASE))
    site.live(dict.fromkeys([agent(2), BROKER], 0))
    bucket = NOW - NOW % 60_000
    part = Count(LOGS, 1, bucket, 60_000, 1, 1, 1)
    until = site.now_ms
    said = [
        Delta(agent(1), 1, until, counts=(part,)),
        Seal(agent(1), 2, until, (SealedTopic(LOGS, until, 1),)),
        Delta(BROKER, 1, until, ranges=(Range(LOGS, 0, 0, 1),), counts=(part,)),
    ]
    for message in said:
        site.send(message, until)
    site.collection.turn(0)
    site.ledger.close()

    def ask(verb: str, *more: str, ahead_ms: int = 0) -> int:
        clock = ManualClock(site.now_ms + ahead_ms)
        for module in ("skidway.audit.commands.report", "skidway.audit.commands.hosts"):
            monkeypatch.setattr(f"{module}.SystemClock", lambda: clock)
        return main(["audit", verb, "--store", str(tmp_path), *more])

    return ask


REPORT = ("report", "--tiers", "agent,broker")


@promise("clocks due")
def test_a_report_by_a_clock_that_is_behind_is_not_good(
    stored: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    """On a host whose clock is behind, `report` treats every bucket as too new to be judged. It
    ends with status 1 and reports the clock, both as text and as JSON."""
    assert stored(*REPORT) == 0
    assert "clock" not in capsys.readouterr().out
    assert stored(*REPORT, ahead_ms=-HOUR) == 1
    printed = capsys.readouterr().out
    assert "too young to say." in printed
    assert "The clock of this host is 3600 s behind the collector's" in printed
    assert stored(*REPORT, "--json", ahead_ms=-HOUR) == 1
    assert json.loads(capsys.readouterr().out)["clocks"]["own_ahead_ms"] == -HOUR


def test_hosts_by_a_clock_that_is_wrong_say_so(
    stored: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    """If the clock of the host on which `audit hosts` runs is wrong, the command ends with status 1
    and reports this clock. By a clock that is behind, all hosts would seem to report. By a clock
    that is ahead, all hosts would seem to be silent."""
    assert stored("hosts", ahead_ms=-HOUR) == 1
    assert "The clock of this host is 3600 s behind" in capsys.readouterr().out
    assert stored("hosts", ahead_ms=HOUR) == 1
    assert "or the clock of this host is ahead" in capsys.readouterr().out


def test_a_collector_that_never_read_anything_is_told_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """If the collector has never read anything into the store, `report` says that nothing was read,
    and does not print a duration since 1970."""
    Ledger(tmp_path / DATABASE).close()
    assert main(["audit", "report", "--store", str(tmp_path)]) == 1
    assert "note: the collector has not read anything yet\n" in capsys.readouterr().err
