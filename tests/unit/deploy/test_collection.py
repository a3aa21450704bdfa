"""Tests that the argument specs, defaults, README and playbooks of the Ansible collection agree
with each other."""

from __future__ import annotations

import configparser
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from deploy import variables
from deploy.ansible.plugins.plugin_utils import steps
from deploy.ansible.plugins.plugin_utils.problems import inventory_problems
from deploy.packaging.third_party import PROGRAMS
from skidway import units

COLLECTION = variables.COLLECTION
PREFIXES = ("skidway_", "common_")


def names(role: str, folder: str) -> set[str]:
    path = COLLECTION / "roles" / role / folder / "main.yml"
    return set(yaml.safe_load(path.read_text())) if path.exists() else set()


def tasks() -> list[Path]:
    return sorted(COLLECTION.glob("roles/*/tasks/*.yml")) + sorted(COLLECTION.glob("playbooks/*"))


def test_the_readme_has_every_variable_as_the_specs_describe_it() -> None:
    """The table of variables in the collection's README equals the output of `make docs-ansible`,
    which reads the argument specs."""
    page = variables.README.read_text()
    assert variables.updated(page) == page
    for role in variables.ROLES:
        assert all(f"`{name}`" in page for name in variables.specs(role)["options"])


@pytest.mark.parametrize("role", variables.ROLES)
def test_specs_and_defaults_agree(role: str) -> None:
    """Each documented default is the role's default, and every default is documented."""
    options = variables.specs(role)["options"]
    documented = {name: spec["default"] for name, spec in options.items() if "default" in spec}
    defaults = variables.defaults(role)
    if role == "common":  # roles give these parameters to the shared steps; operators do not
        defaults = {name: v for name, v in defaults.items() if not name.startswith("common_")}
    assert defaults == documented


@pytest.mark.parametrize("role", variables.ROLES)
def test_every_option_has_type_and_description(role: str) -> None:
    """In the argument specs each option has a type and a description, and a list option also has
    the type of its elements. A required option has no default."""
    for name, spec in variables.specs(role)["options"].items():
        assert spec["type"], name
        assert spec["description"], name
        assert ("elements" in spec) == (spec["type"] == "list"), name
        assert not (spec.get("required") and "default" in spec), name


@pytest.mark.parametrize("role", variables.ROLES)
def test_variables_have_the_prefix_of_their_role(role: str) -> None:
    """A role's variables begin with the role's name, with the prefix of the fleet (skidway_), or
    with the prefix of the shared steps (common_). ansible-lint does not check this rule."""
    found = names(role, "defaults") | names(role, "vars") | set(variables.specs(role)["options"])
    assert {name for name in found if not name.startswith((f"{role}_", *PREFIXES))} == set()


def test_every_program_has_a_role_and_every_unit_is_installed_by_one() -> None:
    """Each program has a role, and exactly one role installs each systemd unit. The roles `common`
    and `monitoring` install no program."""
    assert {*PROGRAMS, "common", "monitoring"} == set(variables.ROLES)
    assert set(variables.ROLES) == {path.name for path in (COLLECTION / "roles").iterdir()}
    installed: list[str] = []
    for program in PROGRAMS:
        path = COLLECTION / "roles" / program / "vars" / "main.yml"
        installed += yaml.safe_load(path.read_text())["common_units"]
    assert sorted(installed) == units.names()


@pytest.mark.parametrize("program", PROGRAMS)
def test_whichever_steps_are_asked_for_another_version_is_left_alone(program: str) -> None:
    """Whichever tags are given or skipped, the first step of a role stops the run if another
    version is in use on the host. Without this check a run could change the version by accident,
    without the roll-back that an upgrade has."""
    path = COLLECTION / "roles" / program / "tasks" / "main.yml"
    first, *others = yaml.safe_load(path.read_text())
    assert first["ansible.builtin.import_role"]["tasks_from"] == "version"
    assert first["tags"] == ["always"]
    assert "when" not in first
    tags = {tag for task in others for tag in task["tags"]}
    named = {f"{program}_{step}" for step in steps.STEPS}
    assert tags - {steps.ROSTER, steps.KEYS} <= named
    assert (steps.ROSTER in tags) == (program == "audit")
    assert (steps.KEYS in tags) == (program in ("agent", "audit", "loader"))


def test_only_modules_of_ansible_core_are_used_and_no_failure_is_ignored() -> None:
    """The roles use only modules of ansible-core and of this collection, so that no other
    collection has to be installed. No task ignores errors."""
    allowed = re.compile(r"(ansible\.builtin|skidway\.fleet)\.\w+")
    for path in tasks():
        for task in _all_tasks(yaml.safe_load(path.read_text()) or []):
            assert "ignore_errors" not in task, path
            modules = [key for key in task if "." in key]
            assert all(allowed.fullmatch(module) for module in modules), path
            assert not {"ansible.builtin.shell", "ansible.builtin.raw"} & set(modules), path


@pytest.mark.parametrize("playbook", ["site", "upgrade", "rolling_restart"])
def test_a_host_that_is_off_is_left_out_before_the_waves(playbook: str) -> None:
    """A playbook that handles its hosts in waves (Ansible's `serial`) pings all hosts first.
    Otherwise, if a wave consisted only of hosts that are off, the play would end before the other
    hosts are done."""
    plays = yaml.safe_load((COLLECTION / "playbooks" / f"{playbook}.yml").read_text())
    assert any("serial" in play for play in plays)
    first = plays[0]
    assert "serial" not in first
    assert any("ansible.builtin.ping" in task for task in first["tasks"])
    for play in plays:
        assert set(play["hosts"].split(":")) <= set(first["hosts"].split(":"))


def test_one_oldest_ansible_is_named_everywhere() -> None:
    """The oldest supported version of Ansible is named in pyproject.toml, in requires_ansible, in
    the roles, and in the instructions for operators. All four name the same version, and the
    repository's checks use this version on the oldest Python. The key requires_ansible makes
    Ansible refuse older versions."""
    runtime = yaml.safe_load((COLLECTION / "meta" / "runtime.yml").read_text())
    oldest = runtime["requires_ansible"].removeprefix(">=").removesuffix(".0")
    extra = tomllib.loads((COLLECTION.parents[1] / "pyproject.toml").read_text())
    assert any(
        each.startswith(f"ansible-core>={oldest},")
        for each in extra["project"]["optional-dependencies"]["deploy"]
    )
    for role in variables.ROLES:
        meta = yaml.safe_load((COLLECTION / "roles" / role / "meta" / "main.yml").read_text())
        assert meta["galaxy_info"]["min_ansible_version"] == oldest, role
    assert f"pip install 'ansible-core>={oldest}'" in variables.README.read_text()
    locked = (COLLECTION.parents[1] / "requirements" / "deploy.txt").read_text()
    versions = re.findall(r"^ansible-core==(\d+\.\d+)\.\d+\b", locked, re.MULTILINE)
    assert versions[0] == oldest


def _all_tasks(listed: list[dict[str, Any]]) -> list[dict[str, Any]]:
    found = []
    for each in listed:
        found.append(each)
        for key in ("block", "rescue", "always", "tasks", "pre_tasks", "post_tasks"):
            found += _all_tasks(each.get(key) or [])
    return found


def test_what_an_interrupted_uninstalling_leaves_cannot_run_in_place_of_the_agent() -> None:
    """Before an agent is uninstalled, a separate systemd unit "drains" the agent: this unit
    delivers all lines that the agent has not delivered yet. If the uninstallation is interrupted,
    the agent's own unit is unchanged, and the separate unit stops when the agent starts. The output
    settings of the separate unit use neither `append:` (new in systemd 240) nor `truncate:` (new in
    systemd 248), so that older versions of systemd can run this unit."""
    drain = (COLLECTION / "roles/agent/tasks/drain.yml").read_text()
    assert "skidway-agent.service.d" not in drain
    assert "skidway-agent-drain.service" not in units.names()
    unit = (COLLECTION / "roles/agent/templates/drain.service.j2").read_text()
    settings = unit[unit.index("[Unit]") :].splitlines()
    assert {"Conflicts=skidway-agent.service", "After=skidway-agent.service"} <= set(settings)
    assert {"ExecStart=", "Restart=no", "Type=oneshot"} <= set(settings)
    assert "[Install]" not in settings
    assert not re.search("truncate:|append:", unit)


@pytest.mark.parametrize(
    ("said", "is_drained"),
    [
        ("drained: the last word is said, 1 topics, nothing lies unread\n", True),
        ('{"level": "error", "event": "waiting"}\ndrained: the last word is said\n', True),
        ('{"event": "drained: not at all"}\nnot drained: not everything could\n', False),
        ("", False),
    ],
)
def test_what_a_drain_said_is_found_behind_its_log(said: str, is_drained: bool) -> None:
    """`skidway agent drain` prints its result after its log lines, into the same file. The role
    finds the result after these lines."""
    steps = (COLLECTION / "roles/agent/tasks/drain.yml").read_text()
    (found,) = re.findall(r"is search\('(.+)', multiline=True\)", steps)
    assert bool(re.search(found, said, re.MULTILINE)) == is_drained


STAND = frozenset({"/etc/systemd", "{{ monitoring_rules | dirname }}"})
"""Directories that exist before a role looks into them, on a new host too. (A preview of the role
`monitoring` may warn.)"""
LATER = ("files", "leave", "prune", "remember", "roll_back", "settle", "uninstall")
"""Tasks of upgrade.yml and uninstall.yml only."""


def test_a_first_run_looks_into_no_directory_that_is_missing() -> None:
    """For a missing directory, the module `find` prints a warning, which looks like a fault of the
    host. So tasks of a first run use it only for directories that exist, or under a condition."""

    def looks(found: Any) -> Iterator[dict[str, Any]]:
        for task in found:
            if "ansible.builtin.find" in task and "when" not in task:
                yield task
            for part in ("block", "rescue"):
                yield from looks(task.get(part, []))

    paths = [x for x in tasks() if x.parent.name == "tasks" and x.stem not in LATER]
    for path in paths:
        for task in looks(yaml.safe_load(path.read_text())):
            given = task["ansible.builtin.find"]["paths"]
            unknown = {given} - STAND if isinstance(given, str) else {*given} - STAND
            assert not unknown, f"{path}: {task['name']}"


def test_ansible_says_nothing_about_groups_that_a_site_does_not_have() -> None:
    """The folder from which the guide runs playbooks has settings of Ansible that keep it from
    warning about what the guide allows: groups that are left out, any Python for its modules."""
    found = configparser.ConfigParser()
    found.read(COLLECTION / "ansible.cfg")
    assert found["inventory"]["host_pattern_mismatch"] == "ignore"
    assert found["defaults"]["interpreter_python"] == "auto_silent"
    assert found["connection"].getboolean("pipelining")


def test_the_inventory_of_one_host_is_good() -> None:
    """The example of an inventory with all programs on one host has no mistakes."""
    given = yaml.safe_load((COLLECTION / "inventories/one-host.yml").read_text())["all"]
    groups = {name: [*group["hosts"]] for name, group in given["children"].items()}
    (name,) = {host for hosts in groups.values() for host in hosts}
    host = {"inventory_hostname": name, **given["vars"]}
    for group in given["children"].values():
        host |= group["hosts"][name]
    clusters = given["vars"]["skidway_clusters"]
    assert inventory_problems(clusters, groups, {name: host}) == []
    assert {*groups} == {"zookeeper", "brokers", "registry", "audit", "agents", "loaders"}
