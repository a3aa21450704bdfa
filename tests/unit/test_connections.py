"""What the product needs to reach a server is in one place for each kind of server."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = ("agent", "audit", "broker", "loader", "schemas", "skidway")


@cache
def trees() -> dict[str, ast.Module]:
    """The syntax tree of each module of the product, by its path."""
    links = {ROOT / "skidway" / each for each in PACKAGES}
    paths = (path for each in PACKAGES for path in (ROOT / each).rglob("*.py"))
    return {
        str(path.relative_to(ROOT)): ast.parse(path.read_text())
        for path in paths
        if links.isdisjoint(path.parents)
    }


def calls(name: str) -> Iterator[tuple[str, ast.Call]]:
    """The calls of a function or class with this name, and in which module each of them is."""
    for path, tree in trees().items():
        for node in ast.walk(tree):
            if isinstance(node, ast.Call):
                called = node.func
                if name in (getattr(called, "id", None), getattr(called, "attr", None)):
                    yield path, node


@pytest.mark.parametrize(
    ("made", "module"),
    [
        ("Client", "skidway/kafka/connection.py"),
        ("LoopClient", "skidway/kafka/connection.py"),
        ("RegistryClient", "schemas/client/registry_connection.py"),
        ("RegistryAdministration", "schemas/client/registry_connection.py"),
        ("Coordinator", "skidway/coordination/session.py"),
        ("LocalOutput", "audit/output/__init__.py"),
        ("HdfsOutput", "audit/output/__init__.py"),
        ("LocalStore", "loader/store/__init__.py"),
        ("HdfsStore", "loader/store/__init__.py"),
    ],
)
def test_a_client_is_made_in_one_module(made: str, module: str) -> None:
    """Each class of clients, and of outputs, is made in one module, where TLS and credentials enter
    later."""
    other = {"audit/output/hdfs/client.py"} if made == "Client" else set()  # of hdfs-native
    assert {path for path, _ in calls(made)} - other == {module}


@pytest.mark.parametrize(
    ("key", "mixins"),
    [
        ("bootstrap.servers", {"skidway/kafka/settings.py"}),
        ("zookeeper.connect", {"skidway/zookeeper_settings.py"}),
        ("schema.registry.url", set()),  # its mixin and one class that overrides it name a constant
    ],
)
def test_an_address_is_declared_in_one_mixin(key: str, mixins: set[str]) -> None:
    """Classes of settings inherit the setting with a server's address, and do not declare it. Only
    the profile, which every command reads, declares each key as optional and imports no client."""
    declared = {
        path
        for path, call in calls("setting")
        if isinstance(call.args[0], ast.Constant) and call.args[0].value == key
    }
    assert declared == mixins | {"skidway/cli/profile.py"}


def test_an_output_is_reached_as_its_settings_say() -> None:
    """Only the settings, a command line, and an application that calls `skidway.table` say how an
    output is reached. A local store repeats it with its absolute path, for tasks."""
    made = {name: {path for path, _ in calls(f"{name}Connection")} for name in ("Output", "Store")}
    assert made["Output"] == {"audit/commands/options.py"}
    assert made["Store"] == {"loader/settings.py", "loader/store/local.py", "loader/table.py"}


def test_a_security_protocol_is_named_in_one_module() -> None:
    """The broker's listeners, what a broker writes into ZooKeeper, and the demo take the name of
    the security protocol from one constant."""
    named = {
        path
        for path, tree in trees().items()
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and node.value == "PLAINTEXT"
    }
    assert named == {"skidway/kafka/types.py"}
