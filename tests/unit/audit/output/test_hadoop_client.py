"""Tests the settings that say how a program is known to Hadoop."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from skidway.audit.output.hadoop_client import HadoopClient
from skidway.errors import ConfigurationRefused


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (HadoopClient(principal="a"), "kerberos.keytab is missing"),
        (HadoopClient(keytab="/a"), "kerberos.principal is missing"),
        (HadoopClient(conf_dir="/nowhere"), "hadoop.conf.dir: /nowhere is no directory"),
    ],
)
def test_half_of_the_settings_is_refused(given: HadoopClient, words: str) -> None:
    """A principal needs a keytab, and a keytab a principal. The directory has to be there."""
    with pytest.raises(ConfigurationRefused, match=words):
        given.check()


def test_all_of_the_settings_are_good(tmp_path: Path) -> None:
    """All settings together, and none, are good."""
    HadoopClient(str(tmp_path), "a", "/a").check()
    HadoopClient().check()


def test_the_hosts_name_stands_for_host(monkeypatch: pytest.MonkeyPatch) -> None:
    """In a principal, `_HOST` is this host's name in small letters, as in Hadoop."""
    monkeypatch.setattr(socket, "getfqdn", lambda: "Loads.Example.Com")
    assert HadoopClient(principal="etl/_HOST@A.B").name == "etl/loads.example.com@A.B"
    assert HadoopClient(principal="etl@A_HOST").name == "etl@A_HOST"
    assert HadoopClient().name is None
