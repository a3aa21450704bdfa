"""Loads into a real HDFS with two NameNodes behind a name service, which requires Kerberos."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from unittest.mock import patch

import pytest

from skidway.audit.output.hadoop_client import HadoopClient
from skidway.loader.state import layout
from support.hdfs import write_xml
from support.kerberos import LOADER, Kdc, administrator, give_logs
from support.name_service import NameService
from support.processes import call_skidway, eventually
from support.zookeeper import ZooKeeper
from tests.crash.loader.conftest import (
    START_MS,
    Cluster,
    Loading,
    SharedSpark,
    fill,
    hdfs_identities,
    lines,
    loading_of,
)

pytestmark = [pytest.mark.java, pytest.mark.foreign]


@pytest.fixture(scope="module")
def kdc(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kdc]:
    made = Kdc(tmp_path_factory.mktemp("kdc"))
    with made.running(), patch.dict(os.environ, made.env):
        yield made


@pytest.fixture(scope="module")
def lake(
    kdc: Kdc, zookeeper_server: ZooKeeper, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[NameService]:
    """A name service, on which `/logs` belongs to the principal LOADER."""
    with NameService(tmp_path_factory.mktemp("lake"), zookeeper_server, kdc=kdc).running() as made:
        give_logs(administrator(kdc, made.url, str(made.conf)))
        yield made


@pytest.fixture
def loading(
    lake: NameService, kdc: Kdc, cluster: Cluster, spark: SharedSpark, tmp_path: Path
) -> Loading:
    made = loading_of(cluster, spark, tmp_path)
    made.output = f"{lake.url}/logs/{made.topic}"
    made.hadoop = HadoopClient(str(lake.conf), LOADER, str(kdc.folder / "loader.keytab"))
    return made


@pytest.fixture(scope="module", autouse=True)
def keytab(kdc: Kdc) -> Path:
    return kdc.keytab("loader")


def test_loads_go_on_when_the_active_name_node_dies(loading: Loading, lake: NameService) -> None:
    """If the active NameNode is killed in the middle of loads, the loads go on with the other, and
    every line has one row."""
    program = loading.start_resident()
    for round_ in range(2):
        fill(loading, 1000 * round_, 1000)
        staging = f"_skidway/{loading.topic}/staging"
        store = loading.store()
        eventually(lambda: any(store.files(staging)) or not program.running)  # noqa: B023
        at = lake.active()
        assert at is not None
        lake.name_nodes[at].kill()
        wanted = lines(1000 * (round_ + 1))
        eventually(lambda: hdfs_identities(loading) == wanted or not program.running)  # noqa: B023
        assert program.running, program.output()
        lake.name_nodes[at].start()
        eventually(lambda: None not in lake.states())
    assert program.stop() == 0


def test_a_load_passes_a_frozen_name_node(loading: Loading, lake: NameService) -> None:
    """If the NameNode that the configuration names first takes connections and does not answer, and
    the other is active, a load goes to the other."""
    fill(loading, 0, 100)
    with lake.name_nodes[0].frozen():
        eventually(lambda: lake.active() == 1)
        loading.loaded()
        assert hdfs_identities(loading) == lines(100)
        lake.name_nodes[0].kill()  # as an administrator does: it believes that it is active
    lake.name_nodes[0].start()
    eventually(lambda: None not in lake.states())


@pytest.mark.parametrize("url", ["hdfs:///logs/{}", "viewfs://site/kept/{}"])
def test_other_names_of_the_same_output(
    loading: Loading, lake: NameService, tmp_path: Path, url: str
) -> None:
    """An output can be named by the default file system and by a mount table, too. Every command
    finds the same loads there."""
    conf = tmp_path / "conf"
    conf.mkdir()
    (conf / "hdfs-site.xml").write_text((lake.conf / "hdfs-site.xml").read_text())
    mounted = {"link./kept": f"{lake.url}/logs", "linkFallback": f"{lake.url}/"}
    core = {f"fs.viewfs.mounttable.site.{key}": value for key, value in mounted.items()}
    write_xml(conf / "core-site.xml", {"fs.defaultFS": lake.url, **core})
    loading.hadoop = HadoopClient(str(conf), loading.hadoop.principal, loading.hadoop.keytab)
    fill(loading, 0, 100)
    loading.output = url.format(loading.topic)
    loading.loaded()
    fill(loading, 100, 100)
    loading.output = f"{lake.url}/logs/{loading.topic}"
    loading.loaded()
    assert hdfs_identities(loading) == lines(200)
    done = loading.spark.run(loading.arguments(verb="status"))
    assert {each["rows"] for each in json.loads(done.stdout)["partitions"]} == {200}


def test_no_name_node_is_active(loading: Loading, lake: NameService) -> None:
    """If all NameNodes are standby, a load fails as one that may succeed later, and the next load
    after one has become active loads each line once."""
    fill(loading, 0, 100)
    at = lake.active()
    assert at is not None
    for program in (*lake.controllers, lake.name_nodes[at]):
        program.kill()
    lake.name_nodes[at].start()
    eventually(lambda: lake.states() == ["standby", "standby"])
    done = loading.run()
    assert done.returncode == 3, done.stderr
    assert "no NameNode is active" in done.stderr
    for program in lake.controllers:
        program.start()
    eventually(lake.is_ready)
    loading.loaded()
    assert hdfs_identities(loading) == lines(100)


def test_recount_reads_the_same_settings(loading: Loading) -> None:
    """The audit's recount reads an output on a name service with Kerberos, with the settings that
    the loader has."""
    fill(loading, 0, 100)
    loading.loaded()
    settings = loading.hadoop_settings()
    sets = [word for key, value in settings.items() for word in ("--set", f"{key}={value}")]
    done = call_skidway(
        "audit", "recount", "--output", loading.output, "--json",
        "--bootstrap-server", loading.cluster.broker, *sets,
    )  # fmt: skip
    (found,) = json.loads(done.stdout)["topics"]
    assert (found["rows"], found["faults"]) == (200, [])


def test_tasks_use_the_tokens_that_hadoop_gives_them(
    loading: Loading, lake: NameService, kdc: Kdc, tmp_path: Path
) -> None:
    """If Hadoop has given a process delegation tokens, the process uses them and needs neither a
    ticket nor a keytab."""
    file = tmp_path / "tokens"
    with kdc.tickets("loader", str(kdc.folder / "loader.keytab")) as cache:
        lake.fetch_token(file, cache)
    fill(loading, 0, 100)
    hadoop = loading.hadoop
    loading.hadoop = HadoopClient(hadoop.conf_dir, LOADER, "/nowhere")
    program = loading.start(env={"HADOOP_TOKEN_FILE_LOCATION": str(file)})
    assert program.wait() == 0, program.output()
    loading.hadoop = hadoop
    assert hdfs_identities(loading) == lines(100)


def test_files_are_rewritten_and_reloaded(loading: Loading) -> None:
    """Compaction and reload replace files on a name service with Kerberos, and change no row."""
    for first in (0, 100):
        fill(loading, first, 100)
        loading.loaded()
    compact = loading.spark.run([*loading.arguments(verb="compact"), "--until", "0s"])
    assert compact.returncode == 0, compact.stderr
    (topic,) = json.loads(compact.stdout)["topics"]
    assert (topic["rows"], topic["files_after"] < topic["files_before"]) == (400, True)
    hours = [layout.hour_text(START_MS // 3_600_000 + each) for each in (0, 1)]
    words = ["--from", hours[0], "--to", hours[1], loading.topic]
    reload_ = loading.spark.run([*loading.arguments(verb="reload"), *words])
    assert reload_.returncode == 0, reload_.stderr
    assert json.loads(reload_.stdout)["problems"] == []
    assert hdfs_identities(loading) == lines(200)
