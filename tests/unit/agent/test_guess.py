"""Tests `skidway agent guess` with logs like those of real programs. Most tests put the proposal
into a configuration, and `skidway agent test` tries the configuration on the same file."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skidway.agent.commands.guess_report import render
from skidway.agent.commands.guessing import guess
from skidway.agent.commands.proposals import Guess
from skidway.agent.unknown_logs import written_times
from skidway.agent.validation.preview import preview
from skidway.cli import main
from skidway.errors import UsageError
from skidway.loader.datasource.columns import QUERY_RESERVED
from support.randomness import share_of

AT = "2026-11-23T08:15"
CONFIG = """
bootstrap.servers: 127.0.0.1:9
schema.registry.url: http://127.0.0.1:9
state.dir: /nowhere
"""


def tried(
    folder: Path, content: str | bytes, encoding: str | None = None, lines_max: int = 1_000
) -> tuple[Guess, list[dict[str, Any]]]:
    """Guesses the format of a file. Returns the proposal, and what `agent test` makes from the file
    with the proposal: rows, rejected records and records that are left out."""
    log = folder / "shop.log"
    log.write_bytes(content if isinstance(content, bytes) else content.encode())
    found = guess(log, lines_max, encoding)
    (folder / "shop.avsc").write_text(found.schema or "")
    config = folder / "agent.yml"
    config.write_text(CONFIG + found.yaml)
    command = ["agent", "test", str(log), "--config", str(config)]
    with pytest.MonkeyPatch.context() as patch:
        made: list[str] = []
        patch.setattr("builtins.print", lambda text="", **_: made.append(text))
        assert main([*command, "--json"]) == 0
    return found, [json.loads(line) for line in made[0].splitlines()]


@pytest.mark.parametrize("command", ["guess", "test"])
@pytest.mark.parametrize("kind", ["fifo", "device"])
def test_only_files_are_tried(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], command: str, kind: str
) -> None:
    """`guess` and `test` refuse at once what is no regular file: nobody may ever write to it."""
    path, config = tmp_path / "shop.log", tmp_path / "agent.yml"
    config.write_text(f"{CONFIG}sources:\n  - topic: shop\n    paths: [{path}]\n")
    if kind == "fifo":
        os.mkfifo(path)
    else:
        path.symlink_to("/dev/zero")
    options = ["--config", str(config)] if command == "test" else []
    assert main(["agent", command, str(path), *options]) == 1
    assert f"cannot read {path}: it is no regular file" in capsys.readouterr().err


def rejects(results: list[dict[str, Any]]) -> list[str]:
    return [each["detail"] for each in results if "rejected" in each]


def rows(results: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [each["row"] for each in results if "row" in each]


TRACEBACK = """Traceback (most recent call last):
  File "/srv/shop/cart.py", line 9, in checkout
    total = cart["total"]
            ~~~~^^^^^^^^^
KeyError: 'total'

During handling of the above exception, another exception occurred:

Traceback (most recent call last):
  File "/srv/shop/cart.py", line 12, in checkout
shop.errors.CartClosed: cart 4711
"""


# --- stack traces -------------------------------------------------------------------------------


def test_python_tracebacks_are_joined_to_their_line(tmp_path: Path) -> None:
    """For text with Python tracebacks, `guess` proposes `multiline: python`."""
    found, results = tried(tmp_path, f"shop starts\ncheckout failed\n{TRACEBACK}shop goes on\n")
    assert found.block["multiline"] == {"type": "python"}
    lines = [row["line"] for row in rows(results)]
    assert lines == ["shop starts", f"checkout failed\n{TRACEBACK.rstrip()}", "shop goes on"]


def test_python_tracebacks_behind_a_time(tmp_path: Path) -> None:
    """If the records begin with a time and a level, both become fields, a record begins at each
    line with a time, and a traceback belongs to the field of the message."""
    text = f"2026-11-23 08:15:01,123 ERROR checkout failed\n{TRACEBACK}"
    found, results = tried(tmp_path, f"2026-11-23 08:15:00,001 INFO up\n{text}" + text)
    assert found.block["multiline"]["type"] == "start"
    assert rejects(results) == []
    assert [row["level"] for row in rows(results)] == ["INFO", "ERROR", "ERROR"]
    assert rows(results)[1]["message"] == f"checkout failed\n{TRACEBACK.rstrip()}"
    assert results[1]["time"] == "2026-11-23T08:15:01.123000+00:00"


def test_records_whose_times_cannot_be_read_begin_at_their_times(tmp_path: Path) -> None:
    """If lines begin with times that no format reads, a record begins at each of these lines."""
    text = "".join(f"2026-11-23 08:15:0{n} +5 up\nsecond line\n" for n in range(5))
    found, results = tried(tmp_path, f"{text}2026-11-23 08:15:09 +5 failed\n{TRACEBACK}")
    assert found.what == "text"
    assert found.block["multiline"]["type"] == "start"
    assert [row["line"].split()[3] for row in rows(results)] == [*["up"] * 5, "failed"]


def test_tracebacks_behind_times_that_are_not_read(tmp_path: Path) -> None:
    """A record begins at each line with a time, also if `guess` cannot say how to read the
    times."""
    text = f"07/11/2026 08:15:00 up\n07/11/2026 08:15:01 failed\n{TRACEBACK}"
    found, results = tried(tmp_path, text * 3)
    assert "timestamp" not in found.block
    assert found.block["multiline"]["type"] == "start"
    assert [row["line"] for row in rows(results)] == text.rstrip().split("\n", 1) * 3


def test_an_exception_with_an_odd_name_is_joined_by_the_time(tmp_path: Path) -> None:
    """If the last line of a traceback does not look like the end of a traceback, `guess` proposes
    that a record begins at each line with a time."""
    odd = 'Traceback (most recent call last):\n  File "a.py", line 1\nCartClosed 4711\n'
    found, results = tried(tmp_path, f"23.11.2026 08:15:01 failed\n{odd}" * 3)
    assert found.block["multiline"]["type"] == "start"
    assert rejects(results) == []
    assert len(rows(results)) == 3


@pytest.mark.parametrize(
    ("line", "language"),
    [
        ("\tat com.shop.Cart.checkout(Cart.java:88)", "java"),
        ("   at Shop.Cart.Checkout() in C:\\shop\\Cart.cs:line 88", "dotnet"),
        ("goroutine 1 [running]:", "go"),
        ("\tfrom cart.rb:9:in `checkout'", "ruby"),
        ("  more", "indented"),
    ],
)
def test_other_stack_traces(line: str, language: str, tmp_path: Path) -> None:
    """`guess` also recognizes the stack traces of other languages than Python, and lines that are
    continued by indented lines."""
    found, _ = tried(tmp_path, f"failed\n{line}\n" * 3)
    assert found.block["multiline"] == {"type": language}


# --- values with a delimiter --------------------------------------------------------------------


def test_csv_with_semicolons_local_dates_and_decimal_commas(tmp_path: Path) -> None:
    """If values are separated by `;`, commas are decimal commas and not delimiters. `guess`
    recognizes the header and a column of local dates."""
    lines = ["Größe;Zeit;Preis, netto;Rabatt;Bemerkung;"]
    lines += [f"{n},5;{n}.11.2026 08:15;{n},25;1,5;ok, gut;" for n in range(10, 20)]
    found, results = tried(tmp_path, "\n".join(lines) + "\n")
    parser = found.block["parser"]
    assert parser["columns"] == [
        "Groesse",
        "Zeit",
        "Preis_netto",
        "Rabatt",
        "Bemerkung",
        "column_6",
    ]
    assert (parser["delimiter"], parser["header"]) == (";", lines[0])
    assert found.block["timestamp"] == {"fields": ["Zeit"], "format": "%d.%m.%Y %H:%M"}
    assert (rejects(results), results[0]["filtered"]) == ([], "csv header")
    assert results[1]["time"] == "2026-11-10T08:15:00+00:00"
    assert any("timezone" in note for note in found.notes)


def test_date_and_time_in_two_columns(tmp_path: Path) -> None:
    """A column of dates and a column of times of day together give the event time."""
    lines = ["Datum;Uhrzeit;Kasse;Summe"] + [f"{n}.11.2026;8:15:0{n % 10};7;1,5" for n in (9, 21)]
    found, results = tried(tmp_path, "\r\n".join(lines) + "\r\n")
    assert found.block["timestamp"] == {
        "fields": ["Datum", "Uhrzeit"], "format": "%d.%m.%Y %H:%M:%S",
    }  # fmt: skip
    assert [each["time"] for each in results[1:]] == [
        "2026-11-09T08:15:09+00:00",
        "2026-11-21T08:15:01+00:00",
    ]


def test_times_that_some_lines_lack_do_not_reject_them(tmp_path: Path) -> None:
    """If some lines have a time that cannot be parsed, the proposed settings do not reject these
    lines. Their records get the time at which the agent reads the lines."""
    lines = [f"time=2026-11-23T08:15:0{n}Z level=info msg=x user=u" for n in range(8)]
    found, results = tried(tmp_path, "\n".join([*lines, "time=never level=info msg=x user=v\n"]))
    assert found.block["timestamp"]["on_error"] == "read_time"
    assert rejects(results) == []


# --- encodings ----------------------------------------------------------------------------------

GERMAN = "".join(
    f"{n}.11.2026 08:15:0{n % 10} Müller hat den Auftrag {n} für „Größe“ geprüft\n"
    for n in range(10, 25)
)


def test_windows_text_with_local_dates(tmp_path: Path) -> None:
    """For western text that is not UTF-8, `guess` proposes `encoding: windows-1252` and says so. It
    also recognizes local dates, such as 10.11.2026."""
    found, results = tried(tmp_path, GERMAN.encode("windows-1252"))
    assert found.block["encoding"] == "windows-1252"
    assert "they look like windows-1252" in render(found)
    assert rejects(results) == []
    assert rows(results)[0]["message"] == "Müller hat den Auftrag 10 für „Größe“ geprüft"
    assert results[0]["time"] == "2026-11-10T08:15:00+00:00"


@pytest.mark.parametrize("encoding", ["koi8-r", "shift-jis", "utf-16le", "gb18030", "windows-1252"])
def test_a_named_encoding_is_used(encoding: str, tmp_path: Path) -> None:
    """With `--encoding`, `guess` reads the file in the given encoding, and the settings that it
    proposes name this encoding."""
    texts = {"koi8-r": "заказ", "shift-jis": "注文", "gb18030": "订单"}
    word = texts.get(encoding, "für")
    content = "".join(f"2026-11-23T08:15:0{n}Z {word} {n}\n" for n in range(5))
    found, results = tried(tmp_path, content.encode(encoding), encoding)
    assert found.block["encoding"] == encoding
    assert [row["message"] for row in rows(results)] == [f"{word} {n}" for n in range(5)]


def test_utf_16_is_recognized_by_its_mark(tmp_path: Path) -> None:
    """A file with the byte order mark of UTF-16 is read, whatever its byte order."""
    for order in ("utf-16-le", "utf-16-be"):
        content = ("\ufeff" + "".join(f'{{"n": {n}, "user": "ü"}}\r\n' for n in range(9))).encode(
            order
        )
        found, results = tried(tmp_path, content)
        assert found.block["encoding"] == "utf-16"
        assert [row["n"] for row in rows(results)] == list(range(9))


@pytest.mark.parametrize(
    "content",
    [
        "привет мир\n".encode("koi8-r") * 5,
        "注文\n".encode("shift-jis") * 5,
        b"x\x01\xff\x16\x03 x\n" * 5,
        b"caf\xc3\xa9\n" * 5 + b"caf\xe9\n",
    ],
)
def test_what_may_be_any_encoding_is_repaired(content: bytes, tmp_path: Path) -> None:
    """If it is not clear which encoding the bytes have, `guess` proposes no encoding, but settings
    with which no line is rejected. It recommends the option `--encoding`."""
    found, results = tried(tmp_path, content)
    assert "encoding" not in found.block
    assert found.block["on_error"] == "replace"
    assert "--encoding" in render(found)
    assert rejects(results) == []


def test_an_unknown_encoding_is_refused(tmp_path: Path) -> None:
    """An unknown encoding is refused, and the error names all known encodings."""
    log = tmp_path / "a.log"
    log.write_text("x\n")
    with pytest.raises(UsageError, match="'utf-7' is none of utf-8, utf-16"):
        guess(log, 10, "utf-7")
    assert main(["agent", "guess", str(log), "--encoding", "utf-7"]) == UsageError.exit_code


# --- JSON lines ---------------------------------------------------------------------------------


def as_lines(*objects: object) -> str:
    return "".join(json.dumps(each, ensure_ascii=False) + "\n" for each in objects)


def test_members_that_are_missing_or_null(tmp_path: Path) -> None:
    """For members that are missing or null in some lines, `guess` proposes fields that may be null,
    with the default null. If some lines lack a member, it also proposes the field `_extra`, because
    later lines, which `guess` does not try, may have further members."""
    lines = [{"ts": "2026-11-23T08:15:01Z", "user": "ann", "ms": n} for n in range(20)]
    late = {"ts": "2026-11-23T08:15:02Z", "user": None, "trace": {"id": 7}}
    found, results = tried(tmp_path, as_lines(*lines, late), lines_max=10)
    assert found.schema is not None
    fields = {each["name"]: each for each in json.loads(found.schema)["fields"]}
    for name in ("user", "ms", "trace"):
        assert fields[name]["type"][0] == "null"
        assert fields[name]["default"] is None
    assert fields["_extra"]["default"] == {}
    assert rejects(results) == []
    assert rows(results)[-1]["trace"] == {"id": 7}


def test_members_with_several_types(tmp_path: Path) -> None:
    """If the values of a member have several types, the member's field has the type of most values,
    and `_extra` takes the other values."""
    lines = [{"n": n, "deep": {"a": n}} for n in range(9)]
    lines += [{"n": "soon", "deep": {"a": "x"}}, {"n": [1], "deep": 7}]
    found, results = tried(tmp_path, as_lines(*lines))
    assert found.preview.share == 1.0
    assert any("n, deep, deep.a have several types" in note for note in found.notes)
    assert rejects(results) == []
    last = rows(results)[-2]
    assert last["n"] is None
    assert dict(last["_extra"]) == {"n": "soon", "deep": '{"a": "x"}'}
    assert rows(results)[0]["n"] == 0


def test_a_member_that_is_mostly_an_object(tmp_path: Path) -> None:
    """If most values of a member are objects, its field is a record. If most are arrays, its field
    is an array. `_extra` takes the other values."""
    lines: list[dict[str, Any]] = [{"order": {"id": n}, "tags": ["a"]} for n in range(9)]
    lines.append({"order": "none", "tags": 7})
    _, results = tried(tmp_path, as_lines(*lines))
    assert rejects(results) == []
    first, *_, last = rows(results)
    assert first["order"] == {"id": 0}
    assert first["tags"] == ["a"]
    assert (last["order"], last["tags"]) == (None, None)
    assert dict(last["_extra"]) == {"order": "none", "tags": "7"}


def test_an_odd_value_inside_an_object_or_array(tmp_path: Path) -> None:
    """If one line has a value of another type inside an object or array, only this line's object or
    array goes to `_extra`. The proposal names the place."""
    lines: list[dict[str, Any]] = [
        {"http": {"status": n, "m": "GET"}, "tags": ["a"], "items": [{"n": n, "d": {"x": n}}]}
        for n in range(9)
    ]
    odd = {"http": {"status": "OK", "m": "GET"}, "tags": ["a", 1], "items": [{"n": 1, "d": 7}]}
    found, results = tried(tmp_path, as_lines(*lines, odd))
    assert any("http.status, tags[], items[].d have" in note for note in found.notes)
    assert rejects(results) == []
    first, *_, last = rows(results)
    assert {name: first[name] for name in lines[0]} == lines[0]
    assert [last[name] for name in odd] == [None, None, None]
    assert {name: json.loads(text) for name, text in dict(last["_extra"]).items()} == odd


@pytest.mark.parametrize("path", ["time", "@timestamp", "meta.ts"])
def test_a_later_line_without_the_time(tmp_path: Path, path: str) -> None:
    """If a later line has no member for the time, or null, its record gets the time of reading."""

    def line(value: object) -> dict[str, Any]:
        *above, last = path.split(".")
        return {"n": 1} | ({above[0]: {last: value}} if above else {last: value})

    found, _ = tried(tmp_path, as_lines(*(line(f"{AT}:0{n}Z") for n in range(5))))
    later = as_lines({"n": 2}, line(None), line(f"{AT}:09Z"))
    made = preview(found.source, later.encode(), "/a", schema=found.schema)
    assert [each.time for each in made.rows[:2]] == [None, None]
    assert made.rows[2].time is not None
    assert made.rejects == []


@pytest.mark.parametrize("kind", ["cri", "docker"])
def test_the_stream_and_the_time_of_json_in_containers(tmp_path: Path, kind: str) -> None:
    """For JSON lines in a container's log, the proposed schema has the runtime's stream and
    time."""
    inner = [json.dumps({"n": n}) for n in range(5)]
    if kind == "cri":
        lines = [f"{AT}:01.5Z stderr F {each}" for each in inner]
    else:
        lines = [
            json.dumps({"log": f"{each}\n", "stream": "stderr", "time": f"{AT}:01.5Z"})
            for each in inner
        ]
    _, results = tried(tmp_path, "".join(f"{each}\n" for each in lines).encode())
    assert rejects(results) == []
    assert {each["container_stream"] for each in rows(results)} == {"stderr"}
    assert {each["container_time"] for each in rows(results)} == {f"{AT}:01.500000Z"}


def test_a_time_called_at_timestamp(tmp_path: Path) -> None:
    """The member `@timestamp`, in which Logstash and ECS (Elastic Common Schema) write the time,
    becomes the event time. If a member has the name of a column that the loader adds, its field
    gets another name."""
    at = [f"2026-11-23T08:15:{n:02d}.000Z" for n in range(5)]
    found, results = tried(
        tmp_path, as_lines(*({"@timestamp": each, "_file": "x", "hour": 8} for each in at))
    )
    assert found.block["timestamp"] == {"fields": ["timestamp"], "format": "rfc3339"}
    assert rejects(results) == []
    names = set(rows(results)[0])
    assert names == {"timestamp", "file", "hour_2", "_extra"}
    assert not names & QUERY_RESERVED


def test_extra_is_there_although_all_lines_are_alike(tmp_path: Path) -> None:
    """The schema has `_extra` also if all lines have the same members, because a program may write
    a new member tomorrow."""
    found, _ = tried(tmp_path, as_lines(*({"a": n, "b": "x"} for n in range(5))))
    assert found.schema is not None
    assert [each["name"] for each in json.loads(found.schema)["fields"]] == ["a", "b", "_extra"]


def test_a_member_with_the_name_of_extra(tmp_path: Path) -> None:
    """A member with the name `_extra` goes into the map `_extra`."""
    _, results = tried(tmp_path, as_lines(*({"a": n, "_extra": "x"} for n in range(5))))
    assert rejects(results) == []
    assert dict(rows(results)[0]["_extra"]) == {"_extra": "x"}


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats(allow_nan=False,
    allow_infinity=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(st.sampled_from(["a", "b", "user-id", "_extra", "é"]), inner, max_size=3),
    max_leaves=6,
)  # fmt: skip
OBJECTS = st.dictionaries(
    st.sampled_from(["a", "b", "time", "x y", "_extra", "_file", "@timestamp"]), VALUES, max_size=4
)


@settings(max_examples=share_of(40))
@given(st.lists(OBJECTS, min_size=1, max_size=8))
def test_no_line_of_json_is_rejected(
    tmp_path_factory: pytest.TempPathFactory, objects: list[dict[str, Any]]
) -> None:
    """Whatever JSON objects a log has, `agent test` with the settings that `guess` proposes makes a
    row from each object."""
    _, results = tried(tmp_path_factory.mktemp("guess"), as_lines(*objects))
    assert rejects(results) == []
    assert len(rows(results)) == len(objects)


# --- containers ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("place", "paths"),
    [
        ("pods/prod_web-1_3f0c/api/0.log", "pods/prod_*/api/*.log"),
        (f"containers/web-1_prod_api-{'a1' * 32}.log", "containers/*_prod_api-*.log"),
    ],
)
def test_paths_of_a_container_match_all_its_pods(place: str, paths: str, tmp_path: Path) -> None:
    """For a log of a container, `guess` proposes the container's name as the topic, and paths that
    match the logs of the container in all pods of its namespace."""
    log = tmp_path / place
    log.parent.mkdir(parents=True)
    log.write_text("2026-11-23T08:15:01.000000001Z stdout F hello\n" * 3)
    found = guess(log, 10)
    assert found.block["topic"] == "api"
    assert found.block["paths"] == [f"{tmp_path}/{paths}"]
    assert fnmatch(str(log), found.block["paths"][0])
    assert any("begin with api-" in note for note in found.notes) == place.startswith("containers")


# --- times --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("texts", "format_"),
    [
        (["2026-11-23T08:15:01.5Z"], "rfc3339"),
        (["23.11.2026 08:15:01"], "%d.%m.%Y %H:%M:%S"),
        (["3.11.26 8:15"], "%d.%m.%y %H:%M"),
        (["2026/11/23 08:15:01.123"], "%Y/%m/%d %H:%M:%S.%f"),
        (["11/23/2026 08:15:01", "11/24/2026 08:15:01"], "%m/%d/%Y %H:%M:%S"),
        (["23/11/2026 08:15:01"], "%d/%m/%Y %H:%M:%S"),
        (["03/04/2026 08:15:01", "04/04/2026 08:15:01"], "%d/%m/%Y %H:%M:%S"),
        (["04/03/2026 08:15:01", "04/04/2026 08:15:01"], "%m/%d/%Y %H:%M:%S"),
        (["21-Nov-2026 08:15:01.123"], "%d-%b-%Y %H:%M:%S.%f"),
        (["21/Nov/2026:08:15:01 +0100"], "%d/%b/%Y:%H:%M:%S %z"),
        (["2026-11-23 08:15:01,123 +0100"], "%Y-%m-%d %H:%M:%S,%f %z"),
        (["Nov 23 2026 08:15:01", "Nov  3 2026 08:15:01"], "%b %d %Y %H:%M:%S"),
        (["Nov 23, 2026 08:15:01"], "%b %d, %Y %H:%M:%S"),
        (["23/Nov/2026 08:15:01"], "%d/%b/%Y %H:%M:%S"),
        (["08:15:01,123 23.11.2026"], "%H:%M:%S,%f %d.%m.%Y"),
        (["soon"], None),
        (["99.99.2026 08:15:01"], None),
    ],
)
def test_how_times_are_written(texts: list[str], format_: str | None) -> None:
    """The format of times is recognized. If day and month could be exchanged, `guess` chooses the
    format by which the times are closer together."""
    assert written_times.format_of(texts) == format_


@pytest.mark.parametrize(
    "content",
    [
        "2026-11-23 08:15:01,123 INFO up\n" * 3,
        "2026-11-23 08:15:01,123 - shop - INFO - up\n" * 3,
        "2026-11-23T08:15:01;1;a\n" * 3,
        '{"time": "2026-11-23 08:15:01", "n": 1}\n' * 3,
        "[INFO] 2026/11/23 08:15:01 up\n" * 3,
    ],
)
def test_times_without_a_zone_are_named(content: str, tmp_path: Path) -> None:
    """If the times of a log have no zone, `guess` says so."""
    found, _ = tried(tmp_path, content)
    assert "timestamp" in found.block or "format" in found.block
    assert any("name no zone" in note for note in found.notes)


@pytest.mark.parametrize("time", ["2026-11-23 08:15:01.5 +0100", "2026-11-23T08:15:01.5+01:00"])
def test_times_with_a_zone(time: str, tmp_path: Path) -> None:
    """A zone after the time belongs to the time, even if a blank is before the zone. `guess` then
    does not say that a zone is missing."""
    found, results = tried(tmp_path, f"{time} INFO up\n" * 3)
    assert not any("name no zone" in note for note in found.notes)
    assert results[0]["time"] == "2026-11-23T07:15:01.500000+00:00"


def test_a_time_behind_other_text(tmp_path: Path) -> None:
    """If the records have a time after a short text, this time is the event time, and lines without
    a time belong to the record before them."""
    up = "[INFO ] 2026/11/23 08:15:00.001 +0100 | main | up"
    failed = f"[ERROR] 2026/11/23 08:15:01.123 +0100 | main | checkout failed\n{TRACEBACK}"
    found, results = tried(tmp_path, f"{up}\n{failed}{up}\n")
    assert found.what == "text around a time"
    assert rejects(results) == []
    made = rows(results)
    assert [row["before"] for row in made] == ["[INFO ] ", "[ERROR] ", "[INFO ] "]
    assert made[1]["message"] == f"main | checkout failed\n{TRACEBACK.rstrip()}"
    assert results[1]["time"] == "2026-11-23T07:15:01.123000+00:00"


def test_times_in_some_messages_are_no_event_times(tmp_path: Path) -> None:
    """If only some lines of a text contain a time, `guess` proposes plain text."""
    text = "job due at 2026/11/23 08:15:01\n" + "job done\n" * 2
    assert tried(tmp_path, text * 5)[0].what == "text"


# --- secrets ------------------------------------------------------------------------------------


def test_texts_that_look_like_secrets_are_named(tmp_path: Path) -> None:
    """If rows contain texts that look like secrets, `guess` names the rules that mask them, and
    shows a masked text of each rule. The rules work in the proposed source."""
    text = "2026-11-23T08:15:01Z INFO card 4111 1111 1111 1111 of ann@example.org, password=x\n"
    found, _ = tried(tmp_path, text * 3)
    rule = "mask message for cards, keys, emails"
    masked = "card [card] of [email], password=[key]"
    assert any(f"`{rule}`" in note and f'"{masked}"' in note for note in found.notes)
    source = replace(found.source, shape=rule)
    rows_of = preview(source, text.encode(), str(found.path)).rows
    assert rows_of[0].row["message"] == masked


def test_a_text_that_only_looks_like_a_secret_can_be_judged(tmp_path: Path) -> None:
    """The log of Debian's packages names a package `passwd:amd64`, which looks like a password.
    `guess` shows this text, even if it is in none of the rows that it shows."""
    line = "2026-11-23 08:15:01 status installed {}:amd64 1:4.13 <none>\n"
    text = "".join(line.format(name) for name in [*("tar",) * 30, "passwd"])
    found, _ = tried(tmp_path, text)
    assert any('"status installed passwd:[key] 1:4.13 <none>"' in note for note in found.notes)


ORDER = 4000000000000000
"""The first order number. Order numbers look like card numbers, but only one in ten has the right
check digit."""
CARDS = ("4111 1111 1111 1111", "5500-0000-0000-0004", "340000000000009", "6011000000000004")


@pytest.mark.parametrize(
    ("numbers", "is_masked"),
    [
        ([str(ORDER + n) for n in range(100)], False),
        ([*CARDS], True),
        ([*(str(8 * 10**15 + n) for n in range(100)), *CARDS], True),
        ([*(str(2**61 + n * 7) for n in range(100))], False),
    ],
)
def test_numbers_that_are_no_cards_are_not_masked(
    tmp_path: Path, numbers: list[str], is_masked: bool
) -> None:
    """Some numbers have the length and the first digits of card numbers. If only a few of these
    have the check digit of a card, `guess` proposes no mask for cards, and says why. Numbers with
    other first digits or lengths do not count: `guess` finds a few real card numbers even among
    many such numbers."""
    lines = (f"2026-11-23T08:15:01Z INFO order {number} paid\n" for number in numbers)
    found, _ = tried(tmp_path, "".join(lines))
    assert any("`mask message for cards` masks them." in note for note in found.notes)
    assert any("long numbers, of which" in note for note in found.notes) != is_masked
    assert any("what looks like secrets" in note for note in found.notes) == is_masked


def test_addresses_of_hosts_are_no_secrets(tmp_path: Path) -> None:
    """Addresses of hosts, ordinary numbers and ordinary words are no secrets: `guess` proposes no
    rule that masks them."""
    text = "2026-11-23T08:15:01Z INFO 192.0.2.7 took 4111111111111112 ns\n"
    found, _ = tried(tmp_path, text * 3)
    assert not any("secrets" in note for note in found.notes)


@pytest.mark.parametrize(
    "name",
    [
        b"\xff\xfe.log",
        b"\xed\xa0\x80.log",
        b"a[1]*?.log",
        b"{a,b}.log",
        b"new\nline.log",
        b"-- x.log",
    ],
)
def test_a_file_with_any_name(
    name: bytes, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """`guess` proposes a source that takes the file, and prints UTF-8, whatever the file's name
    is."""
    log = Path(os.fsdecode(os.fsencode(tmp_path) + b"/" + name))
    log.write_text(f"{AT}:00Z a=1\n{AT}:01Z a=2\n")
    config = tmp_path / "agent.yml"
    config.write_text(CONFIG + guess(log, 10).yaml)
    assert main(["agent", "test", str(log), "--config", str(config)]) == 0
    assert "2 rows, 0 rejected" in capfd.readouterr().out
    for form in ((), ("--json",), ("--schema",)):
        assert main(["agent", "guess", *form, str(log)]) == 0
        assert "\ufffd" not in capfd.readouterr().out


@pytest.mark.parametrize(
    "line",
    [
        "#" * 3_000 + " section",
        "2026-11-21 12:00:00 " + "#" * 3_000,
        "é" * 3_000 + " section",
        "2026-11-21 12:00:00 " + " " * 30_000 + "x",
    ],
)
def test_no_line_takes_guess_for_ever(tmp_path: Path, line: str) -> None:
    """A proposal comes also for lines with long runs of signs and blanks: no regular expression
    tries all ways to divide them."""
    (tmp_path / "a.log").write_text(f"{line}\n" * 5)
    assert guess(tmp_path / "a.log", 1_000).block
