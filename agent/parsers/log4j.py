"""The parser `log4j`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from skidway.agent.layouts.layout import Layout
from skidway.agent.parsers.regex import Pattern

if TYPE_CHECKING:
    from skidway.agent.parsers.settings import ParserSettings


class Log4j(Pattern):
    """The conversion pattern of log4j or Logback stands for a regular expression."""

    name = "log4j"
    help = "as the program's conversion pattern says (log4j, Logback)"
    takes_zone = True

    def layout(self, parser: ParserSettings) -> Layout:
        from skidway.agent.layouts import log4j

        return log4j.compiled(parser.pattern or "")


LOG4J = Log4j()
