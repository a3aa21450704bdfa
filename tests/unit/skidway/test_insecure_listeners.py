"""Tests the listeners that other hosts can reach without authentication."""

from __future__ import annotations

import re
import socket
from pathlib import Path
from typing import Any

import pytest
from prometheus_client import REGISTRY

from skidway import insecure_listeners, machine
from skidway.audit.settings import AuditSettings
from skidway.broker.settings import BrokerSettings
from skidway.errors import ConfigurationRefused
from skidway.schemas.registry.settings import RegistrySettings
from skidway.settings import documented, load
from skidway.zookeeper import ZookeeperSettings

BROKER = ("advertised.listeners=PLAINTEXT://b1:9092",)
AUDIT = ("bootstrap.servers=b1:9092",)
ZOOKEEPER = ("dataDir=/z",)
SECURE = (
    *ZOOKEEPER, "secureClientPort=2281", "ssl.certificate.location=/c.pem",
    "ssl.ca.location=/ca.pem",
)  # fmt: skip
ENSEMBLE = (*ZOOKEEPER, "server.1=127.0.0.1:2888:3888", "server.2=zk2:2888:3888")


@pytest.mark.parametrize(
    ("program", "settings", "named"),
    [
        (
            BrokerSettings,
            (*BROKER, "listeners=PLAINTEXT://0.0.0.0:9092"),
            "PLAINTEXT://0.0.0.0:9092",
        ),
        (BrokerSettings, (*BROKER, "listeners=PLAINTEXT://:9092"), "PLAINTEXT://:9092"),
        (
            BrokerSettings,
            (*BROKER, "listeners=PLAINTEXT://127.0.0.1:1,PLAINTEXT://[2001:db8::1]:9092"),
            "PLAINTEXT://[2001:db8::1]:9092",
        ),
        (
            BrokerSettings,
            (*BROKER, "listeners=PLAINTEXT://b1.invalid:9"),
            "PLAINTEXT://b1.invalid:9",
        ),
        (RegistrySettings, ("listeners=http://10.0.0.5:8081",), "http://10.0.0.5:8081"),
        (AuditSettings, (*AUDIT, "listener=10.0.0.5:8088"), "10.0.0.5:8088"),
        (ZookeeperSettings, (*ZOOKEEPER, "clientPortAddress=::"), "clientPortAddress :::2181"),
        (ZookeeperSettings, (*ENSEMBLE, "myid=2"), "server.2 zk2:2888:3888"),
        (
            ZookeeperSettings,
            (*SECURE, "secureClientPortAddress=10.0.0.5", "enforce.auth.enabled=true"),
            "secureClientPort 10.0.0.5:2281",
        ),
    ],
)
def test_a_listener_without_authentication_needs_a_word(
    program: type[Any], settings: tuple[str, ...], named: str
) -> None:
    """A program refuses to listen for other hosts without authentication, with one sentence that
    names the listener and what to do, unless `insecure.listeners` allows it."""
    with pytest.raises(ConfigurationRefused) as refused:
        load(program, None, settings)
    assert f"{named}: other hosts reach this" in str(refused.value)
    assert "set insecure.listeners: true" in str(refused.value)
    assert load(program, None, [*settings, "insecure.listeners=true"]).insecure() == [named]


@pytest.mark.parametrize(
    ("program", "settings"),
    [
        (BrokerSettings, ()),
        (
            BrokerSettings,
            ("listeners=PLAINTEXT://127.0.0.7:1,PLAINTEXT://[::1]:1,PLAINTEXT://localhost:1",),
        ),
        (RegistrySettings, ("listeners=http://localhost:8081",)),
        (AuditSettings, (*AUDIT, "listener=:8088")),
        (ZookeeperSettings, (*ENSEMBLE, "myid=1")),
        (ZookeeperSettings, SECURE),
        (
            ZookeeperSettings,
            (*SECURE, "secureClientPortAddress=10.0.0.5", "ssl.client.auth=required"),
        ),
        (ZookeeperSettings, (*SECURE, *ENSEMBLE, "myid=2", "sslQuorum=true")),
    ],
)
def test_a_listener_on_loopback_needs_none(program: type[Any], settings: tuple[str, ...]) -> None:
    """A listener that only programs of the same host can reach, or that asks ZooKeeper's clients or
    servers for certificates, is allowed without a word."""
    assert load(program, None, settings).insecure() == []


def test_a_registry_that_authenticates_is_not_insecure(tmp_path: Path) -> None:
    """A registry that asks for a password, or for a certificate on https, may listen for other
    hosts; http beside the certificates may not."""
    (tmp_path / "users").write_text("")
    password = (
        "listeners=https://10.0.0.5:1", "authentication.method=BASIC",
        f"authentication.users.file={tmp_path / 'users'}",
    )  # fmt: skip
    certificates = ("ssl.client.authentication=REQUIRED",)
    for settings, found in (
        (password, []),
        (("listeners=https://10.0.0.5:1", *certificates), []),
        (("listeners=https://10.0.0.5:1",), ["https://10.0.0.5:1"]),
        (("listeners=https://10.0.0.5:1,http://10.0.0.5:2", *certificates), ["http://10.0.0.5:2"]),
    ):
        given = dict(each.split("=") for each in settings)
        users = given.get("authentication.users.file")
        assert RegistrySettings(
            listeners=given["listeners"].split(","),
            authentication="BASIC" if users else "NONE",
            users_file=Path(users) if users else None,
            client_certificates="REQUIRED" if certificates[0] in settings else "NONE",
        ).insecure() == found  # fmt: skip


def test_every_program_means_the_same() -> None:
    """Each program that listens for others has the setting, with one meaning."""
    said = [
        next(x for x in documented(program) if x.key == "insecure.listeners")
        for program in (AuditSettings, BrokerSettings, RegistrySettings, ZookeeperSettings)
    ]
    assert all(each == said[0] for each in said)
    assert not said[0].default or said[0].default == "false"


def test_a_name_counts_by_its_addresses(monkeypatch: pytest.MonkeyPatch) -> None:
    """A name is loopback only if all of its addresses are."""
    own, other = (2, 1, 6, "", ("127.0.1.1", 0)), (10, 1, 6, "", ("fe80::1%eth0", 0, 0, 2))
    for found, expected in (([own], True), ([own, other], False)):
        monkeypatch.setattr(socket, "getaddrinfo", lambda *_, found=found, **__: found)
        assert insecure_listeners.is_loopback("app1") is expected


def test_metrics_and_doctor_name_them(tmp_path: Path) -> None:
    """/metrics names each listener that others reach without authentication, and `skidway doctor`
    names the installed programs that may have some."""
    insecure_listeners.tell(["PLAINTEXT://10.0.0.5:9092"])
    labels = {"listener": "PLAINTEXT://10.0.0.5:9092"}
    assert REGISTRY.get_sample_value("skidway_insecure_listeners", labels) == 1
    assert list(insecure_listeners.installed(tmp_path)) == []
    (tmp_path / "broker.yml").write_text("insecure.listeners: true\n")
    (tmp_path / "registry.yml").write_text("insecure: {listeners: False}\n")
    assert list(insecure_listeners.installed(tmp_path)) == ["broker"]
    assert machine.insecure([]).verdict == "good"
    found = machine.insecure(["broker"])
    assert found.verdict == "advice"
    assert re.match("broker: insecure.listeners is true", found.says)
