"""Tests the name of this host in messages and printed commands."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import Any

import pytest

from skidway.agent.settings import AgentSettings
from skidway.audit.settings import AuditSettings, CounterSettings
from skidway.broker.own_status import own_status
from skidway.broker.settings import BrokerSettings
from skidway.host_name import host_name, installed_host_name
from skidway.loader.settings import LoaderSettings
from skidway.settings import documented

ROOT = Path(__file__).parents[3]
KERNEL = socket.gethostname()


@pytest.mark.parametrize(
    "program", [AgentSettings, AuditSettings, BrokerSettings, CounterSettings, LoaderSettings]
)
def test_every_program_that_names_its_host_has_one_setting_for_it(program: type[Any]) -> None:
    """Each program that names its host in messages takes the name from `host.name`, with one
    meaning for all of them."""
    (said,) = (x for x in documented(program) if x.key == "host.name")
    (agents,) = (x for x in documented(AgentSettings) if x.key == "host.name")
    assert said == agents


def test_a_broker_names_its_host_as_its_settings_do(tmp_path: Path) -> None:
    """What a broker says about itself has the name in its settings, and the kernel's name without
    one."""
    for given, said in ((None, KERNEL), ("web1.example", "web1.example")):
        settings = BrokerSettings(
            broker_id=1, log_dirs=[tmp_path], zookeeper_connect="z:2181", host_name=given
        )
        assert own_status(settings, None, ()).host == said


def test_a_command_without_settings_takes_the_name_that_programs_here_have(tmp_path: Path) -> None:
    """A command without settings, such as the nightly recount, names the host as the installed
    programs do. Configurations that are missing, broken or without a name change nothing."""
    assert installed_host_name(tmp_path) == KERNEL
    (tmp_path / "audit.yml").write_text("a: [\n")
    (tmp_path / "agent.yml").write_text("host.name:\n")
    assert installed_host_name(tmp_path) == KERNEL
    (tmp_path / "loader.yml").write_text("unknown: 1\nhost: {name: hd1.example}\n")
    assert installed_host_name(tmp_path) == "hd1.example"
    assert host_name("") == KERNEL


def test_only_addresses_come_from_the_kernel() -> None:
    """No other module asks the kernel for its name, but those that need an address, a name that
    Kafka's clients make up, the host name in another shipper's records, or a machine's id."""
    asking = {
        str(path.relative_to(ROOT))
        for package in ("agent", "audit", "broker", "loader", "schemas", "skidway")
        for path in (ROOT / package).rglob("*.py")
        if not path.parent.is_symlink() and "gethostname" in path.read_text()
    }
    assert asking == {
        "agent/values/identity.py", "audit/commands/compare.py", "broker/listener_settings.py",
        "skidway/consumer/registry.py", "skidway/host_name.py", "skidway/machine.py",
    }  # fmt: skip
