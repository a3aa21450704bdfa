from __future__ import annotations

from collections.abc import Sequence

from skidway.broker.api.gathering import Gathering


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
