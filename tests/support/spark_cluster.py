"""A real Spark cluster: a standalone master and its workers. The jars are those of the pip package
pyspark."""

from __future__ import annotations

import contextlib
import importlib.util
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from skidway import java
from support import jvm
from support.places import LOOPBACK, Place
from support.processes import Program, free_port

MASTER = "org.apache.spark.deploy.master.Master"
WORKER = "org.apache.spark.deploy.worker.Worker"


class SparkCluster:
    """The processes of a Spark cluster, and the URL of its master.

    `hosts` contains an address for each worker. By default there is one worker, at the address of
    `place`. Spark never starts a second (speculative) attempt of a task on the host on which the
    first attempt runs. Therefore tests of second attempts give each worker an address of its own
    (127.0.0.2 ...). `environment` contains environment variables for the workers, which their
    executors inherit. If there is a `secret`, its processes talk only to those that have it.
    """

    def __init__(
        self,
        folder: Path,
        *,
        place: Place = LOOPBACK,
        hosts: Sequence[str] = (),
        environment: Mapping[str, str] | None = None,
        secret: str | None = None,
    ) -> None:
        properties = {"spark.authenticate": "true", "spark.authenticate.secret": secret}
        self._options = [f"-D{k}={v}" for k, v in properties.items()] if secret else []
        self._place, self._folder, self._port = place, folder, free_port()
        self._http_port = free_port()
        self.url = f"spark://{place.host}:{self._port}"
        self.master = self._program(
            "master", place.host, MASTER, "--port", str(self._port),
            "--webui-port", str(self._http_port),
        )  # fmt: skip
        self.workers = [
            self._program(
                f"worker-{number}", host, WORKER, "--webui-port", str(free_port()),
                "--cores", "1", "--memory", "1g", "--work-dir", str(folder / f"work-{number}"),
                self.url, **(environment or {}),
            )
            for number, host in enumerate(hosts or [place.host])
        ]  # fmt: skip

    @property
    def worker(self) -> Program:
        """The first worker."""
        return self.workers[0]

    def _program(
        self, name: str, host: str, main: str, *arguments: str, **variables: str
    ) -> Program:
        spec = importlib.util.find_spec("pyspark")
        assert spec is not None
        assert spec.origin is not None
        home = Path(spec.origin).parent
        environment = {
            **java.environment(java.find()),
            "SPARK_HOME": str(home),
            "SPARK_LOCAL_IP": host,
            "SPARK_DAEMON_MEMORY": "256m",
            "SPARK_DAEMON_JAVA_OPTS": " ".join([*jvm.BRIEF, *self._options]),
            **variables,
        }
        command = [str(home / "bin" / "spark-class"), main, "--host", host, *arguments]
        return Program(self._place.command(command), self._folder / f"{name}.out", env=environment)

    @contextlib.contextmanager
    def running(self) -> Iterator[SparkCluster]:
        """Runs the cluster during the `with` block."""
        programs = [self.master, *self.workers]
        try:
            for program in programs:
                program.start()
            self.await_workers()
            yield self
        finally:
            for program in programs:
                program.kill()

    def await_workers(self) -> None:
        """Waits until the master knows all workers."""
        for worker in self.workers:
            worker.wait_until(self.ready)

    def ready(self) -> bool:
        """Whether the master knows all workers."""
        said = self._place.read(f"http://{self._place.host}:{self._http_port}/json/")
        return said is not None and f'"aliveworkers" : {len(self.workers)}' in said

    def executors(self) -> int:
        """The number of executors that the cluster has started for drivers."""
        return len(list(self._folder.glob("work-*/app-*/*/stderr")))


def java_children(pid: int) -> list[int]:
    """The ids of the Java processes that the process `pid` has started: the executors of a worker,
    or the Spark driver of a loader."""
    tasks = Path(f"/proc/{pid}/task").glob("*/children")
    children = [int(child) for each in tasks for child in each.read_text().split()]
    return [each for each in children if _name(each) == "java"]


def _name(pid: int) -> str:
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        return Path(f"/proc/{pid}/comm").read_text().strip()
    return ""  # the process has ended meanwhile
