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
        r"^[ \t]+at |^[ \t]+\.\.\. \d+ |^[ \t]*(?:Caused by|Suppressed): "
        r"|^[ \t]*\[CIRCULAR REFERENCE"
        r"|^(?:[\w$]+\.)+[\w$]*(?:Exception|Error|Throwable)[\w$]*(?:: .*)?$"
    ),
    "python": (
        r"^[ \t]|^Traceback \(most recent call last\):$|^$"
        r"|^(?:During handling of the above exception|The above exception was the direct cause)"
        r"|^(?:\w+\.)*\w*(?:Error|Exception|Warning|Interrupt|Exit|StopIteration)(?:: .*)?$"
        r"|^(?:\w+\.)+[A-Z]\w*(?:: .*)?$"
    ),
    "go": (
        r"^goroutine \d+ .*:$|^[ \t]+\S+\.(?:go|s):\d+|^created by |^\[signal |^exit status \d+$|^$"
        r"|^[\w./*()\[\]{}%-]+\.[\w.*()\[\]{}-]+\(.*\)$|^panic\(.*\)$|^[ \t]+(?:panic: |/)"
    ),
    "ruby": r"^[ \t]+from |^[ \t]+\d+: from |^[ \t]*[^ \t:]+:\d+:in [`'][^']*'$",
    "dotnet": (
        r"^[ \t]+at |^[ \t]*---> |^[ \t]*--- End of "
        r"|^(?:\w+\.)+\w*Exception(?: \(0x[0-9A-Fa-f]+\))?(?:: .*)?$"
    ),
    "indented": r"^[ \t]",
}
"""For each programming language: a pattern of the lines of a stack trace that belong to the line
before them. `indented` is no language: its pattern matches every line that begins with a blank."""


@dataclass(frozen=True, slots=True)
class Rule:
    """How lines are joined. A recipe stores the rule. So the rule contains a pattern, not the name
    of a programming language: the language's pattern may differ in another version of the agent.
    """

    kind: Literal["start", "continuation", "end"]
    pattern: str
    lines_max: int
