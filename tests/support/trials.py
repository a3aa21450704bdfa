"""Runs "stories". A story is an end-to-end test of what happens when a fault occurs. Many stories
run on one pipeline, and each story has its own topic, files and lines.

Starting Spark takes longer than everything else, so stories share their loads (runs of the loader
over the topics of all stories). A story is a generator: the code before a `yield` runs before a
load, and the code after the `yield` checks what this load has written. A story yields once for each
load that it needs::

    @STORIES.add()
    def agent_killed(trial: Trial) -> Iterator[None]:
        '''What it promises.'''
        trial.write("app.log", 1000)
        trial.pipeline.restart("agent")
        trial.settle()
        yield
        trial.expect_exactly()

If a check of a story fails, the story ends, and only the test of this story fails, with the same
error as the check. Then every program that is down is started again, and the other stories
continue.
"""

from __future__ import annotations

import inspect
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from skidway.demo.site import DATACENTER, OFFLINE
from skidway.kafka.types import TopicPartition
from support.pipeline import AUDIT_TOPIC, ON_SPARK, Oracle, Pipeline, lines_of, source
from support.processes import WITHIN_S, NotReady, Program, eventually
from support.proxy import Fault, Intervention, produces

Told = Iterator[None]
Teller = Callable[["Trial"], Told]
SITE = "site"
"""The name of the stage for stories that need only a site's programs. A stage is a pipeline and its
loads."""


@dataclass(frozen=True, slots=True)
class Story:
    """A test of one fault, with the checks that must pass after it. `tell` is the generator
    function that runs the story. `settings` contains the settings of the agent's source for the
    story's topic. `stage` is the name of the pipeline on which the story runs.

    `is_quick` says whether `make test` runs the story.
    """

    name: str
    tell: Teller
    settings: Mapping[str, Any]
    stage: str = SITE
    is_quick: bool = False

    @property
    def topic(self) -> str:
        return self.name.replace("_", "-")

    @property
    def promise(self) -> str:
        return (inspect.getdoc(self.tell) or "").split("\n\n")[0]

    def __str__(self) -> str:
        return self.name


class Stories(list[Story]):
    """The stories of a module, in the order in which they run.

    Stories with the same `stage` share one pipeline and its loads, even if they are in different
    modules.
    """

    def __init__(self, stories: Iterable[Story] = (), *, stage: str = SITE) -> None:
        super().__init__(stories)
        self._stage = stage

    def add(self, *, is_quick: bool = False, **settings: Any) -> Callable[[Teller], Teller]:
        """Adds a story. `settings` are the settings of the agent's source for the story's topic."""

        def added(tell: Teller) -> Teller:
            self.append(Story(tell.__name__, tell, settings, self._stage, is_quick))
            return tell

        return added


class Trial:
    """Everything that one story uses: its own files and lines, and the pipeline that all stories
    share."""

    def __init__(self, stage: Stage, story: Story) -> None:
        self._stage, self.story = stage, story
        self.topic = story.topic
        self.pipeline = stage.pipeline
        self.proxy = stage.pipeline.proxy
        self.folder = stage.pipeline.site.folder / "files" / self.topic
        self.oracle = Oracle(self.folder)
        self.settings: dict[str, Any] = dict(story.settings)
        self.error: BaseException | None = None

    @property
    def source(self) -> dict[str, Any]:
        return source(self.topic, self.folder, **self.settings)

    @property
    def topics(self) -> list[str]:
        return [self.topic, f"{self.topic}.rejected"]

    @property
    def output(self) -> str:
        """The directory, local or on HDFS, to which the loads write."""
        return self._stage.output

    def write(self, name: str, count: int) -> Path:
        return self.oracle.write(name, count)

    def settle(self, within_s: float = WITHIN_S) -> None:
        """Waits until the agent has accounted for every byte that the story has written: each is
        acknowledged, rejected, left out by a rule, lost or uncertain."""
        try:
            eventually(
                lambda: self.pipeline.settled_bytes(self.folder) >= self.oracle.bytes,
                within_s=within_s,
            )
        except NotReady:
            known = self.ledger()
            raise NotReady(f"{self.oracle.bytes} bytes were written: {known}") from None

    def promised(self) -> int:
        """The number of bytes of this story's files that the agent has accounted for or has in a
        durable intent (a promise to send bytes). Bytes in an intent count even before the agent has
        sent them."""
        return self.pipeline.promised_bytes(self.folder)

    def ledger(self) -> list[dict[str, Any]]:
        """What `skidway agent state show` prints for this story's files: what happened to every
        byte of each file."""
        below = f"{self.folder}/"
        known = self.pipeline.ledger()
        return [file for file in known if file["announced_path"].startswith(below)]

    def appended(self) -> int:
        """The number of records in this story's topic that consumers of dc1 can read, including
        repeats."""
        return sum(self.watermarks().values())

    def watermarks(self, cluster: str = DATACENTER) -> dict[TopicPartition, int]:
        """The high watermarks of the topic in dc1, or of its mirror in another cluster."""
        topic = self.topic if cluster == DATACENTER else f"{DATACENTER}.{self.topic}"
        return self.pipeline.watermarks(cluster, [topic])

    def wait_appended(self, count: int, within_s: float = WITHIN_S) -> None:
        eventually(
            lambda: self.appended() >= count, within_s=within_s, what=f"{count} records appended"
        )

    def wait_mirror_moves(self) -> None:
        """Waits until the mirror has more records than at the time of the call."""
        before = sum(self.watermarks(OFFLINE).values())
        eventually(
            lambda: sum(self.watermarks(OFFLINE).values()) > before, what="the mirror follows"
        )

    def hold_answers(self) -> Intervention:
        """Makes the proxy hold back the broker's answers to the agent's Produce requests for this
        topic."""
        return self.proxy.inject(Fault.HOLD_ANSWER, produces(self.topic))

    def reconfigure(self, **settings: Any) -> None:
        """Changes settings of this story's source, for the agent's next start."""
        self.settings.update(settings)
        self._stage.configure()

    def loader(self, *options: str) -> Program:
        """Waits until the mirror has all records of this story's topics and of the audit topic.
        Returns a loader that loads only the story's topics. The loader is not started yet."""
        self.pipeline.wait_mirrored([*self.topics, AUDIT_TOPIC])
        return self.pipeline.loader(self.topics, *self._stage.load_options, *options)

    # --- after a load -----------------------------------------------------------------------------

    def rows(self, topic: str | None = None) -> pa.Table:
        return self.pipeline.rows(topic or self.topic, self._stage.output)

    def loaded(self, topic: str | None = None) -> dict[str, Any]:
        """Returns what the stage's last load has reported about a topic, by default about the
        story's own topic. Each load of a stage loads the topics of all its stories."""
        return self._stage.loaded[topic or self.topic]

    def expect_exactly(self) -> None:
        """Asserts that the rows are exactly the written lines, each once."""
        self.oracle.expect_exactly(list(lines_of(self.rows())))

    def expect_complete(self, topic: str | None = None) -> None:
        """Asserts that every bucket of the topic is complete, and that the audit counted as many
        records as there are rows."""
        name = topic or self.topic
        buckets = self._stage.verdicts([name])
        counted = {"agent": 0, "broker": 0, "mirror": 0, "hdfs": 0}
        for bucket in buckets:
            assert bucket["verdict"] == "complete", bucket
            for place in bucket["places"]:
                counted[place["tier"]] += place["count"]
        assert counted == dict.fromkeys(counted, self.rows(name).num_rows)

    def expect_recounted(self) -> None:
        """Asserts that a recount of the rows of all stories agrees with what every tier counted."""
        stage = self._stage
        options = [option for topic in stage.topics for option in ("--topic", topic)]
        found = self.pipeline.audit("recount", "--output", stage.output, *options)
        assert {topic["verdict"] for topic in found["topics"]} == {"agrees"}, found

    def expect_not_complete(self, verdict: str) -> None:
        """Asserts that some bucket of the topic has this verdict."""
        found = self._stage.verdicts([self.topic], until=verdict)
        assert verdict in {bucket["verdict"] for bucket in found}, found


class Stage:
    """One pipeline, the stories that run on it, and the loads that they share.

    `output` is the directory to which the loads write. If `output` is None, the loads write to the
    pipeline's own directory. The first load into another directory runs on Spark.
    """

    def __init__(
        self, pipeline: Pipeline, stories: Iterable[Story], output: str | None = None
    ) -> None:
        self.pipeline = pipeline
        self.output = output or pipeline.site.output
        self.trials = {story.name: Trial(self, story) for story in stories}
        self.loaded: dict[str, dict[str, Any]] = {}
        self._judged: list[dict[str, Any]] = []

    @property
    def topics(self) -> list[str]:
        return [topic for trial in self.trials.values() for topic in trial.topics]

    @property
    def load_options(self) -> tuple[str, str]:
        return "--set", f"output={self.output}"

    def configure(self) -> None:
        """Writes the sources of all stories, for the agent's next start."""
        self.pipeline.rewrite([trial.source for trial in self.trials.values()])

    def tell(self) -> Stage:
        """Runs all stories to their ends. If a story fails, its trial keeps the error."""
        self.configure()
        self.pipeline.restart("agent")
        alive = {trial: trial.story.tell(trial) for trial in self.trials.values()}
        spark = () if self.output == self.pipeline.site.output else ON_SPARK
        while True:
            alive = {trial: told for trial, told in alive.items() if self._goes_on(trial, told)}
            if not alive:
                return self
            with _timed("load"):
                self.pipeline.wait_mirrored([*self.topics, AUDIT_TOPIC])
                self.loaded = self.pipeline.load(self.topics, *self.load_options, *spark)
            spark = ()
            self._judged = []

    def result(self, story: Story) -> None:
        """Raises the error of a story if it failed."""
        error = self.trials[story.name].error
        if error is not None:
            raise error

    def verdicts(self, topics: Sequence[str], until: str = "complete") -> list[dict[str, Any]]:
        """Waits until all buckets of the topics are complete. If `until` is another verdict, waits
        until one bucket has this verdict. Returns the buckets, even if the wait took too long.

        All stories share one report of the audit. This method asks the audit for a new report only
        if the newest report does not have the wanted verdicts.
        """
        found: list[dict[str, Any]] = []

        def judged() -> bool:
            found[:] = [bucket for bucket in self._judged if bucket["topic"] in topics]
            words = {bucket["verdict"] for bucket in found}
            good = words == {until} if until == "complete" else until in words
            if not good:
                self._judged = self.pipeline.audit("report")["buckets"]
            return good

        try:
            eventually(judged, every_s=0.2)
        except NotReady:
            pass  # the caller checks the verdicts, and reports wrong ones
        return found

    def _goes_on(self, trial: Trial, told: Told) -> bool:
        """Runs a story up to its next `yield`. Returns True if the story waits there for another
        load, and False if it has ended or failed."""
        with _timed(trial.story.name):
            try:
                next(told)
            except StopIteration:
                return False
            except Exception as error:
                trial.error = error
                self.pipeline.revive()
                return False
        return True


def chosen(request: pytest.FixtureRequest, stage: str = SITE) -> list[Story]:
    """Returns the stories of a stage whose tests were selected for this test run."""
    found: list[Story] = []
    for item in request.session.items:
        callspec = getattr(item, "callspec", None)
        story = None if callspec is None else callspec.params.get("story")
        if isinstance(story, Story) and story.stage == stage:
            found.append(story)
    return found


class _timed:  # noqa: N801 - named like a function for `with`
    """Prints how long a step took. If a test fails, pytest shows this output."""

    def __init__(self, what: str) -> None:
        self._what, self._begin = what, time.monotonic()

    def __enter__(self) -> None:
        return None

    def __exit__(self, *_: object) -> None:
        sys.stdout.write(f"{time.monotonic() - self._begin:6.1f} s  {self._what}\n")
