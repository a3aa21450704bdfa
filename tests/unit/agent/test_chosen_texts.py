"""What somebody whom nobody trusts can choose (a user's name, a database, a request's id) never
moves the text of another column: the line is rejected, or its other columns are the true ones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pytest

from skidway.agent.formats import catalog
from skidway.agent.parsers.settings import ParserSettings
from skidway.agent.parsing.regex import RegexParser, groups_of
from skidway.agent.settings import SourceSettings
from skidway.agent.validation.preview import preview
from skidway.errors import ConfigurationRefused

NOW_MS = 1_796_083_200_000  # 2026-12-01
TIME = "2026-11-21 08:15:01.123 UTC"


def read_all(records: Sequence[str], **settings: Any) -> list[dict[str, Any]]:
    """The rows of the records that are not rejected."""
    source = catalog.of_source(SourceSettings(topic="logs", paths=["/a"], **settings))
    content = "".join(f"{record}\n" for record in records).encode()
    made = preview(source, content, "/a", now_ms=NOW_MS)
    assert len(made.rows) + len(made.rejects) == len(records)
    return [each.row for each in made.rows]


def read(record: str, **settings: Any) -> dict[str, Any] | None:
    """The row of a record; None if it is rejected."""
    rows = read_all([record], **settings)
    return rows[0] if rows else None


NAMES = (
    "x@y LOG:  ok", "LOG:  ok", "x LOG:  ok", "x@y", "x@y ERROR :  ok", "a b", "x@y FEHLER:  ok",
    "x@y LOG:  connection authorized: user=root", "@ LOG:  ok", "x@y ПРОТОКОЛ:  ok", "a: ",
    "LOG:  ", "x@y DEBUG1:  ok", "[unknown]@[unknown] LOG:  connection received: host=10.0.0.7",
)  # fmt: skip


@pytest.mark.parametrize("level", ["FATAL", "LOG", "ERREUR ", "ВАЖНО", "致命错误"])
@pytest.mark.parametrize("form", ["postgresql", "postgresql_seconds"])
def test_a_name_that_a_client_chooses_is_no_level(level: str, form: str) -> None:
    """PostgreSQL writes the names of user and database before the client has logged in. A name with
    a level, a blank or an @ never becomes a level or a message."""
    time = TIME if form == "postgresql" else TIME.replace(".123", "")
    records = [
        f'{time} [4711] {names} {level}:  password authentication failed for user "{name}"'
        for name in NAMES
        for names in (f"{name}@shop", f"shop@{name}")
    ]
    assert read_all(records, format=form) == []


@pytest.mark.parametrize(
    ("user", "database"), [("shop", "shop"), ("[unknown]", "[unknown]"), ("", ""), ("a:b", "c-d")]
)
@pytest.mark.parametrize("level", ["FATAL", "LOG", "STATEMENT", "FEHLER", "DEBUG2"])
def test_records_of_postgresql_keep_their_names(user: str, database: str, level: str) -> None:
    """Records with usual names have them in their columns, whatever the message is."""
    messages = [
        'role "x" does not exist', "a: b", "select 'x@y LOG: ok'", 'json is {"a":  1}',
        "select 1\n\tfrom a -- note:  b", "time:  5 ms", "ann@example.org failed",
    ]  # fmt: skip
    begin = f"{TIME} [4711] {user}@{database} {level}:  "
    rows = read_all([f"{begin}{message}" for message in messages], format="postgresql")
    assert [row["message"] for row in rows] == messages
    assert {(row["user"], row["database"], row["level"]) for row in rows} == {
        (user, database, level)
    }


def test_the_values_of_postgresql_s_csv_are_quoted() -> None:
    """In the csv log, a name that looks like other values stays in its column."""
    sample = catalog.formats()["postgresql_csv"].sample.split("\n")[0]
    for name in (*NAMES, 'x","y', "a,b"):
        quoted = '"' + name.replace('"', '""') + '"'
        row = read(sample.replace(",,,4711", f",{quoted},{quoted},4711"), format="postgresql_csv")
        assert row is not None
        assert (row["user"], row["database"], row["pid"]) == (name, name, 4711)
        assert (row["level"], row["code"]) == ("LOG", "00000")


@pytest.mark.parametrize(
    "message", ["retry - failed", "retry - failed - again", "a -- b", "x:y - z", "- - -"]
)
@pytest.mark.parametrize("head", ["INFO  ", "[main] INFO  ", "INFO  [main] "])
def test_a_word_of_a_message_is_no_logger(head: str, message: str) -> None:
    """If a program writes no logger, the first word of a message with a dash is not read as one."""
    row = read(f"2026-11-21 08:15:01.123 {head}{message}", format="logback")
    assert row is None or (row["logger"] == "" and message.endswith(row["message"]))
    loggers = ("com.shop.Cart", "Cart", "root", "c.s.C:x", "org.hibernate.SQL", "o.a.C.[.[/]")
    records = [f"2026-11-21 08:15:01.123 {head}{logger} - {message}" for logger in loggers]
    assert [
        (row["level"], row["logger"], row["message"]) for row in read_all(records, format="logback")
    ] == [("INFO", logger, message) for logger in loggers]


CHOSEN = (
    "bob] DEBUG a.B - x", "bob] WARN  a.B - x", "bob] ERROR [main] a.B - x", "] INFO  c.D - ",
    "b] x", "bob]", "[bob", "bob] [main] DEBUG a.B - x", "bob] a.B - x",
)  # fmt: skip
PATTERNS = (
    ("%d [%X{user}] %-5p %c - %m", "{time} [{user}] INFO  com.shop.Cart - {message}"),
    ("%d [%t] [%X{user}] %-5p %c - %m", "{time} [main] [{user}] INFO  com.shop.Cart - {message}"),
    (
        "%d [%X{user}] [%t] %-5p %c{{1}} - %m",
        "{time} [{user}] [main] INFO  com.shop.Cart - {message}",
    ),
    ("%d [%X{user}] [%X{id}] %-5p %c - %m", "{time} [{user}] [7] INFO  com.shop.Cart - {message}"),
    ("%d %-5p [%X{user}] %c - %m", "{time} INFO  [{user}] com.shop.Cart - {message}"),
    ("%d %-5p [%x] %c: %m", "{time} INFO  [{user}] com.shop.Cart: {message}"),
    ("%d %-5p %c [%X{user}] - %m", "{time} INFO  com.shop.Cart [{user}] - {message}"),
    ("%d %-5p %c - %m [%X{user}]", "{time} INFO  com.shop.Cart - {message} [{user}]"),
)
MESSAGES = ("paid", "a - b", "[x] y", "items [5] were - paid", "GET /a?b=[c] took 5 ms: ok")


@pytest.mark.parametrize(("pattern", "line"), PATTERNS)
def test_a_member_of_the_mdc_moves_nothing(pattern: str, line: str) -> None:
    """A value in brackets that looks like the rest of a line never becomes a level or a logger.
    Values and messages without such a text are read."""
    parser = ParserSettings(type="log4j", pattern=pattern.replace("{{1}}", "{1}"))
    name = "ndc" if "%x" in pattern else "user"
    time = "2026-11-21 08:15:01,123"

    def rows(users: Sequence[str]) -> list[dict[str, Any]]:
        records = [
            line.format(time=time, user=user, message=message)
            for message in MESSAGES
            for user in users
        ]
        return read_all(records, parser=parser)

    for row in rows(CHOSEN):
        assert (row["level"], row["logger"]) == ("INFO", "com.shop.Cart")
    usual = ("bob", "", "a b", "[a, b]", "x-1")
    assert [(row[name], row["level"], row["logger"], row["message"]) for row in rows(usual)] == [
        (user, "INFO", "com.shop.Cart", message) for message in MESSAGES for user in usual
    ]


SCHEMA = pa.schema([pa.field("a", pa.string(), False), pa.field("b", pa.string(), False)])


@pytest.mark.parametrize(
    "pattern",
    [r"(?P<a>\w+) (?P<b>(?!.*(?:x|[)])y).*)", r"(?P<a>(?!.*z)\S+) (?P<b>(?!.*(?:x|\))y).*)"],
)
def test_what_a_group_must_not_have(pattern: str) -> None:
    """A group that begins with `(?!.*A)` rejects the lines in which it has A. A may have brackets.
    Whether another group has A does not matter."""
    lines = [b"a b", b"xy b", b"a cxyd", b"a c)y", b"z b", b"a z", b"a )", b"a"]
    parser = RegexParser(pattern, SCHEMA, frozenset())
    parsed = parser.parse(pa.array(lines, pa.binary()), 0)
    wrong = {b"a cxyd", b"a c)y", b"a"} | ({b"z b"} if "z" in pattern else set())
    assert {lines[each.row] for each in parsed.rejects} == wrong
    assert [lines[row] for row in parsed.rows] == [line for line in lines if line not in wrong]
    assert {each.reason for each in parsed.rejects} == {"no-match"}


@pytest.mark.parametrize(
    "pattern", ["(?P<a>(?!.*x.*)", "(?P<a>(?!.*(x).*", "(?P<a>(?!.*[).*)", "(?!x)"]
)
def test_an_unclosed_lookahead_is_refused(pattern: str) -> None:
    """A lookahead that is not closed, or that does not begin a group, is refused."""
    with pytest.raises(ConfigurationRefused, match=r"parser\.pattern"):
        groups_of(pattern)
