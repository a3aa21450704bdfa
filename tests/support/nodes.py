"""A replacement for ZooKeeper in tests of the broker, with the nodes in memory."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from kazoo.exceptions import BadVersionError, KazooException, NodeExistsError, NoNodeError

from skidway.coordination import Versioned


class Nodes:
    """Replaces a `Coordinator`, its kazoo client and the client's transaction. It has only the
    methods that the broker calls, and keeps the nodes in a dictionary.

    `after` contains functions, each for one path. A test uses them to change a node between two
    requests of the broker. A function is called once, when the broker has asked whether the
    function's path exists.
    """

    def __init__(self, **content: bytes) -> None:
        self.content = content
        self.after: dict[str, Callable[[], None]] = {}
        self.client = self
        self.connect = "zookeeper:2181"
        self._versions: dict[str, int] = {}

    def retry(self, call: Callable[..., Any], *args: Any, **options: Any) -> Any:
        return call(*args, **options)

    def ensure_path(self, path: str) -> None:
        self._make_parents(f"{path}/")

    def exists(self, path: str) -> object:
        found = path in self.content or None
        self.after.pop(path, lambda: None)()
        return found

    def exists_async(self, path: str) -> Any:
        found = self.exists(path)
        return SimpleNamespace(get=lambda *_args, **_options: found)

    def get(self, path: str) -> Versioned | None:
        if path not in self.content:
            return None
        return Versioned(self.content[path], self._versions.get(path, 0))

    def children(self, path: str) -> list[str]:
        inside = [each[len(path) + 1 :] for each in self.content if each.startswith(f"{path}/")]
        return sorted({each.partition("/")[0] for each in inside})

    def get_children(self, path: str) -> list[str]:
        if path not in self.content:
            raise NoNodeError
        return self.children(path)

    def create_if_absent(self, path: str, data: bytes = b"", **_options: object) -> bool:
        self._make_parents(path)
        is_new = path not in self.content
        self.content.setdefault(path, data)
        return is_new

    def set_versioned(self, path: str, data: bytes, version: int) -> bool:
        if path not in self.content or self._versions.get(path, 0) != version:
            return False
        self.content[path], self._versions[path] = data, version + 1
        return True

    def delete(self, path: str, version: int = -1, recursive: bool = False) -> None:
        if path not in self.content:
            raise NoNodeError
        if version not in (-1, self._versions.get(path, 0)):
            raise BadVersionError
        below = [each for each in self.content if each.startswith(f"{path}/")]
        for each in [path, *(below if recursive else [])]:
            del self.content[each]
            self._versions.pop(each, None)

    def transaction(self) -> Any:
        checks: list[str] = []
        steps: list[tuple[str, bytes | None]] = []
        return SimpleNamespace(
            create=lambda path, data: steps.append((path, data)),
            delete=lambda path: steps.append((path, None)),
            check=lambda path, _version: checks.append(path),
            commit=lambda: self._commit(checks, steps),
        )

    def _commit(self, checks: list[str], steps: list[tuple[str, bytes | None]]) -> list[object]:
        content = dict(self.content)
        fault: KazooException | None = None
        if not content.keys() >= set(checks):
            fault = NoNodeError()
        for path, data in steps:
            if data is None and content.pop(path, None) is None:
                fault = fault or NoNodeError()
            if data is not None and content.setdefault(path, data) is not data:
                fault = fault or NodeExistsError()
        if fault is not None:
            return [fault for _ in steps]
        self.content = content
        return [path for path, _ in steps]

    def _make_parents(self, path: str) -> None:
        parts = path.split("/")[1:-1]
        for depth in range(1, len(parts) + 1):
            self.content.setdefault("/" + "/".join(parts[:depth]), b"")
