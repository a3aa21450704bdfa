"""The files and the command line with which the JVM of the server starts."""

from __future__ import annotations

from importlib import util
from pathlib import Path

from skidway import extras, files, java
from skidway.errors import SkidwayError
from skidway.zookeeper.settings import ZookeeperSettings
from skidway.zookeeper.tls import paths

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


def start_command(settings: ZookeeperSettings, found: java.Java, *options: str) -> list[str]:
    """Returns the command line of the JVM, with these options of the JVM, too. Raises SkidwayError
    if pyspark's jars are not installed."""
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
        *options,
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
    values |= _security_values(settings)
    return "".join(f"{key}={java.escaped(value)}\n" for key, value in values.items())


def _security_values(settings: ZookeeperSettings) -> dict[str, object]:
    key_store, trust_store = paths(settings.data_dir)
    values: dict[str, object] = {}
    used = {"ssl": settings.secure_client_port is not None, "ssl.quorum": settings.ssl_quorum}
    for prefix in (each for each, is_used in used.items() if is_used):
        values |= {f"{prefix}.keyStore.location": key_store, f"{prefix}.keyStore.type": "PEM"}
        if settings.ca is not None:
            values |= {
                f"{prefix}.trustStore.location": trust_store,
                f"{prefix}.trustStore.type": "PEM",
            }
    if settings.secure_client_port is not None:
        values |= {
            "secureClientPort": settings.secure_client_port,
            "secureClientPortAddress": settings.secure_client_port_address,
            "serverCnxnFactory": "org.apache.zookeeper.server.NettyServerCnxnFactory",
            "ssl.clientAuth": "need" if settings.client_auth == "required" else "none",
            "client.certReload": "true",
        }
    if settings.ssl_quorum:
        values |= {"sslQuorum": "true", "sslQuorumReloadCertFiles": "true"}
    if settings.enforce_auth:
        values |= {"enforce.auth.enabled": "true", "enforce.auth.schemes": "digest"}
    return values


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
