"""Follows one source cluster, inside the broker's loop.

`MirrorSource` works in rounds. Every `mirror.metadata.interval.ms` it asks for the source cluster's
topics (`topics`), and creates a follower for each mirror partition that this broker leads. Between
two rounds it fetches records for the followers.

In a turn of the loop, a MirrorSource does nothing if no data has arrived from its cluster and none
of its deadlines has come. So a broker that mirrors thousands of partitions can still serve its own
clients.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from random import random

from skidway.broker.mirror.bounds import BoundsQuestion, Missed
from skidway.broker.mirror.followed import Followed, GapFound
from skidway.broker.mirror.positions import Positions
from skidway.broker.mirror.progress import Commit, Progress
from skidway.broker.mirror.rounds import Creation, Extension, Mirroring, Plan
from skidway.broker.mirror.surroundings import Ask, Local, SourceClient
from skidway.broker.mirror.topics import SourceTopics, TopicQuestion
from skidway.clock import Clock
from skidway.kafka.client.connection import Answer

Question = TopicQuestion | BoundsQuestion | Commit
Output = Ask[Question] | GapFound | Creation | Extension | Plan


class MirrorSource:
    """One source cluster. Only the loop's thread may use it. In each turn of the loop, `turn` is
    called before the writes if `is_due`, and `written` after the writes if `has_appended`.

    Its parts say what is to be done. Only a MirrorSource asks the source and has this broker's
    topics changed, and it passes each answer to the part that has asked.
    """

    def __init__(
        self,
        mirroring: Mirroring,
        client: SourceClient,
        local: Local,
        clock: Clock,
        jitter: Callable[[], float] = random,
    ) -> None:
        self.topics = SourceTopics(mirroring, local, clock)
        self.missed = Missed()
        self.progress = Progress(f"mirror-{mirroring.here}")
        self.positions = Positions(client, clock)
        self.followed = Followed(self.positions, local, clock, jitter)
        self.broken = ""
        """The bug that has stopped the mirroring of this source; empty if no bug has stopped it."""
        self._client = client
        self._local = local
        self._clock = clock
        self._questions: dict[int, Question] = {}  # by the client's tickets
        self._deadline: float | None = None

    def begin_round(self) -> None:
        """Asks for the source's topics again."""
        self._carry_out(self.topics.begin_round())

    def ready(self, fd: int, readable: bool, writable: bool) -> None:
        """Called when one of the client's descriptors is ready."""
        self._client.ready(fd, readable, writable)

    @property
    def is_due(self) -> bool:
        """Whether `turn` has something to do."""
        if self.broken:
            return False
        if self._client.has_news:
            return True
        return self._deadline is not None and self._clock.monotonic() >= self._deadline

    def turn(self) -> None:
        """Reads the data that has arrived, decides what to do with it, and carries out the
        decisions."""
        self.positions.begin_turn()
        now = self._clock.monotonic()
        if now >= self.progress.due:
            self._carry_out(self.progress.turn(now, self.followed.offsets()))
        turn = self._client.turn()
        for fetched in turn.fetched:
            self._carry_out(self.followed.fetched(fetched))
        for tp, error in turn.stopped:
            self._carry_out(self.followed.halted(tp, error))
        for tp, why in turn.interrupted.items():
            self.followed.interrupted(tp, why)
        for answer in turn.answers:
            self._carry_out(self._answered(self._questions.pop(answer.ticket), answer))

    @property
    def has_appended(self) -> bool:
        """Whether `written` has something to do."""
        return self.followed.has_appended and not self.broken

    def written(self) -> None:
        """Called after the writes of a turn of the loop. By now the batches that `turn` has
        appended are in the files, or their appends were undone."""
        self.followed.written()

    def next_deadline(self) -> float | None:
        """Returns the time at which the next turn is due even if no data arrives (monotonic
        seconds).
        """
        if self.broken:
            return None
        times = [self.positions.deadline, self._client.next_deadline]
        if self.followed.partitions:
            times.append(self.progress.due)
        self._deadline = min((each for each in times if each is not None), default=None)
        return self._deadline

    def give_up(self, reason: str) -> None:
        """Stops following this source cluster. The mirror topics keep the records that were
        appended."""
        self.broken = reason
        self._client.close()

    def close(self) -> None:
        """Closes the connections."""
        self._client.close()

    @property
    def last_failure(self) -> str:
        """A sentence that says why the source did not answer the last request for its topics. If
        the source did answer, the sentence says why the newest failed connection has failed.
        """
        return self.topics.failure or self._client.last_failure

    def _answered(self, question: Question, answer: Answer) -> Iterable[Output]:
        if isinstance(question, TopicQuestion):
            return self.topics.answered(question, answer)
        if isinstance(question, Commit):
            self.progress.answered(question, answer)
            return []
        if question.attempt is None:
            return self.missed.answered(question, answer)
        return self.followed.bounds_answered(question.attempt, question, answer)

    def _carry_out(self, outputs: Iterable[Output]) -> None:
        for output in outputs:
            if isinstance(output, Ask):
                ticket = self._client.ask(output.call, output.address)
                self._questions[ticket] = output.question
            elif isinstance(output, GapFound):
                named = partial(self.followed.gap_named, output)
                self._local.name_gap(output.topic, output.gap, named)
            elif isinstance(output, Creation):
                self._local.create(output, partial(self.topics.changed, output.name))
            elif isinstance(output, Extension):
                changed = partial(self.topics.changed, output.name)
                self._local.extend(output.topic, output.partitions, changed)
            else:
                self._follow(output)

    def _follow(self, plan: Plan) -> None:
        self._carry_out(self.followed.follow(plan))
        stopped = {tp for tps in plan.unmirrored.values() for tp in tps}
        stopped |= {tp for tp, each in self.followed.partitions.items() if each.is_stopped}
        self._carry_out(self.missed.begin_round({tp: self.topics.leader(tp) for tp in stopped}))
