"""The site of the torture: starts and stops its programs, and begins and ends each kind of
fault."""

from __future__ import annotations

import json
import re
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from skidway.agent.commands import state as ledger
from skidway.demo.site import CERTIFIED, DEFAULT_PORTS, OFFLINE, Site, Timing
from skidway.errors import SkidwayError
from skidway.kafka.types import TopicPartition
from support.certificates import Authority
from support.kafka import ApacheKafka
from support.pipeline import COMMANDS, TOGETHER, watermarks
from support.processes import NotReady, answers, eventually, free_port, run_skidway, skidway
from support.proxy import Fault as OnTheWay
from support.proxy import Proxy
from support.trees import with_another_press
from torture import settings
from torture.disks import SIZES, Disk
from torture.faults import AGENTS, FOREVER, HOSTS, LAKE, OURS, TARGETS, Fault, Kind
from torture.hosts import Host, Line, all_topics
from torture.lake import Lake, copied
from torture.operator import Operator, connection
from torture.programs import Programs
from torture.truth import Arrived, Bucket, Truth, compared, named_by_recount

TIMING = Timing(bucket_ms=5_000, lateness_ms=3_000, seal_interval_ms=1_000)
LOAD_EVERY_S = 3.0
SLOW_S = 0.3
ASKED_TIMES = 5
QUIET_WITHIN_S = 1_800.0
HEALED_S, UNCHANGED_S = 20.0, 240.0
"""How many seconds the result (what happened to every line) must stay unchanged before it counts as
final. HEALED_S applies if every bucket already has the right verdict. Otherwise UNCHANGED_S
applies, because the audit corrects some verdicts only after a long time without new messages."""
LOOK_EVERY_S = 10.0

End = Callable[[], object]


class TortureSite:
    """The whole site: its programs, proxies, disks and writers. If the seed is odd (seed % 2), our
    brokers and the registry speak only TLS, also through the proxies, and ask for certificates."""

    def __init__(self, folder: Path, seed: int, rotate_s: float) -> None:
        self._kafka = ApacheKafka(_made(folder / "kafka"))
        names = [*DEFAULT_PORTS, "count-dc2.metrics", *(f"{each}.metrics" for each in AGENTS)]
        ports = {name: free_port() for name in names} | {"broker-dc2": self._kafka.proxied_port}
        self._lake = Lake(folder / LAKE, seed)
        self._site = Site(folder, ports, str(self._lake.output), TIMING, is_tls=seed % 2 == 1)
        if self._site.is_tls:
            _certify(self._site)
        self._proxies = {
            "broker-dc1": Proxy(free_port(), ports["broker-dc1"]),
            "broker-offline": Proxy(free_port(), ports["broker-offline"]),
            "kafka-dc2": Proxy(self._kafka.proxy_port, self._kafka.proxied_port),
        }
        settings.write(self._site, {name: proxy.port for name, proxy in self._proxies.items()})
        self._disks = {name: Disk(self._folder(name), SIZES.get(name)) for name in _disks()}
        self._hosts = {
            name: Host(name, settings.logs(self._site, name), index, seed, rotate_s)
            for index, name in enumerate(HOSTS, 1)
        }
        self._operator = Operator(self._site, self._lake)
        self._programs = Programs(self._commands(), self._site.logs, self._operator.answer)
        self._other_tree = with_another_press(folder / "other-version")
        self._evolved: set[str] = set()
        self._ways = self._how()

    def keep(self) -> None:
        """Copies the files of the disks that are in memory to the folder `kept`, so that they are
        still there after the run."""
        for name in SIZES:
            copied(self._folder(name), self._site.folder / "kept" / name)

    @property
    def ended(self) -> Counter[tuple[str, int]]:
        """How often each program ended by itself, by the program's name and exit status."""
        return self._programs.ended

    # --- begin and end ----------------------------------------------------------------------------

    def start(self) -> None:
        """Starts all programs and the writers."""
        for disk in self._disks.values():
            disk.mount()
        for proxy in self._proxies.values():
            proxy.start()
        self._kafka.format()
        self._programs.start("kafka-dc2", self._kafka.ready)
        for together in TOGETHER:
            for name in together:
                if name != "agent":
                    self._programs.start(name, partial(answers, self._site.health(name)))
        begun = {f"agent-{name}": host.begin() for name, host in self._hosts.items()}
        for name in (*AGENTS, "count-dc2", "loader"):
            self._programs.start(name)
        for name, paths in begun.items():
            eventually(partial(self._knows, name, paths), what=f"{name} knows its logs")
        self._programs.watch()
        self._operator.start(self._programs)
        for host in self._hosts.values():
            host.start()

    def _knows(self, agent: str, paths: Iterable[Path]) -> bool:
        """Whether the agent has found these files. The writers start only when it has found them:
        if a log were rotated before the agent found it, the agent would not have to deliver the
        rotated file."""
        with suppress(SkidwayError):
            known = {each["path"] for each in ledger.show(self._site.data(agent))["files"]}
            return {str(path) for path in paths} <= known
        return False

    def stop(self) -> None:
        """Stops the operator, programs, proxies and writers, and unmounts the disks."""
        self._operator.stop()
        self._programs.stop()
        for proxy in self._proxies.values():
            proxy.stop()
        for host in self._hosts.values():
            host.stop()
        for disk in self._disks.values():
            disk.unmount()

    def begin(self, fault: Fault) -> End:
        """Begins a fault, and returns the function that ends it."""
        return self._ways[fault.kind](fault) or _nothing

    def _how(self) -> Mapping[Kind, Callable[[Fault], End | None]]:
        """For each kind of fault, the function that begins a fault of this kind. That function
        returns a function that ends the fault, or None if the fault is never undone."""
        programs, proxies, operator = self._programs, self._proxies, self._operator
        return {
            Kind.KILL: lambda x: programs.down(x.target),
            Kind.FREEZE: lambda x: programs.freeze(x.target),
            Kind.CUT: lambda x: proxies[x.target].cut(),
            Kind.HOLD: lambda x: self._inject(x.target, OnTheWay.HOLD_REQUEST),
            Kind.DEAF: lambda x: self._inject(x.target, OnTheWay.LOSE_ANSWER),
            Kind.SLOW: lambda x: proxies[x.target].slow(SLOW_S),
            Kind.CLOCK: lambda x: self._shift(x.target, x.amount),
            Kind.FULL: lambda x: self._mended(x.target, self._disks[x.target].fill()),
            Kind.READ_ONLY: lambda x: self._mended(x.target, self._disks[x.target].protect()),
            Kind.GROW: lambda x: operator.grow(x.target),
            Kind.REMAKE: lambda x: operator.remake(x.target),
            Kind.MOVE: lambda _: operator.move(),
            Kind.RELOAD: lambda x: operator.reload(x.target),
            Kind.RESTORE: lambda x: self._restore(x.target),
            Kind.DELETE: lambda x: self._delete(x.target, x.amount),
            Kind.EVOLVE: lambda x: self._evolve(x.target),
            Kind.UPGRADE: lambda x: self._upgrade(x.target),
            Kind.LINK: lambda x: self._hosts[x.target].link(),
            Kind.COPY: lambda x: self._hosts[x.target].copy(),
        }

    def _mended(self, name: str, end: End) -> End:
        """Restarts a program whose disk has just failed. Returns a function that ends the fault
        with `end` and restarts the program again.

        The first restart closes the program's open files, which would otherwise stay writable.
        Without the second restart, a broker would not use its log directory again.
        """
        if name == LAKE:
            return end
        self._programs.restart(name)

        def mend() -> None:
            end()
            self._programs.restart(name)

        return mend

    def _delete(self, topic: str, amount: int) -> End | None:
        back = self._lake.delete(topic)
        return None if amount == FOREVER else lambda: self._operator.again(back)

    def _evolve(self, name: str) -> None:
        self._evolved ^= {name}
        settings.evolve(self._site, name, evolved=name in self._evolved)
        self._programs.restart(name)

    def _upgrade(self, name: str) -> None:
        there = self._programs.tree(name) is None
        self._programs.move(name, self._other_tree if there else None)
        self._programs.restart(name)

    def _inject(self, name: str, how: OnTheWay) -> End:
        return self._proxies[name].inject(how, lambda _header, _body: True).drop

    def _shift(self, name: str, ahead_s: int) -> End:
        def back() -> None:
            self._programs.shift(name, 0)
            self._programs.restart(name)

        self._programs.shift(name, ahead_s)
        self._programs.restart(name)
        return back

    def _restore(self, name: str) -> End:
        """Copies a program's state. The returned function puts the copy in the place of the
        program's state, as if an older backup were restored."""
        state, copy = self._site.data(name), self._site.folder / "copies" / name
        up = self._programs.down(name)
        copied(state, copy)
        up()

        def back() -> None:
            up = self._programs.down(name)
            with self._programs.answering:
                copied(copy, state)
            up()

        return back

    # --- after all faults have ended --------------------------------------------------------------

    def judged(self) -> Truth:
        """Stops the writers. Waits until the result (what happened to every line) no longer
        changes, and returns it.

        Raises NotReady if a program does not finish its work in time although no fault is active.
        """
        for host in self._hosts.values():
            host.stop()
        for what in (
            self._is_up, self._is_idle, self._is_read, self._is_mirrored, self._is_loaded,
        ):  # fmt: skip
            eventually(what, within_s=QUIET_WITHIN_S, every_s=0.5, what=what.__name__)
        # A run of the loader may have been killed after it committed and before it published its
        # counts. The next run then publishes them.
        runs = self._runs_of_the_loader() + 2
        eventually(
            lambda: self._runs_of_the_loader() >= runs, within_s=QUIET_WITHIN_S, every_s=1.0,
            what="the loader has run twice",
        )  # fmt: skip
        seen: list[tuple[float, Truth]] = []

        def is_over() -> bool:
            found = self.truth()
            if seen and found.numbers != seen[-1][1].numbers:
                seen.clear()
            seen.append((time.monotonic(), found))
            healed = found.is_good and not found.unhealed
            return seen[-1][0] - seen[0][0] >= (HEALED_S if healed else UNCHANGED_S)

        eventually(is_over, within_s=QUIET_WITHIN_S, every_s=LOOK_EVERY_S, what="it rests")
        return seen[-1][1]

    @property
    def failed(self) -> list[BaseException]:
        """The errors that ended threads of the torture itself. If there is such an error, the run
        proves nothing."""
        writers = (host.failed for host in self._hosts.values())
        found = (self._operator.failed, self._programs.failed, *writers)
        return [each for each in found if each is not None]

    def truth(self) -> Truth:
        """What has happened to every line until now."""
        lines: Iterable[Line] = (line for host in self._hosts.values() for line in host.lines)
        self.replaced = sum(map(self._lake.replaced, all_topics()))
        arrived = Arrived(
            {topic: self._lake.rows(topic) for topic in all_topics()},
            {topic: self._lake.rejects(topic) for topic in all_topics()},
            self._report(),
            self._recount(),
            self._lake.gone,
            {(topic, hour) for topic in all_topics() for hour in self._lake.marked(topic)},
        )
        return compared(lines, arrived, TIMING.bucket_ms)

    def _is_up(self) -> bool:
        health = (self._site.health(name) for name in (*OURS, "zookeeper"))
        return all(map(answers, health))

    def _report(self) -> list[dict[str, Any]]:
        return list(self._asked("report").get("buckets", ()))

    def _recount(self) -> set[Bucket]:
        """The buckets in which, according to a recount, the rows differ from the audit's counts."""
        output = ["--output", str(self._lake.output)]
        return named_by_recount(self._asked("recount", *output), TIMING.bucket_ms)

    def _asked(self, verb: str, *options: str) -> dict[str, Any]:
        config = ["--config", str(self._site.config("audit"))]
        for _ in range(ASKED_TIMES):
            done = run_skidway("audit", verb, "--json", *config, *options)
            if done.returncode in (0, 1):
                return dict(json.loads(done.stdout))
        raise NotReady(f"audit {verb}: {done.returncode} {done.stderr}")

    def _is_idle(self) -> bool:
        return self._operator.is_idle

    def _is_read(self) -> bool:
        with suppress(SkidwayError):
            return not any(
                file["pending"]
                for name in AGENTS
                for file in ledger.show(self._site.data(name))["files"]
            )
        return False

    def _is_mirrored(self) -> bool:
        with suppress(SkidwayError):
            mirror = watermarks(self._site.kafka(OFFLINE), _with_rejects(all_topics()))
            for datacenter in sorted(set(HOSTS.values())):
                prefix = f"{datacenter}."
                topics = [x.removeprefix(prefix) for x in all_topics() if x.startswith(prefix)]
                kafka = connection(self._site, datacenter)
                for tp, end in watermarks(kafka, _with_rejects(topics)).items():
                    if mirror.get(TopicPartition(prefix + tp.topic, tp.partition), -1) < end:
                        return False
            return True
        return False

    def _runs_of_the_loader(self) -> int:
        """How many runs the loader has completed (see torture.loads)."""
        return len(re.findall(r"^\d+\.\d s$", (self._site.logs / "loader.json").read_text(), re.M))

    def _is_loaded(self) -> bool:
        mirrored = _with_rejects(all_topics())
        return self._operator.is_loaded(mirrored)

    # --- how the parts of the site are made -------------------------------------------------------

    def _commands(self) -> dict[str, list[str]]:
        found = {"kafka-dc2": self._kafka.program.command}
        named = {name: command for name, command in COMMANDS.items() if name != "agent"}
        named |= dict.fromkeys(AGENTS, COMMANDS["agent"])
        named["count-dc2"] = COMMANDS["count-dc1"]
        for name, command in named.items():
            found[name] = skidway(*command, "--config", str(self._site.config(name)))
        loads = [sys.executable, "-m", "torture.loads", str(self._site.config("loader"))]
        return found | {"loader": [*loads, str(LOAD_EVERY_S)]}

    def _folder(self, disk: str) -> Path:
        return self._site.folder / LAKE if disk == LAKE else self._site.data(disk)


def _disks() -> set[str]:
    return {*SIZES, *TARGETS[Kind.FULL], *TARGETS[Kind.READ_ONLY]}


def _with_rejects(topics: Iterable[str]) -> list[str]:
    return [name for topic in topics for name in (topic, f"{topic}.rejected")]


def _certify(site: Site) -> None:
    """Makes the site's certificates. Unlike those of `skidway demo`, they have begun an hour ago,
    because the clock of a program may be behind (CLOCK_STEPS_S)."""
    site.certificates.mkdir(parents=True)
    authority = Authority(site.certificates)
    for name in CERTIFIED:
        authority.sign(name)


def _made(folder: Path) -> Path:
    folder.mkdir(parents=True)
    return folder


def _nothing() -> None:
    return None
