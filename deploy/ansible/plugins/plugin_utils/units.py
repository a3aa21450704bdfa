"""Drop-ins of systemd."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .settings import Settings


def unit_text(sections: Mapping[str, Mapping[str, Any]]) -> str:
    """A drop-in of systemd from {section: {key: value}}; a list is the same key several times."""
    lines = []
    for section, entries in sections.items():
        lines += ["", f"[{section}]"]
        for key, value in entries.items():
            values = value if isinstance(value, list | tuple) else [value]
            lines += [f"{key}={_systemd(each)}" for each in values]
    return "\n".join(lines)


def environment(variables: Mapping[str, Any]) -> list[str]:
    """Values of `Environment=`: one assignment each, as systemd reads it back."""
    return [f'"{name}={_quoted(str(value))}"' for name, value in variables.items()]


def drop_in(given: Mapping[str, Mapping[str, Any]], **service: Any) -> Settings:
    """The sections of a service's drop-in: what the role derives, and over it what was given."""
    derived = {key: value for key, value in service.items() if value not in (None, "", [])}
    sections = {name: dict(entries) for name, entries in given.items()}
    sections["Service"] = derived | sections.get("Service", {})
    return {name: entries for name, entries in sections.items() if entries}


def _quoted(value: str) -> str:
    """Without what means something in a quoted word: `\\`, `"`, and `%` of specifiers."""
    for each in ("\\", '"'):
        value = value.replace(each, f"\\{each}")
    return value.replace("%", "%%")


def _systemd(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "" if value is None else str(value)
