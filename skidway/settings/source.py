"""Reads YAML files and `--set KEY=VALUE` into a tree of scalars, lists and sections.

Every value is read as text; the type of the setting decides later what it means. Every node
contains its file and line ("agent.yml, line 3"), so that a later error can name them.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from skidway.dataclass import dataclass
from skidway.errors import ConfigurationRefused
from skidway.regular_file import open_regular
from skidway.text_file import NotUtf8, decoded

NULLS = frozenset({"", "~", "null", "Null", "NULL"})
FILE_BYTES_MAX = 1 << 20
"""A larger file is a mistake, not a configuration (for example, a log file given as --config)."""
VALUES_MAX = 20_000
"""A configuration has at most this many keys and values. With as many, reading it takes 20 MB, and
less than a second."""
TEXT_MAX = 65_536
"""A key or value has at most this many characters."""


@dataclass(frozen=True, slots=True)
class Scalar:
    """One value, as it is written in the file."""

    text: str
    quoted: bool
    at: str

    @property
    def is_null(self) -> bool:
        """Whether the value is written as null, or left empty."""
        return not self.quoted and self.text in NULLS


@dataclass(frozen=True, slots=True)
class Items:
    """A list."""

    nodes: tuple[Node, ...]
    at: str


@dataclass(frozen=True, slots=True)
class Section:
    """A mapping. Keys are in the order of the file, and may be flat ("log.dirs")."""

    entries: tuple[tuple[Scalar, Node], ...]
    at: str


Node = Scalar | Items | Section


def read_file(path: Path) -> Section:
    """Reads one configuration file. Raises ConfigurationRefused."""
    try:
        with open_regular(path) as file:
            data = file.read(FILE_BYTES_MAX + 1)
    except OSError as error:
        raise ConfigurationRefused(
            f"cannot read the configuration {path}: {(error.strerror or str(error)).lower()}"
        ) from error
    return read_data(data, str(path))


def read_data(data: bytes, name: str) -> Section:
    """Reads the content of a configuration file. Raises ConfigurationRefused."""
    if len(data) > FILE_BYTES_MAX:
        raise ConfigurationRefused(f"{name}: a configuration has at most 1 MiB")
    try:
        node = parse(decoded(data), name)
    except NotUtf8 as error:
        raise ConfigurationRefused(f"{name}: {error}; a configuration is YAML in UTF-8") from error
    if isinstance(node, Scalar) and node.is_null:
        return Section((), name)
    if not isinstance(node, Section):
        raise ConfigurationRefused(f"{name}: a configuration is a list of `key: value` lines")
    return node


def text_of(section: Section, key: str) -> str | None:
    """Returns the value of one key, flat or nested, as text. Returns None if the key is missing, or
    if its value is not a scalar."""
    found = None
    for name, node in section.entries:
        if name.text == key and isinstance(node, Scalar) and not node.is_null:
            found = node.text
        elif isinstance(node, Section) and key.startswith(f"{name.text}."):
            below = text_of(node, key.removeprefix(f"{name.text}."))
            found = found if below is None else below
    return found


def read_override(override: str) -> Section:
    """Reads one KEY=VALUE. A value that is [..], {..} or quoted is read as YAML. Any other value is
    taken literally."""
    key, equals, value = override.partition("=")
    key, value = key.strip(), value.strip()
    at = f"--set {override}"
    if not equals or not key:
        raise ConfigurationRefused(f"{at}: it must be KEY=VALUE")
    node: Node = _scalar(value, at, quoted=False)
    if value[:1] in ("[", "{", "'", '"'):
        node = parse(value, at, lines=False)
    return Section(((_scalar(key, at, quoted=False), node),), at)


def parse(text: str, name: str, *, lines: bool = True) -> Node:
    """Reads YAML. name: what to call the text in errors. lines: whether errors and nodes name
    lines. Raises ConfigurationRefused."""
    try:
        node = yaml.compose(text, Loader=_Loader)
        return Scalar("", quoted=False, at=name) if node is None else _node(node, name, lines)
    except _Refused as error:
        at = f"{name}, line {error.args[0]}" if lines else name
        raise ConfigurationRefused(f"{at}: {error.args[1]}") from error
    except yaml.YAMLError as error:
        raise ConfigurationRefused(_syntax(error, name, lines)) from error
    except RecursionError as error:
        raise ConfigurationRefused(f"{name}: nested too deeply") from error
    except (ValueError, OverflowError) as error:  # an escape such as "\UFFFFFFFF"
        raise ConfigurationRefused(f"{name}: this is not YAML: it has no such character") from error


class _Loader(yaml.SafeLoader):
    """Refuses what makes a small text a large tree: anchors and aliases, and too many values."""

    count = 0

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        event = self.peek_event()  # type: ignore[no-untyped-call]
        if isinstance(event, yaml.AliasEvent) or event.anchor is not None:
            raise _Refused(event.start_mark.line + 1, _NO_ALIASES)
        self.count += 1
        if self.count > VALUES_MAX:
            raise _Refused(event.start_mark.line + 1, _TOO_MANY)
        return super().compose_node(parent, index)


class _Refused(Exception):
    """Raised with the number of a line, and what is refused there."""


_NO_ALIASES = (
    "settings have no anchors (&) and aliases (*); write the value itself, and put a text that"
    " begins with & or * into quotes"
)
_TOO_MANY = f"a configuration has at most {VALUES_MAX:,} keys and values"


def _node(node: yaml.Node, name: str, lines: bool) -> Node:
    at = f"{name}, line {node.start_mark.line + 1}" if lines else name
    if isinstance(node, yaml.ScalarNode):
        return _scalar(node.value, at, quoted=node.style is not None)
    if isinstance(node, yaml.SequenceNode):
        return Items(tuple(_node(item, name, lines) for item in node.value), at)
    if not isinstance(node, yaml.MappingNode):
        raise ConfigurationRefused(f"{at}: neither a value, a list nor a section")
    entries = []
    for key_node, value_node in node.value:
        key = _node(key_node, name, lines)
        if not isinstance(key, Scalar):
            raise ConfigurationRefused(f"{at}: a key must be a plain word")
        if not key.text.isprintable():  # sentences have keys as they are
            said = f"{key.at}: {key.text[:100]!r} is no key: it is not printable"
            raise ConfigurationRefused(said)
        entries.append((key, _node(value_node, name, lines)))
    return Section(tuple(entries), at)


def _scalar(text: str, at: str, *, quoted: bool) -> Scalar:
    """Refuses a text that is too long, or that cannot be written as UTF-8: YAML and a command can
    have half of a surrogate pair."""
    if len(text) > TEXT_MAX:
        raise ConfigurationRefused(f"{at}: a key or value has at most {TEXT_MAX:,} characters")
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ConfigurationRefused(f"{at}: {text[:100]!r} is no text in UTF-8") from None
    return Scalar(text, quoted, at)


def _syntax(error: yaml.YAMLError, name: str, lines: bool) -> str:
    mark = getattr(error, "problem_mark", None)
    problem = getattr(error, "problem", None) or "not readable"
    if mark is None or not lines:
        return f"{name}: this is not YAML: {problem}"
    return f"{name}, line {mark.line + 1}, column {mark.column + 1}: this is not YAML: {problem}"
