from __future__ import annotations

import re
from pathlib import Path

import pytest

from skidway.errors import ConfigurationRefused, SkidwayError
from skidway.java import Java
from skidway.security.contexts import TlsFiles
from skidway.settings import example, load
from skidway.zookeeper import ZookeeperSettings, configuration, program
from skidway.zookeeper.tls import ServerTls, key_store, paths
from support.certificates import Authority

JAVA = Java(Path("/j/bin/java"), 17, "machine", Path("/j"))
SRVR = """\
Zookeeper version: 3.9.5-abc, built on 2025-11-02 12:00 UTC
Latency min/avg/max: 0/1.2/7
Received: 12
Sent: 11
Connections: 2
Outstanding: 0
Zxid: 0x1f
Mode: standalone
Node count: 42
"""


def settings(*overrides: str) -> ZookeeperSettings:
    return load(ZookeeperSettings, None, ["dataDir=/data", *overrides])


def test_alone_it_binds_to_loopback_and_names_no_servers() -> None:
    """With the default settings ZooKeeper's server listens only on loopback, and its configuration
    names no other servers."""
    lines = configuration.config_text(settings()).splitlines()
    assert "clientPortAddress=127.0.0.1" in lines
    assert "clientPort=2181" in lines
    assert not any(line.startswith("server.") for line in lines)


def test_a_directory_of_any_name_is_the_one_that_is_meant() -> None:
    """Java reads zoo.cfg and log4j2.properties as Latin-1. So in these files all characters of a
    path that are not ASCII are escaped."""
    odd = settings("dataDir=/dät\\a/🌲", "log.file=/log/ö.log")
    assert r"dataDir=/d\u00e4t\\a/\ud83c\udf32" in configuration.config_text(odd)
    assert r"fileName = /log/\u00f6.log" in configuration.logging_text(odd)


def test_ensemble_members_are_passed_through() -> None:
    """The settings server.N are written to zoo.cfg unchanged."""
    text = configuration.config_text(
        settings(
            "server.1=a:2888:3888",
            "server.2=b:2888:3888",
            "myid=2",
            "tickTime=500",
            "insecure.listeners=true",
        )
    )
    assert "server.1=a:2888:3888\n" in text
    assert "server.2=b:2888:3888\n" in text
    assert "tickTime=500\n" in text


@pytest.mark.parametrize("override", ["initLimit=5", "myid=3"])
def test_ensemble_without_a_place_for_this_server_is_refused(override: str) -> None:
    """A configuration of an ensemble is refused if the setting `myid` is not the number N of one of
    its settings server.N."""
    with pytest.raises(ConfigurationRefused, match="myid must be one of 1, 2"):
        settings("server.1=a:1:2", "server.2=b:1:2", override)


def test_security_is_off_unless_it_is_set() -> None:
    """With the default settings, zoo.cfg says nothing about TLS and users."""
    text = configuration.config_text(settings())
    assert not re.search(r"(?m)^(ssl|secure|enforce|client\.|serverCnxn)", text)


TLS = ("ssl.certificate.location=/c.pem", "ssl.ca.location=/ca.pem")


def test_tls_is_written_as_zookeeper_reads_it() -> None:
    """Port, certificates and users are in zoo.cfg under ZooKeeper's names. The JVM reads copies of
    the files in dataDir, again when they change."""
    told = settings("secureClientPort=2281", "enforce.auth.enabled=true", *TLS)
    lines = set(configuration.config_text(told).splitlines())
    assert lines >= {
        "secureClientPort=2281", "secureClientPortAddress=127.0.0.1", "ssl.clientAuth=none",
        "serverCnxnFactory=org.apache.zookeeper.server.NettyServerCnxnFactory",
        "ssl.keyStore.location=/data/tls.pem", "ssl.keyStore.type=PEM",
        "ssl.trustStore.location=/data/tls-ca.pem", "ssl.trustStore.type=PEM",
        "client.certReload=true", "enforce.auth.enabled=true", "enforce.auth.schemes=digest",
    }  # fmt: skip
    assert not any("quorum" in line.lower() for line in lines)
    needed = settings("secureClientPort=2281", "ssl.client.auth=required", *TLS)
    assert "ssl.clientAuth=need\n" in configuration.config_text(needed)
    quorum = settings("sslQuorum=true", "server.1=127.0.0.1:1:2", "myid=1", *TLS)
    lines = set(configuration.config_text(quorum).splitlines())
    assert lines >= {
        "sslQuorum=true", "sslQuorumReloadCertFiles=true",
        "ssl.quorum.keyStore.location=/data/tls.pem", "ssl.quorum.keyStore.type=PEM",
        "ssl.quorum.trustStore.location=/data/tls-ca.pem", "ssl.quorum.trustStore.type=PEM",
    }  # fmt: skip
    assert not any(line.startswith(("secure", "ssl.keyStore", "serverCnxn")) for line in lines)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (("secureClientPort=2281",), "ssl.certificate.location is missing"),
        (("secureClientPort=2181", *TLS), "secureClientPort must be another port than clientPort"),
        (("sslQuorum=true", *TLS), "sslQuorum is true: server.N is missing"),
        (("sslQuorum=true", TLS[0]), "sslQuorum is true: ssl.ca.location is missing"),
        (
            ("secureClientPort=2281", "ssl.client.auth=required", TLS[0]),
            "ssl.client.auth is required: ssl.ca.location is missing",
        ),
    ],
)
def test_contradictions_of_tls_are_refused(given: tuple[str, ...], said: str) -> None:
    """Settings of TLS that lack each other are refused with the name of the one that is missing."""
    with pytest.raises(ConfigurationRefused, match=re.escape(said)):
        settings(*given)


def test_the_jvm_gets_good_files_only(tmp_path: Path) -> None:
    """Key and certificate are copied into one file that only the server's user can read, whether
    they were in one file or in two. A key that ZooKeeper cannot read is refused, and a bad new file
    is not copied."""
    authority = Authority(tmp_path)
    pair = authority.sign("zookeeper")
    given = TlsFiles(pair.certificate, pair.key, authority.certificate)
    tls = ServerTls(tmp_path, given, "none")
    tls.copy()
    copies = [path.read_bytes() for path in paths(tmp_path)]
    assert copies[0] == pair.key.read_bytes() + pair.certificate.read_bytes()
    assert copies[1] == authority.certificate.read_bytes()
    assert [path.stat().st_mode & 0o777 for path in paths(tmp_path)] == [0o600, 0o600]
    pair.certificate.write_text("nonsense")
    tls.copy()
    assert "cannot be used" in tls.problem
    assert paths(tmp_path)[0].read_bytes() == copies[0]
    pair.certificate.write_bytes(copies[0])
    assert key_store(TlsFiles(pair.certificate)) == copies[0]
    pair.key.write_bytes(copies[0].replace(b"BEGIN PRIVATE", b"BEGIN EC PRIVATE"))
    with pytest.raises(ConfigurationRefused, match=r"openssl pkcs8 -topk8 -nodes -in .*\.key"):
        key_store(given)


def test_log_goes_to_the_file_or_to_standard_output() -> None:
    """If log.file is set, ZooKeeper's log lines go to this file, which is rotated by size.
    Otherwise they go to the console."""
    assert "appender.out.type = Console" in configuration.logging_text(settings())
    text = configuration.logging_text(settings("log.file=/logs/zk.log", "log.file.mb=8"))
    assert "appender.out.fileName = /logs/zk.log" in text
    assert "size.size = 8MB" in text


def test_command_bounds_the_heap_and_shuts_the_admin_server() -> None:
    """ZooKeeper's JVM has a limited heap. The server has no HTTP server, and answers only the
    four-letter commands `ruok` and `srvr`."""
    command = configuration.start_command(settings("jvm.heap.mb=64"), JAVA)
    assert command[0] == "/j/bin/java"
    assert "-Xmx64m" in command
    assert "-Dzookeeper.admin.enableServer=false" in command
    assert "-Dzookeeper.4lw.commands.whitelist=ruok,srvr" in command
    assert command[-2:] == [configuration.MAIN_CLASS, "/data/zoo.cfg"]


def test_every_jar_pattern_finds_a_jar_of_the_installed_pyspark() -> None:
    """Each pattern for a jar that ZooKeeper needs matches a jar of the installed pyspark. So this
    test notices if a newer pyspark has renamed a jar."""
    names = [jar.name for jar in configuration.jars()]
    assert len(names) >= len(configuration.JARS)
    assert len([name for name in names if name.startswith("zookeeper-3.9.")]) == 1
    for pattern in configuration.JARS:
        assert any(Path(name).match(pattern) for name in names), pattern
    assert not any("spark" in name for name in names)


def test_missing_pyspark_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    """If pyspark's jars are missing, the error names the package that contains them."""
    monkeypatch.setattr(configuration.util, "find_spec", lambda _: None)
    with pytest.raises(SkidwayError, match=r"pip install .*pyspark"):
        configuration.jars()


def test_prepare_writes_what_the_server_reads(tmp_path: Path) -> None:
    """`prepare` creates the directories, and writes zoo.cfg, log4j2.properties and myid to
    dataDir."""
    data = tmp_path / "a" / "data"
    prepared = load(
        ZookeeperSettings,
        None,
        [
            f"dataDir={data}",
            f"log.file={tmp_path / 'logs' / 'z.log'}",
            "server.7=a:1:2",
            "myid=7",
            "insecure.listeners=true",
        ],
    )
    configuration.prepare(prepared)
    assert (data / "myid").read_text() == "7\n"
    assert f"dataDir={data}\n" in (data / "zoo.cfg").read_text()
    assert (data / "log4j2.properties").exists()
    assert (tmp_path / "logs").is_dir()


def test_srvr_answer_is_read() -> None:
    """ZooKeeper's mode (for example `standalone`) and its numbers of nodes and connections are read
    from its answer to the command `srvr`. If the answer says that the server serves no clients, the
    mode is missing."""
    status = program.parse_srvr(SRVR)
    assert (status["Mode"], status["Node count"], status["Connections"]) == (
        "standalone",
        "42",
        "2",
    )
    refusing = "This ZooKeeper instance is not currently serving requests\n"
    assert "Mode" not in program.parse_srvr(refusing)


def test_example_file_loads_to_the_defaults(tmp_path: Path) -> None:
    """If all commented-out lines of the example file are made active, the file gives the same
    settings as no file."""
    path = tmp_path / "zookeeper.yml"
    path.write_text(example(ZookeeperSettings, active=True))
    expected = load(ZookeeperSettings, None, ["dataDir=/var/lib/skidway/zookeeper"])
    assert load(ZookeeperSettings, path) == expected
