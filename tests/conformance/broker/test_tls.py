"""A real broker with TLS bounds what strangers cost, and says in one sentence what is wrong."""

from __future__ import annotations

import contextlib
import re
import socket
import ssl
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from skidway.kafka.protocol.api_versions import ApiVersionsRequest
from skidway.kafka.protocol.frames import request_frame
from skidway.kafka.protocol.messages import encode
from skidway.security.contexts import TlsFiles, client_context
from skidway.security.tls_socket import TlsSocket
from support.brokers import TlsBroker
from support.processes import Program, eventually, run_skidway
from support.tls_records import Flood

HALF_OPEN = 2_000
PAGE = (Path(__file__).parents[3] / "docs/security.md").read_text()


@pytest.fixture
def broker(tmp_path: Path, zookeeper: str) -> Iterator[TlsBroker]:
    made = TlsBroker(tmp_path, zookeeper, "required")
    yield made
    made.end()


def most_bytes(broker: TlsBroker) -> int:
    """Returns how much memory the broker has ever had."""
    status = Path(f"/proc/{broker.program.pid}/status").read_text()
    found = re.search(r"VmHWM:\s+(\d+) kB", status)
    assert found is not None
    return int(found[1]) << 10


def connection(broker: TlsBroker, address: str) -> socket.socket:
    """Connects from this address."""
    at = ("127.0.0.1", broker.tls_port)
    return socket.create_connection(at, source_address=(address, 0))


def served(broker: TlsBroker) -> bool:
    """Returns whether a good client gets through its handshake."""
    own = TlsFiles(broker.pair.certificate, broker.pair.key, broker.authority.certificate)
    context = client_context(own)
    with (
        contextlib.suppress(OSError),
        socket.create_connection(("127.0.0.1", broker.tls_port)) as s,
    ):
        context.wrap_socket(s, server_hostname="localhost").close()
        return True
    return False


@pytest.mark.parametrize("left_out", [1, 0])
def test_half_open_connections_need_little_memory(broker: TlsBroker, left_out: int) -> None:
    """2,000 clients that stop in their first message, or before their second, each at an address of
    its own, and those that come in the place of the slowest, need less than 64 MB, and are closed
    at their deadline. Meanwhile a client that goes on is served."""
    broker.start()
    assert served(broker)
    before = most_bytes(broker)
    context = client_context(TlsFiles(ca=broker.authority.certificate))
    with contextlib.ExitStack() as open_ends:
        for number in range(HALF_OPEN):
            sock = open_ends.enter_context(
                connection(broker, f"127.1.{number % 250}.{number // 250}")
            )
            tls = TlsSocket(sock, context, server_hostname="localhost")
            tls.advance()
            hello = tls._outgoing.read()
            sock.sendall(hello[: len(hello) - left_out])
        eventually(lambda: served(broker))
        assert all(served(broker) for _ in range(20))
        eventually(lambda: broker.metric("skidway_broker_connections_unauthenticated") == 0)
        assert most_bytes(broker) - before < 64 << 20


def test_records_without_data_keep_nobody_out(broker: TlsBroker, tmp_path: Path) -> None:
    """Clients that send nothing but updates of their keys are closed again and again; meanwhile
    others are served."""
    broker.start()
    own = TlsFiles(broker.pair.certificate, broker.pair.key, broker.authority.certificate)
    with (
        Flood(broker.tls_port, client_context(own), tmp_path / "first") as first,
        Flood(broker.tls_port, client_context(own), tmp_path / "second") as second,
    ):
        assert all(served(broker) for _ in range(20))
        assert first.is_closed.wait(60)
        assert second.is_closed.wait(60)


@pytest.mark.parametrize("step", [61, 500])
def test_a_request_that_stops_anywhere_is_answered(broker: TlsBroker, step: int) -> None:
    """A broker that has got a part of a request, which ends inside of a record or between two,
    handles the request when the rest comes."""
    broker.start()
    own = TlsFiles(broker.pair.certificate, broker.pair.key, broker.authority.certificate)
    context, request = client_context(own), ApiVersionsRequest()
    frame = request_frame(request.API, 0, 1, "c" * 4000, encode(request, 0))
    with contextlib.ExitStack() as open_ends:
        ends = [
            open_ends.enter_context(contextlib.closing(connected(broker, context)))
            for _ in range(2)
        ]

        def sealed(size: int) -> bytes:
            for at in range(0, len(frame), size):
                ends[0]._tls.write(frame[at : at + size])
            return ends[0]._outgoing.read()

        for size in (300, 1500, 5000):
            cut, whole = 1, 5000
            while cut < whole:
                data = sealed(size)
                whole = len(data)
                ends[0].socket.sendall(data[:cut])
                ends[1].send(frame)
                answered(ends[1])  # so the broker has got the part
                ends[0].socket.sendall(data[cut:])
                answered(ends[0])
                cut += step


def connected(broker: TlsBroker, context: ssl.SSLContext) -> TlsSocket:
    sock = socket.create_connection(("127.0.0.1", broker.tls_port), timeout=60)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    tls = TlsSocket(sock, context, server_hostname="localhost")
    while not tls.advance():
        tls.flush()
        tls.receive_sealed()
    tls.flush()
    return tls


def answered(tls: TlsSocket) -> None:
    """Receives one answer."""
    space = memoryview(bytearray(1 << 16))
    count = tls.recv_into(space[:4])
    assert count == 4
    size, got = int.from_bytes(space[:4]), 0
    while got < size:
        got += tls.recv_into(space[: size - got])


def test_the_commands_of_the_page_work(broker: TlsBroker, tmp_path: Path) -> None:
    """With the files that the commands in docs/security.md make, a client is accepted until its
    certificate is revoked, and its open connection is then closed."""
    section = PAGE.partition("## Encrypted listeners")[2].partition("\n## ")[0]
    make, first_list, revoke = re.findall(r"```sh\n(.*?)```", section, re.DOTALL)

    def run(commands: str) -> None:
        subprocess.run(["bash", "-e", "-c", commands], cwd=folder, check=True, capture_output=True)

    folder = tmp_path / "tls"
    folder.mkdir()
    run(make + first_list)
    files = {"certificate": "broker.pem", "key": "broker.key", "ca": "ca.pem", "crl": "ca.crl"}
    broker.settings |= {f"ssl.{key}.location": folder / name for key, name in files.items()}
    broker.start()
    own = TlsFiles(folder / "web1.pem", folder / "web1.key", folder / "ca.pem")
    with socket.create_connection(("127.0.0.1", broker.tls_port)) as sock:
        sealed = client_context(own).wrap_socket(sock, server_hostname="localhost")
        eventually(lambda: broker.metric("skidway_broker_handshakes_total") == 1)
        run(revoke)
        with contextlib.suppress(ConnectionResetError):
            assert sealed.recv(1) == b""
        sealed.close()
    assert broker.metric('skidway_broker_connections_closed_total{reason="revoked"}') == 1


def test_what_is_wrong_is_said_in_one_sentence(broker: TlsBroker, tmp_path: Path) -> None:
    """A broker whose certificate cannot be used does not start: it says which file is wrong, with
    status 78, and so does `validate`."""
    own = Path(str(broker.settings["ssl.key.location"]))
    other = broker.authority.sign("other").key
    own.write_bytes(other.read_bytes())
    program = Program(broker.command(), tmp_path / "refused.out")
    assert program.start().wait() == 78
    words = f"ssl.certificate.location: {own.with_suffix('.pem')} and {own} cannot be used"
    assert words in program.output()
    sets = broker.command()[broker.command().index("run") + 1 :]
    done = run_skidway("broker", "validate", *sets)
    assert (done.returncode, "ssl.certificate.location" in done.stderr) == (78, True)


def test_a_command_without_tls_says_what_speaks_at_the_port(broker: TlsBroker) -> None:
    """A command that speaks without TLS to a listener with TLS says so, with status 3."""
    broker.start()
    done = run_skidway("topics", "list", "--bootstrap-server", broker.tls_address)
    assert done.returncode == 3
    assert "the peer speaks TLS, this side does not" in done.stderr


def test_the_metrics_tell_of_the_certificate(broker: TlsBroker) -> None:
    """The metrics say in how many seconds the certificate expires, and count handshakes."""
    broker.start()
    assert served(broker)
    certificate = broker.settings["ssl.certificate.location"]
    left_s = broker.metric(f'skidway_certificate_expires_seconds{{file="{certificate}"}}')
    assert 0 < left_s <= 86_400
    eventually(lambda: broker.metric("skidway_broker_handshakes_total") == 1)
