"""Two topics share `buffer.memory`. While brokers do not acknowledge the batches of one of them,
the agent delivers the lines of the other."""

from __future__ import annotations

import pytest

from skidway.agent.batches import program_versions
from skidway.agent.delivery import inquiry
from skidway.agent.settings import AgentSettings, SourceSettings
from skidway.agent.state.database import StateDatabase
from support.agent_world import World, raw, settings
from support.promises import promise

GOOD, BAD, BESIDE = "/log/good.log", "/log/bad.log", "/log/bad-2.log"
MEMORY = 1 << 20
SOURCES = raw("good", "/log/good*"), raw("bad", "/log/bad*")


def of(*sources: SourceSettings, buffer_memory: int = MEMORY) -> AgentSettings:
    return settings(*sources, buffer_memory=buffer_memory, compression_type="none")


class Two(World):
    """An agent with a topic that brokers acknowledge, and a topic that they do not acknowledge
    while it is `away`."""

    def __init__(self) -> None:
        super().__init__(of(*SOURCES))
        self.away = "bad"
        self.written: dict[str, list[str]] = {"good": [], "bad": []}

    def write(self, turns: int, *paths: str) -> None:
        """In each turn, a line of the topic `good` and a long line of each path are written."""
        for _ in range(turns):
            self.line("good", GOOD, f"good {len(self.written['good'])}")
            for path in paths:
                self.line("bad", path, f"{path} {len(self.written['bad'])} ".ljust(9_000, "x"))
            self.tick(away=self.away)

    def line(self, topic: str, path: str, text: str) -> None:
        self.files.append(path, text.encode() + b"\n")
        self.written[topic].append(text)

    def turns(self, count: int = 5) -> None:
        for _ in range(count):
            self.tick(away=self.away)

    def come_back(self) -> None:
        """Lets brokers acknowledge the batches of `bad` again, until all lines have arrived."""
        self.away = ""
        self.settle()

    def assert_all_arrived(self) -> None:
        """Asserts that every line of both topics arrived once, and those of each file in order."""
        assert self.values("good") == self.written["good"]
        arrived = self.values("bad")
        for path in (BAD, BESIDE):
            mine = [line for line in self.written["bad"] if line.startswith(f"{path} ")]
            assert [line for line in arrived if line.startswith(f"{path} ")] == mine
        assert len(arrived) == len(self.written["bad"])
        assert self.losses() == []


@pytest.fixture
def two() -> Two:
    made = Two()
    made.start()
    return made


@promise("2 silent topic")
def test_a_topic_that_is_not_acknowledged_stops_no_other_topic(two: Two) -> None:
    """While the batches of a topic are not acknowledged, the lines of other topics are."""
    two.write(300, BAD, BESIDE)
    two.turns()
    assert two.values("good") == two.written["good"]
    assert MEMORY // 2 <= two.agent.held_back["bad"] < MEMORY * 3 // 4
    two.come_back()
    two.assert_all_arrived()
    assert two.agent.held_back == {}


def test_a_held_back_file_does_not_keep_the_loop_busy(two: Two) -> None:
    """While files of a topic are held back, the loop waits for events between its turns."""
    two.write(100, BAD)
    two.turns()
    assert two.agent.held_back
    assert two.agent.patience_s() > 0
    assert not two.agent.is_quiet


@promise("2 silent topic")
@pytest.mark.parametrize("is_removed", [False, True])
def test_after_a_restart_its_intents_stop_no_other_topic(two: Two, is_removed: bool) -> None:
    """After a kill, the intents of a topic that is not acknowledged stop no other topic, even if
    the settings name the topic no more. They are sent in their order when it is acknowledged."""
    two.write(100, BAD, BESIDE)
    two.kill()
    two.settings = of(*SOURCES[: 1 if is_removed else 2], buffer_memory=MEMORY // 2)
    two.start()
    two.write(30)
    two.turns()
    assert two.values("good") == two.written["good"]
    if not is_removed:
        two.come_back()
        two.assert_all_arrived()


def test_intents_of_an_unreadable_file_and_of_a_full_topic_stay_in_order(two: Two) -> None:
    """If a file cannot be opened when its intents are to be sent again, and its topic then has no
    room, its intents still go out in the order of its bytes."""
    two.write(60, BAD, BESIDE)
    two.kill()
    two.files.by_path[BAD].unreadable = True
    two.settings = of(*SOURCES, buffer_memory=MEMORY // 4)
    two.start()
    two.turns(3)
    two.files.by_path[BAD].unreadable = False
    for _ in range(20):
        two.clock.advance(1.0)
        two.turns(1)
    two.come_back()
    two.assert_all_arrived()
    assert StateDatabase(two.connection).intents() == []


@promise("2 silent topic")
def test_what_is_sent_after_a_search_leaves_room_too(
    two: Two, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After an upgrade, the missing records of a topic that is not acknowledged stop no other
    topic: neither do they fill the memory, nor does their search delay another search."""
    two.write(60, BAD, BESIDE)
    two.line("good", GOOD, "on its way")
    two.hold(2)
    two.kill()
    monkeypatch.setattr(program_versions, "program_version", lambda: "another")
    monkeypatch.setattr(inquiry, "SEARCH_BYTES", 300_000)
    two.settings = of(*SOURCES, buffer_memory=MEMORY // 4)
    two.start()
    two.turns(20)
    two.write(30)
    two.turns()
    assert two.values("good") == two.written["good"]
    two.come_back()
    two.assert_all_arrived()
