"""The keys and certificates of the demo's programs, and which settings name them."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import pytest
import yaml

from skidway.agent.settings import AgentSettings
from skidway.audit.evidence.admission import Mode
from skidway.audit.settings import AuditSettings, CounterSettings
from skidway.audit.signing.keys import master_keys_in, sender_keys_in
from skidway.broker.settings import BrokerSettings
from skidway.demo import certificates
from skidway.demo.site import CERTIFIED, DEFAULT_PORTS, PERSON, Site
from skidway.host_name import host_name
from skidway.loader.settings import LoaderSettings
from skidway.loader.store import StoreConnection
from skidway.schemas.registry.settings import RegistrySettings
from skidway.settings import load
from support.promises import promise


@promise("6 signed")
@pytest.mark.parametrize("output", ["hdfs", "hdfs/"])
def test_each_program_of_the_demo_signs_as_itself(tmp_path: Path, output: str) -> None:
    """The demo's audit requires signatures, and each program that sends messages has a key of its
    own, for the owner alone: that of its tier and cluster, of this host, or of the output as the
    loader names it. A second run keeps the master keys, so what the first run signed stays
    proven."""
    site = Site(tmp_path, DEFAULT_PORTS, str(tmp_path / output), is_signed=True)
    site.make_keys()
    site.write([])
    audit = load(AuditSettings, site.config("audit"))
    assert (audit.mode, audit.master_keys_location) == (Mode.REQUIRE, site.masters)
    found = {}
    for program, cls in (
        ("agent", AgentSettings), ("count-dc1", CounterSettings),
        ("count-offline", CounterSettings), ("loader", LoaderSettings),
    ):  # fmt: skip
        location = Path(yaml.safe_load(site.config(program).read_text())["audit.key.location"])
        assert location.stat().st_mode & 0o777 == 0o600
        assert "audit_key_location" in cls.__dataclass_fields__
        [key] = sender_keys_in(location.read_text())
        found[program] = str(key.identity)
    assert found == {
        "agent": f"agent/dc1/{host_name(None)}",
        "count-dc1": "counter/broker/dc1",
        "count-offline": "counter/mirror/offline",
        "loader": f"loader/offline/{StoreConnection(site.output).store().url}",
    }
    before = site.masters.read_text()
    site.make_keys()
    assert site.masters.read_text() == before
    assert site.masters.stat().st_mode & 0o777 == 0o600
    assert len(master_keys_in(before)) == 1


def test_a_site_without_keys_signs_nothing(tmp_path: Path) -> None:
    """A pipeline of a test that makes no keys has no setting that needs one."""
    site = Site(tmp_path, DEFAULT_PORTS, str(tmp_path / "hdfs"))
    site.write([])
    assert load(AuditSettings, site.config("audit")).mode is Mode.OFF
    for path in (tmp_path / "etc").glob("*.yml"):
        assert "audit.key.location" not in path.read_text()


@pytest.mark.slow  # it needs openssl
def test_with_tls_each_program_has_a_certificate_of_its_own(tmp_path: Path) -> None:
    """With TLS, the listeners of brokers and registry have nothing else, and require certificates.
    Each program has one of its own, for itself and as a client, and so has a person's profile. Only
    the owner may read the keys. A second run makes no other certificates."""
    site = Site(tmp_path, DEFAULT_PORTS, str(tmp_path / "hdfs"), is_tls=True)
    before = os.umask(0o022)
    try:
        certificates.make(site.certificates, CERTIFIED)
    finally:
        os.umask(before)
    made = {path: path.read_bytes() for path in site.certificates.glob("*.pem")}
    keys = {path.with_suffix(".key").stat().st_mode & 0o777 for path in made}
    assert (len(made), keys) == (1 + len(CERTIFIED), {0o600})
    site.write([])
    mirror = load(BrokerSettings, site.config("broker-offline")).mirror_sources[0]
    assert shown(mirror.kafka.security.certificate) == "mirror"
    assert shown(site.kafka("dc1").security.certificate) == PERSON
    for name in ("broker-dc1", "broker-offline"):
        broker = load(BrokerSettings, site.config(name))
        broker.check_listeners()
        assert [each.protocol for each in broker.endpoints()] == ["SSL"]
        assert (broker.client_auth, shown(broker.certificate)) == ("required", name)
    registry = load(RegistrySettings, site.config("registry"))
    registry.check()
    assert [each.is_tls for each in registry.addresses] == [True]
    assert (registry.client_certificates, shown(registry.certificate)) == ("REQUIRED", "registry")
    for name in ("agent", "count-dc1", "count-offline", "loader", "audit"):
        expect_client(yaml.safe_load(site.config(name).read_text()), name)
    expect_client(yaml.safe_load(site.profile.read_text()), PERSON)
    certificates.make(site.certificates, CERTIFIED)
    assert {path: path.read_bytes() for path in made} == made


def expect_client(settings: Mapping[str, str], name: str) -> None:
    assert settings["security.protocol"] == "SSL"
    for prefix in ("", "schema.registry.") if "schema.registry.url" in settings else ("",):
        assert shown(settings[f"{prefix}ssl.certificate.location"]) == name
        assert shown(settings[f"{prefix}ssl.key.location"]) == name
        assert shown(settings[f"{prefix}ssl.ca.location"]) == "authority"


def shown(path: str | Path | None) -> str:
    """Returns the name of a file that is there, without its ending."""
    assert path is not None
    assert Path(path).is_file()
    return Path(path).stem
