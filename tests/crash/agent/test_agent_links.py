"""A user who writes logs tries to make the agent read files that only the agent may read. The agent
and this user are real users of the machine."""

from __future__ import annotations

import mmap
import os
import signal
import time
from contextlib import suppress
from functools import partial
from pathlib import Path

import pytest

from skidway.agent.files.access import access_of
from skidway.agent.files.likeness import open_at
from skidway.agent.files.operating_system import OperatingSystem
from skidway.agent.files.patterns import patterns_of
from support.exchanges import exchange
from support.other_users import as_user, become, open_way_to
from support.processes import WITHIN_S

pytestmark = pytest.mark.root

AGENT, WRITER, OTHER, READERS = 63_001, 63_002, 63_003, 63_100
EXCHANGES_MIN = 10_000
ROUNDS = 400


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    """A directory of logs that WRITER owns, beside secrets that only readers may read."""
    open_way_to(tmp_path)
    folder, secrets = tmp_path / "logs", tmp_path / "secrets"
    folder.mkdir()
    secrets.mkdir()
    for name, owner in (("root.log", 0), ("other.log", OTHER), ("agent.log", AGENT)):
        secret = secrets / name
        secret.write_text("secret\n")
        os.chown(secret, owner, READERS)
        secret.chmod(0o640)
    os.chown(secrets, 0, READERS)
    secrets.chmod(0o750)
    os.chown(folder, WRITER, WRITER)
    return folder


def read_all(folder: Path, rounds: int) -> set[bytes]:
    """Returns the first lines of all that the agent finds below a directory, in several looks."""
    host, found = OperatingSystem(access_of("owner", Path("/nowhere"))), set()
    for _ in range(rounds):
        for each in host.scan(patterns_of([f"{folder}/**", f"{folder}/*/root.log"])).found:
            with suppress(OSError):
                handles = host.open(each.path), open_at(host, each.real_path, each.key)
                for handle in filter(None, handles):
                    found.add(handle.read(100, 0))
                    handle.close()
    return found


def make_links(folder: Path) -> None:
    """As WRITER: makes links of many kinds to secrets, and one to a file of WRITER's own."""
    (folder / "own.log").write_text("own\n")
    (folder / "good.log").symlink_to("own.log")
    (folder / "x.log").symlink_to("../secrets/root.log")
    (folder / "y.log").symlink_to(folder.parent / "secrets" / "other.log")
    (folder / "w.log").symlink_to("../secrets/agent.log")
    (folder / "again.log").symlink_to("x.log")
    (folder / "d").symlink_to("../secrets")
    (folder / "everything").symlink_to("/")
    (folder / "memory.log").symlink_to("/proc/self/environ")
    (folder / "sub").mkdir()
    (folder / "sub" / "root.log").symlink_to("../d/root.log")


def test_a_link_gives_no_secret_away(logs: Path) -> None:
    """A user who may write into a directory of logs cannot make the agent read a file that only the
    agent may read, with any link. A link to a file of the user's own is followed."""
    as_user(WRITER, [], partial(make_links, logs))
    secret = logs.parent / "secrets" / "root.log"
    assert as_user(AGENT, [READERS], secret.read_bytes) == b"secret\n"
    assert as_user(AGENT, [READERS], partial(read_all, logs, 1)) == {b"own\n"}

    def named() -> dict[str, str]:
        scan = OperatingSystem().scan(patterns_of([f"{logs}/**"]))
        assert scan.unreadable == []
        return dict(scan.refused)

    refused = as_user(AGENT, [READERS], named)
    assert {f"{logs}/{x}" for x in ("x.log", "y.log", "w.log", "d", "everything")} <= refused.keys()
    assert f"it is a link of user {WRITER} to something of user 0" in refused[f"{logs}/x.log"]


def test_a_second_name_gives_no_secret_away(logs: Path) -> None:
    """Where the kernel lets everybody give a file a second name (hard link), an agent that may read
    every file does not read a secret by such a name. It says so, and reads the user's own files
    with two names."""
    os.link(logs.parent / "secrets" / "root.log", logs / "x.log")
    as_user(WRITER, [], partial((logs / "own.log").write_text, "own\n"))
    as_user(WRITER, [], partial(os.link, logs / "own.log", logs / "own2.log"))
    assert read_all(logs, 1) == {b"own\n"}
    scan = OperatingSystem().scan(patterns_of([f"{logs}/**"]))
    assert [each.path for each in scan.found] == [f"{logs}/own.log", f"{logs}/own2.log"]
    assert "a file of user 0 with 2 names" in dict(scan.refused)[f"{logs}/x.log"]
    assert b"secret\n" in as_user(AGENT, [READERS], partial(read_all, logs, 1))


@pytest.mark.parametrize("what", ["file", "directory"])
def test_no_exchange_gives_a_secret_away(logs: Path, what: str) -> None:
    """While a user exchanges a file or a directory of logs with a link to secrets 10,000 times, the
    agent never reads a secret, and reads the user's own lines."""

    def prepare() -> tuple[Path, Path]:
        (logs / "d").mkdir()
        (logs / "d" / "root.log").write_text("own\n")
        if what == "directory":
            (logs / "e").symlink_to("../secrets")
            return logs / "d", logs / "e"
        (logs / "d" / "link.log").symlink_to("../../secrets/root.log")
        return logs / "d" / "root.log", logs / "d" / "link.log"

    one, other = as_user(WRITER, [], prepare)
    count = mmap.mmap(-1, 8)  # shared with the child
    writer = os.fork()
    if not writer:
        try:
            become(WRITER, [])
            for number in range(1 << 40):
                exchange(one, other)
                count[:] = number.to_bytes(8, "little")
        finally:
            os._exit(1)
    try:
        seen: set[bytes] = set()
        deadline = time.monotonic() + WITHIN_S
        while int.from_bytes(count[:], "little") < EXCHANGES_MIN or not seen:
            assert time.monotonic() < deadline
            seen |= as_user(AGENT, [READERS], partial(read_all, logs, ROUNDS))
    finally:
        os.kill(writer, signal.SIGKILL)
        os.waitpid(writer, 0)
    assert seen == {b"own\n"}
