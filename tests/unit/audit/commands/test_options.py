"""Tests where the commands of the audit get the collector's settings from."""

from __future__ import annotations

import socket
from argparse import Namespace
from pathlib import Path

import pytest

from skidway.audit.commands import options


def test_settings_need_no_file_if_an_option_names_the_brokers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With --bootstrap-server, `--set KEY=VALUE` needs no configuration file. The other settings
    have their defaults. If a configuration file is installed, the setting `bootstrap.servers` has
    the value from this file, even if --bootstrap-server names other brokers."""
    monkeypatch.setattr(options, "DIRECTORY", tmp_path)
    given = Namespace(config=None, set=["lateness.ms=1000"], bootstrap_server="h:1", store=None)
    found = options.settings_of(given)
    assert found is not None
    assert (found.lateness_ms, found.bootstrap_servers) == (1000, "h:1")
    (tmp_path / "audit.yml").write_text("bootstrap.servers: other:2\n")
    found = options.settings_of(given)
    assert found is not None
    assert (found.lateness_ms, found.bootstrap_servers) == (1000, "other:2")


def test_commands_name_this_host_as_the_programs_here_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Commands take the name of this host from their settings; without such settings, from those
    of the agent that is installed here. So they know which files are on this host."""
    monkeypatch.setattr(options, "DIRECTORY", tmp_path)
    (tmp_path / "agent.yml").write_text("host.name: web1.example\n")
    assert options.here(None) == "web1.example"
    given = Namespace(config=None, set=["host.name=au1"], bootstrap_server="h:1", store=None)
    assert options.here(options.settings_of(given)) == "au1"
    (tmp_path / "audit.yml").write_text("bootstrap.servers: h:1\nhost.name: au2\n")
    given.set = []
    assert options.here(options.settings_of(given)) == "au2"
    given.config = tmp_path / "demo.yml"
    given.config.write_text("bootstrap.servers: h:1\n")
    said = options.here(options.settings_of(given))
    assert said == socket.gethostname(), "the programs of that configuration call it so"
