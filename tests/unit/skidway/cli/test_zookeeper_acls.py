"""`skidway zookeeper secure` knows what programs have in ZooKeeper."""

from __future__ import annotations

from pathlib import Path

import pytest

from skidway.broker.coordination import access_documents, documents
from skidway.cli.zookeeper_acls import OWNED
from skidway.errors import ConfigurationRefused
from skidway.kafka import group_nodes
from skidway.schemas.registry import zookeeper_log
from skidway.settings import load_part
from skidway.zookeeper_settings import ZooKeeperSettings
from support.processes import call_skidway


def test_every_node_of_a_program_is_known() -> None:
    """All paths in the modules with the nodes of brokers and registry are below what `secure`
    gives to their users."""
    modules = (access_documents, documents, group_nodes)
    constants = [each for module in modules for each in vars(module).items() if each[0].isupper()]
    named = [text for _, text in constants if isinstance(text, str) and text.startswith("/")]
    named += access_documents.ROOTS.values()
    assert {f"/{each.split('/')[1]}" for each in named} == set(OWNED["broker"])
    assert {f"/{zookeeper_log.ROOT.split('/')[1]}"} == set(OWNED["registry"])


def test_it_reads_the_configuration_of_the_program(tmp_path: Path) -> None:
    """It reads from the program's configuration what it needs, flat or nested, and leaves the other
    keys to the program. A mistake in --set is named."""
    path = tmp_path / "broker.yml"
    path.write_text(
        "log.dirs: [/a, /b]\nzookeeper:\n  connect: zk1:2281/dc1\n  auth.location: /u\n"
    )
    found = load_part(ZooKeeperSettings, path, ["zookeeper.connect=zk2:2281/dc1"])
    assert (found.zookeeper_connect, found.zookeeper_auth) == ("zk2:2281/dc1", Path("/u"))
    with pytest.raises(ConfigurationRefused, match=r"unknown key 'zookeeper\.conect'"):
        load_part(ZooKeeperSettings, path, ["zookeeper.conect=zk2:2281"])
    path.write_text("zookeeper.ssl.client.enable: perhaps\n")
    with pytest.raises(ConfigurationRefused, match=r"broker\.yml"):
        load_part(ZooKeeperSettings, path)


def test_without_a_user_there_is_nobody_to_give_to() -> None:
    """Without zookeeper.auth.location the command ends with status 2."""
    done = call_skidway("zookeeper", "secure", "broker", "--set", "zookeeper.connect=127.0.0.1:1")
    assert done.returncode == 2
    assert "zookeeper.auth.location is not set" in done.stderr
