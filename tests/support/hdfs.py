"""A real HDFS for tests, with a NameNode and one or more DataNodes. By default, they listen on the
loopback interface."""

from __future__ import annotations

import contextlib
import os
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from support import jvm, peers
from support.kerberos import REALM, Kdc
from support.places import LOOPBACK, Place
from support.processes import Program, free_port, running

NAME_NODE = "org.apache.hadoop.hdfs.server.namenode.NameNode"
ADMIN = "org.apache.hadoop.hdfs.tools.DFSAdmin"
SHELL = "org.apache.hadoop.fs.FsShell"
DATA_NODE = "org.apache.hadoop.hdfs.server.datanode.DataNode"
SECURED = {"hadoop.security.authentication": "kerberos", "hadoop.security.authorization": "true"}
SERVICES = ("nn", "dn", "HTTP")
RUNNING = r"\"ActorState\":\"RUNNING\""
WEB_FOLDERS = ("hdfs", "datanode", "static")
LOG4J = """log4j.rootLogger=WARN,stderr
log4j.appender.stderr=org.apache.log4j.ConsoleAppender
log4j.appender.stderr.Target=System.err
log4j.appender.stderr.layout=org.apache.log4j.PatternLayout
log4j.appender.stderr.layout.ConversionPattern=%d %p %c{1}: %m%n
"""


class Hdfs:
    """The processes of an HDFS, with their configuration and their URL.

    `data_nodes` is the number of DataNodes. `settings` are further settings for hdfs-site.xml. With
    `kdc`, the HDFS requires Kerberos of its clients.
    """

    def __init__(
        self,
        folder: Path,
        *,
        place: Place = LOOPBACK,
        permissions: bool = False,
        data_nodes: int = 1,
        settings: Mapping[str, str] | None = None,
        kdc: Kdc | None = None,
    ) -> None:
        self._place, self._permissions = place, permissions
        self._folder, self._settings, self._kdc = folder, dict(settings or {}), kdc
        self.port, self.http_port = free_port(), free_port()
        self._data_node_ports = [free_port() for _ in range(data_nodes)]
        self.url = f"hdfs://{place.host}:{self.port}"
        self.name_node = Program(self._java(NAME_NODE), folder / "namenode.out")
        self.data_nodes = [
            Program(self._java(DATA_NODE, number), folder / f"datanode-{number}.out")
            for number in range(data_nodes)
        ]

    @property
    def data_node(self) -> Program:
        """The first DataNode."""
        return self.data_nodes[0]

    @property
    def conf(self) -> Path:
        """The directory with the configuration of the first DataNode, which clients can use."""
        return self._conf(0)

    def _conf(self, number: int) -> Path:
        """Returns the configuration directory of a DataNode. The NameNode and the commands use the
        configuration of the first DataNode."""
        return self._folder / f"conf-{number}"

    def _java(self, main: str, number: int = 0) -> list[str]:
        class_path = f"{self._conf(number)}:{peers.jars('hdfs')}/*"
        kerberos = [f"-Djava.security.krb5.conf={self._kdc.conf}"] if self._kdc else []
        return self._place.command(
            [jvm.command(), "-Xmx256m", *jvm.BRIEF, *kerberos, "-cp", class_path, main]
        )

    def format(self) -> None:
        """Writes the configuration and formats the NameNode's directory."""
        for number in range(len(self.data_nodes)):
            write_conf(self._conf(number), self._core(), self._site(number))
        subprocess.run(
            [*self.name_node.command, "-format", "-force", "-nonInteractive"],
            check=True,
            capture_output=True,
        )

    def _core(self) -> dict[str, str]:
        return {"fs.defaultFS": self.url} | (SECURED if self._kdc else {})

    def _site(self, number: int) -> dict[str, str]:
        host = self._place.host
        return {
            "dfs.replication": "1",
            "dfs.namenode.name.dir": f"file://{self._folder / 'name'}",
            "dfs.datanode.data.dir": f"file://{self._folder / f'data-{number}'}",
            "dfs.namenode.http-address": f"{host}:{self.http_port}",
            "dfs.datanode.address": f"{host}:{free_port()}",
            "dfs.datanode.ipc.address": f"{host}:{free_port()}",
            "dfs.datanode.http.address": f"{host}:{self._data_node_ports[number]}",
            "dfs.namenode.safemode.extension": "0",
            "dfs.permissions.enabled": str(self._permissions).lower(),
            # The NameNode would refuse a DataNode whose address has no host name. The addresses in
            # a test's own network have none.
            "dfs.namenode.datanode.registration.ip-hostname-check": "false",
            **(secured_site(self._kdc) if self._kdc else {}),
            **self._settings,
        }

    @contextlib.contextmanager
    def running(self) -> Iterator[Hdfs]:
        """Formats HDFS, and runs it during the `with` block."""
        self.format()
        try:
            with running(self.name_node, self.name_node_ready):
                for node in self.data_nodes:
                    node.start()
                self.await_data_nodes()
                yield self
        finally:
            for node in self.data_nodes:
                node.kill()

    def await_data_nodes(self) -> None:
        """Waits until files can be written and the NameNode knows every DataNode."""
        for node in self.data_nodes:
            node.wait_until(self.ready)

    @contextlib.contextmanager
    def safe_mode(self) -> Iterator[None]:
        """Makes HDFS refuse all writes (safe mode) during the `with` block."""
        self.admin("-safemode", "enter")
        try:
            yield
        finally:
            self.admin("-safemode", "leave")

    def give(self, folder: str, owner: str) -> None:
        """Makes a folder on HDFS and gives it to the user `owner`, as the operator of an HDFS
        does."""
        self._run(SHELL, "-mkdir", "-p", folder)
        self._run(SHELL, "-chown", owner, folder)

    def files(self, folder: str) -> dict[str, tuple[str, int]]:
        """Returns the owner and the length of every file below a folder, by path."""
        lines = [
            each.split(maxsplit=7) for each in self._run(SHELL, "-ls", "-R", folder).splitlines()
        ]
        return {each[7]: (each[2], int(each[4])) for each in lines if each[0].startswith("-")}

    def admin(self, *words: str) -> str:
        """Runs `hdfs dfsadmin` and returns its output."""
        return self._run(ADMIN, *words)

    def _run(self, main: str, *words: str) -> str:
        """Runs a command of Hadoop as the superuser, and returns its output."""
        with contextlib.ExitStack() as stack:
            environment = dict(os.environ)
            if self._kdc:
                tickets = self._kdc.tickets(f"nn/{self._kdc.host}", self._kdc.service("nn"))
                environment["KRB5CCNAME"] = stack.enter_context(tickets)
            command = [*self._java(main), *words]
            return subprocess.run(
                command, env=environment, check=True, capture_output=True, text=True
            ).stdout

    def name_node_ready(self) -> bool:
        return self._says(self.http_port, "NameNode,name=NameNodeInfo", '"Version"')

    def ready(self) -> bool:
        """Returns whether files can be written, that is, whether all DataNodes are registered and
        HDFS is not in safe mode."""
        live = f'"NumLiveDataNodes" : {len(self.data_nodes)}'
        return (
            self._says(self.http_port, "NameNode,name=FSNamesystemState", live)
            and self._says(self.http_port, "NameNode,name=NameNodeInfo", '"Safemode" : ""')
            # For minutes, the NameNode takes a DataNode that was killed for a live one.
            and all(
                self._says(port, "DataNode,name=DataNodeInfo", RUNNING)
                for port in self._data_node_ports
            )
        )

    def _says(self, port: int, bean: str, text: str) -> bool:
        """Returns whether a bean of the server with this HTTP port contains a text."""
        url = f"http://{self._place.host}:{port}/jmx?qry=Hadoop:service={bean}"
        answer = self._place.read(url)
        return answer is not None and text in answer


def secured_site(kdc: Kdc) -> dict[str, str]:
    """Makes the keytabs of an HDFS's services, and returns the settings that name them."""
    files = {name: str(kdc.service(name)) for name in SERVICES}
    return {
        "dfs.block.access.token.enable": "true",
        "dfs.namenode.kerberos.principal": f"nn/{kdc.host}@{REALM}",
        "dfs.namenode.keytab.file": files["nn"],
        "dfs.datanode.kerberos.principal": f"dn/{kdc.host}@{REALM}",
        "dfs.datanode.keytab.file": files["dn"],
        "dfs.web.authentication.kerberos.principal": f"HTTP/{kdc.host}@{REALM}",
        "dfs.web.authentication.kerberos.keytab": files["HTTP"],
        "dfs.data.transfer.protection": "authentication",
        # The DataNode's ports are not below 1024; its clients authenticate by SASL nevertheless.
        "ignore.secure.ports.for.testing": "true",
    }


def write_conf(folder: Path, core: Mapping[str, str], site: Mapping[str, str]) -> None:
    """Writes the configuration of a server, with which clients and commands work, too."""
    for name in WEB_FOLDERS:  # the servers' pages are not in Hadoop's jars
        (folder / "webapps" / name).mkdir(parents=True)
    (folder / "log4j.properties").write_text(LOG4J)
    write_xml(folder / "core-site.xml", core)
    write_xml(folder / "hdfs-site.xml", site)


def write_xml(path: Path, settings: Mapping[str, str]) -> None:
    """Writes a file of Hadoop's configuration."""
    properties = "".join(
        f"  <property><name>{name}</name><value>{value}</value></property>\n"
        for name, value in settings.items()
    )
    path.write_text(f'<?xml version="1.0"?>\n<configuration>\n{properties}</configuration>\n')


@pytest.fixture(scope="session")
def hdfs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hdfs]:
    """One HDFS for the whole test run."""
    with Hdfs(tmp_path_factory.mktemp("hdfs")).running() as cluster:
        yield cluster
