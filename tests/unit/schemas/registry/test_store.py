"""The registry's store follows a log in ZooKeeper, to which several registry processes write. In
all of them, an id always belongs to the same schema."""

from __future__ import annotations

import json
import threading
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skidway.errors import StateRefused
from skidway.schemas.compatibility import Level
from skidway.schemas.registry.changes import ENTRY_BYTES_MAX
from skidway.schemas.registry.decisions import Decision, deletion, registration, submission
from skidway.schemas.registry.refusals import NotFound, Refusal
from skidway.schemas.registry.state import RegistryState
from skidway.schemas.registry.store import Store
from support.clock import ManualClock
from support.randomness import share_of
from support.registry_log import MemoryLog, SharedLog


def schema(number: int) -> submission.Submitted:
    fields = [{"name": f"f{number}", "type": "int", "default": 0}]
    text = json.dumps({"type": "record", "name": "R", "fields": fields})
    return submission.submit(RegistryState(), submission.asked({"schema": text}))


def store_on(shared: SharedLog) -> tuple[MemoryLog, Store]:
    entries = MemoryLog(shared)
    return entries, Store(entries, ManualClock(), Level.NONE)


def register(store: Store, subject: str, number: int) -> int:
    submitted = schema(number)
    return int(store.write(lambda state: registration.register(state, subject, submitted)).id)


def test_ids_begin_at_one_and_have_no_gaps() -> None:
    """A new schema gets the next id. A schema that is registered under a second subject keeps its
    id."""
    _, store = store_on(SharedLog())
    assert [register(store, "a", 1), register(store, "a", 2), register(store, "b", 1)] == [1, 2, 1]
    assert register(store, "a", 1) == 1
    assert [each.version for each in store.read(lambda s: s.versions("a"))] == [1, 2]


def test_the_second_writer_reads_on_and_decides_again() -> None:
    """A registry chooses an id for a new schema and then writes a log entry with this id. If
    another registry writes an entry with this id just before, the other registry's schema keeps the
    id. The first registry then reads this entry, and writes its schema with the next id."""
    shared = SharedLog()
    entries, store = store_on(shared)
    _, other = store_on(shared)
    entries.meanwhile.append(lambda: register(other, "b", 2))
    assert register(store, "a", 1) == 2
    assert register(other, "a", 1) == 2
    assert other.read(lambda s: s.schema(1)).text == schema(2).canonical


def test_the_same_schema_from_two_writers_is_one_id() -> None:
    """If two registries write the same schema at the same time, the slower registry finds the entry
    of the other one and answers with the same id."""
    shared = SharedLog()
    entries, store = store_on(shared)
    _, other = store_on(shared)
    entries.meanwhile.append(lambda: register(other, "a", 1))
    assert register(store, "a", 1) == 1
    assert len(shared.contents) == 1


def test_a_lost_answer_is_found_again() -> None:
    """Each write has a random id, which is stored in the log entry. If ZooKeeper's answer to a
    write is lost, the registry finds the entry in the log by this id, and does not repeat the
    write."""
    entries, store = store_on(SharedLog())
    entries.lose.append("twice")
    assert register(store, "a", 1) == 1
    assert len(entries.shared.contents) == 1


def test_a_deletion_whose_answer_was_lost_is_done() -> None:
    """If ZooKeeper's answer to the write of a deletion is lost, the deletion still succeeds. If the
    registry simply handled the request again, it would refuse the deletion, because the version is
    already deleted."""
    entries, store = store_on(SharedLog())
    register(store, "a", 1)
    entries.lose.append("twice")
    assert store.write(lambda state: deletion.delete_subject(state, "a", permanent=False)) == [1]
    assert len(entries.shared.contents) == 2


@pytest.mark.parametrize("fault", ["before", "after"])
def test_a_write_without_answer_can_be_tried_again(fault: str) -> None:
    """If ZooKeeper does not answer the write of a registration, the client gets 503. If the client
    repeats the request, it gets the same id, even if the first write has reached the log."""
    entries, store = store_on(SharedLog())
    entries.lose.append(fault)
    with pytest.raises(Refusal) as caught:
        register(store, "a", 1)
    assert caught.value.status == 503
    assert register(store, "a", 1) == 1
    assert len(entries.shared.contents) == 1


def test_reads_go_on_while_the_log_is_away_and_writes_say_so() -> None:
    """While ZooKeeper cannot be reached, the registry returns schemas from memory, and
    registrations get 503."""
    entries, store = store_on(SharedLog())
    register(store, "a", 1)
    entries.connected = False
    assert store.read(lambda s: s.schema(1)).text == schema(1).canonical
    with pytest.raises(Refusal) as caught:
        register(store, "a", 2)
    assert caught.value.status == 503


def test_what_another_registry_may_have_written_is_not_denied() -> None:
    """While ZooKeeper cannot be reached, a request for an unknown schema id gets 503, because
    another registry may have assigned this id. After a 404 the loader would reject good records
    permanently."""
    shared = SharedLog()
    entries, store = store_on(shared)
    _, other = store_on(shared)
    entries.connected = False
    register(other, "a", 1)
    with pytest.raises(Refusal) as caught:
        store.read(lambda s: s.schema(1))
    assert caught.value.status == 503
    entries.connected = True
    assert store.read(lambda s: s.schema(1)).text == schema(1).canonical
    with pytest.raises(NotFound):
        store.read(lambda s: s.schema(2))


def test_an_id_of_another_registry_is_found_before_the_watch_fires() -> None:
    """If a registry does not find a requested schema in its memory, it reads the newer entries of
    the log in ZooKeeper before it answers "not found"."""
    shared = SharedLog()
    entries, store = store_on(shared)
    _, other = store_on(shared)
    entries.visible = 0
    register(other, "a", 1)
    assert store.read(lambda s: s.schema(1)).text == schema(1).canonical


def test_a_refusal_is_made_on_all_that_is_known() -> None:
    """Before a registry says that a subject does not exist, or decides that nothing needs to be
    written, it reads all entries of the log in ZooKeeper. It does so even if its ZooKeeper server
    lags."""
    shared = SharedLog()
    entries, store = store_on(shared)
    _, other = store_on(shared)
    entries.visible = 0
    register(other, "a", 1)
    assert store.write(lambda s: deletion.delete_subject(s, "a", permanent=False)) == [1]
    entries.visible = 2
    register(other, "a", 1)
    assert store.write(lambda s: Decision(len(s.live("a")), None)) == 1


def test_a_restarted_registry_knows_everything() -> None:
    """A restarted registry reads the whole log in ZooKeeper, even if the log has more entries than
    the registry requests at once."""
    shared = SharedLog()
    _, store = store_on(shared)
    for number in range(600):
        assert register(store, f"s{number % 7}", number) == number + 1
    _, again = store_on(shared)
    assert again.entries == 600
    assert again.read(lambda s: s.schema(600)).text == schema(599).canonical
    assert register(again, "s0", 1000) == 601


def test_ids_of_deleted_schemas_are_not_used_again() -> None:
    """If a schema is deleted permanently, its id is not given to another schema. If the schema is
    registered again, it gets the same id."""
    shared = SharedLog()
    _, store = store_on(shared)
    register(store, "a", 1)
    for permanent in (False, True):
        store.write(
            lambda state, gone=permanent: deletion.delete_subject(state, "a", permanent=gone)
        )
    _, again = store_on(shared)
    with pytest.raises(NotFound):
        again.read(lambda s: s.schema(1))
    assert register(again, "b", 2) == 2
    assert register(again, "b", 1) == 1


@pytest.mark.parametrize(
    "content",
    [
        b"nonsense",
        b'{"change":"SURPRISE","writer":"w","time":1}',
        b'{"change":"VERSION","subject":"a","version":1,"id":7,"schema":"x","writer":"w","time":1}',
        b'{"change":"VERSION","subject":"a","version":5,"id":1,"schema":"x","writer":"w","time":1}',
        b'{"change":"VERSION","subject":"a","version":1,"id":1,"writer":"w","time":1}',
        b'{"change":"DELETE","subject":"a","versions":[1],"permanent":true,"writer":"w","time":1}',
    ],
)
def test_a_log_that_makes_no_sense_stops_the_registry(content: bytes) -> None:
    """If the registry's log in ZooKeeper has an entry that cannot be read, or that is impossible
    after the entries before it, the registry does not start."""
    with pytest.raises(StateRefused, match=r"Entry 1|does not follow|is used before"):
        store_on(SharedLog([content]))


def test_a_log_that_breaks_later_ends_writing_only() -> None:
    """If an invalid entry is written to the registry's log in ZooKeeper while the registry runs,
    the registry refuses writes. Clients can still read the schemas from the entries before the
    invalid one."""
    entries, store = store_on(SharedLog())
    register(store, "a", 1)
    entries.shared.contents.append(b"nonsense")
    for _ in range(2):
        with pytest.raises(Refusal) as caught:
            register(store, "a", 2)
        assert caught.value.status == 503
    assert store.failed is not None
    assert store.read(lambda s: s.schema(1)).text == schema(1).canonical


def test_the_follower_ends_whenever_it_is_told() -> None:
    """The thread that follows the registry's log in ZooKeeper ends as soon as the store is closed,
    at whatever moment this happens. For example, if the store is closed just before the thread
    clears the event that wakes the thread, the thread still ends at once, and not after 30
    seconds."""
    _, store = store_on(SharedLog())

    class Wake(threading.Event):
        def clear(self) -> None:
            store._closed = True
            self.set()
            super().clear()

        def wait(self, timeout: float | None = None) -> bool:
            pytest.fail("it waits for a wake that it has cleared")

    store._wake = Wake()
    store._follow()


def test_a_log_that_was_set_back_takes_no_more() -> None:
    """If the registry's log in ZooKeeper has lost entries, for example because somebody restored an
    older backup, the registry refuses writes. Otherwise the next write would give an id a second
    schema."""
    shared = SharedLog()
    _, store = store_on(shared)
    for number in range(3):
        register(store, "a", number)
    del shared.contents[2:]
    with pytest.raises(Refusal, match="was set back"):
        register(store, "a", 4)
    assert store.failed is not None
    assert len(shared.contents) == 2
    assert store.read(lambda s: s.schema(3)).text == schema(2).canonical


def test_a_log_that_was_set_back_and_went_on_is_noticed() -> None:
    """If an older backup of the log in ZooKeeper is restored, entries are lost, and another
    registry may write other entries with the same numbers. A registry that has read the lost
    entries notices the difference."""
    shared = SharedLog()
    _, store = store_on(shared)
    for number in range(3):
        register(store, "a", number)
    del shared.contents[2:]
    _, other = store_on(shared)
    assert register(other, "b", 7) == 3
    # The next id of `store` would be 4, too, so the ids do not show that entries were lost.
    assert register(other, "a", 8) == 4
    with pytest.raises(Refusal, match="was set back"):
        register(store, "a", 7)


def test_a_log_with_a_gap_is_refused() -> None:
    """If an entry of the registry's log in ZooKeeper is missing, the registry does not start,
    because it would assign the ids of later entries again."""
    entries, store = store_on(SharedLog())
    register(store, "a", 1)
    entries.missing = 1
    with pytest.raises(StateRefused, match="number 2 is missing"):
        Store(entries, ManualClock(), Level.NONE)


def test_a_schema_that_no_node_holds_is_refused() -> None:
    """A registration of a schema that is too large for a ZooKeeper node gets the error code 42209.
    If the registry sent the schema to ZooKeeper, ZooKeeper would close the connection."""
    entries, store = store_on(SharedLog())
    doc = "x" * ENTRY_BYTES_MAX
    text = json.dumps({"type": "enum", "name": "E", "symbols": ["A"], "doc": doc})
    large = submission.submit(RegistryState(), submission.asked({"schema": text}))
    with pytest.raises(Refusal) as caught:
        store.write(lambda state: registration.register(state, "a", large))
    assert (caught.value.status, caught.value.error_code) == (422, 42209)
    assert not entries.reached.is_set()


Step = tuple[int, str, int, str]
steps = st.lists(
    st.tuples(
        st.integers(0, 2),  # registry
        st.sampled_from(["register", "delete", "purge", "restart"]),
        st.integers(0, 4),  # chooses the schema and the subject
        st.sampled_from(["", "", "", "before", "after", "twice"]),
    ),
    max_size=40,
)


@settings(max_examples=share_of(200), deadline=None)
@given(steps)
def test_an_id_means_one_schema_under_any_schedule(schedule: list[Step]) -> None:
    """Three registries register and delete schemas in a random order. They also restart, and some
    of ZooKeeper's answers are lost. In the end the ids have no gaps, each id belongs to one schema,
    and all registries have the same state."""
    shared = SharedLog()
    stores = [store_on(shared) for _ in range(3)]
    meaning: dict[int, str] = {}
    for at, action, number, fault in schedule:
        entries, store = stores[at]
        if action == "restart":
            stores[at] = store_on(shared)
            continue
        entries.lose = [fault] if fault else []
        try:
            if action == "register":
                found = register(store, f"s{number % 2}", number)
                assert (
                    meaning.setdefault(found, schema(number).canonical) == schema(number).canonical
                )
            else:
                _delete(store, f"s{number % 2}", permanent=action == "purge")
        except Refusal:
            continue
    summaries = [
        _summary(Store(MemoryLog(shared), ManualClock(), Level.NONE)),
        *map(_summary_of, stores),
    ]
    assert all(each == summaries[0] for each in summaries)
    ids = [json.loads(each).get("id") for each in shared.contents if b'"schema":' in each]
    assert ids == list(range(1, len(ids) + 1))


def _delete(store: Store, subject: str, *, permanent: bool) -> None:
    store.write(lambda state: deletion.delete_subject(state, subject, permanent=permanent))


def _summary_of(registry: tuple[MemoryLog, Store]) -> Any:
    entries, store = registry
    entries.lose = []
    store.write(lambda state: Decision(None, None))  # before a write, the store reads all entries
    return _summary(store)


def _summary(store: Store) -> Any:
    return store.read(
        lambda state: (
            {name: each.versions for name, each in state.subjects.items()},
            [state.kept(i).text for i in range(1, state.last_id + 1)],
        )
    )
