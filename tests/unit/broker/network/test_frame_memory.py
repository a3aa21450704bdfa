"""Tests which connections may begin a request while memory for unfinished requests is scarce."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from skidway.broker.network.frame_memory import LATE_S, FrameMemory

LIMIT = 1000


def filled(*held: tuple[str, str, int]) -> FrameMemory[str]:
    """Returns the memory of connections (name, address, bytes) that began one second apart."""
    memory: FrameMemory[str] = FrameMemory(LIMIT)
    for second, (who, address, size) in enumerate(held):
        memory.hold(who, address, size, float(second), anew=False)
    return memory


def test_many_equal_clients_take_turns() -> None:
    """If many clients send at once, those that find no room wait until another is done, in their
    order. Nobody gives way."""
    memory = filled(*((f"a{n}", f"10.0.0.{n}", 50) for n in range(20)))
    assert not memory.may_receive("b1")
    assert memory.may_receive("a0")
    assert memory.wait("b1", "10.0.1.1") is None
    assert memory.wait("b2", "10.0.1.2") is None
    assert memory.next() is None
    memory.release("a7")
    assert memory.next() == "b1"
    memory.hold("b1", "10.0.1.1", 50, 1.0, anew=False)
    assert memory.next() is None


def test_the_address_that_holds_least_begins_first() -> None:
    """Of the connections that wait, one whose address holds nothing begins before those of an
    address that holds something, although these wait for longer."""
    memory = filled(("x1", "10.0.0.1", 60), *((f"y{n}", f"10.1.0.{n}", 50) for n in range(19)))
    for who, address in (("x2", "10.0.0.1"), ("x3", "10.0.0.1"), ("z", "10.0.0.3")):
        memory.wait(who, address)
    memory.release("y3")
    assert memory.next() == "z"
    assert memory.next() == "x2"


def test_a_large_request_gives_way() -> None:
    """A request that needs a large part of the memory gives way as soon as somebody waits, even
    somebody at the same address."""
    memory = filled(("small", "10.0.0.1", 40), ("l1", "10.0.0.1", 500), ("l2", "10.0.0.1", 500))
    assert memory.wait("good", "10.0.0.1") == "l1"


def test_an_address_that_holds_far_more_gives_way() -> None:
    """If one address holds much, its first connection gives way to another address."""
    memory = filled(*((f"a{n}", "10.0.0.1", 50) for n in range(20)))
    assert memory.wait("b", "10.0.0.2") == "a0"
    assert memory.wait("c", "10.0.0.1") is None


def test_who_is_late_gives_way_only_while_others_wait() -> None:
    """A client may take as long as it likes for its request, but not while others wait."""
    memory = filled(*((f"a{n}", f"10.0.0.{n}", 50) for n in range(20)))
    assert memory.late(100.0) == []
    memory.wait("b", "10.0.1.1")
    assert memory.late(LATE_S + 2.5) == ["a0", "a1", "a2"]
    memory.hold("a1", "10.0.0.1", 50, 12.0, anew=True)
    assert memory.late(LATE_S + 2.5) == ["a0", "a2"]
    memory.leave("b", "10.0.1.1")
    assert memory.late(100.0) == []


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(1, 400), st.booleans()), max_size=60))
def test_nobody_waits_for_ever(steps: list[tuple[int, int, bool]]) -> None:
    """Whatever connections hold and release, everybody who waits begins once the late ones are
    gone, and the sum passes the limit by at most one request."""
    memory: FrameMemory[int] = FrameMemory(LIMIT)
    waiting: set[int] = set()
    for at, (who, size, is_done) in enumerate(steps):
        address = f"10.0.0.{who // 2}"
        if who in waiting:
            continue
        if is_done:
            memory.release(who)
        elif memory.may_receive(who):
            memory.hold(who, address, size, float(at), anew=False)
        else:
            waiting.add(who)
            gone = memory.wait(who, address)
            if gone is not None:
                memory.release(gone)
        assert memory.held.total < LIMIT + 400 * 10
        while (begins := memory.next()) is not None:
            waiting.remove(begins)
            memory.hold(begins, f"10.0.0.{begins // 2}", 1, float(at), anew=False)
    for _ in range(len(waiting)):
        for who in memory.late(len(steps) + LATE_S + 1):
            memory.release(who)
        while (begins := memory.next()) is not None:
            waiting.remove(begins)
    assert not waiting
