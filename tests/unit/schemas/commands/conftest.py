"""Runs the command `skidway schemas` in the test's own process, with a registry that is called
without a network."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from skidway.cli import main
from skidway.schemas.client import RegistryAdministration, RegistryConnection
from support.registry_http import InProcess, Registry, administration


@dataclass(frozen=True)
class Done:
    """The output of a command, and its exit status."""

    status: int
    out: str
    err: str

    @property
    def document(self) -> Any:
        """Returns the JSON value that the command printed."""
        return json.loads(self.out)


Run = Callable[..., Done]


@pytest.fixture
def registry() -> Registry:
    """Returns an empty registry, which stores its schemas in memory."""
    return Registry()


@pytest.fixture
def client(registry: Registry) -> RegistryAdministration:
    """Returns a client of the registry."""
    return administration(InProcess(registry))


@pytest.fixture
def run(
    client: RegistryAdministration,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> Run:
    """Returns a function that runs a subcommand of `skidway schemas` in the directory `tmp_path`.
    So arguments may name files in this directory without a path."""
    monkeypatch.setattr(RegistryConnection, "administration", lambda _: client)
    monkeypatch.chdir(tmp_path)

    def verb(*arguments: str) -> Done:
        status = main(["schemas", *arguments])
        printed = capsys.readouterr()
        return Done(status, printed.out, printed.err)

    return verb
