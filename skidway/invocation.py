"""How this program was started, so that other programs can print commands about it that run as they
are printed: with its unit and its user, its configuration file, or the options that stand in for
the file.
"""

from __future__ import annotations

import grp
import os
import pwd
import re
import shlex
import shutil
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from skidway import systemd
from skidway.dataclass import dataclass
from skidway.settings import DEFAULT_DIRECTORY

COMMAND: Final = "skidway"
_CGROUP: Final = Path("/proc/self/cgroup")
_MAIN_PROCESS: Final = "SYSTEMD_EXEC_PID"
"""The variable by which systemd (from 248 on) names the process that it has started for a unit."""
_INSTALLED: Final = re.compile(r"/opt/skidway/current/([a-z]+)/bin/skidway")
_NAME: Final = r"[A-Za-z0-9_][A-Za-z0-9_.-]*"
_RUNNER: Final = re.compile(rf"runuser --pty -u {_NAME}( -g {_NAME}( -G {_NAME})*)?")
_OPTIONS: Final = ("--config", "--set")
_WORDS_MAX, _TEXT_MAX = 64, 4096
_VERB: Final = re.compile(r"([a-z-]+ [a-z-]+)?")
_UNIT: Final = re.compile(r"[A-Za-z0-9@:._-]*")


@dataclass(frozen=True, slots=True)
class Invocation:
    """How a program was started. call: the words that run `skidway` on the program's host, as the
    program's user. verb: the noun and verb of its command line, for example "agent run"; empty if
    this is not known. options: its options --config and --set. unit: its systemd unit; empty if it
    has none. directory: where it was started, if its options name paths relative to this directory;
    else empty.
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
    unit = _unit() if _is_started_by_systemd() else ""
    runner = _runner() if unit else ()
    return of_arguments(sys.argv, unit=unit, directory=os.getcwd(), runner=runner)


def of_arguments(
    argv: Sequence[str], *, unit: str, directory: str, runner: Sequence[str] = ()
) -> Invocation:
    """Returns the invocation of a process with these arguments. If the first two words are no noun
    and verb of `skidway`, nothing is known. The option --config is left out if it names the file
    that the verbs of its noun read anyway. runner: the words that run a command as the user of the
    unit. If a person runs an installed program with the settings of its unit, the invocation is
    that of the unit: the person may be another user, whose files the unit could not write."""
    noun_verb = tuple(argv[1:3])
    if len(noun_verb) < 2 or any(x.startswith("-") for x in noun_verb):
        return Invocation(unit=unit)
    verb, options = " ".join(noun_verb), tuple(_options(argv[3:]))
    if options == ("--config", str(DEFAULT_DIRECTORY / f"{noun_verb[0]}.yml")):
        options = ()
    found = _INSTALLED.fullmatch(argv[0])
    if found and not unit and not options and noun_verb[1] == "run":
        return replace(installed(found[1]), verb=verb)
    is_relative = any(
        name == "--set" or not Path(value).is_absolute()
        for name, value in zip(options[::2], options[1::2], strict=True)
    )
    here = directory if is_relative and not unit else ""
    return Invocation(_call(argv[0], unit, runner), verb, options, unit, here)


def installed(program: str) -> Invocation:
    """Returns how the unit of a program runs it (see skidway.units)."""
    name = f"skidway-{program}"
    call = f"runuser --pty -u {name} -- /opt/skidway/current/{program}/bin/{COMMAND}"
    return Invocation(call, unit=name)


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
    if "--" in words:
        end = words.index("--")
        if not _RUNNER.fullmatch(" ".join(words[:end])):
            return False
        words = words[end + 1 :]
    is_module = len(words) == 3 and words[1] == "-m" and words[2] == COMMAND
    return is_module or (len(words) == 1 and Path(words[0]).name == COMMAND)


def _options(arguments: Sequence[str]) -> Iterable[str]:
    left = iter(arguments)
    for word in left:
        name, equals, value = word.partition("=")
        if name in _OPTIONS:
            yield name
            yield value if equals else next(left, "")


def _call(path: str, unit: str, runner: Sequence[str]) -> str:
    """Returns the words that run `skidway` from a shell as this process runs it. The shell of a
    person who reads about a unit is not that of the unit: it may have another `skidway` on its
    PATH, or none."""
    own = Path(sys.executable).parent
    found = shutil.which(COMMAND)
    if not unit and found is not None and Path(found).parent == own:
        return COMMAND
    if Path(path).name == COMMAND:
        return shlex.join([*runner, os.path.abspath(path)])
    if Path(path).parts[-2:] in ((COMMAND, "__main__.py"), ("cli", "__main__.py")):
        return shlex.join([*runner, sys.executable, "-m", COMMAND])
    return COMMAND  # another program calls our code


def _is_started_by_systemd() -> bool:
    """Whether this process belongs to a unit of its own, and is no child of a service such as cron.
    A unit of Type=oneshot has no socket for notifications; an older systemd names no process."""
    is_main = os.environ.get(_MAIN_PROCESS) == str(os.getpid())
    return is_main or systemd.ENVIRONMENT in os.environ


def _runner() -> tuple[str, ...]:
    """Returns the words that run a command as the user and with the groups of this process; none
    for root, who needs none, and for a user without a name. Only groups that the user has from its
    unit are named, because `runuser` gives the others anyway. The command gets a terminal of its
    own: into that of root, a program of the user could put what root's shell then runs."""
    try:
        user = pwd.getpwuid(os.geteuid())
        own = os.getgrouplist(user.pw_name, os.getegid())
        if not user.pw_uid:
            return ()
        words = ["runuser", "--pty", "-u", user.pw_name]
        if more := sorted({*os.getgroups()} - {*own}):
            words += ["-g", grp.getgrgid(os.getegid()).gr_name]
            others = [x for x in own if x != os.getegid()]
            words += [x for gid in (*others, *more) for x in ("-G", grp.getgrgid(gid).gr_name)]
    except KeyError:
        return ()
    return *words, "--"


def _unit() -> str:
    try:
        lines = _CGROUP.read_text().splitlines()
    except OSError:
        return ""
    names = [line.rpartition("/")[2] for line in lines]
    return next((x.removesuffix(".service") for x in names if x.endswith(".service")), "")
