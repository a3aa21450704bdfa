"""Runs the experiment: measures the four systems (the sides) one after the other, so that only one
of them runs on the machine at a time."""

from __future__ import annotations

import csv
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from bench import plots
from bench.machine import warm_memory
from bench.measure import KAFKA, RESULTS, SidesRow, SidesTable
from bench.paper import activemq, kafka_clients, rabbitmq
from bench.paper.activemq import ActiveMQ
from bench.paper.rabbitmq import RabbitMQ
from bench.paper.series import Series
from bench.produce import MESSAGE, create
from bench.scale import QUICK, scaled
from bench.sites import ApacheKafka, ours, running

COUNT = scaled(10_000_000, 100_000)
SECONDS_MAX = scaled(90.0, 4.0)
OURS = "Skidway"
SIDES = (OURS, KAFKA, rabbitmq.NAME, activemq.NAME)
COLORS = dict(zip(SIDES, ("C0", "C3", "C1", "C2"), strict=True))
ONE, FIFTY, CONSUMER = "producer, batch 1", "producer, batch 50", "consumer"
PHASES = (ONE, FIFTY, CONSUMER)

Found = dict[str, Series]
"""The results of one side (one of the compared systems): a series for each phase of the
experiment."""


@dataclass(frozen=True, slots=True)
class Figure:
    """One of the paper's figures: its name, its title, and the phases that it shows, each with its
    line style."""

    name: str
    title: str
    phases: dict[str, str]


FIGURES = (
    Figure("paper-figure-4", "Producer, 200-byte messages", {FIFTY: "-", ONE: "--"}),
    Figure("paper-figure-5", "Consumer, 200-byte messages", {CONSUMER: "-"}),
)


def run() -> SidesTable:
    """Measures every system, draws the two figures (but not in a trial), and returns the table."""
    rabbitmq.provide()
    activemq.provide()
    found: dict[str, Found] = {}
    for name, measure in zip(SIDES, (_skidway, _kafka, _rabbitmq, _activemq), strict=True):
        with tempfile.TemporaryDirectory(prefix="skidway-paper-") as folder:
            found[name] = measure(Path(folder))
        for phase, series in found[name].items():
            print(f"  {name}: {phase}: {series.rate:,.0f} msg/s", flush=True)
    if not QUICK:
        _keep(found)
        for figure in FIGURES:
            draw(figure, found)
    return _table(found)


def draw(figure: Figure, found: dict[str, Found]) -> None:
    """Draws the throughput of each system over the number of messages so far, as in the paper.
    Unlike in the paper, the axis of the throughput is logarithmic."""
    curves = [
        plots.Line(f"{side}, {phase}", list(series.rates()), style, COLORS[side])
        for phase, style in figure.phases.items()
        for side in SIDES
        if (series := found[side].get(phase)) is not None
    ]
    plots.lines(figure.name, figure.title, "messages so far", "messages per second", curves)


def _skidway(folder: Path) -> Found:
    with ours(folder) as (address, _, _):
        return _stock(address)


def _kafka(folder: Path) -> Found:
    kafka = ApacheKafka(folder, heap_mb=1024)
    kafka.format()
    with running(kafka.program, kafka.ready, within_s=120):
        return _stock(kafka.address)


def _stock(address: str) -> Found:
    found: Found = {}
    for phase, batch in ((ONE, 1), (FIFTY, 50)):
        topic = f"paper-{batch}"
        create(address, topic)
        found[phase] = kafka_clients.produce(address, topic, batch, COUNT, SECONDS_MAX)
    there = found[FIFTY].messages
    found[CONSUMER] = kafka_clients.consume(address, "paper-50", there, SECONDS_MAX)
    return found


def _rabbitmq(folder: Path) -> Found:
    return _one_by_one(RabbitMQ(folder))


def _activemq(folder: Path) -> Found:
    return _one_by_one(ActiveMQ(folder))


def _one_by_one(side: RabbitMQ | ActiveMQ) -> Found:
    """Measures a system that has no batches: produces the messages one by one, then consumes
    them."""
    with side.run():
        warm_memory(2 * COUNT * len(MESSAGE))
        produced = side.produce(COUNT, SECONDS_MAX)
        return {ONE: produced, CONSUMER: side.consume(produced.messages, SECONDS_MAX)}


def _table(found: dict[str, Found]) -> SidesTable:
    table = SidesTable(
        f"paper: {COUNT:,} messages of 200 bytes, or as many as {SECONDS_MAX:.0f} s allow; one "
        "producer, then one consumer",
        SIDES,
    )
    for unit, figure in _figures().items():
        for phase in PHASES:
            sides = {
                side: (figure(phases[phase]),) for side, phases in found.items() if phase in phases
            }
            table.add(SidesRow(phase, unit, sides))
    return table


def _figures() -> dict[str, Callable[[Series], float]]:
    return {"msg/s": lambda series: series.rate, "messages": lambda series: float(series.messages)}


def _keep(found: dict[str, Found]) -> None:
    RESULTS.mkdir(exist_ok=True)
    with (RESULTS / "paper-series.csv").open("w", newline="") as out:
        writer = csv.writer(out)
        writer.writerow(["side", "phase", "seconds", "messages"])
        for side, phases in found.items():
            for phase, series in phases.items():
                for point in series.points:
                    writer.writerow([side, phase, f"{point.seconds:.3f}", point.messages])
