"""Tests when the Ansible role `agent` reloads a running agent and when it restarts the agent. The
role reloads the agent if all changed files are files that an agent can reload. The tests evaluate
the expressions in the role's steps as Ansible does."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from jinja2 import StrictUndefined
from jinja2.nativetypes import NativeEnvironment

from deploy import variables
from deploy.ansible.plugins.filter.fleet import FILTERS
from deploy.ansible.plugins.plugin_utils import services
from skidway.agent.reloading import preparation
from skidway.agent.settings import AgentSettings
from skidway.cli import main
from skidway.errors import ConfigurationRefused

RUN = variables.COLLECTION / "roles" / "common" / "tasks" / "run.yml"
ROLE = variables.COLLECTION / "roles" / "agent" / "vars" / "main.yml"
BEGAN = 1795207483
STARTED = "Fri 2026-11-20 20:44:43 UTC"
CONFIG, SCHEMA = "/etc/skidway/agent.yml", "/etc/skidway/agent/nginx.avsc"
KEY, LINK = "/etc/skidway/agent/hash.key", "/opt/skidway/current/agent"
TAKEN: dict[str, Any] = {"rc": 0, "stdout": "linger.ms changed", "stderr": ""}
SKIPPED: dict[str, Any] = {"skipped": True, "changed": False}


def block() -> dict[str, Any]:
    """Returns the block of steps with which the role starts, restarts or reloads the service."""
    (found,) = (each for each in yaml.safe_load(RUN.read_text()) if "block" in each)
    return dict(found)


def step(words: str) -> dict[str, Any]:
    """Returns the step of `block()` whose name begins with `words`."""
    (found,) = (each for each in block()["block"] if each["name"].startswith(words))
    return dict(found)


class Run:
    """The steps that the role takes on a host.

    `newer` are the files that were written after the agent's start. `answer` is the result of
    `skidway agent reload`, and `state` the state of the agent's service.
    """

    def __init__(self, *newer: str, answer: dict[str, Any] = TAKEN, state: str = "active") -> None:
        self._jinja = NativeEnvironment(undefined=StrictUndefined)
        self._jinja.filters |= {f"skidway.fleet.{each.__name__}": each for each in FILTERS}
        self._jinja.filters |= {"difference": lambda one, two: [x for x in one if x not in two]}
        self._jinja.filters["bool"] = bool
        paths = [CONFIG, SCHEMA, KEY, LINK]
        self._known: dict[str, Any] = {
            "common_state": {"ActiveState": state, "ExecMainStartTimestamp": STARTED},
            "common_origins": {
                "files": [{"path": x, "mtime": BEGAN + (9 if x in newer else -9)} for x in paths]
            },
            "common_started_from": paths,
            "common_reload_from": [CONFIG, SCHEMA],
            "common_restart_before": "",
        }
        for name, text in block()["vars"].items():
            if name not in self._known:
                self._known[name] = self._jinja.from_string(text).render(self._known)
        self.reloads = self._is(step("Let it take")["when"])
        self._known["common_reloaded"] = answer if self.reloads else SKIPPED

    def _is(self, condition: str) -> bool:
        return bool(self._jinja.from_string(f"{{{{ {condition} }}}}").render(self._known))

    @property
    def fails(self) -> str:
        """Returns the message with which the play fails, or an empty text if the play does not
        fail."""
        refusal = step("Say why it does not take")
        if not self._is(refusal["when"]):
            return ""
        message = refusal["ansible.builtin.fail"]["msg"]
        return str(self._jinja.from_string(message).render(self._known))

    @property
    def restarts(self) -> bool:
        """Returns whether the play restarts the agent."""
        state = step("Start, and at boot")["ansible.builtin.systemd_service"]["state"]
        found = self._jinja.from_string(state).render(self._known)
        assert found in ("restarted", "started")
        return not self.fails and found == "restarted"


def refused(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Returns the result of a reload that a running agent refuses because a changed setting needs a
    restart."""
    monkeypatch.setattr(preparation, "check_settings", lambda _: None)
    before, after = (
        AgentSettings(
            bootstrap_servers=each, schema_registry_url="http://a", state_dir="/s", sources=[]
        )
        for each in ("a:1", "b:1")
    )
    with pytest.raises(ConfigurationRefused) as said:
        preparation.check(before, after)
    return {"rc": 78, "stdout": "", "stderr": f"skidway agent: {said.value}"}


@pytest.mark.parametrize("newer", [[CONFIG], [SCHEMA], [CONFIG, SCHEMA]])
def test_changed_settings_and_schemas_are_reloaded(newer: list[str]) -> None:
    """If only settings or schemas have changed, the role reloads the agent, and does not restart
    it."""
    run = Run(*newer)
    assert run.reloads
    assert not run.restarts
    assert not run.fails


@pytest.mark.parametrize("newer", [[KEY], [LINK], [CONFIG, LINK]])
def test_anything_else_restarts_the_agent(newer: list[str]) -> None:
    """If a file that a reload does not read has changed (here a key or the version), the role
    restarts the agent, and does not try a reload first."""
    run = Run(*newer)
    assert not run.reloads
    assert run.restarts


def test_nothing_is_done_if_nothing_has_changed() -> None:
    """If no file is newer than the agent's start, there is neither a reload nor a restart."""
    run = Run()
    assert not run.reloads
    assert not run.restarts


def test_an_agent_that_is_not_up_yet_is_restarted() -> None:
    """An agent that is still starting cannot reload, so changed settings restart it. An agent that
    does not run is only started."""
    assert Run(CONFIG, state="activating").restarts
    stopped = Run(CONFIG, state="inactive")
    assert not stopped.reloads
    assert not stopped.restarts


def test_an_agent_that_must_be_restarted_is_restarted(monkeypatch: pytest.MonkeyPatch) -> None:
    """If the agent refuses the reload because a changed setting needs a restart, the role restarts
    the agent. The role recognizes this refusal by the text that the agent prints."""
    run = Run(CONFIG, answer=refused(monkeypatch))
    assert run.reloads
    assert run.restarts
    assert not run.fails


@pytest.mark.parametrize(
    ("status", "said"),
    [
        (78, "skidway agent: sources: '/x' must be absolute"),
        (78, "skidway agent: topic a: a label says: restart it, please"),
        (3, "skidway agent: no agent that runs took the request"),
        (1, "skidway agent: the agent is ending"),
    ],
)
def test_a_refusal_fails_the_play_with_the_sentence_of_the_agent(status: int, said: str) -> None:
    """If the agent refuses the settings for another reason, or does not answer, the play fails with
    the message of `skidway agent reload`. The role does not restart the agent, because a start with
    these settings could fail, too."""
    run = Run(CONFIG, answer={"rc": status, "stdout": "", "stderr": said})
    assert run.fails == said
    assert not run.restarts


def test_a_command_that_cannot_run_fails_the_play() -> None:
    """If the command `skidway agent reload` does not exist, the play fails with Ansible's
    message."""
    assert Run(CONFIG, answer={"rc": 2, "msg": "No such file"}).fails == "No such file"


def test_the_role_names_what_a_reload_takes() -> None:
    """The role knows which files a reload reads: agent.yml, the files of `sources.dir` and the
    schemas. A reload does not read keys and certificates again."""
    names = ["nginx.avsc", "shop.yml", "ca.pem", "hash.key"]
    assert services.taken_by_reload(names) == ["nginx.avsc", "shop.yml"]
    role = yaml.safe_load(ROLE.read_text())
    assert role["common_reload_from"].startswith("{{ ['/etc/skidway/agent.yml']")
    assert role["common_reload"][1:] == ["agent", "reload"]


def test_the_role_prints_what_matches_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The role runs `skidway agent validate --strict`, accepts the statuses of good configurations,
    and prints the lines with marks. What `validate` prints about other patterns is left out."""
    look, say = yaml.safe_load((ROLE.parents[1] / "tasks" / "marks.yml").read_text())
    noun, verb, *options = look["vars"]["agent_look"]
    (tmp_path / "a.log").write_text("a line\n")
    document = {
        "bootstrap.servers": "nowhere:1",
        "schema.registry.url": "http://nowhere:1",
        "state.dir": str(tmp_path / "state"),
        "sources": [{"topic": "a", "paths": [f"{tmp_path}/a.log", f"{tmp_path}/b.log"]}],
    }
    config = tmp_path / "agent.yml"
    config.write_text(yaml.safe_dump(document))
    status = main([noun, verb, *options[:-1], str(config)])
    done = {"rc": status, "stdout_lines": capsys.readouterr().out.splitlines()}
    jinja = NativeEnvironment(undefined=StrictUndefined)
    jinja.tests["match"] = lambda text, pattern: re.match(pattern, text) is not None

    def evaluated(text: str) -> Any:
        return jinja.from_string("{{ " + text.strip("{ }") + " }}").render(agent_marks=done)

    assert evaluated(look["failed_when"]) is False
    assert evaluated(say["when"]) is True
    said = evaluated(say["ansible.builtin.debug"]["msg"])
    assert said == [f"! paths {tmp_path}/b.log takes no file"]


def test_the_sources_of_the_example_fit_the_logs_of_debian(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The example inventory's sources read what dpkg and apt write, each record with its time."""
    logs = {
        "dpkg.log": "2026-11-29 01:13:05 status installed passwd:amd64 1:4.13 <none>\n",
        "history.log": "".join(
            f"\nStart-Date: 2026-11-29  01:{minute}:04\nCommandline: apt-get install make\n"
            f"Install: make:amd64 (4.3-4.1)\nEnd-Date: 2026-11-29  01:{minute}:09\n"
            for minute in (13, 29)
        ),
    }
    example = variables.COLLECTION / "inventories/example/group_vars/agents/skidway.yml"
    sources = yaml.safe_load(example.read_text())["agent_sources"]
    for each in sources:
        each["paths"] = [str(tmp_path / Path(each["paths"][0]).name)]
    config = tmp_path / "agent.yml"
    about = {"bootstrap.servers": "nowhere:1", "schema.registry.url": "http://nowhere:1"}
    config.write_text(yaml.safe_dump({**about, "state.dir": "state", "sources": sources}))
    times = {}
    for name, text in logs.items():
        (tmp_path / name).write_text(text)
        assert main(["agent", "test", str(tmp_path / name), "--config", str(config), "--json"]) == 0
        results = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
        times[name] = [each["time"][:16] for each in results]
    assert times == {
        "dpkg.log": ["2026-11-29T01:13"],
        "history.log": ["2026-11-29T01:13", "2026-11-29T01:29"],
    }


@pytest.mark.parametrize(
    ("groups", "everything", "rights"),
    [
        ([], False, "setsid --wait runuser -u skidway-agent -g skidway-agent -G adm --"),
        (
            ["ssl", "app"],
            False,
            "setsid --wait runuser -u skidway-agent -g skidway-agent -G adm -Gssl -Gapp --",
        ),
        (["ssl"], True, ""),
    ],
)
def test_the_role_looks_at_the_sources_with_the_rights_of_the_agent(
    groups: list[str], everything: bool, rights: str
) -> None:
    """The role looks for paths that the agent cannot read as the agent's user, with the groups of
    its unit, because root could read them all. If the agent may read every file, it looks as
    root."""
    jinja = NativeEnvironment(undefined=StrictUndefined)
    jinja.filters["bool"] = bool
    jinja.filters["regex_replace"] = lambda text, old, new: re.sub(old, new, text)
    known = {"agent_groups": groups, "agent_read_everything": everything, "skidway_version": "1.2"}
    role = yaml.safe_load(ROLE.read_text())
    known["agent_rights"] = jinja.from_string(role["agent_rights"]).render(known)
    look, _ = yaml.safe_load((ROLE.parents[1] / "tasks" / "marks.yml").read_text())
    known |= look["vars"]
    words = jinja.from_string(look["ansible.builtin.command"]["argv"]).render(known)
    called = "/opt/skidway/1.2/bin/skidway agent validate --strict --lines 0 --config"
    assert " ".join(words).strip() == f"{rights} {called} /etc/skidway/agent.yml".strip()


@pytest.mark.parametrize(
    ("answer", "is_enough"),
    [
        ({"status": 200, "json": {"ok": True}}, True),
        ({"status": 503, "json": {"ok": False}}, False),
        ({"status": 503, "json": {"ok": False, "delivers": False}}, False),
        ({"status": 503, "json": {"ok": False, "delivers": True}}, True),
        ({"status": -1, "msg": "Connection refused"}, False),
    ],
)
def test_an_agent_that_cannot_read_a_path_is_healthy_enough(
    answer: dict[str, Any], is_enough: bool
) -> None:
    """The playbooks wait until a program is healthy. If an agent delivers, but cannot read a path,
    they go on: a site with a closed log can be changed, upgraded and rolled back."""
    (ask,) = yaml.safe_load(RUN.with_name("health.yml").read_text())
    condition = NativeEnvironment(undefined=StrictUndefined).from_string(
        f"{{{{ {ask['until']} }}}}"
    )
    assert bool(condition.render(common_answer=answer)) is is_enough
