"""An exhaustive search over the real commit code finds no state in which a row is missing, or
exists twice for a reader. The search covers two loaders, a crash between any two operations, and
lost answers.

A loader is the same generator that runs in production (`skidway.loader.state.commit`). It yields
operations on files, and gets the answer to each operation. In each step, the search performs one
operation of one loader on a store in memory. The search continues from each state only once. The
search stores the state of a loader as the list of the answers that the loader got. If the search
gives these answers to a new generator, the new generator comes to the same point."""

from __future__ import annotations

import functools
import itertools
import json
import random
from collections import deque
from collections.abc import Collection, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import pytest

from skidway.errors import StateRefused
from skidway.kafka.source import Source
from skidway.loader.state import (
    chain,
    checkpoint,
    commit,
    folding,
    layout,
    operations,
    success_files,
)
from skidway.loader.state.live import live
from skidway.loader.state.live_file import LiveFile
from skidway.loader.state.manifest import (
    REJECTS,
    ROWS,
    DataFile,
    Manifest,
    PartitionRange,
    Replacement,
)
from support.memory_store import MemoryStore, Snapshot
from support.promises import promise

TOPIC = "t"
HOUR = "1970-01-01T00"
SUCCESS = layout.success(TOPIC, HOUR)
CHECKPOINTS = layout.checkpoints(TOPIC)
ROWS_OF = f"{TOPIC}/part-"
ROWS_OF_HOUR = f"{TOPIC}/{layout.hour_folder(0)}/part-"
REJECTS_OF = f"{layout.state(TOPIC)}/rejects/part-"
SOURCE = Source("c", "id", TOPIC, "topic")


@dataclass(frozen=True)
class Put:
    """The step in which tasks write files to the load's staging directory. It comes between
    `commit.begin` and `commit.commit`, and changes nothing outside of this directory."""

    files: tuple[tuple[str, bytes], ...]


Run = Generator[Any, Any, Manifest | None]
"""The type of one run of a loader, from its start to its end. The generator returns the manifest if
the run commits one."""


def session(uuid: str, offsets: int, prefixes: Sequence[str]) -> Run:
    """A run that loads records up to at most the offset `offsets`. Each loaded offset becomes two
    rows, one in each of the two files that the load writes. `prefixes` contains the beginnings of
    the paths of these two files. Every load also replaces the file that tells readers the columns
    of the newest schema; here its content is the load's number."""
    newest = yield from commit.begin(TOPIC)
    offset = newest.partitions[0].end if newest else 0
    # two runs that begin at the same offset may end at different offsets
    end = min(offset + 1 + int(uuid, 16) % 2, offsets)
    if offset >= end:
        return None
    rows = [[(at, half) for at in range(offset, end)] for half in (0, 1)]
    return (yield from _load(prefixes, newest, uuid, PartitionRange(0, offset, end), rows))


def rewriting(uuid: str, _offsets: int, prefixes: Sequence[str]) -> Run:
    """A run that writes the rows of all files into a single file, which replaces all these files.
    If there is only one file, the run does nothing."""
    newest = yield from commit.begin(TOPIC)
    if newest is None:
        return None
    try:
        found = yield from live(newest)
    except chain.Folded:  # another run has replaced old manifests by a list of files
        return None
    if len(found) < 2:
        return None
    kept = yield from success_files.marked(TOPIC, [HOUR])
    rows, end = _rows_of(found), newest.partitions[0].end
    success = kept.get(HOUR)
    taken = PartitionRange(0, end, end)
    return (yield from _load(prefixes, newest, uuid, taken, [rows], tuple(found), success))


def reloading(uuid: str, _offsets: int, prefixes: Sequence[str]) -> Run:
    """A run that reads all records again. Each row becomes a rejected record, and each rejected
    record becomes a row."""
    newest = yield from commit.begin(TOPIC, layout.Hours("", "~"))
    if newest is None:
        return None
    try:
        found = yield from live(newest, (ROWS, REJECTS))
    except chain.Folded:  # another run has replaced old manifests by a list of files
        return None
    rows = [
        _rows_of({path: each for path, each in found.items() if each.file.kind == kind})
        for kind in (REJECTS, ROWS)
    ]
    end = newest.partitions[0].end
    taken = PartitionRange(0, end, end)
    return (yield from _load(prefixes, newest, uuid, taken, rows, tuple(found)))


def marking(uuid: str, prefixes: Sequence[str]) -> Run:
    """A run that adds or removes the file `_SUCCESS`, which tells readers that an hour is complete.
    If the hour has no such file, the run writes one, with the hour's rows as its content. If the
    hour already has this file, the run removes the file."""
    newest = yield from commit.begin(TOPIC)
    if newest is None:
        return None
    found = yield from live(newest)
    kept = yield from success_files.marked(TOPIC, [HOUR])
    success = None if kept else json.dumps(_rows_of(found)).encode()
    end = newest.partitions[0].end
    taken = PartitionRange(0, end, end)
    return (yield from _load(prefixes, newest, uuid, taken, [], (), success, bool(kept)))


def _rows_of(found: Mapping[str, LiveFile]) -> list[tuple[int, ...]]:
    return sorted(tuple(row) for each in found.values() for row in rows_of_path(each.file))


def _load(
    prefixes: Sequence[str],
    newest: Manifest | None,
    uuid: str,
    taken: PartitionRange,
    rows: Sequence[Sequence[tuple[int, ...]]],
    removed: tuple[str, ...] = (),
    success: bytes | None = None,
    reopened: bool = False,
) -> Generator[Any, Any, Manifest | None]:
    """Writes the files of a load and commits the load. Returns the load's manifest, or None if the
    commit failed."""
    number = newest.number + 1 if newest else 1
    files, staging = [], layout.staging(TOPIC, number, uuid)
    for index, content in enumerate(rows):
        path = f"{prefixes[index]}{number}-{index}-{json.dumps(content)}"
        kind = REJECTS if path.startswith(REJECTS_OF) else ROWS
        length = len(json.dumps(content))
        files.append(DataFile(kind, path, f"{staging}/{index}", length, len(content), 0, 0))
    columns = Replacement(layout.columns(TOPIC), f"{staging}/columns")
    staged = ((file.staged, content_of(file).encode()) for file in files)
    mark = Replacement(SUCCESS, f"{staging}/success")
    marked = [] if success is None else [(mark.staged, success)]
    yield Put((*staged, (columns.staged, b"%d" % number), *marked))
    manifest = Manifest(
        number=number,
        uuid=uuid,
        created=0,
        program="",
        producer=TOPIC,
        epoch=1,
        cluster="c",
        cluster_id="id",
        topic=TOPIC,
        topic_id="topic",
        source=SOURCE,
        partitions=(taken,),
        files=tuple(files),
        schema=None,
        columns=columns,
        removed=removed,
        success=(mark,) if marked else (),
        reopened=(SUCCESS,) if reopened else (),
    )
    return manifest if (yield from commit.commit(manifest)) else None


def content_of(file: DataFile) -> str:
    return file.path.rsplit("-", 1)[1]


def rows_of_path(file: DataFile) -> list[list[int]]:
    return list(json.loads(content_of(file)))


class Loader(NamedTuple):
    """The state of one loader. `uuid` identifies its run, and is empty while the loader is idle.
    `history` is the index under which the search keeps the list of answers that the loader got.
    `linked` is the source path of a local rename that is half done: the target exists, and the
    source is not removed yet."""

    uuid: str = ""
    history: int = 0
    linked: str = ""


class World(NamedTuple):
    files: Snapshot
    loaders: tuple[Loader, Loader]
    crashes: int
    unclear: int
    sessions: int


class Step(NamedTuple):
    """What one operation of a loader leads to: its description, the files after it, and the loader
    after it."""

    label: str
    files: Snapshot
    loader: Loader


class Search:
    """Visits once every state that two loaders can reach by any order of operations, crashes and
    lost answers."""

    def __init__(
        self,
        *,
        offsets: int,
        sessions: int,
        crashes: int = 0,
        unclear: int = 0,
        local: bool = False,
        rewrites: Collection[int] = (),
        marks: Collection[int] = (),
        reloads: Collection[int] = (),
    ) -> None:
        """`offsets` is the number of offsets to load, and `sessions` is the total number of runs of
        all loaders. The runs are numbered from 1. `rewrites` contains the numbers of the runs that
        rewrite files instead of loading. `marks` contains the numbers of the runs that write or
        remove the hour's `_SUCCESS` file instead of loading. If `marks` is empty, the rows are not
        in an hour's directory, so that the search has fewer states. `reloads` contains the numbers
        of the runs that read all records again. If there are such runs, each load writes one file
        of rows and one file of rejects; otherwise it writes two files of rows. No run of this class
        replaces old manifests by a checkpoint (a list of the output's files).
        """
        self._offsets, self._sessions, self._local = offsets, sessions, local
        self._rewrites = {f"{number:032x}" for number in rewrites}
        self._marks = {f"{number:032x}" for number in marks}
        self._reloads = {f"{number:032x}" for number in reloads}
        rows = ROWS_OF_HOUR if marks else ROWS_OF
        self._prefixes = (rows, REJECTS_OF if reloads else rows)
        self._answers: list[tuple[Any, ...]] = [()]
        self._interned: dict[tuple[int, Any], int] = {}
        self._pending: dict[tuple[str, int], Any] = {}
        self._known: dict[tuple[Snapshot, Loader, bool | None], Step | None] = {}
        idle = Loader()
        self.start = World(frozenset(), (idle, idle), crashes, unclear, 0)

    def run(self, limit: int = 1_000_000) -> int:
        """Runs the search and returns the number of states. If `check` finds a fault in a state,
        raises AssertionError with the steps that lead to this state."""
        seen: dict[World, tuple[World, str] | None] = {self.start: None}
        queue = deque([self.start])
        while queue:
            world = queue.popleft()
            for label, following in self.successors(world):
                if following not in seen:
                    seen[following] = (world, label)
                    fault = check(following)
                    assert not fault, f"{fault}: {'; '.join(_way(seen, following))}"
                    queue.append(following)
            assert len(seen) < limit, "the search does not end; the bounds were chosen for it to"
        return len(seen)

    def successors(self, world: World) -> Iterator[tuple[str, World]]:
        """Returns what can happen next: for each event, a text and the state after it."""
        files, loaders, crashes, unclear, sessions = world
        for index, loader in enumerate(loaders):
            other = loaders[1 - index]
            if not loader.uuid:
                if sessions < self._sessions:
                    begun = _pair(Loader(f"{sessions + 1:032x}"), other)
                    yield f"{index} start", World(files, begun, crashes, unclear, sessions + 1)
                continue
            if crashes:
                pair = _pair(Loader(), other)
                yield f"{index} crash", World(files, pair, crashes - 1, unclear, sessions)
            for lost in (None, True, False) if unclear else (None,):
                if (step := self._step(files, loader, lost)) is not None:
                    label, after, following = step
                    left = unclear if lost is None else unclear - 1
                    pair = _pair(following, other)
                    yield f"{index} {label}", World(after, pair, crashes, left, sessions)

    def _step(self, files: Snapshot, loader: Loader, lost: bool | None) -> Step | None:
        """Performs the next operation of the loader, but only once for the same files, because many
        states differ only in the other loader. Returns None if the answer to the operation cannot
        be lost, but `lost` is not None."""
        key = (files, loader, lost)
        if key not in self._known:
            self._known[key] = self._perform(files, loader, lost)
        return self._known[key]

    def _perform(self, files: Snapshot, loader: Loader, lost: bool | None) -> Step | None:
        operation = self._operation(loader)
        while (known := self._answer_always(operation)) is not None:
            loader = self._sent(loader, known[0])
            operation = self._operation(loader)
        if lost is not None and not isinstance(operation, operations.Create):
            return None
        if operation is None:
            return Step("end", files, Loader())
        store = MemoryStore(files)
        store.lose_answer = lost
        label = f"{type(operation).__name__} {getattr(operation, 'path', '')}"
        if isinstance(operation, Put):
            answer: Any = None
            for path, data in operation.files:
                store.put(path, data)
        elif self._local and isinstance(operation, operations.Rename):
            loader = self._link(loader, operation, store)
            return Step(label, store.snapshot, loader)
        else:
            answer = operations.perform(operation, store)
        return Step(label, store.snapshot, self._sent(loader, answer))

    def _answer_always(self, operation: Any) -> tuple[Any] | None:
        """If the operation changes nothing and has the same answer in every state, returns this
        answer in a tuple. Returns None for every other operation."""
        if isinstance(operation, operations.Sync):  # a store in memory has nothing to sync
            return (None,)
        if operation == operations.Names(CHECKPOINTS):
            return ([],)
        return None

    def _link(self, loader: Loader, move: operations.Rename, store: MemoryStore) -> Loader:
        """Performs one step of renaming a local file. The first step links the target to the
        source, and the second removes the source. Operations of the other loader may happen between
        these two steps."""
        if not loader.linked:
            data = store.read(move.source)
            if data is None or store.length(move.target) is not None:
                return self._sent(loader, False)
            store.put(move.target, data)
            return loader._replace(linked=move.source)
        store.delete(loader.linked)
        return self._sent(loader._replace(linked=""), True)

    def _sent(self, loader: Loader, answer: Any) -> Loader:
        kept = tuple(answer) if isinstance(answer, list) else answer
        key = (loader.history, kept)
        if key not in self._interned:
            self._answers.append((*self._answers[loader.history], answer))
            self._interned[key] = len(self._answers) - 1
        return Loader(loader.uuid, self._interned[key], loader.linked)

    def _operation(self, loader: Loader) -> Any:
        """Returns the next operation of the loader, or None if the loader has ended."""
        key = (loader.uuid, loader.history)
        if key not in self._pending:
            steps = session(loader.uuid, self._offsets, self._prefixes)
            if loader.uuid in self._rewrites:
                steps = rewriting(loader.uuid, self._offsets, self._prefixes)
            elif loader.uuid in self._reloads:
                steps = reloading(loader.uuid, self._offsets, self._prefixes)
            elif loader.uuid in self._marks:
                steps = marking(loader.uuid, self._prefixes)
            try:
                operation = next(steps)
                for answer in self._answers[loader.history]:
                    operation = steps.send(answer)
            except StopIteration:
                operation = None
            self._pending[key] = operation
        return self._pending[key]


def _pair(one: Loader, other: Loader) -> tuple[Loader, Loader]:
    """The two loaders in one order, so that states which differ only in the order are equal."""
    return (one, other) if one <= other else (other, one)


def is_idle(world: World) -> bool:
    """Returns whether no loader is running."""
    return not any(loader.uuid for loader in world.loaders)


def check(world: World) -> str:
    """Returns a sentence about the fault of a state, or an empty text if the state has no fault."""
    return _check(world.files, is_idle(world))


@functools.lru_cache(maxsize=100_000)  # a cache, because many states have the same files
def _check(snapshot: Snapshot, idle: bool) -> str:
    files = dict(snapshot)
    oldest, known = _checkpoints(files)
    manifests = [
        manifest
        for path, data in sorted(files.items())
        if layout.manifest_number(path.removeprefix(f"{layout.state(TOPIC)}/")) is not None
        if (manifest := Manifest.from_json(data, path)).number >= oldest
    ]
    visible, rejects = (
        [
            tuple(row)
            for path, data in files.items()
            if path.startswith(prefixes)
            for row in json.loads(data)
        ]
        for prefixes in ((ROWS_OF, ROWS_OF_HOUR), REJECTS_OF)
    )
    numbers = (
        path.rpartition("/part-")[2].split("-")[0]
        for path in files
        if path.startswith((ROWS_OF, ROWS_OF_HOUR))
    )
    newest = max(map(int, numbers), default=0)
    if int(files.get(layout.columns(TOPIC), b"0")) < newest:
        return "who lists directories sees rows whose columns are not there"
    if any(len(each) != len(set(each)) for each in (visible, rejects)):
        return "who lists directories sees a row twice"
    if SUCCESS in files and sorted(json.loads(files[SUCCESS])) != sorted(map(list, visible)):
        return "an hour is marked as complete while other rows are visible than those it had"
    rows: list[tuple[Any, ...]] = []
    for begin in known:
        fault, rows = _read_manifests(known[begin], [x for x in manifests if x.number > begin])
        if not set(visible) <= set(rows):
            return "a row that is not committed is visible"
        end = manifests[-1].partitions[0].end if manifests else 0
        if not fault and set(rows) != {(offset, half) for offset in range(end) for half in (0, 1)}:
            fault = "the manifests' rows are not those of their offsets"
        if fault:
            return fault
    return _after_another_start(snapshot, rows) if idle else ""


def _read_manifests(
    base: Mapping[str, DataFile], manifests: Sequence[Manifest]
) -> tuple[str, list[tuple[Any, ...]]]:
    """Acts as a reader that begins with the files `base` and then reads the manifests. Returns a
    sentence about the fault that this reader sees (an empty text if there is none), and the rows
    that it finds."""
    files = {**base} | {file.path: file for each in manifests for file in each.files}
    for path in (path for each in manifests for path in each.removed):
        if files.pop(path, None) is None:
            return "a load removes a file that is removed already", []
    rows = [tuple(row) for file in files.values() for row in rows_of_path(file)]
    if len(rows) != len(set(rows)):
        return "who reads manifests sees a row twice", rows
    return "", rows


def _checkpoints(files: Mapping[str, bytes]) -> tuple[int, dict[int, dict[str, DataFile]]]:
    """Returns the number of the oldest manifest that readers still need, and a dict from load
    numbers to checkpoints. The checkpoint of a load is the set of the output's files after that
    load. A reader may begin with the checkpoint instead of reading the manifests up to that
    load."""
    found = {
        numbers: data
        for path, data in files.items()
        if (numbers := layout.checkpoint_numbers(path.removeprefix(f"{CHECKPOINTS}/")))
    }
    oldest = max((each for _, each in found), default=1)
    known: dict[int, dict[str, DataFile]] = {0: {}} if oldest == 1 else {}
    for (load, _), data in found.items():
        if load >= oldest - 1:
            live_files = checkpoint.decode(data, load).items()
            known[load] = {path: each.file for path, each in live_files}
    return oldest, known


def _after_another_start(files: Snapshot, rows: list[tuple[Any, ...]]) -> str:
    """Starts another load in a copy of the store. Checks that its start (`commit.begin`) moves the
    files with committed rows to their final paths, whatever earlier runs have left behind. Returns
    a sentence about the fault, or an empty text."""
    store = MemoryStore(files)
    newest = operations.run(commit.begin(TOPIC), store)
    if newest is not None and store.read(layout.columns(TOPIC)) != b"%d" % newest.number:
        return "a start leaves the columns of another load"
    visible = [
        tuple(row)
        for folder in (TOPIC, layout.state(TOPIC))
        for entry in store.files(folder)
        if entry.path.startswith((ROWS_OF, ROWS_OF_HOUR, REJECTS_OF))
        for row in json.loads(store.read(entry.path) or b"[]")
    ]
    return "" if sorted(visible) == sorted(rows) else "a start leaves committed rows out of place"


def _way(seen: dict[World, tuple[World, str] | None], world: World) -> list[str]:
    labels = []
    at = seen[world]
    while at is not None:
        labels.append(at[1])
        at = seen[at[0]]
    return labels[::-1]


class Stopped:
    """A loader that performs a given number of operations, stops, and can continue later."""

    def __init__(self, steps: Run, store: MemoryStore) -> None:
        self._steps, self._store = steps, store
        self._answer: Any = None
        self.ended = False

    def go(self, count: int | None = None) -> Stopped:
        """Performs `count` operations, or all remaining operations if `count` is None."""
        for _ in itertools.count() if count is None else range(count):
            try:
                operation = self._steps.send(self._answer)
            except StopIteration:
                self.ended = True
                break
            self._answer = None
            if isinstance(operation, Put):
                for path, data in operation.files:
                    self._store.put(path, data)
            else:
                self._answer = operations.perform(operation, self._store)
        return self


def folding_loads(*numbers: int, prefixes: Sequence[str]) -> Run:
    """A series of runs, one for each of `numbers`, which make the runs' uuids. Each run loads
    records, and then replaces old manifests by a checkpoint (the set of the output's files) as
    early as possible."""
    mine = None
    for number in numbers:
        mine = yield from session(f"{number:032x}", 9, prefixes)
        if mine is not None:
            yield from folding.fold(mine, keep=1, every=1)
    return mine


def _manifest(store: MemoryStore, number: int) -> bytes | None:
    return store.read(layout.manifest(TOPIC, number))


def _assert_kept(store: MemoryStore, when: str) -> None:
    """Asserts that the store has no fault, neither now nor after a further run has started. `when`
    is a text for the error message: what happened before."""
    fault = check(World(store.snapshot, (Loader(), Loader()), 0, 0, 0))
    assert not fault, f"{fault}, after {when}"


KINDS = pytest.mark.parametrize("local", [False, True], ids=["rename", "link-unlink"])


@promise("5 manifest")
@KINDS
def test_two_loaders_race_for_each_number(local: bool) -> None:
    """If two loaders run at once, only one of them commits the manifest of each number, and every
    row exists once."""
    assert Search(offsets=2, sessions=2, local=local).run() > 1000


@promise("5 manifest")
@KINDS
def test_a_loader_killed_between_any_two_operations(local: bool) -> None:
    """Every row exists once, even if a loader is killed between any two operations and started
    again while another loader runs."""
    assert Search(offsets=1, sessions=3, crashes=1, local=local).run() > 1000
    assert Search(offsets=2, sessions=2, crashes=1, local=local).run() > 1000


@promise("5 manifest")
def test_answers_of_the_commit_lost() -> None:
    """If the answer to a commit is lost, the loader compares the stored manifest's uuid with its
    own uuid, and so finds out whether the commit happened."""
    assert Search(offsets=2, sessions=2, unclear=1).run() > 1000
    assert Search(offsets=1, sessions=2, unclear=2, crashes=1).run() > 1000


@promise("5 manifest")
@KINDS
def test_files_are_rewritten_beside_a_load(local: bool) -> None:
    """If one run rewrites files (replaces them by a new file with the same rows) while another run
    loads, a reader of the manifests always finds every row once. This is so even if one of the two
    runs is killed at any point. A reader of the directories never finds a row twice. It finds every
    row as soon as a further run has started."""
    assert Search(offsets=1, sessions=2, crashes=1, local=local, rewrites=[2]).run() > 1000


@promise("5 checkpoint")
@pytest.mark.parametrize(
    ("late", "other"),
    [(session, ROWS_OF), (rewriting, ROWS_OF), (reloading, REJECTS_OF)],
    ids=["load", "rewriting", "reload"],
)
def test_manifests_are_folded_beside_a_late_loader(late: Any, other: str) -> None:
    """If a loader stops at any point, and continues after another loader has loaded twice and
    deleted old manifests, every row exists once when both loaders have ended. This is so even if
    the other loader is stopped or killed at any point. Readers may begin with any checkpoint (a
    stored list of the output's files), and find the same rows."""
    begun, prefixes = MemoryStore(), (ROWS_OF, other)
    Stopped(folding_loads(1, prefixes=prefixes), begun).go()
    lost = 0
    for first in itertools.count():
        for second in itertools.count():
            store = MemoryStore(begun.snapshot)
            one = Stopped(late(f"{9:032x}", 9, prefixes), store)
            two = Stopped(folding_loads(2, 3, prefixes=prefixes), store)
            late_ended = one.go(first).ended
            ended = two.go(second).ended
            one.go()
            _assert_kept(store, f"{first} and {second} operations")  # as if `two` was killed
            lost += _manifest(store, 2) is None
            two.go()
            _assert_kept(store, f"{first}, {second} operations, and both to the end")
            if ended:
                break
        if late_ended:
            break
    assert lost > 10, "old manifests are gone in few of the runs only"


@promise("5 reload")
@KINDS
def test_records_are_reloaded_beside_a_load(local: bool) -> None:
    """If one run reads all records of the topic again while another run loads, a reader of the
    manifests always finds every record once. This is so even if one of the two runs is killed at
    any point. A reader of the directories never finds a row twice. Every record is in its final
    place as soon as a further run has started."""
    assert Search(offsets=1, sessions=2, crashes=1, local=local, reloads=[2]).run() > 1000


@promise("5 success file")
@KINDS
def test_an_hour_is_marked_beside_a_load(local: bool) -> None:
    """While the file `_SUCCESS` of an hour exists, a reader of the directories sees exactly the
    rows that the hour had when the file was written. This is so even while a load adds rows to the
    hour, and even if the load or the run that writes `_SUCCESS` is killed at any point."""
    assert Search(offsets=2, sessions=2, local=local, marks=[2]).run() > 500
    assert Search(offsets=1, sessions=2, crashes=1, local=local, marks=[2]).run() > 500


@pytest.mark.slow
def test_an_hour_is_marked_beside_a_load_and_a_rewriting() -> None:
    """One run loads, another run writes the hour's `_SUCCESS` file, and a third run rewrites the
    files of rows or removes `_SUCCESS`. At any time, at most two of these runs are active. While
    `_SUCCESS` exists, readers see exactly the rows that the hour had when this file was written."""
    for rewrites, marks in (([2], [3]), ([3], [2]), ([], [2, 3])):
        assert Search(offsets=1, sessions=3, rewrites=rewrites, marks=marks).run() > 500


@pytest.mark.slow
def test_answers_of_a_reload_are_lost() -> None:
    """If one run reads all records again while another run loads, every record exists once. This is
    so even if answers to the commits are lost and there are two crashes."""
    assert Search(offsets=2, sessions=2, unclear=2, reloads=[2]).run() > 1000
    assert Search(offsets=1, sessions=2, unclear=1, crashes=2, reloads=[2]).run() > 1000


@pytest.mark.slow
@KINDS
def test_files_are_rewritten_twice(local: bool) -> None:
    """If two of three runs rewrite files (replace them by a new file with the same rows), every row
    exists once. Every row also exists once if only one run rewrites files, and the answer to a
    commit is lost. The other runs load records."""
    assert Search(offsets=1, sessions=3, local=local, rewrites=[2, 3]).run() > 1000
    assert Search(offsets=2, sessions=3, unclear=1, local=local, rewrites=[2]).run() > 1000


@pytest.mark.slow
def test_three_runs_with_a_crash() -> None:
    """Every row exists once if three runs load two offsets, and also if two runs load one offset
    and a third run rewrites the files. This is so even if one of the runs is killed at any point.
    """
    assert Search(offsets=2, sessions=3, crashes=1).run() > 100_000
    assert Search(offsets=1, sessions=3, crashes=1, rewrites=[3]).run() > 100_000


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3), indirect=True)
def test_long_random_schedules(seed: int) -> None:
    """After long random sequences of loads, rewrites, reloads, crashes and lost answers, every row
    exists once."""
    print(f"seed {seed}")
    choose = random.Random(seed)
    for _ in range(150):
        local = choose.random() < 0.5
        rewrites = choose.sample(range(2, 10), choose.randrange(5))
        reloads = choose.sample(range(2, 10), choose.choice([0, 3]))
        search = Search(
            offsets=4, sessions=9, crashes=3, unclear=2, local=local, rewrites=rewrites,
            reloads=set(reloads) - set(rewrites),
        )  # fmt: skip
        world = search.start
        for _ in range(400):
            options = list(search.successors(world))
            if not options:
                break
            label, world = choose.choice(options)
            assert not (fault := check(world)), f"{fault} after {label}"


def test_the_search_finds_faults(monkeypatch: pytest.MonkeyPatch) -> None:
    """The search notices if a commit overwrites the manifest instead of creating it."""

    def overwrite(operation: operations.Operation, store: MemoryStore) -> Any:
        if isinstance(operation, operations.Create):
            store.put(operation.path, operation.data)
            return operations.Created.YES
        return _perform(operation, store)

    _perform = operations.perform
    monkeypatch.setattr(operations, "perform", overwrite)
    with pytest.raises((AssertionError, StateRefused)):
        Search(offsets=2, sessions=2).run()
