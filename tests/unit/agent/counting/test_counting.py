"""Tests `skidway agent count`, an agent that sends no lines. For each line it stores a note with
the line's position, length and hash. The tests check which lines it notes. The host with its log
files and clock exists only in memory."""

from __future__ import annotations

import random
import shutil
from pathlib import Path

import pytest

from skidway.agent.counting.settings import CountSettings
from skidway.agent.counting.state import check_directory, open_count
from skidway.agent.files.patterns import Pattern
from skidway.agent.parsing.framing import READ_BYTES
from skidway.agent.state.database import StateFull, open_state
from skidway.audit.comparison import notes
from skidway.audit.comparison.lines import LINE_BYTES_MAX, hash_of
from skidway.errors import StateRefused, UsageError
from support.counting import LOG, Counting, hashes_of


@pytest.fixture
def world(tmp_path: Path) -> Counting:
    return Counting(tmp_path / "notes")


def test_whole_lines_are_noted_with_their_places(world: Counting) -> None:
    """`skidway agent count` stores a note of each line. The note has the position of the line's
    first byte, the line's length and its hash. The command stores no note of an empty line. It
    notes a line without a line end only after the line end is written."""
    world.files.append(LOG, b"one\r\n\ntwo\nunfin")
    world.turn()
    (noted,) = world.counted().files
    assert (noted.path, list(noted.begins), list(noted.lengths)) == (LOG, [0, 6], [5, 4])
    assert list(noted.hashes) == [hash_of(b"one"), hash_of(b"two")]
    world.files.append(LOG, b"ished\n")
    world.turn()
    (noted,) = world.counted().files
    assert (list(noted.begins), list(noted.hashes)[-1]) == ([0, 6, 10], hash_of(b"unfinished"))
    assert world.counted().unnoted == []


def test_a_line_that_is_written_for_hours_is_noted_whole(world: Counting) -> None:
    """`skidway agent count` never divides a line that still grows, because log shippers send such a
    line as one record."""
    for _ in range(100):
        world.files.append(LOG, b"\r 45%")
        world.turn(times=2, seconds=60.0)
    world.files.append(LOG, b"\n")
    world.turn()
    assert world.hashes() == hashes_of("\r 45%" * 100)
    assert world.counted().unnoted == []


def test_lines_of_deleted_files_stay_noted(world: Counting) -> None:
    """After a log was rotated and its old file was deleted, the notes of `skidway agent count`
    still have the old file's lines, and the paths that the file had."""
    world.write("a", "b")
    world.turn()
    world.rotate(f"{LOG}.1")
    world.write("c")
    world.turn()
    world.files.delete(f"{LOG}.1")
    world.turn(times=120)
    old, new = world.counted().files
    assert (old.names, list(old.begins)) == ((LOG, f"{LOG}.1"), [0, 2])
    assert (new.names, list(new.begins)) == ((LOG,), [0])
    assert world.hashes() == hashes_of("a", "b", "c")
    assert world.counted().unnoted == []


def test_lines_that_were_rotated_while_no_agent_ran_are_noted(world: Counting) -> None:
    """After a restart, `skidway agent count` also notes the lines of files that were rotated while
    it was down. It even notes the rest of a file that it had begun to read and that was compressed
    meanwhile."""
    world.write("a")
    world.turn()
    world.kill()
    world.write("b")
    world.rotate(f"{LOG}.2")
    world.files.compress(f"{LOG}.2")
    world.write("c")
    world.rotate(f"{LOG}.1")
    world.write("d")
    world.turn(times=20)
    assert world.hashes() == hashes_of("a", "b", "c", "d")


def test_a_truncated_log_begins_anew(world: Counting) -> None:
    """After copytruncate, `skidway agent count` notes the new lines from byte 0. Its notes say from
    which byte on the old content may have had lines that are not noted."""
    world.write("a", "b", "longer than the next one")
    world.turn()
    world.files.truncate(LOG)
    world.turn()
    world.write("c")
    world.turn()
    old, new = world.counted().files
    assert (list(old.begins), list(new.begins)) == ([0, 2, 4], [0])
    assert world.hashes() == hashes_of("a", "b", "longer than the next one", "c")
    unnoted = world.counted().unnoted[0]
    assert (unnoted.first, unnoted.end) == (29, None)


def test_an_emptied_log_that_begins_as_before_is_noted_whole(world: Counting) -> None:
    """If `skidway agent count` has found a log empty, and the log then begins with the same lines
    as before, the command notes all new lines, even after a restart."""
    world.write("a")
    world.turn()
    world.files.truncate(LOG)
    world.turn()
    world.kill()
    world.write("a", "b")
    world.turn()
    assert world.hashes() == hashes_of("a", "a", "b")


def test_lines_that_went_away_unread_are_told(world: Counting) -> None:
    """If a file is deleted before `skidway agent count` could read the file to its end, the notes
    say from which byte on the file's lines are not noted."""
    world.write("a")
    world.turn()
    world.kill()
    world.write("b")
    world.files.delete(LOG)
    world.turn()
    (unnoted,) = world.counted().unnoted
    assert (unnoted.path, unnoted.first, unnoted.end) == (LOG, 2, None)


def test_what_is_not_noted_is_forgotten_with_its_time(
    world: Counting, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The database in which `skidway agent count` notes lines also lists byte ranges whose lines
    are not noted. The list has a maximum length. If the oldest range is deleted from the list, the
    notes claim to be complete only from a later time on."""
    monkeypatch.setattr(notes, "UNNOTED_MAX", 2)
    times = list[int]()
    for _ in range(4):
        world.write("a")
        world.turn()
        world.kill()
        world.write("b")
        world.files.delete(LOG)
        times.append(world.clock.time_ms())
        world.turn()
    counted = world.counted()
    assert len(counted.unnoted) == 2
    assert times[1] <= counted.from_ms <= times[2] + 1_000


def test_files_that_appeared_later_were_written_later(world: Counting) -> None:
    """A look is one scan of the log directories. If a look finds a new file, the notes say that all
    the file's lines were written after the previous look. No look came before the first one, so the
    notes give no such time for the files that the first look finds."""
    world.write("a")
    world.turn()
    looked_ms = world.clock.time_ms()
    world.rotate(f"{LOG}.1")
    world.write("b")
    world.turn()
    old, new = world.counted().files
    assert old.after_ms is None
    assert new.after_ms is not None
    assert looked_ms - 2_000 <= new.after_ms <= looked_ms


def test_a_restart_does_not_make_files_younger(world: Counting) -> None:
    """If the agent finds a new file after a restart, the notes say that the file's lines were
    written after the last look (scan) that was stored before the restart. They do not say that the
    lines were written after the restart."""
    world.write("a")
    world.turn()
    last_ms = world.clock.time_ms()
    world.kill()
    world.clock.advance(3600)
    world.rotate(f"{LOG}.1")
    world.write("b")
    world.turn()
    new = world.counted().files[-1]
    assert new.after_ms is not None
    assert new.after_ms <= last_ms


def test_start_at_end_skips_what_was_there(tmp_path: Path) -> None:
    """With --start-at end, `skidway agent count` does not note the lines that a file has at the
    first start. An unfinished last line is noted when its end is written."""
    world = Counting(tmp_path / "notes", start_at="end")
    world.files.append(LOG, b"a\nb\nunfin")
    world.turn()
    world.files.append(LOG, b"ished\n")
    world.turn()
    assert world.hashes() == hashes_of("unfinished")


def test_a_line_that_is_divided_for_an_hour_is_not_compared(world: Counting) -> None:
    """If a line gets no line end for an hour, `skidway agent count` notes neither the line's
    beginning nor its rest as a line. This holds even if the agent is killed in between."""
    world.files.append(LOG, b"a\nunfin")
    world.turn()
    world.turn(times=3, seconds=2000)
    world.kill()
    world.files.append(LOG, b"ished\nb\n")
    world.turn()
    assert world.hashes() == hashes_of("a", "b")
    assert [(x.first, x.end) for x in world.counted().unnoted] == [(2, 7), (7, 13)]


def test_long_lines_are_noted(world: Counting) -> None:
    """A line that is longer than what the agent reads at once is noted as a whole. A line that is
    longer than `LINE_BYTES_MAX` is not noted, but listed as a range without notes. The lines after
    it are noted."""
    long = b"x" * (READ_BYTES * 2 + 7)
    world.files.append(LOG, b"a\n" + long + b"\nb\n" + b"y" * (LINE_BYTES_MAX + 1) + b"\nc\n")
    world.turn(times=60)
    expected = hashes_of("a", "b", "c")
    expected[hash_of(long)] += 1
    assert world.hashes() == expected
    (unnoted,) = world.counted().unnoted
    assert unnoted.first == len(long) + 5


def test_a_full_disk_loses_no_note(world: Counting, monkeypatch: pytest.MonkeyPatch) -> None:
    """While the disk is full, `skidway agent count` reads nothing. When there is room again, it
    stores the notes that it has in memory, and none of them twice."""
    loop = world.start()
    assert world.state is not None
    world.write("a", "b")

    def refuse(_: object) -> None:
        raise StateFull("no room")

    with monkeypatch.context() as full:
        full.setattr(world.state, "commit", refuse)
        world.turn()
        assert loop.full_reason == "no room"
        world.write("c")
        world.turn()
    world.turn()
    assert loop.full_reason is None
    assert world.hashes() == hashes_of("a", "b", "c")


class Killed(Exception):
    pass


@pytest.mark.parametrize("seed", range(30))
def test_a_kill_at_any_moment_neither_loses_nor_doubles_a_line(
    world: Counting, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`skidway agent count` notes each line once, even if logs are rotated and deleted at random,
    and the agent is killed at random: before a transaction, after a transaction, or between two
    turns."""
    chance, written, generation = random.Random(seed), list[str](), 0
    for _ in range(60):
        what = chance.choice(["write", "write", "turn", "turn", "rotate", "before", "after"])
        if what == "write":
            texts = [f"line {len(written) + n} {chance.random()}" for n in range(3)]
            world.write(*texts)
            written += texts
        elif what == "rotate" and LOG in world.files.by_path:
            generation += 1
            world.rotate(f"{LOG}.{generation}")
            if chance.random() < 0.3:
                world.turn(times=70)
                world.files.delete(f"{LOG}.{generation}")
        elif what == "turn":
            world.turn(times=chance.randrange(1, 3))
        elif what in ("before", "after"):
            _turn_and_kill(world, monkeypatch, is_before=what == "before")
    world.turn(times=80)
    assert world.hashes() == hashes_of(*written)
    # If logs were rotated while no agent ran, further rotated files may have been deleted unread.
    # The agent reports this doubt with "rotated more".
    assert not [each for each in world.counted().unnoted if "rotated more" not in each.reason]


def _turn_and_kill(world: Counting, patch: pytest.MonkeyPatch, *, is_before: bool) -> None:
    """Kills the agent just before or just after its next transaction."""
    loop = world.loop or world.start()
    state = world.state
    assert state is not None
    commit = state.commit

    def die(changes: object) -> None:
        if not is_before:
            commit(changes)  # type: ignore[arg-type]
        raise Killed

    with patch.context() as killing:
        killing.setattr(state, "commit", die)
        world.clock.advance(1)
        try:
            loop.turn()
        except Killed:
            pass
    world.kill()


@pytest.mark.parametrize("seed", range(10))
def test_a_torn_log_of_the_database_neither_loses_nor_doubles_a_line(
    world: Counting, seed: int
) -> None:
    """If a power loss cuts the database's write-ahead log at any byte, the notes still agree with
    the agent's positions in the log files. If notes are lost, the restarted agent reads their lines
    again. In the end, each line is noted once."""
    chance = random.Random(seed)
    written = [f"line {n} {chance.random()}" for n in range(300)]
    for at in range(0, 300, 30):
        world.write(*written[at : at + 30])
        world.turn(times=2)
    torn = Counting(world.directory.with_name("torn"))
    shutil.copytree(world.directory, torn.directory)
    (torn.directory / "count.db-shm").unlink(missing_ok=True)
    log = torn.directory / "count.db-wal"
    log.write_bytes(log.read_bytes()[: chance.randrange(log.stat().st_size)])
    torn.files, torn.clock = world.files, world.clock
    torn.turn()
    assert torn.hashes() == hashes_of(*written)


def test_the_state_of_an_agent_is_not_touched(tmp_path: Path) -> None:
    """`skidway agent count` refuses to store its notes in the state directory of an agent that
    sends lines."""
    open_state(tmp_path).close()
    with pytest.raises(UsageError, match="has the state of an agent"):
        check_directory(tmp_path, ())


def test_a_directory_with_other_files_is_refused(tmp_path: Path) -> None:
    """`skidway agent count` needs a directory of its own for its notes, so that the notes do not
    mix with other files, and no agent sends them as lines of a log. The directory may be empty, or
    may have the notes of an earlier run, even of a run that was killed while it made the
    database."""
    notes_of = tmp_path / "notes"
    check_directory(notes_of, (Pattern("/log/app.log"),))
    for name in (".lock", "lost+found", "count.db.new", "count.db.new-journal"):
        notes_of.mkdir(exist_ok=True)
        (notes_of / name).touch()
        check_directory(notes_of, (Pattern("/log/app.log"),))
    open_count(notes_of).close()
    check_directory(notes_of, (Pattern("/log/app.log"),))
    for number, name in enumerate(("app.log", "count.db.bak", "count.database")):
        others = tmp_path / str(number)
        others.mkdir()
        (others / name).touch()
        with pytest.raises(UsageError, match="has other files"):
            check_directory(others, (Pattern("/log/app.log"),))


@pytest.mark.parametrize("pattern", ["*", "count.*", "*-wal"])
def test_notes_are_not_counted_as_logs(tmp_path: Path, pattern: str) -> None:
    """`skidway agent count` refuses a pattern for log files that also matches the files of its
    notes, even if the directory of the notes is given as a link."""
    (tmp_path / "link").symlink_to(tmp_path / "real")
    for directory in (tmp_path / "real", tmp_path / "link"):
        for below in ("real", "link"):
            with pytest.raises(UsageError, match="also matches the notes"):
                check_directory(directory, (Pattern(f"{tmp_path}/{below}/{pattern}"),))


def test_a_file_is_no_directory_for_notes(tmp_path: Path) -> None:
    """If the path that should be the directory of the notes is a file, `skidway agent count`
    refuses this path with one sentence."""
    (tmp_path / "notes").touch()
    with pytest.raises(UsageError, match="is no directory"):
        check_directory(tmp_path / "notes", ())


def test_damaged_notes_are_refused_with_what_to_do(world: Counting) -> None:
    """If the database of the notes is damaged, `skidway agent count` does not start. The error says
    how the operator can begin new notes."""
    world.write("a")
    world.turn()
    world.kill()
    for path in world.directory.glob("count.db*"):
        path.write_bytes(b"not a database" * 1_000)
    with pytest.raises(StateRefused, match="move the directory away: new notes begin with"):
        world.start()


def test_notes_of_another_machine_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`skidway agent count` refuses notes that were copied from another machine, because the
    positions in these notes belong to other files."""
    open_count(tmp_path).close()
    monkeypatch.setattr("skidway.agent.values.identity.machine_id", lambda: "other")
    with pytest.raises(StateRefused, match="another machine"):
        open_count(tmp_path)


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"paths": ("app.log",)}, "must be absolute"),
        ({"exclude": ("*.gz",)}, "must be absolute"),
        ({"keep_s": 60.0}, "--keep must be"),
        ({"keep_bytes": 1}, "--keep-mb must be"),
    ],
)
def test_settings_that_count_nothing_are_refused(
    tmp_path: Path, changed: dict[str, object], said: str
) -> None:
    """If the value of an option of `skidway agent count` cannot work, the error names the option or
    says what the value must be."""
    given: dict[str, object] = {"paths": (LOG,), "directory": tmp_path, **changed}
    with pytest.raises(UsageError, match=said):
        CountSettings(**given).check()  # type: ignore[arg-type]
