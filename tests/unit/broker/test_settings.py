from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric import rsa

from skidway import settings
from skidway.broker.catalog import Endpoint
from skidway.broker.listener_settings import parse_endpoint
from skidway.broker.settings import BrokerSettings
from skidway.errors import ConfigurationRefused
from skidway.kafka.types import PLAINTEXT
from support.certificates import Authority, Pair

HOUR = 3_600_000


def load(*sets: str) -> BrokerSettings:
    return settings.load(BrokerSettings, None, sets)


def test_the_example_is_the_defaults(tmp_path: Path) -> None:
    """If all settings in the broker's example configuration are uncommented, each setting has its
    default."""
    path = tmp_path / "broker.yml"
    path.write_text(settings.example(BrokerSettings, active=True))
    assert settings.load(BrokerSettings, path) == BrokerSettings()


@pytest.mark.parametrize(
    ("setting", "word"),
    [
        ("listeners=127.0.0.1:9092", "listeners"),
        ("listeners=SASL_PLAINTEXT://127.0.0.1:9092", "PLAINTEXT, SSL or SASL_SSL"),
        ("listener.security.protocol.map=CLIENT", "listener.security.protocol.map"),
        ("listeners=PLAINTEXT://0.0.0.0:9092", "advertised.listeners"),
        ("advertised.listeners=nonsense", "advertised.listeners"),
        ("advertised.listeners=PLAINTEXT://a:1,PLAINTEXT://b:1", "advertised.listeners"),
        ("advertised.listeners=SSL://a:1", "advertised.listeners: SSL"),
        ("cluster.name=a.b", "cluster.name"),
        ("sasl.enabled.mechanisms=GSSAPI", "SCRAM-SHA-256"),
        ("super.users=admin", "User:NAME"),
        ("super.users=User:a,User:b", "separate with ;"),
        ("connections.max.reauth.ms=1999", "at least 2000"),
        ("authorizer.mode=on", "authorizer.mode"),
        ("zookeeper.connect=host", "zookeeper.connect"),
        ("log.dirs=/a,/a", "log.dirs"),
        ("broker.id=-1", "broker.id"),
        ("min.insync.replicas=2", "min.insync.replicas"),
    ],
)
def test_what_cannot_work_is_refused(setting: str, word: str) -> None:
    """A value that cannot work is refused. The error names the setting to correct, or the only
    protocol that a listener may have."""
    with pytest.raises(ConfigurationRefused, match=word):
        load(setting)


def test_clients_are_never_told_localhost() -> None:
    """A broker on localhost gives its clients the address 127.0.0.1, because a client that gets the
    name `localhost` tries ::1 first."""
    (told,) = load("listeners=PLAINTEXT://localhost:1").advertised([1])
    assert told.host == "127.0.0.1"
    assert load().advertised([9092])[0].host == "127.0.0.1"
    settings = load(
        "listeners=PLAINTEXT://:9092", "advertised.listeners=PLAINTEXT://kafka1:19092",
        "insecure.listeners=true",
    )  # fmt: skip
    (told,) = settings.advertised([9092])
    assert told.address == "kafka1:19092"


def test_each_listener_has_its_own_address_for_clients() -> None:
    """Names of listeners get their protocol from the map, and each listener tells clients its own
    address, or that of advertised.listeners, with the port that was bound."""
    settings = load(
        "listeners=INSIDE://127.0.0.1:0,INSIDE://[::1]:0,OUTSIDE://:9093,PLAINTEXT://[::1]:9094",
        "listener.security.protocol.map=INSIDE:PLAINTEXT,OUTSIDE:PLAINTEXT",
        "advertised.listeners=outside://kafka1:0",
        "insecure.listeners=true",
    )
    assert settings.advertised([1, 9, 2, 3]) == (
        Endpoint("INSIDE", PLAINTEXT, "127.0.0.1", 1),
        Endpoint("OUTSIDE", PLAINTEXT, "kafka1", 2),
        Endpoint("PLAINTEXT", PLAINTEXT, "::1", 3),
    )


def test_hours_and_milliseconds() -> None:
    """As in Kafka, a setting in milliseconds overrides the same setting in hours, and -1 means no
    limit."""
    assert load("log.retention.hours=2").log_defaults().retention_ms == 2 * HOUR
    assert load("log.retention.hours=2", "log.retention.ms=7").log_defaults().retention_ms == 7
    assert load("log.retention.hours=-1").log_defaults().retention_ms == -1
    assert load("log.retention.ms=-1").log_defaults().retention_ms == -1
    assert load("log.roll.hours=1").log_defaults().segment_ms == HOUR


def test_addresses() -> None:
    """An endpoint may have an IPv6 address in brackets, and port 0 for any free port."""
    assert parse_endpoint("PLAINTEXT://[::1]:9092", "listeners").host == "::1"
    assert parse_endpoint("PLAINTEXT://127.0.0.1:0", "listeners").port == 0


def tls(authority: Authority, pair: Pair, *more: str) -> tuple[str, ...]:
    return (
        "listeners=SSL://127.0.0.1:0",
        f"ssl.certificate.location={pair.certificate}",
        f"ssl.key.location={pair.key}",
        f"ssl.ca.location={authority.certificate}",
        *more,
    )


@pytest.mark.parametrize(
    ("case", "words"),
    [
        ("missing", "ssl.certificate.location: .*nowhere.pem.* No such file"),
        ("no certificate", "ssl.certificate.location is missing"),
        ("other key", "ssl.certificate.location: .*other.key"),
        ("expired", "ssl.certificate.location: .*old.pem has expired on 20"),
        ("weak", "ssl.certificate.location: .*weak.pem"),
        ("damaged crl", "ssl.crl.location: .*damaged.crl"),
        ("no authority", "ssl.client.auth is required: ssl.ca.location is missing"),
    ],
)
def test_files_that_cannot_be_used_are_named(tmp_path: Path, case: str, words: str) -> None:
    """A file for TLS that cannot be used is refused by its setting, its path and the reason."""
    authority = Authority(tmp_path)
    good, other = authority.sign("good"), authority.sign("other")
    (tmp_path / "damaged.crl").write_text("no list")
    cases = {
        "missing": tls(authority, Pair(tmp_path / "nowhere.pem", good.key)),
        "no certificate": ("listeners=SSL://127.0.0.1:0",),
        "other key": tls(authority, Pair(good.certificate, other.key)),
        "expired": tls(authority, authority.sign("old", ends=timedelta(days=-1))),
        "weak": tls(authority, authority.sign("weak", key=rsa.generate_private_key(65537, 1024))),
        "damaged crl": tls(authority, good, f"ssl.crl.location={tmp_path}/damaged.crl"),
        "no authority": (
            *tls(authority, good)[:3], "ssl.client.auth=required",
        ),
    }  # fmt: skip
    with pytest.raises(ConfigurationRefused, match=words):
        load(*cases[case])


def test_only_a_required_certificate_makes_a_listener_secure(tmp_path: Path) -> None:
    """A listener for other hosts needs insecure.listeners, unless its clients must have a
    certificate."""
    authority = Authority(tmp_path)
    sets = tls(authority, authority.sign("server"), "listeners=SSL://10.0.0.1:0")
    for asked in ("none", "requested"):
        with pytest.raises(ConfigurationRefused, match="set insecure"):
            load(*sets, f"ssl.client.auth={asked}")
        assert load(*sets, f"ssl.client.auth={asked}", "insecure.listeners=true").insecure()
    assert load(*sets, "ssl.client.auth=required").insecure() == []
    with pytest.raises(ConfigurationRefused, match="PLAINTEXT"):
        load(*sets, "ssl.client.auth=required", "listeners=SSL://10.0.0.1:0,PLAINTEXT://10.0.0.2:1")
