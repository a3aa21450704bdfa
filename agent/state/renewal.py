"""Gives new ids to files after an operator has adopted a state that was an older copy.

An operator adopts a state, for example from a backup, with `skidway agent state adopt`. The
adoption begins a new epoch of the agent. The backup may be an older copy of the state that the
agent used last. After the copy was made, the agent may have sent bytes after the copy's positions,
under the same file ids. If the host's logs were restored as well, other bytes may be at these
places now. So each file that is still read gets a new id, which begins at the copy's checkpoint. If
the agent reads lines again under a new id, they count as new lines. A bucket is a span of event
time. If the agent counts lines of a bucket before the first seal of the new epoch, the audit gives
this bucket the verdict "unknown". If the copy has an intent for a range of a file that gets a new
id, the agent drops the intent, and reads the range again. The agent also drops the counts that the
copy has stored for the next delta, because the agent published them while it used the newer state.

If a file id has ended (the agent reads no more bytes under it), the file gets no new id, because
its inode may already belong to a file with a newer id. The agent handles the intents of such a file
as after any crash. If the bytes still have the CRC that the intent names, the agent sends them
again. Otherwise the agent reads back from the brokers which records arrived.
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
    """Gives files new ids at the first start after an adoption, if the adopted state was an older
    copy.

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
    changes.forget_files(sorted(replaced))
    changes.put_files(_successor(each, serial + at) for at, each in enumerate(read_on, 1))
    changes.forget_intents(each.sequence for each in state.intents() if each.file in replaced)
    changes.forget_recipes()
    changes.clear_sums()
    changes.forget_messages(each.id for each in state.outbox() if each.file in replaced)
    return changes


def _successor(file: TrackedFile, serial: int) -> TrackedFile:
    """Returns the same file under a new id, which begins at the checkpoint."""
    birth = replace(
        file.birth, file=identity.new_id(), serial=serial, begin=file.position,
        predecessor=file.file, predecessor_position=file.position,
    )  # fmt: skip
    return replace(file, birth=birth, tally=Tally(), announced=False, announced_ms=0)
