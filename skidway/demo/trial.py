"""The default demo: a million lines move while agent, broker, counter and loader are killed.

The writer writes all the time. When the first records arrive, a load begins. Meanwhile the demo
kills the agent, the broker and the counter one after the other, each while it is processing data.
It kills the loader as soon as Spark runs the tasks of the load. A killed program is started again
at once. The demo counts a kill as over when the interrupted work is done: the agent's checkpoint
has passed the interrupted bytes, the counter has counted the records, or the next load has ended.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from skidway.demo import kills, sources, states, tiers, writer
from skidway.demo.display import Display
from skidway.demo.flow import WITHIN_S, Demo, Offsets
from skidway.demo.site import DATACENTER, OFFLINE, Site
from skidway.demo.supervisor import healthy
from skidway.demo.writer import Tally
from skidway.errors import SkidwayError, Unreachable
from skidway.kafka.errors import KafkaError
from skidway.kafka.types import TopicPartition
from skidway.loader.runs.progress_display import EVENT

WRITTEN_WITHIN_S = 40.0
PAUSE_S = 3.0
"""Seconds between two kills, so that the table shows how the killed program catches up."""
MOMENT_S = 0.01
LOOK_EVERY_S = 0.5
"""Seconds between two requests for the numbers that the live table shows."""
TRIES = 3
"""A program is killed at most this many times. It is killed again only if the last kill interrupted
no work.
"""
TOPICS = tuple(writer.FORMATS)
TIER_OF = {"agent": tiers.AGENT, "broker-dc1": tiers.BROKER, "count-dc1": tiers.COUNTED}
TIER_OF["loader"] = tiers.ROWS


# This class has more than 25 methods: the steps that differ from the quick demo, and a method for
# each kill.
class Trial(Demo):
    """The demo that runs a writer, shows a live table, and kills programs."""

    def __init__(self, site: Site, display: Display, given: Sequence[str], lines: int) -> None:
        """The writer writes at least `lines` lines."""
        super().__init__(site, display, given)
        self._lines = lines
        self._away: dict[str, str] = {}
        self._records = dict.fromkeys(tiers.TIERS[2:], 0)
        self._rows_before, self._loads_before = 0, 0
        self._looked_at = 0.0

    def own_sources(self) -> list[dict[str, Any]]:
        return sources.of_writer(self.site.written, self.site.folder / "etc" / "order.avsc")

    # --- steps ------------------------------------------------------------------------------------

    def fill(self) -> None:
        """Runs the writer, the first loads and the kills."""
        written_before = _lines_of(writer.written(self.site.written))
        if written_before:
            self._note_rows(self._loaded())
        self.supervisor.begin(
            "writer", str(self.site.written), str(self._lines), str(WRITTEN_WITHIN_S),
            module="skidway.demo.writer",
        )  # fmt: skip
        self.display.say(
            f"a writer begins: {self._lines:,} lines as raw text, regex and JSON, rotated"
        )
        topics = [f"{DATACENTER}.{topic}" for topic in TOPICS]
        self.until(lambda: any(self.watermarks(OFFLINE, topics).values()), "the first records")
        self._kill_all()
        self.until(
            lambda: _lines_of(writer.written(self.site.written)) - written_before >= self._lines,
            "all lines to be written",
        )
        self.supervisor.stop("writer")
        self.outcome.written = writer.written(self.site.written)
        lines, size = _lines_of(self.outcome.written), _bytes_of(self.outcome.written)
        files = len(writer.files(self.site.written))
        self.display.say(
            f"the writer has stopped: {lines:,} lines, {size / tiers.MB:.1f} MB, {files} files"
        )

    def further_files(self) -> list[Path]:
        return writer.files(self.site.written)

    def load(self, *options: str) -> None:
        super().load(*options)
        # Shows the final table. If there is no terminal, the summary at the end is enough.
        if self.display.is_terminal:
            self.idle(now=True)
        self.display.end_state()

    def idle(self, now: bool = False) -> None:
        """Shows the live table if it is time to show it again, or if `now` is True."""
        super().idle()
        at = time.monotonic()
        if at - self._looked_at < LOOK_EVERY_S and not now:
            return
        self._looked_at = at
        filled = self._filled()
        if self.display.is_due() or now:
            if self.display.is_terminal:
                table = tiers.table(filled, self._away)
                self.display.state([*table, f"  dashboard: {self.site.url('dashboard')}"])
            else:
                self.display.state([tiers.line(filled)])

    # --- kills ------------------------------------------------------------------------------------

    def _kill_all(self) -> None:
        """Kills each of the four programs. Kills the loader as soon as its load runs on Spark."""
        waiting = [self._kill_agent, self._kill_broker, self._kill_counter]
        loader_killed = False
        self._begin_load_to_kill()
        next_at = time.monotonic() + PAUSE_S
        while waiting or not loader_killed:
            self.supervisor.check()
            if not loader_killed and self._is_loading():
                self._kill_loader()
                loader_killed = True
            elif waiting and time.monotonic() >= next_at:
                waiting.pop(0)()
                next_at = time.monotonic() + PAUSE_S
            elif not loader_killed and (status := self.supervisor.ended("loader")) is not None:
                if status:
                    raise self.supervisor.failed("loader", status)
                self._note_rows(self._loaded())
                self._begin_load_to_kill()  # the last load ended before it could be killed
            self.idle()

    def _begin_load_to_kill(self) -> None:
        config = str(self.site.config("loader"))
        self.supervisor.begin_once("loader", "load", "run", "--config", config)

    def _kill_agent(self) -> None:
        for _ in range(TRIES):
            self._await_promise()
            begin = self._kill("agent")
            killed = self._agent()
            self._revive("agent")
            self.until(lambda: self._agent().has_passed(killed.promised), "the agent")  # noqa: B023
            kill = kills.of_agent(killed, self._agent(), time.monotonic() - begin)
            if killed.in_flight:
                break
        self._made_good(kill)

    def _kill_broker(self) -> None:
        for _ in range(TRIES):
            self._await_promise()
            begin = self._kill("broker-dc1")
            killed = self._agent()
            self._revive("broker-dc1")
            ends = self.watermarks(DATACENTER, _topics(killed.acknowledged_offsets))
            self.until(lambda: self._agent().has_passed(killed.promised), "the agent")  # noqa: B023
            kill = kills.of_broker(killed, ends, time.monotonic() - begin)
            if killed.in_flight:
                break
        self._made_good(kill)

    def _kill_counter(self) -> None:
        for _ in range(TRIES):
            self._moment(lambda: self._uncounted() > 0)
            begin = self._kill("count-dc1")
            ends, killed = self.watermarks(DATACENTER, TOPICS), self._counter()
            self._revive("count-dc1")
            self.until(lambda: _has_counted(self._counter(), ends), "the counter")  # noqa: B023
            kill = kills.of_counter(killed, ends, self._counter(), time.monotonic() - begin)
            if not _has_counted(killed, ends):
                break
        self._made_good(kill)

    def _kill_loader(self) -> None:
        begin = self._kill("loader")
        ends = self.watermarks(OFFLINE, [f"{DATACENTER}.{topic}" for topic in TOPICS])
        loaded = self._loaded()
        self._note_rows(loaded)
        committed = {
            TopicPartition(row["topic"], row["partition"]): row["loaded"] for row in loaded
        }
        waiting = {tp: end - committed.get(tp, 0) for tp, end in ends.items()}
        staged = {
            topic: sum(count for tp, count in waiting.items() if tp.topic == topic)
            for topic in {tp.topic for tp, count in waiting.items() if count}
        }
        self.begin_load()
        self.until(self.load_ended, "the next load")
        document = self.outcome.loads[-1]
        began = {
            TopicPartition(topic["topic"], each["partition"]): each["first"]
            for topic in document["topics"]
            for each in topic["partitions"]
        }
        seconds = time.monotonic() - begin
        self._made_good(kills.of_loader(staged, committed, began, document["rows"], seconds))

    def _kill(self, name: str) -> float:
        """Kills a program. Returns the time of the kill (monotonic seconds)."""
        pid = self.supervisor.pid(name)
        self.supervisor.kill(name)
        begin = time.monotonic()
        self._away[TIER_OF[name]] = "killed"
        self.display.say(f"kill -9 {pid}: {name}")
        return begin

    def _revive(self, name: str) -> None:
        self.begin_program(name)
        self.until(lambda: healthy(self.site.health(name)), f"{name} to be healthy")

    def _made_good(self, kill: kills.Kill) -> None:
        self.outcome.kills.append(kill)
        self._away.pop(TIER_OF[kill.program], None)
        self.display.say(f"{kill.program} is back, what it had in hand is done again")

    def _await_promise(self) -> None:
        self._moment(lambda: bool(self._agent().in_flight))

    def _uncounted(self) -> int:
        ends, counted = self.watermarks(DATACENTER, TOPICS), self._counter().next_offsets
        return sum(max(end - counted.get(tp, 0), 0) for tp, end in ends.items())

    def _is_loading(self) -> bool:
        """Whether Spark has begun to run the parts (slices) of the newest load, whose log is the
        whole file."""
        path = self.supervisor.errors("loader")
        return path.exists() and EVENT.encode() in path.read_bytes()

    def _loaded(self) -> list[dict[str, Any]]:
        config = str(self.site.config("loader"))
        done = self.command("load", "status", "--json", "--config", config)
        rows = json.loads(done.stdout)["partitions"]
        return [row for row in rows if row["topic"].partition(".")[2] in TOPICS]

    def _note_rows(self, loaded: Sequence[Mapping[str, Any]]) -> None:
        """Notes how many offsets earlier loads have loaded, according to the manifests (`loaded`).
        The live table shows this number plus the rows that later loads of this demo commit
        (`_committed`).
        """
        self._rows_before = sum(row["loaded"] for row in loaded)
        self._loads_before = len(self.outcome.loads)

    # --- waiting ----------------------------------------------------------------------------------

    def _moment(self, ready: Callable[[], bool]) -> None:
        """Calls `ready` often until it returns True, because the awaited state may last only a
        short time. Raises SkidwayError if `ready` does not return True in time.
        """
        deadline = time.monotonic() + WITHIN_S
        while not ready():
            self.supervisor.check()
            if time.monotonic() > deadline:
                raise SkidwayError("nothing was on its way through the pipeline")
            time.sleep(MOMENT_S)

    # --- the table --------------------------------------------------------------------------------

    def _filled(self) -> list[tiers.Filled]:
        tallies = writer.written(self.site.written)
        agent = self._agent()
        self._look(tiers.BROKER, DATACENTER, TOPICS)
        self._look(tiers.MIRROR, OFFLINE, [f"{DATACENTER}.{topic}" for topic in TOPICS])
        counted = self._counter().next_offsets
        self._records[tiers.COUNTED] = sum(
            offset for tp, offset in counted.items() if tp.topic in TOPICS
        )
        self._records[tiers.ROWS] = self._rows_before + self._committed()
        return self.outcome.tiers.take(
            time.monotonic(),
            _lines_of(tallies),
            _bytes_of(tallies),
            _settled(agent),
            self._records,
        )

    def _look(self, tier: str, cluster: str, topics: Sequence[str]) -> None:
        if tier not in self._away:
            try:
                self._records[tier] = sum(self.watermarks(cluster, topics).values())
            except (Unreachable, KafkaError):
                return  # the broker has just ended or is not ready yet; the next call asks again

    def _committed(self) -> int:
        """The number of rows that loads have committed since the last call of `_note_rows`."""
        return sum(
            topic["rows"]
            for load in self.outcome.loads[self._loads_before :]
            for topic in load["topics"]
            if topic["topic"].partition(".")[2] in TOPICS
        )

    def _agent(self) -> states.AgentState:
        return states.agent(self.site.data("agent"), TOPICS)

    def _counter(self) -> states.CounterState:
        return states.counter(self.site.data("count-dc1"))


def _settled(agent: states.AgentState) -> int:
    return agent.acknowledged + agent.set_apart + agent.lost + agent.uncertain


def _has_counted(counter: states.CounterState, ends: Offsets) -> bool:
    return all(counter.next_offsets.get(tp, 0) >= end for tp, end in ends.items())


def _topics(partitions: Iterable[TopicPartition]) -> list[str]:
    return sorted({tp.topic for tp in partitions})


def _lines_of(tallies: dict[str, Tally]) -> int:
    return sum(each.lines for each in tallies.values())


def _bytes_of(tallies: dict[str, Tally]) -> int:
    return sum(each.bytes for each in tallies.values())
