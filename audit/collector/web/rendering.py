"""The templates, the style sheet and the script of the pages."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from importlib import resources
from typing import Any

import jinja2

from skidway.audit.collector.pages import words
from skidway.printable import printable

_FOLDER = resources.files("skidway.audit.collector.web").joinpath("templates")
STYLE = _FOLDER.joinpath("style.css").read_text("utf-8")
SCRIPT = _FOLDER.joinpath("live.js").read_text("utf-8")

ROOMS = (
    ("/", "Overview"),
    ("/topics", "Topics"),
    ("/hosts", "Hosts"),
    ("/loads", "Loads"),
    ("/mirrors", "Mirrors"),
    ("/rejects", "Rejects"),
)
_WIDTH, _HEIGHT = 96, 20


def _versioned(path: str, content: str) -> str:
    """Returns the address of a file. The address contains a hash of the file's content. So a
    changed file has a new address, and browsers do not take the old file from their caches.
    """
    return f"{path}?{zlib.crc32(content.encode()):08x}"


class Pages:
    """Renders the pages from templates. insecure: what other hosts reach without authentication;
    each page names it in its head."""

    def __init__(self, insecure: Sequence[str] = ()) -> None:
        self._insecure = insecure
        templates = {
            entry.name: entry.read_text("utf-8")
            for entry in _FOLDER.iterdir()
            if entry.name.endswith(".html")
        }
        self._templates = jinja2.Environment(
            loader=jinja2.DictLoader(templates),
            autoescape=True,
            undefined=jinja2.StrictUndefined,
            finalize=_shown,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        filters = {
            "moment": words.moment,
            "clock": words.clock,
            "size": words.size,
            "duration": lambda ms: words.duration(ms / 1000),
            "number": "{:,}".format,
            "line": line,
        }
        self._templates.filters.update(filters)

    def render(self, template: str, content: dict[str, Any]) -> str:
        """Returns the page as HTML. template: the name of its template."""
        common = {
            "rooms": ROOMS,
            "insecure": self._insecure,
            "glyphs": words.GLYPHS,
            "meanings": words.MEANINGS,
            "style": _versioned("/style.css", STYLE),
            "script": _versioned("/live.js", SCRIPT),
        }
        return self._templates.get_template(template).render(common | content)


def _shown(value: object) -> object:
    """What a template inserts: a text without control characters, because pages also reach
    terminals."""
    return printable(value) if type(value) is str else value


def line(points: Sequence[float]) -> str:
    """Returns the points of an SVG polyline in a box of 96 x 20, with the greatest value at the
    top.
    """
    most, step = max(points, default=0.0) or 1.0, _WIDTH / max(len(points) - 1, 1)
    at = (
        (index * step, _HEIGHT - 1 - value / most * (_HEIGHT - 2))
        for index, value in enumerate(points)
    )
    return " ".join(f"{x:.1f},{y:.1f}" for x, y in at)
