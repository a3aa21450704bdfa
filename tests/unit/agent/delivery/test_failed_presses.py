"""The settings of one source make the press fail, although they could be compiled. The agent's
whole loop runs in memory."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from skidway.agent.batches.press import Press, Pressed
from skidway.agent.settings import AgentSettings
from support.agent_world import World, raw, settings

A, B = "/log/a.log", "/log/b.log"


def with_field(text: str) -> AgentSettings:
    return settings(raw("logs", A), raw("others", B, fields={"env": text}))


@pytest.fixture(params=[pa.ArrowMemoryError, OverflowError, UnicodeEncodeError])
def failing(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> World:
    """An agent whose press fails for records with the constant field `bad`."""
    press = Press.press
    failure = request.param
    arguments = ("utf-8", "x", 0, 1, "") if failure is UnicodeEncodeError else ("",)

    def pressed(self: Press, *others: Any) -> Pressed:
        if ("env", "bad") in self.recipe.fields:
            raise failure(*arguments)
        return press(self, *others)

    monkeypatch.setattr(Press, "press", pressed)
    world = World(with_field("bad"))
    world.files.append(B, b"b1\n")
    world.files.append(A, b"a1\n")
    world.start()
    world.settle()
    return world


@pytest.mark.parametrize("starts", [0, 1, 2])
@pytest.mark.parametrize("is_reload", [False, True])
def test_a_topic_whose_records_cannot_be_made_stops_no_other(
    failing: World, starts: int, *, is_reload: bool
) -> None:
    """If the settings of a source make the press fail, the agent reads no more of its topic, says
    so, and continues with other topics, also after further starts. With better settings, it starts
    and delivers each line once; none is declared lost."""
    assert "its records cannot be made" in failing.agent.stopped["others"]
    for number in range(starts):
        failing.kill()
        failing.files.append(A, b"a%d\n" % (number + 2))
        failing.files.append(B, b"b%d\n" % (number + 2))
        failing.start()
        failing.settle()
        assert B in failing.agent.tracker.unreadable["others"]
    assert len(failing.values()) == starts + 1
    assert failing.losses() == []
    assert failing.brokers.records("others") == []
    assert failing.only(B)["pending"] > 0
    if is_reload:
        failing.reload(with_field("good"))
        failing.settle()
    if not is_reload or not starts:
        failing.kill()
        failing.settings = with_field("good")
        failing.start()
    failing.settle()
    assert [each.value[6:8] for each in failing.brokers.records("others")] == [
        b"b%d" % (number + 1) for number in range(starts + 1)
    ]
    assert failing.only(B)["pending"] == 0
    assert failing.losses() == []
    assert failing.agent.stopped == {}
