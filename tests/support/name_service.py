"""A real HDFS with two NameNodes behind a name service, of which controllers at a real ZooKeeper
keep one active."""

from __future__ import annotations

import contextlib
import os
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path

from support import jvm, peers
from support.hdfs import DATA_NODE, NAME_NODE, SECURED, secured_site, write_conf
from support.kerberos import Kdc
from support.places import LOOPBACK
from support.processes import Program, eventually, free_port
from support.zookeeper import ZooKeeper

NAME = "lake"
CONTROLLER = "org.apache.hadoop.hdfs.tools.DFSZKFailoverController"
IDS = ("nn1", "nn2")
SESSION_MS = 5_000
"""After this many milliseconds without a word of the active NameNode or its controller, the other
NameNode becomes active."""


class NameService:
    """The processes of an HDFS with two NameNodes, which share their edits in a directory.

    conf: the directory with the configuration of clients. name_nodes, controllers: in the order of
    IDS. With `kdc`, the HDFS requires Kerberos of its clients.
    """

    def __init__(self, folder: Path, zookeeper: ZooKeeper, *, kdc: Kdc | None = None) -> None:
        self._folder, self._zookeeper, self._kdc = folder, zookeeper, kdc
        self.url, self.conf = f"hdfs://{NAME}", folder / "conf-client"
        self._rpc = [free_port() for _ in IDS]
        self._http = [free_port() for _ in IDS]
        self.name_nodes = [self._program(NAME_NODE, name) for name in IDS]
        self.controllers = [self._program(CONTROLLER, name) for name in IDS]
        self.data_node = self._program(DATA_NODE, "client")

    @contextlib.contextmanager
    def running(self) -> Iterator[NameService]:
        """Formats HDFS, and runs it during the `with` block."""
        self._configure()
        programs = [*self.name_nodes, *self.controllers, self.data_node]
        try:
            for at, program in enumerate(self.name_nodes):
                how = ("-format",) if not at else ("-bootstrapStandby",)
                self._run(program, *how, "-force", "-nonInteractive")
                program.start().wait_until(lambda: self._state(at))  # noqa: B023
            self._run(self.controllers[0], "-formatZK", "-force", "-nonInteractive")
            for program in (*self.controllers, self.data_node):
                program.start()
            eventually(self.is_ready, what="an active NameNode with its DataNode")
            yield self
        finally:
            for program in programs:
                program.kill()

    def active(self) -> int | None:
        """Returns which NameNode is active; None if none is."""
        states = self.states()
        return states.index("active") if "active" in states else None

    def states(self) -> list[str | None]:
        """Returns the states of the NameNodes, `active` or `standby`; None for one that does not
        answer."""
        return [self._state(at) for at in range(len(IDS))]

    def is_ready(self) -> bool:
        """Returns whether a NameNode is active, and files can be written."""
        at = self.active()
        if at is None:
            return False
        state = self._bean(at, "NameNode", "FSNamesystemState")
        info = self._bean(at, "NameNode", "NameNodeInfo")
        return '"NumLiveDataNodes" : 1' in state and '"Safemode" : ""' in info

    def fetch_token(self, file: Path, cache: str) -> None:
        """Writes a delegation token of the owner of a cache of tickets, as Hadoop gives one to each
        task of a job."""
        fetcher = self._program("org.apache.hadoop.hdfs.tools.DelegationTokenFetcher", "client")
        self._run(fetcher, "--renewer", "nobody", str(file), env={"KRB5CCNAME": cache})

    def _state(self, at: int) -> str | None:
        found = self._bean(at, "NameNode", "NameNodeStatus")
        return next((state for state in ("active", "standby") if f'"{state}"' in found), None)

    def _bean(self, at: int, service: str, name: str) -> str:
        query = f"Hadoop:service={service},name={name}"
        return LOOPBACK.read(f"http://127.0.0.1:{self._http[at]}/jmx?qry={query}") or ""

    def _configure(self) -> None:
        core = {"fs.defaultFS": self.url, **(SECURED if self._kdc else {})}
        core |= {
            "ha.zookeeper.quorum": self._zookeeper.address,
            "ha.zookeeper.session-timeout.ms": str(SESSION_MS),
            "ha.health-monitor.rpc-timeout.ms": str(SESSION_MS),
        }
        site = self._site()
        write_conf(self.conf, core, site)
        for name in IDS:
            own = {
                "dfs.ha.namenode.id": name,
                "dfs.namenode.name.dir": f"file://{self._folder / name}",
                "dfs.ha.zkfc.port": str(free_port()),
            }
            write_conf(self._folder / f"conf-{name}", core, {**site, **own})

    def _site(self) -> dict[str, str]:
        secured: Mapping[str, str] = secured_site(self._kdc) if self._kdc else {}
        addresses = {}
        for at, name in enumerate(IDS):
            addresses[f"dfs.namenode.rpc-address.{NAME}.{name}"] = f"localhost:{self._rpc[at]}"
            addresses[f"dfs.namenode.http-address.{NAME}.{name}"] = f"localhost:{self._http[at]}"
        proxies = "org.apache.hadoop.hdfs.server.namenode.ha.ConfiguredFailoverProxyProvider"
        return {
            "dfs.nameservices": NAME,
            f"dfs.ha.namenodes.{NAME}": ",".join(IDS),
            **addresses,
            f"dfs.client.failover.proxy.provider.{NAME}": proxies,
            "dfs.namenode.shared.edits.dir": f"file://{self._folder / 'edits'}",
            "dfs.ha.automatic-failover.enabled": "true",
            "dfs.ha.fencing.methods": "shell(/bin/true)",
            "dfs.ha.tail-edits.period": "1",
            "dfs.replication": "1",
            "dfs.datanode.data.dir": f"file://{self._folder / 'data'}",
            "dfs.datanode.address": f"localhost:{free_port()}",
            "dfs.datanode.ipc.address": f"localhost:{free_port()}",
            "dfs.datanode.http.address": f"localhost:{free_port()}",
            "dfs.namenode.safemode.extension": "0",
            **secured,
        }

    def _program(self, main: str, name: str) -> Program:
        conf = self._folder / f"conf-{name}"
        kerberos = [f"-Djava.security.krb5.conf={self._kdc.conf}"] if self._kdc else []
        return Program(
            [
                jvm.command(), "-Xmx256m", *jvm.BRIEF, *kerberos,
                "-cp", f"{conf}:{peers.jars('hdfs')}/*", main,
            ],
            self._folder / f"{main.rpartition('.')[2]}-{name}.out",
        )  # fmt: skip

    def _run(self, program: Program, *words: str, env: Mapping[str, str] | None = None) -> None:
        done = subprocess.run(
            [*program.command, *words], env={**os.environ, **(env or {})},
            check=False, capture_output=True, text=True,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout + done.stderr
