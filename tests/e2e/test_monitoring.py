"""A real Prometheus scrapes all programs of a pipeline. Every panel of the Grafana boards has data,
and every metric in a rule exists."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from deploy.monitoring import boards
from skidway.demo.site import DATACENTER, OFFLINE
from skidway.producer import Producer
from support.alert_cases import RULE_FILES, names_in, rules
from support.certificates import Authority
from support.pipeline import Oracle, Pipeline, source
from support.processes import WITHIN_S, NotReady, Program, eventually, free_port, skidway
from support.prometheus import Prometheus, textfiles

pytestmark = pytest.mark.foreign

TOPIC = "shop"
TEXTFILE = "skidway_load.prom"
PATTERN = r"(?P<level>\w+) line (?P<number>\d+)"
SHAPE = 'drop level = "debug" as debug'


@pytest.fixture(scope="module")
def prometheus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prometheus]:
    """Prometheus, which scrapes a pipeline. In this pipeline, lines became rows, were rejected by
    the agent or the loader, were left out by a rule, or were lost."""
    folder = tmp_path_factory.mktemp("monitored")
    logs, notes = Oracle(folder / "logs"), folder / "textfiles"
    notes.mkdir()
    parser = {"type": "regex", "pattern": PATTERN}
    pipeline = Pipeline(
        folder,
        [source(TOPIC, logs.folder, parser=parser, shape=SHAPE)],
        settings={"loader": {"spark.above.offsets": 400_000, "announce.wait.ms": 0}},
    )
    listen_with_tls(pipeline)
    loader = resident_loader(pipeline, notes / TEXTFILE)
    try:
        pipeline.start()
        make_history(pipeline, logs)
        loader.start()
        with (
            textfiles(notes) as textfile,
            Prometheus(folder / "prometheus", targets(pipeline, textfile)) as started,
        ):
            yield started
    finally:
        loader.kill()
        pipeline.stop()


def listen_with_tls(pipeline: Pipeline) -> None:
    """Adds a listener with TLS to a broker, so that a program shows a certificate."""
    pair = Authority(pipeline.site.folder).sign("broker")
    addresses = pipeline.site.address(f"broker-{DATACENTER}"), f"127.0.0.1:{free_port()}"
    path = pipeline.site.config(f"broker-{DATACENTER}")
    settings = yaml.safe_load(path.read_text()) | {
        "listeners": [f"PLAINTEXT://{addresses[0]}", f"SSL://{addresses[1]}"],
        "ssl.certificate.location": str(pair.certificate),
        "ssl.key.location": str(pair.key),
    }
    path.write_text(yaml.safe_dump(settings))


def resident_loader(pipeline: Pipeline, textfile: Path) -> Program:
    site = pipeline.site
    return Program(
        skidway(
            "load", "run", "--every", "1s", "--config", str(site.config("loader")),
            "--set", f"metrics.listener={site.address('loader.metrics')}",
            "--set", f"metrics.textfile={textfile}",
        ),
        site.folder / "resident.log",
    )  # fmt: skip


def make_history(pipeline: Pipeline, logs: Oracle) -> None:
    """Writes lines that become rows, lines that a rule leaves out, and a line that the agent
    rejects. Truncates the log, so that lines may be lost. Sends a record that the loader
    rejects."""
    path = logs.append(
        "app.log",
        [
            *(f"info line {at}" for at in range(1000)),
            *(f"debug line {at}" for at in range(20)),
            "no line of the pattern",
        ],
    )
    settle(pipeline, logs)
    os.truncate(path, 0)
    logs.append("app.log", [f"info line {at}" for at in range(1000, 1400)])
    settle(pipeline, logs)
    with Producer(pipeline.site.address(f"broker-{DATACENTER}")) as producer:
        producer.send(TOPIC, b"no datum of any schema")


def settle(pipeline: Pipeline, logs: Oracle) -> None:
    eventually(lambda: pipeline.settled_bytes(logs.folder) == logs.bytes, what="all lines settled")


def targets(pipeline: Pipeline, textfile: str) -> dict[str, tuple[list[str], dict[str, str]]]:
    """Maps each job of deploy/monitoring/prometheus.yml to its targets (addresses of the pipeline's
    programs) and to the labels of these targets. `textfile` is the target of the job `node`."""
    site = pipeline.site

    def at(*programs: str) -> list[str]:
        return [site.address(f"{each}.metrics") for each in programs]

    return {
        "skidway-agent": (at("agent"), {"cluster": DATACENTER}),
        "skidway-broker": (at("broker-dc1", "broker-offline"), {"cluster": "either"}),
        "skidway-registry": (at("registry"), {}),
        "skidway-audit": (at("audit"), {}),
        "skidway-audit-count": (at("count-dc1", "count-offline"), {}),
        "skidway-loader": (at("loader"), {"cluster": OFFLINE}),
        "skidway-zookeeper": (at("zookeeper"), {}),
        "node": ([textfile], {}),
    }


def names_shown(prometheus: Prometheus) -> set[str]:
    """Returns the names of all metrics that the programs export, that a recording rule makes, or
    that Prometheus itself adds."""
    families = prometheus.families()
    histograms = {f"{name}_{part}" for name in families for part in ("bucket", "sum", "count")}
    recorded = {rule["record"] for part in RULE_FILES for rule in rules(part) if "record" in rule}
    return families | histograms | recorded | {"ALERTS", "up"}


def test_every_panel_has_an_answer(prometheus: Prometheus) -> None:
    """In a pipeline with loads, rejects, filtered records and losses, every query in the panels of
    the Grafana boards returns at least one time series. So if a panel is empty on a real site, the
    events that the panel shows have not happened there."""
    queries = {
        f"{board.name}: {panel.title}: {legend}": query.replace("$topic", ".+")
        for board in boards.BOARDS
        for panel in board.panels
        for legend, query in panel.queries.items()
    }
    empty: dict[str, str] = {}

    def none_is_empty() -> bool:
        empty.clear()
        empty.update({at: query for at, query in queries.items() if not prometheus.query(query)})
        return not empty

    with contextlib.suppress(NotReady):
        eventually(none_is_empty, within_s=WITHIN_S, every_s=1)
    assert empty == {}


def test_every_rule_works_on_metrics_that_programs_show(
    prometheus: Prometheus,
) -> None:
    """Prometheus evaluates each rule without an error, and a program or another rule provides each
    metric in the rule's expression."""
    eventually(lambda: all(x["health"] != "unknown" for x in prometheus.rules()))
    loaded = prometheus.rules()
    assert {x["name"]: x.get("lastError", "") for x in loaded if x["health"] != "ok"} == {}
    written = [rule for part in RULE_FILES for rule in rules(part)]
    assert len(loaded) == len(written)
    shown = names_shown(prometheus)
    for rule in written:
        prometheus.query(rule["expr"])
        assert names_in(rule["expr"]) <= shown, rule


def test_lost_lines_raise_an_alert(prometheus: Prometheus) -> None:
    """After lines were lost, Prometheus fires the alert SkidwayLinesLost with the name of the
    topic."""
    query = 'ALERTS{alertname="SkidwayLinesLost",alertstate="firing"}'
    eventually(lambda: prometheus.query(query), what="an alert")
    found = {(x["metric"]["cluster"], x["metric"]["topic"]) for x in prometheus.query(query)}
    assert (DATACENTER, TOPIC) in found
