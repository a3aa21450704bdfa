from __future__ import annotations

import argparse
from pathlib import Path

import pytest

from skidway.cli import options, profile
from skidway.errors import ConfigurationRefused

WORDS = "bootstrap.servers: b1:9092,b2:9092\nschema.registry.url: https://r\n"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """Makes a home directory with a profile, and returns its path."""
    path = tmp_path / ".config/skidway/profile.yml"
    path.parent.mkdir(parents=True)
    path.write_text(WORDS)
    return tmp_path


def test_a_profile_is_read_from_the_usual_place(home: Path) -> None:
    """The profile is a file with a user's own defaults for options: ~/.config/skidway/profile.yml,
    or skidway/profile.yml below XDG_CONFIG_HOME. The profile may be missing."""
    found = profile.read({"HOME": str(home)})
    assert (found.bootstrap_servers, found.schema_registry_url) == ("b1:9092,b2:9092", "https://r")
    assert profile.read({"HOME": "/nowhere", "XDG_CONFIG_HOME": str(home / ".config")}) == found
    assert profile.read({"HOME": "/nowhere"}) == profile.Profile()


def test_the_environment_is_over_the_profile(home: Path) -> None:
    """An environment variable that is not empty overrides the profile's value for the same
    option."""
    found = profile.read(
        {
            "HOME": str(home),
            "SKIDWAY_BOOTSTRAP_SERVER": "b9:1",
            "SKIDWAY_REGISTRY": "",
            "SKIDWAY_ZOOKEEPER": "z:2181/dc1",
        }
    )
    assert (found.bootstrap_servers, found.schema_registry_url) == ("b9:1", "https://r")
    assert found.zookeeper_connect == "z:2181/dc1"


def test_another_file_is_named_and_must_exist(home: Path, tmp_path: Path) -> None:
    """The environment variable SKIDWAY_PROFILE names another file as the profile. This file must
    exist. If the variable is set to an empty text, no profile is read. An unknown key in a profile
    is refused, and the error names the most similar known key."""
    other = tmp_path / "other.yml"
    other.write_text("bootstrap.servers: other:1\n")
    assert profile.read({"SKIDWAY_PROFILE": str(other)}).bootstrap_servers == "other:1"
    assert profile.read({"HOME": str(home), "SKIDWAY_PROFILE": ""}) == profile.Profile()
    with pytest.raises(ConfigurationRefused, match=r"none\.yml"):
        profile.read({"SKIDWAY_PROFILE": str(tmp_path / "none.yml")})
    other.write_text("bootstrap.server: other:1\n")
    with pytest.raises(ConfigurationRefused, match=r"bootstrap\.servers"):
        profile.read({"SKIDWAY_PROFILE": str(other)})


def test_an_option_is_over_all(monkeypatch: pytest.MonkeyPatch, home: Path) -> None:
    """A value on the command line overrides the environment variable, which overrides the profile,
    which overrides the option's default."""
    monkeypatch.setenv("SKIDWAY_PROFILE", str(home / ".config/skidway/profile.yml"))
    monkeypatch.delenv("SKIDWAY_BOOTSTRAP_SERVER", raising=False)
    parser = argparse.ArgumentParser()
    options.add_bootstrap_option(parser)
    options.add_zookeeper_option(parser)
    assert options.bootstrap_server(parser.parse_args([])) == "b1:9092,b2:9092"
    monkeypatch.setenv("SKIDWAY_BOOTSTRAP_SERVER", "b9:1")
    assert options.bootstrap_server(parser.parse_args([])) == "b9:1"
    assert options.bootstrap_server(parser.parse_args(["--bootstrap-server", "x:1"])) == "x:1"
    assert options.zookeeper(parser.parse_args([])) is None, "the brokers are asked"
    assert options.zookeeper(parser.parse_args(["--zookeeper", "z:1/dc1"])) == "z:1/dc1"
    monkeypatch.delenv("SKIDWAY_BOOTSTRAP_SERVER")
    monkeypatch.setenv("SKIDWAY_PROFILE", "")
    assert options.bootstrap_server(parser.parse_args([])) == options.BOOTSTRAP_SERVER
