"""Reads an example of the rejected lines of each topic for the pages, on a thread of its own.

The text is what the agent's rules (`shape`) have let it send to `<topic>.rejected`. It is short and
printable (see rejected_examples in package schemas.consuming). The thread reads from the brokers
whose audit topics the collector reads. Every LOOK_EVERY_S seconds, it reads one line for each topic
that has a newer bucket with rejects, for at most TOPICS_MAX topics. If the brokers cannot be
reached, the pages show the earlier examples. Judging and answers never wait for this thread.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Final

from skidway import log
from skidway.audit.counts.topic_patterns import REJECTED_SUFFIX
from skidway.audit.judgement.standing import Standing, TopicStanding
from skidway.audit.judgement.verdict import BucketVerdict
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
"""By topic of rejects, a line that agents rejected."""

NO_EXAMPLES: Final[Examples] = MappingProxyType({})

_log = log.get(__name__)


class RejectExamples:
    """One thread calls `look`. `found` is an immutable value, which other threads read. connect:
    makes a client of the brokers. standing: the newest standing."""

    def __init__(self, connect: Callable[[], Client], standing: Callable[[], Standing]) -> None:
        self._connect = connect
        self._standing = standing
        self._looked: dict[Source, int] = {}
        self._is_away = False
        self.found: Examples = NO_EXAMPLES

    def look(self) -> None:
        """Reads an example for each topic that has a newer bucket with rejects than at the last
        look. Logs once if the brokers cannot be reached."""
        wanted = _wanted(self._standing())
        found = {x: self.found[x] for x in wanted if x in self.found}
        self._looked = {x: at for x, at in self._looked.items() if x in wanted}
        new = [x for x in wanted.values() if self._looked.get(x.source) != x.bucket]
        try:
            if new:
                with self._connect() as client:
                    for verdict in new:
                        example = _example(client, verdict)
                        self._looked[verdict.source] = verdict.bucket
                        if example is not None:
                            found[verdict.source] = example
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
        thread.join(STOP_WITHIN_S)  # it may wait for a broker, and owns nothing that is stored


def _wanted(standing: Standing) -> dict[Source, BucketVerdict]:
    """The newest bucket with rejects of each topic of rejects, of the topics with most rejects."""
    found: dict[Source, BucketVerdict] = {}
    rejects = [x for x in standing.topics if x.source.topic.endswith(REJECTED_SUFFIX) and x.records]
    for topic in sorted(rejects, key=lambda x: -x.records)[:TOPICS_MAX]:
        newest = _newest(topic)
        if newest is not None:
            found[topic.source] = newest
    return found


def _newest(topic: TopicStanding) -> BucketVerdict | None:
    found = [x for x in topic.newest.values() if x.records]
    return max(found, key=lambda x: x.bucket, default=None)


def _example(client: Client, verdict: BucketVerdict) -> RejectedExample | None:
    topic = topic_here(client, verdict.source)
    if topic is None:
        return None
    until = verdict.bucket + verdict.bucket_ms
    return rejected_example(client, topic, Wanted(since=verdict.bucket, until=until))
