"""The commands `skidway registry` and `skidway schemas` work as real processes."""

from __future__ import annotations

import contextlib
import http.client
import json
import socket
from pathlib import Path
from select import select

from skidway.http.server import CONNECTIONS_MAX
from skidway.schemas.client import RegistryClient
from skidway.schemas.registry.rest import BODY_BYTES_MAX, CONTENT_TYPE
from skidway.schemas.registry.rest.application import WAITING_MAX
from support.processes import WITHIN_S, eventually, free_port, run_skidway, running
from support.registry import Registry
from support.slow_http_clients import HEAD, asked, slow_clients
from support.zookeeper import ZooKeeper

V1 = {"type": "record", "name": "User", "fields": [{"name": "name", "type": "string"}]}
BROKEN = {**V1, "fields": [*V1["fields"], {"name": "must", "type": "int"}]}


def file(folder: Path, schema: object) -> str:
    path = folder / "schema.avsc"
    path.write_text(schema if isinstance(schema, str) else json.dumps(schema))
    return str(path)


def test_the_schemas_verbs(registry: Registry, tmp_path: Path) -> None:
    """`skidway schemas register`, `list`, `get` and `check` work. If a schema is incompatible,
    `register` and `check` name the field and exit with status 1."""
    at = ("--registry", registry.url)
    done = run_skidway("schemas", "register", *at, "users-value", file(tmp_path, V1))
    assert (done.returncode, done.stdout) == (0, "users-value version 1 has id 1\n")
    done = run_skidway("schemas", "list", *at, "--json")
    assert json.loads(done.stdout) == [{"subject": "users-value", "version": 1, "id": 1}]
    done = run_skidway("schemas", "get", *at, "users-value")
    assert json.loads(done.stdout) == V1
    assert json.loads(run_skidway("schemas", "get", *at, "--id", "1").stdout) == V1
    done = run_skidway("schemas", "check", *at, "users-value", file(tmp_path, V1))
    assert done.returncode == 0
    done = run_skidway("schemas", "check", *at, "users-value", file(tmp_path, BROKEN))
    assert done.returncode == 1
    assert "must: version 1 does not have this field" in done.stdout
    assert "oldSchema" not in done.stdout
    done = run_skidway("schemas", "register", *at, "users-value", file(tmp_path, BROKEN))
    assert done.returncode == 1
    assert "must: version 1 does not have this field" in done.stdout


def test_mistakes_are_one_sentence(registry: Registry, tmp_path: Path) -> None:
    """If a schema cannot be parsed, or a subject or file is missing, `skidway schemas` prints one
    sentence and exits with the status for this kind of mistake."""
    at = ("--registry", registry.url)
    for arguments, status, words in (
        (("schemas", "register", *at, "s", file(tmp_path, '{"type": "recor"}')), 1, "recor"),
        (("schemas", "get", *at, "none"), 1, "Subject 'none' not found"),
        (("schemas", "get", *at), 2, "Name a subject"),
        (("schemas", "check", *at, "s", str(tmp_path / "missing")), 2, "Cannot read"),
        (("schemas", "list", "--registry", "nonsense"), 78, "no URL of a schema registry"),
    ):
        done = run_skidway(*arguments)
        assert done.returncode == status, arguments
        assert words in done.stderr
        assert len(done.stderr.splitlines()) == 1


def test_an_unreachable_registry_is_status_3() -> None:
    """If the registry cannot be reached, `skidway schemas list` gives up after a bounded time,
    prints the registry's address, and exits with status 3."""
    url = f"http://127.0.0.1:{free_port()}"
    done = run_skidway("schemas", "list", "--registry", url)
    assert done.returncode == 3
    assert url in done.stderr


def test_what_keeps_the_registry_from_starting(registry: Registry, zookeeper: str) -> None:
    """If the port is in use, the listener is malformed or the compatibility level is unknown, the
    registry prints one sentence. It exits with status 1 if the port is in use, and with status 78
    in the other two cases."""
    for settings, status, words in (
        (
            (f"listeners={registry.url}", f"zookeeper.connect={zookeeper}"),
            1,
            f"cannot listen on {registry.url.removeprefix('http://')}: address already in use",
        ),
        (("listeners=ftp://127.0.0.1:1",), 78, "is not http://host:port"),
        (("listeners=https://127.0.0.1:1",), 78, "ssl.certificate.location is missing"),
        (("authentication.method=BASIC",), 78, "authentication.users.file is missing"),
        (("schema.compatibility.level=SOME",), 78, "must be one of"),
        (("listener=x",), 78, "listeners"),
    ):
        options = [option for each in settings for option in ("--set", each)]
        done = run_skidway("registry", "run", *options)
        assert done.returncode == status, done
        assert words in done.stderr


def test_validate_says_what_would_run() -> None:
    """`registry validate` prints the address at which the registry would listen, and does not start
    the registry."""
    done = run_skidway("registry", "validate")
    assert done.returncode == 0
    assert "http://127.0.0.1:8081" in done.stdout


def test_it_stops_cleanly_with_a_connection_open(registry: Registry) -> None:
    """After SIGTERM the registry exits with status 0, even if a client keeps its connection
    open."""
    RegistryClient(registry.url).register("s", json.dumps(V1))
    connection = http.client.HTTPConnection("127.0.0.1", registry.port, timeout=60)
    connection.request("GET", "/subjects")
    assert connection.getresponse().read() == b'["s"]'
    assert registry.program.stop() == 0
    connection.close()


def test_metrics_count_what_was_asked(registry: Registry) -> None:
    """The registry's metrics count requests by route and status. The labels contain no subjects."""
    client = RegistryClient(registry.url)
    client.register("some-subject", json.dumps(V1))
    connection = http.client.HTTPConnection("127.0.0.1", registry.metrics_port, timeout=60)
    connection.request("GET", "/metrics")
    text = connection.getresponse().read().decode()
    connection.close()
    assert "skidway_schemas_ids 1.0" in text
    assert 'route="/subjects/{subject}/versions",status="200"} 1.0' in text
    assert "some-subject" not in text


def test_a_head_that_never_ends_gives_its_connection_back(registry: Registry) -> None:
    """If a client sends nothing over its connection, or only the head of a request, byte by byte,
    the registry closes the connection after a limited time. It still answers other clients."""
    with (
        socket.create_connection(("127.0.0.1", registry.port), 60) as fresh,
        socket.create_connection(("127.0.0.1", registry.port), 60) as silent,
    ):
        assert not _drip(fresh)
        assert eventually(lambda: _drip(fresh), every_s=0.5, what="it is closed")
        silent.settimeout(WITHIN_S)
        assert silent.recv(1) == b""
        assert RegistryClient(registry.url).subjects() == []


def test_what_is_no_http_is_answered_in_the_registrys_form(registry: Registry) -> None:
    """If a request is not HTTP, the registry sends an answer with error_code and message, and
    closes the connection."""
    with socket.create_connection(("127.0.0.1", registry.port), 60) as connection:
        connection.sendall(b"nonsense\r\n\r\n")
        answer = b""
        while part := connection.recv(4096):
            answer += part
    head, _, body = answer.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 400 ")
    assert CONTENT_TYPE.encode() in head
    assert json.loads(body)["error_code"] == 400


def test_it_ends_while_zookeeper_is_away(tmp_path: Path) -> None:
    """If the registry gets SIGTERM while ZooKeeper is down, the registry exits without waiting for
    ZooKeeper."""
    server = ZooKeeper(tmp_path)
    with running(server.program, server.ready):
        registry = Registry(server.address, tmp_path)
        with running(registry.program, registry.ready):
            server.program.kill()
            assert registry.program.stop() == 0


def _drip(connection: socket.socket) -> bool:
    """Sends one more byte of a request's head. Returns whether the registry has closed the
    connection."""
    try:
        connection.sendall(b"G")
        connection.settimeout(0.01)
        return connection.recv(1) == b""
    except TimeoutError:
        return False
    except OSError:
        return True


def test_the_registry_is_there_for_others(registry: Registry) -> None:
    """More half requests than the registry may have at once, and more half heads than it has
    connections, keep nobody from registering and reading. A request that names another host reads
    and changes nothing."""
    ours = RegistryClient(registry.url)
    for kind, count in (("half a body", WAITING_MAX + 50), ("half a head", CONNECTIONS_MAX + 50)):
        with slow_clients(registry.port, kind, count) as go_on:
            for _ in range(3):
                assert ours.register(f"{count}-value", json.dumps(V1)) == 1
                assert asked(registry.port, "/subjects")[0] == 200
                go_on()
    status, _, body = asked(registry.port, "/subjects", f"evil.example:{registry.port}")
    assert (status, json.loads(body)["error_code"]) == (421, 421)
    assert "allowed.hosts" in body
    page = {"Host": "evil.example", "Origin": "http://evil.example"}
    connection = http.client.HTTPConnection("127.0.0.1", registry.port, timeout=60)
    connection.request("DELETE", f"/subjects/{count}-value", headers=page)
    assert connection.getresponse().status == 421
    connection.close()
    assert f"{count}-value" in ours.subjects()


def test_large_schemas_keep_nobody_out(registry: Registry) -> None:
    """While one address sends more large schemas than may wait, and leaves, others are answered,
    and the registry keeps within half of its memory (MemoryMax of its unit)."""
    assert RegistryClient(registry.url).register("good-value", json.dumps(V1)) == 1
    items = {"type": "array", "items": {"type": "array", "items": "int"}}
    fields = [{"name": "f", "type": items, "default": [[]] * (BODY_BYTES_MAX // 3 - 200)}]
    large = json.dumps({"type": "record", "name": "R", "fields": fields}, separators=(",", ":"))
    body = json.dumps({"schema": large}).encode()
    assert BODY_BYTES_MAX - 1000 < len(body) <= BODY_BYTES_MAX
    head = HEAD + b"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body)
    with contextlib.ExitStack() as stack:
        many = [socket.create_connection(("127.0.0.1", registry.port), 60) for _ in range(60)]
        for each in many:
            stack.enter_context(each).sendall(head + body)
        for path in ("/schemas/ids/1", "/subjects") * 5:
            assert asked(registry.port, path, source="127.0.0.2")[0] == 200
        parsed = b"HTTP/1.1 422"
        eventually(lambda: any(each.recv(12) == parsed for each in select(many, [], [], 1)[0]))
    status = Path(f"/proc/{registry.program.pid}/status").read_text()
    assert int(status.partition("VmHWM:")[2].split()[0]) < 512 << 10
