"""Many consumer groups that commit offsets at the same time, for tests and measurements of the
group coordinator."""

from __future__ import annotations

import selectors
import socket
import struct

from skidway.kafka.protocol.frames import request_frame, response_body
from skidway.kafka.protocol.messages import decode, encode
from skidway.kafka.protocol.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)

VERSION = 8
_LENGTH = struct.Struct(">i")


class CommittingGroups:
    """Consumer groups that have one connection each. Over its connection, a group commits an offset
    for every partition of a topic. The groups have no members: they commit like consumers that
    assign partitions to themselves and do not join a group."""

    def __init__(self, port: int, topic: str, partitions: int, groups: int) -> None:
        self.names = [f"press-{number}" for number in range(groups)]
        self._topic, self._partitions = topic, partitions
        self._sockets = [socket.create_connection(("127.0.0.1", port), 60) for _ in self.names]
        self._selector = selectors.DefaultSelector()
        for number, each in enumerate(self._sockets):
            self._selector.register(each, selectors.EVENT_READ, number)

    def send(self, number: int, offset: int) -> None:
        """Sends a request in which the group with this number commits `offset` for every
        partition."""
        partitions = tuple(
            OffsetCommitRequestPartition(partition_index=each, committed_offset=offset)
            for each in range(self._partitions)
        )
        topic = OffsetCommitRequestTopic(name=self._topic, partitions=partitions)
        request = OffsetCommitRequest(group_id=self.names[number], topics=(topic,))
        body = encode(request, VERSION)
        self._sockets[number].sendall(request_frame(request.API, VERSION, offset, "press", body))

    def answered(self, timeout_s: float) -> list[tuple[int, set[int]]]:
        """Waits at most `timeout_s` for answers. Returns the number of each group whose answer has
        arrived, with the error codes in this answer."""
        found = []
        for key, _ in self._selector.select(timeout_s):
            frame = self._frame(self._sockets[key.data])
            body = response_body(memoryview(frame), OffsetCommitRequest.API, VERSION)
            answer = decode(OffsetCommitResponse, body, VERSION)
            codes = {each.error_code for topic in answer.topics for each in topic.partitions}
            found.append((key.data, codes))
        return found

    def close(self) -> None:
        self._selector.close()
        for each in self._sockets:
            each.close()

    def _frame(self, connection: socket.socket) -> bytes:
        (size,) = _LENGTH.unpack(self._exactly(connection, _LENGTH.size))
        return self._exactly(connection, size)

    def _exactly(self, connection: socket.socket, size: int) -> bytes:
        data = b""
        while len(data) < size:
            more = connection.recv(size - len(data))
            if not more:
                raise ConnectionResetError("the broker closed the connection")
            data += more
        return data
