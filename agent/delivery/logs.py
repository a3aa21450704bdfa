"""Fetches, from the brokers, the logs of the partitions in which the agent looks for records of
intents.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from skidway.agent.delivery.read_back import Rows
from skidway.agent.delivery.search import Hole
from skidway.errors import SkidwayError, Unreachable
from skidway.kafka.batch import CorruptBatch
from skidway.kafka.client import EARLIEST, Client, Fetcher
from skidway.kafka.client.log_ends import LogEnds
from skidway.kafka.columns import decode_headers, unpack
from skidway.kafka.errors import KafkaError, OffsetOutOfRange
from skidway.kafka.types import TopicPartition

RESPONSE_BYTES = 1 << 20
"""The most bytes of one fetch response from each leader. The agent decodes each response within one
turn of its loop.
"""


class FetchedLogs:
    """Implements `skidway.agent.delivery.search.Logs`. The responses to fetch requests arrive while
    the producer waits for the responses to its own requests, because both use the connections of
    one client.
    """

    def __init__(self, sending: Client, asking: Client) -> None:
        """sending: the producer's client. asking: a client that soon gives up if a broker does not
        answer.
        """
        self._fetcher = Fetcher(sending, max_bytes=RESPONSE_BYTES)
        self._ends = LogEnds(sending)
        self._asking = asking
        self._asked_anew = False

    def begin(self, floors: Mapping[TopicPartition, int]) -> None:
        """Reads only the partitions in `floors`, each from the offset that `floors` gives."""
        self.end()
        for tp, floor in floors.items():
            self._fetcher.seek(tp, floor)

    def poll(self) -> Sequence[Rows | Hole]:
        """Returns the rows (records) that have arrived, and a `Hole` for each part of a log that
        cannot be read.
        """
        if self._asked_anew:
            self._ends.ask(self._fetcher.positions.keys() - self.read_up())
        news: list[Rows | Hole] = []
        try:
            fetched = self._fetcher.poll(0)
        except OffsetOutOfRange as error:
            return self._out_of_range(error)
        except (KafkaError, CorruptBatch) as error:
            stopped = self._fetcher.stopped
            assert stopped is not None
            self._fetcher.remove(stopped)
            return [Hole(stopped, f"the log cannot be read: {error}", is_over=True)]
        for part in fetched:
            for raw in part.batches:
                news += _rows(part.tp, raw)
        return news

    def ask_anew(self) -> None:
        """Forgets the high watermarks of the partitions, so that `read_up` waits for the new high
        watermarks in later responses, and for the ends of the logs."""
        self._asked_anew = True
        self._ends.forget()
        for tp, position in list(self._fetcher.positions.items()):
            self._go_on(tp, position)

    def read_up(self) -> set[TopicPartition]:
        """Returns the partitions that are read up to their high watermarks."""
        told = self._fetcher.high_watermarks
        positions = self._fetcher.positions
        read_up = {tp for tp, at in positions.items() if tp in told and at >= told[tp]}
        return {tp for tp in read_up if self._is_at_end(tp)} if self._asked_anew else read_up

    def end(self) -> None:
        """Stops reading."""
        self._asked_anew = False
        self._ends.forget()
        for tp in list(self._fetcher.positions):
            self._fetcher.remove(tp)

    def _is_at_end(self, tp: TopicPartition) -> bool:
        end = self._ends.end(tp)
        return end is not None and self._fetcher.positions[tp] >= end

    def _go_on(self, tp: TopicPartition, offset: int) -> None:
        self._fetcher.remove(tp)  # forgets the watermark and any response under way
        self._fetcher.seek(tp, offset)

    def _out_of_range(self, error: OffsetOutOfRange) -> list[Rows | Hole]:
        """Handles a log that begins after the requested offset, or ends before that offset. Returns
        a `Hole` for the missing offsets; an empty list if no broker has said yet where the log
        begins.
        """
        start = error.log_start_offset
        if start < 0:  # some brokers do not report where the log begins
            try:
                start = self._asking.list_offsets({error.tp: EARLIEST})[error.tp].offset
            except (Unreachable, KafkaError):
                self._go_on(error.tp, error.requested)  # the next fetch asks for this offset again
                return []
        if start > error.requested:
            self._go_on(error.tp, start)
            reason = f"{error.tp} begins at offset {start}: those from {error.requested} expired"
            return [Hole(error.tp, reason, is_over=False)]
        self._fetcher.remove(error.tp)
        reason = f"{error.tp} ends before offset {error.requested}, which was acknowledged"
        return [Hole(error.tp, reason, is_over=True)]


def _rows(tp: TopicPartition, raw: memoryview) -> list[Rows | Hole]:
    try:
        _, times, origins, has_origin = decode_headers([unpack(raw)])
    except SkidwayError as error:
        return [Hole(tp, f"a batch of {tp} cannot be read: {error}", is_over=False)]
    if origins is None or not has_origin.any():
        return []
    rows = np.flatnonzero(has_origin)
    columns = (origins.agent, origins.file, origins.first, origins.length, times)
    return [Rows(tp, *(column[rows] for column in columns))]
