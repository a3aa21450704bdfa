"""`skidway agent replay` sends each repaired line once; `skidway agent replayed` counts rejected
and replayed lines.

    <state.dir>/replay/<topic>/<time>-<random>.replay    tailed by the agent (parsing.replayed)

A repaired line is a rejected line that people have corrected. The command writes repaired lines to
files with such names, and the agent sends the lines. The files also show which lines were replayed:
if the origin of a rejected line is in one of the files, the command does not replay this line
again. The command writes each file under another name first, and renames it when it is complete. So
if the command is killed, a second call replays the lines that the first call did not replay. No
program deletes the files. People may delete a file when `<topic>.rejected` no longer has the file's
lines.
"""

from __future__ import annotations

import json
import secrets
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, TextIO

from skidway.agent.configuration import REPLAY_SUFFIX, replay_directory
from skidway.agent.parsing import replayed
from skidway.agent.parsing.byte_order import UTF_16, UTF_16LE, has_order, marked
from skidway.agent.parsing.framing import READ_BYTES
from skidway.agent.parsing.replayed import Envelope
from skidway.agent.settings import LINE_BYTES_MAX, AgentSettings, ReplaySource
from skidway.agent.validation.checks import schema_text
from skidway.agent.validation.preview import preview
from skidway.errors import ConfigurationRefused, SkidwayError
from skidway.files import DirectoryLock, make_directory, write_atomically
from skidway.regular_file import read_regular
from skidway.schemas.client import no_pause
from skidway.schemas.consuming.rejected_lines import RejectedLines, Wanted

INPUT_BYTES_MAX: Final = 256 << 20
"""If a file of repaired lines is larger than this, the command refuses it, and people must divide
it.
"""

UNFIT_SHOWN_MAX: Final = 3

COLUMNS: Final = ("reason", "rejected", "again", "replayed", "open")

Key = tuple[int, int, int]


class NotReplayed(SkidwayError):
    """Raised if one of the given lines cannot be replayed, or if no agent ever ran with
    `state.dir`. The command then replays none of the given lines."""


@dataclass(frozen=True, slots=True)
class Replayed:
    """The result of a call of the command. lines: by topic, how many lines it replayed. before: how
    many of the given lines it left out, because an earlier call had replayed them. unfit: how many
    of the replayed lines will be rejected again.
    """

    lines: dict[str, int]
    before: int
    unfit: int


def replay(settings: AgentSettings, file: TextIO, *, also_unfit: bool) -> Replayed:
    """Replays repaired lines. If this function raises SkidwayError, it has replayed no line, with
    one exception: if the disk fails after the file of one topic was written, the lines of this
    topic are replayed.

    also_unfit: whether to replay lines that the source would reject again.
    """
    given = _by_topic(read(file))
    sources = {topic: _source_of(settings, topic) for topic in given}
    by_topic = {
        topic: [_encoded(each, sources[topic].encoding) for each in envelopes]
        for topic, envelopes in given.items()
    }
    root = replay_directory(settings.state_dir, "")
    if not settings.state_dir.is_dir():
        raise NotReplayed(f"there is no state.dir {settings.state_dir}: no agent ever ran with it")
    with DirectoryLock(root):
        known = {topic: keys_in(settings.state_dir, topic) for topic in by_topic}
        new = {
            topic: [each for each in envelopes if each.key not in known[topic]]
            for topic, envelopes in by_topic.items()
        }
        unfit = [
            sentence
            for topic, envelopes in new.items()
            for sentence in _unfit(settings, sources[topic], envelopes)
        ]
        if unfit and not also_unfit:
            shown = "\n".join(unfit[:UNFIT_SHOWN_MAX])
            raise NotReplayed(
                f"{len(unfit)} lines would be rejected again; repair them, or replay them with"
                f" --also-unfit:\n{shown}"
            )
        for topic, envelopes in new.items():
            if envelopes:
                _write(settings.state_dir, topic, envelopes)
    count = sum(map(len, by_topic.values()))
    lines = {topic: len(envelopes) for topic, envelopes in new.items() if envelopes}
    return Replayed(lines, count - sum(lines.values()), len(unfit))


def read(file: TextIO) -> list[Envelope]:
    """Reads repaired lines. Raises NotReplayed if the file is too large, or if a line cannot be
    replayed; the error then says which line.
    """
    found: dict[Key, int] = {}
    envelopes = []
    size = 0
    for number, text in enumerate(file, 1):
        size += len(text)
        if size > INPUT_BYTES_MAX:
            raise NotReplayed(f"the file has more than {INPUT_BYTES_MAX >> 20} MiB: divide it")
        if not text.strip():
            continue
        envelope = _envelope(text, number)
        if envelope.key in found:
            raise NotReplayed(
                f"lines {found[envelope.key]} and {number} replay the same rejected line"
            )
        found[envelope.key] = number
        envelopes.append(envelope)
    return envelopes


def keys_in(state_dir: Path, topic: str) -> set[Key]:
    """Returns the origins of those rejected lines of a topic that were replayed. Raises
    SkidwayError if a file cannot be read, because then nobody knows what was replayed.
    """
    keys: set[Key] = set()
    for path in sorted(replay_directory(state_dir, topic).glob(f"*{REPLAY_SUFFIX}")):
        try:
            lines = read_regular(path).splitlines()
        except OSError as error:
            raise SkidwayError(f"cannot read {path}: {error.strerror}") from error
        keys.update(each.key for each in map(replayed.read, lines) if each is not None)
    return keys


def status(settings: AgentSettings, topic: str) -> list[dict[str, Any]]:
    """Returns one entry for each reason for which lines of a topic were rejected. `rejected` is the
    number of lines; `again` says how many of them are replayed lines that were rejected again;
    `replayed` and `open` say how many were replayed and how many were not. Raises SkidwayError.
    """
    keys = keys_in(settings.state_dir, topic)
    counts: dict[str, Counter[str]] = {}
    with settings.kafka.client() as client:
        for document in RejectedLines(client, topic).read(Wanted()):
            of_reason = counts.setdefault(document["reason"], Counter())
            of_reason["rejected"] += 1
            of_reason["again"] += document["original_first"] is not None
            of_reason["replayed"] += tuple(document[name] for name in replayed.ORIGIN) in keys
    return [
        {
            "reason": reason,
            "rejected": found["rejected"],
            "again": found["again"],
            "replayed": found["replayed"],
            "open": found["rejected"] - found["replayed"],
        }
        for reason, found in sorted(counts.items())
    ]


def sentences(done: Replayed) -> Iterator[str]:
    """Yields the sentences by which the command says what it did."""
    for topic, count in sorted(done.lines.items()):
        yield f"{count:,} lines for topic {topic}"
    if done.unfit:
        yield f"{done.unfit:,} of them will be rejected again"
    if done.before:
        yield f"{done.before:,} lines were replayed before, and are left out"
    if not done.lines:
        yield "nothing to replay"


def _envelope(text: str, number: int) -> Envelope:
    envelope = replayed.read(text.encode("utf-8", "surrogateescape"))
    if envelope is None:
        raise NotReplayed(
            f"line {number} is not what skidway rejected export writes: a JSON object with topic,"
            " line, host, path, agent, file and first"
        )
    if json.loads(text).get("is_cut"):
        raise NotReplayed(
            f"line {number} does not have the whole rejected line: complete it and delete is_cut,"
            " or delete the line"
        )
    if len(envelope.text()) > LINE_BYTES_MAX:
        raise NotReplayed(f"line {number} is too long to be replayed")
    return envelope


def _encoded(given: Envelope, encoding: str) -> Envelope:
    """Converts the line of an envelope (a repaired line with its origin) to the encoding of the
    source. So the parser makes the same row from it as from a line in a file of the source.
    """
    which = f"the line of {given.path} at byte {given.key[2]}"
    if encoding == UTF_16 and not given.is_text and not has_order(given.line):
        raise NotReplayed(
            f"{which} does not say its byte order: delete line_base64, and write the text into line"
        )
    line = given.line_in(encoding)
    if line is None:
        raise NotReplayed(f"{which} has characters that {encoding} does not have")
    own = UTF_16LE if encoding == UTF_16 else encoding
    envelope = replace(given, line=marked(line, own), is_text=False)
    if len(envelope.text()) > LINE_BYTES_MAX:
        raise NotReplayed(f"{which} is too long to be replayed")
    return envelope


def _by_topic(envelopes: Iterable[Envelope]) -> dict[str, list[Envelope]]:
    found: dict[str, list[Envelope]] = {}
    for each in envelopes:
        found.setdefault(each.topic, []).append(each)
    return found


def _source_of(settings: AgentSettings, topic: str) -> ReplaySource:
    for source in settings.sources:
        if isinstance(source, ReplaySource) and source.topic == topic:
            return source
    raise ConfigurationRefused(
        f"no source of topic {topic} has replay: true; add it to the source whose parser reads"
        " the repaired lines, and run skidway agent reload"
    )


def _unfit(
    settings: AgentSettings, source: ReplaySource, envelopes: Sequence[Envelope]
) -> Iterator[str]:
    registry = settings.registry.client(pause=no_pause)
    schema = schema_text(source, registry) if envelopes else ""
    for part in _parts(envelopes):
        data = b"".join(each.text() + b"\n" for each in part)
        made = preview(source, data, "", schema=schema, batch_bytes=settings.batch_size)
        for each in made.rejects:
            line = each.line.decode("utf-8", "replace")[:80]
            yield f"{each.path}: {each.reason}: {each.detail}: {line}"


def _parts(envelopes: Sequence[Envelope]) -> Iterator[list[Envelope]]:
    """Divides envelopes (repaired lines with their origins) into parts, each small enough
    (READ_BYTES) for one read of an agent."""
    part: list[Envelope] = []
    size = 0
    for each in envelopes:
        length = len(each.text()) + 1
        if part and size + length > READ_BYTES:
            yield part
            part, size = [], 0
        part.append(each)
        size += length
    if part:
        yield part


def _write(state_dir: Path, topic: str, envelopes: Sequence[Envelope]) -> None:
    directory = replay_directory(state_dir, topic)
    make_directory(directory)
    name = f"{time.time_ns() // 1_000_000}-{secrets.token_hex(4)}{REPLAY_SUFFIX}"
    data = b"".join(each.text() + b"\n" for each in envelopes)
    try:
        write_atomically(directory / name, data)
    except OSError as error:
        raise SkidwayError(f"cannot write {directory / name}: {error.strerror}") from error
