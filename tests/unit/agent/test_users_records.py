"""Lines that real programs wrote, and that agents of other projects were reported to read wrong:
stack traces, blank lines, colours, and the logs of containers. Each of these texts becomes the
records that its program meant."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from skidway.agent.commands.guessing import guess
from skidway.agent.formats.catalog import of_source
from skidway.agent.parsers.settings import ParserSettings
from skidway.agent.parsing.containers import DOCKER_PART_BYTES
from skidway.agent.parsing.derived import LINE_FIELD
from skidway.agent.settings import MultilineSettings, SourceSettings
from skidway.agent.validation.preview import Preview, preview
from skidway.errors import ConfigurationRefused

NOW_MS = 1_800_000_000_000


def made(data: bytes | str, schema: str | None = None, **source: Any) -> Preview:
    parser = ParserSettings(**source.pop("parser", {}))
    multiline = source.pop("multiline", None)
    joins = None if multiline is None else MultilineSettings(**multiline)
    own = SourceSettings(
        topic="logs", paths=["/a"], parser=parser, multiline=joins, schema=schema, **source
    )
    own.check()
    text = data.encode() if isinstance(data, str) else data
    return preview(of_source(own), text, "/a", schema=schema, now_ms=NOW_MS)


def rows(data: bytes | str, field: str, schema: str | None = None, **source: Any) -> list[Any]:
    found = made(data, schema, **source)
    assert found.rejects == []
    return [each.row[field] for each in found.rows]


# --- stack traces -----------------------------------------------------------------------------

LOG4J = {"type": "log4j", "pattern": "%d{ISO8601} [%t] %-5p %c - %m%n%rEx"}
PYTHON = {"type": "python", "pattern": "%(asctime)s - %(name)s - %(levelname)s - %(message)s"}
DOTNET = {"type": "regex", "pattern": r"(?P<time>\S+ \S+) (?P<level>[A-Z]+) (?P<message>.*)"}

REX = """\
2026-11-21 08:15:01,123 [main] ERROR a.B - failed
java.sql.SQLException: duplicate key
  Detail: Key (id)=(1) already exists.
\tat a.B.x(B.java:1)
Wrapped by: a.StoreException: store
\tat a.B.y(B.java:2)
\t... 3 common frames omitted
2026-11-21 08:15:02,123 [main] INFO  a.B - next
"""
EMPTY_LINE = """\
2026-11-21 08:15:01,123 [main] ERROR a.B - failed
java.sql.SQLException: You have an error in your SQL syntax

\tat a.B.x(B.java:1)
Caused by: a.StoreException: store

line two of the message
\tat a.B.y(B.java:2)
\t... 3 more
2026-11-21 08:15:02,123 [main] INFO  a.B - next
"""
SQLALCHEMY = """\
2026-11-21 08:15:01,123 - shop - ERROR - failed
Traceback (most recent call last):
  File "/srv/shop/pay.py", line 9, in pay
    session.commit()
sqlalchemy.exc.IntegrityError: (psycopg2.errors.UniqueViolation) duplicate key value
DETAIL:  Key (id)=(1) already exists.

[SQL: INSERT INTO paid (id) VALUES (%(id)s)]
[parameters: {'id': 1}]
(Background on this error at: https://sqlalche.me/e/20/gkpj)

During handling of the above exception, another exception occurred:

Traceback (most recent call last):
  File "/srv/shop/pay.py", line 12, in pay
ValueError: it happened
2026-11-21 08:15:02,123 - shop - INFO - next
"""
NPGSQL = """\
2026-11-21 08:15:01.123 ERROR failed
Microsoft.EntityFrameworkCore.DbUpdateException: An error occurred while saving the changes.
 ---> Npgsql.PostgresException (0x80004005): 23505: duplicate key value
DETAIL: Key (id)=(1) already exists.
   at Npgsql.Internal.NpgsqlConnector.ReadMessage()
  Exception data:
    Severity: ERROR
    SqlState: 23505
   --- End of inner exception stack trace ---
   at Shop.Cart.Checkout() in C:\\src\\Cart.cs:line 9
2026-11-21 08:15:02.123 INFO next
"""
GO_FATAL = """\
level=info msg="started"
fatal error: concurrent map writes

goroutine 18 [running]:
main.main.func1()
\t/tmp/x.go:12 +0x45
created by main.main in goroutine 1
\t/tmp/x.go:10 +0x2a
level=info msg="restarted"
"""
SPRING = """\
2026-11-21T08:15:01.123Z ERROR 4711 --- [main] c.s.App : failed

org.postgresql.util.PSQLException: ERROR: duplicate key value
  Detail: Key (id)=(1) already exists.
\tat org.postgresql.x(Y.java:1)
2026-11-21T08:15:02.123Z  INFO 4711 --- [main] c.s.App : next
"""
ZIPPED = """\
ERROR:root:failed
Traceback (most recent call last):
  File "a.py", line 1, in <module>
KeyError: 'a: b'

more
INFO:root:next
"""


@pytest.mark.parametrize(
    ("data", "source"),
    [
        (REX, {"parser": LOG4J}),
        (REX, {"parser": LOG4J, "multiline": {"type": "java"}}),
        (EMPTY_LINE, {"parser": LOG4J}),
        (EMPTY_LINE, {"parser": LOG4J, "multiline": {"type": "java", "max_lines": 100}}),
        (SQLALCHEMY, {"parser": PYTHON}),
        (SQLALCHEMY, {"parser": PYTHON, "multiline": {"type": "python"}}),
        (NPGSQL, {"parser": DOTNET, "multiline": {"type": "dotnet"}}),
        (SPRING, {"format": "spring"}),
        (ZIPPED, {"parser": {"type": "python", "pattern": "%(levelname)s:%(name)s:%(message)s"}}),
        (ZIPPED, {"format": "python_basic"}),
    ],
)
def test_a_trace_is_one_record(data: str, source: dict[str, Any]) -> None:
    """A parser that knows how a record begins joins all lines of a stack trace to the record before
    it, whatever lines the trace has."""
    assert rows(data, "message", **source) == [
        "failed\n" + data[: data.rindex("\n", 0, -1)].partition("\n")[2],
        "next",
    ]


def test_traces_in_logs_without_a_known_beginning_are_records() -> None:
    """With a parser that does not know how a record begins, the types of `multiline` join the lines
    of stack traces that this language is known to write."""
    first, fatal, last = rows(GO_FATAL, LINE_FIELD, multiline={"type": "go"})
    assert (first, last) == ('level=info msg="started"', 'level=info msg="restarted"')
    assert fatal == GO_FATAL[len(first) + 1 : -len(last) - 2]


@pytest.mark.parametrize(
    "line",
    [
        "[21/Nov/2026:08:15:01 +0100] GET /", "Nov 21 08:15:01 web7 sshd[1]: x", "08:15:01.123 x",
        "2026/11/21 08:15:01 [error] x", "Sat Nov 21 08:15:01 2026 x", "20261121T081501Z x",
        "21.11.2026 08:15:01 x", "Nov 21, 2026 8:15:01 PM x", "<13>Nov 21 08:15:01 x",
        "2026-11-21T08:15:01Z x", "[2026-11-21 08:15:01,123] x", "I1121 08:15:01.123456 1 a.go:1]",
        "Saturday, 21 November 2026 08:15:01 x", "21-Nov-2026 08:15:01.123 x",
        "<Nov 21, 2026 8:15:01 AM CET> <Notice> x", "####<Nov 21, 2026 8:15:01 AM CET> <Notice> x",
        "1764321301.123 INFO x", "1764321301123 x", "21-Dez-2026 08:15:01.123 x",
        "21 März 2026 08:15:01 x", "2026-325T08:15:01 x", "11/21/2026 x", "[2026-11-21] x",
        "* 2026-11-21 08:15:01 x", "> 2026-11-21 08:15:01 x", "| 2026-11-21 08:15:01 x",
        "\u00a02026-11-21 08:15:01 x", "\u200e2026-11-21 08:15:01 x", "2026年11月21日 08:15:01 x",
        "2026-11-21 오후 08:15:01 x",
    ],
)  # fmt: skip
def test_a_line_with_another_time_is_never_glued_to_a_record(line: str) -> None:
    """A line that begins with a time of another form is no part of the record before it: it is
    rejected, so that somebody sees it."""
    data = f"2026-11-21 08:15:01,123 [main] INFO  a.B - one\n{line}\n\tat a.B\n"
    found = made(data, parser=LOG4J)
    assert [each.row["message"] for each in found.rows] == ["one"]
    assert [each.line.decode() for each in found.rejects] == [f"{line}\n\tat a.B"]


def test_a_layout_of_words_only_joins_nothing_by_itself() -> None:
    """If the beginning of a record may also be that of another line, each line is a record."""
    data = "INFO one\nINFO two\n"
    layout = {"type": "log4j", "pattern": "%p %m%n"}
    assert rows(data, "message", parser=layout) == ["one", "two"]
    assert (
        of_source(
            SourceSettings(topic="a", paths=["/a"], parser=ParserSettings(**layout))
        ).multiline
        is None
    )


# --- blank lines ------------------------------------------------------------------------------

A = '{"type": "record", "name": "a", "fields": [{"name": "a", "type": "int"}]}'


@pytest.mark.parametrize("blank", ["\n\n", "\r\n\r\n", " \t\n", "\v\f\n\n", "\x1b[0m\n"])
@pytest.mark.parametrize(
    ("lines", "source", "schema"),
    [
        (('{"a":1}', '{"a":2}'), {"parser": {"type": "json"}}, A),
        (
            ("a=1", "a=2"),
            {"parser": {"type": "logfmt", "columns": ["a"], "types": {"a": "int"}}},
            None,
        ),
        (
            ('x {"a":1}', 'x {"a":2}'),
            {
                "parser": {
                    "type": "regex", "pattern": r"\w (?P<json>\{.*\})", "json_field": "json",
                    "types": {"a": "int"},
                }
            },
            None,
        ),
        (
            ("1,x", "2,y"),
            {"parser": {"type": "csv", "columns": ["a", "b"], "types": {"a": "int"}}},
            None,
        ),
        (
            ("1;x", "2;y"),
            {
                "parser": {
                    "type": "csv", "columns": ["a", "b"], "types": {"a": "int"}, "delimiter": ";"
                },
                "multiline": {"type": "continuation", "pattern": r"^\s*$"},
            },
            None,
        ),
    ],
)  # fmt: skip
def test_blank_lines_are_left_out(
    lines: tuple[str, str], source: dict[str, Any], schema: str | None, blank: str
) -> None:
    """Blank lines before, between and behind lines of JSON, csv and logfmt are neither records nor
    rejects, nor a part of a value. They are counted as filtered by the rule `blank`."""
    data = blank + f"{lines[0]}\n" + blank + f"{lines[1]}\n" + blank
    found = made(data, schema, **source)
    assert found.rejects == []
    assert [each.row["a"] for each in found.rows] == [1, 2]
    assert [each.row.get("b") for each in found.rows] in ([None, None], ["x", "y"])
    assert set(found.by_rule) == {"blank"}
    sizes = [each.length for each in (*found.rows, *found.filtered)]
    assert sum(sizes) == len(data)


def test_a_line_of_empty_values_is_not_blank() -> None:
    """If blanks are the delimiter of a csv log, a line of tabs is a row of empty values."""
    parser = {"type": "csv", "columns": ["a", "b", "c"], "delimiter": "tab"}
    assert rows("\t\t\n1\t2\t3\n", "a", parser=parser) == ["", "1"]


def test_a_blank_line_of_text_is_a_line() -> None:
    """In text, a blank line is a line like any other."""
    assert rows("1 x\n\n2 y\n", LINE_FIELD) == ["1 x", "", "2 y"]


# --- colours ----------------------------------------------------------------------------------

ESC = "\x1b"
SPRING_ANSI = (
    f"2026-11-21T08:15:01.123Z  {ESC}[32mINFO{ESC}[0;39m 4711 --- [main] c.s.App : started\n"
    "2026-11-21T08:15:01.123Z  INFO 4711 --- [main] c.s.App : plain\n"
)
LOGFMT_ANSI = (
    f'time=2026-11-21T08:15:01Z {ESC}[32mlevel{ESC}[0m=info msg="x"\n'
    f'time=2026-11-21T08:15:01Z {ESC}[32mlevel={ESC}[0minfo msg="y"\n'
    f"{ESC}[36mtime{ESC}[0m=2026-11-21T08:15:01Z level=info msg=z\n"
)


def test_formats_are_read_through_colours() -> None:
    """Colours change neither which format a line has, nor a key, a value, a level or a time."""
    assert rows(SPRING_ANSI, "message", format="spring") == ["started", "plain"]
    assert rows(SPRING_ANSI, "level", format="spring") == ["INFO", "INFO"]
    found = made(LOGFMT_ANSI, format="logfmt")
    assert [each.row["level"] for each in found.rows] == ["info"] * 3
    assert [each.row["_extra"] for each in found.rows] == [{}] * 3
    assert {str(each.time) for each in found.rows} == {"2026-11-21 08:15:01+00:00"}
    assert any("3 records" in each for each in found.notes)


CODES = [
    f"{ESC}[31m", f"{ESC}[1;31;48;5;17m", f"{ESC}[38:2::255:0:0m", f"{ESC}[0m\x0f", f"{ESC}(B",
    f"{ESC}[K", f"{ESC}[?25h", f"{ESC}]8;;https://a/b?c=d{ESC}\\", f"{ESC}]0;title\x07",
    f"{ESC}7", ESC, "\x9b31m", f"{ESC}[?1h{ESC}>",
]  # fmt: skip


@pytest.mark.parametrize("code", CODES)
def test_no_code_hides_anything(code: str) -> None:
    """Whatever code stands in a line, keys, values, conditions and masks are those of the line
    without the code."""
    own = '{"type": "record", "name": "a", "fields": [{"name": "level", "type": "string"}]}'
    escaped = json.dumps(code)[1:-1]
    line = f'{{"{escaped}level{escaped}":"{escaped}info{escaped}"}}\n'
    assert rows(line, "level", own, parser={"type": "json"}) == ["info"]
    assert rows(f"{code}level{code}=info{code} a=1\n", "level", format="logfmt") == ["info"]
    for shape in ("mask line for keys, tokens", 'drop line contains "secret"'):
        secret = (
            f"password {code}={code}hunter2{code}secret\nAuthorization: {code}Bearer abcdefgh\n"
        )
        found = made(secret, shape=shape)
        assert "hunter2" not in str(found.document())
        assert shape.startswith("drop") or "abcdefgh" not in str(found.document())
    pattern = {"type": "regex", "pattern": r"(?P<number>\d+)"}
    found = made(f"password{code}=hunter2secret\n", parser=pattern, shape="mask number for keys")
    assert [each.reason for each in found.rejects] == ["no-match"]
    assert b"hunter2" not in found.rejects[0].line


@pytest.mark.parametrize("code", [f"{ESC}[", f"{ESC}]8;;", f"{ESC}]", f"{ESC}P", f"{ESC}(", "\x9d"])
def test_no_code_swallows_what_the_program_wrote(code: str) -> None:
    """Whoever chooses one value of a line cannot take the text behind it away by a code without an
    end, even with the end in a later value."""
    pattern = r'"(?P<path>[^"]*)" (?P<status>\d+) "(?P<agent>[^"]*)"'
    (row,) = made(f'"/a{code}" 200 "\x07b"\n', parser={"type": "regex", "pattern": pattern}).rows
    assert row.row["status"] == "200"
    assert row.row["agent"].endswith("b")
    (other,) = made(
        f"user=a{code} ip=10.0.0.7 agent=\x07b\n", parser={"type": "logfmt", "columns": ["ip"]}
    ).rows
    assert other.row["ip"] == "10.0.0.7"


def test_raw_lines_keep_their_colours_unless_rules_read_them() -> None:
    """A raw line stays as it is, unless the source has rules or says `colours: strip`."""
    line = f"{ESC}[31mred{ESC}[0m\n"
    assert rows(line, LINE_FIELD) == [line[:-1]]
    assert rows(line, LINE_FIELD, colours="strip") == ["red"]
    assert rows(line, LINE_FIELD, shape='drop line contains "x"') == ["red"]
    with pytest.raises(ConfigurationRefused, match="colours"):
        made(line, colours="keep", shape='drop line contains "x"')
    parser = {"type": "csv", "columns": ["a", "b"]}
    assert rows(f"{ESC}[1ma,b\n", "a", colours="keep", parser=parser) == [f"{ESC}[1ma"]


def test_records_begin_at_coloured_lines() -> None:
    """The patterns of `multiline` are searched in the lines without their codes."""
    data = f"{ESC}[32m2026-11-21{ESC}[0m one\n more\n{ESC}[31m2026-11-22{ESC}[0m two\n"
    parser = {"type": "regex", "pattern": r"(?P<day>\S+) (?P<text>.*)"}
    joins = {"type": "start", "pattern": r"^\d{4}-"}
    assert rows(data, "text", parser=parser, multiline=joins) == ["one\n more", "two"]


# --- containers -------------------------------------------------------------------------------

INTERLEAVED = """\
2026-11-20T08:15:01.1Z stdout P {"m":"aaa
2026-11-20T08:15:01.2Z stderr F oops
2026-11-20T08:15:01.3Z stdout F bbb"}
"""
M = json.dumps(
    {
        "type": "record",
        "name": "a",
        "fields": [
            {"name": name, "type": "string", "default": ""}
            for name in ("m", "namespace", "pod", "container")
        ],
    }
)


def docker(text: str, time: str, stream: str = "stdout") -> str:
    return json.dumps({"log": text, "stream": stream, "time": time}) + "\n"


def test_each_stream_of_a_container_has_its_own_lines() -> None:
    """A line of stderr between two parts of a line of stdout changes neither of them."""
    found = made(INTERLEAVED, M, container="cri", parser={"type": "json"})
    assert [each.row["m"] for each in found.rows] == ["aaabbb"]
    assert [(each.reason, each.line) for each in found.rejects] == [
        ("not-json", b"2026-11-20T08:15:01.2Z stderr F oops")
    ]
    assert rows(INTERLEAVED, LINE_FIELD, container="cri") == ['{"m":"aaabbb"}', "oops"]
    long = "x" * DOCKER_PART_BYTES
    data = (
        docker(long, "2026-11-20T08:15:01Z") + docker("oops\n", "2026-11-20T08:15:01Z", "stderr")
        + docker("y\n", "2026-11-20T08:15:01Z")
    )  # fmt: skip
    assert rows(data, LINE_FIELD, container="docker") == [f"{long}y", "oops"]


@pytest.mark.parametrize("day", [20, 21])
def test_dockers_last_words_are_a_line(day: int) -> None:
    """A text that ends without a line end, because its container ended, is a line. What comes an
    hour or a day later is another line, and has its own time."""
    later = f"2026-11-{day}T09:15:01"
    data = docker("bye", "2026-11-20T08:15:01Z") + docker("2026 start\n", f"{later}Z")
    found = made(data, container="docker")
    assert [(str(each.time), each.row[LINE_FIELD]) for each in found.rows] == [
        ("2026-11-20 08:15:01+00:00", "bye"),
        (f"{later.replace('T', ' ')}+00:00", "2026 start"),
    ]


def test_the_runtimes_flags_decide_about_parts() -> None:
    """In a cri log, P says that the next part follows, however late it comes."""
    data = "2026-11-20T08:15:01Z stdout P bye\n2026-11-20T09:15:01Z stdout F 2026 start\n"
    assert rows(data, LINE_FIELD, container="cri") == ["bye2026 start"]
    assert [each.length for each in made(data, container="cri").rows] == [len(data)]


# --- guess ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "expected", "count"),
    [
        ('{"a":1}\n\n\n{"a":2}\n\n\n', {"type": "json"}, 2),
        ('{"a":1}\r\n\r\n\r\n{"a":2}\r\n', {"type": "json"}, 2),
        ("a=1 b=x\n\n\na=2 b=y\n", {"type": "logfmt", "columns": ["a", "b"]}, 2),
        ("a,b,c\n\n1,2,3\n \n4,5,6\n\n", {"type": "csv", "columns": ["a", "b", "c"]}, 2),
        (LOGFMT_ANSI, "logfmt", 3),
        (SPRING_ANSI, "spring", 2),
    ],
)
def test_guess_looks_through_blank_lines_and_colours(
    data: str, expected: object, count: int, tmp_path: Path
) -> None:
    """`guess` proposes the format of the lines between blank lines, and of the lines without their
    colours. All of these lines fit its proposal."""
    (tmp_path / "a.log").write_text(data, newline="")
    found = guess(tmp_path / "a.log", 1_000)
    assert expected in (found.block.get("parser"), found.block.get("format"))
    assert found.preview.rejects == []
    assert len(found.preview.rows) == count
