"""What an adopted state goes on with that had been an older copy of itself.

The newer state may have sent what lies behind the copy's positions, under the same file ids; and
where the logs were restored as well other bytes may lie there now. So each file that is read on
gets a new id, which begins where the copy's checkpoint stands: what is read again is a line of its
own, and the audit calls every bucket unknown that the new epoch touches before its first seal. What
the copy had promised of it is read again, and what it had counted is not said again: the newer
state has said it.

A file that had ended keeps its id, since its inode may go on under another one. What was promised
of it is sent again as ever: the same bytes, by their CRC, or what the brokers have of them.
"""

from __future__ import annotations

from dataclasses import replace

from skidway import log
from skidway.agent.state.changes import Changes
from skidway.agent.state.database import State
from skidway.agent.values import identity
from skidway.agent.values.tracked import FileState, Tally, TrackedFile
from skidway.audit.topic.publisher import Newest

_log = log.get(__name__)


def renew(state: State, newest: Newest | None) -> None:
    """At the first start behind an adoption: gives new ids where the copy was older.

    newest: the newest message that this agent has published, None where none is left.
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


def _new_ids(state: State) -> Changes:
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
    """The same bytes under a new id, from the checkpoint on."""
    birth = replace(
        file.birth, file=identity.new_id(), serial=serial, begin=file.position,
        predecessor=file.file, predecessor_position=file.position,
    )  # fmt: skip
    return replace(file, birth=birth, tally=Tally(), announced=False, announced_ms=0)
