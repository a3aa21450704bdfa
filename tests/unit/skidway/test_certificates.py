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
        ("authority", "advice", "for b1.example: unable to get local issuer certificate"),
        ("usage", "advice", "for b1.example: unsuitable certificate purpose"),
        ("key", "missing", "cannot be used: KEY_VALUES_MISMATCH"),
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
