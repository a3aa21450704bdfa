"""Under random schedules, the audit never reports an incomplete bucket as complete, and in the end
it reports every complete bucket as complete.

The test simulates a small site. Programs write lines to files. An agent reads these lines, moves
checkpoints, sends seals and declares losses by the rules of docs/delivery.md. Counters and a loader
count records. The collector gets the messages in any order and may get a message more than once.
After each message the test asks the real code of the audit which buckets are complete.

A bucket is a time window of a topic, and a delta is a message with counts. A seal's W is the time
up to which the seal says that the agent's counts are final. The lateness is a setting: the time for
which the audit waits for late lines after the end of a bucket. A bucket is due when this time has
passed. A last word is the final seal that an agent sends when it leaves.

The test checks each bucket that the audit reports as complete. D3 below must not be true of such a
bucket. If the host's clock is not set during the run, the bucket must be over by this clock. If the
audit's own clock is not ahead, the bucket must be over by the true time. The bucket must not have a
row twice. Each line of the bucket that D1, D2, D4 or D5 describes must have a row. The lines of the
bucket that D6 describes must be shown in the verdict, as D6 says:

    D1  a line that was in a file when the agent noted the W of the newest received seal
    D2  a line that was in a file when the agent made the last received delta with counts of the
        line's bucket
    D3  a bucket that is not over yet
    D4  a line that was written before its bucket was due
    D5  a line that was in a file when a leaving agent scanned its files for the last time
    D6  a line that a rule left out: the verdict shows exactly those lines of the bucket, by rule,
        that the received deltas count as left out

A line that a rule left out needs no row if a received delta counts it as left out. A line in
`unseen` needs no row either, because the rules do not require the audit to know of it. The test
checks D4 only in two kinds of runs: runs with the fault `drains`, and runs with `clocks` but
without `clock_steps`. Even in these runs it does not check D4 if the agent has left, that is, if
the agent is retired and its last word is its newest received message. In this case the audit does
not wait for lines that are written later. The test checks D5 only if the agent has left and the
collector has received the agent's last message.
"""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import dataclass, replace

import pytest

from skidway.agent.accounts.set_backs import SetBacks
from skidway.audit.counts import checksum
from skidway.audit.counts.counts import Sums
from skidway.audit.evidence.collection import LIVE_WITHIN_S
from skidway.audit.evidence.evidence import Evidence, SealNote
from skidway.audit.evidence.hearing import Heard
from skidway.audit.evidence.tallies import SenderKey, Tally, link
from skidway.audit.judgement.policy import Policy
from skidway.audit.judgement.roster import Roster
from skidway.audit.judgement.topic_judgement import verdicts
from skidway.audit.judgement.verdict import BucketVerdict, Status
from skidway.audit.topic.count_columns import Filtered
from skidway.audit.topic.messages import (
    Bounds,
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
from support.audit_model import (
    BUCKET_MS,
    HOUR,
    LATENESS_MS,
    LOGS,
    SECOND,
    NumberedSender,
    blind_to_checksums,
    blind_to_holes,
    blind_to_losses,
    run,
    sums_of_line,
)
from support.fold import Fold
from support.promises import promise
from support.randomness import Seeds

AGENT = 77
LATENESSES_MS = [0, 2_000, 8_000, 20_000]
WRONG = [-HOUR, 0, HOUR]
POLICY = Policy(
    tiers=(Tier.AGENT, Tier.BROKER, Tier.HDFS),
    lateness_ms=LATENESS_MS,
    silence_ms=10**9,
    ahead_ms=20_000,
)
RETIRED = replace(POLICY, roster=Roster(retired=[str(AGENT)]))

SENDERS = {
    Tier.AGENT: Sender(Tier.AGENT, "dc1", str(AGENT), "host", 1),
    Tier.BROKER: Sender(Tier.BROKER, "dc1", "count-dc1", "host", 1),
    Tier.HDFS: Sender(Tier.HDFS, "offline", "/logs", "host", 1),
}


@dataclass(frozen=True)
class Faults:
    """The events that may happen in addition to the ordinary events.

    - drains: the agent is drained, retired, started again or drained again.
    - hasty_drains (breaks a rule): the agent sends its last word (its final seal) although there
      are unread lines.
    - silent_returns (breaks a rule): the agent starts again and does not withdraw its last word.
    - deaf_drains (breaks a rule): the agent is drained again, finds lines that it cannot read, and
      does not withdraw its last word.
    - latenesses: the agent and the audit have random, perhaps different settings for the lateness
      (how long the audit waits for late lines).
    - agents_word (breaks a rule): the audit uses the agent's lateness, even if the audit's own
      lateness is larger. So it assumes that lost lines are late by at most the agent's lateness.
    - clocks: each clock (host, counter, loader, audit) is right, an hour behind, or an hour ahead.
    - clock_steps: the host's clock is set during the run: to the right time, 8 s behind it or 8 s
      ahead of it. With `clocks`, an hour takes the place of the 8 s.
    - rules: the agent's rules leave out some lines, which the agent counts as filtered.
    """

    old_files: bool = True
    clock_steps: bool = False
    deletes: bool = False
    lost_rows: bool = False
    doubled_rows: bool = False
    clocks: bool = False
    lost_messages: bool = False
    restores: bool = False
    drains: bool = False
    hasty_drains: bool = False
    silent_returns: bool = False
    deaf_drains: bool = False
    latenesses: bool = False
    agents_word: bool = False
    rules: bool = False
    steps: int = 70
    own_clock: bool = True
    blind: Callable[[Evidence], None] = lambda evidence: None


@dataclass
class Line:
    """One line of a log. `index` is the line's number in its file. `written` is a sequence number
    over all lines, and `written_ms` is the time of the host's clock when the line was written.
    `rule` is the rule that leaves the line out, or an empty text."""

    number: int
    file: int
    index: int
    bucket: int
    written: int
    written_ms: int
    rule: str


@dataclass
class Snapshot:
    """What the agent notes for a seal that it has not sent yet: the seal's time, the sizes of the
    files at this time, the number of the last delta, and the sequence number of the newest line."""

    sealed_until: int
    sizes: dict[int, int]
    at: int
    written: int


class World:
    """A simulated site with files, an agent, a counter, a loader and a collector, which take random
    steps."""

    def __init__(self, seed: int, faults: Faults) -> None:
        self.random, self.faults = random.Random(seed), faults
        # The random values for the fault `latenesses` (how long agent and audit wait for late
        # lines) come from a generator of their own, so that they do not change other random
        # choices.
        drawn = random.Random(-seed - 1) if faults.latenesses else None
        self.lateness_ms = drawn.choice(LATENESSES_MS) if drawn else LATENESS_MS
        self.agents_lateness_ms = drawn.choice(LATENESSES_MS) if drawn else LATENESS_MS
        self.now, self.skew, self.sequence = 40, 0, 0
        self.skews = dict.fromkeys([Tier.BROKER, Tier.HDFS], 0)
        self.own_skew = 0
        self.set_backs = SetBacks()
        self.rules = random.Random(-seed - 3) if faults.rules else None
        self.left_out: dict[tuple[int, int], list[Line]] = {}
        if faults.clocks:
            hours = random.Random(-seed - 2)
            self.now = 10 * HOUR
            self.skew, self.own_skew = hours.choice(WRONG), hours.choice(WRONG)
            self.skews = {tier: hours.choice(WRONG) for tier in self.skews}
        self.lines: list[Line] = []
        self.files: dict[int, list[Line]] = {}
        self.known: set[int] = set()
        self.position: dict[int, int] = defaultdict(int)
        self.checkpoint: dict[int, int] = defaultdict(int)
        self.current, self.file_count = 0, 0
        self.broker: list[Line] = []
        self.counted, self.loaded = 0, 0
        self.rows: set[int] = set()
        self.unseen: set[int] = set()
        self.declared: set[int] = set()
        self.snapshot: Snapshot | None = None
        self.tellers = {tier: NumberedSender(sender) for tier, sender in SENDERS.items()}
        agents = self.tellers[Tier.AGENT]
        agents.sender = replace(agents.sender, bounds=Bounds(self.agents_lateness_ms))
        self.all_messages: list[Message] = []
        self.inbox: list[Message] = []
        self.delivered: list[Message] = []
        self.sent: dict[int, tuple[int, int, int]] = {}
        self.heard: list[Heard] = []
        self.last_seal: tuple[int, int] | None = None
        self.last_word: Snapshot | None = None
        self.looked = 0
        self.seal_written: dict[tuple[int, int], int] = {}
        self.delta_written: dict[tuple[int, int], int] = {}
        self.copy: tuple[NumberedSender, dict[int, int], set[int]] | None = None
        self.wrong: str | None = None
        self.is_away = self.is_retired = False
        self.new_file()

    # The events on the host.

    def clock_ms(self) -> int:
        return (self.now + self.skew) * SECOND

    def clock_of(self, tier: Tier) -> int:
        return self.clock_ms() if tier is Tier.AGENT else (self.now + self.skews[tier]) * SECOND

    def own_clock_ms(self) -> int:
        return (self.now + self.own_skew) * SECOND

    def tick(self) -> None:
        self.now += 1

    def step_clock(self) -> None:
        self.skew = self.random.choice(WRONG if self.faults.clocks else [0, 8, -8])

    def new_file(self) -> None:
        self.file_count += 1
        self.current = self.file_count
        self.files[self.current] = []

    def write(self, file: int | None = None, bucket: int | None = None) -> None:
        file = file if file is not None else self.current
        if file not in self.files:
            self.new_file()
            file = self.current
        clock_ms = self.clock_ms()
        bucket = bucket if bucket is not None else clock_ms - clock_ms % BUCKET_MS
        self.sequence += 1
        place = len(self.files[file])
        rule = self.rules.choice(["", "", "debug", "health"]) if self.rules else ""
        line = Line(len(self.lines), file, place, bucket, self.sequence, clock_ms, rule)
        self.lines.append(line)
        self.files[file].append(line)

    def old_file(self) -> None:
        self.file_count += 1
        file = self.file_count
        self.files[file] = []
        back = self.random.choice([1, 3, 5]) * BUCKET_MS
        start = max(BUCKET_MS, self.clock_ms() - back)
        for _ in range(self.random.randint(2, 3)):
            self.write(file, start - start % BUCKET_MS)

    # The events of the agent.

    def look_at_clock(self) -> None:
        """Reads the host's clock, as the agent does in each turn (round) of its loop. In this
        model, the agent has a turn after each event."""
        self.set_backs.read(self.clock_ms(), ["logs"])

    def scan(self) -> None:
        self.known |= set(self.files)

    def read(self) -> None:
        """The agent reads a line and sends it, unless a rule leaves it out. The broker acknowledges
        the line at once."""
        behind = [f for f in self.known & set(self.files) if self.position[f] < len(self.files[f])]
        if behind:
            file = self.random.choice(sorted(behind))
            line = self.files[file][self.position[file]]
            self.broker += [] if line.rule else [line]
            self.position[file] += 1

    def commit(self) -> None:
        """Moves the agent's checkpoint and sends a delta, which is a message with the counts since
        the last checkpoint."""
        passed = [
            line
            for file in sorted(self.known & set(self.files))
            for line in self.files[file][self.checkpoint[file] : self.position[file]]
        ]
        self.checkpoint.update(self.position)
        self.tell(Tier.AGENT, passed)
        self.seal_if_passed()

    def note_seal(self) -> None:
        if self.snapshot is None:
            clock_ms, written = self.clock_ms(), self.sequence
            self.scan()
            sizes = {file: len(lines) for file, lines in self.files.items()}
            self.set_backs.noted("logs")
            at = self.tellers[Tier.AGENT].last
            self.snapshot = Snapshot(clock_ms, sizes, at, written)
            self.seal_if_passed()

    def seal_if_passed(self) -> None:
        noted = self.snapshot
        if noted is None:
            return
        if any(f in self.files and self.checkpoint[f] < n for f, n in noted.sizes.items()):
            return
        self.set_backs.sealed("logs")
        self.seal(noted)
        self.snapshot = None

    def seal(self, noted: Snapshot, *, final: bool = False) -> None:
        teller = self.tellers[Tier.AGENT]
        teller.last += 1
        sealed = SealedTopic(LOGS, noted.sealed_until, noted.at, final=final)
        self.seal_written[teller.sender.epoch, teller.last] = noted.written
        self.publish(Seal(teller.sender, teller.last, self.clock_ms(), (sealed,)))
        self.last_seal = (noted.sealed_until, noted.at)
        self.last_word = noted if final else None

    def drain(self) -> None:
        """Stops the agent cleanly. The agent sends its last word (a final seal of its counts),
        unless a file has unread lines."""
        self.commit()
        self.look_and_leave()

    def look_and_leave(self) -> None:
        self.scan()
        self.looked = self.sequence
        unread = any(self.checkpoint[file] < len(lines) for file, lines in self.files.items())
        if not unread or self.faults.hasty_drains:
            at = self.tellers[Tier.AGENT].last
            self.seal(Snapshot(self.clock_ms(), {}, at, self.sequence), final=True)
        self.is_away, self.snapshot = True, None

    def drain_again(self) -> None:
        """Starts the agent only to drain it again. The agent withdraws its last word (its final
        seal), and sends a new last word only if there is no unread line."""
        if not self.faults.deaf_drains:
            self.come_back()
        self.look_and_leave()

    def come_back(self) -> None:
        """Starts the agent again. The agent then repeats its last word (its final seal) as an
        ordinary seal, and so withdraws it."""
        self.is_away = False
        if self.last_word is not None and not self.faults.silent_returns:
            self.seal(self.last_word)

    def retire(self) -> None:
        """Removes the host from the roster (the list of expected hosts) or adds it again, as an
        operator may do at any time."""
        self.is_retired = not self.is_retired

    def lose_late_lines(self) -> None:
        """Creates a file with old lines. Deletes the file after the agent has found it and before
        the agent has read it."""
        self.old_file()
        self.scan()
        self.delete(self.file_count)

    def delete(self, file: int | None = None) -> None:
        """Deletes a file. If the agent knew the file, it declares the unread lines lost, as a byte
        range without a known end."""
        others = sorted(set(self.files) - {self.current})
        if not others:
            return
        file = self.random.choice(others) if file is None else file
        lines = self.files.pop(file)
        unread = lines[self.position[file] :]
        if file not in self.known:
            self.unseen |= {line.number for line in unread}
            return
        losses, vanished = [], []
        if unread:
            self.declared |= {line.number for line in unread}
            vanished = unread
            first = self.position[file] * 10
            unsealed = None
            if self.last_seal is not None and self.faults.latenesses:
                unsealed = self.last_seal[0] - self.last_seal[0] % BUCKET_MS
            words = "the file vanished"
            until = None
            if self.faults.clock_steps:
                latest_ms = self.set_backs.greatest("logs", self.clock_ms())
                until = latest_ms - latest_ms % BUCKET_MS
            losses = [Loss(LOGS, AGENT, file, first, None, Certainty.LOST, words, unsealed, until)]
        self.tell(Tier.AGENT, lines[self.checkpoint[file] : self.position[file]], losses=losses)
        self.unseen |= {line.number for line in vanished if self.beyond_assumption(line)}

    def beyond_assumption(self, line: Line) -> bool:
        """Returns whether the rules allow the audit to call the line's bucket complete although the
        line vanished unread. The rules allow this only under two conditions. First, the last seal's
        time W is later than the end of the bucket by at least the lateness. If the agent and the
        audit have different settings for the lateness, the larger one counts. Second, no delta
        since that seal has counts of the bucket."""
        if self.last_seal is None:
            return False
        sealed_until, at = self.last_seal
        lateness_ms = max(self.agents_lateness_ms, self.lateness_ms)
        older = line.bucket + BUCKET_MS <= sealed_until - lateness_ms
        teller = self.tellers[Tier.AGENT]
        return older and teller.touched.get((LOGS, AGENT, line.bucket), 0) <= at

    def heartbeat(self) -> None:
        teller = self.tellers[Tier.AGENT]
        self.publish(Heartbeat(teller.sender, teller.last, self.clock_ms()))

    def copy_state(self) -> None:
        teller = self.tellers[Tier.AGENT]
        if self.copy is None and self.snapshot is None:
            kept = replace(teller, touched=dict(teller.touched))
            self.copy = (kept, dict(self.checkpoint), set(self.known))

    def restore(self) -> None:
        """Restores an older copy of the agent's state, and lets the agent continue with it, as an
        operator may permit. The agent begins a new epoch, and gives each file a new id that covers
        only bytes after the file's current end.
        """
        if self.copy is None:
            return
        teller, _, _ = self.copy
        sender = replace(teller.sender, epoch=self.tellers[Tier.AGENT].sender.epoch + 1)
        self.tellers[Tier.AGENT] = NumberedSender(sender)
        self.copy, self.snapshot = None, None
        for file, lines in self.files.items():
            if self.faults.old_files or self.faults.clock_steps:
                # The audit assumes that no unread line is older than the time in the last seal
                # minus the lateness. With these two faults, unread lines can be older.
                self.unknown(lines[self.checkpoint[file] :])
            self.position[file] = self.checkpoint[file] = len(lines)
        self.known |= set(self.files)

    def unknown(self, lines: list[Line]) -> None:
        sent = {line.number for line in self.broker}
        self.unseen |= {line.number for line in lines if line.number not in sent}

    # The events of the counter and the loader.

    def count(self) -> None:
        if self.counted < len(self.broker):
            end = self.random.randint(self.counted + 1, len(self.broker))
            self.tell(Tier.BROKER, self.broker[self.counted : end], (self.counted, end))
            self.counted = end

    def load(self) -> None:
        if self.loaded == len(self.broker):
            return
        end, chosen = len(self.broker), []
        for line in self.broker[self.loaded :]:
            luck = self.random.random()
            if self.faults.lost_rows and luck < 0.15:
                continue
            chosen.append(line)
            self.rows.add(line.number)
            if self.faults.doubled_rows and luck > 0.85:
                chosen.append(line)
        self.tell(Tier.HDFS, chosen, (self.loaded, end))
        self.loaded = end

    # The messages to the audit, and their delivery to the collector.

    def tell(
        self,
        tier: Tier,
        lines: list[Line],
        offsets: tuple[int, int] | None = None,
        losses: list[Loss] | None = None,
    ) -> None:
        teller = self.tellers[tier]
        counted = [((LOGS, AGENT, x.bucket), sums_of(x)) for x in lines]
        deltas = teller.deltas(
            self.clock_of(tier),
            counted,
            ranges=[Range(LOGS, 0, *offsets)] if offsets else [],
            losses=losses or [],
            limit_bytes=self.random.choice([1, 900_000]),
        )
        for delta in deltas:
            if tier is Tier.AGENT:
                key = delta.sender.epoch, delta.number
                self.delta_written[key] = self.sequence
                buckets = {count.bucket for count in delta.counts}
                self.left_out[key] = [x for x in lines if x.rule and x.bucket in buckets]
            self.publish(delta)

    def publish(self, message: Delta | Seal | Heartbeat) -> None:
        sent_ms = self.clock_of(message.sender.tier)
        self.sent[id(message)] = len(self.all_messages), sent_ms, self.now
        self.all_messages.append(message)
        if self.faults.lost_messages and self.random.random() < 0.05:
            return
        self.inbox.append(message)

    def deliver(self) -> None:
        if not self.inbox:
            return
        chosen = self.random.randrange(len(self.inbox))
        again = self.random.random() < 0.2
        self.hear(self.inbox[chosen] if again else self.inbox.pop(chosen))
        self.judge(self.delivered)

    def hear(self, message: Message) -> None:
        offset, sent_ms, sent_at = self.sent[id(message)]
        is_live = self.now - sent_at < LIVE_WITHIN_S
        where = Heard("audit", "", 0, offset, sent_ms, self.own_clock_ms(), is_live=is_live)
        self.delivered.append(message)
        self.heard.append(where)

    def fold(self, messages: list[Message]) -> Evidence:
        """Returns the evidence that the messages contain. If `messages` is `self.delivered`, this
        is the evidence of the running collector. Otherwise it is the evidence of a collector that
        is rebuilt from the topic. For a rebuilt collector no message counts as live, that is, as
        read soon after it was sent.
        """
        if not self.faults.clocks:
            return Fold(messages).evidence()
        fold = Fold()
        for number, message in enumerate(messages):
            offset, sent_ms, _ = self.sent[id(message)]
            where = Heard("audit", "", 0, offset, sent_ms, self.own_clock_ms(), is_live=False)
            fold.apply(message, self.heard[number] if messages is self.delivered else where)
        return fold.evidence()

    # The audit's verdicts, and what is really true.

    def judge(self, messages: list[Message]) -> set[int]:
        """Returns the buckets (time windows) that the audit reports as complete. If one of these
        buckets is not really complete, sets `wrong` to the reason."""
        evidence = self.fold(messages)
        self.faults.blind(evidence)
        complete = set()
        now_ms = self.own_clock_ms() if self.faults.own_clock else 10**12
        if self.faults.agents_word:
            _shorten_losses(evidence, max(0, self.lateness_ms - self.agents_lateness_ms))
        policy = replace(RETIRED if self.is_retired else POLICY, lateness_ms=self.lateness_ms)
        for verdict in verdicts(evidence, policy, now_ms):
            if verdict.status is Status.COMPLETE:
                complete.add(verdict.bucket)
                wrong = self.falsehood(verdict.bucket, messages) or self.wrongly(verdict, messages)
                self.wrong = self.wrong or wrong
            elif not verdict.reasons:
                self.wrong = self.wrong or f"bucket {verdict.bucket}: nothing says why"
        return complete

    def wrongly(self, verdict: BucketVerdict, messages: list[Message]) -> str | None:
        """Returns an error text if the verdict shows wrong numbers of lines that rules left out.
        Otherwise returns None."""
        left_out = self.heard_as_left_out(messages).values()
        shown = {each.rule: each.records for each in verdict.filtered}
        if shown != Counter(x.rule for x in left_out if x.bucket == verdict.bucket):
            return f"D6: bucket {verdict.bucket}: {shown} are shown as left out"
        return None

    def falsehood(self, bucket: int, messages: list[Message]) -> str | None:
        left_out = self.heard_as_left_out(messages)
        if self.clock_ms() < bucket + BUCKET_MS and not self.faults.clock_steps:
            return f"D3: bucket {bucket} is not over by the clock of its host"
        if self.now * SECOND < bucket + BUCKET_MS and self.own_skew <= 0:
            return f"D3: bucket {bucket} is not over"
        seals = [x for x in messages if isinstance(x, Seal)]
        newest = max(seals, key=lambda x: (x.sender.epoch, x.number))
        sealed = self.seal_written[newest.sender.epoch, newest.number]
        cuts = (
            self.delta_written[x.sender.epoch, x.number]
            for x in messages
            if isinstance(x, Delta) and x.sender.tier is Tier.AGENT and _touches(x, bucket)
        )
        cut = max(cuts, default=0)  # 0 if the agent counted nothing in this bucket
        has_left = self.has_left(messages, newest)
        due = 0 if has_left else bucket + BUCKET_MS + self.lateness_ms
        teller = self.tellers[Tier.AGENT]
        is_all_heard = (newest.sender, newest.number) == (teller.sender, teller.last)
        there = self.rows | self.unseen | left_out.keys()
        for line in self.lines:
            missing = line.bucket == bucket and line.number not in there
            if missing and line.written <= max(sealed, cut):
                lost = "declared lost, " if line.number in self.declared else ""
                return f"D1/D2: line {line.number} of bucket {bucket} is no row ({lost}{line})"
            if missing and has_left and is_all_heard and line.written <= self.looked:
                return f"D5: line {line.number} of bucket {bucket} is no row ({line})"
            if missing and line.written_ms < due and self.is_waited_for:
                return f"D4: line {line.number} of bucket {bucket} is no row ({line})"
        if bucket in self.doubled():
            return f"bucket {bucket} has a row twice"
        return None

    def heard_as_left_out(self, messages: list[Message]) -> dict[int, Line]:
        """Looks at the agent's deltas among these messages. Returns the lines that these deltas
        count as left out, by line number."""
        keys = {
            (x.sender.epoch, x.number)
            for x in messages
            if isinstance(x, Delta) and x.sender.tier is Tier.AGENT
        }
        return {line.number: line for key in keys for line in self.left_out[key]}

    @property
    def is_waited_for(self) -> bool:
        return self.faults.drains or (self.faults.clocks and not self.faults.clock_steps)

    def has_left(self, messages: list[Message], newest: Seal) -> bool:
        """Returns whether the agent has left, so that the audit does not wait for the agent. An
        agent has left if it is retired and its last word (its final seal) is the newest message
        that the collector has received from it."""
        heard = [x for x in messages if isinstance(x, Delta | Seal) and x.sender == newest.sender]
        is_last = newest.number == max(x.number for x in heard)
        return self.is_retired and is_last and newest.topics[0].final

    def doubled(self) -> set[int]:
        counted: dict[int, int] = defaultdict(int)
        for message in self.all_messages:
            if isinstance(message, Delta) and message.sender.tier is Tier.HDFS:
                for count in message.counts:
                    counted[count.bucket] += count.count
        truth: dict[int, int] = defaultdict(int)
        for number in self.rows:
            truth[self.lines[number].bucket] += 1
        return {bucket for bucket, count in counted.items() if count > truth[bucket]}

    # The steps and the end of a run.

    def step(self) -> None:
        faults = self.faults
        actions = [
            (self.tick, 6.0), (self.write, 4), (self.count, 2), (self.load, 2), (self.deliver, 8),
        ]  # fmt: skip
        if self.is_away:
            actions += [(self.come_back, 1), (self.drain_again, 0.5)]
        else:
            actions += [
                (self.scan, 2), (self.read, 6), (self.commit, 3), (self.note_seal, 2),
                (self.heartbeat, 0.5),
            ]  # fmt: skip
            actions += [(self.drain, 1)] if faults.drains else []
        actions += [(self.retire, 0.5)] if faults.drains else []
        actions += [(self.old_file, 0.5)] if faults.old_files else []
        actions += [(self.step_clock, 0.4)] if faults.clock_steps else []
        actions += [(self.delete, 0.5), (self.new_file, 0.5)] if faults.deletes else []
        actions += [(self.lose_late_lines, 1)] if faults.latenesses and faults.deletes else []
        actions += [(self.copy_state, 0.5), (self.restore, 0.5)] if faults.restores else []
        chosen, weights = zip(*actions, strict=True)
        self.random.choices(chosen, weights)[0]()
        if not self.is_away:
            self.look_at_clock()

    def finish(self) -> set[int]:
        """Runs the model until every line is read, counted and loaded, and every message is
        delivered. If the host's clock could be set during the run, first sets this clock to the
        right time. Returns the buckets that the audit reports as complete at the end."""
        if self.faults.clock_steps:
            self.skew = 0
        self.is_retired = False
        if self.is_away:
            self.come_back()
        for _ in range(3):
            self.now += HOUR if self.faults.clocks else 40
            self.scan()
            while any(self.position[f] < len(self.files[f]) for f in self.known & set(self.files)):
                self.read()
            self.commit()
            self.note_seal()
            while self.counted < len(self.broker):
                self.count()
            self.load()
        return self.hear_all()

    def hear_all(self) -> set[int]:
        for message in self.inbox:
            self.hear(message)
        self.inbox = []
        return self.judge(self.delivered)

    def leave(self) -> set[int]:
        """Ends the run. The agent reads every line, sends its last word (its final seal) and is
        retired. Afterwards the counter and the loader count all remaining records. Returns the
        buckets that the audit then reports as complete."""
        if self.is_away:
            self.come_back()
        self.scan()
        while any(self.position[f] < len(self.files[f]) for f in self.known & set(self.files)):
            self.read()
        self.drain()
        self.now += 3 * HOUR if self.faults.clocks else 40
        self.is_retired = True
        while self.counted < len(self.broker):
            self.count()
        self.load()
        return self.hear_all()

    def expected_complete(self) -> set[int]:
        return {line.bucket for line in self.lines if line.number not in self.declared}


def sums_of(line: Line) -> Sums:
    """Returns what one line contributes to the counts in a tier's delta."""
    if line.rule:
        return Sums(filtered=(Filtered(line.rule, 1, 10),))
    return sums_of_line(AGENT, line.file, line.index)


def _touches(delta: Delta, bucket: int) -> bool:
    return any(count.bucket == bucket for count in delta.counts)


def _run(
    seed: int, faults: Faults, end: Callable[[World], set[int]] = World.finish
) -> tuple[World, set[int]]:
    return run(World(seed, faults), seed, faults.steps, end)


def _run_all(seeds: range, faults: Faults) -> None:
    for seed in seeds:
        _run(seed, faults)


RUNS = range(80)


@promise("6 complete", "6 filtered", "clocks seal")
@pytest.mark.parametrize(
    "faults",
    [
        Faults(),
        Faults(old_files=False),
        Faults(clock_steps=True),
        Faults(steps=200, clock_steps=True),
        Faults(drains=True),
        Faults(latenesses=True),
        Faults(clocks=True),
        Faults(clocks=True, drains=True),
        Faults(clocks=True, clock_steps=True),
        Faults(rules=True),
        Faults(rules=True, clocks=True, drains=True),
    ],
    ids=[
        "ordinary",
        "no-old-files",
        "clock-steps",
        "long",
        "drains",
        "latenesses",
        "clocks",
        "clocks-drains",
        "clocks-that-are-set",
        "rules",
        "rules-clocks-drains",
    ],
)
def test_never_falsely_complete_and_complete_in_the_end(faults: Faults, seeds: Seeds) -> None:
    """Even with late lines, old files, wrong clocks and messages in any order, the audit never
    reports an incomplete bucket (time window of a topic) as complete. In the end it reports every
    complete bucket as complete."""
    for seed in seeds(RUNS):
        world, complete = _run(seed, faults)
        assert complete == world.expected_complete(), f"seed {seed}"


@promise("6 complete", "6 lateness", "clocks reach of a loss")
@pytest.mark.parametrize(
    "faults",
    [
        Faults(lost_rows=True),
        Faults(doubled_rows=True),
        Faults(lost_rows=True, doubled_rows=True),
        Faults(deletes=True),
        Faults(deletes=True, lost_rows=True),
        Faults(deletes=True, latenesses=True, steps=120),
        Faults(lost_messages=True, lost_rows=True),
        Faults(restores=True, old_files=False),
        Faults(restores=True, lost_rows=True, clock_steps=True),
        Faults(drains=True, lost_rows=True),
        Faults(drains=True, lost_messages=True, lost_rows=True, steps=120),
        Faults(clocks=True, lost_rows=True),
        Faults(clocks=True, lost_messages=True, lost_rows=True),
        Faults(clocks=True, deletes=True),
        Faults(clocks=True, clock_steps=True, deletes=True, old_files=False),
        Faults(clocks=True, clock_steps=True, restores=True, old_files=False),
        Faults(clocks=True, clock_steps=True, drains=True),
        Faults(rules=True, lost_rows=True, doubled_rows=True),
        Faults(rules=True, deletes=True, lost_messages=True, lost_rows=True),
        Faults(rules=True, restores=True, old_files=False),
    ],
    ids=lambda faults: "+".join(
        name for name in Faults.__dataclass_fields__ if getattr(faults, name) is True
    ),
)
def test_faults_never_make_a_bucket_falsely_complete(faults: Faults, seeds: Seeds) -> None:
    """Even if rows are lost or doubled, files are deleted, messages are lost, or older states of
    the agent are restored, the audit never reports an incomplete bucket (time window) as
    complete."""
    _run_all(seeds(RUNS), faults)


@promise("6 last word")
@pytest.mark.parametrize("faults", [Faults(drains=True), Faults(drains=True, old_files=False)])
def test_what_an_agent_delivered_that_left_for_good_is_complete(
    faults: Faults, seeds: Seeds
) -> None:
    """If an agent has sent its last word (a final seal of its counts) and is retired, its buckets
    become complete without a further seal. A bucket is a time window of a topic."""
    for seed in seeds(RUNS):
        world, complete = _run(seed, faults, World.leave)
        assert complete == world.expected_complete(), f"seed {seed}"


@promise("6 checksum")
def test_a_loss_and_a_double_in_one_bucket_do_not_cancel(seeds: Seeds) -> None:
    """If one row of a bucket (time window) is lost and another row is doubled, the bucket's number
    of rows is right, but the audit does not report the bucket as complete. The schedules contain
    such cases."""
    fooled = 0
    for seed in seeds(RUNS):
        world, complete = _run(seed, Faults(lost_rows=True, doubled_rows=True))
        counted: dict[int, int] = defaultdict(int)
        for message in world.all_messages:
            if isinstance(message, Delta) and message.sender.tier is Tier.HDFS:
                for count in message.counts:
                    counted[count.bucket] += count.count
        written: dict[int, int] = defaultdict(int)
        for line in world.lines:
            written[line.bucket] += 1
        short = {line.bucket for line in world.lines if line.number not in world.rows}
        fooled += len({b for b in short if counted[b] == written[b]})
        assert not short & complete
    assert fooled > 0


@promise("6 complete", "clocks expiry")
@pytest.mark.parametrize("clocks", [False, True])
def test_a_rebuild_from_an_expired_topic_is_never_falsely_complete(
    clocks: bool, seeds: Seeds
) -> None:
    """If a collector's store is rebuilt, the collector reports no incomplete bucket (time window)
    as complete, however many messages at the beginning of the audit topic have expired."""
    for seed in seeds(RUNS):
        faults = Faults(lost_rows=True, deletes=True, clocks=clocks)
        world, complete = _run(seed, faults)
        for kept in range(0, len(world.all_messages), 7):
            rebuilt = world.judge(world.all_messages[kept:])
            assert not world.wrong, f"seed {seed}, from message {kept}: {world.wrong}"
            assert rebuilt <= complete, f"seed {seed}, from message {kept}"


def _blind_to_touches(evidence: Evidence) -> None:
    """Makes the audit ignore a seal's `at`, which is the number of the last delta that the agent
    had made when it noted the seal. A seal should not count for a bucket if a later delta has
    counts of the bucket. With this change, the seal counts for such buckets, too.
    """
    for seals in evidence.topic(LOGS).seals.values():
        seals[:] = [seal._replace(at=10**9) for seal in seals]


def _blind_to_missing_rows(evidence: Evidence) -> None:
    """Makes the audit accept that records are missing in a tier, as long as no more records are
    missing than rules have left out."""
    for by_agent in evidence.topic(LOGS).tallies.values():
        tallies = by_agent.get(AGENT, {})
        agents = [x for key, x in tallies.items() if key.tier is Tier.AGENT]
        whole = sum((x.sums for x in agents), Sums())
        out = sum(each.records for each in whole.filtered)
        for key, tally in tallies.items():
            if key.tier is not Tier.AGENT and 0 < whole.count - tally.sums.count <= out:
                tallies[key] = replace(tally, sums=replace(whole, filtered=()))


def _forget_left_out(evidence: Evidence) -> None:
    """Makes the audit forget the records that rules left out."""
    for tallies in evidence.topic(LOGS).tallies.values():
        for by_sender in tallies.values():
            for key, tally in by_sender.items():
                by_sender[key] = replace(tally, sums=replace(tally.sums, filtered=()))


def _blind_to_rosters(evidence: Evidence) -> None:
    """Makes the audit ignore the roster (the list of expected hosts), so that an agent's last word
    (its final seal) counts even if the audit still expects the host."""
    for seals in evidence.topic(LOGS).seals.values():
        seals[:] = [seal._replace(sealed_until=10**9) if seal.final else seal for seal in seals]


def _shorten_losses(evidence: Evidence, by_ms: int) -> None:
    for notes in evidence.topic(LOGS).losses.values():
        notes[:] = [
            replace(x, loss=replace(x.loss, from_bucket=x.loss.from_bucket + by_ms))
            for x in notes
            if x.loss.from_bucket is not None
        ] + [x for x in notes if x.loss.from_bucket is None]


def _blind_to_the_agents_lateness(evidence: Evidence) -> None:
    evidence.bounds.clear()


def _blind_to_epochs(evidence: Evidence) -> None:
    """Makes the audit ignore epochs, as if the message numbers of an agent's new epoch continued
    the numbers of the old epoch."""
    one = SenderKey(Tier.AGENT, str(AGENT), 1)
    topic = evidence.topic(LOGS)
    for seals in topic.seals.values():
        ahead = [(seal, 1_000 * (seal.epoch - 1)) for seal in seals]
        seals[:] = [SealNote(1, x.number + n, x.sealed_until, x.at + n) for x, n in ahead]
    for tallies in (x for by_agent in topic.tallies.values() for x in by_agent.values()):
        for key in [x for x in tallies if x.tier is Tier.AGENT]:
            tally, ahead_by = tallies.pop(key), 1_000 * (key.epoch - 1)
            sums = tally.sums + (tallies[one].sums if one in tallies else Sums())
            last = tally.last + ahead_by
            tallies[one] = Tally(sums, 1, last, checksum.signed(link(last) - link(0)))
    for key in [x for x in evidence.senders if x.tier is Tier.AGENT]:
        numbers = evidence.senders.pop(key)
        evidence.senders[one] = replace(numbers, missing=None, first=1)


@promise("6 last word", "6 lateness", "clocks due")
@pytest.mark.parametrize(
    ("faults", "first"),
    [
        (Faults(blind=_blind_to_touches), 214),
        (Faults(deletes=True, blind=blind_to_losses), 6),
        (Faults(deletes=True, latenesses=True, steps=120, agents_word=True), 207),
        (Faults(deletes=True, latenesses=True, steps=120, blind=_blind_to_the_agents_lateness), 3),
        (Faults(lost_messages=True, lost_rows=True, blind=blind_to_holes), 171),
        (Faults(clock_steps=True, old_files=False, own_clock=False), 1061),
        (Faults(restores=True, old_files=False, blind=_blind_to_epochs), 12),
        (Faults(lost_rows=True, doubled_rows=True, blind=blind_to_checksums), 0),
        (Faults(drains=True, hasty_drains=True), 27),
        (Faults(drains=True, silent_returns=True), 382),
        (Faults(drains=True, deaf_drains=True), 382),
        (Faults(drains=True, blind=_blind_to_rosters), 960),
        (Faults(rules=True, lost_rows=True, blind=_blind_to_missing_rows), 7),
        (Faults(rules=True, blind=_forget_left_out), 0),
    ],
    ids=[
        "no-at",
        "no-losses",
        "losses-by-the-agents-lateness-alone",
        "losses-by-our-lateness-alone",
        "no-holes",
        "no-own-clock",
        "no-epochs",
        "no-checksums",
        "last-words-too-early",
        "last-words-not-taken-back",
        "last-words-over-what-was-seen",
        "last-words-of-expected-hosts",
        "left-out-lines-excuse-missing-rows",
        "left-out-lines-are-not-shown",
    ],
)
def test_the_schedules_reach_what_each_rule_forbids(faults: Faults, first: int) -> None:
    """The schedules are able to find errors: if the audit does not apply one of its rules, some
    schedules lead to a false verdict "complete", and the model notices this. To save time, the
    search begins at a seed (`first`) that leads to such a verdict."""
    with pytest.raises(AssertionError, match="seed"):
        _run_all(range(first, first + 2_000), faults)
