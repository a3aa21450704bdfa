"""From a conversion pattern of log4j or Logback, the agent derives how to read the lines that
programs write with this pattern."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skidway.agent.formats.catalog import of_source
from skidway.agent.layouts.log4j import compiled
from skidway.agent.parsers.settings import ParserSettings
from skidway.agent.settings import MultilineSettings, SourceSettings
from skidway.agent.validation.preview import Preview, preview
from skidway.errors import ConfigurationRefused

WHOLE_SPRING = "${CONSOLE_LOG_PATTERN:-{}}"
PATTERN = "%d{yyyy-MM-dd HH:mm:ss,SSS} [%t] %-5p %c{1} - %m%n"
SPRING = (
    "%clr(%d{${LOG_DATEFORMAT_PATTERN:-yyyy-MM-dd'T'HH:mm:ss.SSSXXX}}){faint} "
    "%clr(${LOG_LEVEL_PATTERN:-%5p}) %clr(${PID:- }){magenta} %clr(---){faint} "
    "%clr(%applicationName[%15.15t]){faint} %clr(${LOG_CORRELATION_PATTERN:-}){faint}"
    "%clr(%-40.40logger{39}){cyan} %clr(:){faint} %m%n${LOG_EXCEPTION_CONVERSION_WORD:-%wEx}"
)


def source(pattern: str, **more: Any) -> SourceSettings:
    parser = ParserSettings(type="log4j", pattern=pattern)
    parser.check()
    made = SourceSettings(topic="logs", paths=["/a"], parser=parser, **more)
    made.check()
    return of_source(made)


def read(pattern: str, text: str, **more: Any) -> Preview:
    return preview(source(pattern, **more), text.encode(), "/a", now_ms=1_800_000_000_000)


@dataclass
class Event:
    time: datetime
    thread: str
    level: str
    logger: str
    message: str
    user: str
    line: int


WORDS = st.text("abcXYZ09.$_", min_size=1, max_size=12)
TEXTS = st.text(st.characters(codec="utf-8", exclude_categories=("C", "Z")), max_size=20)
EVENTS = st.builds(
    Event,
    time=st.integers(631_152_000_000, 1_767_225_600_000).map(
        lambda ms: datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=ms)
    ),
    thread=st.text("abc-123 #", min_size=1, max_size=20).map(str.strip),
    level=st.sampled_from(["TRACE", "DEBUG", "INFO", "WARN", "ERROR", "FATAL"]),
    logger=WORDS,
    message=st.lists(TEXTS, max_size=4).map(" ".join),
    user=st.text("abc01", max_size=6),
    line=st.integers(1, 99_999),
)
PARTS = {
    "%d{yyyy-MM-dd HH:mm:ss,SSS}": lambda e: e.time.strftime("%Y-%m-%d %H:%M:%S,") + millis(e),
    "%d{dd MMM yyyy HH:mm:ss.SSS}": lambda e: e.time.strftime("%d %b %Y %H:%M:%S.") + millis(e),
    "%d{ISO8601}": lambda e: e.time.strftime("%Y-%m-%d %H:%M:%S,") + millis(e),
    "%date{yyyy-MM-dd'T'HH:mm:ss.SSSXXX}": lambda e: (
        e.time.strftime("%Y-%m-%dT%H:%M:%S.") + millis(e) + "Z"
    ),
    "%d{UNIX_MILLIS}": lambda e: str(round(e.time.timestamp() * 1000)),
    "%d{yyMMdd HHmmss SSS}": lambda e: e.time.strftime("%y%m%d %H%M%S ") + millis(e),
    "[%t]": lambda e: f"[{e.thread}]",
    "[%15thread]": lambda e: f"[{e.thread:>15}]",
    "%-5p": lambda e: f"{e.level:<5}",
    "%5level": lambda e: f"{e.level:>5}",
    "%highlight(%-5level)": lambda e: f"\x1b[31m{e.level:<5}\x1b[0;39m",
    "%c{1}": lambda e: e.logger,
    "%-20.20logger{20}": lambda e: f"{e.logger:<20}",
    "(%X{user-id:-})": lambda e: f"({e.user})",
    "%%%L": lambda e: f"%{e.line}",
}
FIELDS = {
    "%c": ("logger", "logger"), "%-20": ("logger", "logger"), "[": ("thread", "thread"),
    "%-5": ("level", "level"), "%5": ("level", "level"), "%highlight": ("level", "level"),
    "(%X": ("user_id", "user"), "%%": ("line", "line"),
}  # fmt: skip


def millis(event: Event) -> str:
    return f"{event.time.microsecond // 1000:03}"


@given(
    st.lists(st.sampled_from(sorted(PARTS)), unique_by=lambda part: part[:3], max_size=6),
    st.sampled_from([" ", " - ", " | "]),
    st.lists(EVENTS, min_size=1, max_size=4),
)
def test_what_a_pattern_writes_is_read_back(
    parts: list[str], between: str, events: list[Event]
) -> None:
    """If a program writes events as lines of a pattern, the agent reads the events' times and
    fields from these lines."""
    # In a Logback pattern, parentheses enclose a group, so parentheses in the text are escaped.
    pattern = between.join([*(part.replace("(%X", r"\(%X") for part in parts), "%m%n"])
    lines = [between.join([*(PARTS[part](e) for part in parts), e.message]) for e in events]
    made = read(pattern, "".join(f"{line}\n" for line in lines))
    assert made.rejects == []
    for row, event in zip(made.rows, events, strict=True):
        assert row.row["message"] == event.message
        for part in parts:
            for prefix, (name, attribute) in FIELDS.items():
                if part.startswith(prefix):
                    assert row.row[name] == getattr(event, attribute)
        if any(part.startswith("%d") for part in parts):
            assert row.time == event.time


@pytest.mark.parametrize("between", [" ", ";", "; [", ":"])
def test_a_coloured_level_is_read_whatever_stands_behind_it(between: str) -> None:
    """The codes of a colour that the pattern has are no part of a field, even if they contain the
    signs that divide the fields."""
    text = f"\x1b[1;31mINFO \x1b[0;39m{between}a \x1b[33mb\x1b[0m\n"
    made = read(f"%highlight(%-5level){between}%m%n", text)
    assert [row.row for row in made.rows] == [{"level": "INFO", "message": "a b"}]


@pytest.mark.parametrize("named", ["%C.%M", "%c.%M", "%logger{36}.%method"])
def test_the_last_dot_divides_class_and_method(named: str) -> None:
    """If a pattern writes a dot between a class, or a logger, and a method, the last dot of the
    text is this dot."""
    row = read(f"{named}:%L - %m%n", "com.acme.Order.<init>:7 - Order 1.5 done\n").rows[0].row
    assert (row.get("class", row.get("logger")), row["method"]) == ("com.acme.Order", "<init>")


def test_the_patterns_of_spring_boot() -> None:
    """The agent can read lines of Spring Boot's default patterns, with and without the
    application's name and a trace's ids."""
    made = read(
        WHOLE_SPRING.replace("{}", SPRING),
        "2026-11-23T08:15:01.123+01:00  INFO 4711 --- [shop] [           main] "
        "c.e.shop.Cart                            : Started: 3 s\n"
        "2026-11-23T08:15:02.123+01:00 ERROR 4711 --- [nio-8080-exec-1] [65f1-a2] "
        "o.a.c.c.C.[.[.[/].[dispatcherServlet]    : Failed\n",
    )
    assert made.rejects == []
    rows = [
        {k: v for k, v in each.row.items() if k not in ("time", "timestamp")} for each in made.rows
    ]
    assert rows == [
        {"level": "INFO", "pid": 4711, "application": "shop", "thread": "main", "correlation": "",
         "logger": "c.e.shop.Cart", "message": "Started: 3 s"},
        {"level": "ERROR", "pid": 4711, "application": "", "thread": "nio-8080-exec-1",
         "correlation": "65f1-a2", "logger": "o.a.c.c.C.[.[.[/].[dispatcherServlet]",
         "message": "Failed"},
    ]  # fmt: skip
    assert made.rows[0].time == datetime(2026, 11, 23, 7, 15, 1, 123_000, UTC)


@given(
    st.lists(
        st.sampled_from(
            [*"%{}()-.5: ''[]y", "%d", "%d{", "%t", "%-5p", "%m", "%n", "%ex", "%X{a", "%clr(",
             "${", "${A:-", "yyyy", "MM", "dd", "%notEmpty{", "%style{", "%c{1.}", "SSS", "%L"]
        ),
        max_size=12,
    ).map("".join)
)  # fmt: skip
def test_every_pattern_works_or_is_refused(pattern: str) -> None:
    """Whatever a pattern looks like, the agent either refuses the pattern with a sentence, or can
    read lines with the pattern."""
    try:
        made = source(pattern)
    except ConfigurationRefused:
        return
    preview(made, b"a line\n", "/a")


@pytest.mark.parametrize(
    ("pattern", "words"),
    [
        ("%d " + "%style{" * 1_000 + "%m", "brackets are nested in more than 50 others"),
        ("%green(" * 1_000 + "%d %m" + ")" * 1_000, "brackets are nested in more than 50 others"),
        ("%(" * 1_000 + "%d %m" + ")" * 1_000, "brackets are nested in more than 50 others"),
        ("%notEmpty{" * 600 + "%m" + "}" * 600, "brackets are nested in more than 50 others"),
        ("%X{a} " * 100 + "%m", "the pattern has more than 100 directives"),
        ("%" + "9" * 5_000 + "m", "is no directive that can be read back"),
    ],
    ids=["style", "color", "group", "optional", "directives", "width"],
)
def test_a_pattern_without_end_is_refused(pattern: str, words: str) -> None:
    """A pattern that is nested too deeply, or has too many directives, is refused."""
    with pytest.raises(ConfigurationRefused, match=words):
        compiled(pattern)


def test_a_stack_trace_is_a_part_of_the_message() -> None:
    """With `multiline: java`, the field `message` contains the lines of a stack trace too."""
    text = (
        "2026-11-23 08:15:01,001 [main] ERROR a.B - failed \n"
        "java.lang.IllegalStateException: y\n\tat a.B.c(B.java:1)\n"
        "2026-11-23 08:15:02,001 [main] INFO  a.B - done\n"
    )
    made = read(PATTERN.replace("%n", " %ex%n"), text, multiline=MultilineSettings(type="java"))
    assert [each.row["message"] for each in made.rows] == [
        "failed \njava.lang.IllegalStateException: y\n\tat a.B.c(B.java:1)", "done"
    ]  # fmt: skip


def test_the_zone_of_times() -> None:
    """If the pattern names a time zone, times are read in this zone. Otherwise they are read in the
    zone of the settings, which is UTC by default."""
    line = "2026-11-21 08:15:01,000 x\n"
    plain = "%d{yyyy-MM-dd HH:mm:ss,SSS} %m%n"
    for pattern, zone, hour in (
        (plain, None, 8),
        (plain, "Europe/Berlin", 7),
        ("%d{yyyy-MM-dd HH:mm:ss,SSS}{Europe/Berlin} %m%n", None, 7),
        ('%d{"yyyy-MM-dd HH:mm:ss,SSS", Europe/Berlin} %m%n', None, 7),
        ("%d{yyyy-MM-dd HH:mm:ss,SSS, UTC} %m%n", None, 8),
        ("%d{yyyy-MM-dd HH:mm:ss,SSS}{GMT+1} %m%n", None, 7),
        ("%d{yyyy-MM-dd HH:mm:ss,SSS}{PST} %m%n", None, 16),
    ):
        (row,) = read(pattern, line, timezone=zone).rows
        assert row.time is not None
        assert row.time.hour == hour


def test_a_date_without_a_day_is_no_time() -> None:
    """If a pattern writes only the time of day, without a date, this time becomes a field of the
    row, and the row has no event time."""
    made = read("%d{HH:mm:ss.SSS} [%thread] %-5level %logger{36} -- %msg%n", "08:15:01.5 x\n")
    assert [each.reason for each in made.rejects] == ["no-match"]
    made = read("%d{HH:mm:ss.SSS} %msg%n", "08:15:01.500 x\n")
    assert (made.rows[0].time, made.rows[0].row["time"]) == (None, "08:15:01.500")


@pytest.mark.parametrize(
    ("date", "text"),
    [
        ("yyyy-MM-dd HH:mm:ss.SSSSSSSSS", "2026-11-21 08:15:01.123456789"),
        ("HH:mm:ss.SSSSSSS dd.MM.yyyy", "08:15:01.1234567 21.11.2026"),
        ("dd MMM yyyy HH:mm:ss,SSS", "21 Nov. 2026 08:15:01,123"),
        ("MM/dd/yyyy hh:mm:ss.SSS a", "11/21/2026 08:15:01.123\u202fAM"),
        ("yyyy-MM-dd HH:mm:ss.SSSX", "2026-11-21 11:15:01.123+03"),
        ("yyyy-MM-dd HH:mm:ss,SSSXXX", "2026-11-21 11:15:01,123+03:00"),
        ("yyyy-MM-dd HH:mm:ss,SSSZ", "2026-11-21 11:15:01,123+0300"),
        ("yyyy-MM-dd HH:mm:ss.SSS z", "2026-11-21 11:15:01.123 GMT+03:00"),
        ("yyyy-MM-dd HH:mm:ss.SSS O", "2026-11-21 11:15:01.123 GMT+3"),
        ("yyyy-MM-dd HH:mm:ss.SSS z", "2026-11-21 08:15:01.123 UTC"),
    ],
)
def test_a_date_is_read_whole(date: str, text: str) -> None:
    """The digits of a fraction, the half of the day and the zone belong to the time, wherever they
    are in the date."""
    (row,) = read(f"%d{{{date}}} %m", f"{text} x\n").rows
    assert (row.row["time"], row.row["message"]) == (text, "x")
    assert row.time == datetime(2026, 11, 21, 8, 15, 1, 123_000, UTC)


def test_the_letters_of_a_zone_count_only_if_the_zone_uses_them() -> None:
    """If a date ends with the letters of a zone, the time is read if clocks of the source's zone
    show these letters then. Other lines are rejected, and the reason names the zone."""
    pattern, text = "%d{yyyy-MM-dd HH:mm:ss,SSS z} %m", "2026-11-21 08:15:01,000 CET x\n"
    (row,) = read(pattern, text, timezone="Europe/Berlin").rows
    assert row.time == datetime(2026, 11, 21, 7, 15, 1, tzinfo=UTC)
    (reject,) = read(pattern, text).rejects
    assert (reject.reason, "CET" in reject.detail) == ("zone", True)


@pytest.mark.parametrize(
    ("pattern", "sentence", "at"),
    [
        ("%d %K %m", "%K is no directive that can be read back", 3),
        ("%d %t%c %m", "there must be some text between t and c", 5),
        ("%p%m", "there must be some text between p and m", 2),
        ("%d{yyyy zzzz} %m", "letters of the zone", 8),
        ("%d{yyyy-MM-dd HH:mm:ss.S} %m", "use SSS", 23),
        ("%d{yyyy-MM-dd hh:mm} %m", "need the half of the day", 3),
        ("%d{yyyy-'MM} %m", "quotation mark in a date is not closed", 8),
        ("%d{SSSyyyy} %m", "no number can directly follow", 6),
        ("%d{yyyy-MM-dd Hmmss} %m", "no number can directly follow H", 15),
        ("%d{yyyyMd HH:mm:ss} %m", "no number can directly follow M", 8),
        ("%d{yyyy-MM-dd %m", "this bracket is not closed", 2),
        ("%clr(%p %m", "this bracket is not closed", 4),
        ("%style %m", "needs a pattern in brackets", 0),
        ("%m %ex [%t]", "can only be after the message", 3),
        ("%m ${NAME}", "write what", 3),
        ("text", "no directive", 0),
        ("", "no directive", 0),
    ],
)
def test_patterns_that_nobody_can_read_back_are_refused(
    pattern: str, sentence: str, at: int
) -> None:
    """If the agent could not divide the lines of a pattern into fields, it refuses the pattern with
    one sentence, and a caret marks the place in the pattern that causes the refusal."""
    with pytest.raises(ConfigurationRefused, match=sentence) as caught:
        source(pattern)
    first, shown, mark = str(caught.value).split("\n")
    assert first.startswith("source of topic logs: parser.pattern: ")
    assert (shown.strip(), mark) == (pattern.strip(), " " * (4 + at) + "^")


@pytest.mark.parametrize(
    ("name", "date"),
    [
        ("ABSOLUTE", "00:08:15,462"),
        ("ABSOLUTE_PERIOD", "00:08:15.462"),
        ("DATE", "24 Nov 2026 00:08:15,462"),
        ("DATE_PERIOD", "24 Nov 2026 00:08:15.462"),
        ("COMPACT", "20261124000815462"),
        ("ISO8601_BASIC", "20261124T000815,462"),
        ("ISO8601_BASIC_PERIOD", "20261124T000815.462"),
        ("ISO8601_OFFSET_DATE_TIME_HH", "2026-11-24T01:08:15,462+01"),
        ("ISO8601_OFFSET_DATE_TIME_HHMM", "2026-11-24T01:08:15,462+0100"),
        ("ISO8601_OFFSET_DATE_TIME_HHCMM", "2026-11-24T01:08:15,462+01:00"),
        ("US_MONTH_DAY_YEAR2_TIME", "24/11/26 00:08:15.462"),
        ("US_MONTH_DAY_YEAR4_TIME", "24/11/2026 00:08:15.462"),
        ("ISO8601", "2026-11-24T00:08:15,462"),
        ("ISO8601_PERIOD", "2026-11-24T00:08:15.462"),
        ("DEFAULT", "2026-11-24 00:08:15,462"),
        ("DEFAULT_PERIOD", "2026-11-24 00:08:15.462"),
        ("DEFAULT_MICROS", "2026-11-24 00:08:15,462000"),
        ("DEFAULT_NANOS", "2026-11-24 00:08:15,462000000"),
        ("UNIX", "1795478895"),
        ("UNIX_MILLIS", "1795478895462"),
    ],
)
def test_the_names_of_dates_are_known(name: str, date: str) -> None:
    """A date pattern can be a name, such as COMPACT. The agent then reads the dates that log4j
    writes for this name. A date without a day, such as that of ABSOLUTE, gives no time."""
    (row,) = read(f"%d{{{name}}} %m", f"{date} hello\n").rows
    assert row.row["message"] == "hello"
    moment = datetime(2026, 11, 24, 0, 8, 15, 0 if name == "UNIX" else 462_000, UTC)
    assert row.time == (None if name.startswith("ABSOLUTE") else moment)


EMPTY = "%d{yyyy-MM-dd HH:mm:ss,SSS} [%t] %-5p %X{requestId} %c{1} - %m%n"


def fields(pattern: str, line: str, *names: str) -> list[Any]:
    made = read(pattern, f"{line}\n")
    assert made.rejects == []
    return [made.rows[0].row[name] for name in names]


@pytest.mark.parametrize("level", ["INFO ", "ERROR"])
@pytest.mark.parametrize("key", ["", "4711", "a b"])
def test_an_empty_value_is_read_as_empty(level: str, key: str) -> None:
    """A row has the fields that the program wrote, even if the value of an MDC key (a key of
    log4j's context map) is empty, and the message contains literal texts of the pattern."""
    line = f"2026-11-24 00:08:15,462 [main] {level} {key} CartRepository - a - b"
    names = "level", "requestId", "logger", "message"
    assert fields(EMPTY, line, *names) == [level.strip(), key, "CartRepository", "a - b"]


@pytest.mark.parametrize(
    ("pattern", "line", "expected"),
    [
        ("%-5p %X{a} %X{b} %c - %m", "INFO    x.Y - a - b", ["INFO", "", "", "x.Y", "a - b"]),
        ("%-5p %X{a} %X{b} %c - %m", "ERROR   x.Y - a - b", ["ERROR", "", "", "x.Y", "a - b"]),
        ("%-5p %X{a} %X{b} [%c] %m", "ERROR 1  [x.Y] [b] c", ["ERROR", "1", "", "x.Y", "[b] c"]),
        ("%p %9X{a} %-4X{b} %c - %m", "WARN" + " " * 16 + "x.Y - a - b",
         ["WARN", "", "", "x.Y", "a - b"]),
        ("%p %9X{a} %-4X{b} %c - %m", "WARN        47 1    x.Y - a - b",
         ["WARN", "47", "1", "x.Y", "a - b"]),
        ("%-5p %9X{a} %X{b} %c %m", "INFO" + " " * 13 + "x.Y a b", ["INFO", "", "", "x.Y", "a b"]),
    ],
)  # fmt: skip
def test_empty_values_beside_blanks_of_widths(pattern: str, line: str, expected: list[str]) -> None:
    """If a pattern pads a value with blanks to a fixed width, the agent never reads these blanks as
    a part of an empty value beside them."""
    assert fields(pattern, line, "level", "a", "b", "logger", "message") == expected


def test_blanks_at_the_beginning_of_a_message() -> None:
    """A message keeps the blanks at its beginning. There is one exception: the pattern pads the
    text before the message with blanks to a fixed width, and only one blank separates this text
    from the message. Nobody can then tell the message's first blanks from the padding."""
    assert fields("%p %m%n", "INFO   a  b", "message") == ["  a  b"]
    assert fields("%-5p - %m%n", "INFO  -   a  b", "message") == ["  a  b"]
    assert fields("%-5p %m%n", "INFO  a  b", "message") == ["a  b"]
    assert fields("%-5p %c %m%n", "INFO  x.Y  a", "logger", "message") == ["x.Y", " a"]
    assert fields("%-5p %X{a} %m%n", "INFO   a  b", "a", "message") == ["", "a  b"]


@given(
    st.sampled_from(["%-5p", "%p", "%5p", "%-7p"]),
    st.sampled_from(["%X{a}", "%8X{a}", "%-8X{a}"]),
    st.sampled_from(["%c", "%-12c", "%12c"]),
    st.sampled_from([" - ", " | ", ": "]),
    st.sampled_from(["INFO", "ERROR", "WARNING"]),
    st.text("ab9-", max_size=9).map(lambda each: each.strip("-")),
    st.text("abc.", min_size=1, max_size=14),
    st.lists(st.sampled_from(["a", " - ", " | ", ": ", "[", "INFO", " "]), max_size=6),
)
def test_messages_with_the_texts_of_the_pattern(
    level: str,
    key: str,
    logger: str,
    between: str,
    name: str,
    value: str,
    who: str,
    said: list[str],
) -> None:
    """The agent finds in a line the values that the program logged, even if MDC values are empty or
    short, and even if messages contain literal texts of the pattern."""
    message = "".join(said)
    parts = [(level, name), (key, value), (logger, who)]
    line = " ".join(filled(part, text) for part, text in parts) + between + message
    found = fields(f"{level} {key} {logger}{between}%m%n", line, "level", "a", "logger", "message")
    assert found == [name, value, who, message]


def filled(directive: str, text: str) -> str:
    """Returns the text, filled with blanks to the width that the directive sets."""
    width = directive.strip("%")
    width = width[: len(width) - len(width.lstrip("-0123456789"))]
    return text.ljust(int(width[1:])) if width[:1] == "-" else text.rjust(int(width or 0))
