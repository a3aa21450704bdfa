import os
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from skidway.agent.commands import state as ledger
from skidway.agent.counting.state import CountState
from skidway.agent.state import database
from skidway.agent.state.changes import Changes, LastWord
from skidway.agent.state.database import (
    StateDatabase,
    StateFull,
    check_machine,
    open_as,
    open_state,
)
from skidway.agent.values.found import FileKey, Found, UnopenedFile
from skidway.agent.values.identity import Fingerprint, Guard, Mark
from skidway.agent.values.intents import Intent
from skidway.agent.values.tracked import Birth, Checkpoint, FileState, Tally, TrackedFile
from skidway.audit.counts.counts import Sums
from skidway.audit.topic.messages import Certainty, Loss
from skidway.errors import SkidwayError, StateRefused
from skidway.kafka.source import Source
from skidway.kafka.types import TopicPartition
from support.agent_press import recipe
from support.promises import promise

SOURCE = Source("main", "c", "logs", "id")


def a_file(file: int = 7) -> TrackedFile:
    birth = Birth(
        file, 3, "logs", "id", "host", "/log/a", FileKey(-5, 2**62), Fingerprint(4, b"\x01" * 32),
        10, 6, 12, 2**61,
    )  # fmt: skip
    point = Checkpoint(100, 77, Guard(50, 2**32 - 1), (Mark(20, 1), Mark(2**40, 2**32 - 1)))
    return TrackedFile(
        birth, point, "/log/\udcff", "/link/\udcff", Tally(1, 2, 3, 4, 5), FileState.ENDED, True, 9,
        100, 2**60, True,
    )  # fmt: skip


def durable(tracked: TrackedFile) -> tuple:
    return (
        tracked.birth, tracked.checkpoint, tracked.location, tracked.meant, tracked.tally,
        tracked.state, tracked.announced, tracked.announced_ms, tracked.length, tracked.changed_ns,
        tracked.is_emptied,
    )  # fmt: skip


def test_what_is_committed_is_there_after_a_start(tmp_path: Path) -> None:
    """After a restart, the agent reads back every committed value unchanged."""
    state = open_state(tmp_path)
    made = recipe()
    intent = Intent(4, 7, 100, 200, 2**32 - 1, 5, made.fingerprint)
    loss = Loss(SOURCE, state.agent, 7, 1, None, Certainty.LOST, "why", 5, None)
    key = (SOURCE, state.agent, 60_000)
    changes = Changes()
    changes.put_files([a_file(), a_file(8)])
    changes.forget_files([8])
    changes.put_recipe(made)
    changes.put_intents([intent])
    changes.put_topic("logs", "id", 55)
    changes.put_offsets([(TopicPartition("logs", 2), 9)])
    changes.put_sums([(key, Sums(1, 2, -3))])
    changes.put_touched([(key, 12)])
    changes.put_loss(loss, 1)
    changes.put_message(3, b"value", number=4)
    changes.put_message(4, b"other", file=7)
    changes.put_meta("number", 12)
    state.commit(changes)
    agent = state.agent
    state.close()
    state = open_state(tmp_path)
    assert (state.agent, state.number, state.epoch) == (agent, 12, 1)
    assert [durable(each) for each in state.files()] == [durable(a_file())]
    assert (state.intents(), state.last_sequence()) == ([intent], 4)
    assert state.recipes() == {made.fingerprint: made}
    assert state.topics()["logs"].sealed_until == 55
    assert state.offsets() == {TopicPartition("logs", 2): 9}
    assert state.sums() == [(key, Sums(1, 2, -3))]
    assert state.touched([key, (SOURCE, agent, 0)]) == {key: 12}
    assert state.losses(undeclared=True) == [loss]
    assert [(m.id, m.number, m.file, m.value) for m in state.outbox()] == [
        (3, 4, None, b"value"), (4, None, 7, b"other")
    ]  # fmt: skip
    state.close()


@promise("2 checkpoint")
def test_a_transaction_is_all_or_nothing(tmp_path: Path) -> None:
    """A transaction that fails in the middle changes nothing in the database."""
    state = open_state(tmp_path)
    changes = Changes()
    changes.put_meta("number", 5)
    changes.put_message(1, b"a")
    state.commit(changes)
    again = Changes()
    again.put_meta("number", 6)
    again.put_message(1, b"the same id")
    with pytest.raises(StateRefused):
        state.commit(again)
    assert len(state.outbox()) == 1
    state.close()
    assert open_state(tmp_path).number == 5


def test_a_full_disk_is_no_damage(tmp_path: Path) -> None:
    """On a full disk, a transaction is rolled back. When the disk has room again, the same
    transaction succeeds."""
    state = open_state(tmp_path)
    connection = state._connection
    pages = connection.execute("PRAGMA page_count").fetchone()[0]
    connection.execute(f"PRAGMA max_page_count = {pages + 2}")
    changes = Changes()
    for index in range(20):
        changes.put_message(index, b"x" * 10_000)
    with pytest.raises(StateFull):
        state.commit(changes)
    assert state.outbox() == []
    connection.execute("PRAGMA max_page_count = 100000")
    state.commit(changes)
    assert len(state.outbox()) == 20
    state.close()


def spoil(path: Path, at: int, size: int = 1) -> None:
    with path.open("r+b") as file:
        file.seek(at)
        file.write(b"\xff" * size)


def test_a_damaged_database_is_refused_with_a_sentence(tmp_path: Path) -> None:
    """The agent refuses to start with a damaged database, or if the database is missing but its
    write-ahead log is there. It must not start over without an operator's decision."""
    open_state(tmp_path).close()
    path = tmp_path / database.DATABASE
    whole = path.read_bytes()
    for damage in (b"", b"no database at all", whole[:5000], b"\0" * len(whole)):
        path.write_bytes(damage)
        with pytest.raises(StateRefused, match="state"):
            open_state(tmp_path)
    path.unlink()
    Path(f"{path}-wal").write_bytes(b"x")
    with pytest.raises(StateRefused, match="gone"):
        open_state(tmp_path)


@promise("2 corrupt state")
def test_damage_that_nothing_reads_at_the_start_is_noticed_there(tmp_path: Path) -> None:
    """When the agent starts, SQLite checks the structure of all pages. So the agent notices a
    damaged page before it uses the state, even if it does not read this page at the start."""
    state, changes = open_state(tmp_path), Changes()
    for number in range(200):
        changes.put_message(number, bytes(200))
    state.commit(changes)
    state.close()
    path = tmp_path / database.DATABASE
    spoil(path, path.stat().st_size - 4096, 8)
    with pytest.raises(StateRefused, match="is damaged"):
        open_state(tmp_path)


@promise("2 corrupt state")
@pytest.mark.parametrize("column", ["position", "prefix_crc", "announced", "emptied", "marks"])
def test_a_changed_value_is_noticed(tmp_path: Path, column: str) -> None:
    """The agent notices a changed value in the database by the value's checksum. If it did not
    notice a changed position, lines would be skipped or doubled."""
    state = open_state(tmp_path)
    changes = Changes()
    changes.put_files([a_file()])
    state.commit(changes)
    value = "x'00'" if column == "marks" else "5"
    state._connection.execute(f"UPDATE files SET {column} = {value}")
    with pytest.raises(StateRefused, match="checksum"):
        state.files()


def test_a_changed_promise_is_noticed(tmp_path: Path) -> None:
    """If an intent was changed in the database, the agent notices the change by a checksum, and
    refuses the state. An intent is a stored promise to send certain bytes."""
    state = open_state(tmp_path)
    changes = Changes()
    changes.put_intents([Intent(1, 2, 3, 4, 5, 6, b"x")])
    state.commit(changes)
    state._connection.execute('UPDATE intents SET "end" = 5')
    with pytest.raises(StateRefused, match="checksum"):
        state.intents()


def test_another_database_or_format_is_refused(tmp_path: Path) -> None:
    """A database of another program, or with another format version, is refused and not
    overwritten."""
    path = tmp_path / database.DATABASE
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE t (x)")
    connection.close()
    theirs = path.read_bytes()
    with pytest.raises(StateRefused, match="no agent's database"):
        open_state(tmp_path)
    assert path.read_bytes() == theirs
    path.unlink()
    open_state(tmp_path).close()
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA user_version = 99")
    connection.close()
    with pytest.raises(StateRefused, match="format 99"):
        open_state(tmp_path)


@promise("2 corrupt state")
def test_a_database_that_is_no_file_is_refused(tmp_path: Path) -> None:
    """The path of the state may be a directory, or a link to a missing file (perhaps on a disk that
    is not mounted). The agent then does not begin with a new state, because it would send all lines
    twice."""
    state, away = tmp_path / "state", tmp_path / "away"
    state.mkdir()
    away.mkdir()
    path = state / database.DATABASE
    path.symlink_to(away / database.DATABASE)
    with pytest.raises(StateRefused, match="is no file, or a link to a file that is not there"):
        open_state(state)
    open_state(away).close()
    open_state(state).close()
    path.unlink()
    path.mkdir()
    with pytest.raises(StateRefused, match="is no file"):
        open_state(state)


def test_a_database_that_cannot_be_opened_is_refused_with_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If SQLite cannot open the agent's database, for example because the user may not read the
    file, the agent refuses to start. The error names the file and SQLite's reason."""
    open_state(tmp_path).close()

    def connect(*_: object, **__: object) -> sqlite3.Connection:
        error = sqlite3.OperationalError("unable to open database file")
        error.sqlite_errorcode = sqlite3.SQLITE_CANTOPEN
        raise error

    with monkeypatch.context() as forbidden:
        forbidden.setattr(sqlite3, "connect", connect)
        with pytest.raises(
            SkidwayError, match=r"^cannot use the state .*agent\.db: unable to open"
        ):
            open_state(tmp_path)
    open_state(tmp_path).close()


@pytest.mark.parametrize("kind", [StateDatabase, CountState])
def test_a_database_that_may_not_be_read_is_not_called_damaged(
    tmp_path: Path, kind: type[StateDatabase]
) -> None:
    """If the file system does not let the agent open the files of a sound database, the agent
    refuses to start, but it does not advise to replace the database or to move it away. After such
    a move, a new database would begin, and the agent would send all lines twice."""
    path = tmp_path / kind.file_name
    open_as(kind, tmp_path).close()
    wal = Path(f"{path}-wal")
    wal.mkdir()  # even root cannot open this as a file
    with pytest.raises(SkidwayError, match=f"^cannot use the state {path}: unable to open") as no:
        open_as(kind, tmp_path)
    assert not isinstance(no.value, StateRefused)
    assert kind.what_now not in str(no.value)
    wal.rmdir()
    open_as(kind, tmp_path).close()


def test_a_half_made_database_is_made_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If the agent crashes while it creates its database, there is no file with the database's
    name. So the next start creates the database from the beginning."""

    class Crash(BaseException):
        pass

    def crash() -> int:
        raise Crash

    with monkeypatch.context() as crashing:
        crashing.setattr("skidway.agent.state.database.identity.new_id", crash)
        with pytest.raises(Crash):
            open_state(tmp_path)
    assert database.DATABASE not in os.listdir(tmp_path)
    (tmp_path / f"{database.DATABASE}.new").write_bytes(b"half")
    state = open_state(tmp_path)
    assert state.agent > 0
    assert state.files() == []
    state.close()
    assert os.listdir(tmp_path) == [database.DATABASE]


@promise("1 agent id")
def test_a_state_belongs_to_its_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A copied state is refused on another machine until an operator adopts it there. The adoption
    begins a new epoch, in which message numbers begin with 1 again. In the new epoch, the state no
    longer has the numbers of messages of earlier epochs. If the agent had left, its last word (the
    final seal) is forgotten."""
    state = open_state(tmp_path)
    agent = state.agent
    source = Source("main", "cid", "logs", "tid")
    key = (source, agent, 60_000)
    changes = Changes()
    changes.put_meta("number", 17)
    changes.put_touched([(key, 17)])
    changes.put_left({"logs": LastWord(60_000, 16)})
    changes.put_sums([(key, Sums(3, 30, 5))])
    state.commit(changes)
    check_machine(state, state.machine)
    state.close()
    monkeypatch.setattr("skidway.agent.values.identity.machine_id", lambda: "another")
    state = open_state(tmp_path)
    with pytest.raises(StateRefused, match="adopt"):
        check_machine(state, "another")
    with pytest.raises(
        StateRefused, match=r"has no machine id .* mount the host's /etc/machine-id"
    ):
        check_machine(state, "host b")
    state.close()
    assert str(agent) in ledger.adopt(tmp_path)
    assert "already" in ledger.adopt(tmp_path)
    state = open_state(tmp_path)
    check_machine(state, "another")
    assert (state.agent, state.epoch, state.number) == (agent, 2, 0)
    assert state.touched([key]) == {}
    assert state.left == {}
    assert state.sums() == [(key, Sums(3, 30, 5))]
    state.close()


def test_a_new_epoch_is_begun_where_the_state_is_at_home(tmp_path: Path) -> None:
    """On its own machine, a state gets a new epoch only if the operator asks for one. In the new
    epoch, message numbers begin with 1 again, and unsent counts are kept."""
    state = open_state(tmp_path)
    key = (Source("main", "cid", "logs", "tid"), state.agent, 60_000)
    changes = Changes()
    changes.put_meta("number", 17)
    changes.put_touched([(key, 17)])
    changes.put_sums([(key, Sums(3, 30, 5))])
    state.commit(changes)
    agent, machine = state.agent, state.machine
    state.close()
    assert "already" in ledger.adopt(tmp_path)
    assert "epoch 2" in ledger.adopt(tmp_path, new_epoch=True)
    state = open_state(tmp_path)
    check_machine(state, machine)
    assert (state.agent, state.epoch, state.number) == (agent, 2, 0)
    assert state.touched([key]) == {}
    assert state.sums() == [(key, Sums(3, 30, 5))]
    state.close()


def test_the_ledger_is_read_beside_a_running_agent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`skidway agent state show` reads from the state what happened to the bytes of each file. The
    command does not wait for a running agent, and does not disturb the agent."""
    state = open_state(tmp_path)
    changes = Changes()
    changes.put_files([a_file()])
    state.commit(changes)
    state._connection.execute("BEGIN EXCLUSIVE")  # as while the agent commits
    shown = ledger.show(tmp_path)
    state._connection.execute("ROLLBACK")
    assert shown["agent"] == state.agent
    (entry,) = shown["files"]
    fates = sum(entry[name] for name in ledger.FATES)
    assert fates == entry["bytes"]

    def commits_while_read(*given: Any) -> dict[str, Any]:
        more = Changes()
        more.put_files([a_file(8)])
        state.commit(more)
        return read(*given)

    read = ledger.entry
    monkeypatch.setattr(ledger, "entry", commits_while_read)
    assert [entry["file"] for entry in ledger.show(tmp_path)["files"]] == [7]
    assert [each.file for each in state.files()] == [7, 8]
    state.close()
    with pytest.raises(StateRefused, match="no state"):
        ledger.show(tmp_path / "nowhere")


@promise("6 telling a loss")
def test_what_was_declared_lost_is_shown_as_the_audit_names_it(tmp_path: Path) -> None:
    """`skidway agent state show` lists a declared loss with its file id, path and range, as the
    audit does. If the end of a loss is not known, the number of lost bytes is shown with the words
    "or more"."""
    state = open_state(tmp_path)
    changes = Changes()
    changes.put_files([a_file()])
    changes.put_loss(Loss(SOURCE, state.agent, 7, 100, None, Certainty.LOST, "vanished"), 5)
    changes.put_loss(Loss(SOURCE, state.agent, 9, 0, 2_000, Certainty.UNCERTAIN, "/b: why"), 5)
    state.commit(changes)
    state.close()
    files, declared = ledger.rows(ledger.show(tmp_path))
    assert [(x["file"], x["lost"], x["uncertain"]) for x in files] == [("7", "4 or more", 5)]
    assert [(x["file"], x["path"], x["first"], x["end"], x["fate"]) for x in declared] == [
        ("7", "/log/a", 100, None, "lost"), ("9", None, 0, 2_000, "uncertain")
    ]  # fmt: skip


def test_parts_of_a_divided_intent_stand_where_it_stood(tmp_path: Path) -> None:
    """The state returns the intents of one file in the order of their positions in the file.
    Intents of different files are in the order in which the agent made them. An intent is a stored
    promise to send certain bytes of a file."""
    state = open_state(tmp_path)
    rows = [(1, 7, 0), (2, 8, 0), (3, 7, 90), (4, 8, 50), (5, 7, 30), (6, 7, 60)]
    changes = Changes()
    changes.put_intents(Intent(number, file, at, at + 30, 0, 0, b"x") for number, file, at in rows)
    state.commit(changes)
    assert [(each.file, each.first) for each in state.intents()] == [
        (7, 0), (8, 0), (7, 30), (8, 50), (7, 60), (7, 90)
    ]  # fmt: skip


def test_floors_go_with_the_offsets_of_a_topic_made_again(tmp_path: Path) -> None:
    """When the agent forgets the offsets of a topic that was created again, it also forgets the
    floors of the topic's partitions. A floor is the offset from which the agent searches a
    partition for its records."""
    state = open_state(tmp_path)
    changes = Changes()
    changes.put_floors([(TopicPartition("logs", 3), "id", 8)])
    state.commit(changes)
    assert state.floors() == [(TopicPartition("logs", 3), "id", 8)]
    changes = Changes()
    changes.forget_offsets("logs")
    state.commit(changes)
    assert state.floors() == []


@promise("1 not opened")
def test_files_that_could_not_be_opened_are_kept(tmp_path: Path) -> None:
    """The state stores the list of files that could not be opened. Each commit replaces this list.
    The paths may consist of any bytes."""
    state = open_state(tmp_path)
    found = Found("/log/\udcff", FileKey(-5, 2**62), 2**40, 2**60, None, "/real/\udcff")
    first = UnopenedFile("logs", "id", None, found)
    second = UnopenedFile("logs", "id", "/log/\udcfe", found._replace(key=FileKey(1, 2), born_ns=3))
    for files in ([first], [first, second], [second], []):
        changes = Changes()
        changes.put_unopened(files)
        state.commit(changes)
        state.close()
        state = open_state(tmp_path)
        assert state.unopened() == files


def test_a_state_is_new_only_for_the_process_that_made_it(tmp_path: Path) -> None:
    """Only the process that created a state knows for certain that no message with the state's
    agent id was ever sent. Any other process may have opened an older copy of the state."""
    made = open_state(tmp_path)
    assert made.is_new
    made.close()
    again = open_state(tmp_path)
    assert not again.is_new
    assert again.agent == made.agent
    again.close()
