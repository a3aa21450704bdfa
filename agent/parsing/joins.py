"""The rules that say which lines become one record, as settings and recipes contain them. The
module `multiline` joins the lines.

This module does not import Arrow, which takes long to load: the agent's settings import this module
even for commands that do not need Arrow.
"""

from __future__ import annotations

from typing import Final, Literal

from skidway.dataclass import dataclass

START: Final = "start"
CONTINUATION: Final = "continuation"
END: Final = "end"

TRACES: Final = {
    "java": (
        r"^\t|^[ \t]+at |^[ \t]+\.\.\. \d+ |^[ \t]*(?:Caused by|Suppressed|Wrapped by): "
        r"|^[ \t]*\[CIRCULAR REFERENCE|^ +[A-Z][a-z]+: "
        r"|^(?:[\w$]+\.)+[\w$]*(?:Exception|Error|Throwable)[\w$]*(?:: .*)?$"
    ),
    "python": (
        r"^[ \t]|^Traceback \(most recent call last\):$|^$"
        r"|^(?:During handling of the above exception|The above exception was the direct cause)"
        r"|^(?:\w+\.)*\w*(?:Error|Exception|Warning|Interrupt|Exit|StopIteration)(?:: .*)?$"
        r"|^(?:\w+\.)+[A-Z]\w*(?:: .*)?$"
        r"|^(?:DETAIL|HINT|CONTEXT|LINE \d+): |^\[(?:SQL|parameters|cached|generated)\b"
        r"|^\(Background on this error at: "
    ),
    "node": (
        r"^[ \t]|^$|^[}\])]+[,;]?$|^Node\.js v\d"
        r"|^(?:Uncaught |Caused by: )?[\w$]*(?:Error|Exception)(?: \[\w+\])?(?:: .*)?$"
    ),
    "go": (
        r"^goroutine \d+ .*:$|^[ \t]+\S+\.(?:go|s):\d+|^created by |^\[signal |^exit status \d+$|^$"
        r"|^[\w./*()\[\]{}%-]+\.[\w.*()\[\]{}-]+\(.*\)$|^panic\(.*\)$|^[ \t]+(?:panic: |/)"
    ),
    "ruby": r"^[ \t]+from |^[ \t]+\d+: from |^[ \t]*[^ \t:]+:\d+:in [`'][^']*'$",
    "dotnet": (
        r"^[ \t]|^---> |^--- End of |^(?:DETAIL|HINT): "
        r"|^(?:\w+\.)+\w*Exception(?: \(0x[0-9A-Fa-f]+\))?(?:: .*)?$"
    ),
    "indented": r"^[ \t]",
}
"""For each programming language: a pattern of the lines of a stack trace that belong to the line
before them. `indented` is no language: its pattern matches every line that begins with a blank."""

_MONTH: Final = r"(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]*\.?"
_DAY: Final = r"(?:(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)[a-z]*,? +)?"
_DATES: Final = (
    r"\d{4}[-/.:]\d\d?[-/.:]\d\d?",
    r"\d{4}-\d{3}",
    r"\d\d?\.?[-/ ](?:[A-Za-z]|[^\x00-\x7f])+\.?[-/ ]\d{4}",
    rf"{_DAY}\d\d?[-/.]\d\d?(?:[-/.]\d{{2,4}})?",
    rf"{_DAY}\d{{1,4}}\.?[-/ ]+{_MONTH}(?:[-/., ]+\d{{1,4}}){{0,2}}",
    rf"{_DAY}{_MONTH}(?:[-/., ]+\d{{1,4}}){{1,2}}",
    r"\d{6}|\d{8}",
)
_WHOLE_DATES: Final = (
    r"(?:\d{4}[-/.]\d\d[-/.]\d\d|\d\d?[-/.]\d\d?[-/.]\d{4})(?:[^\w.:/-]|$)"
    r"|\d{4}[^\x00-\x7f]+\d\d?[^\x00-\x7f]"
)
# there is only one way to match a text, because Python's re tries all
_MARKS: Final = r"(?:(?:[\[({<>\"'#*|]|[^\x00-\x7f]) ?)*"
_EPOCHS: Final = r"1\d{9}(?:\d{3}|\.\d+)?(?:[\s\])}>|,;]|$)"
TIMED: Final = (
    rf"(?:<\d+>\d* ?)?{_MARKS}(?:(?:{'|'.join(_DATES)})[T_:, -]+(?:at )?\d\d?[:.]\d\d"
    rf"|{_WHOLE_DATES}|{_EPOCHS}"
    r"|\d{6} \d{6} |\d{8}(?:T\d{4}|[ -]?\d{6})|[A-Z]\d{4} \d\d:\d\d:\d\d|\d\d?:\d\d(?:\W|$))"
)
"""A pattern of lines that begin with a time, in whichever form. If a program's records begin with a
time, such a line of another program is never a part of them."""


def beginning(start: str) -> str:
    """Returns the pattern of the first lines of records: `start`, which belongs to a format, or a
    time."""
    return f"^(?:(?:{start})|{TIMED})"


def own_beginning(pattern: str) -> str:
    """Returns the pattern of a format's own first lines, from which `beginning` made a pattern; if
    it made none, the pattern itself."""
    start = pattern.removeprefix("^(?:(?:").removesuffix(f")|{TIMED})")
    return f"^(?:{start})" if beginning(start) == pattern else pattern


@dataclass(frozen=True, slots=True)
class Rule:
    """How lines are joined. A recipe stores the rule. So the rule contains a pattern, not the name
    of a programming language: the language's pattern may differ in another version of the agent.
    """

    kind: Literal["start", "continuation", "end"]
    pattern: str
    lines_max: int
