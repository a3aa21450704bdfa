"""Tests the rules with Debian's promtool: promtool accepts the rules and configurations of
Prometheus, and each alert fires when it must, and only then."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
import yaml

from deploy.ansible.plugins.plugin_utils import scraping
from support.alert_cases import CASES, ROOT, RULE_FILES, RULES, promtool_tests
from support.prometheus import command

pytestmark = pytest.mark.foreign

EXAMPLE = ROOT / "deploy" / "monitoring" / "prometheus.yml"


def promtool(*arguments: str) -> tuple[int, str]:
    done = subprocess.run(
        [command("promtool"), *arguments], capture_output=True, text=True, check=False
    )
    return done.returncode, done.stdout + done.stderr


@pytest.mark.parametrize("part", sorted(RULE_FILES))
def test_promtool_accepts_the_rules(part: str) -> None:
    """`promtool check rules` finds no errors in the rules and in the templates of their texts."""
    status, said = promtool("check", "rules", str(RULES / f"{part}.yml"))
    assert status == 0, said


@pytest.mark.parametrize("part", sorted(CASES))
def test_each_alert_fires_when_it_must(part: str, tmp_path: Path) -> None:
    """Each alert has a promtool test case. The alert fires for the bad series of its test case, but
    only after the fault has lasted long enough, and never fires for the good series."""
    tests = tmp_path / "tests.yml"
    tests.write_text(yaml.safe_dump(promtool_tests(part)))
    status, said = promtool("test", "rules", str(tests))
    assert status == 0, said


@pytest.mark.parametrize("part", sorted(CASES))
@pytest.mark.parametrize("value", ["vector(0) == 1", "vector(1)"])
def test_an_alert_that_never_or_always_fires_is_noticed(
    part: str, value: str, tmp_path: Path
) -> None:
    """If the expressions of all alerts in a file are replaced so that the alerts never fire, or
    always fire, then the test case of each alert fails. So no test case passes without checking
    something."""
    rules = yaml.safe_load((RULES / f"{part}.yml").read_text())
    for rule in (rule for group in rules["groups"] for rule in group["rules"]):
        if "alert" in rule:
            rule["expr"] = value
    (tmp_path / "rules.yml").write_text(yaml.safe_dump(rules))
    tests = tmp_path / "tests.yml"
    tests.write_text(yaml.safe_dump(promtool_tests(part) | {"rule_files": ["rules.yml"]}))
    status, said = promtool("test", "rules", str(tests))
    assert status != 0
    assert {name for name in CASES[part] if name not in said} == set()


def test_promtool_accepts_the_example() -> None:
    """`promtool check config` accepts the example configuration with the rules."""
    status, said = promtool("check", "config", str(EXAMPLE))
    assert status == 0, said
    assert f"{len(RULE_FILES)} rule files found" in said


def test_promtool_accepts_what_the_role_writes(tmp_path: Path) -> None:
    """`promtool check config` accepts a configuration to which the role has added rules and
    targets. The command checks the file of targets, too."""
    host = {"inventory_hostname": "b1", "broker_settings": {"metrics.listener": "0.0.0.0:9102"}}
    groups = {"brokers": ["b1"], "audit": ["b1"]}
    targets = tmp_path / "targets.yml"
    found = scraping.scrape_targets({"dc1": {}}, groups, {"b1": host}, "b1")
    targets.write_text(yaml.safe_dump(found))
    before = yaml.safe_load(EXAMPLE.read_text()) | {"rule_files": []}
    config = tmp_path / "prometheus.yml"
    wanted = scraping.with_skidway(before, f"{RULES.resolve()}/*.yml", str(targets))
    config.write_text(json.dumps(wanted))
    status, said = promtool("check", "config", str(config))
    assert status == 0, said
    targets.write_text("- targets: no list")
    assert promtool("check", "config", str(config))[0] != 0
