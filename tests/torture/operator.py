"""Simulates the site's operator while faults are active. The operator does what docs/operations.md
says.

A task is work in several steps. If a step cannot be done, for example because a broker is down, the
operator tries the step again every second until it succeeds.
"""

from __future__ import annotations

import re
import subprocess
import threading
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import yaml

from skidway import settings
from skidway.demo.site import DATACENTER, OFFLINE, Site
from skidway.errors import SkidwayError
from skidway.kafka.client import NewTopic
from skidway.kafka.connection import KafkaConnection
from skidway.kafka.types import TopicPartition
from skidway.loader.runs import status
from skidway.loader.settings import LoaderSettings
from skidway.loader.state import layout
from support.pipeline import watermarks
from support.processes import run_skidway
from torture.lake import Lake
from torture.programs import Programs

Task = Iterator[None]
EVERY_S = 1.0
PARTITIONS, PARTITIONS_MAX = 2, 6
_GIVE_UP = re.compile(r"skidway agent state give-up ([^\s)]+)")
_OLDER = "is an older copy of itself"
_GONE = re.compile(r"load \d+ committed (([^/\s]+)/\S+), and it is neither there nor in .* restore")
RELOADS_MAX = 3
"""How many times the operator tries to reload an hour. If all these attempts fail, the operator
removes all rows of the topic, so that the loader loads the whole topic again."""
LAST_LINES = 3
"""When a program has ended, the operator reads this many lines at the end of its output. They
contain the sentence that says why the program ended."""


class Operator:
    """A thread that does the work of one operator. It does the tasks of a list, one after the
    other."""

    def __init__(self, site: Site, lake: Lake) -> None:
        self._site, self._lake = site, lake
        self._tasks: list[Task] = []
        self._answered: set[str] = set()
        self.failed: BaseException | None = None
        self._lock = threading.Lock()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._work, daemon=True)

    def start(self, programs: Programs) -> None:
        """Starts the thread that does the operator's tasks."""
        self._programs = programs
        self._thread.start()

    def stop(self) -> None:
        """Stops the thread without completing the unfinished tasks."""
        self._over.set()

    @property
    def is_idle(self) -> bool:
        """Whether every task is done."""
        with self._lock:
            return not self._tasks

    def answer(self, name: str, last_words: str) -> None:
        """Does what the last lines of an ended program's output (`last_words`) ask an operator to
        do. This method is called before the program is started again."""
        words = "\n".join(last_words.splitlines()[-LAST_LINES:])
        config = ["--config", str(self._site.config(name))]
        if name.startswith("agent-"):
            if _OLDER in words:
                run_skidway("agent", "state", "adopt", "--new-epoch", *config)
            for topic in set(_GIVE_UP.findall(words)):
                run_skidway("agent", "state", "give-up", topic, *config)
        elif name.startswith("count-") and _OLDER in words:
            self._programs.once(name, "--new-epoch")

    # --- tasks ------------------------------------------------------------------------------------

    def grow(self, topic: str) -> None:
        """Adds the task to add one partition to the topic."""
        self._do(self._grown(topic))

    def remake(self, topic: str) -> None:
        """Adds the task to delete the topic, create it again, and move the rows of the old topic
        out of the output."""
        self._do(self._remade(topic))

    def reload(self, topic: str) -> None:
        """Adds a task that removes a topic's rows and what the loader has stored about the topic,
        so that the loader loads the topic again."""
        self._do(self._reloaded(topic))

    def move(self) -> None:
        """Adds the task to make the loader load everything again into a new output, and to retire
        the previous output."""
        self._do(self._moved())

    def is_loaded(self, topics: Sequence[str]) -> bool:
        """Whether all offsets of these mirrored topics are loaded, and all files of committed loads
        are in their final places."""
        with suppress(SkidwayError, OSError):
            given = settings.load(LoaderSettings, self._site.config("loader"))
            found = [each for each in status.status(given) if each["topic"] in topics]
            loaded = {TopicPartition(x["topic"], x["partition"]): x["loaded"] for x in found}
            ends = watermarks(self._site.kafka(OFFLINE), topics)
            return not any(x["unfinished"] for x in found) and all(
                loaded.get(tp, 0) >= end for tp, end in ends.items()
            )
        return False

    def again(self, is_done: Callable[[], bool]) -> None:
        """Adds the task to call `is_done` every second until it returns true."""
        self._do(_until(is_done))

    def _grown(self, topic: str) -> Task:
        cluster, name = topic.split(".", 1)
        kafka = connection(self._site, cluster)
        env = {"SKIDWAY_PROFILE": str(self._site.profile) if kafka.security.is_tls else ""}
        while True:
            with suppress(SkidwayError), kafka.client() as client:
                found = client.metadata([name]).topics.get(name)
                if found is None or not 0 < len(found.partitions) < PARTITIONS_MAX:
                    return
                more = str(len(found.partitions) + 1)
                alter = ("topics", "alter", name, "--partitions", more)
                address = ("--bootstrap-server", kafka.bootstrap_servers)
                if run_skidway(*alter, *address, env=env).returncode == 0:
                    return
            yield

    def _remade(self, topic: str) -> Task:
        name = topic.split(".", 1)[1]
        source, mirror = self._site.kafka(DATACENTER), self._site.kafka(OFFLINE)
        names = (name, f"{name}.rejected")
        former = yield from _known(source, names)
        yield from _until(lambda: _deleted(source, former))
        yield from _until(lambda: _created(source, names))
        mirrored = tuple(f"dc1.{each}" for each in names)
        while True:
            yield from _until(lambda: self.is_loaded(mirrored))
            up = self._programs.down("loader", gently=True)
            if self.is_loaded(mirrored):
                break
            up()
        try:
            former = yield from _known(mirror, mirrored)
            yield from _until(lambda: _deleted(mirror, former))
            for each in mirrored:
                yield from _until(lambda each=each: self._is_aside(each, keep=True))  # type: ignore[misc]
        finally:
            up()

    def _reloaded(self, topic: str) -> Task:
        up = self._programs.down("loader", gently=True)
        try:
            yield from _until(lambda: self._is_aside(topic, keep=False))
        finally:
            up()

    def _mended(self, path: str, topic: str) -> Task:
        """The task to reload the hour of a missing file, or the whole topic if the hour cannot be
        reloaded. `path` is the file's path in the output."""
        hour = layout.hour_of(path)
        end = layout.hour_text(layout.hour_number(hour) + 1)
        words = ("load", "reload", topic, "--from", hour, "--to", end)
        for _ in range(RELOADS_MAX):
            with suppress(subprocess.TimeoutExpired):
                config = ("--config", str(self._site.config("loader")))
                if run_skidway(*words, *config).returncode == 0:
                    return
            yield
        yield from self._reloaded(topic)

    def _moved(self) -> Task:
        up = self._programs.down("loader", gently=True)
        try:
            before = self._lake.move()
            changed = {"output": str(self._lake.output), "group.id": self._lake.output.name}
            change(self._site, "loader", changed)
        finally:
            up()
        yield from _until(lambda: self._is_retired(before))

    def _is_retired(self, output: Path) -> bool:
        """Runs `skidway audit retire` for an output. Returns True if the command succeeded, or if
        it has nothing to retire, because no load into this output was ever completed."""
        config = ["--config", str(self._site.config("audit")), "--reason", "moved"]
        done = run_skidway("audit", "retire", "hdfs", str(output), *config)
        return done.returncode == 0 or "never counted anything" in done.stderr

    def _is_aside(self, topic: str, *, keep: bool) -> bool:
        with suppress(OSError):  # the file system may be full or read-only at the moment
            self._lake.set_aside(topic, keep=keep)
            return True
        return False

    def _do(self, task: Task) -> None:
        with self._lock:
            self._tasks.append(task)

    def _look_after_loads(self) -> None:
        """If the loader's last log lines say that a committed file of a topic is gone for good,
        adds a task that reloads the file's hour."""
        for said in _GONE.finditer(self._programs.tail("loader")):
            if said[0] not in self._answered:
                self._answered.add(said[0])
                self._do(self._mended(said[1], said[2]))

    def _work(self) -> None:
        try:
            while not self._over.wait(EVERY_S):
                self._look_after_loads()
                with self._lock:
                    first = self._tasks[:1]  # the later tasks wait until the first one is done
                for task in first:
                    if next(task, self) is self:
                        with self._lock:
                            self._tasks.remove(task)
        except BaseException as error:
            self.failed = error
            raise


def change(site: Site, name: str, changed: dict[str, object]) -> None:
    """Changes the settings of a program, from its next start on."""
    path = site.config(name)
    path.write_text(yaml.safe_dump(yaml.safe_load(path.read_text()) | changed, width=1000))


def connection(site: Site, cluster: str) -> KafkaConnection:
    """Returns how the operator reaches a cluster. The one of dc2, Apache Kafka, never has TLS."""
    return KafkaConnection(site.address("broker-dc2")) if cluster == "dc2" else site.kafka(cluster)


def _until(is_done: Callable[[], bool]) -> Task:
    while not is_done():
        yield


def _known(kafka: KafkaConnection, names: Sequence[str]) -> Generator[None, None, dict[str, str]]:
    """Yields until a broker answers. Then returns the ids of the topics with these names, by name.
    A name without a topic is left out."""
    while True:
        with suppress(SkidwayError), kafka.client() as client:
            there = client.metadata(None).topics
            return {name: str(there[name].topic_id) for name in names if name in there}
        yield


def _deleted(kafka: KafkaConnection, former: Mapping[str, str]) -> bool:
    """Deletes those of the topics in `former` (ids by name) that still exist with these ids.
    Returns True if there was no topic to delete. Does not delete a topic that has one of the names
    but a new id, because a mirror may have made it."""
    with suppress(SkidwayError), kafka.client() as client:
        there = client.metadata(None).topics
        left = [x for x, id_ in former.items() if x in there and str(there[x].topic_id) == id_]
        if left:
            client.delete_topics(left)
        return not left
    return False


def _created(kafka: KafkaConnection, names: Sequence[str]) -> bool:
    with suppress(SkidwayError), kafka.client() as client:
        there = client.metadata(None).topics
        missing = [name for name in names if name not in there]
        if missing:
            client.create_topics([NewTopic(name, PARTITIONS) for name in missing])
        return not missing
    return False
