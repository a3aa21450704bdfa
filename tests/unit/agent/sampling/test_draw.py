"""Tests which delivered ranges an agent draws (chooses at random) for its samples. In each period,
the agent draws some of the ranges of bytes that it has delivered."""

from __future__ import annotations

from collections import Counter
from random import Random

from skidway.agent.sampling.draw import Draw, drawn, period_of
from skidway.agent.values.drawn import Drawn
from skidway.agent.values.intents import Intent

DAY = 86_400_000
AGENT = 7


def intents(count: int, file: int = 3) -> list[Intent]:
    return [Intent(at, file, 100 * at, 100 * at + 100, 0, 0, b"recipe") for at in range(count)]


def kept(offered: list[Intent], limit: int, period: int = DAY) -> list[Intent]:
    draw = Draw(period, limit)
    state: set[Drawn] = set()
    for intent in offered:
        each = drawn(AGENT, period, DAY, intent)
        is_drawn, replaced = draw.offer(each)
        state |= {each} if is_drawn else set()
        state -= {replaced}  # type: ignore[arg-type]
        assert len(state) <= limit
    assert state == set(draw.kept)
    return [each.intent for each in draw.kept]


def test_a_draw_depends_on_nothing_but_what_was_delivered() -> None:
    """For one period and one set of delivered ranges, an agent always chooses the same ranges for
    its samples. Neither the order in which the ranges were delivered nor a restart in between
    changes the result."""
    offered = intents(200)
    shuffled = Random(1).sample(offered, len(offered))
    assert kept(offered, 20) == kept(shuffled, 20)
    half = Draw(DAY, 20)
    for intent in shuffled[:100]:
        half.offer(drawn(AGENT, DAY, DAY, intent))
    again = Draw(DAY, 20, [*half.kept])
    for intent in shuffled[100:]:
        again.offer(drawn(AGENT, DAY, DAY, intent))
    assert [each.intent for each in again.kept] == kept(offered, 20)
    assert kept(offered, 20) != kept(offered, 20, 2 * DAY)


def test_a_draw_is_bounded_and_takes_all_of_a_quiet_period() -> None:
    """For the samples of a period, an agent chooses at most the configured number of the byte
    ranges that it has delivered. If it has delivered fewer ranges, it chooses all of them."""
    assert len(kept(intents(500), 20)) == 20
    assert sorted(x.first for x in kept(intents(5), 20)) == [0, 100, 200, 300, 400]


def test_each_range_has_the_same_chance() -> None:
    """Over many periods, each range of delivered bytes is drawn (chosen at random) about equally
    often, even the first and the last range of a period."""
    offered = intents(50)
    found = Counter(x.first for day in range(1, 401) for x in kept(offered, 5, day * DAY))
    expected = 400 * 5 / 50
    assert set(found) == {x.first for x in offered}
    assert max(abs(count - expected) for count in found.values()) < 5 * expected**0.5


def test_periods_begin_at_multiples_of_their_length() -> None:
    """With periods of a day, an agent that is started twice on the same day chooses its sample
    ranges both times for the same period."""
    assert period_of(DAY + 5, DAY) == period_of(2 * DAY - 1, DAY) == DAY
