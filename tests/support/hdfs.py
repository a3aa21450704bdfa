"""A real HDFS for tests: one NameNode and one DataNode on loopback."""

from __future__ import annotations

import contextlib
import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from support import jvm, peers
from support.places import LOOPBACK, Place
from support.processes import Program, free_port, running

NAME_NODE = "org.apache.hadoop.hdfs.server.namenode.NameNode"
ADMIN = "org.apache.hadoop.hdfs.tools.DFSAdmin"
SHELL = "org.apache.hadoop.fs.FsShell"
DATA_NODE = "org.apache.hadoop.hdfs.server.datanode.DataNode"


class Hdfs:
    """The two processes, their configuration and their URL."""

    def __init__(self, folder: Path, *, place: Place = LOOPBACK, permissions: bool = False) -> None:
        self._place, self._permissions = place, permissions
        self._folder, self._conf = folder, folder / "conf"
        self.port, self.http_port = free_port(), free_port()
        self.url = f"hdfs://{place.host}:{self.port}"
        self.name_node = Program(self._java(NAME_NODE), folder / "namenode.out")
        self.data_node = Program(self._java(DATA_NODE), folder / "datanode.out")

    def _java(self, main: str) -> list[str]:
        class_path = f"{self._conf}:{peers.jars('hdfs')}/*"
        return self._place.command([jvm.command(), "-Xmx256m", *jvm.BRIEF, "-cp", class_path, main])

    def format(self) -> None:
        """Writes the configuration and formats the NameNode's directory."""
        self._conf.mkdir(parents=True)
        host = self._place.host
        _write_xml(self._conf / "core-site.xml", {"fs.defaultFS": self.url})
        _write_xml(
            self._conf / "hdfs-site.xml",
            {
                "dfs.replication": "1",
                "dfs.namenode.name.dir": f"file://{self._folder / 'name'}",
                "dfs.datanode.data.dir": f"file://{self._folder / 'data'}",
                "dfs.namenode.http-address": f"{host}:{self.http_port}",
                "dfs.datanode.address": f"{host}:{free_port()}",
                "dfs.datanode.ipc.address": f"{host}:{free_port()}",
                "dfs.datanode.http.address": f"{host}:{free_port()}",
                "dfs.namenode.safemode.extension": "0",
                "dfs.permissions.enabled": str(self._permissions).lower(),
                # in a test's own network, addresses have no host names
                "dfs.namenode.datanode.registration.ip-hostname-check": "false",
            },
        )
        subprocess.run(
            [*self.name_node.command, "-format", "-force", "-nonInteractive"],
            check=True,
            capture_output=True,
        )

    @contextlib.contextmanager
    def safe_mode(self) -> Iterator[None]:
        """Makes HDFS refuse all writes during the `with` block."""
        self._admin("-safemode", "enter")
        try:
            yield
        finally:
            self._admin("-safemode", "leave")

    def give(self, folder: str, owner: str) -> None:
        """Makes a folder that belongs to a user, as the operator of an HDFS does."""
        for words in (["-mkdir", "-p", folder], ["-chown", owner, folder]):
            subprocess.run([*self._java(SHELL), *words], check=True, capture_output=True)

    def files(self, folder: str) -> dict[str, tuple[str, int]]:
        """The owner and length of every file below a folder, by path (over WebHDFS)."""
        root = f"http://{self._place.host}:{self.http_port}/webhdfs/v1"
        answer = self._place.read(f"{root}{folder}?op=LISTSTATUS")
        assert answer is not None
        found = {}
        for each in json.loads(answer)["FileStatuses"]["FileStatus"]:
            path = f"{folder}/{each['pathSuffix']}"
            if each["type"] == "DIRECTORY":
                found |= self.files(path)
            else:
                found[path] = each["owner"], each["length"]
        return found

    def _admin(self, *words: str) -> None:
        subprocess.run([*self._java(ADMIN), *words], check=True, capture_output=True)

    def name_node_ready(self) -> bool:
        return self._bean("Hadoop:service=NameNode,name=NameNodeInfo", '"Version"')

    def ready(self) -> bool:
        """Whether files can be written: HDFS has one live DataNode and is not in safe mode."""
        return self._bean(
            "Hadoop:service=NameNode,name=FSNamesystemState", '"NumLiveDataNodes" : 1'
        ) and self._bean("Hadoop:service=NameNode,name=NameNodeInfo", '"Safemode" : ""')

    def _bean(self, query: str, text: str) -> bool:
        answer = self._place.read(f"http://{self._place.host}:{self.http_port}/jmx?qry={query}")
        return answer is not None and text in answer


def _write_xml(path: Path, settings: dict[str, str]) -> None:
    properties = "".join(
        f"  <property><name>{name}</name><value>{value}</value></property>\n"
        for name, value in settings.items()
    )
    path.write_text(f'<?xml version="1.0"?>\n<configuration>\n{properties}</configuration>\n')


@pytest.fixture(scope="session")
def hdfs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hdfs]:
    """One HDFS for the whole test run."""
    cluster = Hdfs(tmp_path_factory.mktemp("hdfs"))
    cluster.format()
    with (
        running(cluster.name_node, cluster.name_node_ready),
        running(cluster.data_node, cluster.ready),
    ):
        yield cluster
