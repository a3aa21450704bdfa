"""Tests how an output on HDFS is listed while other programs change it. A dictionary of directory
listings replaces the HDFS client."""

from __future__ import annotations

from typing import Any, NamedTuple

from skidway.audit.output.hdfs.answer import Answers
from skidway.audit.output.hdfs.output import HdfsOutput


class _Status(NamedTuple):
    path: str
    isdir: bool
    length: int = 0


class _Client:
    """An HDFS client with the given listings, by the path of the directory. None means that the
    directory is in its parent's listing but is gone when it is read."""

    def __init__(self, tree: dict[str, list[_Status] | None]) -> None:
        self._tree = tree

    def list_status(self, path: str, recursive: bool = False) -> list[_Status]:
        assert not recursive  # a recursive listing fails at the first missing directory
        found = self._tree.get(path)
        if found is None:
            raise FileNotFoundError(path)
        return found


def _output(tree: dict[str, list[_Status] | None]) -> HdfsOutput:
    output: Any = object.__new__(HdfsOutput)
    output._server, output._root, output._client = "hdfs://nn:8020", "/out", _Client(tree)
    output._answers = Answers()
    return output  # type: ignore[no-any-return]


def test_a_directory_that_goes_away_meanwhile_hides_no_file_of_another() -> None:
    """If a directory is deleted during the listing, the listing still has all files of the other
    directories. A recount without these files would be wrong."""
    tree: dict[str, list[_Status] | None] = {
        "/out/logs": [
            _Status("/out/logs/dt=1", True), _Status("/out/logs/dt=2", True),
            _Status("/out/logs/dt=3", True),
        ],
        "/out/logs/dt=1": [_Status("/out/logs/dt=1/a.parquet", False, 5)],
        "/out/logs/dt=2": None,
        "/out/logs/dt=3": [_Status("hdfs://nn:8020/out/logs/dt=3/b.parquet", False, 7)],
    }  # fmt: skip
    found = {each.path: each.length for each in _output(tree).files("logs")}
    assert found == {"logs/dt=1/a.parquet": 5, "logs/dt=3/b.parquet": 7}
    assert list(_output({}).files("logs")) == []
    assert _output(tree).names("logs") == ["dt=1", "dt=2", "dt=3"]
