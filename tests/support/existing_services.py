"""The services that an operator already has, that is, ZooKeeper, Apache Kafka, a registry, HDFS
with Kerberos and Spark.

All these services run on the control node (the machine that runs the tests), and listen on its
address in the network of the test hosts. They are stopped when the test ends.
"""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import urlsplit

from skidway.audit.output.hdfs.configuration import HDFS_FILES
from support import jvm
from support.hdfs import Hdfs
from support.hosts import NETWORK, Run
from support.kafka import ApacheKafka
from support.kerberos import REALM, Kdc
from support.places import Place
from support.processes import Program
from support.registry import Registry
from support.spark_cluster import SparkCluster
from support.zookeeper import ZooKeeper

CHROOT = "/company"
"""The chroot for Skidway in the operator's ZooKeeper."""
LOADER = "skidway-loader"
PRINCIPAL = f"{LOADER}@{REALM}"
KEYTAB = "/etc/skidway/loader/krb5.keytab"
WITHIN_S = 180.0


class ExistingServices:
    """The operator's services."""

    def __init__(self, run: Run, folder: Path) -> None:
        self.place = Place(f"{NETWORK}.1", tuple(run.inside([])))
        for name in ("zookeeper", "kafka", "registry", "hdfs", "spark", "worker"):
            (folder / name).mkdir()
        self.zookeeper = ZooKeeper(folder / "zookeeper", place=self.place)
        self.kafka = ApacheKafka(folder / "kafka", heap_mb=256, options=jvm.BRIEF, place=self.place)
        self.registry = Registry(
            f"{self.zookeeper.address}/registry", folder / "registry", place=self.place
        )
        self.kdc = Kdc(folder / "kdc", self.place)
        self.hdfs = Hdfs(folder / "hdfs", place=self.place, permissions=True, kdc=self.kdc)
        self._worker_etc = folder / "worker"
        own_etc = f'mount --bind {self._worker_etc} /etc && exec "$@"'
        enter = (*self.place.enter, "unshare", "--mount", "sh", "-c", own_etc, "sh")
        self.spark = SparkCluster(folder / "spark", place=Place(self.place.host, enter))
        self.output = f"{self.hdfs.url}/logs/skidway"

    @contextlib.contextmanager
    def running(self) -> Iterator[ExistingServices]:
        """Runs all services during the `with` block. When the block begins, ZooKeeper, Apache Kafka
        and the registry are ready. HDFS and Spark are started, but may not be ready yet."""
        self.kafka.format()
        self.kdc.make()
        try:
            self.kdc.server.start()
            self._await(self.kdc.server, self.kdc.is_ready)
            self.hdfs.format()  # with a ticket
            self._equip_worker()
            for program in self.programs:
                if program not in (self.kdc.server, self.registry.program):  # it needs ZooKeeper
                    program.start()
            self._await(self.zookeeper.program, self.zookeeper.ready)
            self.registry.program.start()
            self._await(self.kafka.program, self.kafka.ready)
            self._await(self.registry.program, self.registry.ready)
            yield self
        finally:
            for program in self.programs:
                program.kill()

    @property
    def client_files(self) -> dict[str, Path]:
        """The files that the administrators place on every host that uses HDFS, by their paths
        there."""
        conf = {f"/etc/hadoop/conf/{name}": self.hdfs.conf / name for name in HDFS_FILES}
        return {"/etc/krb5.conf": self.kdc.conf, **conf}

    def _equip_worker(self) -> None:
        """Places the files that a worker of the Spark cluster needs for HDFS."""
        shutil.copytree("/etc", self._worker_etc, symlinks=True, dirs_exist_ok=True)
        for path, source in (self.client_files | {KEYTAB: self.kdc.keytab(LOADER)}).items():
            placed = self._worker_etc / Path(path).relative_to("/etc")
            placed.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(source, placed)

    def await_hadoop(self) -> None:
        """Waits until HDFS and Spark are ready, and then makes a folder on HDFS that belongs to the
        loader's user."""
        self._await(self.hdfs.data_node, self.hdfs.ready)
        self.hdfs.give(urlsplit(self.output).path, LOADER)
        self._await(self.spark.worker, self.spark.ready)

    def _await(self, program: Program, ready: Callable[[], bool]) -> None:
        # `ready` is called only every 0.5 s, because each call starts a process
        program.wait_until(ready, within_s=WITHIN_S, every_s=0.5)

    @property
    def programs(self) -> list[Program]:
        """The processes of all services."""
        return [
            self.zookeeper.program, self.registry.program, self.kafka.program, self.kdc.server,
            self.hdfs.name_node, self.hdfs.data_node, self.spark.master, self.spark.worker,
        ]  # fmt: skip

    @contextlib.contextmanager
    def without_hadoop(self) -> Iterator[None]:
        """Suspends the processes of HDFS and Spark during the `with` block."""
        with contextlib.ExitStack() as stack:
            for program in (
                self.hdfs.name_node, self.hdfs.data_node, self.spark.master, self.spark.worker,
            ):  # fmt: skip
                stack.enter_context(program.frozen())
            yield
