"""The settings of a program are one frozen class, which has every key with its default, its bounds
and its help text.

    @dataclass(frozen=True, slots=True, kw_only=True)
    class BrokerSettings:
        log_dirs: Path = setting("log.dirs", help="Directory of the partitions.")
        segment_bytes: int = setting("log.segment.bytes", 1 << 30, help="...", at_least=1024)

        def check(self) -> None: ...

    settings = load(BrokerSettings, args.config, args.set, program="broker")

Settings come from three sources: the defaults of the class, one YAML file, and `--set KEY=VALUE`.
Later sources override earlier ones. Keys may be flat or nested at any depth. For example,
`log.dirs: x` means the same as `log: {dirs: x}`. Any mistake raises ConfigurationRefused with one
sentence that names file, line and key, as far as the mistake has them; for an unknown key the
sentence also names the most similar known key. This package reads no environment variable.

The YAML is read as a tree of scalars with their line numbers, not as Python objects. The type of
the setting decides what a scalar means, so a cluster called `no` or a password `0123` stays as it
was written. The type of a setting may be bool, int, float, str, Path or Literal. The type may also
be a list of these types. Such a list may be written as one comma-separated scalar, as in Kafka. A
setting's type may also be a settings class, a list of settings classes, or dict[str, str]. Each of
these types may also allow None (`int | None`). If a settings class has a method `check(self)`, the
method is called when all values are known. The method may raise ConfigurationRefused for settings
that do not fit together.

Reading order: source (text to tree), spec (class to table of keys), gathering (tree to keys),
conversion (keys to an instance), document (tables and example files for people).
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from pathlib import Path
from typing import TypeVar

from skidway.errors import ConfigurationRefused
from skidway.settings.conversion import build
from skidway.settings.document import SettingDoc, documented, example
from skidway.settings.gathering import Tree, gather, merge
from skidway.settings.source import Scalar, read_data, read_file, read_override, text_of
from skidway.settings.spec import REQUIRED, beside, setting, specs

__all__ = [
    "REQUIRED", "SettingDoc", "beside", "documented", "example", "load", "load_data", "load_part",
    "path_of", "peek", "setting",
]  # fmt: skip

DEFAULT_DIRECTORY = Path("/etc/skidway")

T = TypeVar("T")


def load(
    cls: type[T],
    config: Path | None,
    overrides: Sequence[str] = (),
    *,
    program: str | None = None,
    directory: Path = DEFAULT_DIRECTORY,
) -> T:
    """Makes an instance of the settings class `cls` from its defaults, the file and the overrides.
    Raises ConfigurationRefused if the file cannot be read, or if the settings contain a mistake.

    Without `config` the file is `<directory>/<program>.yml`, if `program` is given and the file
    exists. A file that `config` names must exist.
    """
    path = path_of(config, program, directory)
    tree: Tree = {} if path is None else gather(cls, read_file(path))
    for override in overrides:
        merge(tree, gather(cls, read_override(override)))
    return build(cls, tree, where=_where(path, program, directory))


def load_part(
    cls: type[T],
    config: Path | None,
    overrides: Sequence[str] = (),
    *,
    program: str | None = None,
    directory: Path = DEFAULT_DIRECTORY,
) -> T:
    """Does the same as `load` with a class that has only some of the program's settings, all of
    them single values. The file's other keys are for the program itself to check."""
    path = path_of(config, program, directory)
    tree: Tree = {}
    if path is not None:
        file = read_file(path)
        found = {key: text_of(file, key) for key in specs(cls)}
        tree = {
            key: Scalar(text, quoted=True, at=str(path))
            for key, text in found.items()
            if text is not None
        }
    for override in overrides:
        merge(tree, gather(cls, read_override(override)))
    return build(cls, tree, where=_where(path, program, directory))


def load_data(cls: type[T], data: bytes, name: str) -> T:
    """Makes an instance of the settings class `cls` from its defaults and the content of a file.
    name: what to call the file in errors. Raises ConfigurationRefused."""
    return build(cls, gather(cls, read_data(data, name)), where=name)


def peek(
    key: str,
    config: Path | None,
    overrides: Sequence[str] = (),
    *,
    program: str | None = None,
    directory: Path = DEFAULT_DIRECTORY,
) -> str | None:
    """Reads the value of one key as text, even if `load` refuses other keys. Returns None if
    neither the file nor an override gives the key a scalar value, for example because the file
    cannot be read. A program whose configuration is refused uses this function to find out where to
    report the refusal.
    """
    found = None
    path = path_of(config, program, directory)
    if path is not None:
        with contextlib.suppress(ConfigurationRefused):
            found = text_of(read_file(path), key)
    for override in overrides:
        with contextlib.suppress(ConfigurationRefused):
            found = text_of(read_override(override), key) or found
    return found


def path_of(
    config: Path | None, program: str | None, directory: Path = DEFAULT_DIRECTORY
) -> Path | None:
    """Returns the file that `load` reads with the same arguments; None if `load` reads no file."""
    if config is None and program is not None and (directory / f"{program}.yml").exists():
        return directory / f"{program}.yml"
    return config


def _where(path: Path | None, program: str | None, directory: Path) -> str:
    if path is not None:
        return str(path)
    if program is None:
        return "the settings"
    return f"the settings (no --config is given, and {directory / program}.yml is not here)"
