"""Runs a real ZooKeeper 3.9 server from the jars that PyPI's pyspark contains.

The server is a JVM and a child process of this program. When this program gets SIGTERM, it stops
the JVM cleanly. When the JVM dies, this program ends with the JVM's status (1 if that is 0, and 128
+ n after signal n). When this program dies, even by a kill -9, the kernel kills the JVM. The server
binds to `clientPortAddress`, which is loopback by default. Its HTTP admin server is off. Of
ZooKeeper's commands of four letters, the server answers only `srvr`, which /health and /metrics
use, and `ruok`, which tells whether a member of an ensemble has started. The server's log is text,
in a file that is rolled by size, or on this program's standard output.

`dataDir` contains ZooKeeper's own `version-2/`. At each start, this program writes `zoo.cfg`,
`log4j2.properties` and, if the setting `myid` is given, the file `myid` into the same directory.
"""

from __future__ import annotations

import ctypes
import os
import re
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from importlib import util
from pathlib import Path

from prometheus_client import REGISTRY
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from skidway import extras, files, java, log, ports, systemd
from skidway.errors import ConfigurationRefused, SkidwayError
from skidway.http.hosts import allowed_hosts_setting
from skidway.insecure_listeners import insecure_listeners_setting, reachable, refuse, tell
from skidway.service import Shutdown
from skidway.settings import setting
from skidway.telemetry import Health, TelemetryServer

MAIN_CLASS = "org.apache.zookeeper.server.quorum.QuorumPeerMain"
JARS = (
    "zookeeper-[0-9]*.jar",
    "zookeeper-jute-*.jar",
    "slf4j-api-*.jar",
    "log4j-api-[0-9]*.jar",
    "log4j-core-*.jar",
    "log4j-slf4j2-impl-*.jar",
    "metrics-core-*.jar",
    "snappy-java-*.jar",
    "netty-buffer-*.jar",
    "netty-codec-*.jar",
    "netty-common-*.jar",
    "netty-handler-[0-9]*.jar",
    "netty-resolver-[0-9]*.jar",
    "netty-transport-[0-9]*.jar",
    "netty-transport-classes-epoll-*.jar",
    "netty-transport-native-unix-common-*.jar",
)
"""Patterns for the names of the jars that the server loads. Spark's other jars are not on the class
path."""

STOP_WITHIN_S = 20.0
ANSWER_WITHIN_S = 2.0
ANSWER_BYTES_MAX = 64 * 1024
ANSWERS_YET_EVERY_S = 0.1
PR_SET_PDEATHSIG = 1

_log = log.get(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class ZookeeperSettings:
    """Settings of `skidway zookeeper run`, under ZooKeeper's own names."""

    data_dir: Path = setting(
        "dataDir",
        help="Directory of snapshots and transaction logs; made if missing.",
        example="/var/lib/skidway/zookeeper",
    )
    data_log_dir: Path | None = setting(
        "dataLogDir", None, help="Directory of the transaction logs, if not dataDir."
    )
    client_port: int = setting(
        "clientPort", 2181, help="Port for clients.", at_least=1, at_most=65535
    )
    client_port_address: str = setting(
        "clientPortAddress", "127.0.0.1", help="Address to listen on; 0.0.0.0 is all of them."
    )
    insecure_listeners: bool = insecure_listeners_setting()
    tick_time_ms: int = setting(
        "tickTime",
        2000,
        help="ZooKeeper's unit of time in ms; sessions last 2 to 20 ticks.",
        at_least=100,
        at_most=60_000,
    )
    max_client_connections: int = setting(
        "maxClientCnxns",
        200,
        help="Connections from one address; 0 is no limit.",
        at_least=0,
    )
    snapshots_kept: int = setting(
        "autopurge.snapRetainCount", 3, help="Snapshots that are kept.", at_least=3
    )
    purge_interval_h: int = setting(
        "autopurge.purgeInterval",
        24,
        help="Hours between purges of old snapshots and logs; 0 never purges.",
        at_least=0,
    )
    init_limit: int = setting(
        "initLimit", 10, help="Ticks that a follower may take to connect and sync.", at_least=1
    )
    sync_limit: int = setting(
        "syncLimit", 5, help="Ticks that a follower may fall behind.", at_least=1
    )
    servers: dict[str, str] = setting(
        "server",
        {},
        help="Ensemble: server.N: host:port:port, the same on every member; none: a single server.",
    )
    my_id: int | None = setting(
        "myid", None, help="This server's N in an ensemble.", at_least=1, at_most=255
    )
    heap_mb: int = setting(
        "jvm.heap.mb", 128, help="Largest heap of the JVM in MiB.", at_least=64, at_most=65_536
    )
    log_file: Path | None = setting(
        "log.file",
        None,
        help="File for ZooKeeper's own log, text lines; otherwise standard output.",
    )
    log_file_mb: int = setting(
        "log.file.mb",
        64,
        help="Size in MiB at which log.file is rolled; five are kept.",
        at_least=1,
    )
    metrics_listener: str = setting(
        "metrics.listener", "127.0.0.1:9106", help="host:port of /metrics and /health."
    )
    allowed_hosts: list[str] = allowed_hosts_setting()

    def check(self) -> None:
        """Raises ConfigurationRefused for a listener that `insecure_listeners` must allow, and if
        `servers` is set and has no server with number `myid`."""
        if self.servers and str(self.my_id) not in self.servers:
            raise ConfigurationRefused(
                f"myid must be one of {', '.join(sorted(self.servers))}, the N of the server.N keys"
            )
        refuse(self.insecure(), allowed=self.insecure_listeners)

    def insecure(self) -> list[str]:
        """Returns the addresses for clients, and for the other servers of the ensemble, that other
        hosts can reach. ZooKeeper listens on its own address in `servers` for them."""
        own = self.servers.get(str(self.my_id), "")
        clients = f"{self.client_port_address}:{self.client_port}"
        listeners = [(f"clientPortAddress {clients}", self.client_port_address)]
        if own:
            host = own[1:].partition("]")[0] if own.startswith("[") else own.partition(":")[0]
            listeners.append((f"server.{self.my_id} {own}", host))
        return reachable(listeners)


def run(settings: ZookeeperSettings, shutdown: Shutdown) -> int:
    """Runs the server until shutdown (returns 0) or until the JVM ends (returns the status of
    `Server.wait`)."""
    java_found = java.find()
    ports.refuse_used(settings.client_port_address, settings.client_port, "clientPort")
    with files.DirectoryLock(settings.data_dir):
        prepare(settings)
        command = start_command(settings, java_found)
        telemetry = TelemetryServer(
            settings.metrics_listener, lambda: health(settings), settings.allowed_hosts
        )
        collector = _StatusCollector(settings)
        server = Server(command)
        REGISTRY.register(collector)
        tell(settings.insecure())
        try:
            telemetry.start()
            _log.info(
                "zookeeper_started",
                port=settings.client_port,
                java=java_found.version,
                java_source=java_found.source,
                pid=server.pid,
            )
            return server.wait(shutdown, lambda: _tell_ready(settings))
        finally:
            server.stop()
            telemetry.stop()
            REGISTRY.unregister(collector)


def _tell_ready(settings: ZookeeperSettings) -> bool:
    """If the server is ready, tells the service manager and returns True. A single server is ready
    when it serves clients. A member of an ensemble is ready as soon as it answers `ruok`, even
    though no member serves clients before a majority of the members runs. Operators may start one
    member after the other, and wait until each member is ready before they start the next one."""
    if settings.servers:
        done = ask(settings.client_port_address, settings.client_port, b"ruok") == "imok"
    else:
        done = health(settings).ok
    if done:
        systemd.ready(f"answers on port {settings.client_port}")
    return done


def prepare(settings: ZookeeperSettings) -> None:
    """Makes the directories, and writes zoo.cfg, log4j2.properties and, if it is set, myid. Raises
    SkidwayError if a directory or a file cannot be made."""
    directories = [settings.data_dir]
    if settings.data_log_dir is not None:
        directories.append(settings.data_log_dir)
    if settings.log_file is not None:
        directories.append(settings.log_file.parent)
    for directory in directories:
        files.make_directory(directory)
    contents = {"zoo.cfg": config_text(settings), "log4j2.properties": logging_text(settings)}
    if settings.my_id is not None:
        contents["myid"] = f"{settings.my_id}\n"
    try:
        for name, text in contents.items():
            files.write_atomically(settings.data_dir / name, text.encode("ascii"))
    except OSError as error:
        raise SkidwayError(
            f"cannot write into dataDir {settings.data_dir}: {error.strerror}"
        ) from error


def start_command(settings: ZookeeperSettings, found: java.Java) -> list[str]:
    """Returns the command line of the JVM. Raises SkidwayError if pyspark's jars are not
    installed."""
    data = settings.data_dir.absolute()
    return [
        str(found.command),
        "-Xms32m",
        f"-Xmx{settings.heap_mb}m",
        "-XX:+UseSerialGC",
        "-XX:+ExitOnOutOfMemoryError",
        "-Djava.awt.headless=true",
        "-Dzookeeper.admin.enableServer=false",
        "-Dzookeeper.4lw.commands.whitelist=ruok,srvr",
        f"-Dlog4j2.configurationFile={data / 'log4j2.properties'}",
        "-cp",
        ":".join(map(str, jars())),
        MAIN_CLASS,
        str(data / "zoo.cfg"),
    ]


def jars() -> list[Path]:
    """Returns the server's jars, from the installed pyspark. Raises SkidwayError if they are
    missing."""
    spec = util.find_spec("pyspark")
    folders = spec.submodule_search_locations if spec is not None else None
    how = f"install them with: {extras.how('zookeeper')}"
    if not folders:
        raise SkidwayError(
            f"the ZooKeeper server's jars come with pyspark, which is missing; {how}"
        )
    folder = Path(folders[0]) / "jars"
    found = [jar for pattern in JARS for jar in sorted(folder.glob(pattern))]
    if not any(jar.name.startswith("zookeeper-3.") for jar in found):
        raise SkidwayError(f"{folder} holds no ZooKeeper server; {how}")
    return found


def config_text(settings: ZookeeperSettings) -> str:
    """Returns the text of zoo.cfg."""
    values: dict[str, object] = {
        "dataDir": settings.data_dir.absolute(),
        "clientPort": settings.client_port,
        "clientPortAddress": settings.client_port_address,
        "tickTime": settings.tick_time_ms,
        "maxClientCnxns": settings.max_client_connections,
        "autopurge.snapRetainCount": settings.snapshots_kept,
        "autopurge.purgeInterval": settings.purge_interval_h,
        "initLimit": settings.init_limit,
        "syncLimit": settings.sync_limit,
    }
    if settings.data_log_dir is not None:
        values["dataLogDir"] = settings.data_log_dir.absolute()
    values |= {f"server.{number}": address for number, address in settings.servers.items()}
    return "".join(f"{key}={java.escaped(value)}\n" for key, value in values.items())


def logging_text(settings: ZookeeperSettings) -> str:
    """Returns the text of log4j2.properties: log lines as text, to a file or to standard output."""
    pattern = "%d{yyyy-MM-dd HH:mm:ss,SSS} [myid:%X{myid}] - %-5p [%t:%c{1}@%L] - %m%n"
    lines = ["status = error", "name = zookeeper", "appender.out.name = out"]
    if settings.log_file is None:
        lines += ["appender.out.type = Console", "appender.out.target = SYSTEM_OUT"]
    else:
        path = settings.log_file.absolute()
        lines += [
            "appender.out.type = RollingFile",
            f"appender.out.fileName = {java.escaped(path)}",
            f"appender.out.filePattern = {java.escaped(path)}.%i",
            "appender.out.policies.type = Policies",
            "appender.out.policies.size.type = SizeBasedTriggeringPolicy",
            f"appender.out.policies.size.size = {settings.log_file_mb}MB",
            "appender.out.strategy.type = DefaultRolloverStrategy",
            "appender.out.strategy.fileIndex = min",
            "appender.out.strategy.max = 5",
        ]
    lines += [
        "appender.out.layout.type = PatternLayout",
        f"appender.out.layout.pattern = {pattern}",
        "logger.words.name = org.apache.zookeeper.server.NIOServerCnxn",
        "logger.words.level = warn",  # at level info, each request to /health would write a line
        "logger.words_list.name = org.apache.zookeeper.server.command",
        "logger.words_list.level = warn",
        "rootLogger.level = info",
        "rootLogger.appenderRef.out.ref = out",
    ]
    return "\n".join(lines) + "\n"


class Server:
    """The JVM as a child process in a session of its own, so that Ctrl-C does not reach it."""

    def __init__(self, command: list[str]) -> None:
        ended, alive = os.pipe2(os.O_CLOEXEC)
        # The JVM inherits `alive`, and this process closes it. Then only the JVM has this end of
        # the pipe open, so `ended` becomes readable when the JVM is gone.
        self._ended = ended
        libc = ctypes.CDLL(None)
        ours = os.getpid()

        def die_with_parent() -> None:
            libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
            if os.getppid() != ours:  # the parent died before the prctl
                os._exit(1)

        try:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                start_new_session=True,
                preexec_fn=die_with_parent,
                pass_fds=(alive,),
            )
        except OSError as error:
            os.close(ended)
            raise SkidwayError(f"cannot start {command[0]}: {error.strerror}") from error
        finally:
            os.close(alive)

    @property
    def pid(self) -> int:
        """The JVM's process id."""
        return self._process.pid

    def wait(self, shutdown: Shutdown, tell_ready: Callable[[], bool]) -> int:
        """Waits until shutdown is requested or the JVM has ended. Returns 0 if shutdown is
        requested. If the JVM has ended, returns the JVM's status, but 1 instead of 0, and 128 + n
        after signal n.

        `tell_ready` is called every `ANSWERS_YET_EVERY_S` until it returns True.
        """
        poll = select.poll()
        poll.register(shutdown.fileno(), select.POLLIN)
        poll.register(self._ended, select.POLLIN)
        pause_ms: float | None = ANSWERS_YET_EVERY_S * 1000
        while not poll.poll(pause_ms):
            if tell_ready():
                pause_ms = None
        if shutdown.requested:
            return 0
        status = self._process.wait()
        how = f"status {status}" if status >= 0 else f"signal {-status}"
        _log.error("zookeeper_ended", how=how)
        sys.stderr.write(f"skidway zookeeper: the server ended with {how}; its log says why\n")
        return status if status > 0 else 128 - status if status < 0 else 1

    def stop(self) -> None:
        """Sends SIGTERM, so that ZooKeeper closes its log. If the JVM does not end in time, sends
        SIGKILL."""
        if self._process.poll() is None:
            self._process.terminate()
            try:
                self._process.wait(STOP_WITHIN_S)
            except subprocess.TimeoutExpired:
                _log.warning("zookeeper_killed", waited_s=STOP_WITHIN_S)
                self._process.kill()
                self._process.wait()
        os.close(self._ended)


def health(settings: ZookeeperSettings) -> Health:
    """Returns the server's health. The server is healthy when it serves clients, either as a single
    server, or as leader or follower of a quorum.
    """
    address = f"{settings.client_port_address}:{settings.client_port}"
    status = parse_srvr(ask(settings.client_port_address, settings.client_port, b"srvr"))
    mode = status.get("Mode")
    return Health(mode is not None, {"address": address, "mode": mode or "not serving"})


def ask(host: str, port: int, word: bytes) -> str:
    """Sends a four-letter word (a command of ZooKeeper, such as `srvr`), and returns the answer, or
    "" if no answer comes in time."""
    target = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)  # noqa: S104 - not bound here
    answer = bytearray()
    deadline = time.monotonic() + ANSWER_WITHIN_S
    try:
        with socket.create_connection((target, port), ANSWER_WITHIN_S) as connection:
            connection.sendall(word)
            while len(answer) < ANSWER_BYTES_MAX and time.monotonic() < deadline:
                part = connection.recv(4096)
                if not part:
                    break
                answer += part
    except OSError:
        return ""
    return answer.decode("utf-8", "replace")


def parse_srvr(text: str) -> dict[str, str]:
    """Returns the values in ZooKeeper's answer to `srvr`, by name: its lines are `Name: value`."""
    return dict(re.findall(r"^([A-Z][^:\n]*): (.*?)\s*$", text, re.MULTILINE))


class _StatusCollector(Collector):
    """The gauges of /metrics. For each scrape, this class asks ZooKeeper once with the four-letter
    word `srvr`, and takes the gauges' values from the answer."""

    _GAUGES: Mapping[str, tuple[str, str]] = {
        "Connections": ("skidway_zookeeper_connections_count", "Clients connected"),
        "Outstanding": ("skidway_zookeeper_outstanding_requests_count", "Requests queued"),
        "Node count": ("skidway_zookeeper_nodes_count", "Nodes in the tree"),
        "Received": ("skidway_zookeeper_received_packets_count", "Packets received since start"),
        "Sent": ("skidway_zookeeper_sent_packets_count", "Packets sent since start"),
    }

    def __init__(self, settings: ZookeeperSettings) -> None:
        self._settings = settings

    def collect(self) -> Iterable[GaugeMetricFamily]:
        settings = self._settings
        status = parse_srvr(ask(settings.client_port_address, settings.client_port, b"srvr"))
        yield GaugeMetricFamily(
            "skidway_zookeeper_serving", "1 if it serves", int("Mode" in status)
        )
        for name, (metric, words) in self._GAUGES.items():
            if name in status:
                yield GaugeMetricFamily(metric, words, float(status[name]))
