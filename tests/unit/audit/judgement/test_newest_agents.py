"""Tests which agents of a host the audit waits for, if the host has had several agents. To find the
newest agent, the audit uses the order of the agents' messages in the audit topic's log, and not the
agents' clocks."""

from __future__ import annotations

import random
from dataclasses import replace
from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skidway.audit.evidence.evidence import Evidence
from skidway.audit.evidence.hearing import Heard, Log, Offsets
from skidway.audit.evidence.ledger import Ledger
from skidway.audit.evidence.overlaps import OTHERS_MAX
from skidway.audit.judgement.hosts import survey
from skidway.audit.judgement.newest_agents import Successors, newest_agents
from skidway.audit.judgement.policy import Policy
from skidway.audit.judgement.reasons import of_time
from skidway.audit.judgement.roster import Roster, RosterEntry
from skidway.audit.judgement.topic_judgement import verdicts
from skidway.audit.judgement.verdict import Status
from skidway.audit.reports.host_report import sentence
from skidway.audit.topic.count_columns import Count
from skidway.audit.topic.messages import (
    TOPIC,
    Delta,
    Heartbeat,
    Message,
    Range,
    Seal,
    Sender,
    Tier,
    encode,
)
from skidway.audit.topic.seal_columns import SealedTopic
from support.audit_senders import BROKER, LOGS
from support.fold import Fold
from support.promises import promise

MINUTE, HOUR = 60_000, 3_600_000
SILENCE = 3 * MINUTE
NOW = 1_000 * HOUR
POLICY = Policy(
    tiers=(Tier.AGENT, Tier.BROKER),
    lateness_ms=0,
    silence_ms=SILENCE,
    roster=Roster([RosterEntry("app1", "dc1", frozenset({"logs"}))]),
)
OLD, NEW = (Sender(Tier.AGENT, "dc1", str(n), "app1", 1) for n in (1, 2))

Said = tuple[Message, int]
"""A message, and the time at which the audit received it, by the audit's clock. The messages of a
test are a list of these pairs, in the order of the log."""


def beat(sender: Sender, taken_ms: int, ahead_ms: int = 0) -> Said:
    return Heartbeat(sender, 0, taken_ms + ahead_ms), taken_ms


def folded(said: list[Said], partitions: dict[str, int] | None = None) -> Evidence:
    fold = Fold()
    for offset, (message, taken_ms) in enumerate(said):
        partition = 0
        if partitions and not isinstance(message, Delta) and hasattr(message, "sender"):
            partition = partitions[message.sender.producer]
        where = Heard(TOPIC, "id", partition, offset, message.time_ms, taken_ms, is_live=True)
        fold.apply(message, where)
    return fold.evidence()


def ledger_of(said: list[Said], size: int) -> Ledger:
    """Returns a ledger that has stored the messages `said`, with `size` messages in each
    transaction."""
    ledger = Ledger()
    places = [_where(n, x) for n, x in enumerate(said)]
    for begin in range(0, len(said), size):
        part = slice(begin, begin + size)
        values = [encode(x) for x, _ in said[part]]
        ledger.take_records(zip(values, places[part], strict=True), {}, NOW)
    return ledger


def newest(evidence: Evidence) -> list[int]:
    return newest_agents(evidence, [1, 2], SILENCE, NOW)


@promise("clocks newest agent")
@pytest.mark.parametrize("ahead_ms", [-24 * HOUR, -HOUR, 0, HOUR, 24 * HOUR])
def test_a_dead_agent_does_not_stand_for_the_one_behind_it(ahead_ms: int) -> None:
    """If a host has had several agents, the audit waits for the agent that began last, even if this
    agent is silent. It does not matter how far ahead or behind the host's clock was when the
    previous agent ended."""
    old = [beat(OLD, NOW - HOUR, ahead_ms), beat(OLD, NOW - HOUR + MINUTE, ahead_ms)]
    for heard_ms in (NOW - 2 * SILENCE, NOW - 10):
        assert newest(folded([*old, beat(NEW, heard_ms)])) == [2]


@pytest.mark.parametrize("ahead_ms", [-HOUR, 0, HOUR])
def test_a_state_that_is_brought_back_counts_beside_the_one_that_began_later(ahead_ms: int) -> None:
    """If the state of an earlier agent is restored, the audit waits for this agent and also for the
    agent that began later. It no longer waits for the later agent when that agent is silent by the
    audit's clock and by the host's clock."""
    back = beat(OLD, NOW - 5, ahead_ms)
    first = [beat(OLD, NOW - HOUR, ahead_ms)]
    assert newest(folded([*first, beat(NEW, NOW - MINUTE), back])) == [1, 2]
    if ahead_ms >= 0:
        assert newest(folded([*first, beat(NEW, NOW - 2 * SILENCE), back])) == [1]


@promise("6 expected hosts")
@pytest.mark.parametrize("names", ["ABAB", "AABB A B", "BABA", "ABBABA"])
@pytest.mark.parametrize("is_stored", [False, True])
def test_two_machines_that_are_called_alike_are_both_waited_for(
    names: str, is_stored: bool
) -> None:
    """If two machines have the same host name, the audit waits for the agents of both. It does not
    matter how long one of the agents has been silent, or what the machines' clocks show."""
    senders = {"A": (OLD, -HOUR), "B": (NEW, HOUR)}
    spoken = [senders[name] for name in names.replace(" ", "")]
    said = [beat(x, NOW - HOUR + n, ahead_ms) for n, (x, ahead_ms) in enumerate(spoken)]
    last, ahead_ms = spoken[-1]
    said.append(beat(last, NOW, ahead_ms))
    evidence = ledger_of(said, 2).evidence() if is_stored else folded(said)
    assert sorted(newest(evidence)) == [1, 2]
    assert newest_agents(evidence, [1], SILENCE, NOW) == [1]


@pytest.mark.parametrize("size", [1, 2, 3, 100])
def test_who_was_alive_side_by_side_does_not_depend_on_what_is_taken_at_once(size: int) -> None:
    """If the messages of two agents of one host alternate in the log, the audit concludes that the
    agents ran at the same time. The order "old, new" does not suffice, because the old agent's
    state may have been lost. The order "old, new, old" does not suffice either, because that state
    may have been restored. The result does not depend on how many messages the ledger stores at
    once, or on messages of other hosts."""
    other = Sender(Tier.AGENT, "dc1", "3", "app2", 1)
    for senders, found in (
        ([OLD, OLD, NEW, NEW], {}),
        ([OLD, NEW, NEW, OLD, OLD], {}),
        ([OLD, other, OLD, other], {}),
        ([OLD, NEW, OLD, NEW], {1: {2}, 2: {1}}),
        ([OLD, NEW, other, OLD, NEW, NEW], {1: {2}, 2: {1}}),
        ([OLD, NEW, NEW, OLD, NEW, OLD, OLD], {1: {2}, 2: {1}}),
    ):
        said = [beat(x, NOW + n) for n, x in enumerate(senders)]
        assert ledger_of(said, size).evidence().overlaps == folded(said).overlaps == found


@pytest.mark.parametrize("size", [50, 5_000])
@pytest.mark.parametrize("is_shuffled", [False, True])
def test_many_agents_of_one_name_are_told_in_little_room(size: int, is_shuffled: bool) -> None:
    """However many agents share a host name, the audit knows of each that it is not alone, with a
    bounded number of pairs for each agent, and reports name some of them."""
    agents = [Sender(Tier.AGENT, "dc1", str(n), "app1", 1) for n in range(1, 101)]
    senders = 2 * agents
    if is_shuffled:
        order = random.Random(7)
        senders += order.choices(agents, k=3_000)
    ledger = ledger_of([beat(x, NOW + n) for n, x in enumerate(senders)], size)
    evidence = ledger.evidence()
    assert evidence.overlaps.keys() == set(range(1, 101))
    assert sum(map(len, evidence.overlaps.values())) <= 2 * 100 * OTHERS_MAX
    said = sentence(survey(evidence, POLICY, NOW + len(senders)))
    assert "Agents 1 and 2 and 3 and 97 more report under one host name, app1 (dc1)." in said


HEARD = st.dictionaries(
    st.sampled_from([Log("t", "i", x) for x in range(3)]),
    st.tuples(st.integers(0, 20), st.integers(0, 20)).map(lambda x: Offsets(min(x), max(x))),
)


@given(st.lists(st.tuples(HEARD, st.integers(0, 20), st.integers(0, 20)), max_size=8))
def test_the_next_agent_is_found_as_if_each_was_compared_with_each(
    found: list[tuple[dict[Log, Offsets], int, int]],
) -> None:
    """The next agent of a host is the one that began first of those that began after the last
    message of an agent: by a log, or by their times."""
    evidence = Evidence()
    for agent, (offsets, began, seen) in enumerate(found):
        evidence.offsets[agent], evidence.began_here[agent] = offsets, began
        evidence.last_seen[Tier.AGENT, str(agent)] = seen
    for agent, (mine, began, seen) in enumerate(found):
        heard, times = max(began, seen), []
        for theirs, time, _ in found:
            both = mine.keys() & theirs.keys()
            if time > heard or any(theirs[x].first > mine[x].last for x in both):
                times.append(time)
        least = min(times, default=None)
        wanted = 0 if least is None else least if least > heard else heard + SILENCE
        successors = Successors(evidence, range(len(found)))
        assert successors.unread_until(agent, SILENCE) == wanted


@pytest.mark.parametrize("size", [1, 2, 4, 5, 6, 100])
def test_a_name_for_a_moment_hides_no_machine(size: int) -> None:
    """Two machines have had the same name, and their messages have alternated. Even if one machine
    reports another name for a moment, the audit still knows that both machines were alive at the
    same time. It does not matter how many messages the ledger stores at once."""
    elsewhere = replace(OLD, host="localhost")
    said = [beat(x, NOW + n) for n, x in enumerate((OLD, NEW, OLD, NEW, elsewhere, OLD))]
    assert ledger_of(said, size).evidence().overlaps == folded(said).overlaps == {1: {2}, 2: {1}}


@promise("6 expected hosts")
@pytest.mark.parametrize("size", [1, 3, 100])
@pytest.mark.parametrize("partitions", [None, {"1": 0, "2": 1}])
def test_a_machine_that_gets_the_name_of_a_dead_one_has_not_read_its_files(
    size: int, partitions: dict[str, int] | None
) -> None:
    """A running machine gets the name of a machine that died with unread lines. The agent of the
    running machine began first, but it has never read the dead machine's files. So a bucket that
    the dead machine's agent has not sealed stays unknown."""
    bucket = NOW - HOUR
    spare = replace(OLD, host="spare")
    part = Count(LOGS, 1, bucket, MINUTE, 1, 1, 1)
    said: list[Said] = [
        beat(spare, bucket - 9), beat(NEW, bucket - 8), beat(spare, bucket - 7),
        (Seal(NEW, 1, bucket + 10, (SealedTopic(LOGS, bucket + 10, 0),)), bucket + 10),
        (Delta(spare, 1, bucket + 20, counts=(part,)), bucket + 20),
        (Delta(BROKER, 1, NOW, ranges=(Range(LOGS, 0, 0, 1),), counts=(part,)), NOW),
        (Seal(spare, 2, NOW - 30, (SealedTopic(LOGS, NOW - 30, 1),)), NOW - 30),
        (Heartbeat(OLD, 2, NOW - 20), NOW - 20), (Heartbeat(OLD, 2, NOW - 10), NOW - 10),
    ]  # fmt: skip
    ledger = ledger_of(said, size) if partitions is None else None
    evidence = folded(said, partitions) if ledger is None else ledger.evidence()
    assert evidence.hosts == {1: "app1", 2: "app1"}
    [found] = verdicts(evidence, POLICY, NOW)
    silent = f"app1: the agent is silent: unknown since {of_time(bucket + 10)}"
    assert (found.status, found.reasons) == (Status.UNKNOWN, (silent,))


@promise("6 expected hosts")
def test_an_agent_whose_machine_is_alive_is_waited_for_though_it_is_silent() -> None:
    """If the messages of an older and a newer agent alternate in the log, the audit waits for both
    agents, even if the older agent is silent now. The verdict and the sentence about the hosts name
    both agents. If the older agent is retired, the audit no longer waits for it."""
    bucket, early = NOW - 5 * MINUTE, NOW - 20 * MINUTE
    part = Count(LOGS, 2, bucket, MINUTE, 1, 1, 1)
    said: list[Said] = [
        (Seal(OLD, 1, early, (SealedTopic(LOGS, early, 0),)), early),
        (Seal(NEW, 1, early, (SealedTopic(LOGS, early, 0),)), early),
        (Seal(OLD, 2, early, (SealedTopic(LOGS, early, 1),)), early),
        (Delta(NEW, 2, NOW, counts=(part,)), NOW),
        (Seal(NEW, 3, NOW, (SealedTopic(LOGS, NOW, 2),)), NOW),
        (Delta(BROKER, 1, NOW, ranges=(Range(LOGS, 0, 0, 1),), counts=(part,)), NOW),
    ]
    [found] = verdicts(folded(said), POLICY, NOW)
    assert found.status is Status.UNKNOWN
    assert found.reasons == (
        f"app1: the agent is silent: unknown since {of_time(early)}",
        "app1: agents 1 and 2 report under this host name, and each is waited for",
    )
    back = Seal(OLD, 3, NOW, (SealedTopic(LOGS, NOW, 2),))
    [found] = verdicts(folded([*said, (back, NOW)]), POLICY, NOW)
    assert (found.status, len(found.reasons)) == (Status.COMPLETE, 1)
    [state] = survey(folded(said), POLICY, NOW)
    assert (state.namesakes, state.is_missed) == ((1, 2), True)
    assert sentence([state]) == (
        "1 of 1 expected hosts does not report (silent: app1)."
        " Agents 1 and 2 report under one host name, app1 (dc1)."
    )
    retired = replace(POLICY, roster=Roster(POLICY.roster, ["1"]))
    [found] = verdicts(folded(said), retired, NOW)
    assert found.status is Status.COMPLETE
    [state] = survey(folded(said), retired, NOW)
    assert (state.namesakes, state.is_missed) == ((), False)


@promise("clocks newest agent")
def test_where_no_log_tells_the_order_both_are_waited_for() -> None:
    """If the messages of a host's two agents are in different partitions, the audit does not know
    the order of these messages. It then waits for both agents until one of them is silent."""
    said = [beat(OLD, NOW - MINUTE, HOUR), beat(NEW, NOW - 10)]
    assert newest(folded(said, {"1": 0, "2": 1})) == [1, 2]
    said = [beat(OLD, NOW - 2 * SILENCE), beat(NEW, NOW - 10)]
    assert newest(folded(said, {"1": 0, "2": 1})) == [2]


@promise("clocks replaced agent")
def test_what_a_replaced_agent_had_unread_was_written_before_the_next_began() -> None:
    """The lines that a replaced agent left unread were written before the next agent began, because
    the next agent reads all later lines. So they have earlier times than the beginning of the next
    agent. If the clock was set back between the two agents, the lines may also have later times.
    Then the audit takes the time in the old agent's last message, adds the time after which an
    agent without messages counts as silent, and assumes that no unread line has a time after this
    sum."""
    old = [beat(OLD, NOW - HOUR), beat(OLD, NOW - HOUR + MINUTE)]
    evidence = folded([*old, beat(NEW, NOW - 10)])
    assert Successors(evidence, [1, 2]).unread_until(1, SILENCE) == NOW - 10
    assert Successors(evidence, [1, 2]).unread_until(2, SILENCE) == 0
    evidence = folded([beat(OLD, NOW - HOUR, 2 * HOUR), beat(NEW, NOW - 10)])
    assert Successors(evidence, [1, 2]).unread_until(1, SILENCE) == NOW + HOUR + SILENCE


@promise("6 signed")
def test_who_copies_messages_in_another_order_hides_no_dead_agent() -> None:
    """Whoever may write an audit topic can copy the signed messages of a host in another order,
    which a store that is made anew may read first. The clock of the host in the messages still says
    that the new agent began behind the dead one, which may have left lines unread."""
    old = [beat(OLD, NOW - HOUR), beat(OLD, NOW - HOUR + MINUTE)]
    first, *rest = [beat(NEW, NOW - MINUTE), beat(NEW, NOW - 10)]
    for said in ([first, *old, *rest], [first, *rest, *old], [old[1], first, old[0], *rest]):
        evidence = folded(said)
        is_waited_for = 1 in newest_agents(evidence, [1, 2], SILENCE, NOW)
        assert (
            is_waited_for or Successors(evidence, [1, 2]).unread_until(1, SILENCE) == NOW - MINUTE
        )


def _host_whose_clock_was_ahead(*of_new: Message) -> list[Said]:
    """Returns the messages of a host that has had two agents. The old agent's clock was a day ahead
    when the agent sent a seal and ended. Then the new agent began; it has sent the messages
    `of_new`."""
    died_ms, bucket = NOW - HOUR, NOW - 5 * MINUTE
    part = Count(LOGS, 1, bucket, MINUTE, 1, 1, 1)
    ahead_ms = died_ms + 24 * HOUR
    return [
        (Delta(OLD, 1, ahead_ms, counts=(part,)), died_ms),
        (Seal(OLD, 2, ahead_ms, (SealedTopic(LOGS, ahead_ms, 1),)), died_ms),
        *((message, NOW - 2 * SILENCE) for message in of_new),
        (Delta(BROKER, 1, NOW, ranges=(Range(LOGS, 0, 0, 1),), counts=(part,)), NOW),
    ]


@promise("6 expected hosts")
def test_a_bucket_waits_for_the_agent_that_began_last_and_died_too() -> None:
    """A host may have had two agents, which have both ended. A bucket is complete only if the agent
    that began last has sealed it. The seals of the previous agent, whose clock was ahead, prove
    nothing about the last agent's lines."""
    early = (SealedTopic(LOGS, NOW - 2 * SILENCE - 1, 0),)
    said = _host_whose_clock_was_ahead(Seal(NEW, 1, NOW - 2 * SILENCE, early))
    [found] = verdicts(folded(said), POLICY, NOW)
    assert found.status is Status.UNKNOWN
    assert any("the agent is silent: unknown since" in x for x in found.reasons)
    [state] = survey(folded(said), POLICY, NOW)
    assert [x.agent for x in state.agents] == [2]
    assert state.is_missed


@promise("6 moment of a seal", "clocks seal")
@pytest.mark.parametrize("is_stored", [False, True])
def test_a_seal_vouches_for_nothing_that_came_after_it_was_taken(is_stored: bool) -> None:
    """If an agent's clock was ahead when it made a seal, the seal proves nothing about lines that
    were written after the audit received the seal. The agent had not read these lines yet."""
    died_ms = NOW - HOUR
    bucket = died_ms + HOUR // 2
    part = Count(LOGS, 1, bucket, MINUTE, 1, 1, 1)
    ahead_ms = died_ms + 2 * HOUR
    said: list[Said] = [
        (Delta(OLD, 1, ahead_ms, counts=(part,)), died_ms),
        (Seal(OLD, 2, ahead_ms, (SealedTopic(LOGS, ahead_ms, 1),)), died_ms),
        (Delta(BROKER, 1, NOW, ranges=(Range(LOGS, 0, 0, 1),), counts=(part,)), NOW),
    ]
    evidence = folded(said)
    if is_stored:
        places = [_where(n, x) for n, x in enumerate(said)]
        ledger = Ledger()
        values = [encode(x) for x, _ in said]
        ledger.take_records(zip(values, places, strict=True), {}, NOW)
        evidence = ledger.evidence()
    [found] = verdicts(evidence, POLICY, NOW)
    assert found.status is Status.UNKNOWN
    [state] = survey(evidence, POLICY, NOW)
    assert state.sealed_until == died_ms


def _where(offset: int, said: Said) -> Heard:
    message, taken_ms = said
    return Heard(TOPIC, "id", 0, offset, message.time_ms, taken_ms, is_live=True)


def test_the_ledger_says_the_same() -> None:
    """The ledger is the evidence in SQLite, and the fold is the evidence in memory. Both find the
    same newest agents and the same first and last offset of each agent, in whatever order the
    ledger receives the messages, and even if it receives some of them twice."""
    said = _host_whose_clock_was_ahead(Heartbeat(NEW, 0, NOW - 2 * SILENCE))
    places = [
        Heard(TOPIC, "id", 0, n, x.time_ms, ms, is_live=True) for n, (x, ms) in enumerate(said)
    ]
    for order in permutations(range(len(said))):
        ledger = Ledger()
        for chosen in (order[:2], order[2:], order[1:]):
            values = [encode(said[n][0]) for n in chosen]
            ledger.take_records(zip(values, [places[n] for n in chosen], strict=True), {}, NOW)
        evidence = ledger.evidence()
        assert newest(evidence) == newest(folded(said)) == [2]
        assert evidence.offsets == folded(said).offsets
        ledger.close()
