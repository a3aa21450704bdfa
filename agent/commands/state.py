"""Works on the state of an agent. `show` returns what became of every byte of every file; it may
run while the agent runs. With `adopt` and `give_up`, an operator changes the state of a stopped
agent. For each file id, these numbers of bytes add up:

acknowledged + rejected + filtered + lost + uncertain + pending = bytes
"""

from __future__ import annotations

import os
import sqlite3
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from skidway.agent.files import nameless
from skidway.agent.files.decompressed import is_decompressed
from skidway.agent.files.host import Host, shown
from skidway.agent.files.operating_system import OperatingSystem
from skidway.agent.state.changes import Changes
from skidway.agent.state.database import DATABASE, StateDatabase, open_state
from skidway.agent.values import identity
from skidway.agent.values.found import FileKey, Found
from skidway.agent.values.intents import GIVEN_UP, Intent
from skidway.agent.values.tracked import FileState, TrackedFile
from skidway.audit.topic.messages import Loss
from skidway.audit.topic.source_report import report_of
from skidway.database_reader import open_to_read
from skidway.errors import StateRefused
from skidway.files import DirectoryLock

FATES: Final = ("acknowledged", "rejected", "filtered", "lost", "uncertain", "pending")


def show(directory: Path, host: Host | None = None) -> dict[str, Any]:
    """Returns the agent, the number of messages that wait to be published, an entry for each file
    id, what the agent cannot read, and the ranges that were declared lost or uncertain. The audit
    describes these ranges in the same way. Raises StateRefused.
    """
    path = directory / DATABASE
    if not path.exists():
        raise StateRefused(f"there is no state {path}; the agent has not run with it yet")
    try:
        connection = open_to_read(path, 5)
    except sqlite3.Error as error:
        raise StateRefused(f"the state {path} cannot be read: {error}") from error
    connection.execute("BEGIN")  # all queries see one snapshot
    state = StateDatabase(connection, str(path))
    try:
        files = state.files()
        promised = {intent.file: intent.end for intent in state.intents()}
        paths = {file.file: file.birth.path for file in files}
        return {
            "agent": state.agent,
            "machine": state.machine,
            "epoch": state.epoch,
            "number": state.number,
            "cluster": state.cluster,
            "unpublished_messages": len(state.outbox()),
            "files": entries(files, promised, host or OperatingSystem(), nameless.sizes(directory)),
            "sources": state.sources(),
            "declared": [_declared(loss, paths) for loss in state.losses()],
        }
    finally:
        state.close()


def rows(shown: Mapping[str, Any]) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Returns the two tables that the command prints for people: the files, and the byte ranges of
    these files that were declared lost or uncertain. shown: the result of `show`. Ids are written
    as in the audit's sentences. If the end of a lost or uncertain range is unknown, "or more"
    follows the number of the file's lost or uncertain bytes. If several file ids have the same
    path, the path is followed by the inode and other facts that distinguish the file ids. The state
    of a deleted file that the agent still has open is "deleted, held".
    """
    more = {(each["file"], each["fate"]) for each in shown["declared"] if each["end"] is None}
    files = [
        each
        | {"file": str(each["file"]), "path": _path(each)}
        | ({"state": "deleted, held"} if each["is_held"] else {})
        | {
            fate: f"{each[fate]:,} or more" if (each["file"], fate) in more else each[fate]
            for fate in ("lost", "uncertain")
        }
        for each in shown["files"]
    ]
    return files, [each | {"file": str(each["file"])} for each in shown["declared"]]


def unread(shown: Mapping[str, Any]) -> list[str]:
    """Returns a sentence for each path that the agent cannot read, and for each source without
    files, as the agent found them when it ran last. shown: the result of `show`."""
    report = report_of(shown["sources"])
    holds = {True: "; the topic is not sealed", False: ""}
    return [
        *(f"{x.topic}: {x.words}{holds[x.holds]}" for x in report.unread),
        *(f"{x.topic}: {x.words}" for x in report.fileless),
        *([f"and {report.more:,} more"] if report.more else []),
    ]


def entries(
    files: Sequence[TrackedFile],
    promised: Mapping[int, int],
    host: Host,
    held: Mapping[FileKey, int],
) -> list[dict[str, Any]]:
    """Returns the list of entries, one for each file id, in the order in which the file ids began.
    Each entry also has `distinction`: what distinguishes the file id from other file ids with the
    same path; empty if no other file id has this path. held: the sizes of the files without a name
    that the running agent has open.
    """
    found = [entry(file, promised, host, held) for file in files]
    count = Counter(each["path"] for each in found)
    newest = {file.birth.key: file.file for file in files}
    for file, each in zip(files, found, strict=True):
        is_newest = newest[file.birth.key] == file.file
        each["distinction"] = ""
        if count[each["path"]] > 1:
            each["distinction"] = _distinction(file, host, is_newest=is_newest)
    return found


def entry(
    tracked: TrackedFile, promised: Mapping[int, int], host: Host, held: Mapping[FileKey, int]
) -> dict[str, Any]:
    """Returns the entry of one file id. `bytes` is how many bytes of the file belong to the file
    id. For an open file, `bytes` is computed from the file's present size, and `is_held` says that
    the file was deleted and that only the running agent still has it.
    """
    is_held = False
    tracked.promised = max(promised.get(tracked.file, 0), tracked.position)
    tracked.read_position = tracked.promised
    if tracked.state is FileState.OPEN:
        found, key = _found_on_host(tracked, host), tracked.birth.key
        is_held = found is None and key in held and not is_decompressed(tracked.location)
        size = held[key] if is_held else 0 if found is None else found.size
        tracked.size = max(size, tracked.promised)
    tally = tracked.tally
    return {
        "file": tracked.file,
        "path": shown(tracked.location) or tracked.birth.path,
        "announced_path": tracked.birth.path,
        "device": tracked.birth.key.device,
        "inode": tracked.birth.key.inode,
        "born_ns": tracked.birth.born_ns,
        "topic": tracked.birth.topic,
        "state": tracked.state.value,
        "is_held": is_held,
        "begin": tracked.birth.begin,
        "skipped": tracked.birth.skipped,
        "position": tracked.position,
        "predecessor": tracked.birth.predecessor,
        "bytes": tally.total + tracked.pending,
        "acknowledged": tally.acknowledged,
        "rejected": tally.rejected,
        "filtered": tally.filtered,
        "lost": tally.lost,
        "uncertain": tally.uncertain,
        "pending": tracked.pending,
    }


def _path(shown: Mapping[str, Any]) -> str:
    more = shown.get("distinction")
    return f"{shown['path']} ({more})" if more else str(shown["path"])


def _distinction(tracked: TrackedFile, host: Host, *, is_newest: bool) -> str:
    """Returns, in words, the inode of a file, the position at which the file id begins, and where
    the file is now. is_newest: whether no later file id has the same inode.
    """
    parts = [f"inode {tracked.birth.key.inode}"]
    if tracked.birth.begin:
        parts.append(f"from byte {tracked.birth.begin:,} on")
    found = None if tracked.is_deleted else _found_on_host(tracked, host)
    if found is None:
        parts.append("deleted")
    elif not is_newest:
        parts.append("an earlier content of the file")
    elif found.path == tracked.location:
        parts.append("at this path now")
    else:
        parts.append(f"renamed to {shown(os.path.basename(found.path))}")
    return ", ".join(parts)


def _declared(loss: Loss, paths: Mapping[int, str]) -> dict[str, Any]:
    """Describes a range that the agent declared lost or uncertain, as the audit does. In the
    result, `end` is None if the end is unknown, and `path` is None for files that never got an id
    of their own (then `reason` names these files).
    """
    return {
        "file": loss.file,
        "path": paths.get(loss.file),
        "topic": loss.source.topic,
        "first": loss.first,
        "end": loss.end,
        "fate": loss.certainty.value.lower(),
        "reason": loss.reason,
    }


def adopt(directory: Path, *, new_epoch: bool = False) -> str:
    """Binds the state to this machine, in a new epoch. Does nothing if the state already belongs to
    this machine and `new_epoch` is false. Returns a sentence for the operator. Raises StateRefused,
    and SkidwayError if the state cannot be written.

    With `new_epoch`, the state gets a new epoch even if it already belongs to this machine. An
    operator needs this in two cases. First, the topic `_skidway_audit` was lost, and with it
    messages of the present epoch. Without these messages, the audit cannot prove that later buckets
    of this epoch are complete. Second, the state is an older copy, which the agent refuses to use.
    After the adoption, the agent uses the older copy: at its next start, it gives the files new ids
    (agent.state.renewal).
    """
    with DirectoryLock(directory):
        state = open_state(directory, create=False)
        machine = identity.machine_id()
        if state.machine == machine and not new_epoch:
            state.close()
            return "the state belongs to this machine already; nothing was changed"
        changes = Changes()
        changes.put_meta("machine", machine)
        changes.put_meta("epoch", state.epoch + 1)
        changes.put_meta("number", 0)  # each epoch has its own numbers and delta chains
        changes.forget_touched()
        changes.put_adopted(state.adopted or (state.epoch, state.number))
        changes.put_left({})  # last words belong to the old epoch; the new epoch has no seal yet
        state.commit(changes)
        state.close()
        return (
            f"the state of agent {state.agent} belongs to this machine now, in epoch "
            f"{state.epoch + 1}; what happened between its last seal and its next is unknown"
        )


def give_up(directory: Path, topic: str) -> str:
    """Gives up the bytes that the agent has promised to send to a topic, and that are not accounted
    for yet. If the topic was deleted and made again, the agent refuses to start as long as there
    are such bytes. Returns a sentence for the operator. Raises StateRefused, and SkidwayError if
    the state cannot be written.
    """
    with DirectoryLock(directory):
        state = open_state(directory, create=False)
        try:
            intents = given_up(state, topic)
        finally:
            state.close()
    if not intents:
        return f"nothing is on its way to {topic}; nothing was changed"
    size = sum(intent.length for intent in intents)
    files = len({intent.file for intent in intents})
    return (
        f"{size} bytes of {files} files that were on their way to {topic} are given up; the agent "
        "declares them at its next start: as uncertain if the topic was made again, otherwise only "
        "what neither the brokers nor the host have any more"
    )


def given_up(state: StateDatabase, topic: str) -> list[Intent]:
    """Gives up the intents (promised byte ranges) whose records can go to the topic, and returns
    these intents. The agent sends none of them again unchanged. If the topic was made again, the
    agent declares their bytes uncertain at its next start. Otherwise it asks the brokers which
    records of these intents arrived, and sends the missing records with the present settings of the
    intents' files.
    """
    recipes = state.recipes()
    found = []
    for intent in state.intents():
        recipe = recipes.get(intent.recipe)
        if recipe is not None and recipe.data.name == topic:
            found.append(replace(intent, recipe=GIVEN_UP))
    changes = Changes()
    changes.forget_intents(intent.sequence for intent in found)
    changes.put_intents(found)
    state.commit(changes)
    return found


def _found_on_host(tracked: TrackedFile, host: Host) -> Found | None:
    """Finds the file in its directory by its key (device and inode), even if it has another name
    now. Returns None if the directory does not have it.
    """
    found = host.look(tracked.location)
    if found is None or found.key != tracked.birth.key:
        directory = os.path.dirname(tracked.location)
        try:
            path = host.find(directory, tracked.birth.key)
        except OSError:
            path = None
        found = None if path is None else host.look(path)
    return None if found is None or found.key != tracked.birth.key else found
