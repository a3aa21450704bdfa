"""The ledger: what became of every byte of every file, read from the state while the agent runs.

acknowledged + rejected + filtered + lost + uncertain + pending = bytes, of each file id
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from agent import identity
from agent.files.host import Host, OperatingSystem
from agent.files.tracked import FileState, TrackedFile
from agent.files.tracking import shown
from agent.state.changes import Changes
from agent.state.database import DATABASE, State, open_state
from skidway.errors import StateRefused
from skidway.files import DirectoryLock

FATES: Final = ("acknowledged", "rejected", "filtered", "lost", "uncertain", "pending")


def show(directory: Path, host: Host | None = None) -> dict[str, Any]:
    """Agent, messages that wait, and one entry per file id. Raises StateRefused."""
    path = directory / DATABASE
    if not path.exists():
        raise StateRefused(f"there is no state {path}; the agent has not run with it yet")
    try:
        connection = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True, timeout=5)
    except sqlite3.Error as error:
        raise StateRefused(f"the state {path} cannot be read: {error}") from error
    connection.isolation_level = None
    connection.execute("BEGIN")  # one picture of everything
    state = State(connection, str(path))
    try:
        files = state.files()
        promised = {intent.file: intent.end for intent in state.intents()}
        return {
            "agent": state.agent,
            "machine": state.machine,
            "epoch": state.epoch,
            "number": state.number,
            "cluster": state.cluster,
            "unpublished_messages": len(state.outbox()),
            "files": [entry(file, promised, host or OperatingSystem()) for file in files],
        }
    finally:
        state.close()


def entry(tracked: TrackedFile, promised: Mapping[int, int], host: Host) -> dict[str, Any]:
    """One file id. bytes: those that it covers, of an open file by its size on the host now."""
    tracked.promised = max(promised.get(tracked.file, 0), tracked.position)
    tracked.read_position = tracked.promised
    if tracked.state is FileState.OPEN:
        tracked.size = _size_on_host(tracked, host)
    tally = tracked.tally
    return {
        "file": tracked.file,
        "path": shown(tracked.location) or tracked.birth.path,
        "announced_path": tracked.birth.path,
        "topic": tracked.birth.topic,
        "state": tracked.state.value,
        "begin": tracked.birth.begin,
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


def adopt(directory: Path) -> str:
    """Binds the state to this machine, in a new epoch. Raises StateRefused; returns a sentence."""
    with DirectoryLock(directory):
        state = open_state(directory, create=False)
        machine = identity.machine_id()
        if state.machine == machine:
            state.close()
            return "the state belongs to this machine already; nothing was changed"
        changes = Changes()
        changes.put_meta("machine", machine)
        changes.put_meta("epoch", state.epoch + 1)
        changes.put_meta("number", 0)  # numbers and their chains are those of one epoch
        changes.forget_touched()
        state.commit(changes)
        state.close()
        return (
            f"the state of agent {state.agent} belongs to this machine now, in epoch "
            f"{state.epoch + 1}; what happened between its last seal and its next is unknown"
        )


def _size_on_host(tracked: TrackedFile, host: Host) -> int:
    """Its size now, or as far as it was promised when it is not to be found."""
    found = host.look(tracked.location)
    if found is None or found.key != tracked.birth.key:
        directory = os.path.dirname(tracked.location)
        try:
            path = host.find(directory, tracked.birth.key)
        except OSError:
            path = None
        found = None if path is None else host.look(path)
    if found is None or found.key != tracked.birth.key:
        return tracked.promised
    return max(found.size, tracked.promised)
