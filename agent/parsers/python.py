"""The parser `python`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from skidway.agent.layouts.layout import Layout
from skidway.agent.parsers.regex import Pattern

if TYPE_CHECKING:
    from skidway.agent.parsers.settings import ParserSettings


class PythonLogging(Pattern):
    """The format of Python's logging stands for a regular expression."""

    name = "python"
    help = "as the format of Python's logging says"
    settings = Pattern.settings | {"date_format"}
    takes_zone = True

    def layout(self, parser: ParserSettings) -> Layout:
        from skidway.agent.layouts import python_logging

        return python_logging.compiled(parser.pattern or "", parser.date_format)


PYTHON_LOGGING = PythonLogging()
