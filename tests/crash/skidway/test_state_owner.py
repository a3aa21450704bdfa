"""Root runs commands whose state belongs to another user of the machine, who may not be trusted."""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import signal
import sqlite3
import struct
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml

from skidway.agent.state.database import open_state
from skidway.audit.evidence.ledger import Ledger
from skidway.cli import main
from skidway.errors import UNEXPECTED_EXIT_CODE
from skidway.state_owner import become_owner
from support.other_users import as_user, open_way_to
from support.processes import eventually, run_skidway

pytestmark = pytest.mark.root

USER, OTHER, GROUP = 63_001, 63_002, 63_100
NOWHERE = "127.0.0.1:1"


@pytest.fixture
def state(tmp_path: Path) -> Path:
    """A directory that belongs to USER, on a way that everybody may go."""
    open_way_to(tmp_path)
    folder = tmp_path / "state"
    folder.mkdir()
    os.chown(folder, USER, GROUP)
    return folder


def agent(state: Path) -> Sequence[str]:
    """Writes the settings of an agent with this state, and returns the option that names them."""
    parser = {"type": "regex", "pattern": "(?P<n>[0-9]+)"}
    source = {"topic": "logs", "paths": ["/no/*.log"], "parser": parser, "replay": True}
    settings: dict[str, Any] = {
        "state.dir": str(state), "bootstrap.servers": NOWHERE, "sources": [source],
        "schema.registry.url": "http://127.0.0.1:1",
    }  # fmt: skip
    config = state.parent / "agent.yml"
    config.write_text(yaml.safe_dump(settings))
    return "--config", str(config)


def repaired(state: Path) -> str:
    """Writes a repaired line, which only root may read, and returns its file."""
    place = {"host": "web1", "path": "/a", "agent": 5, "file": 7, "first": 0}
    file = state.parent / "repair.jsonl"
    file.write_text(json.dumps({"topic": "logs", "reason": "no-match", "line": "1", **place}))
    file.chmod(0o600)
    return str(file)


def on_agent(*words: str) -> Callable[[Path], Sequence[str]]:
    return lambda state: [*words, *agent(state)]


def with_settings(*words: str, **settings: str) -> Callable[[Path], Sequence[str]]:
    return lambda state: [
        *words,
        *[
            word
            for name, value in settings.items()
            for word in ("--set", f"{name.replace('_', '.')}={value.replace('STATE', str(state))}")
        ],
    ]


BROKERS = {"bootstrap_servers": NOWHERE}
AUDIT = {**BROKERS, "tiers": "[agent, hdfs]", "store_dir": "STATE"}
LOADER = {**BROKERS, "schema_registry_url": "http://127.0.0.1:1", "topics": "[x]"}
COMMANDS: dict[str, Callable[[Path], Sequence[str]]] = {
    "agent run": on_agent("agent", "run"),
    "agent drain": on_agent("agent", "drain", "--timeout-s", "0"),
    "agent reload": on_agent("agent", "reload"),
    "agent replay": lambda state: ["agent", "replay", repaired(state), *agent(state)],
    "agent replayed": on_agent("agent", "replayed", "logs"),
    "agent state adopt": on_agent("agent", "state", "adopt"),
    "agent state give-up": on_agent("agent", "state", "give-up", "logs"),
    "agent count": lambda state: ["agent", "count", "--files", "/no/*", "--into", str(state)],
    "audit run": with_settings(
        "audit",
        "run",
        **BROKERS,
        tiers="[agent, hdfs]",
        store_dir="STATE",
        listener="127.0.0.1:0",
        metrics_listener="127.0.0.1:0",
    ),
    "audit count": with_settings("audit", "count", **BROKERS, tier="broker", state_dir="STATE"),
    "broker run": with_settings(
        "broker",
        "run",
        broker_id="1",
        log_dirs="[STATE]",
        zookeeper_connect=NOWHERE,
        listeners="[PLAINTEXT://127.0.0.1:0]",
        cluster_name="dc1",
    ),
    "broker hand-over": with_settings(
        "broker",
        "hand-over",
        "logs-0",
        broker_id="1",
        log_dirs="[STATE]",
        cluster_name="dc1",
        zookeeper_connect=NOWHERE,
    ),
    "zookeeper run": with_settings("zookeeper", "run", dataDir="STATE", clientPort="2181"),
    "load run": with_settings("load", "run", **LOADER, output="STATE"),
    "load run --every": with_settings(
        "load", "run", "--every", "1m", **LOADER, output="file://STATE/deep/er"
    ),
    "load plan": with_settings("load", "plan", **LOADER, output="STATE"),
    "load status": with_settings("load", "status", **LOADER, output="STATE"),
    "load history": with_settings("load", "history", **LOADER, output="STATE"),
    "load validate": with_settings("load", "validate", **LOADER, output="STATE"),
    "load run, log": with_settings(
        "load", "run", **LOADER, output="hdfs://127.0.0.1:1/x", spark_log_file="STATE/spark.log"
    ),
    "load compact": with_settings("load", "compact", **LOADER, output="STATE"),
    "load reload": with_settings(
        "load",
        "reload",
        "x",
        "--from",
        "2026-01-31T10",
        "--to",
        "2026-01-31T11",
        **LOADER,
        output="STATE",
    ),
}


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_of_root_becomes_the_user_of_its_state(state: Path, name: str) -> None:
    """If root runs a command that writes into a state, or needs nothing else, and the state belongs
    to another user, the command becomes this user before it works, for good and with none of root's
    groups. It leaves nothing of root's in the state."""
    argv = COMMANDS[name](state)
    child = os.fork()
    if not child:
        try:
            status = main(argv)
            print(f"{name} ended with {status}", flush=True)
            is_good = os.getresuid() == (USER,) * 3 and status != UNEXPECTED_EXIT_CODE
            os._exit(0 if is_good else 1)
        finally:
            os._exit(2)

    def is_user() -> bool:
        lines = Path(f"/proc/{child}/status").read_text().splitlines()
        status = dict(line.split(":\t", 1) for line in lines if ":\t" in line)
        is_become = status["Uid"].split() == [str(USER)] * 4
        has_ended = status["State"].startswith("Z")
        return has_ended or (is_become and status["Groups"].split() == [str(GROUP)])

    eventually(is_user, what="it is the user")
    os.kill(child, signal.SIGKILL)
    _, code = os.waitpid(child, 0)
    assert os.WIFSIGNALED(code) or os.WEXITSTATUS(code) == 0
    made = [state, *state.rglob("*")]
    assert {each.lstat().st_uid for each in made} == {USER}


@pytest.mark.parametrize("what", ["directory", "lock", "topic"])
def test_no_link_makes_root_give_anything_away(state: Path, what: str) -> None:
    """The user of the agent, who may have been taken over, puts a link into the state, and root
    then replays lines. Nothing behind the link changes hands, and nothing is written there."""
    victim = state.parent / "victim"
    victim.mkdir()
    (victim / "secret").write_text("secret")
    (victim / "secret").chmod(0o600)

    def attack() -> None:
        if what == "directory":
            (state / "replay").symlink_to(victim)
            return
        (state / "replay").mkdir()
        if what == "lock":
            (state / "replay" / ".lock").symlink_to(victim / "secret")
        else:
            (state / "replay" / "logs").symlink_to(victim)

    as_user(USER, [], attack)
    done = run_skidway("agent", "replay", repaired(state), *agent(state))
    assert done.returncode == 1, done
    assert "Permission denied" in done.stderr or "Too many levels" in done.stderr
    assert victim.stat().st_uid == (victim / "secret").stat().st_uid == 0
    assert (victim / "secret").read_text() == "secret"
    assert [each.name for each in victim.iterdir()] == ["secret"]


def test_a_replay_of_root_can_be_read_by_the_agent(state: Path) -> None:
    """Root replays lines of a file that only root may read. What this makes belongs to the agent's
    user, and nobody else may read it."""
    done = run_skidway("agent", "replay", repaired(state), *agent(state))
    assert done.returncode == 0, done.stderr
    (made,) = state.rglob("*.replay")
    assert made.stat().st_uid == USER
    assert made.stat().st_mode & 0o777 == 0o600


def test_whoever_can_exchange_a_state_is_its_user(state: Path) -> None:
    """A state, or a link to it, that lies in a directory of a user counts as this user's, although
    root owns the state itself. A state on a way that is root's alone stays root's."""
    (state / "own").mkdir()
    link = state.parent / "link"
    link.symlink_to(state / "own")
    (state.parent / "roots").mkdir()

    def user_of(directory: Path) -> int:
        become_owner(directory)
        return os.geteuid()

    (state / "nowhere").symlink_to("missing")
    paths = [state / "own", link, link / "missing", state / "own" / "a" / "b", state / "nowhere"]
    for path in paths:
        assert as_user(0, [], partial(user_of, path)) == USER
    assert as_user(0, [], partial(user_of, state.parent / "roots" / "missing")) == 0
    os.chown(state.parent / "roots", OTHER, OTHER)
    assert as_user(0, [], partial(user_of, state.parent / "roots" / "missing")) == OTHER
    assert as_user(OTHER, [], partial(user_of, state)) == OTHER


READERS: dict[str, tuple[str, Callable[[Path], Sequence[str]]]] = {
    "agent state show": ("agent.db", on_agent("agent", "state", "show")),
    "audit report": ("audit.db", lambda state: ["audit", "report", "--store", str(state)]),
    "audit complete": (
        "audit.db",
        lambda state: [
            "audit", "complete", "--topic", "logs", "--until", "0s", "--store", str(state)
        ],
    ),
    "audit compare": (
        "count.db",
        lambda state: [
            "audit", "compare", "--counted", str(state), "--topic", "logs", "--shape", "text",
            "--bootstrap-server", NOWHERE,
        ],
    ),
}  # fmt: skip
"""The database, and a command of root that reads it and goes on as root: one for each place in the
code that opens such a database."""


@pytest.mark.parametrize("name", READERS)
def test_a_database_makes_root_delete_nothing(state: Path, name: str) -> None:
    """The owner of a state leaves a database there as a crash would leave it, whose journal names a
    file of root. Root reads the state, and the file is still there."""
    database, command = READERS[name]
    victim = state.parent / "victim"
    victim.write_text("root's")
    as_user(USER, [], partial(leave_journal, state / database, victim))
    done = run_skidway(*command(state))
    assert done.returncode in (1, 2, 65), done
    assert victim.exists(), "SQLite has deleted it"


def leave_journal(database: Path, victim: Path) -> None:
    """Leaves a journal of SQLite that names a super-journal: when SQLite has rolled the database
    back, it deletes the super-journal."""
    with contextlib.closing(sqlite3.connect(database)) as made:
        made.execute("CREATE TABLE t (x)")
    size, page, name = database.stat().st_size, 4096, os.fsencode(victim)
    magic = bytes.fromhex("d9d505f920a163d7")
    head = (magic + struct.pack(">IIIII", 0, 1, size // page, 512, page)).ljust(512, b"\0")
    number = struct.pack(">I", 0x40000000 // page + 1)
    end = struct.pack(">II", len(name), sum(name)) + magic
    Path(f"{database}-journal").write_bytes(head + number + name + end)


@pytest.mark.parametrize("name", READERS)
def test_a_database_makes_root_create_nothing(state: Path, name: str) -> None:
    """The owner of a state puts a link to a database of root in the place of his own. Root reads
    the state, and SQLite makes no file beside root's database."""
    database, command = READERS[name]
    victim = state.parent / "victim"
    victim.mkdir()
    with contextlib.closing(sqlite3.connect(victim / "own.db")) as made:
        made.execute("PRAGMA journal_mode = WAL")
        made.execute("CREATE TABLE t (x)")
    os.chmod(victim / "own.db", 0o644)
    before = set(victim.iterdir())
    as_user(USER, [], lambda: (state / database).symlink_to(victim / "own.db"))
    done = run_skidway(*command(state))
    assert done.returncode in (1, 2, 65), done
    assert set(victim.iterdir()) == before


@pytest.mark.parametrize("suffix", ["", "-journal", "-wal"])
def test_no_pipe_holds_root_up(state: Path, suffix: str) -> None:
    """The owner of a state puts a named pipe in the place of the database, or of one of its other
    files. A command of root does not wait for somebody who writes into the pipe."""
    database = state / "real.db"

    def attack() -> None:
        with contextlib.closing(sqlite3.connect(database)) as made:
            made.execute(f"PRAGMA journal_mode = {'WAL' if suffix == '-wal' else 'DELETE'}")
            made.execute("CREATE TABLE t (x)")
        Path(f"{database}{suffix}").unlink(missing_ok=True)
        os.mkfifo(f"{database}{suffix}", 0o400)
        (state / "agent.db").symlink_to(database)

    as_user(USER, [], attack)
    done = run_skidway("agent", "state", "show", *agent(state))
    assert "not a regular file" in done.stderr
    assert done.returncode == 65, done


def test_what_root_reads_stays_the_users(state: Path) -> None:
    """Root looks at a state that belongs to another user, whose agent does not run. Nothing of
    root's is left there, so that this user's agent can go on."""
    as_user(USER, [], lambda: open_state(state, create=True).close())
    done = run_skidway("agent", "state", "show", *agent(state))
    assert done.returncode == 0, done.stderr
    assert {each.lstat().st_uid for each in state.rglob("*")} == {USER}
    as_user(USER, [], lambda: open_state(state, create=False).close())


def test_root_reads_the_newest_state_while_a_collector_writes(state: Path) -> None:
    """Root opens the store of another user's collector, and waits there. Root sees what the
    collector commits meanwhile, and is root again after each statement."""
    store = state / "audit.db"
    reader, writer = os.pipe(), os.pipe()

    def collect() -> None:
        ledger = Ledger(store)
        for time_ms in (1, 2):
            ledger.take_records([], {}, time_ms)
            os.write(writer[1], b"x")
            os.read(reader[0], 1)
        ledger.close()

    child = os.fork()
    if not child:
        as_user(USER, [], collect)
        os._exit(0)
    os.read(writer[0], 1)
    ledger = Ledger(store, only_read=True)
    assert ledger.taken_ms == 1
    os.write(reader[1], b"x")
    os.read(writer[0], 1)
    assert ledger.taken_ms == 2
    assert os.getresuid() == (0, 0, 0)
    ledger.close()
    os.write(reader[1], b"x")
    assert os.waitpid(child, 0)[1] == 0
    assert {each.lstat().st_uid for each in state.rglob("*")} == {USER}


REFUSED = LOADER | {"output": "hdfs://127.0.0.1:1/x", "no_such": "1"}


def test_no_link_makes_root_write_metrics_elsewhere(state: Path) -> None:
    """The owner of the directory for `metrics.textfile` exchanges it for a link. Root runs a load
    that becomes nobody, because its configuration is refused, or its output is in HDFS, and writes
    nothing behind the link."""
    victim = state.parent / "victim"
    victim.mkdir()
    as_user(USER, [], lambda: (state / "metrics").symlink_to(victim))
    settings = REFUSED | {"metrics_textfile": "STATE/metrics/x.prom"}
    done = run_skidway(*with_settings("load", "run", **settings)(state))
    assert done.returncode == 78, done
    assert not list(victim.iterdir())
    assert "no_metrics_textfile" in done.stderr


def test_metrics_of_a_load_of_root_belong_to_the_user_of_the_directory(state: Path) -> None:
    """If root runs a load, the metrics file belongs to the user of its directory, and everybody may
    read it."""
    settings = REFUSED | {"metrics_textfile": "STATE/x.prom"}
    run_skidway(*with_settings("load", "run", **settings)(state))
    (made,) = state.iterdir()
    assert (made.stat().st_uid, made.stat().st_mode & 0o777) == (USER, 0o644)


def test_modules_stay_within_reach(state: Path) -> None:
    """A command of root becomes the user of its state where only root may enter a directory on the
    way to Python. The command still imports modules, submodules and encodings that it has not
    needed before."""
    place = state.parent / "roots" / "lib"
    (place / "package").mkdir(parents=True)
    (place / "single.py").write_text("NAME = 'single'")
    (place / "package" / "__init__.py").write_text("")
    (place / "package" / "part.py").write_text("NAME = 'part'")
    place.parent.chmod(0o700)
    place.chmod(0o755)

    def work() -> tuple[str, str, int]:
        sys.path.insert(0, str(place))
        importlib.import_module("package")
        assert "encodings.cp037" not in sys.modules
        become_owner(state)
        names = [importlib.import_module(each).NAME for each in ("single", "package.part")]
        return names[0], names[1], len("a".encode("cp037"))

    assert as_user(0, [], work) == ("single", "part", 1)
