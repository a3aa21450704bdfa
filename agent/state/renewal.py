"""Gives files new ids after an operator has adopted an older copy of a state.

An operator adopts a state, for example from a backup, with `skidway agent state adopt`. The
adoption begins a new epoch of the agent. The backup may be an older copy of the state that the
agent used last. Since the copy was made, the agent may have sent bytes after the positions in the
copy, under the same file ids. If the host's logs were also restored, the files may have other bytes
at these positions now. So each file that is still read gets a new id, which begins at the copy's
checkpoint. Lines that the agent reads again under a new id count as new lines. So each bucket that
the agent counts before the first seal of the new epoch gets the verdict "unknown" from the audit.
If the copy has an intent for a range of a file that gets a new id, the agent drops the intent, and
reads the range again. The agent also drops the sums in the copy that are in no delta, because the
agent published these sums while it used the newer state.

A file id that has ended (the agent reads no more bytes under it) is not replaced, because the
file's inode may already belong to a file with a newer id. The agent handles the intents of an ended
file id as after any crash: if the file's bytes still have the CRC that the intent names, the agent
sends them again. If they have another CRC, the agent reads the brokers' log to find out which of
the intent's records arrived.
"""

from __future__ import annotations

from dataclasses import replace

from skidway import log
from skidway.agent.state.changes import Changes
from skidway.agent.state.database import StateDatabase
from skidway.agent.values import identity
from skidway.agent.values.tracked import FileState, Tally, TrackedFile
from skidway.audit.topic.publisher import Newest

_log = log.get(__name__)


def renew(state: StateDatabase, newest: Newest | None) -> None:
    """Gives each open file a new id at the first start after an adoption, if the adopted state is
    an older copy. The copy is older if the audit topic has a later message of this agent than the
    last message that the copy knows.

    newest: the newest message of this agent on the audit topic; None if the topic contains no
    message of this agent any more.
    """
    known = state.adopted
    if known is None:
        return
    is_older = newest is not None and (newest.epoch, newest.number) > known
    changes = _new_ids(state) if is_older else Changes()
    changes.put_adopted(None)
    state.commit(changes)
    state.adopted = None
    if is_older:
        _log.warning("older_copy_adopted", files=len(state.files()))


def _new_ids(state: StateDatabase) -> Changes:
    changes = Changes()
    files = state.files()
    serial = max((each.birth.serial for each in files), default=0)
    read_on = [each for each in files if each.state is FileState.OPEN]
    replaced = {each.file for each in read_on}
    labels = state.labels()
    successors = [
        _successor(replace(each, labels=labels.get(each.file, ())), serial + at)
        for at, each in enumerate(read_on, 1)
    ]
    changes.forget_files(sorted(replaced))
    changes.put_files(successors)
    changes.put_labels(each for each in successors if each.labels)
    changes.forget_intents(each.sequence for each in state.intents() if each.file in replaced)
    changes.forget_recipes()
    changes.clear_sums()
    changes.forget_messages(each.id for each in state.outbox() if each.file in replaced)
    return changes


def _successor(file: TrackedFile, serial: int) -> TrackedFile:
    birth = replace(
        file.birth, file=identity.new_id(), serial=serial, begin=file.position,
        predecessor=file.file, predecessor_position=file.position,
    )  # fmt: skip
    return replace(file, birth=birth, tally=Tally(), announced=False, announced_ms=0)
