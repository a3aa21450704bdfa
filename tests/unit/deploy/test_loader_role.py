"""Tests the two ways in which the role sets up the loader: single runs that a timer starts, or a
resident service, which keeps running."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from deploy import variables
from deploy.ansible.plugins.plugin_utils.units import unit_text
from skidway import units
from support.role_variables import RoleVariables

RESIDENT = "skidway-loader-resident.service"
KNOWN = {"loader_known_units": {"stdout": "\n".join(units.names())}}
TASKS = variables.COLLECTION / "roles" / "loader" / "tasks"


def role(audit: dict[str, Any] | None = None, **given: Any) -> RoleVariables:
    """Returns the variables that the role `loader` has on the host `loads`. `audit` has the
    variables of the audit's host, and `given` those of the host `loads`."""
    hosts: dict[str, dict[str, Any]] = {
        "loads": {"inventory_hostname": "loads"},
        "b1": {"inventory_hostname": "b1"},
        "audits": {"inventory_hostname": "audits", **(audit or {})},
    }
    said = {
        "inventory_hostname": "loads",
        "skidway_clusters": {"dc1": {}},
        "loader_output": "/srv/lake",
        **KNOWN,
    }
    groups = {"brokers": ["b1"], "audit": ["audits"], "loaders": ["loads"]}
    return RoleVariables("loader", {**said, **given}, hosts, groups)


def test_without_a_time_between_runs_the_timer_starts_them() -> None:
    """By default, the timer starts single runs. In this case the role sets no time between loads
    for the resident service (which keeps running). So an operator who starts this service by hand
    gets the default time of its unit."""
    found = role()
    assert found["loader_stays"] is False
    assert found["common_overrides"][RESIDENT] == {
        "Service": {"LogNamespace": "skidway", "ReadWritePaths": ["/srv/lake"]}
    }


def test_with_a_time_between_runs_the_service_stays() -> None:
    """If the variable loader_every is set, the resident service (which keeps running) makes a load
    at this interval. Apart from the interval, the systemd drop-in of this service equals the
    drop-in of the service for single runs. So an operator's directories and environment variables,
    such as those for HDFS, apply to both services."""
    hdfs = ["HADOOP_USER_NAME=etl", "KRB5CCNAME=/run/etl"]
    found = role(loader_every="90s", loader_unit_overrides={"Service": {"Environment": hdfs}})
    assert found["loader_stays"] is True
    overrides = found["common_overrides"]
    once, stays = overrides["skidway-loader.service"], overrides[RESIDENT]
    assert once["Service"]["Environment"] == hdfs
    assert stays["Service"]["Environment"] == ['"LOAD_EVERY=90s"', *hdfs]
    assert {**stays["Service"], "Environment": hdfs} == once["Service"]


def test_the_keytab_is_named_for_loads_and_recounts() -> None:
    """If the inventory has a keytab, the loader's settings and the recount's unit name the file
    that the role places. Without one, neither has a setting for HDFS."""
    given = {"hadoop.conf.dir": "/etc/hadoop/conf", "kerberos.principal": "etl/_HOST@A.B"}
    found = role(loader_keytab="files/etl.keytab", loader_settings=given, skidway_signatures="off")
    path = "/etc/skidway/loader/krb5.keytab"
    assert found["common_settings"]["kerberos.keytab"] == path
    unit = found["common_overrides"]["skidway-recount.service"]["Service"]["Environment"]
    assert unit[-1] == (
        '"RECOUNT_SETTINGS=--set hadoop.conf.dir=/etc/hadoop/conf '
        f'--set kerberos.principal=etl/_HOST@A.B --set kerberos.keytab={path}"'
    )
    assert "kerberos" not in str(role()["common_settings"])
    assert "kerberos" not in str(role()["common_overrides"])


def test_a_version_without_the_unit_is_run_by_the_timer() -> None:
    """If the installed version has no unit for the resident service (which keeps running), the role
    sets up single runs. So loads continue after a downgrade to such a version."""
    older = {"stdout": "skidway-loader.service\nskidway-loader.timer"}
    assert role(loader_every="60s", loader_known_units=older)["loader_stays"] is False


def test_one_form_runs_and_the_other_is_stopped_for_good() -> None:
    """The role `loader` starts either the timer or the resident service (which keeps running), and
    stops and disables the other one, so that a boot never starts both."""
    wants: dict[bool, set[tuple[str, bool]]] = {True: set(), False: set()}
    for name in ("timer.yml", "resident.yml"):
        for task in yaml.safe_load((TASKS / name).read_text()):
            if "when" not in task:
                continue
            stays = not task["when"].startswith("not ")
            assert task["when"].removeprefix("not ").startswith("loader_stays | bool")
            if "ansible.builtin.import_role" in task:
                unit, enabled = task["vars"]["common_service"], True
            else:
                asked = task["ansible.builtin.systemd_service"]
                unit, enabled = asked["name"], asked["enabled"]
                assert (asked["state"] == "stopped") == (not enabled)
            wants[stays].add((unit, enabled))
    assert wants == {
        False: {("skidway-loader.timer", True), (RESIDENT, False)},
        True: {("skidway-loader.timer", False), (RESIDENT, True)},
    }


def test_the_loader_asks_a_collector_that_it_can_reach() -> None:
    """If the audit collector's listener can be reached from the loader's host, the role sets
    collector.url in the loader's settings file. Otherwise the file does not have this key, so that
    an older loader, which does not know the key, accepts the file."""
    opened = role({"audit_settings": {"listener": "10.0.0.5:8088"}})
    assert opened["common_settings"]["collector.url"] == "http://audits:8088"
    assert "collector.url" not in role()["common_settings"]
    assert "collector.url" not in role(loader_collector_url="")["common_settings"]


def test_the_inventory_may_name_another_collector() -> None:
    """The variable loader_collector_url overrides the collector's address that the role derives.
    The address in loader_settings overrides both."""
    named = role(loader_collector_url="https://audit.example.com")
    assert named["common_settings"]["collector.url"] == "https://audit.example.com"
    settings = {"collector": {"url": "http://other:1"}}
    both = role(loader_collector_url="http://x:1", loader_settings=settings)
    assert both["common_settings"]["collector.url"] == "http://other:1"


def installed(unit: str, found: RoleVariables, root: Path) -> Path:
    """Writes a unit and its drop-in below `root`, as the role would, and returns the unit's
    path."""
    file = root / "etc/systemd/system" / unit
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(units.text(unit).replace("/opt/skidway", f"{root}/opt/skidway"))
    drop_in = file.parent / f"{unit}.d" / "50-inventory.conf"
    drop_in.parent.mkdir(exist_ok=True)
    drop_in.write_text(unit_text(found["common_overrides"][unit]) + "\n")
    program = root / "opt/skidway/current/loader/bin/skidway"
    program.parent.mkdir(parents=True, exist_ok=True)
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    return file


def said_about(file: Path) -> list[str]:
    """Returns what `systemd-analyze verify` prints about a unit and its drop-ins."""
    command = ["systemd-analyze", "verify", "--man=no", str(file)]
    said = subprocess.run(command, capture_output=True, text=True, check=False).stderr
    return [line for line in said.splitlines() if "skidway" in line]


@pytest.mark.foreign
@pytest.mark.parametrize("every", ["", "60s"])
@pytest.mark.parametrize("unit", ["skidway-loader.service", "skidway-loader.timer", RESIDENT])
def test_systemd_understands_both_forms(unit: str, every: str, tmp_path: Path) -> None:
    """`systemd-analyze verify` finds no fault in the loader's three units with the drop-ins that
    the role writes. The command does report a misspelt key in a drop-in, which shows that it reads
    the drop-ins."""
    overrides = {"Service": {"Environment": "HADOOP_USER_NAME=etl", "MemoryMax": "4G"}}
    found = role(loader_every=every, loader_unit_overrides=overrides)
    installed("skidway-loader.service", found, tmp_path)
    file = installed(unit, found, tmp_path)
    assert said_about(file) == []
    drop_in = file.parent / f"{unit}.d" / "50-inventory.conf"
    section = "[Timer]" if unit.endswith(".timer") else "[Service]"
    drop_in.write_text(f"{drop_in.read_text()}\n{section}\nProtectHomes=yes\n")
    assert any("ProtectHomes" in line for line in said_about(file))


def test_the_recount_reaches_a_secured_kafka_as_the_loader_does() -> None:
    """The recount's unit has the loader's settings for TLS and its login."""
    given = {"security.protocol": "SASL_SSL", "sasl.username": "loads", "ssl.ca.location": "/ca"}
    found = role(loader_settings={**given, "spark.conf": {}}, skidway_signatures="off")
    unit = found["common_overrides"]["skidway-recount.service"]["Service"]["Environment"]
    words = " ".join(f"--set {key}={given[key]}" for key in sorted(given))
    assert unit[-1] == f'"RECOUNT_SETTINGS={words}"'
