from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from skidway import reached_bounds
from skidway.rare_lines import REPEAT_AFTER_S, RareLines
from skidway.reached_bounds import ReachedBounds
from support.clock import ManualClock


def test_a_bound_is_named_once_in_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    """The log names a bound that clients reach a thousand times in one line, and after ten minutes
    in one more, which says how often; another bound is named at once."""
    said: list[dict[str, Any]] = []
    write = partial(RareLines, write=lambda _event, **fields: said.append(fields))
    monkeypatch.setattr(reached_bounds, "RareLines", write)
    clock = ManualClock()
    bounds = ReachedBounds(clock.monotonic)
    for _ in range(1000):
        bounds.tell("max.connections", 7, address="10.0.0.1")
    bounds.tell("max.topics", 9)
    clock.advance(REPEAT_AFTER_S)
    bounds.tell("max.connections", 7)
    assert [(x["bound"], x["repeats"]) for x in said] == [
        ("max.connections", 0),
        ("max.topics", 0),
        ("max.connections", 999),
    ]
