"""Two agents of the same host may both have delivered the same lines, for example because an
agent's state was deleted. Then some counts are in doubt: they may be doubled, so their bucket is
unknown. The tests check which counts are in doubt. In the tests, the old agent (FIRST) and the new
agent (SECOND) announce the same file."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from skidway.audit.counts.counts import Sums
from skidway.audit.evidence.evidence import sender_key
from skidway.audit.evidence.ledger import ledger_of
from skidway.audit.evidence.tallies import SenderKey, Tally
from skidway.audit.judgement.policy import Policy
from skidway.audit.judgement.rules.doublings import Doublings
from skidway.audit.judgement.topic_judgement import verdicts
from skidway.audit.judgement.verdict import AgentVerdict, Status
from skidway.audit.topic import messages
from skidway.audit.topic.count_columns import Count
from skidway.audit.topic.messages import (
    Announcement,
    Certainty,
    Delta,
    Heartbeat,
    Loss,
    Message,
    Range,
    Seal,
    Sender,
    Tier,
)
from skidway.audit.topic.seal_columns import SealedTopic
from support.audit_senders import BROKER, LOGS
from support.fold import Fold, judge
from support.promises import promise

SIZE = 60_000
OLD, NEW, LATER = (SIZE * n for n in (10, 20, 30))
"""The starts of three buckets: one while only the agent FIRST ran, one in which the agent SECOND
began, and one long after this."""

NOW = LATER + 2 * SIZE
POLICY = Policy(tiers=(Tier.AGENT, Tier.BROKER), lateness_ms=0, silence_ms=10**9, ahead_ms=SIZE)

FIRST = Sender(Tier.AGENT, "dc1", "7", "web1", 1)
SECOND = Sender(Tier.AGENT, "dc1", "8", "web1", 1)
WORDS = "/x was announced by agent 7 and then by agent 8, whose state seems to be a new one"


def counted(sender: Sender, number: int, bucket: int) -> list[Message]:
    """Returns a delta (a message with counts) that counts lines of one bucket, and that was sent
    before the end of this bucket."""
    count = Count(LOGS, int(sender.producer), bucket, SIZE, 5, 50, 99)
    return [Delta(sender, number, bucket + number, counts=(count,))]


def seal(sender: Sender, number: int, until: int) -> Seal:
    return Seal(sender, number, until + 1, (SealedTopic(LOGS, until, number - 1),))


def announced(sender: Sender, time_ms: int, **others: int | str | bytes) -> Announcement:
    agent = int(sender.producer)
    made = Announcement(time_ms, agent, agent, "web1", "/x", 1, 1, b"f", 4, LOGS)
    return replace(made, **others)  # type: ignore[arg-type]


OF_FIRST: list[Message] = [announced(FIRST, OLD), *counted(FIRST, 1, OLD), seal(FIRST, 2, NEW - 1)]
OF_SECOND: list[Message] = [
    announced(SECOND, NEW), *counted(SECOND, 1, NEW), seal(SECOND, 2, NEW + SIZE),
]  # fmt: skip
AFTERWARDS = [*counted(SECOND, 3, LATER), seal(SECOND, 4, LATER + SIZE)]


def part(said: list[Message], sender: Sender, bucket: int) -> AgentVerdict:
    """Adds messages to `said` in which the broker tier counts everything that the agents have
    counted. Returns the verdict that then applies to one agent's part of a bucket. Checks that the
    fold (the evidence in memory) and the ledger (the evidence in SQLite) give the same verdict."""
    of_agents = [x for x in said if isinstance(x, Delta) and x.counts and x.sender != BROKER]
    said = said + [
        Delta(BROKER, number, NOW, (Range(LOGS, 0, number, number + 1),), x.counts)
        for number, x in enumerate(of_agents, 1)
    ]
    found = judge(said, POLICY, NOW)
    ledger = ledger_of(map(messages.encode, said))
    assert verdicts(ledger.evidence(), POLICY, NOW) == found
    ledger.close()
    [whole] = [x for x in found if x.bucket == bucket]
    return next(x for x in whole.agents if x.agent == int(sender.producer))


@promise("1 two agents")
def test_what_a_new_agent_counted_while_it_read_again_is_in_doubt() -> None:
    """An agent whose state was deleted gets a new id and reads every file from its beginning. The
    lines that the new agent counts up to its first seal are in doubt: they may be doubled, so their
    buckets are unknown."""
    found = part([*OF_FIRST, *OF_SECOND], SECOND, NEW)
    assert (found.status, found.reasons) == (
        Status.UNKNOWN,
        (f"{WORDS}: its lines may count twice",),
    )
    [doubt] = found.findings  # a person accepts a finding by its name
    assert doubt.name == f"{WORDS}: its lines may count twice (5, 99)"


@promise("1 two agents")
def test_a_predecessor_hides_no_file() -> None:
    """Even if an announcement (the message that an agent has found a file) names a predecessor of
    the file, the audit compares the file with the files of other agents. The predecessor is only an
    older file id of the same agent."""
    said = [replace(x, predecessor=1) if isinstance(x, Announcement) else x for x in OF_FIRST]
    assert part([*said, *OF_SECOND], SECOND, NEW).status is Status.UNKNOWN
    continued = replace(announced(SECOND, NEW), predecessor=1)
    assert part([*OF_FIRST, continued, *OF_SECOND[1:]], SECOND, NEW).status is Status.UNKNOWN


@promise("6 doublings")
def test_what_it_counts_behind_its_first_seal_is_not_in_doubt() -> None:
    """If an agent's state was deleted, the host has a new agent. Until its first seal, the new
    agent may send lines of the old agent again. Lines that the new agent counts after this seal are
    not in doubt: they cannot be doubled. When the new agent sends the seal, it has already
    delivered all lines that the old agent can have read from the same files."""
    said = [*OF_FIRST, *OF_SECOND, *AFTERWARDS]
    assert part(said, SECOND, LATER).status is Status.COMPLETE


def test_what_the_old_agent_had_sealed_is_not_in_doubt() -> None:
    """If an agent's state was deleted, the host has a new agent, which may send lines of the old
    agent again. If the old agent had sealed a bucket before the new agent began, the old agent's
    counts of the bucket are not in doubt (do not count as possibly doubled), because the old agent
    read these lines first."""
    said = [*OF_FIRST, *OF_SECOND, *AFTERWARDS]
    assert part(said, FIRST, OLD).status is Status.COMPLETE


def test_a_bucket_in_which_both_counted_is_in_doubt() -> None:
    """If both the old and the new agent of a host counted lines of a bucket, the bucket is in
    doubt: its lines may be doubled. This is true even if the clock was set back, so that the times
    of the messages do not tell which agent counted first."""
    late = replace(counted(FIRST, 3, LATER)[0], time_ms=OLD + 3)
    said = [*OF_FIRST, *OF_SECOND, *AFTERWARDS, late]
    assert part(said, SECOND, LATER).reasons[0].startswith(WORDS)


@promise("6 doublings")
@pytest.mark.parametrize(
    "change",
    [
        Heartbeat(FIRST, 2, LATER + SIZE),
        announced(SECOND, LATER + SIZE, file=9, inode=2),
        Seal(SECOND, 2, NEW, (SealedTopic(LOGS, NEW - 1, 1),)),
    ],
    ids=["the old one is heard still", "a file found later", "no seal before"],
)  # fmt: skip
def test_without_a_seal_that_vouches_later_buckets_stay_in_doubt(change: Message) -> None:
    """If a host has a new agent, because the old agent's state was deleted, lines may be doubled
    until the new agent's first seal. Even later buckets stay in doubt if the old agent still sends
    messages, or if the new agent later finds a file that the old agent had read. They also stay in
    doubt if the new agent's seal is for a time before the new agent began."""
    said = [*OF_FIRST, announced(FIRST, OLD, file=10, inode=2), *OF_SECOND, *AFTERWARDS]
    if isinstance(change, Seal):
        said.remove(OF_SECOND[-1])
    found = part([*said, change], SECOND, LATER)
    assert (found.status, found.reasons[0][: len(WORDS)]) == (Status.UNKNOWN, WORDS)


def test_a_seal_behind_bytes_that_were_set_apart_vouches_for_nothing() -> None:
    """A host's new agent may send lines of the old agent again. So the new agent's lines are in
    doubt (may be doubled), normally until its next seal. But if it declares bytes of a file lost,
    because no pattern in its settings matches the file, the next seal does not end the doubt. The
    agent may read these bytes later, when a pattern matches the file again."""
    loss = Loss(LOGS, 8, 8, 0, 9, Certainty.LOST, "no source means it", 0, 0)
    afterwards = [*counted(SECOND, 4, LATER), seal(SECOND, 5, LATER + SIZE)]
    for losses, status in [((), Status.COMPLETE), ((loss,), Status.UNKNOWN)]:
        between = [Delta(SECOND, 2, NEW + 2, losses=losses), seal(SECOND, 3, NEW + SIZE)]
        said = [*OF_FIRST, *OF_SECOND[:-1], *between, *afterwards]
        assert part(said, SECOND, LATER).status is status


@promise("6 doublings")
def test_a_state_that_is_brought_back_reads_again_what_the_new_agent_had() -> None:
    """The state of a host's old agent was deleted, and is restored after a new agent has run on the
    host. The lines that the old agent then counts are in doubt (may be doubled) until it sends a
    seal for a time after the new agent's last message."""
    back = [*counted(FIRST, 3, LATER), seal(FIRST, 4, LATER + SIZE)]
    found = part([*OF_FIRST, *OF_SECOND, *back], FIRST, LATER)
    assert (found.status, found.reasons[0][: len(WORDS)]) == (Status.UNKNOWN, WORDS)
    sealed = [
        seal(FIRST, 3, NEW + SIZE * 2),
        *counted(FIRST, 4, LATER),
        seal(FIRST, 5, LATER + SIZE),
    ]
    assert part([*OF_FIRST, *OF_SECOND, *sealed], FIRST, LATER).status is Status.COMPLETE


def test_when_an_agent_began_whose_first_message_is_gone_nobody_knows() -> None:
    """Two agents of a host may have read the same lines. If the first message of one of them has
    expired, the audit does not know when this agent began. So everything that the other agent has
    counted is in doubt (may be doubled), however long ago the other agent sealed it."""
    expired = [x for x in OF_SECOND if not (isinstance(x, Delta) and x.sender == SECOND)]
    found = part([*OF_FIRST, *expired], FIRST, OLD)
    assert (found.status, "may count twice" in found.reasons[0]) == (Status.UNKNOWN, True)


def test_of_many_agents_each_is_bounded_by_those_beside_it() -> None:
    """If the agent loses its state before each start, each start makes a new agent with a new id.
    The counts of each of these agents are in doubt (may be doubled) only from the beginning of this
    agent up to its first seal."""
    third = replace(SECOND, producer="9")
    said = [*OF_FIRST, *OF_SECOND, *AFTERWARDS]
    said += [announced(third, LATER + SIZE + 1), *counted(third, 1, LATER + SIZE)]
    said += [seal(third, 2, LATER + 2 * SIZE)]
    assert part(said, SECOND, NEW).status is Status.UNKNOWN
    assert part(said, SECOND, LATER).status is Status.COMPLETE
    assert part(said, FIRST, OLD).status is Status.COMPLETE
    assert part(said, third, LATER + SIZE).status is Status.UNKNOWN


class _Counted(dict[int, dict[SenderKey, Tally]]):
    """A dictionary with agents as keys. `walked` counts the keys over which its users iterate."""

    walked = 0

    def __iter__(self) -> Iterator[int]:
        for each in super().__iter__():
            self.walked += 1
            yield each


def test_a_fleet_that_lost_its_states_is_not_compared_each_with_each() -> None:
    """Even if all agents of a fleet have lost their states, the audit compares the counts of an
    agent only with those of agents that have announced the same file."""
    hosts = 500
    said: list[Message] = []
    by_agent = _Counted()
    for agent in range(hosts):
        for number in (agent + 1, agent + 1 + hosts):
            sender = replace(FIRST, producer=str(number))
            said += [announced(sender, NEW, inode=agent), *counted(sender, 1, NEW)]
            by_agent[number] = {sender_key(sender): Tally(Sums(), 1, 1, 0)}
    evidence = Fold(said).evidence()
    doublings = Doublings(evidence, evidence.topic(LOGS))
    assert all(list(doublings.reasons(agent, by_agent)) for agent in range(1, 2 * hosts + 1))
    assert by_agent.walked < 10 * hosts


def test_what_was_set_apart_before_and_is_found_again_is_in_doubt() -> None:
    """A host's old agent declared bytes of a file lost, the host's new agent has read them, and
    later the old agent runs again and finds these bytes. The lines that the old agent then counts
    are in doubt (may be doubled). The audit notices this because the old agent gives the file a new
    file id."""
    loss = Loss(LOGS, 7, 7, 50, 99, Certainty.LOST, "no source means it", 0, 0)
    first = [*OF_FIRST[:2], Delta(FIRST, 2, OLD + 2, losses=(loss,)), seal(FIRST, 3, NEW - 1)]
    back: list[Message] = [seal(FIRST, 4, NEW + 2 * SIZE)]
    again = announced(FIRST, LATER, file=10, predecessor=7)
    found_again = [*counted(FIRST, 5, LATER), seal(FIRST, 6, LATER + SIZE)]
    said = [*first, *OF_SECOND, *back, again, *found_again]
    assert part(said, FIRST, LATER).status is Status.UNKNOWN
    said.remove(again)
    assert part(said, FIRST, LATER).status is Status.COMPLETE


def test_what_a_new_id_of_an_equal_file_throws_into_doubt_ends_with_the_next_seal() -> None:
    """Both agents of a host have read a file. Later one of the agents gives a new file id to a file
    with the inode and the first bytes of that file. This may be the file that both have read, or
    another file: for example, each rotation may write the same header into a new file, and reuse
    the inode. So the lines that this agent counts up to its next seal are in doubt (may be
    doubled), and later lines are not."""
    more = [*OF_FIRST, *OF_SECOND, announced(SECOND, NEW + 2 * SIZE, file=9, predecessor=8)]
    more += [seal(SECOND, 3, NEW + 3 * SIZE), *counted(SECOND, 4, LATER)]
    assert part([*more, seal(SECOND, 5, LATER + SIZE)], SECOND, LATER).status is Status.COMPLETE


def born(said: list[Message], born_ns: int | None, **others: int | str | bytes) -> list[Message]:
    """Returns the messages `said`. In each announcement of a file, the birth time is replaced by
    `born_ns`, and other fields by the values in `others`."""
    return [
        replace(x, born_ns=born_ns, **others) if isinstance(x, Announcement) else x  # type: ignore[arg-type]
        for x in said
    ]


GROWN: dict[str, int | str | bytes] = {"fingerprint": b"more", "fingerprint_length": 9}
RENUMBERED: dict[str, int | str | bytes] = {"device": 2}


@promise("1 two agents")
@pytest.mark.parametrize(
    "others",
    [GROWN, RENUMBERED, {"fingerprint": b"", "fingerprint_length": 0}, GROWN | RENUMBERED],
    ids=["it grew", "its disk has another number", "it was empty", "both"],
)
def test_a_file_is_the_same_by_inode_and_birth(others: dict[str, int | str | bytes]) -> None:
    """Two files of one host with the same inode and birth time count as the same file. This is true
    even if the agents announce different first bytes or device numbers."""
    said = [*born(OF_FIRST, 5), *born(OF_SECOND, 5, **others), *AFTERWARDS]
    found = part(said, SECOND, NEW)
    assert (found.status, found.reasons[0][: len(WORDS)]) == (Status.UNKNOWN, WORDS)
    assert part(said, SECOND, LATER).status is Status.COMPLETE


@promise("1 two agents")
def test_another_birth_is_another_file() -> None:
    """Two files with the same inode and the same first bytes are different files if their birth
    times differ."""
    assert part([*born(OF_FIRST, 5), *born(OF_SECOND, 6)], SECOND, NEW).status is Status.COMPLETE


@promise("1 two agents")
@pytest.mark.parametrize("births", [(None, None), (5, None), (None, 6)])
def test_without_births_first_bytes_decide(births: tuple[int | None, int | None]) -> None:
    """If an announcement has no birth time of its file, the audit cannot compare it by birth time
    with another announcement. The two are then about the same file if device, inode and first bytes
    are equal. A file that grew, or whose device number changed, is then taken for another file.
    Some file systems give no birth times."""
    first = born(OF_FIRST, births[0])
    assert part([*first, *born(OF_SECOND, births[1])], SECOND, NEW).status is Status.UNKNOWN
    for others in (GROWN, RENUMBERED):
        said = [*first, *born(OF_SECOND, births[1], **others)]
        assert part(said, SECOND, NEW).status is Status.COMPLETE


@promise("1 two agents")
def test_machines_made_from_one_image_do_not_share_its_files() -> None:
    """If two machines were made from one disk image, their files may have the same inodes, birth
    times and bytes. They still count as different files."""
    said = [*born(OF_FIRST, 5), *born(OF_SECOND, 5, host="web2")]
    assert part(said, SECOND, NEW).status is Status.COMPLETE


TRUNCATED: dict[str, int | str | bytes] = {"file": 9, "predecessor": 8, "predecessor_position": 50}


@promise("6 doublings")
@pytest.mark.parametrize("born_ns", [None, 5])
@pytest.mark.parametrize(
    ("others", "status"),
    [
        (TRUNCATED, Status.COMPLETE),
        (TRUNCATED | {"begin": 20}, Status.COMPLETE),
        (TRUNCATED | {"begin": 50}, Status.UNKNOWN),
        (TRUNCATED | {"predecessor": 77}, Status.UNKNOWN),
        ({"file": 9}, Status.UNKNOWN),
    ],
    ids=["truncated", "rewritten from a byte on", "read on", "after a copy", "forgotten"],
)
def test_content_behind_what_was_seen_later_is_newer(
    others: dict[str, int | str | bytes], status: Status, born_ns: int | None
) -> None:
    """If a file gets new content after the last message of a host's old agent, this agent cannot
    have read the new content, even if the new content begins with the same header. So no lines are
    doubled when the host's new agent announces the new content, and the counts of earlier buckets
    do not come into doubt. They come into doubt if the announcement does not show that the content
    is new."""
    rotated = announced(SECOND, LATER + SIZE + 2, **others)
    first = [*OF_FIRST[:-1], seal(FIRST, 2, NEW - 2)]
    said = [*first, *OF_SECOND, *AFTERWARDS, rotated]
    assert part(born(said, born_ns), SECOND, LATER).status is status


@promise("6 doublings")
def test_content_of_while_the_other_one_was_there_is_in_doubt() -> None:
    """The state of a host's old agent may be restored after a new agent has run. Lines that are
    written while the old agent runs again are in doubt (may be doubled). In this test, the old
    agent reads new lines of a truncated file, and then stops for good. Afterwards the new agent
    sends a seal, and only then finds these lines."""
    middle = NEW + 2 * SIZE
    back = [
        announced(FIRST, middle, file=10, predecessor=7, predecessor_position=50, **GROWN),
        *counted(FIRST, 3, middle),
    ]
    again = announced(SECOND, LATER, **TRUNCATED, fingerprint=b"yet more")
    said = [
        *OF_FIRST, *OF_SECOND, *back, seal(SECOND, 3, middle + SIZE), again,
        *counted(SECOND, 4, LATER), seal(SECOND, 5, LATER + SIZE),
    ]  # fmt: skip
    found = part(born(said, 5), SECOND, LATER)
    assert (found.status, found.reasons[0].startswith("/x was announced")) == (Status.UNKNOWN, True)
