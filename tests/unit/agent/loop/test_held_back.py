"""The batches of two topics share the agent's `buffer.memory`. While the brokers do not acknowledge
the batches of one topic, the agent still delivers the lines of the other topic."""

from __future__ import annotations

import pytest

from skidway.agent.batches import program_versions
from skidway.agent.delivery import inquiry
from skidway.agent.settings import AgentSettings, SourceSettings
from skidway.agent.state.database import StateDatabase
from support.agent_world import World, raw, settings
from support.promises import promise

GOOD, BAD, BESIDE = "/log/good.log", "/log/bad.log", "/log/bad-2.log"
MEMORY = 1 << 18
SOURCES = raw("good", "/log/good*"), raw("bad", "/log/bad*")


def of(*sources: SourceSettings, buffer_memory: int = MEMORY) -> AgentSettings:
    return settings(*sources, buffer_memory=buffer_memory, compression_type="none")


class Two(World):
    """An agent with two topics, `good` and `bad`. The brokers acknowledge all batches, except those
    of the topic that `away` names."""

    def __init__(self) -> None:
        super().__init__(of(*SOURCES))
        self.away = "bad"
        self.written: dict[str, list[str]] = {"good": [], "bad": []}

    def write(self, turns: int, *paths: str) -> None:
        """Runs `turns` turns of the agent. Before each turn, appends a line to the file of the
        topic `good`, and a long line to each of the files `paths`, which belong to the topic
        `bad`."""
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
        """Makes the brokers acknowledge the batches of both topics from now on, and runs the agent
        until it has delivered all lines."""
        self.away = ""
        self.settle()

    def assert_all_arrived(self) -> None:
        """Asserts that every written line arrived once, that the lines of each file arrived in
        order, and that no loss was declared."""
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
    """While the brokers do not acknowledge the batches of one topic, the agent delivers the lines
    of other topics."""
    two.write(75, BAD, BESIDE)
    two.turns()
    assert two.values("good") == two.written["good"]
    assert MEMORY // 2 <= two.agent.held_back["bad"] < MEMORY * 3 // 4
    two.come_back()
    two.assert_all_arrived()
    assert two.agent.held_back == {}


def test_a_held_back_file_does_not_keep_the_loop_busy(two: Two) -> None:
    """While the agent does not read the files of a topic, because too many bytes of the topic are
    unacknowledged, its loop still waits for events between two turns."""
    two.write(25, BAD)
    two.turns()
    assert two.agent.held_back
    assert two.agent.patience_s() > 0
    assert not two.agent.is_quiet


@promise("2 silent topic")
@pytest.mark.parametrize("is_removed", [False, True])
def test_after_a_restart_its_intents_stop_no_other_topic(two: Two, is_removed: bool) -> None:
    """An intent is a stored promise to send certain bytes. After a kill, the agent delivers other
    topics even if it has many intents of a topic whose batches are not acknowledged. This is so
    even if no source has this topic any more. When the batches are acknowledged again, the lines of
    the intents arrive in order."""
    two.write(25, BAD, BESIDE)
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
    """An intent is a stored promise to send certain bytes of a file. After a kill, the agent cannot
    open a file for a while. When it can open the file, too many bytes of the file's topic are
    unacknowledged. The agent still sends the file's intents in the order of the file's bytes."""
    two.write(15, BAD, BESIDE)
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
    """After an upgrade, the agent searches the brokers for the records of its intents (stored
    promises to send bytes), and sends the missing records. If the batches of one topic are not
    acknowledged, the missing records of this topic do not fill `buffer.memory`, and the search for
    them delays no search for records of other topics."""
    two.write(15, BAD, BESIDE)
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
