"""The keys of the demo's programs, and which settings name them."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from skidway.agent.settings import AgentSettings
from skidway.audit.evidence.admission import Mode
from skidway.audit.settings import AuditSettings, CounterSettings
from skidway.audit.signing.keys import master_keys_in, sender_keys_in
from skidway.demo.site import DEFAULT_PORTS, Site
from skidway.host_name import host_name
from skidway.loader.settings import LoaderSettings
from skidway.loader.store import StoreConnection
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
