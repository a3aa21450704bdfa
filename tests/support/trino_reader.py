"""Reads the output of `every_type` with Trino: a server of its own, the Hive connector with a
metastore of files, and the table definition that docs/loader.md gives."""

from __future__ import annotations

import json
import os
import tarfile
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import types

from skidway.errors import SkidwayError
from skidway.java import probe
from support import peers
from support.every_type import EXPECTED
from support.processes import Program, eventually, free_port, running

JAVA_MIN: Final = 24
JAVAS: Final = Path("/usr/lib/jvm")
WITHIN_S: Final = 300
_CATALOG = """connector.name=hive
hive.metastore=file
hive.metastore.catalog.dir=local:///metastore
hive.timestamp-precision=MICROSECONDS
fs.native-local.enabled=true
local.location={files}
"""
_MICROS = "date_diff('millisecond', timestamp '1970-01-01 00:00:00', {}) * 1000"
_SIMPLE: Final = {
    pa.int64(): "bigint",
    pa.int32(): "integer",
    pa.float64(): "double",
    pa.bool_(): "boolean",
    pa.string(): "varchar",
    pa.binary(): "varbinary",
    pa.date32(): "date",
}


def read(rows: Path, scratch: Path) -> list[dict[str, Any]]:
    """Returns the rows of a topic's directory, in the form of `every_type.plain`. Raises
    SkidwayError if Trino or a Java for it is missing."""
    files = rows.parent
    schema = pq.read_schema(rows / "_common_metadata")
    columns = ", ".join(f'"{field.name}" {_type(field.type)}' for field in schema)
    kinds = {field.name: field.type for field in schema} | {"dt": pa.string(), "hour": pa.string()}
    table = f"create table hive.logs.logs ({columns}, dt varchar, hour varchar)"
    place = f"external_location = 'local:///{rows.name}', format = 'PARQUET'"
    names = [*EXPECTED[0]]
    wanted = ", ".join(_expression(kinds[name], f'"{name}"') for name in names)
    with _server(files, scratch) as url:
        _run(url, "create schema hive.logs")
        _run(url, f"{table} with ({place}, partitioned_by = array['dt', 'hour'])")
        _run(url, "call hive.system.sync_partition_metadata('logs', 'logs', 'ADD')")
        eventually(lambda: _has_workers(url), what="Trino has workers")
        found = _run(url, f"select {wanted} from hive.logs.logs order by 1")
    made = [
        {name: _value(kinds[name], value) for name, value in zip(names, row, strict=True)}
        for row in found
    ]
    return [row | {"hour": int(row["hour"])} for row in made]


@contextmanager
def _server(files: Path, scratch: Path) -> Iterator[str]:
    if not peers.is_complete("trino"):
        peers.fetch("trino", peers.provide_maven())
    with tarfile.open(next(peers.jars("trino").glob("*.tar.gz"))) as archive:
        archive.extractall(scratch, filter="data")
    home, port = next(scratch.glob("trino-server-*")), free_port()
    (files / "metastore").mkdir()
    settings = {
        "node.properties": f"node.environment=test\nnode.data-dir={scratch / 'data'}\n",
        "config.properties": f"coordinator=true\nnode-scheduler.include-coordinator=true\n"
        f"http-server.http.port={port}\ndiscovery.uri=http://127.0.0.1:{port}\n",
        "jvm.config": "-Xmx2G\n-Djdk.attach.allowAttachSelf=true\n-Duser.timezone=UTC\n",
        "catalog/hive.properties": _CATALOG.format(files=files),
    }
    (home / "etc" / "catalog").mkdir(parents=True)
    for name, text in settings.items():
        (home / "etc" / name).write_text(text)
    java = _java()
    environ = {"JAVA_HOME": str(java), "PATH": f"{java / 'bin'}:{os.environ['PATH']}"}
    program = Program([str(home / "bin" / "launcher"), "run"], scratch / "trino.out", env=environ)
    url = f"http://127.0.0.1:{port}"
    with running(program, lambda: _is_ready(url), WITHIN_S):
        yield url


def _java() -> Path:
    for release in sorted(JAVAS.glob("*/bin/java"), reverse=True):
        found = probe(release, release.parents[1])
        if found is not None and found.version >= JAVA_MIN:
            return release.parents[1]
    raise SkidwayError(f"Trino needs Java {JAVA_MIN} or later in {JAVAS}.")


def _is_ready(url: str) -> bool:
    try:
        return not _get(f"{url}/v1/info")["starting"]
    except OSError:
        return False


def _run(url: str, statement: str) -> list[list[Any]]:
    """Returns the rows of a statement."""
    found, error = _asked(url, statement)
    assert not error, (error, statement)
    return found


def _has_workers(url: str) -> bool:
    """Returns whether the server has announced itself as a worker, some seconds after its start."""
    return "No nodes available" not in _asked(url, "select count(*) from hive.logs.logs")[1]


def _asked(url: str, statement: str) -> tuple[list[list[Any]], str]:
    """Returns the rows of a statement, and why it failed."""
    document, found = _get(f"{url}/v1/statement", statement.encode()), list[list[Any]]()
    while True:
        found += document.get("data", [])
        if "nextUri" not in document:
            return found, document.get("error", {}).get("message", "")
        document = _get(document["nextUri"])


def _get(url: str, data: bytes | None = None) -> dict[str, Any]:
    asked = urllib.request.Request(url, data, {"X-Trino-User": "test"})
    with urllib.request.urlopen(asked, timeout=60) as answer:
        return dict(json.load(answer))


def _type(kind: pa.DataType) -> str:
    """Returns the type of a column in Trino."""
    if types.is_timestamp(kind):
        return "timestamp(6)"
    if types.is_decimal(kind):
        return f"decimal({kind.precision}, {kind.scale})"
    if types.is_list(kind):
        return f"array({_type(kind.value_type)})"
    if types.is_map(kind):
        return f"map({_type(kind.key_type)}, {_type(kind.item_type)})"
    if types.is_struct(kind):
        return "row({})".format(", ".join(f'"{x.name}" {_type(x.type)}' for x in kind))
    return _SIMPLE[kind]


def _expression(kind: pa.DataType, name: str) -> str:
    """Returns the expression for a value in the form of `every_type.plain`."""
    if types.is_timestamp(kind):
        return _MICROS.format(name)
    if types.is_date(kind):
        return f"date_diff('day', date '1970-01-01', {name})"
    if types.is_binary(kind):
        return f"to_hex({name})"
    if types.is_list(kind):
        return f"transform({name}, x -> {_expression(kind.value_type, 'x')})"
    if types.is_struct(kind):
        parts = ", ".join(_expression(x.type, f'{name}."{x.name}"') for x in kind)
        return f"if({name} is null, null, row({parts}))"
    return name


def _value(kind: pa.DataType, value: Any) -> Any:
    if types.is_struct(kind) and value is not None:
        return dict(zip((field.name for field in kind), value, strict=True))
    return value
