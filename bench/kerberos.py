"""Compares loads into an HDFS with Kerberos with loads into the same HDFS without.

Both are on this machine, with one NameNode and one DataNode each. Each round loads the same topic
into each of them, in the loader's own process: ROWS rows, and FEW rows, which shows what a load
costs that has to authenticate first.
"""

from __future__ import annotations

import contextlib
import json
import os
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final
from unittest.mock import patch

import numpy as np

from bench.loader import START_MS, batches
from bench.loading import WIDE, Topic, configuration, program, site, to_its_end
from bench.measure import Row, Table
from bench.scale import scaled
from bench.sites import skidway
from skidway.audit.output.hadoop_client import NO_SETTINGS, HadoopClient
from support.hdfs import Hdfs
from support.kerberos import LOADER, Kdc, administrator, give_logs

ROWS: Final = scaled(2_000_000, 40_000)
FEW: Final = 500
ROUNDS: Final = scaled(3, 1)
PARTITIONS: Final = 4
PROTECTIONS: Final = {
    "authentication": {"dfs.data.transfer.protection": "authentication"},
    "privacy, AES": {
        "dfs.data.transfer.protection": "privacy",
        "dfs.encrypt.data.transfer.cipher.suites": "AES/CTR/NoPadding",
    },
}
"""How DataNodes protect data: that the client is authenticated, or also that data are encrypted."""


@dataclass(slots=True)
class Target:
    """An HDFS into which is loaded, and what the loads cost, with a value for each round. rows_s:
    rows per second of ROWS rows. few_s: seconds of a load of FEW rows, with the program's start."""

    hdfs: Hdfs
    client: HadoopClient
    rows_s: list[float] = field(default_factory=list)
    few_s: list[float] = field(default_factory=list)


def run() -> Table:
    """Measures loads without Kerberos, and with each of PROTECTIONS, in turn."""
    table = Table(f"kerberos: {ROWS:,} rows into HDFS, and a load of {FEW} rows")
    with tempfile.TemporaryDirectory(prefix="skidway-bench-") as name, contextlib.ExitStack() as on:
        folder = Path(name)
        address, schemas = on.enter_context(site(folder))
        topic, few = (Topic(address, schemas, WIDE, PARTITIONS) for _ in range(2))
        topic.send(batches(ROWS, PARTITIONS))
        numbers = np.arange(FEW)
        few.send(iter([(0, numbers, START_MS + numbers)]))
        kdc = on.enter_context(Kdc(folder / "kdc").running())
        on.enter_context(patch.dict(os.environ, kdc.env))
        plain = on.enter_context(_target(folder / "plain", None, {}))
        secured = {
            what: on.enter_context(_target(folder / f"secured-{at}", kdc, settings))
            for at, (what, settings) in enumerate(PROTECTIONS.items())
        }
        for _ in range(ROUNDS):
            for target in (plain, *secured.values()):
                target.few_s.append(_load(folder, few, target)[0])
                target.rows_s.append(_load(folder, topic, target)[1])
        for what, target in secured.items():
            small = f"{what}: a small load (less is better)"
            for each, unit, ours, peer in (
                (what, "rows/s", target.rows_s, plain.rows_s),
                (small, "s", target.few_s, plain.few_s),
            ):
                table.add(Row(each, unit, tuple(ours), tuple(peer), "without Kerberos"))
    return table


@contextlib.contextmanager
def _target(folder: Path, kdc: Kdc | None, settings: dict[str, str]) -> Iterator[Target]:
    folder.mkdir()
    with Hdfs(folder, kdc=kdc, settings=settings).running() as hdfs:
        if kdc is None:
            yield Target(hdfs, NO_SETTINGS)
            return
        give_logs(administrator(kdc, hdfs.url))
        yield Target(hdfs, HadoopClient(None, LOADER, str(kdc.keytab("loader"))))


def _load(folder: Path, topic: Topic, target: Target) -> tuple[float, float]:
    """Loads a topic into a new folder. Returns the seconds that the program took, and the rows per
    second without its start."""
    given = {
        "output": f"{target.hdfs.url}/logs/{time.time_ns()}",
        "spark_above_offsets": 100 * ROWS,
        "kerberos_principal": target.client.principal,
        "kerberos_keytab": target.client.keytab,
    }
    config = configuration(folder, topic.address, topic.schemas, topic.name, **given)
    begin = time.perf_counter()
    command = skidway("load", "run", "--json", "--config", str(config))
    with program(command, folder, answers=True) as family:
        to_its_end(family)
        seconds = time.perf_counter() - begin
        assert family.process.stdout is not None
        summary = json.loads(family.process.stdout.read())
    return seconds, summary["rows_per_second"]
