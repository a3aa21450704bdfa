"""Reads examples of the rejected lines and records of each topic for the pages, on a thread of its
own.

An agent's rules (`shape`) mask, hash or remove fields before the agent sends anything. This module
shows only what the agent has sent. For a line that the agent rejected, it shows the text in
`<topic>.rejected`; for a record that the loader rejected, it shows the text in the topic (see
loader_rejects). Texts are short and printable (see rejected_examples in package schemas.consuming).
The thread reads from the brokers whose audit topics the collector reads. Every LOOK_EVERY_S
seconds, it reads one line of each topic that has got a newer bucket with rejected lines since the
last reading. It also reads one record of each topic of which a newer load has rejected records.
Each time, it reads at most TOPICS_MAX lines and at most TOPICS_MAX records. If the brokers cannot
be reached, the pages show the earlier examples. Judging and answers never wait for this thread.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Final

from skidway import log
from skidway.audit.collector import loader_rejects
from skidway.audit.counts.topic_patterns import REJECTED_SUFFIX
from skidway.audit.judgement.standing import Standing, TopicStanding
from skidway.audit.judgement.verdict import BucketVerdict
from skidway.audit.topic.load_note import RejectedRecord
from skidway.audit.tracing.logs import topic_here
from skidway.errors import SkidwayError
from skidway.kafka.batch import CorruptBatch
from skidway.kafka.client import Client
from skidway.kafka.source import Source
from skidway.schemas.consuming.rejected_examples import RejectedExample, rejected_example
from skidway.schemas.consuming.rejected_lines import Wanted

TOPICS_MAX: Final = 50
LOOK_EVERY_S: Final = 30.0
FIRST_LOOK_S: Final = 5.0
STOP_WITHIN_S: Final = 5.0
REQUEST_TIMEOUT_MS: Final = 10_000

Examples = Mapping[Source, RejectedExample]
"""Examples by topic. For a topic of rejects, the example is a line that an agent rejected; for any
other topic, it is a record that the loader rejected."""

Rejected = Mapping[Source, RejectedRecord]
"""For each topic, the rejected record that the loader named in its newest note about a load with
rejects."""

NO_EXAMPLES: Final[Examples] = MappingProxyType({})

BucketKey = tuple[int, int]
"""The start and the length of a bucket, in ms."""

_log = log.get(__name__)


class RejectExamples:
    """Reads the examples. One thread calls `look`; other threads read `found`, which is an
    immutable value. connect: a function that makes a client of the brokers. standing, rejected:
    functions that return the newest verdicts, and the newest records that loaders rejected."""

    def __init__(
        self,
        connect: Callable[[], Client],
        standing: Callable[[], Standing],
        rejected: Callable[[], Rejected] = dict,
    ) -> None:
        self._connect = connect
        self._standing, self._rejected = standing, rejected
        self._looked: dict[Source, BucketKey | RejectedRecord] = {}
        self._is_away = False
        self.found: Examples = NO_EXAMPLES

    def look(self) -> None:
        """Reads an example for each topic that, since the last call, has got a newer bucket or load
        with rejects. Logs once if the brokers cannot be reached."""
        standing = self._standing()
        wanted: dict[Source, BucketKey | RejectedRecord] = {
            **_wanted_lines(standing), **_wanted_records(standing, self._rejected()),
        }  # fmt: skip
        found = {x: self.found[x] for x in wanted if x in self.found}
        self._looked = {x: at for x, at in self._looked.items() if x in wanted}
        new = {x: at for x, at in wanted.items() if self._looked.get(x) != at}
        try:
            if new:
                with self._connect() as client:
                    for source, at in new.items():
                        example = _example(client, source, at)
                        self._looked[source] = at
                        if example is not None:
                            found[source] = example
            self._is_away = False
        except (SkidwayError, CorruptBatch, OSError) as error:
            if not self._is_away:
                _log.warning("reject_examples_interrupted", reason=str(error))
            self._is_away = True
        self.found = MappingProxyType(found)


@contextlib.contextmanager
def reading(examples: RejectExamples, stopping: threading.Event) -> Iterator[None]:
    """Reads examples on a thread of its own while the `with` block runs."""

    def run() -> None:
        stopping.wait(FIRST_LOOK_S)
        while not stopping.is_set():
            examples.look()
            stopping.wait(LOOK_EVERY_S)

    thread = threading.Thread(target=run, name="reject-examples", daemon=True)
    thread.start()
    try:
        yield
    finally:
        stopping.set()
        thread.join(STOP_WITHIN_S)  # the thread may still wait for a broker, but stores nothing


def _wanted_lines(standing: Standing) -> dict[Source, BucketKey]:
    """For each topic of rejects, returns the newest bucket that has rejects. Takes at most
    TOPICS_MAX topics: those with the most rejects."""
    found: dict[Source, BucketKey] = {}
    rejects = [x for x in standing.topics if x.source.topic.endswith(REJECTED_SUFFIX) and x.records]
    for topic in sorted(rejects, key=lambda x: -x.records)[:TOPICS_MAX]:
        newest = _newest(topic)
        if newest is not None:
            found[topic.source] = newest.bucket, newest.bucket_ms
    return found


def _wanted_records(standing: Standing, named: Rejected) -> dict[Source, RejectedRecord]:
    """Returns the rejected record that the loader named last (see `Rejected`) for each topic. Takes
    at most TOPICS_MAX topics: those of which the loader rejected the most records."""
    rejecting = [x for x in standing.topics if x.rejects and x.source in named]
    lines = [x for x in rejecting if not x.source.topic.endswith(REJECTED_SUFFIX)]
    chosen = sorted(lines, key=lambda x: -x.rejects)[:TOPICS_MAX]
    return {x.source: named[x.source] for x in chosen}


def _newest(topic: TopicStanding) -> BucketVerdict | None:
    found = [x for x in topic.newest.values() if x.records]
    return max(found, key=lambda x: x.bucket, default=None)


def _example(
    client: Client, source: Source, at: BucketKey | RejectedRecord
) -> RejectedExample | None:
    if isinstance(at, RejectedRecord):
        return loader_rejects.example(client, source, at)
    topic = topic_here(client, source)
    if topic is None:
        return None
    begin, size = at
    return rejected_example(client, topic, Wanted(since=begin, until=begin + size))
