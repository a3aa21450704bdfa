"""A real HDFS for tests: one NameNode and one DataNode on loopback."""

from __future__ import annotations

import contextlib
import subprocess
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from support import jvm, peers
from support.processes import Program, free_port, running

NAME_NODE = "org.apache.hadoop.hdfs.server.namenode.NameNode"
ADMIN = "org.apache.hadoop.hdfs.tools.DFSAdmin"
DATA_NODE = "org.apache.hadoop.hdfs.server.datanode.DataNode"


class Hdfs:
    """The two processes, their configuration and their URL."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._conf = folder, folder / "conf"
        self.port, self.http_port = free_port(), free_port()
        self.url = f"hdfs://127.0.0.1:{self.port}"
        self.name_node = Program(self._java(NAME_NODE), folder / "namenode.out")
        self.data_node = Program(self._java(DATA_NODE), folder / "datanode.out")

    def _java(self, main: str) -> list[str]:
        return [
            jvm.command(),
            "-Xmx256m",
            *jvm.BRIEF,
            "-cp",
            f"{self._conf}:{peers.jars('hdfs')}/*",
            main,
        ]

    def format(self) -> None:
        """Write the configuration and format the NameNode's directory."""
        self._conf.mkdir(parents=True)
        _write_xml(self._conf / "core-site.xml", {"fs.defaultFS": self.url})
        _write_xml(
            self._conf / "hdfs-site.xml",
            {
                "dfs.replication": "1",
                "dfs.namenode.name.dir": f"file://{self._folder / 'name'}",
                "dfs.datanode.data.dir": f"file://{self._folder / 'data'}",
                "dfs.namenode.http-address": f"127.0.0.1:{self.http_port}",
                "dfs.datanode.address": f"127.0.0.1:{free_port()}",
                "dfs.datanode.ipc.address": f"127.0.0.1:{free_port()}",
                "dfs.datanode.http.address": f"127.0.0.1:{free_port()}",
                "dfs.namenode.safemode.extension": "0",
                "dfs.permissions.enabled": "false",
            },
        )
        subprocess.run(
            [*self.name_node.command, "-format", "-force", "-nonInteractive"],
            check=True,
            capture_output=True,
        )

    @contextlib.contextmanager
    def safe_mode(self) -> Iterator[None]:
        """Nothing can be written while the block runs."""
        self._admin("-safemode", "enter")
        try:
            yield
        finally:
            self._admin("-safemode", "leave")

    def _admin(self, *words: str) -> None:
        subprocess.run([*self._java(ADMIN), *words], check=True, capture_output=True)

    def name_node_ready(self) -> bool:
        return self._bean("Hadoop:service=NameNode,name=NameNodeInfo", '"Version"')

    def ready(self) -> bool:
        """One live DataNode and no safe mode: files can be written."""
        return self._bean(
            "Hadoop:service=NameNode,name=FSNamesystemState", '"NumLiveDataNodes" : 1'
        ) and self._bean("Hadoop:service=NameNode,name=NameNodeInfo", '"Safemode" : ""')

    def _bean(self, query: str, text: str) -> bool:
        try:
            with urllib.request.urlopen(
                f"http://127.0.0.1:{self.http_port}/jmx?qry={query}", timeout=2
            ) as answer:
                return text in answer.read().decode()
        except OSError:
            return False


def _write_xml(path: Path, settings: dict[str, str]) -> None:
    properties = "".join(
        f"  <property><name>{name}</name><value>{value}</value></property>\n"
        for name, value in settings.items()
    )
    path.write_text(f'<?xml version="1.0"?>\n<configuration>\n{properties}</configuration>\n')


@pytest.fixture(scope="session")
def hdfs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hdfs]:
    """One HDFS for the whole run."""
    cluster = Hdfs(tmp_path_factory.mktemp("hdfs"))
    cluster.format()
    with (
        running(cluster.name_node, cluster.name_node_ready, within_s=90),
        running(cluster.data_node, cluster.ready, within_s=90),
    ):
        yield cluster
