"""A real Spark cluster: a standalone master and one worker, from the jars of the pip package
pyspark."""

from __future__ import annotations

import importlib.util
from pathlib import Path

from skidway import java
from support import jvm
from support.places import LOOPBACK, Place
from support.processes import Program, free_port

MASTER = "org.apache.spark.deploy.master.Master"
WORKER = "org.apache.spark.deploy.worker.Worker"


class SparkCluster:
    """The two processes, and the URL of the master."""

    def __init__(self, folder: Path, *, place: Place = LOOPBACK) -> None:
        self._place, self._folder, self._port = place, folder, free_port()
        self._http_port = free_port()
        self.url = f"spark://{place.host}:{self._port}"
        self._work = folder / "work"
        host = ("--host", place.host)
        self.master = self._program(
            "master", MASTER, *host, "--port", str(self._port), "--webui-port", str(self._http_port)
        )
        self.worker = self._program(
            "worker", WORKER, *host, "--webui-port", str(free_port()),
            "--cores", "1", "--memory", "1g", "--work-dir", str(self._work), self.url,
        )  # fmt: skip

    def _program(self, name: str, main: str, *arguments: str) -> Program:
        spec = importlib.util.find_spec("pyspark")
        assert spec is not None
        assert spec.origin is not None
        home = Path(spec.origin).parent
        environment = {
            **java.environment(java.find()),
            "SPARK_HOME": str(home),
            "SPARK_LOCAL_IP": self._place.host,
            "SPARK_DAEMON_MEMORY": "256m",
            "SPARK_DAEMON_JAVA_OPTS": " ".join(jvm.BRIEF),
        }
        command = [str(home / "bin" / "spark-class"), main, *arguments]
        return Program(self._place.command(command), self._folder / f"{name}.out", env=environment)

    def ready(self) -> bool:
        """Whether the master knows the worker."""
        said = self._place.read(f"http://{self._place.host}:{self._http_port}/json/")
        return said is not None and '"aliveworkers" : 1' in said

    def executors(self) -> int:
        """The number of executors that the cluster has started for drivers."""
        return len(list(self._work.glob("app-*/*/stderr")))
