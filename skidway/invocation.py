"""How this program was started, so that other programs can print commands about it that run as they
are printed: with its unit, its configuration file, or the options that stand in for the file.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from skidway import systemd
from skidway.dataclass import dataclass
from skidway.settings import DEFAULT_DIRECTORY

COMMAND: Final = "skidway"
_CGROUP: Final = Path("/proc/self/cgroup")
_OPTIONS: Final = ("--config", "--set")
_WORDS_MAX, _TEXT_MAX = 64, 4096
_VERB: Final = re.compile(r"([a-z-]+ [a-z-]+)?")
_UNIT: Final = re.compile(r"[A-Za-z0-9@:._-]*")


@dataclass(frozen=True, slots=True)
class Invocation:
    """How a program was started. call: the words that run `skidway` on the program's host. verb:
    the noun and verb of its command line, for example "agent run"; empty if this is not known.
    options: its options --config and --set. unit: its systemd unit; empty if it has none.
    directory: where it was started, if its options name paths relative to this directory; else
    empty.
    """

    call: str = COMMAND
    verb: str = ""
    options: tuple[str, ...] = ()
    unit: str = ""
    directory: str = ""

    def command(self, verb: str, *words: str) -> str:
        """Returns a command line that runs another verb with the settings of this program. words:
        further words of the command line, which come before the options."""
        line = " ".join([self.call, verb, *map(shlex.quote, (*words, *self.options))])
        return f"cd {shlex.quote(self.directory)} && {line}" if self.directory else line

    def start(self) -> str:
        """Returns the command line that starts the program again."""
        return f"systemctl start {self.unit}" if self.unit else self.command(self.verb)


def of_this_process() -> Invocation:
    """Returns how this process was started."""
    unit = _unit() if systemd.ENVIRONMENT in os.environ else ""
    return of_arguments(sys.argv, unit=unit, directory=os.getcwd())


def of_arguments(argv: Sequence[str], *, unit: str, directory: str) -> Invocation:
    """Returns the invocation of a process with these arguments. If the first two words are no noun
    and verb of `skidway`, nothing is known. The option --config is left out if it names the file
    that the verbs of its noun read anyway."""
    noun_verb = tuple(argv[1:3])
    if len(noun_verb) < 2 or any(x.startswith("-") for x in noun_verb):
        return Invocation(unit=unit)
    options = tuple(_options(argv[3:]))
    if options == ("--config", str(DEFAULT_DIRECTORY / f"{noun_verb[0]}.yml")):
        options = ()
    is_relative = any(
        name == "--set" or not Path(value).is_absolute()
        for name, value in zip(options[::2], options[1::2], strict=True)
    )
    here = directory if is_relative and not unit else ""
    return Invocation(_call(argv[0], unit), " ".join(noun_verb), options, unit, here)


def record_of(found: Invocation) -> dict[str, Any]:
    """Returns an invocation as a JSON object."""
    return {
        "call": found.call, "verb": found.verb, "options": list(found.options),
        "unit": found.unit, "directory": found.directory,
    }  # fmt: skip


def invocation_of(record: Any) -> Invocation:
    """Returns the invocation in a JSON object. What is missing or has another form is not known."""
    if not isinstance(record, Mapping):
        return Invocation()
    texts = {name: record.get(name) for name in ("call", "verb", "unit", "directory")}
    options = record.get("options")
    if not isinstance(options, list) or len(options) > _WORDS_MAX:
        return Invocation()
    if not all(isinstance(x, str) and len(x) <= _TEXT_MAX for x in (*texts.values(), *options)):
        return Invocation()
    call, verb, unit, directory = (str(x) for x in texts.values())
    if not (_is_call(call) and _VERB.fullmatch(verb) and _UNIT.fullmatch(unit)):
        return Invocation()
    return Invocation(call, verb, tuple(options), unit, directory)


def _is_call(call: str) -> bool:
    """Whether the words run `skidway` and nothing else. People copy them into shells, and whoever
    may write to the audit topic can send them."""
    try:
        words = shlex.split(call)
    except ValueError:
        return False
    if shlex.join(words) != call:
        return False
    is_module = len(words) == 3 and words[1] == "-m" and words[2] == COMMAND
    return is_module or (len(words) == 1 and Path(words[0]).name == COMMAND)


def _options(arguments: Sequence[str]) -> Iterable[str]:
    left = iter(arguments)
    for word in left:
        name, equals, value = word.partition("=")
        if name in _OPTIONS:
            yield name
            yield value if equals else next(left, "")


def _call(path: str, unit: str) -> str:
    """Returns the words that run `skidway` from a shell as this process runs it. Operators of units
    have `skidway` on their PATH."""
    own = Path(sys.executable).parent
    found = shutil.which(COMMAND)
    if unit or (found is not None and Path(found).parent == own):
        return COMMAND
    if Path(path).name == COMMAND:
        return shlex.quote(os.path.abspath(path))
    if Path(path).parts[-2:] in ((COMMAND, "__main__.py"), ("cli", "__main__.py")):
        return f"{shlex.quote(sys.executable)} -m {COMMAND}"
    return COMMAND  # another program calls our code


def _unit() -> str:
    """Returns the systemd service in whose control group this process is; "" if there is none."""
    try:
        lines = _CGROUP.read_text().splitlines()
    except OSError:
        return ""
    names = [line.rpartition("/")[2] for line in lines]
    return next((x.removesuffix(".service") for x in names if x.endswith(".service")), "")
