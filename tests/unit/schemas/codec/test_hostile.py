"""The codec needs memory and time only in proportion to the number of bytes that it decodes, and of
characters in the schema. This holds even for hostile datums, for example datums that claim a huge
number of items, or that have items without bytes, deep nesting, or endless recursion; and for
hostile schemas."""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest
from prometheus_client import REGISTRY

from skidway.schemas.avro_schema import NESTING_MAX, SchemaInvalid, parse
from skidway.schemas.bounds import DEPTH_MAX
from skidway.schemas.codec import Codec, json_text
from skidway.schemas.codec.arrow import SchemaUnsupported
from skidway.schemas.codec.rows import Rows
from skidway.schemas.strict import DatumInvalid, check_datum

MEMORY_MAX = 64 << 20


def zigzag(number: int) -> bytes:
    rest, out = (number << 1) ^ (number >> 63), bytearray()
    rest &= (1 << 64) - 1
    while rest > 0x7F:
        out.append(rest & 0x7F | 0x80)
        rest >>= 7
    return bytes([*out, rest])


def schema_of(avro: Any) -> dict[str, Any]:
    return {"type": "record", "name": "R", "fields": [{"name": "a", "type": avro}]}


def array(items: Any) -> dict[str, Any]:
    return {"type": "array", "items": items}


def table(columns: int) -> dict[str, Any]:
    fields = [{"name": f"f{at}", "type": "long"} for at in range(columns)]
    return {"type": "record", "name": "T", "fields": fields}


def peak(job: Callable[[], object]) -> int:
    """Runs `job`. Returns the largest number of bytes by which the process's memory grew while
    `job` ran."""
    before, most, done = resident(), 0, threading.Event()

    def watch() -> None:
        nonlocal most
        while not done.wait(0.002):
            most = max(most, resident())

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        job()
    finally:
        done.set()
        watcher.join()
    return max(most, resident()) - before


def resident() -> int:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096


SEVERAL = ["long", "string"]
MAP = {"type": "map", "values": "long"}
EMPTY = {"type": "record", "name": "E", "fields": []}
HUGE = 2**60


@pytest.mark.parametrize("times", [1, 100])
@pytest.mark.parametrize(
    ("avro", "datum"),
    [
        (array("null"), zigzag(HUGE) + b"\0"),
        (array("null"), zigzag(-HUGE) + zigzag(0) + b"\0"),
        (array("null"), zigzag(-(2**63)) + zigzag(0) + b"\0"),
        (array(EMPTY), zigzag(HUGE) + b"\0"),
        (array({"type": "fixed", "name": "F", "size": 0}), zigzag(HUGE) + b"\0"),
        (array(array("null")), zigzag(2) + zigzag(HUGE) + b"\0" * 3),
        (array(array("null")), zigzag(1000) + (zigzag(1000) + b"\0") * 1000 + b"\0"),
        (array("null"), (zigzag(1000) * 5000) + b"\0"),
        (array("long"), zigzag(HUGE) + b"\0" * 50),
        (array("string"), zigzag(HUGE) + b"\0" * 50),
        (array("string"), zigzag(3) + zigzag(HUGE) + b"\0" * 50),
        ({"type": "map", "values": "null"}, zigzag(HUGE) + b"\0" * 50),
        ({"type": "map", "values": "long"}, zigzag(-HUGE) + zigzag(HUGE) + b"\0" * 50),
        ("bytes", zigzag(HUGE)),
        ("string", zigzag(HUGE) + b"x"),
        ("string", zigzag(-5) + b"x"),
        (array(["null", table(3000)]), zigzag(100_000) + b"\0" * 100_001),
        (
            array(["null", array(["null", table(3000)])]),
            zigzag(1) + zigzag(1) + zigzag(9000) + b"\0" * 9002,
        ),
        ({"type": "fixed", "name": "F", "size": 2**31 - 1}, b"x"),
    ],
)
def test_no_claim_takes_memory_or_time(avro: Any, datum: bytes, times: int) -> None:
    """A datum is refused in bounded memory if it claims a huge number of items or a huge size. It
    may claim, for example, 2^60 items in an array of strings, or in an array of nulls, which take
    no bytes. If the codec did a step for each of these items, the test would never end."""
    codec = Codec(schema_of(avro))
    datums = pa.array([datum] * times, pa.binary())
    found = []
    grown = peak(lambda: found.append(codec.decode(datums)))
    assert grown < MEMORY_MAX
    (decoded,) = found
    assert len(decoded.refused) == times
    assert not decoded.batch.num_rows


def test_items_without_bytes_are_read_up_to_a_limit() -> None:
    """An array of 1,024 items that take no bytes is read. An array of 1,025 such items is
    refused."""
    codec = Codec(schema_of(array("null")))
    for count, is_good in ((3, True), (1024, True), (1025, False)):
        decoded = codec.decode(pa.array([zigzag(count) + b"\0"] * 2))
        assert decoded.good.tolist() == [is_good] * 2
        assert all(len(row["a"]) == count for row in decoded.batch.to_pylist())
    assert decoded.refused[0][1] == "it has more than 1024 items that take no bytes"


def test_many_columns_of_nothing_are_read_while_they_are_few() -> None:
    """A null in place of a record of 500 fields takes one byte in the datum. Decoded, it takes a
    value in each of the record's 500 columns. So an array with a few such nulls is read, and an
    array of 1,000 such nulls is refused."""
    codec = Codec(schema_of(array(["null", table(500)])))
    row = {"a": [{f"f{at}": at for at in range(500)}, None]}
    datum = codec.encode(pa.RecordBatch.from_pylist([row], codec.arrow_schema))[0].as_py()
    decoded = codec.decode(pa.array([datum, zigzag(1000) + b"\0" * 1001]))
    assert decoded.batch.to_pylist() == [row]
    assert decoded.refused == [(1, "its items take more than 256 times its bytes in columns")]


def test_deep_schemas_are_refused_and_deep_enough_ones_work() -> None:
    """A schema of arrays that are nested nearly as deep as the limit allows can be used, and a
    deeper schema is refused. An invalid datum is refused, and does not exhaust the stack."""

    def nested(depth: int) -> dict[str, Any]:
        avro: Any = "long"
        for _ in range(depth):
            avro = array(avro)
        return schema_of(avro)

    codec = Codec(nested(NESTING_MAX - 4))
    good, bad = zigzag(1) * (NESTING_MAX - 4) + b"\x0e" + b"\0" * (NESTING_MAX - 4), b"\x02" * 500
    decoded = codec.decode(pa.array([good, bad]))
    assert decoded.good.tolist() == [True, False]
    assert codec.encode(decoded.batch).to_pylist() == [good]
    with pytest.raises(SchemaInvalid, match=f"nested more than {NESTING_MAX} levels deep"):
        Codec(nested(NESTING_MAX + 1))


def chain(depth: int) -> bytes:
    """Returns a datum of the schema CHAIN: a record, and in it `depth` further records, each nested
    in the one before."""
    return b"\x02" * depth + b"\0"


CHAIN = schema_of(["null", "R"])
TREE = schema_of(array(["null", "R"]))


def test_values_that_contain_themselves_are_read_up_to_a_depth() -> None:
    """A value of a recursive field is read if it has at most 256 levels of records. A deeper value
    is refused, and the reason names the depth. Neither the stack nor the memory is exhausted."""
    depths = [0, 1, DEPTH_MAX, DEPTH_MAX + 1, 1000, 1_000_000]
    decoded = Codec(CHAIN).decode(pa.array(map(chain, depths), pa.binary()))
    assert decoded.good.tolist() == [depth <= DEPTH_MAX for depth in depths]
    reasons = {reason for _, reason in decoded.refused}
    assert reasons == {"it is nested more than 256 levels deep"}
    texts = [row["a"] for row in decoded.batch.to_pylist()]
    assert texts[:2] == [None, '{"a":null}']
    assert texts[2] == '{"a":' * DEPTH_MAX + "null" + "}" * DEPTH_MAX


@pytest.mark.parametrize(
    ("avro", "datum", "reason"),
    [
        (TREE, zigzag(HUGE) + b"\0" * 50, "it ends too early"),
        (TREE, (zigzag(1) + b"\x02") * 50_000 + b"\0" * 50_001, "nested more than 256 levels"),
        (schema_of("R"), b"", "nested more than 256 levels"),
        (schema_of(["null", "R", array("null")]), b"\x04" + zigzag(1025) + b"\0", "more than 1024"),
    ],
)  # fmt: skip
def test_no_claim_of_a_value_that_contains_itself_takes_memory_or_time(
    avro: Any, datum: bytes, reason: str
) -> None:
    """A value of a recursive schema is refused in bounded memory if it claims a huge number of
    items, or if its nesting never ends."""
    codec, found = Codec(avro), []
    grown = peak(lambda: found.append(codec.decode(pa.array([datum] * 20, pa.binary()))))
    assert grown < MEMORY_MAX
    assert len(found[0].refused) == 20
    assert reason in found[0].refused[0][1]


def test_a_long_text_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """A value of a recursive field becomes a JSON text. If the text has more characters than the
    limit, the value is refused with this reason."""
    monkeypatch.setattr(json_text, "TEXT_MAX", len('{"a":null}'))
    decoded = Codec(CHAIN).decode(pa.array([chain(1), chain(2)], pa.binary()))
    assert decoded.refused == [(1, "its text has more than 10 characters")]


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"name": "x" * 300, "type": "null"}, "record R takes up to 256 times"),
        (
            {"name": "x", "type": {"type": "enum", "name": "E", "symbols": ["S" * 300]}},
            "enum E takes up to 256 times",
        ),
    ],
)
def test_names_do_not_make_a_large_text_of_a_small_datum(more: Any, words: str) -> None:
    """A value of a recursive schema becomes a JSON text, in which the names of fields and symbols
    are repeated. The schema is refused if long names could make the text much longer than the
    datum."""
    schema = schema_of(["null", "R"])
    schema["fields"].append(more)
    with pytest.raises(SchemaUnsupported, match=words):
        Codec(schema)


def circle(count: int) -> dict[str, Any]:
    """Returns a schema of records that all contain one another."""
    fields = [
        {"name": "x", "type": ["null", "R"]},
        {"name": "y", "type": ["null", "int", "N"]},
    ]
    types = [
        {"type": "record", "name": f"N{at}" if at else "N", "fields": fields} for at in range(count)
    ]
    return fields_of(*types)


def fields_of(*types: Any) -> dict[str, Any]:
    fields = [{"name": f"f{at}", "type": each} for at, each in enumerate(types)]
    return {"type": "record", "name": "R", "fields": fields}


def test_a_schema_of_records_that_contain_one_another_costs_little() -> None:
    """A codec for 2,000 records that all contain one another takes little memory and time, and so
    do the texts of their values. If each field had the whole schema once more, the test would never
    end."""
    found: list[Any] = []

    def job() -> None:
        codec = Codec(circle(2000))
        found.append(codec.decode(pa.array([b"\0\x04\0\0" + b"\0" * 3998, b"\0"], pa.binary())))

    assert peak(job) < 2 * MEMORY_MAX
    assert found[0].good.tolist() == [True, False]
    row = found[0].batch.to_pylist()[0]
    nothing = '{"x":null,"y":null}'
    assert row["f0"] == f'{{"x":null,"y":{{"member1":{nothing}}}}}'
    assert {row[f"f{at}"] for at in range(1, 2000)} == {nothing}


@pytest.mark.parametrize("inside", ["items", "values"])
def test_types_that_references_nest_too_deeply_are_refused(inside: str) -> None:
    """If records refer to one another, arrays and maps can be nested deeper than in the schema's
    text. Too deep a schema is refused, and does not exhaust the stack."""
    nested: Any = "null"
    types = []
    for number in range(10):
        for _ in range(50):
            nested = {"type": "array" if inside == "items" else "map", inside: nested}
        record = {"type": "record", "name": f"N{number}", "fields": fields_of(nested)["fields"]}
        types.append(record)
        nested = record["name"]
    for count in (2, 10):
        with pytest.raises(SchemaUnsupported, match=r"levels deep|more than 10000 columns"):
            Codec(fields_of(*types[:count]))


NESTED: Any = "int"
for _ in range(60):
    NESTED = {"type": "map", "values": NESTED}
LONG = "x" * 100_000


@pytest.mark.parametrize(
    "types",
    [
        [NESTED] * 150,
        [{"type": "enum", "name": "E", "symbols": [f"s{at}" for at in range(9000)]}, *["E"] * 5000],
        [{"type": "enum", "name": "E", "symbols": [LONG]}, *["E"] * 5000],
        [{"type": "record", "name": "N", "fields": [{"name": LONG, "type": "int"}]}, *["N"] * 5000],
    ],
)
def test_what_columns_repeat_is_bounded(types: list[Any]) -> None:
    """A schema is refused in bounded memory if its columns repeat much: symbols of an enum, names
    of fields, and the items inside nested maps."""
    text = json.dumps(fields_of(*types))

    def job() -> None:
        with pytest.raises(SchemaUnsupported, match="Record R has more than 10000 columns"):
            Codec(text)

    assert peak(job) < MEMORY_MAX


@pytest.mark.parametrize(
    "blocks",
    [
        zigzag(2) + b"\x02\x04" + zigzag(1) + b"\x06" + b"\0",
        zigzag(-2) + zigzag(2) + b"\x02\x04" + zigzag(-1) + zigzag(1) + b"\x06" + b"\0",
    ],
)
def test_arrays_in_several_blocks_go_through_columns(blocks: bytes) -> None:
    """Datums with arrays in several blocks are decoded by columns, and not one datum at a time.
    Go's library hamba/avro writes such arrays, in blocks of a hundred items, each with its size."""
    codec = Codec(schema_of(array("long")))
    before = counted("decode", "columns")
    decoded = codec.decode(pa.array([blocks] * 50))
    assert decoded.batch.to_pylist() == [{"a": [1, 2, 3]}] * 50
    assert counted("decode", "columns") - before == 50


def test_the_path_is_chosen_once_and_counted() -> None:
    """The codec has several paths, that is, ways to decode and encode. For each path, metrics count
    the codecs that encode with it, and the datums that it has processed."""
    for avro, path in (("long", "pyruhvro"), (array("long"), "columns")):
        made = REGISTRY.get_sample_value("skidway_schemas_codecs_total", {"path": path}) or 0
        codec = Codec(schema_of(avro))
        assert codec.path == path
        assert REGISTRY.get_sample_value("skidway_schemas_codecs_total", {"path": path}) == made + 1
        took = {"encode": path, "decode": "columns"}
        before = {each: counted(each, took[each]) for each in took}
        batch = pa.RecordBatch.from_pylist(
            [{"a": 1 if avro == "long" else [1]}] * 3, codec.arrow_schema
        )
        codec.decode(codec.encode(batch))
        assert {each: counted(each, took[each]) - before[each] for each in before} == {
            "encode": 3,
            "decode": 3,
        }


def counted(direction: str, path: str) -> float:
    labels = {"direction": direction, "path": path}
    return REGISTRY.get_sample_value("skidway_schemas_datums_total", labels) or 0


def test_many_small_items_take_bounded_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """Datums with very many small items are decoded in parts, so that memory stays bounded."""
    codec = Codec(schema_of(array(array("long"))))
    datum = zigzag(20_000) + b"\0" * 20_001
    datums = pa.array([datum] * 40, pa.binary())
    for name in ("ITEMS_BYTES_MAX", "ROWS_BYTES_MAX"):
        module = "codec" if name == "ITEMS_BYTES_MAX" else "rows"
        monkeypatch.setattr(f"skidway.schemas.codec.{module}.{name}", 100_000)
    at_once: list[int] = []
    for where, name in ((codec, "_decode"), (codec._rows, "_part")):
        watch(monkeypatch, where, name, at_once)
    decoded = codec.decode(datums)
    assert len(at_once) > 10
    assert max(at_once) <= 5
    assert decoded.batch.num_rows == 40
    assert decoded.batch.column(0)[39].as_py() == [[]] * 20_000


def test_parts_of_a_batch_are_put_together_in_order() -> None:
    """If datums are decoded in parts, the rows and refusals keep their order and indices, even if
    one datum is larger than a part."""
    codec = Codec(schema_of(array("string")))
    long = zigzag(1) + zigzag(5 << 20) + b"x" * (5 << 20) + b"\0"
    some = zigzag(1) + zigzag(1 << 20) + b"y" * (1 << 20) + b"\0"
    datums = pa.array([b"\0", some, b"\x05", long, b"\x05", *[some] * 6, None, b""], pa.binary())
    decoded = codec.decode(datums)
    assert [index for index, _ in decoded.refused] == [2, 4, 11, 12]
    assert decoded.good.tolist() == [at not in (2, 4, 11, 12) for at in range(13)]
    lengths = [sum(map(len, row)) for row in decoded.batch.column(0).to_pylist()]
    assert lengths == [0, 1 << 20, 5 << 20, *[1 << 20] * 6]


def watch(monkeypatch: pytest.MonkeyPatch, where: Any, name: str, sizes: list[int]) -> None:
    """Replaces the function `name` of `where`. The new function notes in `sizes` how many datums it
    is given, and then calls the old function."""
    inner = getattr(where, name)

    def noting(datums: Any, *more: Any) -> Any:
        sizes.append(len(datums))
        return inner(datums, *more)

    monkeypatch.setattr(where, name, noting)


@pytest.mark.parametrize(
    ("items", "count", "inside", "value"),
    [
        (array("long"), 5, b"\0\0" + b"\x02\x04\0" + b"\0\0", [[], [], [2], [], []]),
        (array("long"), 5, b"\0" * 5, [[]] * 5),
        (array("long"), 5, b"\0" * 4, None),
        (array("long"), 5, b"\0" * 6, None),
        (array(array("long")), 3, b"\0" + b"\x04\0\0\0" + b"\0", [[], [[], []], []]),
        (MAP, 3, b"\0" + b"\x02\x02k\x04\0" + b"\0", [[], [("k", 2)], []]),
        (MAP, 3, b"\0\0", None),
    ],
)
def test_a_row_of_empty_items_is_passed_at_once_and_no_further(
    items: Any, count: int, inside: bytes, value: Any
) -> None:
    """The items of an array may be arrays or maps, some of them empty (an empty one takes one
    byte). A datum is decoded if it has exactly the bytes of its items, and is refused if it has
    too few or too many bytes."""
    record = parse(json.dumps(schema_of(array(items))))
    datum = zigzag(count) + inside + b"\0"
    with contextlib.nullcontext() if value else pytest.raises(DatumInvalid):
        check_datum(record, datum)
    for times in (1, 100):  # one datum is decoded alone, many are decoded by columns
        decoded = Codec(schema_of(array(items))).decode(pa.array([datum] * times))
        assert decoded.batch.to_pylist() == [{"a": value}] * (times if value else 0)


@pytest.mark.parametrize(
    ("inside", "zeros", "value"),
    [("long", 1, 0), (MAP, 1, []), (SEVERAL, 2, {"member0": 0, "member1": None})],
)
def test_a_map_is_a_map_by_either_way(inside: Any, zeros: int, value: Any) -> None:
    """The values of an array of maps are the same whether its datums are decoded by columns or one
    at a time. In both cases a datum with one byte too many is refused."""
    codec = Codec(schema_of(array({"type": "map", "values": inside})))
    datum = zigzag(2) + b"\0" + zigzag(1) + zigzag(1) + b"k" + b"\0" * zeros + b"\0" * 2
    datums = [datum] * 100 + [datum + b"\0"]
    before = counted("decode", "columns")
    decoded = codec.decode(pa.array(datums, pa.binary()))
    assert counted("decode", "columns") - before == 100
    assert decoded.batch.to_pylist() == [{"a": [[], [("k", value)]]}] * 100
    assert decoded.refused == [(100, "1 bytes too many")]
    columns, faults = Rows(codec._record, codec.arrow_schema).decode(datums)
    assert (columns, faults) == (decoded.batch.columns, dict(decoded.refused))


NO_SYMBOLS = {"type": "enum", "name": "E", "symbols": []}


@pytest.mark.parametrize(
    ("avro", "good", "bad"),
    [
        (["null", NO_SYMBOLS], b"\0", b"\x02\0"),
        (["string", NO_SYMBOLS], b"\0\0", b"\x02\0"),
        (array(NO_SYMBOLS), b"\0", b"\x02\0\0"),
        ({"type": "map", "values": NO_SYMBOLS}, b"\0", b"\x02\x02k\0\0"),
        (array([]), b"\0", b"\x02\0\0"),
        (["null", {"type": "record", "name": "I", "fields": [{"name": "i", "type": []}]}],
         b"\0", b"\x02\0"),
    ],
)  # fmt: skip
def test_a_type_without_values_refuses_only_its_own_datums(
    avro: Any, good: bytes, bad: bytes
) -> None:
    """An enum without symbols and a union without branches have no values, but Avro allows them. A
    datum that claims such a value is refused, and the datums beside it are decoded."""
    for times in (1, 100):  # one datum is decoded alone, many are decoded by columns
        decoded = Codec(schema_of(avro)).decode(pa.array([bad, good] * times, pa.binary()))
        assert decoded.good.tolist() == [False, True] * times
