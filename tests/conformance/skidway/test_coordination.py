from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from kazoo.exceptions import BadVersionError, RolledBackError

from skidway.coordination import UNANSWERED, Coordinator, SessionState, Versioned
from skidway.errors import Unreachable
from support.processes import WITHIN_S, eventually, free_port, running
from support.zookeeper import ZooKeeper

pytestmark = pytest.mark.java


@pytest.fixture
def session(zookeeper: str) -> Iterator[Coordinator]:
    with Coordinator(zookeeper) as coordinator:
        yield coordinator


def test_chroot_is_made_and_kept_apart(zookeeper: str) -> None:
    """A `Coordinator` (a session with ZooKeeper) creates the chroot in its address. Sessions with
    different chroots do not see each other's nodes."""
    with Coordinator(f"{zookeeper}/a/b") as one, Coordinator(f"{zookeeper}/c") as two:
        assert one.create_if_absent("/brokers/ids/1", b"one")
        assert two.children("/") == []
    with Coordinator(zookeeper) as above:
        assert above.get("/a/b/brokers/ids/1") == Versioned(b"one", 0)


def test_first_writer_wins(session: Coordinator) -> None:
    """The first creation of a node in ZooKeeper returns True. A second creation of the same node
    changes nothing and returns False."""
    assert session.create_if_absent("/x/y", b"1")
    assert not session.create_if_absent("/x/y", b"2")
    assert session.get("/x/y") == Versioned(b"1", 0)


def test_write_needs_the_version_that_was_read(session: Coordinator) -> None:
    """If two clients read the same version of a ZooKeeper node and then write to the node, only one
    write is accepted."""
    session.create_if_absent("/x", b"1")
    assert session.set_versioned("/x", b"2", 0)
    assert not session.set_versioned("/x", b"3", 0)
    assert session.get("/x") == Versioned(b"2", 1)
    assert not session.set_versioned("/none", b"", 0)


def test_missing_nodes_are_none_and_empty(session: Coordinator) -> None:
    """Reading a missing ZooKeeper node returns None, and listing its children returns an empty
    list. `delete` returns False if the node is missing, has children, or does not have the given
    version."""
    assert session.get("/none") is None
    assert session.children("/none") == []
    assert not session.delete("/none")
    session.create_if_absent("/a/b")
    assert not session.delete("/a")
    assert not session.delete("/a/b", version=5)
    assert session.delete("/a/b")
    assert session.delete("/a")


def test_ephemeral_node_goes_with_its_session(zookeeper: str, session: Coordinator) -> None:
    """An ephemeral node, such as a program's registration, disappears as soon as the program closes
    its session."""
    with Coordinator(zookeeper) as other:
        assert other.create_if_absent("/ids/1", b"", ephemeral=True)
        assert session.children("/ids") == ["1"]
    eventually(lambda: session.children("/ids") == [])


def test_nobody_there_is_one_sentence_with_the_address() -> None:
    """If ZooKeeper does not answer within the given time, the error is one sentence that contains
    ZooKeeper's address."""
    port = free_port()
    with pytest.raises(Unreachable) as refused:
        Coordinator(f"127.0.0.1:{port}/dc1", connect_timeout_s=0.5)
    assert f"ZooKeeper at 127.0.0.1:{port} did not answer within 0.5 s" in str(refused.value)


@pytest.mark.slow
def test_outage_suspends_bounds_requests_and_ends(tmp_path: Path) -> None:
    """While ZooKeeper is down, the session is SUSPENDED, and requests fail within their time limit.
    When ZooKeeper is up again, the session is CONNECTED."""
    server = ZooKeeper(tmp_path)
    told: list[SessionState] = []
    changed = threading.Event()

    def callback(state: SessionState) -> None:
        told.append(state)
        changed.set()

    with (
        running(server.program, server.ready),
        Coordinator(server.address, session_timeout_s=4) as session,
    ):
        session.create_if_absent("/kept", b"1")
        session.on_state(callback)
        server.program.stop()
        assert changed.wait(300)
        assert told == [SessionState.SUSPENDED]
        with pytest.raises(Unreachable, match="did not answer a request for /kept within 4 s"):
            session.get("/kept")
        server.program.start().wait_until(server.ready)
        eventually(lambda: session.state is SessionState.CONNECTED)
        assert told[-1] is SessionState.CONNECTED
        assert session.get("/kept") == Versioned(b"1", 0)


@pytest.mark.slow
def test_a_silent_zookeeper_holds_neither_kazoos_own_calls_nor_close(tmp_path: Path) -> None:
    """If ZooKeeper keeps its connections open but sends no answers, calls of kazoo's client fail,
    and `close` returns. This holds both before and after the client has noticed that no answers
    come."""
    server = ZooKeeper(tmp_path)
    with running(server.program, server.ready):
        session = Coordinator(server.address, session_timeout_s=4)
        session.create_if_absent("/kept", b"1")
        silent: list[BaseException] = []

        def use() -> None:
            try:
                session.client.retry(session.client.get, "/kept")
            except UNANSWERED as error:
                silent.append(error)

        server.freeze()
        try:
            for noticed in (False, True):
                if noticed:
                    eventually(lambda: session.state is SessionState.SUSPENDED)
                thread = threading.Thread(target=use, daemon=True)
                thread.start()
                thread.join(WITHIN_S)
                assert len(silent) == 1 + noticed
            closing = threading.Thread(target=session.close, daemon=True)
            closing.start()
            closing.join(WITHIN_S)
            assert not closing.is_alive()
        finally:
            server.thaw()


def test_a_transaction_does_all_or_nothing(session: Coordinator) -> None:
    """If one operation of a transaction fails, its error is reported, and no operation of the
    transaction takes effect."""
    session.create_if_absent("/x", b"1")

    def good(do: Any) -> None:
        do.set_data("/x", b"2", 0)
        do.create("/y", b"")

    def late(do: Any) -> None:
        do.create("/z", b"")
        do.set_data("/x", b"3", 0)

    assert not any(isinstance(each, Exception) for each in session.transact("/x", good))
    rolled_back, refused = session.transact("/x", late)
    assert isinstance(rolled_back, RolledBackError)
    assert isinstance(refused, BadVersionError)
    assert session.get("/x") == Versioned(b"2", 1)
    assert session.get("/z") is None


def test_watches_tell_once_of_what_changes(session: Coordinator) -> None:
    """Each watch reports one change and then ends. The change is the creation or the deletion of
    the watched node, or a change in the list of its children."""
    told: list[str] = []
    assert not session.watch_node("/a", lambda event: told.append(event.path))
    session.create_if_absent("/a/b")
    session.get("/a/b", watch=lambda event: told.append(event.path))
    session.children("/a", watch=lambda event: told.append(event.path))
    session.delete("/a/b")
    eventually(lambda: sorted(told) == ["/a", "/a", "/a/b"])


def test_a_restarted_session_has_lost_what_was_ephemeral(session: Coordinator) -> None:
    """When a session is restarted, the old session's ephemeral nodes disappear at once, and a new
    session starts soon."""
    states: list[SessionState] = []
    session.on_state(states.append)
    session.create_if_absent("/mine", ephemeral=True)
    before = session.session_id
    assert before
    session.restart()
    eventually(lambda: session.state is SessionState.CONNECTED)
    assert session.session_id not in (0, before)
    assert session.get("/mine") is None
    assert states == [SessionState.LOST, SessionState.CONNECTED]


def test_a_question_is_answered_elsewhere(session: Coordinator) -> None:
    """`ask` returns at once. Later the session calls the callback with True or False, which says
    whether the given ZooKeeper node exists."""
    told: list[bool | None] = []
    session.create_if_absent("/there")
    session.ask("/there", told.append)
    session.ask("/nowhere", told.append)
    eventually(lambda: told == [True, False])
