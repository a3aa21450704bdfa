"""Tests how the role `monitoring` derives the targets of Prometheus (the addresses that Prometheus
scrapes) from the inventory."""

from __future__ import annotations

from typing import Any

import pytest

from deploy.ansible.plugins.plugin_utils import scraping
from support.role_variables import RoleVariables

CLUSTERS: dict[str, Any] = {"dc1": {}, "offline": {"mirrors": ["dc1"]}}
GROUPS = {
    "brokers": ["b1", "b2"],
    "agents": ["app1"],
    "audit": ["watch"],
    "loaders": ["b2"],
    "monitoring": ["watch"],
}
OPEN = "0.0.0.0"


def hosts(**of_all: Any) -> dict[str, dict[str, Any]]:
    return {
        "b1": {"inventory_hostname": "b1", "ansible_host": "10.0.0.1", **of_all},
        "b2": {"inventory_hostname": "b2", "skidway_cluster": "offline", **of_all},
        "app1": {"inventory_hostname": "app1", "skidway_address": "fd00::7", **of_all},
        "watch": {"inventory_hostname": "watch", **of_all},
    }


def opened() -> dict[str, dict[str, Any]]:
    """Returns the variables of all hosts. The settings of each program say that the program serves
    metrics on every address."""
    ports = {"agent": 9101, "broker": 9102, "audit": 9104, "loader": 9105}
    settings = {f"{x}_settings": {"metrics": {"listener": f"{OPEN}:{y}"}} for x, y in ports.items()}
    return hosts(audit_counter_bind_address=OPEN, loader_every="60s", **settings)


def targets(found: list[dict[str, Any]]) -> dict[str, tuple[str, str]]:
    """Returns the job and the address of each target, by the target's label `instance`."""
    return {each["labels"]["instance"]: (each["labels"]["job"], *each["targets"]) for each in found}


def test_every_program_of_the_inventory_is_a_target() -> None:
    """Prometheus scrapes each program of each host, with the job name that the rules use. The label
    `instance` has the host's name in the inventory. The target's address is the one at which other
    hosts reach the host. On Prometheus' own host, it is loopback."""
    found = scraping.scrape_targets(CLUSTERS, GROUPS, opened(), "watch")
    assert targets(found) == {
        "b1:9102": ("skidway-broker", "10.0.0.1:9102"),
        "b2:9102": ("skidway-broker", "b2:9102"),
        "app1:9101": ("skidway-agent", "[fd00::7]:9101"),
        "watch:9104": ("skidway-audit", "127.0.0.1:9104"),
        "b2:9105": ("skidway-loader", "b2:9105"),
        "watch:9114": ("skidway-audit-count", "127.0.0.1:9114"),
        "watch:9115": ("skidway-audit-count", "127.0.0.1:9115"),
    }
    assert scraping.unscraped(CLUSTERS, GROUPS, opened(), "watch") == []


def test_programs_have_their_cluster_as_label_and_the_audit_has_none() -> None:
    """The targets of brokers, agents and loaders get the label `cluster`. The audit's target gets
    no such label, because the audit's metrics already have a label `cluster`, which names the
    cluster of a topic. A label `cluster` of the target would replace this label."""
    found = scraping.scrape_targets(CLUSTERS, GROUPS, opened(), "watch")
    clusters = {x["labels"]["instance"]: x["labels"].get("cluster") for x in found}
    assert (clusters["b1:9102"], clusters["b2:9105"]) == ("dc1", "offline")
    assert clusters["watch:9104"] is clusters["watch:9114"] is None


def test_what_serves_on_loopback_is_scraped_only_on_its_own_host() -> None:
    """By default programs serve metrics only on loopback. Then only a Prometheus on the same host
    scrapes these programs, and the role says which settings an operator must change for programs on
    other hosts."""
    found = scraping.scrape_targets(CLUSTERS, GROUPS, hosts(), "watch")
    assert set(targets(found)) == {"watch:9104", "watch:9114", "watch:9115"}
    said = scraping.unscraped(CLUSTERS, GROUPS, hosts(), "watch")
    assert len(said) == 2
    assert said[0] == (
        "watch cannot scrape 2 of the programs broker (the first is on b1), which serve metrics on"
        " loopback only: set metrics.listener in broker_settings."
    )
    elsewhere = scraping.unscraped(CLUSTERS, GROUPS, hosts(), "b1")
    assert "2 of the programs audit-count" in elsewhere[-1]
    assert elsewhere[-1].endswith("set audit_counter_bind_address.")


def test_a_loader_that_a_timer_starts_is_no_target() -> None:
    """Prometheus scrapes only loaders that run all the time. Single runs are over before Prometheus
    could scrape them, so a target for them would always seem to be down."""
    timed = opened() | {"b2": {**opened()["b2"], "loader_every": ""}}
    assert "b2:9105" not in targets(scraping.scrape_targets(CLUSTERS, GROUPS, timed, "watch"))
    assert not any("loader" in x for x in scraping.unscraped(CLUSTERS, GROUPS, hosts(), "watch"))


def test_counters_that_the_inventory_names_are_scraped_where_they_listen() -> None:
    """If the inventory lists the audit's counters, Prometheus scrapes each of them at the port in
    the counter's settings."""
    audit = opened()
    audit["watch"]["audit_counters"] = {"dc1": {"metrics": {"listener": "10.0.0.9:9200"}}}
    found = targets(scraping.scrape_targets(CLUSTERS, GROUPS, audit, "b1"))
    assert found["watch:9200"] == ("skidway-audit-count", "watch:9200")
    assert "watch:9114" not in found


def test_the_filter_knows_the_defaults_of_the_role() -> None:
    """The filter that derives the targets has its own copy of the counters' default address and
    first port, because the variables of another host do not contain the defaults of the role
    `audit`. The copy is equal to the role's defaults."""
    found = RoleVariables("audit", {"skidway_clusters": CLUSTERS}, hosts(), GROUPS)
    counters = found["audit_counters"]
    assert [each["metrics.listener"] for each in counters.values()] == [
        "127.0.0.1:9114",
        "127.0.0.1:9115",
    ]
    opened_ = RoleVariables(
        "audit", {"skidway_clusters": CLUSTERS, "audit_counter_bind_address": OPEN}, hosts(), GROUPS
    )
    assert opened_["audit_counters"]["dc1"]["metrics.listener"] == f"{OPEN}:9114"


RULES, TARGETS = "/etc/prometheus/skidway/rules/*.yml", "/etc/prometheus/skidway/targets.yml"


@pytest.mark.parametrize(
    "config",
    [
        None,
        {"rule_files": None, "scrape_configs": None},
        {"rule_files": ["own.yml"], "scrape_configs": [{"job_name": "node"}], "global": {"a": 1}},
    ],
)
def test_the_configuration_gets_rules_and_targets_once(config: dict[str, Any] | None) -> None:
    """The role `monitoring` adds one entry of rules and one job to Prometheus' configuration,
    changes nothing else, and changes nothing when it runs again. An uninstallation removes what the
    role added."""
    once = scraping.with_skidway(config, RULES, TARGETS)
    assert scraping.with_skidway(once, RULES, TARGETS) == once
    before = {key: value or [] for key, value in (config or {}).items()}
    assert once["rule_files"] == [*before.get("rule_files", []), RULES]
    assert once["scrape_configs"][:-1] == before.get("scrape_configs", [])
    assert once["scrape_configs"][-1]["file_sd_configs"] == [{"files": [TARGETS]}]
    empty = {"rule_files": [], "scrape_configs": []}
    assert scraping.without_skidway(once, RULES) == empty | before
