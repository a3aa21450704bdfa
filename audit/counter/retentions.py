"""Reports to the audit how long the brokers keep the records of the counted topics. The report is a
note, a message that changes no verdict (see audit.topic.notes)."""

from __future__ import annotations

from collections.abc import Mapping

from skidway import log
from skidway.audit.topic import notes
from skidway.audit.topic.messages import Sender
from skidway.audit.topic.notes import Note
from skidway.audit.topic.retention import KIND, body_of, known_ms
from skidway.clock import Clock
from skidway.errors import Unreachable
from skidway.kafka.client import Client
from skidway.kafka.errors import KafkaError
from skidway.kafka.source import Source

TELL_EVERY_S = 300.0
ASK_AGAIN_S = 30.0

_log = log.get(__name__)


class Retentions:
    """Makes the note that reports how long the brokers keep records: when the note is due, asks the
    brokers for the settings of the topics."""

    def __init__(self, client: Client, sender: Sender, clock: Clock) -> None:
        self._client = client
        self._sender = sender
        self._clock = clock
        self._tell_at = clock.monotonic()

    def due(self, number: int, topics: Mapping[str, Source]) -> bytes | None:
        """If a note is due and a topic is counted, asks the brokers, and returns the bytes of the
        note. Returns None in all other cases, and also if the brokers do not answer. After a
        failure, a later call asks the brokers again. number: the number of the counter's last
        numbered message. topics: the source topic of each counted topic, by the counted topic's
        name in the cluster.
        """
        now = self._clock.monotonic()
        if now < self._tell_at or not topics:
            return None
        self._tell_at = now + ASK_AGAIN_S
        try:
            settings = self._client.topic_configs(sorted(topics))
        except (KafkaError, Unreachable) as error:
            _log.warning("retention_not_asked", reason=str(error))
            return None
        self._tell_at = now + TELL_EVERY_S
        known = {topics[name]: known_ms(each) for name, each in settings.items() if name in topics}
        body = body_of({source: ms for source, ms in known.items() if ms is not None})
        who, now_ms = self._sender, self._clock.time_ms()
        return notes.encode(
            Note(KIND, who.producer, who.host, who.cluster, who.epoch, number, now_ms, body)
        )
