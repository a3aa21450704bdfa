"""ZooKeeper's nodes in memory, for tests of the broker's store."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from kazoo.exceptions import NodeExistsError, NoNodeError

from skidway.coordination import Versioned


class Nodes:
    """Stands in for a `Coordinator`, for its kazoo client and for the client's transaction, over a
    dictionary.

    after: by path, a function that is called once, after somebody asked whether the path exists.
    """

    def __init__(self, **content: bytes) -> None:
        self.content = content
        self.after: dict[str, Callable[[], None]] = {}
        self.client = self
        self.connect = "zookeeper:2181"

    def get(self, path: str) -> Versioned | None:
        return Versioned(self.content[path], 0) if path in self.content else None

    def children(self, path: str) -> list[str]:
        return self.get_children(path) if path in self.content else []

    def create_if_absent(self, path: str, data: bytes) -> bool:
        return self.content.setdefault(path, data) is data

    def set_versioned(self, path: str, data: bytes, _version: int) -> bool:
        self.content[path] = data
        return True

    def retry(self, call: Callable[..., Any], *args: Any, **options: Any) -> Any:
        return call(*args, **options)

    def ensure_path(self, _path: str) -> None:
        pass

    def exists(self, path: str) -> object:
        found = path in self.content or None
        self.after.pop(path, lambda: None)()
        return found

    def delete(self, path: str, recursive: bool = False) -> None:
        found = [each for each in self.content if each == path or each.startswith(f"{path}/")]
        if not found:
            raise NoNodeError
        for each in found if recursive else [path]:
            del self.content[each]

    def get_children(self, path: str) -> list[str]:
        if path not in self.content:
            raise NoNodeError
        inside = [each[len(path) + 1 :] for each in self.content if each.startswith(f"{path}/")]
        return sorted({each.partition("/")[0] for each in inside})

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
        if not content.keys() >= set(checks):
            return [NoNodeError()]
        for path, data in steps:
            if data is None and content.pop(path, None) is None:
                return [NoNodeError()]
            if data is not None and content.setdefault(path, data) is not data:
                return [NodeExistsError()]
        self.content = content
        return [path for path, _ in steps]
