"""If an operator adopts an older copy of an agent's state, the agent continues to read its files
under new file ids."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from skidway.agent.commands import state as ledger
from skidway.agent.state.changes import Changes
from skidway.agent.state.database import StateDatabase, open_state
from skidway.agent.state.renewal import renew
from skidway.agent.values.found import FileKey
from skidway.agent.values.identity import Fingerprint, Guard
from skidway.agent.values.intents import Intent
from skidway.agent.values.labels import LabelledFrom
from skidway.agent.values.tracked import Birth, Checkpoint, FileState, Tally, TrackedFile
from skidway.audit.counts.counts import Sums
from skidway.audit.topic.publisher import Newest
from skidway.kafka.source import Source
from support.promises import promise

LOGS = Source("main", "cid", "logs", "tid")


def tracked(file: int, serial: int, position: int, **other: object) -> TrackedFile:
    birth = Birth(
        file, serial, "logs", "tid", "web1", f"/log/{file}", FileKey(1, file), Fingerprint(3, b"x")
    )
    point = Checkpoint(position, 9, Guard(2, 7), ())
    found = TrackedFile(birth, point, f"/log/{file}", announced=True, tally=Tally(position))
    return replace(found, **other)  # type: ignore[arg-type]


@pytest.fixture
def state(tmp_path: Path) -> Iterator[StateDatabase]:
    """An adopted copy of a state. Its last message number is 17, and message 12 is not published
    yet."""
    state = open_state(tmp_path)
    changes = Changes()
    changes.put_meta("number", 17)
    changes.put_files(
        [
            tracked(11, 1, 100),
            tracked(12, 2, 50, state=FileState.ENDED, length=80),
            tracked(13, 3, 70, state=FileState.CLOSED, length=70),
        ]
    )
    promised = [Intent(1, 12, 50, 80, 5, 1, b"r"), Intent(2, 11, 100, 130, 5, 1, b"r")]
    changes.put_intents(promised)
    changes.put_sums([((LOGS, state.agent, 60_000), Sums(3, 30, 5))])
    changes.put_message(1, b"announcement", file=11)
    changes.put_message(2, b"delta", number=12)
    state.commit(changes)
    state.close()
    ledger.adopt(tmp_path, new_epoch=True)
    state = open_state(tmp_path)
    yield state
    state.close()


@promise("1 adopted copy")
def test_what_the_newer_state_may_have_sent_is_read_again_under_new_ids(
    state: StateDatabase,
) -> None:
    """After an older copy of the state was adopted, the agent continues to read in an open file
    under a new file id. Under the old file id, readers could mistake a line for a repeat of another
    line that was sent after the copy was made. The copy also contains counts that were not in a
    delta yet. The agent drops these counts, because it published them from the newer state after
    the copy was made."""
    renew(state, Newest(1, 18, 0))
    *kept, found = state.files()
    assert [each.file for each in kept] == [12, 13]
    assert found.file not in (11, 12, 13)
    assert (found.birth.predecessor, found.birth.predecessor_position) == (11, 100)
    assert (found.birth.begin, found.position, found.tally.total) == (100, 100, 0)
    assert (found.state, found.announced, found.birth.serial) == (FileState.OPEN, False, 4)
    assert state.sums() == []
    assert [each.number for each in state.outbox()] == [12]


def test_a_file_keeps_its_labels_under_its_new_id(state: StateDatabase) -> None:
    """After an older copy of the state was adopted, the state has the labels of a log's pod under
    the log's new file id. So the last lines of a deleted pod have the same labels as the lines
    before them, although nothing names the pod any more."""
    history = (LabelledFrom(0, (("app", "web"),)), LabelledFrom(90, (("app", "shop"),)))
    changes = Changes()
    changes.put_labels([tracked(11, 1, 100, labels=history)])
    state.commit(changes)
    renew(state, Newest(1, 18, 0))
    *_, found = state.files()
    assert state.labels() == {found.file: history}


def test_a_file_that_had_ended_keeps_its_end_and_what_was_promised_of_it(
    state: StateDatabase,
) -> None:
    """After an older copy of the state was adopted, a rotated file that the agent has completely
    read keeps its file id, its length and its intents. Intents are stored promises to send certain
    bytes. Under a second file id, the file's lines would count as new lines and arrive twice."""
    renew(state, Newest(1, 18, 0))
    ended = state.files()[0]
    assert (ended.file, ended.state, ended.position, ended.length) == (12, FileState.ENDED, 50, 80)
    assert [each.file for each in state.intents()] == [12]


@pytest.mark.parametrize("newest", [None, Newest(1, 17, 0)])
def test_a_state_that_is_the_newest_goes_on_as_it_is(
    state: StateDatabase, newest: Newest | None
) -> None:
    """If an operator adopts a state, and the audit topic has no message from the agent that is
    newer than this state, the state stays unchanged. This is so, for example, if the state was only
    moved to another machine, or if the audit topic was lost."""
    renew(state, newest)
    assert [each.file for each in state.files()] == [11, 12, 13]
    assert (len(state.intents()), len(state.sums())) == (2, 1)


def test_it_is_looked_at_once(state: StateDatabase, tmp_path: Path) -> None:
    """After an operator has adopted a state, only the agent's first start searches the audit topic
    for messages that are newer than the state. Messages that come after this start are from this
    agent itself."""
    renew(state, Newest(1, 17, 0))
    again = open_state(tmp_path)
    renew(again, Newest(2, 5, 0))
    assert [each.file for each in again.files()] == [11, 12, 13]
    again.close()


def test_adopted_twice_the_first_time_counts(tmp_path: Path, state: StateDatabase) -> None:
    """When an operator adopts a state, the number of the state's last message is stored. If a state
    is adopted twice in a row, the agent compares the messages of the audit topic with the number
    that the first adoption stored, because the agent sent nothing between the two adoptions."""
    state.close()
    ledger.adopt(tmp_path, new_epoch=True)
    again = open_state(tmp_path)
    assert (again.epoch, again.adopted) == (3, (1, 17))
    renew(again, Newest(1, 18, 0))
    assert 11 not in {each.file for each in again.files()}
    again.close()
