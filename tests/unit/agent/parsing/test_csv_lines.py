"""Lines of values with a delimiter between them become rows."""

from __future__ import annotations

import csv
import io
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skidway.agent.batches.source_recipes import derived_schema
from skidway.agent.parsers.settings import ParserSettings
from skidway.agent.parsing.csv_lines import CsvParser
from skidway.agent.parsing.parser import Parsed
from skidway.agent.parsing.text_fields import TextFields, TextTimes
from skidway.agent.settings import MultilineSettings, SourceSettings
from skidway.agent.settings import TimestampSettings as Times
from skidway.agent.validation.preview import preview
from skidway.errors import ConfigurationRefused
from support.agent_press import press, reading, recipe

NAMES = ["a", "b", "c"]
NOW_MS = 1_800_000_000_000


def parse(
    lines: list[str | bytes], delimiter: str = ",", header: str | None = None
) -> tuple[dict[int, list[str]], dict[int, str]]:
    """Returns two dictionaries, whose keys are indexes of lines. The first has the values of each
    row. The second has the detail of each rejected line (a short text about the reason)."""
    schema = pa.schema([(name, pa.string()) for name in NAMES])
    fields = TextFields(schema, NAMES, frozenset(), TextTimes(), source="column")
    parser = CsvParser(NAMES, delimiter, fields, header)
    parsed: Parsed = parser.parse(pa.array(lines, pa.binary()), NOW_MS)
    rows = dict(
        zip(parsed.rows.tolist(), (list(x.values()) for x in parsed.batch.to_pylist()), strict=True)
    )
    return rows, {reject.row: reject.detail for reject in parsed.rejects}


def reference(line: str, delimiter: str) -> list[str] | None:
    """Returns the values that Python's csv module finds in a line, or None if the line is not
    valid."""
    try:
        found = list(csv.reader(io.StringIO(line, newline=""), delimiter=delimiter, strict=True))
    except csv.Error:
        return None
    return found[0] if found else [""]


def quoted(text: str) -> str:
    doubled = text.replace('"', '""')
    return f'"{doubled}"'


ODD = st.text(st.sampled_from('ab",;\t ü'), max_size=5)
VALUES = ODD | ODD.map(quoted)


@given(
    st.lists(st.lists(VALUES, max_size=4), max_size=12).map(
        lambda lines: [",".join(values) for values in lines]
    ),
    st.sampled_from([",", ",", ";", "\t"]),
)
def test_values_are_those_of_pythons_csv_module(lines: list[str], delimiter: str) -> None:
    """Each line has the values that Python's csv module finds if it gets only this line. A line
    that the module refuses is rejected."""
    rows, details = parse(lines, delimiter)
    for index, line in enumerate(lines):
        wanted = reference(line, delimiter)
        if wanted is not None and len(wanted) == len(NAMES) and wanted != NAMES:
            assert rows[index] == wanted
        else:
            assert index in details
    assert len(rows) + len(details) == len(lines)


@given(
    st.lists(
        st.tuples(*[st.text(st.characters(codec="utf-8", exclude_characters="\r\n\0"))] * 3),
        max_size=8,
    ),
    st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL]),
)
def test_what_others_write_is_read_back(rows: list[tuple[str, str, str]], quoting: Any) -> None:
    """The parser reads back the values that Python's csv module has written, whatever characters
    they have, except line ends and NUL."""
    file = io.StringIO(newline="")
    csv.writer(file, quoting=quoting, lineterminator="\n").writerows(rows)
    found, details = parse(file.getvalue().split("\n")[:-1])
    assert list(found.values()) == [list(each) for each in rows if list(each) != NAMES]
    assert set(details.values()) <= {"the line is a header"}


def test_lines_that_do_not_fit_say_why() -> None:
    """If a line has more or fewer values than there are columns, the line is rejected, and the
    detail of the rejection (a short text) gives both numbers. If a quoted value does not end, only
    its own line is rejected."""
    rows, details = parse(["1,2", '"1,2,3', "1,2,3", '"1"x,2,3', "1,2,3,4", b"\xff,2,3"])
    assert list(rows) == [2]
    assert details == {
        0: "number of values: 2; parser.columns has 3 names",
        1: "a quoted value does not end in this record; if values have line ends, set multiline",
        3: "a quoted value has text behind its last quotation mark",
        4: "number of values: 4; parser.columns has 3 names",
        5: "the line is not UTF-8",
    }


def test_a_line_is_a_header_because_of_its_own_text() -> None:
    """A line with the names of the columns is a header, wherever it is in the file. If the setting
    `header` is set, only a line with the text of this setting is a header, however many values it
    has."""
    rows, details = parse(["a,b,c", "a,b,x", '"a",b,c', "A;B"])
    assert (list(rows), details[0], details[2]) == ([1], *["the line is a header"] * 2)
    rows, details = parse(["# a b c", "a,b,c", "# a b", "# a b c"], header="# a b c")
    assert (list(rows), details[0], details[3]) == ([1], *["the line is a header"] * 2)


@pytest.mark.parametrize("header", [None, "A B,B,C"])
def test_headers_are_counted_as_filtered(header: str | None) -> None:
    """A header becomes neither a record nor a reject. It is counted as a filtered record."""
    settings = ParserSettings(type="csv", columns=NAMES, header=header)
    data = f"{header or 'a,b,c'}\n1,2,3\n".encode()
    pressed = press(recipe(parser=settings), reading(data))
    assert pressed.filtered is not None
    assert pressed.filtered.by_rule == {"csv header": (1, len(data) - 6)}
    assert (pressed.rejected, pressed.records) == ([], 1)


def source(**parser: Any) -> SourceSettings:
    more = {key: parser.pop(key) for key in ("timestamp", "multiline", "schema") if key in parser}
    settings = ParserSettings(**{"type": "csv", "columns": NAMES, **parser})
    settings.check()
    made = SourceSettings(topic="logs", paths=["/a"], parser=settings, **more)
    made.check()
    return made


def test_columns_have_types_and_a_time() -> None:
    """The settings can give a column a type; an empty value of this column is then null. The event
    time can come from several columns."""
    csv_source = source(
        delimiter="tab",
        types={"c": "double"},
        timestamp=Times(fields=["a", "b"], format="%Y-%m-%d %H:%M:%S"),
    )
    data = b"2026-11-21\t08:15:01\t1.5\n2026-11-21\t08:15:02\t\n2026-11-21\t8h\t1\n1\t2\tx\n"
    made = preview(csv_source, data, "/a")
    assert [(x.time and x.time.isoformat(), x.row["c"]) for x in made.rows] == [
        ("2026-11-21T08:15:01+00:00", 1.5), ("2026-11-21T08:15:02+00:00", None)
    ]  # fmt: skip
    assert [each.reason for each in made.rejects] == ["timestamp", "schema"]


def test_a_value_may_have_line_ends_if_lines_are_joined() -> None:
    """With `multiline`, a quoted value may contain line terminators, and keeps them unchanged.
    Without `multiline`, each line of such a value is rejected."""
    data = b'1,"two\nlines",x\n2,one,y\n'
    joined = MultilineSettings(type="start", pattern=r"^\d+,")
    made = preview(source(multiline=joined), data, "/a")
    assert [each.row["b"] for each in made.rows] == ["two\nlines", "one"]
    made = preview(source(), data, "/a")
    assert [each.row["b"] for each in made.rows] == ["one"]
    assert len(made.rejects) == 2


@pytest.mark.parametrize(
    ("parser", "sentence"),
    [
        ({"columns": []}, "parser.columns is missing"),
        ({"columns": ["a", "b-c"]}, "'b-c' is no name of a field"),
        ({"columns": ["a", "a"]}, "'a' twice"),
        ({"delimiter": ",,"}, "is not one character"),
        ({"delimiter": ""}, "is not one character"),
        ({"delimiter": "x"}, "is not one character"),
        ({"delimiter": "é"}, "is not one character"),
        ({"delimiter": "\x1b"}, "is not one character"),
        ({"delimiter": '"'}, "parser.delimiter cannot be"),
        ({"types": {"d": "int"}}, "'d' is no group of parser.pattern, and none of parser.columns"),
        ({"pattern": "x"}, "parser.pattern does not belong"),
        ({"type": "json"}, "parser.columns does not belong to .* type json"),
        ({"type": "raw", "columns": [], "header": "a"}, "parser.header does not belong"),
        ({"type": "raw", "columns": [], "delimiter": ";"}, "parser.delimiter does not belong"),
    ],
)
def test_settings_that_cannot_work_are_refused(parser: dict[str, Any], sentence: str) -> None:
    """Settings that cannot work are refused in one sentence that names the setting."""
    with pytest.raises(ConfigurationRefused, match=sentence):
        derived_schema(source(**parser))


def test_blanks_around_a_time_are_no_part_of_it() -> None:
    """The texts of a time may have blanks around them. The columns keep these blanks."""
    source = SourceSettings(
        topic="t",
        paths=["/x"],
        parser=ParserSettings(type="csv", columns=["day", "at", "text"], delimiter=";"),
        timestamp=Times(fields=["day", "at"], format="%d.%m.%Y %H:%M:%S"),
    )
    made = preview(source, b"23.11.2026 ; 08:15:00\t; up\n", "/x")
    assert not made.rejects
    (row,) = made.rows
    assert row.time is not None
    assert row.time.isoformat() == "2026-11-23T08:15:00+00:00"
    assert [row.row[name] for name in ("day", "at", "text")] == [
        "23.11.2026 ",
        " 08:15:00\t",
        " up",
    ]
