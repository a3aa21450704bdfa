"""`skidway doctor` looks at the files for TLS of each configuration of this host."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml
from cryptography.x509.oid import ExtendedKeyUsageOID

from skidway.certificates import examine
from support.certificates import Authority, Pair


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path)


def settings(pair: Pair | None, ca: Path, prefix: str = "ssl") -> dict[str, object]:
    own = {} if pair is None else {"certificate": pair.certificate, "key": pair.key}
    return {f"{prefix}.{k}.location": str(path) for k, path in {**own, "ca": ca}.items()}


def found(folder: Path, program: str, given: dict[str, object]) -> list[tuple[str, str, str]]:
    """The findings on one configuration: what for, how bad, and the sentence."""
    etc = folder / "etc"
    etc.mkdir(exist_ok=True)
    (etc / f"{program}.yml").write_text(yaml.safe_dump(given))
    return [(each.name, each.verdict, each.says) for each in examine(etc)]


def pair_of(authority: Authority, name: str, *hosts: str, **more: Any) -> Pair:
    pair = authority.sign(name, *hosts, ends=timedelta(days=90), **more)
    pair.key.chmod(0o600)
    return pair


def broker(pair: Pair, ca: Path, host: str = "b1.example") -> dict[str, object]:
    listeners = {
        "listeners": "PLAINTEXT://127.0.0.1:9092,SSL://0.0.0.0:9093",
        "advertised.listeners": [f"SSL://{host}:9093"],
    }
    return listeners | settings(pair, ca)


def test_good_files_are_good(authority: Authority, tmp_path: Path) -> None:
    """Files that other sides accept are named with the days that are left: of a broker and the
    sources of its mirror, of a client, and of a client of the registry."""
    ca = authority.certificate
    source = {"cluster": "dc2", **settings(pair_of(authority, "mirror"), ca)}
    given = broker(pair_of(authority, "b1", "b1.example"), ca)
    assert found(tmp_path, "broker", given | {"mirror.sources": [source]}) == [
        ("certificate, broker", "good", f"{tmp_path}/b1.pem is valid for 89 days"),
        ("certificate, broker: dc2", "good", f"{tmp_path}/mirror.pem is valid for 89 days"),
    ]
    usage = ExtendedKeyUsageOID.CLIENT_AUTH
    agent = settings(pair_of(authority, "agent", usage=usage), ca)
    (tmp_path / "etc" / "broker.yml").unlink()
    assert found(tmp_path, "agent", agent | settings(None, ca, "schema.registry.ssl")) == [
        ("certificate, agent", "good", f"{tmp_path}/agent.pem is valid for 89 days"),
        ("certificate, agent: registry", "good", f"{ca} can be read; no certificate of its own"),
    ]
    assert found(tmp_path, "agent", {"bootstrap.servers": "b1.example:9092"}) == []


@pytest.mark.parametrize(
    ("mistake", "verdict", "words"),
    [
        ("name", "advice", "for b2.example: Hostname mismatch, certificate is not valid"),
        ("authority", "advice", "for b1.example: it is not signed by a trusted authority"),
        ("usage", "advice", "for b1.example: unsuitable certificate purpose"),
        ("key", "missing", "cannot be used: the key is not that of"),
        ("gone", "missing", "cannot be used: No such file"),
        ("open", "advice", "every user can read the key in"),
        ("soon", "advice", "expires in 4 days"),
        ("expired", "missing", "has expired"),
    ],
)
def test_each_mistake_is_named(
    authority: Authority, tmp_path: Path, mistake: str, verdict: str, words: str
) -> None:
    """Each mistake in a broker's files is one sentence: `missing` if the broker cannot use them."""
    ends = {"soon": timedelta(days=5), "expired": -timedelta(days=1)}.get(mistake)
    usage = ExtendedKeyUsageOID.CLIENT_AUTH if mistake == "usage" else None
    pair = authority.sign("b1", "b1.example", ends=ends or timedelta(days=90), usage=usage)
    pair.key.chmod(0o644 if mistake == "open" else 0o640)
    other = Authority(tmp_path, "other")
    if mistake == "key":
        other.sign("stranger").key.replace(pair.key)
    if mistake == "gone":
        pair.key.unlink()
    ca = (other if mistake == "authority" else authority).certificate
    host = "b2.example" if mistake == "name" else "b1.example"
    said = found(tmp_path, "broker", broker(pair, ca, host))
    assert [(v, words in text) for _, v, text in said if v != "good"] == [(verdict, True)], said


@pytest.mark.parametrize(
    ("days", "verdict", "words"),
    [
        (30, "good", "is valid for 29 days"),
        (2, "advice", "expires in 1 days"),
        (-1, "missing", "has expired"),
    ],
)
def test_the_days_of_a_revocation_list(
    authority: Authority, tmp_path: Path, days: int, verdict: str, words: str
) -> None:
    """The days that a revocation list lasts are told, of a client and of a broker; the last two are
    advice, and an expired list is missing. A broker's list without its authority is named."""
    crl = authority.revoke(ends=timedelta(days=days))
    ca, usage = authority.certificate, ExtendedKeyUsageOID.CLIENT_AUTH
    client = settings(pair_of(authority, "agent", usage=usage), ca) | {"ssl.crl.location": str(crl)}
    first, *_ = found(tmp_path, "agent", client)
    assert first == ("revocation list, agent", verdict, f"{crl} {words}")
    server = broker(pair_of(authority, "b1", "b1.example"), ca) | {"ssl.crl.location": str(crl)}
    (tmp_path / "etc" / "agent.yml").unlink()
    first, *_ = found(tmp_path, "broker", server)
    assert (first[1], words.split()[0] in first[2]) == (verdict, True)
    crl.write_bytes(Authority(tmp_path, "other").revoke().read_bytes())
    ((_, verdict, says),) = found(tmp_path, "broker", server)
    assert (verdict, "has no list of the authority CN=authority" in says) == ("missing", True)


@pytest.mark.parametrize(
    ("listeners", "advertised", "checked"),
    [
        ("SSL://10.0.0.7:9093", "SSL://b2.example:9093", ["b2.example"]),
        ("SSL://10.0.0.7:9093", "", ["10.0.0.7"]),
        ("SSL://127.0.0.1:9093", "", []),
        ("SSL://127.0.0.1:9093", "SSL://b2.example:9093", ["b2.example"]),
        ("SSL://[::]:9093,SASL_SSL://10.0.0.7:9094", "SSL://b1.example:9093", ["10.0.0.7"]),
        ("https://10.0.0.7:1,https://10.0.0.8:2", "", ["10.0.0.7", "10.0.0.8"]),
    ],
)
def test_the_names_by_which_clients_come_are_checked(
    authority: Authority, tmp_path: Path, listeners: str, advertised: str, checked: list[str]
) -> None:
    """A server's certificate must be for the advertised address of each listener. If none is
    advertised, it must be for the listener's own, unless only this host reaches that."""
    pair = pair_of(authority, "b1", "b1.example", is_local=False)
    given = {"listeners": listeners, "advertised.listeners": advertised}
    said = found(tmp_path, "broker", given | settings(pair, authority.certificate))
    named = [text.partition(" for ")[2].partition(":")[0] for _, v, text in said if v != "good"]
    assert named == checked


@pytest.mark.parametrize("prefix", ["ssl", "schema.registry.ssl"])
def test_a_path_that_leads_nowhere_is_to_be_corrected(
    authority: Authority, tmp_path: Path, prefix: str
) -> None:
    """The advice for a file that is not there is not to replace it. The sentence has the setting as
    the configuration has it, that of the registry's client, too."""
    given = settings(None, tmp_path / "mistyped.pem", prefix)
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc" / "agent.yml").write_text(yaml.safe_dump(given))
    (finding,) = examine(tmp_path / "etc")
    assert finding.says.startswith(f"{prefix}.ca.location: {tmp_path}/mistyped.pem cannot be used")
    assert finding.advice == "make the file, or correct the setting and start anew"
    (tmp_path / "mistyped.pem").write_text("no certificate")
    (finding,) = examine(tmp_path / "etc")
    assert finding.advice == "replace the file; no restart is needed"


def test_files_of_zookeeper(authority: Authority, tmp_path: Path) -> None:
    """The files of a ZooKeeper server are checked for the address of its port with TLS, and those
    of its clients like others."""
    pair, ca = pair_of(authority, "zk1", "zk1.example"), authority.certificate
    server = {"secureClientPort": 2281, **settings(pair, ca)}
    good = ("certificate, zookeeper", "good", f"{tmp_path}/zk1.pem is valid for 89 days")
    for address in ("zk1.example", "0.0.0.0"):
        given = server | {"secureClientPortAddress": address}
        assert found(tmp_path, "zookeeper", given) == [good]
    first, *_ = found(tmp_path, "zookeeper", server | {"secureClientPortAddress": "zk2.example"})
    assert first[1:2] == ("advice",)
    assert "for zk2.example: Hostname mismatch" in first[2]
    assert found(tmp_path, "zookeeper", {"sslQuorum": True, **settings(pair, ca)}) == [good]
    (tmp_path / "etc" / "zookeeper.yml").unlink()
    client = settings(None, ca, "zookeeper.ssl")
    assert found(tmp_path, "registry", client) == [
        ("certificate, registry: ZooKeeper", "good", f"{ca} can be read; no certificate of its own")
    ]


def test_mistakes_of_a_client(authority: Authority, tmp_path: Path) -> None:
    """A client's certificate that has expired, or that its own authorities have not signed, is
    named."""
    ca = authority.certificate
    expired = authority.sign("agent", ends=-timedelta(days=1))
    expired.key.chmod(0o600)
    ((_, verdict, says),) = found(tmp_path, "agent", settings(expired, ca))
    assert (verdict, "has expired" in says) == ("missing", True)
    stranger = pair_of(Authority(tmp_path, "other"), "stranger")
    first, _ = found(tmp_path, "agent", settings(stranger, ca))
    assert first[1] == "advice"
    assert "is not accepted by who trusts" in first[2]
