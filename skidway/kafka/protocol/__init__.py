"""The Kafka wire protocol without I/O, for brokers and clients alike.

The modules of this package decode memoryviews into messages, and encode messages into bytes or
lists of buffers. They use no socket, no clock and no log. A ``ProtocolError`` is raised for a
message that does not have exactly the form of its version. For example, the message is too short or
too long, a length points past the end of the message, or a text is not UTF-8. Before a length is
used, it is compared with the number of bytes that are present.

Reading order::

    primitives.py    MessageReader, write functions: integers, varints, strings, arrays, tags
    cursor.py        reads of the same types at a position, for the hand-written parsers
    apis.py          ApiKey, VersionRange, choose: versions that a broker offers or a client wants
    messages.py      how a class with typed fields becomes a decoder and an encoder per version
    frames.py        length prefix, request and response headers, FrameReader
    pieces.py        the pieces of a response: bytes, and slices of files
    api_versions.py metadata.py produce.py fetch.py list_offsets.py create_topics.py
    delete_topics.py create_partitions.py init_producer_id.py find_coordinator.py join_group.py
    sync_group.py heartbeat.py leave_group.py offset_commit.py offset_fetch.py list_groups.py
    describe_groups.py delete_groups.py offset_delete.py describe_configs.py alter_configs.py
    incremental_alter_configs.py delete_records.py offset_for_leader_epoch.py describe_log_dirs.py
    describe_cluster.py sasl_handshake.py sasl_authenticate.py describe_acls.py create_acls.py
    delete_acls.py describe_user_scram_credentials.py alter_user_scram_credentials.py
                     one file per API: the request and the response as frozen dataclasses
    fetch_request.py fetch_response.py
                     Fetch's hot path; Produce's is in produce.py

Messages
--------
A message is a frozen, slotted, keyword-only dataclass. Its fields have Kafka's names (in snake
case) and say in which versions they exist. If a version does not have a field, the field is left
out on writing and has its default on reading. If leaving out a field that is set would change the
meaning of a request, ``encode`` raises an error. Nested structures have the names of Kafka's
message definitions. ::

    body = encode(MetadataRequest(topics=(MetadataRequestTopic(name="logs"),)), version=5)
    request = decode(MetadataRequest, view, version=5)      # raises ProtocolError

``encode`` and ``decode`` write and read the body; headers and the length prefix are in ``frames``.

A broker
--------
::

    for frame in ...:              # a memoryview without the length, from skidway.broker.network
        header, body = read_request_header(frame)
        # header.api_key, .api_version, .correlation_id, .client_id
        ...
        sock.send(response_frame(header, encode(response, header.api_version)))

    # hot paths: no dataclasses, no copies
    request = produce.parse_request(body, version)
    # .transactional_id .acks .timeout_ms .data = [TopicRecords(topic, partition, records), ...]
    frame = produce.write_response(correlation_id, version, [ProduceResult(...)])
    request = fetch_request.parse_request(body, version)
    # .replica_id .max_wait_ms .min_bytes .max_bytes ... .wanted = [FetchTarget(...)]
    results = [FetchResult(..., records=(slice_,))]
    pieces = fetch_response.write_response(correlation_id, version, results)
    # list of bytes | memoryview | FileSlice: bytes are sent, a FileSlice goes to os.sendfile

``api_versions.answer(version, ranges)`` makes the ApiVersions body. For an unsupported version, it
makes a body of version 0 with error 35. The header of an ApiVersions response never has a tag
section; ``response_frame`` takes care of this. If a request has an unknown key, a malformed body or
(except in ApiVersions) a version that the broker does not offer, the broker closes the connection.
Versions 0-2 of Produce are offered, but answered only with UNSUPPORTED_VERSION. A broker decodes
requests with ``may_have_more=True``, because librdkafka leaves trailing bytes after one kind of
request.

A client
--------
::

    version = choose(ApiKey.METADATA, broker_ranges)    # may raise UnsupportedVersion
    sock.sendall(request_frame(ApiKey.METADATA, version, correlation_id, client_id, body))
    reader = FrameReader(limit_bytes)
    count = sock.recv_into(reader.space())
    for frame in reader.received(count):                # valid while you hold a reference
        correlation_id = peek_correlation_id(frame)     # which request this answers
        body = response_body(frame, api_key, version)
        response = decode(MetadataResponse, body, version)

    buffers = produce.write_request(correlation_id, client_id, version, acks, timeout_ms,
                                    [TopicBuffers("logs", 0, (batch,))])   # for sendmsg, no join
    response = produce.parse_response(body, version)    # .results = [ProduceResult(...)]
    frame = fetch_request.write_request(correlation_id, client_id, version, Fetch(...))
    response = fetch_response.parse_response(body, version)     # .partitions = [FetchedPartition]
                                                        # .records is a memoryview, not a copy

Errors
------
The errors are in ``skidway.kafka.errors``. ``ProtocolError`` means that the peer's bytes are wrong,
so the connection must be closed; its subclasses are ``Truncated``, ``TrailingBytes``, ``BadValue``,
``FrameTooLarge`` and ``UnknownApi``. ``UnsupportedVersion`` means that client and broker have no
common version, or that a message cannot be written or read in a version. ``encode`` raises
``ValueError`` for a value that does not fit its field.
"""

from __future__ import annotations

from skidway.kafka.protocol.apis import ApiKey, VersionRange, choose, flexible
from skidway.kafka.protocol.frames import (
    FrameReader,
    RequestHeader,
    peek_correlation_id,
    read_request_header,
    request_frame,
    response_body,
    response_frame,
)
from skidway.kafka.protocol.messages import Message, Request, Response, decode, encode

__all__ = [
    "ApiKey",
    "FrameReader",
    "Message",
    "Request",
    "RequestHeader",
    "Response",
    "VersionRange",
    "choose",
    "decode",
    "encode",
    "flexible",
    "peek_correlation_id",
    "read_request_header",
    "request_frame",
    "response_body",
    "response_frame",
]
