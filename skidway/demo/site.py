"""One pipeline on one machine: folders, ports, keys and a configuration file for every program.

The folder of a pipeline contains:

    etc/*.yml      configuration files of the programs
    etc/*.key      keys with which the programs sign messages to the audit
    etc/tls/...    certificates of the programs, and their keys, if they speak TLS
    data/...       data of ZooKeeper, brokers, agent, counters and audit
    log/           what the programs log
    hdfs/          rows and manifests, unless an HDFS URL is given
    written/...    log files of the demo's writer
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from skidway import invocation
from skidway.audit.signing.identity import Identity, Role
from skidway.audit.signing.keys import master_keys_in, new_master_key, text_of
from skidway.demo.certificates import AUTHORITY
from skidway.files import make_directory, write_atomically
from skidway.host_name import host_name
from skidway.kafka.connection import KafkaConnection
from skidway.kafka.security import KafkaSecurity
from skidway.kafka.types import PLAINTEXT, SSL
from skidway.settings.document import yaml_text

DATACENTER, OFFLINE = "dc1", "offline"

LOADS_EVERY = "10s"
"""With --keep, a load runs this often: as often as a bucket begins (`Timing.bucket_ms`)."""

DEFAULT_PORTS = {
    "zookeeper": 2181,
    "broker-dc1": 9092,
    "broker-offline": 9093,
    "registry": 8081,
    "dashboard": 8088,
    "agent.metrics": 9101,
    "broker-dc1.metrics": 9102,
    "registry.metrics": 9103,
    "audit.metrics": 9104,
    "broker-offline.metrics": 9112,
    "zookeeper.metrics": 9106,
    "count-dc1.metrics": 9114,
    "count-offline.metrics": 9124,
    "loader.metrics": 9105,
}

PERSON = "person"
CERTIFIED = (
    "broker-dc1", "broker-offline", "mirror", "registry", "agent", "count-dc1", "count-offline",
    "loader", "audit", PERSON,
)  # fmt: skip
"""Who has a certificate, if the programs speak TLS. PERSON is whoever looks at a pipeline with
commands; the demo itself looks as this person, too."""


@dataclass(frozen=True, slots=True)
class Timing:
    """The size of the audit's time buckets, and how soon the audit closes and judges the buckets.
    These times are a few seconds in the demo and in tests, and minutes in production.
    """

    bucket_ms: int = 10_000
    lateness_ms: int = 2_000
    seal_interval_ms: int = 1_000
    count_interval_ms: int = 500


@dataclass(frozen=True, slots=True)
class Site:
    """Folders, ports and output of one pipeline. is_signed: whether the audit requires signatures;
    then somebody has to call `make_keys`. is_tls: whether brokers and registry speak only TLS, and
    ask for certificates; then somebody has to make those of CERTIFIED in `certificates`."""

    folder: Path
    ports: Mapping[str, int]
    output: str
    timing: Timing = Timing()
    is_signed: bool = False
    is_tls: bool = False

    @property
    def logs(self) -> Path:
        return self.folder / "log"

    @property
    def written(self) -> Path:
        """Folder of the log files that the demo's own writer writes."""
        return self.folder / "written"

    def data(self, program: str) -> Path:
        return self.folder / "data" / program

    def config(self, program: str) -> Path:
        return self.folder / "etc" / f"{program}.yml"

    @property
    def masters(self) -> Path:
        """The file with the master keys of the audit."""
        return self.folder / "etc" / "audit.master.keys"

    def key(self, program: str) -> Path:
        """The file with the key of a program."""
        return self.folder / "etc" / f"{program}.key"

    @property
    def certificates(self) -> Path:
        """The folder of the certificates, and of their keys."""
        return self.folder / "etc" / "tls"

    @property
    def profile(self) -> Path:
        """The profile of PERSON, for commands. Only a pipeline with TLS has it."""
        return self.folder / "etc" / "profile.yml"

    @property
    def protocol(self) -> str:
        """The protocol of the brokers' listeners."""
        return SSL if self.is_tls else PLAINTEXT

    def address(self, name: str) -> str:
        return f"127.0.0.1:{self.ports[name]}"

    def url(self, name: str) -> str:
        scheme = "https" if self.is_tls and name == "registry" else "http"
        return f"{scheme}://{self.address(name)}"

    def kafka(self, cluster: str) -> KafkaConnection:
        """Returns how PERSON reaches a cluster."""
        security = KafkaSecurity.of(self.security(PERSON))
        return KafkaConnection(self.address(f"broker-{cluster}"), security=security)

    def security(self, program: str) -> dict[str, str]:
        """Returns the settings by which the brokers let a program in: none without TLS."""
        return {"security.protocol": SSL, **self._files(program)} if self.is_tls else {}

    def health(self, program: str) -> str:
        return self.url(f"{program}.metrics") + "/health"

    def make_keys(self) -> None:
        """Makes a master key if the site has none, and the file with the key of each program that
        sends messages to the audit."""
        make_directory(self.masters.parent)
        if not self.masters.exists():
            write_atomically(self.masters, text_of([new_master_key()]).encode(), mode=0o600)
        masters = master_keys_in(self.masters.read_text())
        for program, identity in {
            "agent": Identity(Role.AGENT, (DATACENTER, host_name(None))),
            "count-dc1": Identity(Role.COUNTER, ("broker", DATACENTER)),
            "count-offline": Identity(Role.COUNTER, ("mirror", OFFLINE)),
            "loader": Identity(Role.LOADER, (OFFLINE, self.output.rstrip("/"))),
        }.items():
            text = text_of(each.sender_key(identity) for each in masters)
            write_atomically(self.key(program), text.encode(), mode=0o600)

    def write(self, sources: Sequence[Mapping[str, Any]]) -> None:
        """Writes every program's configuration file. `sources` becomes the agent's setting
        `sources`."""
        for program, settings in (
            self._servers()
            | self._counters()
            | {"agent": self._agent(sources), "loader": self._loader(), "audit": self._audit()}
        ).items():
            path = self.config(program)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(yaml_text(settings, width=1000))
        if self.is_tls:
            self.profile.write_text(yaml_text(self._client(PERSON, "broker-dc1"), width=1000))
        self.logs.mkdir(parents=True, exist_ok=True)

    def _servers(self) -> dict[str, dict[str, Any]]:
        mirrored = {
            "cluster": DATACENTER,
            "bootstrap.servers": self.address("broker-dc1"),
            **self.security("mirror"),
            "topics": [".*"],
        }
        return {
            "zookeeper": {
                "dataDir": str(self.data("zookeeper")),
                "clientPort": self.ports["zookeeper"],
                "metrics.listener": self.address("zookeeper.metrics"),
                "log.file": str(self.logs / "zookeeper.log"),
            },
            "broker-dc1": self._broker(DATACENTER),
            "broker-offline": self._broker(OFFLINE) | {"mirror.sources": [mirrored]},
            "registry": {
                "listeners": self.url("registry"),
                "zookeeper.connect": self.address("zookeeper"),
                "metrics.listener": self.address("registry.metrics"),
                **self._files("registry"),
                **({"ssl.client.authentication": "REQUIRED"} if self.is_tls else {}),
            },
        }

    def _broker(self, cluster: str) -> dict[str, Any]:
        name = f"broker-{cluster}"
        return {
            "cluster.name": cluster,
            "listeners": f"{self.protocol}://{self.address(name)}",
            **self._files(name),
            **({"ssl.client.auth": "required"} if self.is_tls else {}),
            "log.dirs": str(self.data(name)),
            "zookeeper.connect": f"{self.address('zookeeper')}/{cluster}",
            "metrics.listener": self.address(f"{name}.metrics"),
            "num.partitions": 2,
        }

    def _agent(self, sources: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        return {
            **self._client("agent", "broker-dc1"),
            "state.dir": str(self.data("agent")),
            "metrics.listener": self.address("agent.metrics"),
            "audit.bucket.ms": self.timing.bucket_ms,
            "seal.interval.ms": self.timing.seal_interval_ms,
            "audit.interval.ms": self.timing.count_interval_ms,
            "sources": [dict(source) for source in sources],
            **self._signing("agent"),
        }

    def _counters(self) -> dict[str, dict[str, Any]]:
        watched = {DATACENTER: ("broker", ".*"), OFFLINE: ("mirror", rf"{DATACENTER}\..*")}
        return {
            f"count-{cluster}": {
                "bootstrap.servers": self.address(f"broker-{cluster}"),
                **self.security(f"count-{cluster}"),
                "cluster.name": cluster,
                "tier": tier,
                "topics": [topics],
                "state.dir": str(self.data(f"count-{cluster}")),
                "commit.interval.ms": self.timing.count_interval_ms,
                "bucket.ms": self.timing.bucket_ms,
                "metrics.listener": self.address(f"count-{cluster}.metrics"),
                **self._signing(f"count-{cluster}"),
            }
            for cluster, (tier, topics) in watched.items()
        }

    def _loader(self) -> dict[str, Any]:
        return {
            **self._client("loader", "broker-offline"),
            "cluster.name": OFFLINE,
            "topics": [f"{DATACENTER}.*"],
            "output": self.output,
            "bucket.ms": self.timing.bucket_ms,
            "spark.above.offsets": 0,  # so that even the demo's few records are loaded on Spark
            "spark.master": "local[2]",
            "spark.log.file": str(self.logs / "spark.log"),
            "metrics.listener": self.address("loader.metrics"),
            **self._signing("loader"),
        }

    def _client(self, program: str, broker: str) -> dict[str, str]:
        """The settings by which a program reaches a broker and the registry."""
        files = self._files(program).items()
        return {
            "bootstrap.servers": self.address(broker),
            **self.security(program),
            "schema.registry.url": self.url("registry"),
            **{f"schema.registry.{setting}": path for setting, path in files},
        }

    def _files(self, program: str) -> dict[str, str]:
        """The settings of a program's certificate, and of who signs those of others: none without
        TLS. Servers and clients have the same names for them."""
        if not self.is_tls:
            return {}
        return {
            "ssl.ca.location": str(self.certificates / f"{AUTHORITY}.pem"),
            "ssl.certificate.location": str(self.certificates / f"{program}.pem"),
            "ssl.key.location": str(self.certificates / f"{program}.key"),
        }

    def _signing(self, program: str) -> dict[str, Any]:
        """The setting of a program that signs its messages."""
        return {"audit.key.location": str(self.key(program))} if self.is_signed else {}

    def _audit(self) -> dict[str, Any]:
        return {
            "bootstrap.servers": self.address("broker-offline"),
            **self.security("audit"),
            "store.dir": str(self.data("audit")),
            "listener": self.address("dashboard"),
            "metrics.listener": self.address("audit.metrics"),
            "lateness.ms": self.timing.lateness_ms,
            "bucket.ms": self.timing.bucket_ms,
            "keep.days": 36_500,  # the user's logs may be years old
            "history.days": 36_500,
            "start.commands": {
                "registry": self.start_command("registry", "registry"),
                "zookeeper": self.start_command("zookeeper", "zookeeper"),
                "loader": self.start_command("loader", "load"),
            },
            **({"audit.signatures": "require"} if self.is_signed else {}),
            **({"audit.master.keys.location": str(self.masters)} if self.is_signed else {}),
        }

    def start_command(self, program: str, noun: str) -> str:
        """Returns the command that starts a program of this pipeline."""
        options = ("--config", str(self.config(program).absolute()))
        call = invocation.of_this_process().call
        return invocation.Invocation(call, f"{noun} run", options).start()
