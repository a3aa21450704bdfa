"""Of those that wait, the address with the fewest places begins next, and no address has all
places."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from skidway.turns import Turns


def begun(turns: Turns[str]) -> list[str]:
    return list(iter(turns.begin, None))


def test_a_place_is_left_for_another_address() -> None:
    """While an address runs several, one more place is free. Alone, it has half of the places; a
    single place goes to anybody."""
    turns: Turns[str] = Turns(8, 20)
    for number in range(20):
        turns.wait(f"a{number}", "a")
    assert begun(turns) == ["a0", "a1", "a2", "a3"]
    turns.wait("b0", "b")
    assert begun(turns) == ["b0"]
    alone: Turns[str] = Turns(1, 20)
    alone.wait("a", "a")
    assert begun(alone) == ["a"]


def test_addresses_take_turns() -> None:
    """With one place, each address begins one after the other, however many wait of one of them and
    since when; within an address, the order is that of arrival."""
    turns: Turns[str] = Turns(1, 20)
    for address, count in (("a", 5), ("b", 2), ("c", 2)):
        for number in range(count):
            turns.wait(f"{address}{number}", address)
    order = []
    while (who := turns.begin()) is not None:
        order.append(who)
        turns.leave(who)
    assert order == ["a0", "b0", "c0", "a1", "b1", "c1", "a2", "a3", "a4"]


def test_who_is_too_many_gives_way() -> None:
    """If more wait than may, the first of the address of which most wait gives way; who runs does
    not."""
    turns: Turns[str] = Turns(1, 2)
    for who, address in (("a0", "a"), ("b0", "b"), ("a1", "a"), ("a2", "a")):
        turns.wait(who, address)
        begun(turns)
    assert turns.gives_way() == "a1"
    turns.leave("a1")
    assert turns.gives_way() is None


@given(
    st.integers(1, 9),
    st.lists(st.tuples(st.booleans(), st.integers(0, 30)), max_size=80),
)
def test_every_one_that_waits_begins_once(at_once: int, steps: list[tuple[bool, int]]) -> None:
    """In any order of arrivals and ends: no more run than may, an address with several never has
    the last place, nobody waits while nobody runs, and each that waits begins exactly once."""
    turns: Turns[int] = Turns(at_once, 100)
    address, running, done = {}, [], Counter[int]()

    def begin() -> None:
        while (who := turns.begin()) is not None:
            before = sum(address[each] == address[who] for each in running)
            assert before < at_once - len(running)
            running.append(who)
            done[who] += 1

    for number, (arrives, which) in enumerate(steps):
        if arrives:
            address[number] = f"address {which % 4}"
            turns.wait(number, address[number])
        elif running:
            turns.leave(running.pop(which % len(running)))
        begin()
        assert running or len(done) == len(address)
    while running:
        turns.leave(running.pop())
        begin()
    assert done == Counter(dict.fromkeys(address, 1))
