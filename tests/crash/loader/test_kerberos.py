"""Loads into a real HDFS that requires Kerberos, with a real KDC."""

from __future__ import annotations

import gc
import json
import os
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from unittest.mock import patch
from urllib.parse import urlsplit

import pytest
from hdfs_native import Client

from skidway.audit.output import StoreUnreachable
from skidway.audit.output.hadoop_client import NO_SETTINGS, HadoopClient
from skidway.audit.output.hdfs import answer
from support import spark_script
from support.hdfs import Hdfs
from support.kerberos import CLOCK_SKEW_S, LOADER, REALM, Kdc, administrator, give_logs
from support.processes import Program, eventually
from support.spark_cluster import SparkCluster
from tests.crash.loader.conftest import (
    ON_SPARK,
    Cluster,
    Loading,
    SharedSpark,
    fill,
    hdfs_identities,
    lines,
    loading_of,
)
from tests.crash.loader.test_spark_cluster import on_cluster

pytestmark = [pytest.mark.java]

TICKET_S = 20
"""How long a ticket of the loader lives."""

ENCRYPTED = {
    "hadoop.rpc.protection": "privacy",
    "dfs.data.transfer.protection": "privacy",
    "dfs.encrypt.data.transfer.cipher.suites": "AES/CTR/NoPadding",
}
"""The NameNode and the DataNode encrypt whatever they send and take."""


READER = """
import json, sys
import skidway
from pyspark.sql import SparkSession
settings, output, topic = json.loads(sys.argv[1]), sys.argv[2], sys.argv[3]
spark = SparkSession.builder.config(map=settings).getOrCreate()
rows = [skidway.table(spark, output, topic), spark.read.parquet(f"{output}/{topic}")]
print(json.dumps([each.count() for each in rows]))
"""


@dataclass(frozen=True)
class Secured:
    """An HDFS with Kerberos, on which `/logs` belongs to the principal LOADER."""

    kdc: Kdc
    hdfs: Hdfs
    loader: HadoopClient

    def administrator(self) -> Client:
        """Returns a client of the HDFS's superuser."""
        return administrator(self.kdc, self.hdfs.url)


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    folder = tmp_path_factory.mktemp("secured")
    kdc = Kdc(folder / "kdc")
    with kdc.running(), patch.dict(os.environ, kdc.env):
        keytab = kdc.keytab("loader")
        kdc.admin(f"modprinc -maxlife {TICKET_S}seconds loader")
        with Hdfs(folder, kdc=kdc, permissions=True, settings=ENCRYPTED).running() as hdfs:
            made = Secured(kdc, hdfs, HadoopClient(None, LOADER, str(keytab)))
            give_logs(made.administrator())
            yield made


@pytest.fixture
def loading(secured: Secured, cluster: Cluster, spark: SharedSpark, tmp_path: Path) -> Loading:
    made = loading_of(cluster, spark, tmp_path)
    made.output, made.hadoop = f"{secured.hdfs.url}/logs/{made.topic}", secured.loader
    return made


@pytest.mark.parametrize("moment", ["staging/.*/rows-.*", r"\d+\.json"])
def test_a_killed_load_is_finished(loading: Loading, secured: Secured, moment: str) -> None:
    """On an HDFS with Kerberos, every line has one row after several loads, although a run was
    killed as its tasks wrote or right after its commit, and a record was sent twice."""
    fill(loading, 0, 500)
    program = loading.start()
    eventually(lambda: reached(loading, moment) or not program.running)
    program.kill()
    loading.loaded()
    fill(loading, 400, 200)
    summary = loading.loaded()
    assert (summary["rows"], summary["repeats"]) == (200, 200)
    assert hdfs_identities(loading) == lines(600)
    made = secured.administrator().list_status(f"/logs/{loading.topic}", recursive=True)
    found = {(each.owner, each.isdir, each.permission) for each in made}
    assert found == {("loader", False, 0o640), ("loader", True, 0o750)}


def reached(loading: Loading, moment: str) -> bool:
    """Returns whether the output's state has a file whose path matches."""
    folder = f"_skidway/{loading.topic}/"
    names = [each.path.removeprefix(folder) for each in loading.store().files(folder.rstrip("/"))]
    return any(re.fullmatch(moment, each) for each in names)


def refused(loading: Loading, *more: str) -> tuple[int, str]:
    """Runs a load, and returns its exit status and the one sentence that it prints. The run is in a
    process of its own, which has no ticket yet."""
    program = loading.start(*more)
    status = program.wait()
    assert "Traceback" not in program.output()
    (sentence,) = [line for line in program.output().splitlines() if line.startswith("skidway")]
    return status, sentence


class Mistakes:
    """Makes the mistakes of those who configure a loader. Each method returns the settings."""

    def __init__(self, kdc: Kdc, folder: Path) -> None:
        self._kdc, self._folder = kdc, folder

    def no_keytab(self) -> dict[str, str]:
        return {"kerberos.keytab": ""}

    def missing(self) -> dict[str, str]:
        return {"kerberos.keytab": str(self._folder / "missing")}

    def directory(self) -> dict[str, str]:
        return {"kerberos.keytab": str(self._folder)}

    def text(self) -> dict[str, str]:
        path = self._folder / "text"
        path.write_text("loader secret")
        return {"kerberos.keytab": str(path)}

    def other(self) -> dict[str, str]:
        return {"kerberos.keytab": str(self._kdc.keytab("other"))}

    def changed_key(self) -> dict[str, str]:
        keytab = self._kdc.keytab("changed", name="old.keytab")
        self._kdc.keytab("changed", name="new.keytab")
        return {"kerberos.keytab": str(keytab), "kerberos.principal": f"changed@{REALM}"}

    def deleted(self) -> dict[str, str]:
        keytab = self._kdc.keytab("gone")
        self._kdc.admin("delprinc -force gone")
        return {"kerberos.keytab": str(keytab), "kerberos.principal": f"gone@{REALM}"}

    def expired(self) -> dict[str, str]:
        keytab = self._kdc.keytab("past")
        self._kdc.admin("modprinc -expire 2020-01-01 past")
        return {"kerberos.keytab": str(keytab), "kerberos.principal": f"past@{REALM}"}

    def stranger(self) -> dict[str, str]:
        keytab = self._kdc.keytab("stranger")
        return {"kerberos.keytab": str(keytab), "kerberos.principal": f"stranger@{REALM}"}

    def no_directory(self) -> dict[str, str]:
        return {"hadoop.conf.dir": str(self._folder / "conf")}


@pytest.mark.parametrize(
    ("mistake", "status", "words"),
    [
        ("no_keytab", 78, "kerberos.keytab is missing: kerberos.principal and kerberos.keytab"),
        ("missing", 78, "kerberos.keytab: cannot read {}: No such file or directory"),
        ("directory", 78, "kerberos.keytab: cannot read {}: Is a directory"),
        ("text", 78, "kerberos.keytab: {} is no keytab"),
        ("other", 78, f"kerberos.keytab: {{}} has no key of {LOADER}, only of other@{REALM}"),
        ("changed_key", 1, "Kerberos: the principal's key in the keytab is not that of the KDC"),
        ("deleted", 1, "Kerberos: the KDC does not know the principal"),
        ("expired", 1, "Kerberos: the KDC says that the principal has expired"),
        ("stranger", 1, "Permission denied: user=stranger"),
        ("no_directory", 78, "hadoop.conf.dir: "),
    ],
)
def test_a_mistake_is_one_sentence(
    loading: Loading, secured: Secured, tmp_path: Path, mistake: str, status: int, words: str
) -> None:
    """A loader that cannot authenticate says in one sentence why, and what is to be changed."""
    given = getattr(Mistakes(secured.kdc, tmp_path), mistake)()
    found = refused(loading, *(f"{key}={value}" for key, value in given.items()))
    assert found[0] == status, found[1]
    assert words.format(given.get("kerberos.keytab")) in found[1]


def test_only_one_side_has_kerberos(loading: Loading, secured: Secured, hdfs: Hdfs) -> None:
    """A loader without Kerberos is told at once that the NameNode requires it. A loader with
    Kerberos sends nothing to a NameNode that does not authenticate."""
    status, sentence = refused(loading, f"output={hdfs.url}/logs")
    assert status == 1, sentence
    assert "does not authenticate by Kerberos" in sentence
    loading.hadoop = NO_SETTINGS
    status, sentence = refused(loading)
    assert status == 78, sentence
    assert "requires Kerberos: set kerberos.principal and its keytab" in sentence


def test_a_realm_is_unknown(loading: Loading, tmp_path: Path) -> None:
    """If krb5.conf does not say where the KDC is, the loader says so."""
    (tmp_path / "krb5.conf").write_text("[libdefaults]\ndns_lookup_kdc = false\n")
    with patch.dict(os.environ, {"KRB5_CONFIG": str(tmp_path / "krb5.conf")}):
        status, sentence = refused(loading)
    assert status == 1, sentence
    assert "Kerberos: krb5.conf names no KDC of the principal's realm" in sentence


def test_loads_go_on_when_the_kdc_is_back(loading: Loading, secured: Secured) -> None:
    """If no KDC answers, a load fails as one that may succeed later. The next load after the KDC is
    back loads each line once."""
    fill(loading, 0, 100)
    secured.kdc.server.kill()
    status, sentence = refused(loading)
    assert status == 3, sentence
    assert "Kerberos: no KDC of the realm answers" in sentence
    secured.kdc.server.start().wait_until(secured.kdc.is_ready)
    loading.loaded()
    assert hdfs_identities(loading) == lines(100)


def test_a_resident_loader_outlives_its_ticket(loading: Loading, secured: Secured) -> None:
    """A loader that runs on and on gets new tickets from its keytab. So it can connect anew after
    its first ticket has ended, while a client without a keytab is refused."""
    program = loading.start_resident()
    await_rows(loading, program, 0)
    began = time.monotonic()
    with secured.kdc.tickets("loader", secured.loader.keytab) as cache:
        eventually(lambda: time.monotonic() > began + TICKET_S + 2 * CLOCK_SKEW_S)
        secured.hdfs.name_node.kill()
        secured.hdfs.name_node.start()
        secured.hdfs.await_data_nodes()
        await_rows(loading, program, 100)
        ended = Loading.beside(loading, loading.output)
        ended.hadoop = HadoopClient(str(secured.hdfs.conf))
        with patch.dict(os.environ, {"KRB5CCNAME": cache}):
            status, sentence = refused(ended)
    assert status == 3, sentence
    assert "Kerberos: its ticket has ended" in sentence
    assert program.stop() == 0


def await_rows(loading: Loading, program: Program, first: int) -> None:
    """Sends 100 lines of each file, and waits until the program has loaded them."""
    fill(loading, first, 100)
    wanted = lines(first + 100)
    eventually(lambda: hdfs_identities(loading) == wanted or not program.running)
    assert program.running, program.output()


def test_a_keytab_is_replaced_while_loads_run(loading: Loading, secured: Secured) -> None:
    """If the principal gets a new key, and the new keytab replaces the old one, a loader that runs
    goes on without a restart, also after its last ticket of the old key has ended."""
    secured.kdc.keytab("turned")
    secured.kdc.admin(f"modprinc -maxlife {TICKET_S}seconds turned")
    keytab = secured.kdc.keytab("turned")
    secured.administrator().set_owner("/logs", "turned", "hadoop")
    loading.hadoop = HadoopClient(None, f"turned@{REALM}", str(keytab))
    program = loading.start_resident()
    await_rows(loading, program, 0)
    os.replace(secured.kdc.keytab("turned", name="next"), keytab)
    began = time.monotonic()
    eventually(lambda: time.monotonic() > began + TICKET_S + 2 * CLOCK_SKEW_S)
    await_rows(loading, program, 100)
    key = keytab.read_bytes()[-32:]
    for text in (program.log, Path(f"/proc/{program.pid}/cmdline")):
        assert not any(each in text.read_bytes() for each in (key, key.hex().encode()))
    assert program.stop() == 0
    secured.administrator().set_owner("/logs", "loader", "hadoop")


def test_a_data_node_dies(loading: Loading, secured: Secured) -> None:
    """If the only DataNode is killed while a load writes, the load fails as one that may succeed
    later, or goes on; after the DataNode is back, every line has one row."""
    fill(loading, 0, 500)
    program = loading.start()
    eventually(lambda: reached(loading, "staging/.*") or not program.running)
    secured.hdfs.data_node.kill()
    secured.hdfs.data_node.start()
    assert program.wait() in (0, 3), program.output()
    secured.hdfs.await_data_nodes()
    loading.loaded()
    assert hdfs_identities(loading) == lines(500)


def test_a_frozen_name_node_holds_nobody_for_ever(
    loading: Loading, secured: Secured, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If the NameNode takes connections and does not answer, an operation fails after a while as
    one that may succeed later, also on a connection that is open already."""
    monkeypatch.setattr(answer, "ANSWER_S", 1.0)
    store = loading.store()
    store.names("")
    left = store.create(f"{loading.topic}/left")
    with secured.hdfs.name_node.frozen():
        del left
        gc.collect()  # a file that nobody will write is not closed
        with pytest.raises(StoreUnreachable, match="no answer within 1 s"):
            store.names("")
        with pytest.raises(StoreUnreachable, match="no answer within 1 s"):
            loading.store().names("")
    assert loading.store().names("") == [loading.topic]


@pytest.mark.foreign
def test_a_load_on_a_spark_cluster(loading: Loading, secured: Secured, tmp_path: Path) -> None:
    """Tasks on the workers of a Spark cluster get their own tickets from the keytab, and write as
    the loader. Others read the rows with Spark, by their own tickets."""
    loading.way = ON_SPARK
    fill(loading, 0, 1500)
    with SparkCluster(tmp_path).running() as workers:
        program = loading.start(*on_cluster(workers.url))
        assert program.wait() == 0, program.output()
    assert hdfs_identities(loading) == lines(1500)
    kdc = secured.kdc
    with kdc.tickets(f"nn/{kdc.host}", kdc.service("nn")) as cache:  # it lasts longer
        found = spark_script.answer(
            READER, loading.output, loading.topic, folder=tmp_path, **secured.kdc.env,
            HADOOP_CONF_DIR=str(secured.hdfs.conf), KRB5CCNAME=cache,
            JDK_JAVA_OPTIONS=f"-Djava.security.krb5.conf={secured.kdc.conf}",
        )  # fmt: skip
    assert found == [3000, 3000]


def test_validate_says_what_a_load_would_meet(loading: Loading, secured: Secured) -> None:
    """`skidway load validate` connects as a load does. If nobody answers, it says so at once, and
    that the configuration itself is good."""
    good = loading.spark.run(loading.arguments(verb="validate"))
    assert json.loads(good.stdout) == {"ok": True}, good.stderr
    secured.hdfs.name_node.kill()
    away = loading.spark.run(loading.arguments(verb="validate"))
    secured.hdfs.name_node.start()
    secured.hdfs.await_data_nodes()
    address = urlsplit(secured.hdfs.url).netloc
    assert json.loads(away.stdout) == {
        "ok": True, "says": f"But a load would fail now: no NameNode answers ({address})."
    }  # fmt: skip
