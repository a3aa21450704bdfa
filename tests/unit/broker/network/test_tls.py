"""Tests TLS in the broker's loop. Each client has one end of a socket pair. Handshakes are computed
in the loop's thread, unless a test says otherwise."""

from __future__ import annotations

import ssl
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from cryptography.x509.oid import ExtendedKeyUsageOID
from prometheus_client import REGISTRY

from skidway.broker.log.partition_log import PartitionLog
from skidway.broker.network import handshakes
from skidway.broker.network.connection import OUTBOX_BYTES_MAX
from skidway.broker.network.frame_memory import FrameMemory
from skidway.broker.network.listener_tls import ListenerTls
from skidway.broker.network.loop import UNSENT_BYTES_MIN
from skidway.broker.network.transport import TlsTransport
from skidway.broker.network.unauthenticated import PATIENCE_S
from skidway.kafka.errors import FrameTooLarge
from skidway.kafka.protocol import fetch_request, fetch_response, produce
from skidway.kafka.protocol.apis import ApiKey
from skidway.kafka.protocol.create_topics import CreatableTopic, CreateTopicsRequest
from skidway.kafka.protocol.frames import FrameReader, request_frame, response_body
from skidway.kafka.protocol.messages import encode
from skidway.kafka.types import TopicPartition
from skidway.security.contexts import ClientAuth, TlsFiles, client_context
from skidway.security.principals import PrincipalRules
from skidway.security.tls_socket import SEALED_BYTES_MAX, TlsSocket
from support.batches import sized
from support.broker_core import BrokerCore, CoreClient, broker_core
from support.certificates import Authority, Pair

BATCH_BYTES = 300_000


class Site:
    """A broker core with an authority and a certificate."""

    def __init__(self, core: BrokerCore, folder: Path) -> None:
        self.core, self.folder = core, folder
        self.authority = Authority(folder)
        self.server = self.authority.sign("server")

    def tls(
        self, clients: ClientAuth = "none", crl: Path | None = None, rules: str = "DEFAULT"
    ) -> ListenerTls:
        own = self.server
        files = TlsFiles(own.certificate, own.key, self.authority.certificate, crl)
        return ListenerTls(files, clients, PrincipalRules(rules))

    def context(self, pair: Pair | None = None) -> ssl.SSLContext:
        own = (pair.certificate, pair.key) if pair else (None, None)
        return client_context(TlsFiles(*own, ca=self.authority.certificate))

    def connect(self, tls: ListenerTls, pair: Pair | None = None) -> CoreClient:
        return self.core.connect_tls(tls, self.context(pair))

    def begin(self, tls: ListenerTls) -> TlsSocket:
        """Connects, and sends the first message of a handshake."""
        client = TlsSocket(self.core.open("SSL", tls), self.context(), server_hostname="localhost")
        client.advance()
        client.flush()
        return client

    def refused(self, tls: ListenerTls, context: ssl.SSLContext) -> str:
        """Connects, and returns why the broker has refused the client, as the metric names it."""
        before = dict(self.core.loop.handshakes.failed)
        try:
            client = self.core.connect_tls(tls, context)
            client.answers()  # TLS 1.3 tells the alert after the client's handshake
            assert client.is_closed
        except OSError:
            pass
        failed = self.core.loop.handshakes.failed
        (reason,) = (each for each in failed if failed[each] != before.get(each, 0))
        return reason


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    with broker_core(tmp_path / "logs") as core:
        client = core.connect()
        wanted = CreateTopicsRequest(topics=(CreatableTopic(name="logs", num_partitions=1),))
        assert client.ask(request_frame(wanted.API, 5, 1, "test", encode(wanted, 5)))
        client.close()
        yield Site(core, tmp_path)


def produced(client: CoreClient, data: bytes | bytearray) -> int:
    """Sends a batch. Returns its offset."""
    answer = client.ask(produce_frame(data))
    assert answer is not None
    body = response_body(memoryview(answer), ApiKey.PRODUCE, 7)
    (result,) = produce.parse_response(body, 7).results
    assert result.error_code == 0
    return result.base_offset


def produce_frame(data: bytes | bytearray) -> bytes:
    buffers = [produce.TopicBuffers("logs", 0, (bytes(data),))]
    return b"".join(bytes(each) for each in produce.write_request(1, "t", 7, -1, 1000, buffers))


def fetch_frame(offset: int, size: int = 64 << 20) -> bytes:
    wanted = [fetch_request.FetchTarget("logs", 0, offset, size)]
    return fetch_request.write_request(1, "t", 11, fetch_request.Fetch(wanted, 0, 1, size))


def records(answer: bytes) -> bytes:
    body = response_body(memoryview(answer), ApiKey.FETCH, 11)
    return bytes(fetch_response.parse_response(body, 11).partitions[0].records)


def test_requests_and_answers_pass(site: Site) -> None:
    """Produce and Fetch work over TLS as without it: whatever the size, all bytes of the file
    arrive, and each request is answered once, also if many come at once."""
    client = site.connect(site.tls())
    for number in range(20):
        assert produced(client, sized(BATCH_BYTES)) == number
    client.send(fetch_frame(0))
    found: list[bytes] = []
    while not found:
        site.core.turn()
        found = client.answers()
    log = site.core.broker.logs.logs[TopicPartition("logs", 0)]
    assert records(found[0]) == log.active.path.read_bytes()[: 20 * BATCH_BYTES]
    client.send(produce_frame(sized(100)) * 500)
    answers: list[bytes] = []
    while len(answers) < 500:
        site.core.turn()
        answers += client.answers()
    assert produced(client, sized(100)) == 520


def test_bytes_that_wait_in_memory_are_handled_without_an_event(site: Site) -> None:
    """If one receive of the socket yields more plain bytes than the loop takes at once, the loop
    comes back for the rest by itself."""
    client = site.connect(site.tls())
    client.send(produce_frame(sized(100)) * 3000)
    answers: list[bytes] = []
    for _ in range(3000):
        site.core.turn()
        answers += client.answers()
        if len(answers) == 3000:
            break
    assert len(answers) == 3000


def test_a_client_that_does_not_read_is_bounded(site: Site) -> None:
    """A client that reads no answers gets no more than a bounded number of bytes into memory,
    sealed ones included, and they are part of the memory of all unread answers."""
    client = site.connect(site.tls())
    for _ in range(20):
        produced(client, sized(BATCH_BYTES))
    client.send(fetch_frame(0) * 50)
    site.core.advance(0)
    (connection,) = site.core.loop.connections.values()
    assert connection.transport.has_sealed
    assert site.core.loop.unsent.total > UNSENT_BYTES_MIN
    assert connection.unsent_bytes < 3 * SEALED_BYTES_MAX + OUTBOX_BYTES_MAX
    read = 0
    while read < 50:
        site.core.turn()
        read += len(client.answers())
    site.core.advance(0)
    assert site.core.loop.unsent.total == 0


def test_an_answer_whose_file_cannot_be_read_ends_the_connection(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If a segment is shorter than an answer needs, the connection is closed and the partition
    stopped, as without TLS."""
    client = site.connect(site.tls())
    for _ in range(5):
        produced(client, sized(BATCH_BYTES))
    log: PartitionLog = site.core.broker.logs.logs[TopicPartition("logs", 0)]
    log.active.file_cut(100_000)
    client.send(fetch_frame(0))
    site.core.advance(0)
    client.answers()
    assert site.core.closed_for("unreadable") == 1


@pytest.mark.parametrize("whole", [True, False])
def test_an_end_is_a_disconnection(site: Site, whole: bool) -> None:
    """A client that leaves is gone, whether it ends TLS or only TCP."""
    client = site.connect(site.tls())
    if whole:
        client.close()
    else:
        client._transport._tls.socket.close()  # type: ignore[attr-defined]
    site.core.advance(0)
    assert site.core.closed_for("disconnected") == 2  # with the client of the fixture
    assert not site.core.loop.connections


def test_a_request_may_come_with_the_end_of_the_handshake(site: Site) -> None:
    """A request that arrives in the same segment as the last bytes of the handshake is answered."""
    ours = TlsSocket(site.core.open("SSL", site.tls()), site.context(), server_hostname="localhost")
    while not ours.advance():
        ours.flush()
        site.core.advance(0)
        ours.receive_sealed()
    ours._tls.write(fetch_frame(0))
    ours.flush()
    site.core.advance(0)
    client = CoreClient(site.core, TlsTransport(ours))
    assert len(client.answers()) == 1
    client.close()


@pytest.mark.parametrize("step", [1, 7, 1000])
def test_records_cut_at_every_byte(site: Site, step: int) -> None:
    """A client whose bytes arrive in pieces of any size, from the first byte of the handshake, is
    served."""
    sock = site.core.open("SSL", site.tls())
    ours = TlsSocket(sock, site.context(), server_hostname="localhost")

    def drip() -> None:
        sealed = ours._outgoing.read() + b"".join(bytes(each) for each in ours._sealed)
        ours._sealed.clear()
        for at in range(0, len(sealed), step):
            sock.send(sealed[at : at + step])
            site.core.turn()
            site.core.turn()

    while not ours.advance():
        drip()
        ours.receive_sealed()
    ours._tls.write(produce_frame(sized(3000)))
    drip()
    client = CoreClient(site.core, TlsTransport(ours))
    site.core.advance(0)
    assert len(client.answers()) == 1
    client.close()


class Refused:
    """The clients that are refused, by the reason that the metric has."""

    def untrusted(self, site: Site) -> ssl.SSLContext:
        (site.folder / "other").mkdir()
        return site.context(Authority(site.folder / "other").sign("stranger"))

    def expired(self, site: Site) -> ssl.SSLContext:
        return site.context(site.authority.sign("old", ends=timedelta(days=-1)))

    def revoked(self, site: Site) -> ssl.SSLContext:
        return site.context(Pair(site.folder / "thief.pem", site.folder / "thief.key"))

    def no_certificate(self, site: Site) -> ssl.SSLContext:
        return site.context()

    def refused(self, site: Site) -> ssl.SSLContext:
        (site.folder / "other").mkdir()
        other = Authority(site.folder / "other")
        return client_context(TlsFiles(ca=other.certificate))

    def no_rule(self, site: Site) -> ssl.SSLContext:
        return site.context(site.authority.sign("nobody"))


@pytest.mark.parametrize("reason", [each for each in vars(Refused) if not each.startswith("_")])
def test_clients_are_refused_by_their_certificate(
    site: Site, reason: str, caplog: pytest.LogCaptureFixture
) -> None:
    """A client without a certificate, or with one that is not good, is refused in the handshake, is
    counted by the reason, and is named in the log with address, listener and reason, once."""
    crl = site.authority.revoke(site.authority.sign("thief"))
    tls = site.tls("required", crl, rules="RULE:CN=(?!nobody)(.*)/$1/")
    context = getattr(Refused(), reason)(site)
    assert [site.refused(tls, context), site.refused(tls, context)] == [reason, reason]
    (said,) = (vars(x)["skidway_fields"] for x in caplog.records if x.message == "handshake_failed")
    assert (said["address"], said["listener"]) == ("test", "SSL")
    assert said["reason"]
    assert not site.core.loop.connections


@pytest.mark.parametrize("hello", [b"GET / HTTP/1.1\r\n\r\n", fetch_frame(0)])
def test_a_client_without_tls_is_refused(site: Site, hello: bytes) -> None:
    """A client that speaks without TLS to a listener with TLS is refused, and counted as such. It
    gets an alert of TLS, so that it can say what is wrong; our client does."""
    sock = site.core.open("SSL", site.tls())
    sock.send(hello)
    site.core.advance(0)
    assert site.core.loop.handshakes.failed == {"plain": 1}
    frames = FrameReader(1 << 20)
    count = sock.recv_into(frames.space())
    with pytest.raises(FrameTooLarge, match="the peer speaks TLS, this side does not"):
        list(frames.received(count))
    sock.close()


def test_each_reason_is_a_line_of_the_log(site: Site, caplog: pytest.LogCaptureFixture) -> None:
    """A failed handshake is in the log once in ten minutes for each address, listener and reason:
    clients of an address that fail for different reasons are all named."""
    tls = site.tls("required")
    stranger = Authority(site.folder, "other").sign("stranger")
    usage = ExtendedKeyUsageOID.SERVER_AUTH
    server = site.authority.sign("usage", usage=usage)
    for pair in (stranger, server, stranger, server):
        assert site.refused(tls, site.context(pair)) == "untrusted"
    lines = [vars(x)["skidway_fields"] for x in caplog.records if x.message == "handshake_failed"]
    assert [each["reason"].partition(": ")[2] for each in lines] == [
        "it is not signed by a trusted authority (ssl.ca.location)",
        "unsuitable certificate purpose (ssl.ca.location)",
    ]


def test_tls_to_a_listener_without_it_is_named(site: Site) -> None:
    """A client that speaks TLS to a listener without TLS is closed for this reason."""
    sock = site.core.open("PLAINTEXT")
    ours = TlsSocket(sock, site.context(), server_hostname="localhost")
    ours.advance()
    ours.flush()
    site.core.advance(0)
    assert site.core.closed_for("UnexpectedTls") == 1
    sock.close()


def test_an_old_version_of_tls_is_refused(site: Site) -> None:
    """TLS 1.1 is refused."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.set_ciphers("DEFAULT:@SECLEVEL=0")
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    with pytest.warns(DeprecationWarning, match="TLSv1_1"):
        context.minimum_version, context.maximum_version = (ssl.TLSVersion.TLSv1_1,) * 2
    assert site.refused(site.tls(), context) == "tls"


def test_the_connection_knows_its_principal(site: Site) -> None:
    """A connection has the principal that the rules make of the name in its certificate; without a
    certificate it is anonymous."""
    tls = site.tls("requested", rules="RULE:CN=(.*),OU=(.*)/$2/L")
    site.connect(tls)
    site.connect(tls, site.authority.sign("web1", unit="Agents"))
    principals = [each.identity.principal for each in site.core.loop.connections.values()]
    assert principals == ["User:ANONYMOUS", "User:agents"]


def test_a_slow_handshake_is_closed(site: Site) -> None:
    """A client that does not complete its handshake in ten seconds is closed, and frees its place,
    however busily it sends."""
    tls = site.tls()
    socks = [site.core.open("SSL", tls) for _ in range(3)]
    ours = TlsSocket(socks[0], site.context(), server_hostname="localhost")
    ours.advance()
    hello = ours._outgoing.read()
    for second in range(12):
        if second < 9:
            socks[0].send(hello[second : second + 1])
        site.core.advance(1)
    assert site.core.loop.handshakes.failed == {"late": 3}
    assert len(site.core.loop.handshakes) == 0
    for each in socks:
        each.close()


class Later:
    """Computes handshakes when the test says so, as a thread that is slow."""

    def __init__(self) -> None:
        self.jobs: list[Callable[[], None]] = []

    def submit(self, job: Callable[[], None], address: str) -> None:
        self.jobs.append(job)

    def close(self) -> None:
        pass


def test_what_a_thread_computes_too_late_is_nothing(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While a thread works for a connection, the loop does not touch its TLS: a connection that is
    closed meanwhile for its deadline ends without it, and what the thread brings is dropped."""
    later = Later()
    monkeypatch.setattr(site.core.loop.handshakes, "_workers", later)
    sock = site.core.open("SSL", site.tls())
    ours = TlsSocket(sock, site.context(), server_hostname="localhost")
    ours.advance()
    ours.flush()
    site.core.advance(0)
    assert len(later.jobs) == 1
    ours.socket.send(b"more")  # wakes nobody
    site.core.advance(0)
    assert len(later.jobs) == 1
    for _ in range(12):
        site.core.advance(1)
    assert site.core.loop.handshakes.failed == {"late": 1}
    later.jobs[0]()
    site.core.advance(0)
    assert (site.core.loop.connections, site.core.loop.traffic.failed_calls) == ({}, 0)
    sock.close()


def test_handshakes_have_a_limit(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """At max.connections.unauthenticated, the first client that has sent nothing for half a second
    gives way to a newcomer, who is closed if there is none. Complete connections do not count."""
    loop = site.core.loop
    monkeypatch.setattr(loop.unauthenticated._held, "limit", 10)
    tls = site.tls()
    for _ in range(12):
        site.connect(tls)
    open_ends = [site.core.open("SSL", tls) for _ in range(12)]
    assert len(loop.handshakes) == 10
    assert loop.traffic.refused == 2
    site.core.advance(PATIENCE_S)
    assert produced(site.connect(tls), sized(100)) == 0
    assert loop.handshakes.failed == {"crowded": 1}
    assert len(loop.handshakes) == 9
    for each in open_ends:
        each.close()


def test_handshakes_share_their_memory(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """Handshakes that have begun need a limited amount of memory. Further clients wait, with their
    bytes in the kernel, and get through when a handshake ends, or its client is slow."""
    monkeypatch.setattr(
        site.core.loop.handshakes, "_memory", FrameMemory(20 * handshakes.HANDSHAKE_BYTES)
    )
    tls, open_ends = site.tls(), []
    for _ in range(21):
        open_ends.append(site.core.open("SSL", tls))
        open_ends[-1].send(b"\x16\x03\x01")
        site.core.advance(0)
    early, late = site.begin(tls), site.begin(tls)
    site.core.advance(PATIENCE_S / 2)
    with pytest.raises(BlockingIOError):
        early.receive_sealed()
    for each in open_ends[:2]:
        each.close()
    site.core.advance(0)
    assert site.core.loop.handshakes.failed == {"disconnected": 2}
    early.receive_sealed()
    assert early.advance()
    with pytest.raises(BlockingIOError):
        late.receive_sealed()
    site.core.advance(1)
    assert site.core.loop.handshakes.failed == {"disconnected": 2, "crowded": 1}
    late.receive_sealed()
    assert late.advance()
    for each in (*open_ends[2:], early.socket, late.socket):
        each.close()


def test_a_bug_in_a_handshake_is_alone(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """An exception that nobody expects closes the connection whose handshake it was."""

    def mistake(*_: object) -> Any:
        raise RuntimeError

    with monkeypatch.context() as patch:
        patch.setattr(ListenerTls, "identify", mistake)
        assert site.refused(site.tls(), site.context()) == "failed"
    assert produced(site.connect(site.tls()), sized(100)) == 0


def test_replaced_files_are_used(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """A new certificate is shown to the next client. If its file is damaged, the last good one
    stays in use, and the problem is told."""
    tls = site.tls()
    site.authority.sign("server", ends=timedelta(days=9))
    assert tls.look() is None
    left_s = REGISTRY.get_sample_value(
        "skidway_certificate_expires_seconds", {"file": str(site.server.certificate)}
    )
    assert left_s is not None
    assert 8 * 86_400 < left_s <= 9 * 86_400
    assert produced(site.connect(tls), sized(100)) == 0
    good = site.server.certificate.read_bytes()
    site.server.certificate.write_bytes(b"no certificate")
    tls.look()
    assert "ssl.certificate.location" in tls.problem
    assert produced(site.connect(tls), sized(100)) == 1
    site.server.certificate.write_bytes(good)
    tls.look()
    assert tls.problem == ""


def test_a_new_revocation_list_closes_open_connections(site: Site) -> None:
    """Connections whose certificate is in a new list are closed, those of others stay."""
    crl = site.authority.revoke()
    tls = site.tls("required", crl)
    good, thief = site.authority.sign("good"), site.authority.sign("thief")
    for each in (good, thief, good):
        site.connect(tls, each)
    site.authority.revoke(thief)
    revoked = tls.look()
    assert revoked is not None
    site.core.loop.drop_revoked(revoked)
    assert len(site.core.loop.connections) == 2
    assert site.core.closed_for("revoked") == 1
    assert tls.look() is None


def test_a_resumed_session_is_the_same_client(site: Site) -> None:
    """A client of TLS 1.2 that resumes its session is not asked for its certificate again, and has
    the same principal. After a new revocation list, old sessions count for nothing."""
    crl = site.authority.revoke()
    tls = site.tls("required", crl)
    context = site.context(site.authority.sign("web1"))
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    first = site.core.connect_tls(tls, context)
    produced(first, sized(100))
    session = tls_of(first).session
    assert session is not None

    def resumed() -> bool:
        ours = TlsSocket(site.core.open("SSL", tls), context, server_hostname="localhost")
        ours._tls.session = session
        while not ours.advance():
            ours.flush()
            site.core.advance(0)
            ours.receive_sealed()
        ours.flush()
        site.core.advance(0)
        again = CoreClient(site.core, TlsTransport(ours))
        produced(again, sized(100))
        *_, newest = site.core.loop.connections.values()
        assert newest.identity.principal == "User:CN=web1"
        reused = bool(ours._tls.session_reused)
        again.close()
        return reused

    assert resumed()
    site.authority.revoke()
    tls.look()
    assert not resumed()


def tls_of(client: CoreClient) -> ssl.SSLObject:
    return client._transport._tls._tls  # type: ignore[attr-defined,no-any-return]
