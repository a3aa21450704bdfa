"""A running agent names what it cannot read, whatever it is: in /health, and in its state."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from skidway.agent.commands import state
from skidway.agent.files.operating_system import LEADS_NOWHERE, LEADS_ROUND
from skidway.cli import main
from support.promises import promise
from support.running_agent import Site, running

CLOSED = "x" * 300
"""A link to a name of this length cannot be examined, whoever the user is."""


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    sources = [{"topic": "logs", "paths": [f"{tmp_path}/logs/*", f"{tmp_path}/logs/*/app.log"]}]
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "good.log").write_text("good\n")
    with running(tmp_path, monkeypatch, sources=sources, host_name="another-name") as made:
        yield made


def shown(site: Site) -> list[str]:
    """Returns the sentences of `skidway agent state show`."""
    return state.unread(state.show(site.folder / "state"))


@promise("6 unreadable")
def test_what_holds_nothing_is_named(site: Site) -> None:
    """A FIFO, a socket, a device, a broken link and a link in a circle are named with what they
    are and what to do; none of them holds the seal, so /health is good."""
    logs = site.folder / "logs"
    os.mkfifo(logs / "pipe")
    (logs / "null").symlink_to("/dev/null")
    (logs / "dead").symlink_to("nowhere")
    (logs / "round").symlink_to("round")
    (logs / "directory").mkdir()
    site.turns()
    health = site.agent._status.health
    assert health.ok
    assert health.detail["unreadable"] == {}
    found = {os.path.basename(path): why for path, why in health.detail["not_read"]["logs"].items()}
    assert found == {
        "pipe": "it is a FIFO, and is not read",
        "null": "it is a device, and is not read",
        "dead": LEADS_NOWHERE,
        "round": LEADS_ROUND,
    }
    assert len(shown(site)) == 4
    assert f"logs: the agent cannot read {logs}/dead: {LEADS_NOWHERE}" in shown(site)


@promise("6 unreadable")
@pytest.mark.parametrize("name", ["closed", "closed.log"])
def test_what_cannot_be_read_makes_health_bad(site: Site, name: str) -> None:
    """If a path that may be a file, or may have files, cannot be examined, /health is not good, and
    names it; so does `skidway agent state show`. The agent still says that it delivers. When the
    path is gone, both are good again."""
    site.turns()
    assert site.agent._status.health.ok
    path = site.folder / "logs" / name
    path.symlink_to(CLOSED)
    site.turns(400)
    health = site.agent._status.health
    assert (health.ok, health.detail["delivers"]) == (False, True)
    assert health.detail["unreadable"]["logs"][str(path)] == "File name too long"
    assert shown(site) == [
        f"logs: the agent cannot read {path}: File name too long; the topic is not sealed"
    ]
    path.unlink()
    site.turns(400)
    assert site.agent._status.health.ok
    assert shown(site) == []


def test_a_source_without_files_is_in_health_and_state(
    site: Site, capsys: pytest.CaptureFixture[str]
) -> None:
    """/health and `skidway agent state show` name a source that has matched no file."""
    site.write(sources=[{"topic": "logs", "paths": [f"{site.folder}/nowhere/*.log"]}])
    site.reload()
    site.turns(400)
    (said,) = site.agent._status.health.detail["sources_without_files"]
    assert said.startswith(f"source {site.folder}/nowhere/*.log has matched no file since ")
    assert main(["agent", "state", "show", "--config", str(site.file)]) == 0
    assert f"\nlogs: {said}\n" in capsys.readouterr().out


@pytest.mark.root
@promise("6 unreadable")
def test_a_link_that_the_agent_does_not_follow_holds_nothing(site: Site) -> None:
    """A link of another user to a file that is not this user's is named with the reason in /health,
    in the log and by `skidway agent state show`. It holds no seal, and no line of the file is
    sent. When the link belongs to root, the agent reads the file."""
    logs, user = site.folder / "logs", 63_002
    secret = site.folder / "secret"
    secret.write_text("secret\n")
    (logs / "x.log").symlink_to(secret)
    os.lchown(logs / "x.log", user, user)
    site.turns(400)
    why = f"it is a link of user {user} to something of user 0, so the agent does not follow it"
    health = site.agent._status.health
    assert (health.ok, health.detail["unreadable"]) == (True, {})
    assert health.detail["not_read"]["logs"][f"{logs}/x.log"].startswith(why)
    (said,) = shown(site)
    assert said.startswith(f"logs: the agent cannot read {logs}/x.log: {why}")
    assert "not sealed" not in said
    assert {Path(each["path"]).name for each in state.show(site.folder / "state")["files"]} == {
        "good.log"
    }
    os.lchown(logs / "x.log", 0, 0)
    site.turns(400)
    assert shown(site) == []
    assert len(state.show(site.folder / "state")["files"]) == 2
