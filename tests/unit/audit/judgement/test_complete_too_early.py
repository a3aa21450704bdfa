"""Tests that the audit never calls a topic complete before all of its records are loaded. The order
in which agents, counters and loads do their work does not matter, and the collector may have read
only a part of the messages."""

from __future__ import annotations

from dataclasses import dataclass, field

from hypothesis import event, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from skidway.audit.judgement.completeness import Question, completeness
from skidway.audit.judgement.policy import Policy
from skidway.audit.topic.count_columns import Count
from skidway.audit.topic.messages import Delta, Heartbeat, Message, Range, Seal, Sender, Tier
from skidway.audit.topic.seal_columns import SealedTopic
from support.audit_senders import AGENT, BROKER, LOGS
from support.fold import Fold
from support.one_bucket import HDFS, SECOND, SIZE, roster
from support.promises import promise
from support.randomness import share_of

STEP = 20_000
END = 3 * SIZE
LATENESS = 30_000
TIERS = (Tier.AGENT, Tier.BROKER, Tier.HDFS)
POLICY = Policy(
    tiers=TIERS, lateness_ms=LATENESS, silence_ms=10 * SIZE, ahead_ms=0, roster=roster(
        "web1", "web2"
    ),
)  # fmt: skip
AGENTS = (AGENT, SECOND)
STOCK = 0
ACTIONS = ("line 0", "line 1", "line stock", "send 0", "send 1", "seal 0", "seal 1", "count",
           "beat", "load", "step", "step")  # fmt: skip
CLOSING = ("send 0", "send 1", "count", "load", "seal 0", "seal 1", "beat")

Line = tuple[int, int]
"""A line, as a pair: its agent (STOCK for a line of the standard Kafka producer, whose records have
no origin), and the start of its bucket."""


@dataclass
class Site:
    """Two hosts, a standard Kafka producer (whose records have no origin), a counter and a loader.
    The test chooses the order of their actions.

    - lines: all lines that were ever written.
    - unsent: for each agent, the lines in its files that it has not sent yet.
    - log: the lines that the brokers have.
    - counted: how many lines of the log the counter has counted.
    - loaded: how many lines of the log the loader has loaded.
    - said: the audit messages, each with the time at which it was sent, and the number of lines
      that were loaded at that time.
    """

    now_ms: int = 0
    lines: list[Line] = field(default_factory=list)
    unsent: tuple[list[Line], list[Line]] = field(default_factory=lambda: ([], []))
    log: list[Line] = field(default_factory=list)
    counted: int = 0
    loaded: int = 0
    said: list[tuple[Message, int, int]] = field(default_factory=list)
    numbers: dict[Sender, int] = field(default_factory=dict)
    deltas: dict[Sender, int] = field(default_factory=dict)
    touched: dict[tuple[Sender, Line], int] = field(default_factory=dict)

    def do(self, action: str) -> None:
        verb, _, whose = action.partition(" ")
        if verb == "step":
            self.now_ms += STEP
        elif action == "line stock":
            self._write(self.log, STOCK)
        elif verb == "line":
            self._write(self.unsent[int(whose)], int(AGENTS[int(whose)].producer))
        elif verb == "send" and self.unsent[int(whose)]:
            sent = self.unsent[int(whose)]
            self.log += sent
            self._count(AGENTS[int(whose)], sent)
            sent.clear()
        elif verb == "seal" and not self.unsent[int(whose)]:
            sender = AGENTS[int(whose)]
            sealed = SealedTopic(LOGS, self.now_ms, self.deltas.get(sender, 0))
            self._say(Seal(sender, self._number(sender), self.now_ms, (sealed,)))
        elif verb == "count" and self.counted < len(self.log):
            found, self.counted = self.log[self.counted :], len(self.log)
            self._count(BROKER, found)
        elif verb == "beat" and self.counted == len(self.log) and BROKER in self.numbers:
            self._say(Heartbeat(BROKER, self.numbers[BROKER], self.now_ms))
        elif verb == "load" and self.loaded < len(self.log):
            found, self.loaded = self.log[self.loaded :], len(self.log)
            self._count(HDFS, found)

    def _write(self, where: list[Line], agent: int) -> None:
        line = agent, self.now_ms - self.now_ms % SIZE
        self.lines.append(line)
        where.append(line)

    def _count(self, sender: Sender, lines: list[Line]) -> None:
        number = self._number(sender)
        counts = []
        for line in sorted(set(lines)):
            agent, start = line
            count = lines.count(line)
            previous = self.touched.get((sender, line), 0)
            self.touched[sender, line] = number
            counts.append(Count(LOGS, agent, start, SIZE, count, count, count, previous=previous))
        ranges = () if sender.tier is Tier.AGENT else (Range(LOGS, 0, 0, len(self.log)),)
        self.deltas[sender] = number
        self._say(Delta(sender, number, self.now_ms, ranges=ranges, counts=tuple(counts)))

    def _number(self, sender: Sender) -> int:
        self.numbers[sender] = self.numbers.get(sender, 0) + 1
        return self.numbers[sender]

    def _say(self, message: Message) -> None:
        self.said.append((message, self.now_ms, self.loaded))


@promise("6 complete before a time")
@hypothesis_settings(max_examples=share_of(300))
@given(st.data(), st.lists(st.sampled_from(ACTIONS), max_size=60))
def test_no_topic_is_complete_before_all_of_it_is_loaded(
    data: st.DataObject, actions: list[str]
) -> None:
    """If the audit calls a topic complete up to a time, all lines of the topic with earlier event
    times are already in the output, even if the collector has read only a part of the messages."""
    site = Site()
    closing = data.draw(st.permutations(CLOSING), label="closing")
    between = data.draw(st.lists(st.sampled_from(ACTIONS), max_size=4), label="between")
    for action in (*actions, *CLOSING, *between, *["step"] * 12, *closing):
        site.do(action)
    unread = data.draw(st.integers(0, len(CLOSING)) | st.integers(0, len(site.said)))
    read = max(0, len(site.said) - unread)
    until = data.draw(st.integers(1, END), label="until")
    heard = [message for message, _, _ in site.said[:read]]
    _, now_ms, loaded = site.said[read - 1] if read else (None, 0, 0)
    question = Question("logs", lambda x: x == LOGS, lambda x: x == LOGS, 0, until)
    found = completeness(Fold(heard).evidence(), POLICY, question, now_ms)
    is_complete = not any(x.is_short for x in found)
    event(f"complete: {is_complete}")
    if is_complete:
        due = [line for line in site.lines if line[1] < until]
        rows = [line for line in site.log[:loaded] if line[1] < until]
        assert sorted(rows) == sorted(due)


def test_such_a_site_is_complete_in_the_end() -> None:
    """Once every line is sent, counted, loaded and sealed, the audit calls the topic complete."""
    site = Site()
    for action in ("line 0", "line 1", "line stock", *CLOSING, *["step"] * 12, *CLOSING):
        site.do(action)
    question = Question("logs", lambda x: x == LOGS, lambda x: x == LOGS, 0, END)
    evidence = Fold(message for message, _, _ in site.said).evidence()
    [found] = completeness(evidence, POLICY, question, site.now_ms)
    assert not found.is_short
