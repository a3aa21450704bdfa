"""No command lets a control character through to a terminal, wherever the character comes from."""

from __future__ import annotations

import contextlib
import os
import pty
import subprocess
import termios
import threading
import tty
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from support.brokers import SkidwayBroker, skidway_broker
from support.fork_server import die_with_parent
from support.processes import WITHIN_S, run_skidway, skidway

__all__ = ["skidway_broker"]

HOSTILE = "\x1b]0;t\x07\x9b31m\r\x08\x7f\u202e\u2066\u200f"
LEGAL = "a\u202eb"
UNSAFE = {*map(chr, range(0x20)), *map(chr, range(0x7F, 0xA0)), *HOSTILE[13:]} - {"\n"}


def on_terminal(*arguments: str | bytes, input_text: str = "") -> str:
    """Runs `skidway ...` with a terminal as its standard output and standard error. Returns what
    arrives at the terminal."""
    ours, theirs = pty.openpty()
    tty.setraw(theirs, termios.TCSANOW)
    received = bytearray()

    def receive() -> None:
        with contextlib.suppress(OSError):  # the terminal is closed
            while data := os.read(ours, 1 << 16):
                received.extend(data)

    reader = threading.Thread(target=receive, daemon=True)
    reader.start()
    try:
        subprocess.run(
            [*skidway(), *arguments], stdout=theirs, stderr=theirs, input=input_text.encode(),
            timeout=WITHIN_S, check=False, preexec_fn=die_with_parent,
        )  # fmt: skip
    finally:
        os.close(theirs)
        reader.join(WITHIN_S)
        os.close(ours)
    return received.decode(errors="surrogateescape")


def check(said: str, *words: str) -> None:
    """Asserts that a text has all these words, and no control character but the end of a line."""
    found = {each for each in said if each in UNSAFE or "\ud800" <= each <= "\udfff"}
    assert not found, (found, said)
    for word in words:
        assert word in said, said


def hostile_file(folder: Path, content: bytes) -> Path:
    path = folder / f"x{HOSTILE}.log"
    path.write_bytes(content)
    return path


@pytest.mark.parametrize(
    "arguments",
    [
        [HOSTILE],
        ["agent", HOSTILE],
        ["agent", "run", f"--{HOSTILE}"],
        ["agent", "validate", "--config", f"/no/{HOSTILE}"],
        ["agent", "formats", HOSTILE],
        ["agent", "count", "--into", f"/proc/{HOSTILE}", f"/no/{HOSTILE}"],
        ["agent", "replay", f"/no/{HOSTILE}"],
        ["broker", "validate", "--set", f"{HOSTILE}=1"],
        ["broker", "dump-log", f"/no/{HOSTILE}"],
        ["load", "validate", "--config", f"/no/{HOSTILE}"],
        ["load", "status", "--json", "--set", f"output=/no/{HOSTILE}"],
        ["audit", "validate", "--set", f"policy.{HOSTILE}=1"],
        ["audit", "why", HOSTILE],
        ["registry", "validate", "--set", f"listeners={HOSTILE}"],
        ["schemas", "infer", f"/no/{HOSTILE}"],
        ["topics", "list", "--bootstrap-server", HOSTILE],
        ["unit", "show", HOSTILE],
        ["zookeeper", "validate", "--set", f"dataDir={HOSTILE}"],
    ],
    ids=lambda x: " ".join(x).replace(HOSTILE, "X"),
)
def test_arguments(arguments: list[str]) -> None:
    """An argument or a path is shown with escapes in sentences about it."""
    check(on_terminal(*arguments), "skidway" if len(arguments) < 2 else "")


def test_names_that_are_not_utf8(tmp_path: Path) -> None:
    """A byte of a file's name that is no UTF-8 (C1 in Latin 1) is shown with an escape."""
    name = os.fsencode(tmp_path) + b"/\x9b31m.log"
    check(on_terminal("agent", "guess", name), "udc9b31m")
    Path(os.fsdecode(name)).write_bytes(b"a\n")
    check(on_terminal("agent", "guess", name))


def test_lines_and_names_of_files(tmp_path: Path) -> None:
    """A log file whose name and lines were made to be shown is shown with escapes by all commands
    of the agent that show lines."""
    line = f'{{"m": "{HOSTILE.encode("unicode_escape").decode()[:4]}", "k{LEGAL}": "{LEGAL}"}}\n'
    path = hostile_file(tmp_path, f"{HOSTILE}a=1 {HOSTILE}\n{line}".encode() * 3)
    for options in ((), ("--json",), ("--schema",)):
        check(on_terminal("agent", "guess", str(path), *options))
    check(on_terminal("schemas", "infer", str(path), "--name", "Log"))
    config = tmp_path / "agent.yml"
    config.write_text(
        "bootstrap.servers: 127.0.0.1:1\nschema.registry.url: http://127.0.0.1:1\n"
        f"state.dir: {tmp_path / 'state'}\n"
        f"sources:\n- topic: logs\n  paths: ['{tmp_path}/*.log']\n  parser: {{type: raw}}\n"
    )
    given = ("--config", str(config))
    for words in (("test", str(path)), ("test", str(path), "--json"), ("validate",)):
        check(on_terminal("agent", *words, *given))
    check(on_terminal("agent", "state", "show", *given))


class Answer(BaseHTTPRequestHandler):
    """Answers each GET with an error whose message is hostile."""

    def do_GET(self) -> None:
        body = f'{{"error_code": 50001, "message": "{LEGAL}\x9b31m"}}'.encode()
        self.send_response(500, "x\x9by")
        self.send_header("Content-Type", "application/vnd.schemaregistry.v1+json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Says nothing."""


@pytest.fixture
def registry() -> Iterator[str]:
    server = HTTPServer(("127.0.0.1", 0), Answer)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


def test_answers_of_a_registry(registry: str) -> None:
    """The message of a registry's error is shown with escapes."""
    for words in (("list",), ("list", "--json"), ("versions", HOSTILE)):
        check(on_terminal("schemas", *words, "--registry", registry))


def test_records_and_topics(skidway_broker: SkidwayBroker) -> None:
    """Values of records are shown with escapes on a terminal, and with their own bytes in a pipe.
    In JSON, they are escaped in both. A broker's error about a hostile name is shown with
    escapes."""
    at = ("--bootstrap-server", skidway_broker.address)
    assert run_skidway("topics", "create", "logs", *at).returncode == 0
    value = f"value\t{HOSTILE}"
    sent = run_skidway("produce", "--topic", "logs", *at, input_text=f"{value}\n")
    assert sent.returncode == 0, sent.stderr
    read = (
        "consume",
        "--topic",
        "logs",
        "--raw",
        "--from-beginning",
        "--max",
        "1",
        "--timeout-s",
        "9",
        *at,
    )
    shown = on_terminal(*read)
    check(shown.replace("\t", ""), "value")
    assert "\t" in shown  # a tab is layout, and does no harm
    check(on_terminal(*read, "--json"), r"\u009b31m", r"\u202e")
    assert subprocess.run(skidway(*read), capture_output=True, check=True).stdout == (
        value.encode() + b"\n"
    )
    check(run_skidway(*read, "--json").stdout, r"\u009b31m")
    for verb in ("describe", "create", "delete --yes"):
        check(on_terminal("topics", *verb.split(), HOSTILE, *at))
    for words in (("rejected", "show", HOSTILE), ("groups", "describe", HOSTILE)):
        check(on_terminal(*words, *at))
    check(on_terminal("consume", "--topic", HOSTILE, *at, "--timeout-s", "1"))
