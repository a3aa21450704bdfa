"""The directives of conversion patterns. `DIRECTIVES` has those that write one value, each with the
name of its group, a regular expression for the text that it writes, and the type of the value. Most
other tables only list the names of directives of one kind. The module also has the patterns for
which Spring Boot's variables stand.

Source: the manuals of log4j 1.2, of log4j 2 (Pattern Layout) and of Logback (Layouts), and the
default patterns of Spring Boot.
"""

from __future__ import annotations

from typing import Final

from skidway.agent.layouts.layout import TEXT, WORD

DIGITS: Final = r"\d+"
METHOD: Final = r"[^\s.]*?"
"""In `%C.%M`, the last dot stands before the method."""

DIRECTIVES: Final[dict[str, tuple[str, str, str]]] = {
    name: (group, pattern, kind)
    for names, group, pattern, kind in (
        ("t tn thread threadName", "thread", TEXT, "string"),
        ("p le level", "level", r"\w+?", "string"),
        ("c lo logger", "logger", WORD, "string"),
        ("C class", "class", WORD, "string"),
        ("M method", "method", METHOD, "string"),
        ("F file", "file", TEXT, "string"),
        ("L line", "line", r"\d+", "int"),
        ("l location", "location", TEXT, "string"),
        ("r relative", "elapsed", DIGITS, "long"),
        ("pid processId", "pid", DIGITS, "long"),
        ("T tid threadId", "thread_id", DIGITS, "long"),
        ("tp threadPriority", "thread_priority", DIGITS, "int"),
        ("sn sequenceNumber", "sequence", DIGITS, "long"),
        ("x NDC", "ndc", TEXT, "string"),
        ("marker markerSimpleName", "marker", TEXT, "string"),
        ("kvp", "pairs", TEXT, "string"),
        ("contextName cn", "context", TEXT, "string"),
        ("h hostName host", "host", WORD, "string"),
        ("m msg message", "message", TEXT, "string"),
    )
    for name in names.split()
}
DATES: Final = ("d", "date")
MAPS: Final = ("X", "mdc", "MDC", "property")
CHOSEN: Final = (*MAPS, "x", "NDC")
"""Directives whose texts users of the program may choose, such as their names."""

NEWLINES: Final = ("n",)
TRACES: Final = (
    "ex", "exception", "throwable", "rEx", "rException", "rThrowable", "xEx", "xException",
    "xThrowable", "wEx", "wex", "nopex", "nopexception", "rootException",
)  # fmt: skip
BRACKETED: Final = {
    "applicationName": ("application", r"[^\]]*"),
    "applicationGroup": ("application_group", r"[^\]]*"),
    "correlationId": ("correlation", "[0-9a-f-]*| *"),
}
"""Directives of Spring Boot that write `[text] ` or nothing. For each: the name of its group, and a
regular expression for the text in the brackets.
"""

COLORS: Final = (
    "clr", "highlight", "black", "red", "green", "yellow", "blue", "magenta", "cyan", "white",
    "gray", "boldRed", "boldGreen", "boldYellow", "boldBlue", "boldMagenta", "boldCyan",
    "boldWhite", "style", "enc", "encode", "maxLen", "maxLength",
)  # fmt: skip
OPTIONAL: Final = ("notEmpty", "varsNotEmpty", "variablesNotEmpty")
KNOWN: Final = sorted(
    [*DIRECTIVES, *DATES, *MAPS, *NEWLINES, *TRACES, *BRACKETED, *COLORS, *OPTIONAL],
    key=len,
    reverse=True,
)
VARIABLES: Final = {
    "PID": "%pid",
    "LOG_LEVEL_PATTERN": "%5p",
    "LOG_DATEFORMAT_PATTERN": "yyyy-MM-dd'T'HH:mm:ss.SSSXXX",
    "LOG_EXCEPTION_CONVERSION_WORD": "%wEx",
    "LOG_CORRELATION_PATTERN": "%correlationId",
    "LOGGED_APPLICATION_NAME": "%applicationName",
    "LOGGED_APPLICATION_GROUP": "%applicationGroup",
}
"""For each variable of Spring Boot, the pattern that Spring Boot puts in its place by default."""

UNBRACKETED: Final = r"[^\]]*?"
"""The regular expression for a thread's name in patterns that also have directives of BRACKETED,
which write `[text] `. The expression matches no `]`, so that the thread's name never takes the text
that such a directive writes.
"""
