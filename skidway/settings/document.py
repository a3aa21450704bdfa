"""Makes the tables of settings in the documents, and example files, from the settings classes. So
tables and files always agree with the classes."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from skidway.dataclass import dataclass
from skidway.settings.spec import REQUIRED, Kind, Shape, Spec, specs

COMMENT_COLUMNS = 98


@dataclass(frozen=True, slots=True)
class SettingDoc:
    """One row of a table of settings. A setting in a list of sections has a key like
    "sources[].topic"."""

    key: str
    type: str
    default: Any
    help: str

    @property
    def required(self) -> bool:
        """Whether the setting has no default."""
        return self.default is REQUIRED


def documented(cls: type[Any], prefix: str = "") -> list[SettingDoc]:
    """Returns every setting of a class. If a setting is a section (a nested settings class), the
    settings of the section follow it."""
    docs: list[SettingDoc] = []
    for key, spec in specs(cls).items():
        section = _section_of(spec.shape)
        default = spec.default
        if default is REQUIRED and spec.shape.kind is Kind.SECTION:
            default = None
        docs.append(SettingDoc(prefix + key, _type_text(spec), default, spec.help))
        if section is not None:
            mark = "[]." if spec.shape.kind is Kind.LIST else "."
            docs += documented(section, f"{prefix}{key}{mark}")
    return docs


def example(cls: type[Any], *, title: str = "", active: bool = False) -> str:
    """Returns an example file. Required settings are set; other settings are comments with their
    defaults.

    If `active` is True, the file also sets the other settings to their defaults, if these defaults
    can be written into a file.
    """
    head = [f"# {line}".rstrip() for line in textwrap.wrap(title, COMMENT_COLUMNS)]
    return "\n".join([*head, *([""] if head else []), *_lines(cls, active)]) + "\n"


def _lines(cls: type[Any], active: bool) -> Iterator[str]:
    for spec in specs(cls).values():
        words = f"{' '.join(spec.help.split())} ({_type_text(spec)})"
        yield from (f"# {line}" for line in textwrap.wrap(words, COMMENT_COLUMNS))
        body = list(_body(spec, active))
        stands = spec.default is REQUIRED or (active and _written_out(spec))
        yield from body if stands else (f"# {line}".rstrip() for line in body)
        yield ""


def _body(spec: Spec, active: bool) -> Iterator[str]:
    section = _section_of(spec.shape)
    nothing_said = spec.default is REQUIRED or not _writable(spec.default)
    if section is not None and (nothing_said or not spec.default) and spec.example is None:
        is_list = spec.shape.kind is Kind.LIST
        yield f"{spec.key}:"
        if is_list:
            yield "  -"
        inner = "\n".join(_lines(section, active)).rstrip()
        yield from textwrap.indent(inner, "    " if is_list else "  ").split("\n")
        return
    value = spec.default if spec.default is not REQUIRED and _writable(spec.default) else None
    shown = spec.example if value is None else value
    yield f"{spec.key}: {_yaml(shown)}".rstrip()


def _written_out(spec: Spec) -> bool:
    """Returns whether the default of the setting can be written into an example file. The default
    of a list of sections is not written there: the file shows an example section instead."""
    return _writable(spec.default) and _section_of(spec.shape) is None


def _writable(default: Any) -> bool:
    return default is not None and not hasattr(default, "__dataclass_fields__")


class _Dumper(yaml.SafeDumper):
    def ignore_aliases(self, data: Any) -> bool:
        return True


def yaml_text(value: Any, **options: Any) -> str:
    """Returns settings as YAML without anchors, which programs refuse: what occurs twice is written
    twice. options: as for yaml.dump."""
    return str(yaml.dump(value, Dumper=_Dumper, sort_keys=False, **options))


def _yaml(value: Any) -> str:
    if value is None:
        return ""
    text = yaml_text(_plain(value), default_flow_style=True, width=10_000)
    return text.removesuffix("\n").removesuffix("\n...")


def _plain(value: Any) -> Any:
    if isinstance(value, Path):
        return str(value)
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value


def _section_of(shape: Shape) -> type[Any] | None:
    inner = shape.item if shape.kind is Kind.LIST else shape
    return inner.type if inner is not None and inner.kind is Kind.SECTION else None


def _type_text(spec: Spec) -> str:
    parts = [_shape_text(spec.shape)]
    if spec.at_least is not None:
        parts.append(f"at least {spec.at_least}")
    if spec.at_most is not None:
        is_text = spec.shape.kind is Kind.SCALAR and spec.shape.type is str
        parts.append(f"at most {spec.at_most}{' characters' if is_text else ''}")
    if spec.default is REQUIRED and spec.shape.kind is not Kind.SECTION:
        parts.append("required")
    return ", ".join(parts)


def _shape_text(shape: Shape) -> str:
    if shape.choices:
        return " | ".join(str(choice) for choice in shape.choices)
    if shape.kind is Kind.LIST:
        assert shape.item is not None
        return f"list of {_shape_text(shape.item)}"
    if shape.kind is Kind.SECTION:
        return "section"
    if shape.kind is Kind.TEXTS:
        return "section of texts"
    names = {bool: "boolean", int: "integer", float: "number", str: "text", Path: "path"}
    return names[shape.type]
