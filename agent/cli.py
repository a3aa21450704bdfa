"""`skidway agent run | reload | drain | validate | guess | formats | test | count |
install-snippet | replay | replayed | state show | adopt | give-up`.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import signal
import sys
import threading
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from skidway import log, machine_id, service
from skidway.cli.moments import parse_duration
from skidway.cli.options import (
    add_config_options,
    add_json_option,
    add_timeout_option,
)
from skidway.cli.output import print_json, table
from skidway.errors import ConfigurationRefused, SkidwayError, UsageError
from skidway.state_owner import become_owner
from skidway.text_file import NotUtf8, read_text

PROGRAM = "agent"
LINES = 1_000
RESULTS = 20
RELOAD_S = 60.0
"""How many seconds `reload` waits for the agent's answer by default."""

DRAIN_S = 60.0
"""How many seconds `drain` may take by default."""


def register(subparsers: Any) -> None:
    """Adds the command `agent` with its subcommands."""
    from skidway.agent import memory

    # The imports below read these environment variables. NumPy's library for matrices would start a
    # thread for each core, and each idle thread would use CPU time while it waits for work. The
    # agent multiplies no matrices.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    # Arrow's own allocator would keep freed memory that `memory.give_back` could not give back.
    os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")
    memory.collect_seldom()
    from skidway.agent.settings import AgentSettings

    noun = subparsers.add_parser(
        PROGRAM, help="tail log files of this host and publish them", description=__doc__
    )
    verbs = noun.add_subparsers(dest="verb", metavar="VERB")
    run = verbs.add_parser("run", help="tail and publish, in the foreground")
    add_config_options(run, AgentSettings)
    run.set_defaults(run=_run)
    words = (
        "make the running agent take its settings anew, and say what changed, or why nothing did"
    )
    reload = verbs.add_parser("reload", help=words, description=f"{words}.")
    add_config_options(reload)
    add_timeout_option(reload, f"how long to wait for the answer ({RELOAD_S:.0f})", RELOAD_S)
    reload.set_defaults(run=_reload)
    words = "deliver what the files hold and say the last word, before the host leaves for good"
    draining = verbs.add_parser(
        "drain",
        help=words,
        description=f"{words[:1].upper()}{words[1:]}. First stop the agent, and what writes the"
        " logs; run this as the agent's user. An agent that is started again later goes on.",
    )
    add_config_options(draining)
    add_timeout_option(draining, f"({DRAIN_S:.0f})", DRAIN_S)
    draining.set_defaults(run=_drain)
    words = "say whether a configuration can be run, and which of its files' lines would not fit"
    validate = verbs.add_parser("validate", help=words, description=f"{words}.")
    add_config_options(validate, AgentSettings)
    add_json_option(validate)
    validate.add_argument(
        "--lines",
        type=int,
        default=LINES,
        metavar="N",
        help=f"how many of each file's first and last lines are tried; 0: none ({LINES})",
    )
    words = "end with 1 if a pattern does nothing, or a path cannot be read (the lines with !)"
    validate.add_argument("--strict", action="store_true", help=words)
    validate.set_defaults(run=_validate)
    words = "propose how an unknown log is read: format, time, and the block for agent.yml"
    guessing = verbs.add_parser("guess", help=words, description=f"{words}.")
    guessing.add_argument("file", type=Path, metavar="FILE")
    words = f"how many of the first lines are tried ({LINES})"
    guessing.add_argument("--lines", type=int, default=LINES, metavar="N", help=words)
    words = "how the file's lines are encoded, if guess does not find it out: windows-1252, utf-16"
    guessing.add_argument("--encoding", metavar="NAME", help=words)
    guessing.add_argument("--schema", action="store_true", help="print only the rows' schema")
    add_json_option(guessing)
    guessing.set_defaults(run=_guess)
    words = "list the formats that a source can name"
    listing = verbs.add_parser("formats", help=words, description=f"{words}.")
    listing.add_argument("name", nargs="?", metavar="NAME", help="show this format")
    add_json_option(listing)
    listing.set_defaults(run=_formats)
    words = "show which rows and rejects the lines of a file would become"
    testing = verbs.add_parser("test", help=words, description=f"{words}.")
    testing.add_argument("file", type=Path, metavar="FILE")
    add_config_options(testing)
    testing.add_argument("--topic", help="the source; by default the one whose paths match FILE")
    words = f"how many results the table has ({RESULTS}); --json prints and --expect compares all"
    testing.add_argument("--limit", type=int, default=RESULTS, metavar="N", help=words)
    words = "file with the expected results, as --json prints them; status 1 if they differ"
    testing.add_argument("--expect", type=Path, metavar="RESULTS", help=words)
    add_json_option(testing)
    testing.set_defaults(run=_test)
    _register_count(verbs)
    words = "print the commands that install the agent on a host without Ansible"
    installing = verbs.add_parser("install-snippet", help=words, description=words)
    installing.add_argument(
        "--wheels",
        type=Path,
        default=Path("wheels"),
        metavar="DIR",
        help="directory that `make wheels` made, as the host has it (./wheels)",
    )
    installing.set_defaults(run=_install_snippet)
    words = "send repaired lines, each once, through the agent of this host"
    replay = verbs.add_parser(
        "replay",
        help=words,
        description=f"{words}. The source of their topic needs replay: true.",
    )
    words = "what skidway rejected export wrote, with repaired lines; or - for stdin"
    replay.add_argument("file", metavar="FILE", help=words)
    words = "also replay lines that the source would reject again"
    replay.add_argument("--also-unfit", action="store_true", help=words)
    add_config_options(replay)
    replay.set_defaults(run=_replay)
    words = (
        "count the rejected lines of a topic, and how many were replayed on this host, by reason"
    )
    counting = verbs.add_parser("replayed", help=words, description=f"{words}.")
    counting.add_argument("topic", metavar="TOPIC")
    add_config_options(counting)
    add_json_option(counting)
    counting.set_defaults(run=_replayed)
    state = verbs.add_parser("state", help="the agent's state")
    state_verbs = state.add_subparsers(dest="state_verb", metavar="VERB", required=True)
    show = state_verbs.add_parser("show", help="what became of every byte, file by file")
    add_config_options(show)
    add_json_option(show)
    show.set_defaults(run=_show)
    adopt = state_verbs.add_parser("adopt", help="bind the state to this machine")
    words = (
        "even on the machine it belongs to: the state is an older copy, or audit messages are lost"
    )
    adopt.add_argument("--new-epoch", action="store_true", help=words)
    add_config_options(adopt)
    adopt.set_defaults(run=_adopt)
    words = "declare uncertain what is on its way to a topic that was made again"
    give_up = state_verbs.add_parser("give-up", help=words, description=words)
    give_up.add_argument("topic", metavar="TOPIC")
    add_config_options(give_up)
    give_up.set_defaults(run=_give_up)


def _register_count(verbs: Any) -> None:
    words = (
        "only note which lines the files have, for skidway audit compare; runs beside another"
        " shipper, and sends nothing"
    )
    count = verbs.add_parser("count", help=words, description=f"{words[:1].upper()}{words[1:]}.")
    count.add_argument(
        "--files",
        action="append",
        required=True,
        metavar="PATTERN",
        help="files to follow, as paths of a source: '/var/log/app.log'; may be repeated",
    )
    words = "paths to leave out; may be repeated"
    count.add_argument("--exclude", action="append", default=[], metavar="PATTERN", help=words)
    words = "directory of the notes, which nothing else uses"
    count.add_argument("--into", type=Path, required=True, metavar="DIR", help=words)
    words = "where to begin in files that exist at the first start (beginning)"
    count.add_argument("--start-at", choices=("beginning", "end"), default="beginning", help=words)
    words = (
        "which links to follow: owner, those of root, of this user and of a file's owner (owner)"
    )
    count.add_argument("--links", choices=("owner", "all", "none"), default="owner", help=words)
    words = "delete notes that are older than this (7d)"
    count.add_argument("--keep", default="7d", metavar="TIME", help=words)
    words = "delete the oldest notes if they take more MiB than this (1024)"
    count.add_argument("--keep-mb", type=int, default=1024, metavar="N", help=words)
    count.add_argument(
        "--log-level", choices=log.LEVELS, default="info", help="lowest level to write (info)"
    )
    count.set_defaults(run=_count)


def _settings(args: argparse.Namespace) -> Any:
    """Returns the settings for a command that anybody may run, and prints which files of
    `sources.dir` are refused."""
    from skidway.agent.configuration import Configuration
    from skidway.agent.validation.checks import checked

    settings = Configuration(args, PROGRAM, uses_state=False).taken(checked)
    _print_errors(each.words for each in settings.refused)
    return settings


def _configuration_of_owner(args: argparse.Namespace) -> Any:
    from skidway.agent.configuration import Configuration

    _state_of_owner(args)
    return Configuration(args, PROGRAM)


def _state_dir(args: argparse.Namespace) -> Path:
    from skidway.agent import configuration

    return configuration.load_own(args, PROGRAM).state_dir


def _state_of_owner(args: argparse.Namespace) -> Path:
    """Returns the directory of the state, after this process has become the state's user if root
    runs it."""
    state_dir = _state_dir(args)
    become_owner(state_dir)
    return state_dir


def _refused_files(args: argparse.Namespace) -> list[str]:
    """Returns why a configuration, or files of `sources.dir`, are refused, for a command that does
    not need them."""
    from skidway.agent.configuration import Configuration
    from skidway.agent.validation.checks import checked

    try:
        return [each.words for each in Configuration(args, PROGRAM).taken(checked).refused]
    except SkidwayError as error:
        return [str(error)]


def _print_errors(sentences: Iterable[str]) -> None:
    for each in sentences:
        print(f"skidway agent: {each}", file=sys.stderr)


def _run(args: argparse.Namespace) -> int:
    # A SIGHUP would end the agent now. So the kernel holds the signal back until the agent can
    # reload.
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGHUP})
    from skidway.agent import program
    from skidway.agent.validation.checks import checked

    configuration = _configuration_of_owner(args)
    settings = configuration.taken(checked)
    return service.run(
        PROGRAM,
        lambda shutdown: program.run(settings, shutdown, configuration),
        level=args.log_level,
    )


def _count(args: argparse.Namespace) -> int:
    from skidway.agent.counting import program
    from skidway.agent.counting.settings import CountSettings

    settings = CountSettings(
        paths=tuple(args.files),
        directory=args.into,
        exclude=tuple(args.exclude),
        starts_at_end=args.start_at == "end",
        links=args.links,
        keep_s=parse_duration(args.keep, "--keep"),
        keep_bytes=args.keep_mb << 20,
    )
    settings.check()
    become_owner(settings.directory)
    return service.run(
        PROGRAM, lambda shutdown: program.run(settings, shutdown), level=args.log_level
    )


def _reload(args: argparse.Namespace) -> int:
    from skidway.agent.commands import reloading

    if not 0 <= args.timeout_s <= threading.TIMEOUT_MAX:
        raise UsageError("--timeout-s must be a number of seconds, and not negative.")
    answer = reloading.reload(_configuration_of_owner(args).read(), args.timeout_s)
    if answer.status and not answer.refused:
        _print_errors(answer.sentences)
    else:
        print("\n".join(answer.sentences))
        _print_errors(answer.refused)
    return answer.status


def _drain(args: argparse.Namespace) -> int:
    from skidway.agent.commands import draining
    from skidway.agent.validation.checks import checked

    if not 0 <= args.timeout_s <= threading.TIMEOUT_MAX:
        raise UsageError("--timeout-s must be a number of seconds, and not negative.")
    settings = _configuration_of_owner(args).taken(checked)
    _print_errors(each.words for each in settings.refused)

    def body(shutdown: service.Shutdown) -> int:
        print(draining.drain(settings, shutdown, args.timeout_s))
        return 0

    return service.run(PROGRAM, body, level=args.log_level)


def _validate(args: argparse.Namespace) -> int:
    from skidway.agent.files.operating_system import host_of
    from skidway.agent.validation.checks import try_sources
    from skidway.agent.validation.report import (
        MARK,
        REGISTRY_TIMEOUT_S,
        document,
        goodness,
        refusal,
        render,
        strict_refusal,
    )
    from skidway.schemas.client import no_pause

    if args.lines < 0:
        raise UsageError("--lines must not be negative.")
    settings = _settings(args)
    registry = settings.registry.client(timeout_s=REGISTRY_TIMEOUT_S, pause=no_pause)
    host = host_of(settings)
    trials = try_sources(settings, host, registry, args.lines)
    if args.json:
        print_json(document(trials, settings.rejected_share_max))
    else:
        print(render(trials), end="")
    refused = refusal(trials, settings.rejected_share_max)
    if refused is None and args.strict:
        refused = strict_refusal(trials)
    if refused is not None:
        raise SkidwayError(refused)
    if not args.json:
        if settings.idle_reason is not None:
            print(settings.idle_reason)
        if machine_id.read() is None:
            print(f"{MARK}{machine_id.MISSING}; the state is bound to it: {machine_id.ADVICE}")
        print(goodness(trials))
    return ConfigurationRefused.exit_code if settings.refused else 0


def _guess(args: argparse.Namespace) -> int:
    from skidway.agent.batches.source_recipes import derived_schema
    from skidway.agent.commands import guess_report, guessing

    if args.lines < 1:
        raise UsageError("--lines must be at least 1.")
    found = guessing.guess(args.file, args.lines, args.encoding)
    if args.schema:
        print(found.schema or derived_schema(found.source))
    elif args.json:
        print_json(guessing.document(found))
    else:
        print(guess_report.render(found), end="")
    return 0


def _formats(args: argparse.Namespace) -> int:
    from skidway.agent.formats import catalog

    known = catalog.formats()
    if args.name is not None and args.name not in known:
        raise UsageError(f"There is no format {args.name!r}.")
    shown = [known[args.name]] if args.name else list(known.values())
    if args.json:
        print_json([each.document() for each in shown])
    elif args.name:
        print(shown[0].text(), end="")
    else:
        table([{"format": each.name, "what": each.what} for each in shown], ("format", "what"))
    return 0


def _test(args: argparse.Namespace) -> int:
    from skidway.agent.commands import testing

    if args.limit < 0:
        raise UsageError("--limit must not be negative.")
    settings = _settings(args)
    made = testing.tested(settings, args.file, args.topic)
    if args.expect is not None:
        try:
            expected = read_text(args.expect).splitlines()
        except OSError as error:
            raise SkidwayError(f"cannot read {args.expect}: {error.strerror}") from error
        except NotUtf8 as error:
            raise SkidwayError(f"{args.expect}: {error}") from error
        if (differs := testing.difference(made, expected)) is not None:
            raise SkidwayError(differs)
        print(f"{len(expected):,} results are as expected")
    elif args.json:
        print("".join(f"{line}\n" for line in testing.as_lines(made)), end="")
        print("".join(f"{note}\n" for note in made.notes), end="", file=sys.stderr)
    else:
        print(testing.render(made, args.limit), end="")
    return 0


def _install_snippet(args: argparse.Namespace) -> int:
    from skidway.agent.commands.installation import snippet

    print(snippet(args.wheels), end="")
    return 0


def _replay(args: argparse.Namespace) -> int:
    from skidway.agent.commands import replaying

    state_dir = _state_dir(args)
    try:
        with contextlib.ExitStack() as stack:
            file = sys.stdin
            if args.file != "-":
                file = stack.enter_context(open(args.file, encoding="utf-8-sig"))
            become_owner(state_dir)  # who, other than root, may not read the file
            settings = _configuration_of_owner(args).read()
            done = replaying.replay(settings, file, also_unfit=args.also_unfit)
    except UnicodeDecodeError as error:
        raise SkidwayError(f"{args.file} is not UTF-8") from error
    except OSError as error:
        raise SkidwayError(f"cannot read {args.file}: {error.strerror}") from error
    print("\n".join(replaying.sentences(done)))
    return 0


def _replayed(args: argparse.Namespace) -> int:
    from skidway.agent.commands import replaying

    counts = replaying.status(_configuration_of_owner(args).read(), args.topic)
    if args.json:
        print_json(counts)
    else:
        table(counts, replaying.COLUMNS)
    return 0


def _show(args: argparse.Namespace) -> int:
    from skidway.agent.commands import state

    shown = state.show(_state_dir(args)) | {"refused_files": _refused_files(args)}
    if args.json:
        print_json(shown)
        return 0
    rows, declared = state.rows(shown)
    table(rows, ("file", "path", "bytes", *state.FATES, "state"))
    if declared:
        print()
        table(declared, ("file", "path", "first", "end", "fate", "reason"))
    if sentences := state.unread(shown):
        print("\n" + "\n".join(sentences))
    _print_errors(shown["refused_files"])
    return 0


def _adopt(args: argparse.Namespace) -> int:
    from skidway.agent.commands import state

    print(state.adopt(_state_of_owner(args), new_epoch=args.new_epoch))
    return 0


def _give_up(args: argparse.Namespace) -> int:
    from skidway.agent.commands import state

    print(state.give_up(_state_of_owner(args), args.topic))
    return 0
