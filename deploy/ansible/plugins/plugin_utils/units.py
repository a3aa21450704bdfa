"""Makes systemd drop-ins (files that change some settings of a unit)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from .settings import Settings

ENVIRONMENT = "Environment"
"""A key of the section [Service]. If this key is set several times, systemd uses all of its values.
Of most other keys, systemd uses only the last value."""


def unit_text(sections: Mapping[str, Mapping[str, Any]]) -> str:
    """Returns the text of a systemd drop-in with these sections ({section: {key: value}}). If a
    value is a list, each item gets a line of its own, with the key."""
    lines = []
    for section, entries in sections.items():
        lines += ["", f"[{section}]"]
        for key, value in entries.items():
            values = value if isinstance(value, list | tuple) else [value]
            lines += [f"{key}={_systemd(each)}" for each in values]
    return "\n".join(lines)


def protect_home(*named: Any) -> str:
    """Returns how a unit protects home directories if these values, or values in them, name paths
    that it has to read: "" if the unit may hide all of them, as it does by itself."""
    return "read-only" if any(_HOME.search(text) for text in _strings(named)) else ""


def environment(variables: Mapping[str, Any]) -> list[str]:
    """Returns one value of the key `Environment` for each variable, quoted for systemd."""
    return [f'"{name}={_quoted(str(value))}"' for name, value in variables.items()]


def set_options(settings: Mapping[str, Any]) -> str:
    """Returns settings as the words of a command line, `--set KEY=VALUE`, without those that have
    no value."""
    given = {key: value for key, value in settings.items() if value not in (None, "")}
    return " ".join(f"--set {key}={value}" for key, value in given.items())


def drop_in(given: Mapping[str, Mapping[str, Any]], **service: Any) -> Settings:
    """Returns the sections of a service's drop-in: the entries in `given` override the entries that
    the role derives (`service`).

    The environment variables in `given` come after the derived variables, because systemd uses the
    last value if a variable has two values.
    """
    derived = {key: value for key, value in service.items() if value not in (None, "", [])}
    sections = {name: dict(entries) for name, entries in given.items()}
    entries = sections.get("Service", {})
    both = [*_listed(derived.get(ENVIRONMENT)), *_listed(entries.get(ENVIRONMENT))]
    sections["Service"] = derived | entries | ({ENVIRONMENT: both} if both else {})
    return {name: entries for name, entries in sections.items() if entries}


_HOME = re.compile(
    r"(?<![\w.*/-])/(?:home|root|run/user|[^/\s'\"]*[*?\[{][^/\s]*)(?:[/\s'\",\]]|$)"
)
"""A path below a home directory, or a pattern that also matches such paths."""


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, Mapping):
        value = list(value.values())
    if isinstance(value, list | tuple):
        for each in value:
            yield from _strings(each)
    elif value is not None:
        yield str(value)


def _quoted(value: str) -> str:
    """Escapes the special characters of a quoted word: `\\`, `"`, and the `%` of specifiers."""
    for each in ("\\", '"'):
        value = value.replace(each, f"\\{each}")
    return value.replace("%", "%%")


def _listed(value: Any) -> list[Any]:
    if value in (None, ""):
        return []
    return list(value) if isinstance(value, list | tuple) else [value]


def _systemd(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "" if value is None else str(value)
