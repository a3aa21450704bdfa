from __future__ import annotations

from collections.abc import Callable, Sequence

from skidway.broker.api.gathering import AT_ONCE, Asking, Gathering


def test_parts_come_in_any_order_and_leave_in_theirs() -> None:
    """A Gathering collects the parts of an answer, which may arrive in any order. When the last
    part has arrived, the Gathering calls its function once, with all parts in their proper order.
    If there are no parts to wait for, it calls the function at once, with an empty sequence."""
    found: list[Sequence[str]] = []
    gathering: Gathering[str] = Gathering(2, found.append)
    gathering.put(1, "b")
    assert found == []
    gathering.put(0, "a")
    assert found == [["a", "b"]]
    Gathering(0, found.append)
    assert found[1:] == [()]


def test_only_so_many_parts_are_asked_for_at_once() -> None:
    """An Asking asks for a limited number of parts at a time, and for one more whenever one
    arrives. The parts leave in their order."""
    asked: list[Callable[[int], None]] = []
    found: list[Sequence[int]] = []
    Asking(3 * AT_ONCE, lambda _, put: asked.append(put), found.append, lambda: True)
    for at in range(3 * AT_ONCE):
        assert len(asked) == min(at + AT_ONCE, 3 * AT_ONCE)
        assert found == []
        asked[at](at)
    assert found == [list(range(3 * AT_ONCE))]


def test_parts_that_come_at_once_need_no_stack() -> None:
    """If thousands of parts arrive as soon as they are asked for, the calls do not nest, and
    `finish` is called once. Without parts, it is called at once."""
    found: list[Sequence[int]] = []
    Asking(10_000, lambda at, put: put(at), found.append, lambda: True)
    assert found == [list(range(10_000))]
    Asking(0, lambda at, put: put(at), found.append, lambda: True)
    assert found[1:] == [()]


def test_nobody_is_asked_for_a_client_who_has_left() -> None:
    """When nobody wants the parts any more, an Asking asks for none."""
    asked: list[Callable[[int], None]] = []
    wanted = [True]
    Asking(1000, lambda _, put: asked.append(put), lambda _: None, lambda: wanted[0])
    wanted[0] = False
    asked[0](0)
    assert len(asked) == AT_ONCE
