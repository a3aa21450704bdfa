"""Tests the fields of a record that come from its file's path."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from skidway.agent.parsing.added_fields import AddedFields, path_groups
from skidway.agent.parsing.runtimes import KUBERNETES
from skidway.errors import ConfigurationRefused
from skidway.schemas.codec import Codec
from support.agent_press import press, reading, recipe, records
from support.agent_world import pa_binary

NAMES = ("namespace", "pod", "container")
SCHEMA = pa.schema([(name, pa.string()) for name in NAMES])


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/var/log/pods/shop_web-1_3f0c/app/0.log", ("shop", "web-1", "app")),
        ("/var/log/pods/shop_web-1_3f0c/app/0.log.20251120-081501", ("shop", "web-1", "app")),
        (f"/var/log/containers/web-1_shop_app-x-{'0a' * 32}.log", ("shop", "web-1", "app-x")),
        ("/var/log/app.log", ("", "", "")),
    ],
)
def test_the_layouts_of_kubelet(path: str, expected: tuple[str, str, str]) -> None:
    """Kubelet has two layouts for the paths of log files. In both layouts, the agent finds
    namespace, pod and container. With any other path, these three fields are empty."""
    lines = pa.RecordBatch.from_pydict({"line": ["a", "b"]})
    found = AddedFields(KUBERNETES, (), SCHEMA).add(lines, ["/x.log", path], np.array([1, 1]))
    rows = found.select(NAMES).to_pylist()
    assert rows == 2 * [dict(zip(NAMES, expected, strict=True))]


def test_each_row_has_the_fields_of_its_own_file() -> None:
    """If the agent makes records from lines of several files together, each row has the fields of
    its own file."""
    made = recipe(path_pattern=r"/(?P<app>[^/]+)\.log$")
    readings = [
        replace(reading(b"x\ny\n", number), path=f"/logs/{name}.log")
        for number, name in enumerate(("one", "two"))
    ]
    values = pa_binary([each.value[5:] for each in records(press(made, *readings))])
    rows = Codec(made.schema.text).decode(values).batch.to_pylist()
    expected = [(line, app) for app in ("one", "two") for line in ("x", "y")]
    assert [(row["line"], row["app"]) for row in rows] == expected


def test_a_field_of_the_path_can_be_the_key() -> None:
    """The key of a record can be a field that comes from the file's path."""
    made = recipe(path_pattern=r"/(?P<app>[^/]+)\.log$", key="app")
    found = records(press(made, replace(reading(b"x\n"), path="/logs/one.log")))
    assert [each.key for each in found] == [b"one"]


@pytest.mark.parametrize("pattern", ["/var/log", "(?P<app>", "(?P<app>[^/]+)/(x)"])
def test_a_pattern_that_gives_no_fields_is_refused(pattern: str) -> None:
    """A path pattern is refused if it has no named groups, if it has unnamed groups, or if RE2
    refuses it."""
    with pytest.raises(ConfigurationRefused, match=r"path\.pattern"):
        path_groups((pattern,))


def test_a_schema_without_the_fields_is_refused() -> None:
    """If the path pattern has a group, and the schema has no string field of the group's name, the
    schema is refused."""
    with pytest.raises(ConfigurationRefused, match="'app'"):
        AddedFields((r"(?P<app>\w+)",), (), SCHEMA)
