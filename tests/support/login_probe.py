"""Sends the requests of a login in and out of order to all listeners of a secured cluster, and
returns what it answers."""

from __future__ import annotations

import ssl
from typing import Final, NamedTuple

from skidway.kafka.errors import ErrorCode
from skidway.kafka.protocol import Request, Response
from skidway.kafka.protocol.api_versions import ApiVersionsRequest, ApiVersionsResponse
from skidway.kafka.protocol.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from skidway.kafka.protocol.sasl_authenticate import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
)
from skidway.kafka.protocol.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
from skidway.security.contexts import TlsFiles
from support.raw_client import RawClient, TlsClient
from support.secured_cluster import PLAIN_USER, SecuredCluster, port_of


class Step(NamedTuple):
    """A request, and how it is sent."""

    request: Request
    version: int
    answer: type[Response]


def _handshake(mechanism: str) -> Step:
    return Step(SaslHandshakeRequest(mechanism=mechanism), 1, SaslHandshakeResponse)


def _message(text: str) -> Step:
    return Step(SaslAuthenticateRequest(auth_bytes=text.encode()), 2, SaslAuthenticateResponse)


RIGHT: Final = f"\0{PLAIN_USER}\0{PLAIN_USER} secret"
METADATA: Final = MetadataRequest(
    topics=(MetadataRequestTopic(name="missing"),), allow_auto_topic_creation=False
)
STEPS: Final = {
    "ApiVersions": Step(ApiVersionsRequest(), 0, ApiVersionsResponse),
    "Metadata": Step(METADATA, 11, MetadataResponse),
    "handshake": _handshake("PLAIN"),
    "handshake for SCRAM": _handshake("SCRAM-SHA-512"),
    "old handshake": Step(SaslHandshakeRequest(mechanism="PLAIN"), 0, SaslHandshakeResponse),
    "handshake for none": _handshake("NONE"),
    "right": _message(RIGHT),
    "wrong": _message(f"\0{PLAIN_USER}\0guessed"),
    "unknown": _message("\0nobody\0guessed"),
    "as another": _message(f"other{RIGHT}"),
    "empty": _message(""),
    "nonsense": _message("nonsense"),
}
WITH_LOGIN: Final = (
    "Metadata",
    "ApiVersions, Metadata",
    "ApiVersions, ApiVersions, handshake, right, Metadata",
    "right",
    "old handshake",
    "handshake, Metadata",
    "handshake, ApiVersions",
    "handshake, handshake",
    "handshake, right, Metadata",
    "handshake, right, right",
    "handshake, right, handshake, right, Metadata",
    "handshake, right, handshake, right, handshake, Metadata",
    "handshake, right, handshake for SCRAM, right",
    "handshake, right, handshake, wrong, Metadata",
    "handshake, right, handshake, Metadata",
    "handshake, wrong, handshake",
    "handshake, unknown, Metadata",
    "handshake, as another",
    "handshake, empty",
    "handshake, nonsense",
    "handshake for SCRAM, right",
    "handshake for none, handshake",
)
WITHOUT: Final = ("Metadata", "handshake", "right", "handshake, Metadata", "right, Metadata")


def logins(cluster: SecuredCluster) -> dict[str, str]:
    """Returns the answers to each sequence of requests."""
    cluster.add_user(PLAIN_USER)
    authority, pair = cluster.authority.certificate, cluster.authority.sign("user")
    found = {}
    for steps in WITH_LOGIN:
        with TlsClient(port_of(cluster.address), TlsFiles(ca=authority)) as client:
            found[f"SASL_SSL: {steps}"] = _answers(client, steps)
    for steps in WITHOUT:
        files = TlsFiles(pair.certificate, pair.key, authority)
        with TlsClient(port_of(cluster.mutual), files) as client:
            found[f"SSL: {steps}"] = _answers(client, steps)
        with RawClient(port_of(cluster.plain)) as client:
            found[f"PLAINTEXT: {steps}"] = _answers(client, steps)
    return found


def _answers(client: RawClient, steps: str) -> str:
    return ", ".join(_answer(client, STEPS[each]) for each in steps.split(", "))


def _answer(client: RawClient, step: Step) -> str:
    try:
        answer = client.ask(*step)
    except (ssl.SSLError, ConnectionError, EOFError):
        return "closed"
    if isinstance(answer, MetadataResponse):
        return ErrorCode(answer.topics[0].error_code).name
    return ErrorCode(getattr(answer, "error_code", 0)).name
