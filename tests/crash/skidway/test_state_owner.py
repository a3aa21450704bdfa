"""Root runs commands whose state belongs to another user of the machine, who may not be trusted."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml

from skidway.agent.state.database import open_state
from skidway.cli import main
from skidway.state_owner import become_owner
from support.other_users import as_user
from support.processes import eventually, run_skidway

pytestmark = pytest.mark.root

USER, OTHER, GROUP = 63_001, 63_002, 63_100
NOWHERE = "127.0.0.1:1"


@pytest.fixture
def state(tmp_path: Path) -> Path:
    """A directory that belongs to USER, on a way that everybody may go."""
    above = tmp_path
    while above != above.parent and above.stat().st_uid == os.geteuid():
        above.chmod(0o755)
        above = above.parent
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
    """If root runs a command that writes into a state, and the state belongs to another user, the
    command becomes this user before it works, for good and with none of root's groups. It leaves
    nothing of root's in the state."""
    argv = COMMANDS[name](state)
    child = os.fork()
    if not child:
        try:
            print(f"{name} ended with {main(argv)}", flush=True)
            os._exit(0 if os.getresuid() == (USER,) * 3 else 1)
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


def test_what_root_reads_stays_the_users(state: Path) -> None:
    """Root looks at a state that belongs to another user, whose agent does not run. Nothing of
    root's is left there, so that this user's agent can go on."""
    as_user(USER, [], lambda: open_state(state, create=True).close())
    done = run_skidway("agent", "state", "show", *agent(state))
    assert done.returncode == 0, done.stderr
    assert {each.lstat().st_uid for each in state.rglob("*")} == {USER}
    as_user(USER, [], lambda: open_state(state, create=False).close())
