"""Tests that the Prometheus rules and the dashboards (boards) in deploy/monitoring agree with the
programs' metrics, with the guide for operators (docs/operations.md) and with each other."""

from __future__ import annotations

import importlib
import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
import yaml
from prometheus_client import REGISTRY, Metric

from deploy.ansible.plugins.plugin_utils.addresses import METRICS_LISTENERS
from deploy.ansible.plugins.plugin_utils.scraping import COUNTERS_FIRST_PORT
from deploy.monitoring import boards
from deploy.variables import COLLECTION, defaults
from skidway.broker.metrics import BrokerCollector
from skidway.clock import SystemClock
from skidway.loader.runs.textfile import LastRun
from skidway.schemas.registry.program import _StoreMetrics
from skidway.schemas.registry.store import Store
from skidway.zookeeper import program as zookeeper
from support.alert_cases import CASES, ROOT, RULE_FILES, RULES, Case, alerts, names_in, rules
from support.broker_core import broker_core
from support.documents import anchors
from support.registry_log import MemoryLog, SharedLog

PROMETHEUS_OWN = {"ALERTS", "up"}
PROGRAMS = {"agent", "broker", "registry", "audit", "audit-count", "loader", "zookeeper"}
FILES = ("agents", "audit", "brokers", "loads", "mirrors", "programs", "registry")


@pytest.fixture(scope="module")
def metrics(tmp_path_factory: pytest.TempPathFactory) -> set[str]:
    return all_names(tmp_path_factory.mktemp("broker"))


def recorded() -> set[str]:
    return {rule["record"] for part in RULE_FILES for rule in rules(part) if "record" in rule}


def queries() -> Iterator[tuple[str, str]]:
    """Yields each expression of rules and boards, with a text that says where the expression is."""
    for part in RULE_FILES:
        for rule in rules(part):
            yield f"{part}: {rule.get('alert') or rule['record']}", rule["expr"]
    for board in boards.BOARDS:
        for panel in board.panels:
            for query in panel.queries.values():
                yield f"{board.name}: {panel.title}", query


def test_every_metric_of_rules_and_boards_is_one_of_the_programs(metrics: set[str]) -> None:
    """Rules and boards use only metrics that programs register, or that a rule records. An alert on
    a metric that does not exist never fires."""
    assert len(metrics) > 100
    allowed = metrics | recorded() | PROMETHEUS_OWN
    found = {where: names_in(query) - allowed for where, query in queries()}
    assert {where: names for where, names in found.items() if names} == {}
    assert all(names_in(query) or query.startswith("vector(") for _, query in queries())


def test_every_rule_that_is_recorded_is_used() -> None:
    """Each recorded series is used in an alert or in a panel, because a series that nobody uses
    would only cost Prometheus space."""
    used = {name for _, query in queries() for name in names_in(query)}
    assert recorded() - used == set()


def test_every_file_of_rules_is_tested() -> None:
    """For each part (for example, the agent) there is a file of rules, and each alert in this file
    has a test case."""
    assert {path.stem for path in RULES.glob("*.yml")} == set(RULE_FILES)
    assert set(FILES) == set(CASES)
    assert {part: set(alerts(part)) for part in FILES} == {x: set(CASES[x]) for x in FILES}
    names = [name for part in FILES for name in alerts(part)]
    assert len(names) == len(set(names)) > 30


ALERTS = [(part, name) for part in FILES for name in alerts(part)]


@pytest.mark.parametrize(("part", "name"), ALERTS)
def test_an_alert_says_what_is_wrong_and_where_to_read_on(part: str, name: str) -> None:
    """An alert has a severity, a summary, a description in sentences, and a link to an existing
    section of the guide. Its texts use only labels that the alert has."""
    rule, case = alerts(part)[name], CASES[part][name]
    assert rule["labels"] == {"severity": rule["labels"]["severity"]}
    assert rule["labels"]["severity"] in ("critical", "warning")
    notes = rule["annotations"]
    assert set(notes) == {"summary", "description", "runbook"}
    assert notes["description"].endswith(".")
    assert not notes["summary"].endswith(".")
    page, _, anchor = notes["runbook"].partition("#")
    assert page == "docs/operations.md"
    assert anchor in anchors(ROOT / page)
    assert labels_in(notes) <= set(case.labels)


def labels_in(notes: dict[str, str]) -> set[str]:
    return set(re.findall(r"\$labels\.(\w+)", " ".join(notes.values())))


@pytest.mark.parametrize(("part", "name"), ALERTS)
def test_an_alert_is_tested_with_series_that_programs_show(
    part: str, name: str, metrics: set[str]
) -> None:
    """The promtool test cases of an alert use only metrics that the programs have, and contain
    series for which the alert must not fire."""
    case: Case = CASES[part][name]
    for each in (case.bad, case.good):
        assert each
        assert {name for key in each for name in names_in(key)} <= metrics | PROMETHEUS_OWN


@pytest.mark.parametrize("board", boards.BOARDS, ids=lambda x: x.name)
def test_the_boards_are_what_the_panels_say(board: boards.Board) -> None:
    """The files of the boards are equal to the files that `python -m deploy.monitoring.boards`
    writes. So this test notices if somebody changes the files by hand."""
    assert boards.path(board).read_text() == boards.text(board)
    assert {path.name for path in boards.FOLDER.iterdir()} == {
        boards.path(each).name for each in boards.BOARDS
    }


@pytest.mark.parametrize("board", boards.BOARDS, ids=lambda x: x.name)
def test_every_panel_has_title_unit_and_source(board: boards.Board) -> None:
    """Each panel of a board has its own title, a unit, and the board's variable as its data source.
    No panel covers a part of another one, and each variable that a query names exists."""
    document: dict[str, Any] = json.loads(boards.text(board))
    variables = {each["name"] for each in document["templating"]["list"]}
    assert "datasource" in variables
    titles, cells = set(), []
    for panel in document["panels"]:
        assert panel["fieldConfig"]["defaults"]["unit"]
        assert panel["datasource"]["uid"] == "${datasource}"
        titles.add(panel["title"])
        x, y, w, h = (panel["gridPos"][key] for key in "xywh")
        assert x + w <= boards.WIDTH
        cells += [(x + across, y + down) for across in range(w) for down in range(h)]
        for target in panel["targets"]:
            assert set(re.findall(r"\$(\w+)", target["expr"])) <= variables
            assert target["legendFormat"]
    assert len(titles - {""}) == len(document["panels"])
    assert len(cells) == len(set(cells))


def test_the_example_scrapes_every_program() -> None:
    """The example of Prometheus' configuration has a job for each program, under the name that the
    rules use. Its targets have the ports at which the programs serve metrics by default."""
    text = (ROOT / "deploy/monitoring/prometheus.yml").read_text()
    jobs = {x["job_name"]: x["static_configs"] for x in yaml.safe_load(text)["scrape_configs"]}
    assert set(jobs) == {f"skidway-{program}" for program in PROGRAMS} | {"node"}
    named = {job for where, query in queries() for job in re.findall(r'job="([\w-]+)"', query)}
    assert named <= set(jobs)
    ports = {
        job: [int(x.partition(":")[2]) for each in configs for x in each["targets"]]
        for job, configs in jobs.items()
    }
    for program, listener in METRICS_LISTENERS.items():
        assert set(ports[f"skidway-{program}"]) == {int(listener.partition(":")[2])}
    counters = ports["skidway-audit-count"]
    assert counters == [COUNTERS_FIRST_PORT + number for number in range(len(counters))]


def test_the_collection_has_the_rules_and_boards() -> None:
    """The rules and boards in deploy/monitoring are links to the files of the role `monitoring`,
    because an Ansible collection cannot contain files outside its folder."""
    files = COLLECTION / "roles" / "monitoring" / "files"
    assert RULES.resolve() == (files / "rules").resolve()
    assert boards.FOLDER.resolve() == (files / "boards").resolve()


def test_the_page_lists_every_alert() -> None:
    """docs/monitoring.md has a row for each alert, with its severity and its section of the
    guide."""
    page = (ROOT / "docs/monitoring.md").read_text()
    rows = re.findall(
        r"^\| `(Skidway\w+)` \| (\w+) \| .+ \| \[.+\]\((.+)\) \|$", page, re.MULTILINE
    )
    written = {
        (name, rule["labels"]["severity"], rule["annotations"]["runbook"].removeprefix("docs/"))
        for part in FILES
        for name, rule in alerts(part).items()
    }
    assert len(rows) == len(written)
    assert set(rows) == written


def test_the_role_writes_the_thresholds_that_the_rules_have() -> None:
    """With its defaults, the role `monitoring` writes the same file of thresholds that the folder
    of the rules has. If a variable has another number, the role writes this number."""
    template = COLLECTION / "roles" / "monitoring" / "templates" / "thresholds.yml.j2"
    written = (RULES / "thresholds.yml").read_text()
    variable, (name, value) = "{{ %s }}", ("monitoring_load_late_after_s", 93600)
    assert defaults("monitoring")[name] == value
    assert template.read_text().replace(variable % name, str(value)) == written


DECLARING = (
    "skidway.agent.events",
    "skidway.audit.collector.metrics",
    "skidway.audit.counter.counter",
    "skidway.audit.evidence.collection",
    "skidway.audit.topic.publisher",
    "skidway.loader.runs.run_progress",
    "skidway.schemas.codec.metrics",
    "skidway.schemas.registry.authentication",
    "skidway.schemas.registry.rest.application",
    "skidway.schemas.registry.store",
    "skidway.security.expiry",
)
"""The modules that declare metrics when they are imported."""

SUFFIXES = {"counter": ("_total",), "histogram": ("_bucket", "_sum", "_count")}
MIRROR = {
    "cluster": "dc1", "records": 0, "bytes": 0, "lag": 0, "partitions": 0, "stopped_count": 0,
    "waiting_count": 0, "gap_count": 0, "group_failures": 0, "reachable": True,
}  # fmt: skip


def all_names(folder: Path) -> set[str]:
    """Returns the names of all metrics, as Prometheus stores them. Most are registered when their
    module is imported. Others exist only in the answer to a scrape: this function scrapes a broker
    object, whose log it makes in `folder`, and an empty store of schemas. Tables in the code have
    the rest."""
    for module in DECLARING:
        importlib.import_module(module)
    with broker_core(folder) as core:
        broker = set(_names(BrokerCollector(core.broker, lambda: [MIRROR]).collect()))
    store = Store(MemoryLog(SharedLog()), SystemClock())
    return {
        *_names(REGISTRY.collect()),
        *broker,
        *_names(_StoreMetrics(store).collect()),
        *(name for name, _ in zookeeper._StatusCollector._GAUGES.values()),
        "skidway_zookeeper_serving",
        *(each.metadata["name"] for each in fields(LastRun)),
    }


def _names(families: Iterable[Metric]) -> Iterator[str]:
    for each in families:
        for suffix in SUFFIXES.get(each.type, ("",)):
            yield each.name + suffix
