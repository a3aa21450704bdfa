"""`Shares` decides which connection is served next, and for how long, so that each connection gets
a fair share of a turn of the broker's loop. A share is measured by the cost of the requests (a cost
of 1 is about a microsecond of work)."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from skidway.broker.network.shares import Shares


def turn(shares: Shares[str], costs: dict[str, int], *, busy: bool = True) -> list[str]:
    """Returns the connections that one turn serves, in order. `costs` maps each connection to the
    cost of each of its requests. If `busy`, each connection always has a further request."""
    served = []
    shares.begin_turn()
    while (who := shares.next()) is not None:
        left = shares.allowance
        spent = costs[who]
        while busy and spent < left:
            spent += costs[who]
        served.append(who)
        shares.charge(who, spent)
        if busy:
            shares.wait(who)
    return served


def joined(names: str) -> Shares[str]:
    shares: Shares[str] = Shares(turn_cost=4000, allowance_min=250)
    for each in names:
        shares.join(each)
        shares.wait(each)
    return shares


def test_one_that_is_alone_has_the_whole_turn() -> None:
    """If only one connection has requests, it may use the whole turn."""
    shares = joined("a")
    shares.begin_turn()
    assert shares.next() == "a"
    assert shares.allowance == 4000


def test_those_that_always_have_something_to_do_get_the_same_by_cost() -> None:
    """Connections that always have requests get equal shares of the loop's work, whether they send
    many cheap requests or a few expensive requests."""
    shares, spent = joined("abc"), Counter[str]()
    costs = {"a": 1, "b": 100, "c": 3000}
    for _ in range(300):
        shares.begin_turn()
        while (who := shares.next()) is not None:
            left, cost = shares.allowance, costs[who]
            while cost < left:
                cost += costs[who]
            shares.charge(who, cost)
            spent[who] += cost
            shares.wait(who)
    assert max(spent.values()) - min(spent.values()) <= 3000 + 4000


def test_one_that_asks_now_and_then_comes_before_those_that_flood() -> None:
    """A connection that sends a request now and then is served first in the next turn, however many
    other connections send requests without pause."""
    flood = "abcdefghijklmnopqrst"
    shares, costs = joined(flood), dict.fromkeys(flood, 20)
    shares.join("!")
    for _ in range(5):
        turn(shares, costs)
    for _ in range(50):
        shares.wait("!")
        shares.begin_turn()
        assert shares.next() == "!"
        shares.charge("!", 30)
        turn(shares, costs)


def test_a_turn_has_a_bound_and_the_next_one_goes_on() -> None:
    """A turn serves a limited number of connections, and the next turn continues with the others.
    So if a hundred connections wait, each is served once before any of them is served twice."""
    names = "".join(chr(200 + n) for n in range(100))
    shares, costs = joined(names), dict.fromkeys(names, 100)
    served: list[str] = []
    while len(served) < 100:
        one = turn(shares, costs)
        assert 0 < len(one) <= 4000 // 250 + 1
        served += one
    assert len(set(served[:100])) == 100


def test_who_was_away_has_saved_nothing_up() -> None:
    """If a connection closes, and a client connects again after a long time, the new connection
    gets a share as large as the others. It gets nothing extra for the time before."""
    shares, costs = joined("ab"), {"a": 500, "b": 500}
    shares.leave("b")
    for _ in range(100):
        turn(shares, costs)
    shares.join("b")
    shares.wait("b")
    served = Counter(who for _ in range(10) for who in turn(shares, costs))
    assert abs(served["a"] - served["b"]) <= 2


def test_who_asked_for_nothing_has_saved_nothing_up() -> None:
    """If an open connection sends its first request, or requests again, after a long time without
    requests, it gets an equal share, and no extra share for the time without requests."""
    shares, costs = joined("ab"), {"a": 500, "b": 500, "c": 500}
    shares.join("c")
    shares.begin_turn()
    for _ in range(2):
        shares.charge(shares.next() or "", 10)
    for _ in range(100):
        shares.wait("a")
        turn(shares, costs)
    shares.wait("b")
    shares.wait("c")
    served = Counter(who for _ in range(10) for who in turn(shares, costs))
    # "a" has just used a whole turn alone. This counts as its share of up to three later turns, so
    # "b" and "c" may each be served more often than "a", by up to three times in ten turns.
    assert max(served[who] for who in "abc") - min(served[who] for who in "abc") <= 3


def test_what_was_overdrawn_is_paid_back() -> None:
    """If one request costs as much as ten turns, the other connections together get ten turns
    before the connection of this request is served again."""
    shares = joined("ab")
    shares.begin_turn()
    assert shares.next() == "a"
    shares.charge("a", 40_000)
    shares.wait("a")
    spent = 0
    while True:
        shares.begin_turn()
        who = shares.next()
        assert who is not None
        if who == "a":
            break
        shares.charge("b", 1000)
        shares.wait("b")
        spent += 1000
    assert 38_000 <= spent <= 42_000


def test_what_is_sent_counts_while_it_waits() -> None:
    """While a connection waits until its requests are handled, the broker may send it an earlier
    answer. The cost of sending counts as a cost of this connection. So connections with lower costs
    are served before it."""
    shares = joined("ab")
    shares.charge("a", 100)
    shares.begin_turn()
    assert [shares.next(), shares.next()] == ["b", "a"]


def test_coming_anew_for_each_request_gains_nothing() -> None:
    """A client that opens a new connection for each request gains nothing. A waiting connection
    that has used a whole turn is served before the client has used its 16th new connection."""
    shares, costs = joined("a"), {"a": 4000}
    turn(shares, costs)
    for number in range(4000 // 250):
        new = f"new {number}"
        shares.join(new)
        shares.wait(new)
        shares.begin_turn()
        who = shares.next()
        assert who is not None
        if who == "a":
            return
        shares.charge(who, 4000)
        shares.leave(who)
    raise AssertionError("it waits for too long")


def test_nobody_who_left_is_served_and_nobody_waits_twice() -> None:
    """A connection that closes while it waits is not served. A connection that is reported as ready
    twice is queued only once."""
    shares = joined("ab")
    shares.wait("a")
    assert len(shares) == 2
    shares.leave("a")
    shares.leave("a")
    assert len(shares) == 1
    shares.begin_turn()
    assert [shares.next(), shares.next()] == ["b", None]
    assert not shares


@given(
    st.lists(st.tuples(st.sampled_from("abcd"), st.sampled_from(["wait", "turn"])), max_size=60),
    st.dictionaries(st.sampled_from("abcd"), st.integers(1, 9000)),
)
def test_who_waits_is_served(steps: list[tuple[str, str]], costs: dict[str, int]) -> None:
    """Every connection that waits is served within a few turns, whatever happened before."""
    shares: Shares[str] = Shares()
    for each in "abcd":
        shares.join(each)
    costs = dict.fromkeys("abcd", 1) | costs
    for who, step in steps:
        if step == "wait":
            shares.wait(who)
        else:
            turn(shares, costs, busy=False)
    for _ in range(4):
        turn(shares, costs, busy=False)
    assert not shares
