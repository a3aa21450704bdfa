"""Of something that is limited in sum, the address that holds most gives way, and there the one
that began first."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from skidway.holders import Holders


def test_nobody_gives_way_while_there_is_room() -> None:
    """Up to the limit, and at the limit, everybody keeps what he holds."""
    holders: Holders[str] = Holders(10)
    holders.hold("a", "10.0.0.1", 4)
    holders.hold("b", "10.0.0.1", 6)
    assert holders.gives_way() is None


def test_the_address_that_holds_most_gives_way() -> None:
    """Many holders of one address do not take the place of one holder of another address, even if
    the latter holds more than each of them and began first."""
    holders: Holders[str] = Holders(10)
    holders.hold("good", "10.0.0.2", 3)
    for number in range(8):
        holders.hold(f"bad {number}", "10.0.0.1", 1)
    assert holders.gives_way() == "bad 0"
    holders.release("bad 0")
    assert holders.gives_way() is None


def test_who_ends_what_it_began_is_the_last_of_its_address() -> None:
    """A holder that ends what it began, and begins anew, gives way after those who only hold. A
    holder whose amount grows keeps its place."""
    holders: Holders[str] = Holders(3)
    for name in ("good", "slow", "other"):
        holders.hold(name, "10.0.0.1", 1)
    holders.hold("slow", "10.0.0.1", 2)
    holders.hold("good", "10.0.0.1", 1, anew=True)
    assert holders.gives_way() == "slow"


def test_who_holds_nothing_now_keeps_its_place() -> None:
    """A holder that holds nothing at the moment does not give way, and does so before newer ones
    when it holds something again."""
    holders: Holders[str] = Holders(1)
    for name in ("old", "new"):
        holders.hold(name, "10.0.0.1", 1)
    holders.hold("old", "10.0.0.1", 0)
    assert holders.first() == "new"
    holders.hold("old", "10.0.0.1", 1)
    assert holders.gives_way() == "old"
    holders.hold("old", "10.0.0.1", 0)
    holders.release("new")
    assert holders.first() is None


CALLS = st.tuples(st.integers(0, 5), st.integers(0, 9), st.booleans()) | st.integers(0, 5)


@given(st.lists(CALLS, max_size=40))
def test_the_sum_is_that_of_all_holders(calls: list[tuple[int, int, bool] | int]) -> None:
    """Whatever is held, grows and is released, the total is the sum of what is held now, and
    nothing is remembered about who holds nothing."""
    holders: Holders[int] = Holders(20)
    held: dict[int, int] = {}
    for call in calls:
        if isinstance(call, int):
            holders.release(call)
            held.pop(call, None)
        else:
            who, amount, anew = call
            holders.hold(who, f"address {who % 2}", amount, anew=anew)
            held[who] = amount
        assert (holders.total, len(holders)) == (sum(held.values()), len(held))
        assert (holders.gives_way() is not None) == (holders.total > 20)
    for who in held:
        holders.release(who)
    assert holders.first() is None


def test_one_that_moves_takes_its_part_along() -> None:
    """One that now has another address holds its part there, and nothing at the old address."""
    holders: Holders[str] = Holders(1)
    holders.hold("a", "1", 5)
    holders.hold("b", "2", 4)
    holders.hold("a", "2", 5)
    assert (holders.total, holders.first()) == (9, "b")
    holders.release("a")
    holders.release("b")
    assert (holders.total, len(holders), holders.first()) == (0, 0, None)
