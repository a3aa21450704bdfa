"""The programs of the torture, and how a fault is begun and ended on them.

A watch starts again what ends by itself, as systemd would, and counts with which status it ended.
"""

from __future__ import annotations

import ctypes
import errno
import json
import os
import signal
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import yaml

from agent import ledger
from skidway.demo.site import DATACENTER, DEFAULT_PORTS, Site, Timing
from skidway.errors import SkidwayError
from skidway.kafka.client import Client
from skidway.kafka.types import TopicPartition
from support.pipeline import COMMANDS, PATIENT, TOGETHER, watermarks
from support.processes import Program, answers, eventually, free_port, run_skidway, skidway
from support.proxy import Fault as OnTheWay
from support.proxy import Proxy
from torture.faults import AGENTS, HOSTS, Fault, Kind
from torture.hosts import TOPICS, Host, sources

TIMING = Timing(bucket_ms=5_000, lateness_ms=3_000, seal_interval_ms=1_000)
LOAD_EVERY_S = 3.0
WATCH_S = 1.0
PARTITIONS_MAX = 6
DISK_BYTES = 64 << 20
FAKETIME = Path("/usr/lib/x86_64-linux-gnu/faketime/libfaketimeMT.so.1")
QUIET_WITHIN_S = 600.0
_LIBC = ctypes.CDLL(None, use_errno=True)


class TortureSite:
    """All programs, by name; `begin` and `end` of faults; what is to be asked when it is quiet."""

    def __init__(self, folder: Path, seed: int, rotate_s: float) -> None:
        ports = {name: free_port() for name in (*DEFAULT_PORTS, "proxy", *HOSTS)}
        self.site = Site(folder, ports, str(folder / "rows"), TIMING)
        self.proxy = Proxy(ports["proxy"], ports["broker-dc1"])
        self._write(ports)
        self.hosts = [
            Host(name, folder / "logs" / name, index, seed, rotate_s)
            for index, name in enumerate(HOSTS, 1)
        ]
        commands = {
            name: skidway(*command, "--config", str(self.site.config(name)))
            for name, command in COMMANDS.items()
            if name != "agent"
        }
        for host in HOSTS:
            config = str(self.site.config(f"agent-{host}"))
            commands[f"agent-{host}"] = skidway("agent", "run", "--config", config)
        loads = [sys.executable, "-m", "torture.loads", str(self.site.config("loader"))]
        commands["loader"] = [*loads, str(LOAD_EVERY_S)]
        self._commands = commands
        self._programs = {name: self._program(name) for name in commands}
        self.ended: Counter[tuple[str, int]] = Counter()
        self._held: set[str] = set()
        self._lock = threading.Lock()
        self._over = threading.Event()
        self._watch = threading.Thread(target=self._watching, daemon=True)

    # --- begin and end ----------------------------------------------------------------------------

    def start(self) -> None:
        """All programs run, and the writers write."""
        self._mount()
        self.proxy.start()
        for names in TOGETHER:
            for name in names:
                if name in self._programs:
                    self._programs[name].start()
                    self._programs[name].wait_until(partial(answers, self.site.health(name)))
        for name in (*AGENTS, "loader"):
            self._programs[name].start()
        self._watch.start()
        for host in self.hosts:
            host.start()

    def stop(self) -> None:
        """Everything ends."""
        self._over.set()
        with self._lock:
            for program in self._programs.values():
                program.signal(signal.SIGCONT)
                program.kill()
        self.proxy.stop()
        _LIBC.umount2(os.fsencode(self._disk), 2)

    def begin(self, fault: Fault) -> Callable[[], None]:
        """It happens now; the answer ends it."""
        name = fault.target
        match fault.kind:
            case Kind.KILL:
                return self._down(name)
            case Kind.FREEZE:
                self._programs[name].signal(signal.SIGSTOP)
                return lambda: self._programs[name].signal(signal.SIGCONT)
            case Kind.CUT | Kind.DEAF:
                how = OnTheWay.HOLD_REQUEST if fault.kind is Kind.CUT else OnTheWay.LOSE_ANSWER
                injected = self.proxy.inject(how, lambda _header, _body: True)
                return injected.drop
            case Kind.CLOCK:
                up = self._down(name)
                self._programs[name] = self._program(name, fault.amount)
                up()
                return lambda: self._restart(name)
            case Kind.FULL:
                filler = self._disk / "filler"
                _fill(filler)
                return lambda: filler.unlink(missing_ok=True)
            case Kind.GROW:
                self._grow(name)
                return lambda: None

    def _down(self, name: str) -> Callable[[], None]:
        with self._lock:
            self._held.add(name)
            self._programs[name].signal(signal.SIGCONT)
            self._programs[name].kill()

        def up() -> None:
            with self._lock:
                self._held.discard(name)
                self._programs[name].start()

        return up

    def _restart(self, name: str) -> None:
        up = self._down(name)
        self._programs[name] = self._program(name)
        up()

    def _grow(self, topic: str) -> None:
        with suppress(SkidwayError), Client(self.site.address("broker-dc1")) as client:
            found = client.metadata([topic]).topics.get(topic)
            if found is not None and 0 < len(found.partitions) < PARTITIONS_MAX:
                more = str(len(found.partitions) + 1)
                server = ["--bootstrap-server", self.site.address("broker-dc1")]
                run_skidway("topics", "alter", topic, "--partitions", more, *server)

    # --- when it is quiet -------------------------------------------------------------------------

    def settle(self) -> None:
        """The writers have ended; until every byte is settled, mirrored and loaded."""
        for host in self.hosts:
            host.stop()
        eventually(
            self._is_read, within_s=QUIET_WITHIN_S, every_s=0.5, what="all bytes are settled"
        )
        eventually(self._is_mirrored, within_s=QUIET_WITHIN_S, every_s=0.5, what="mirrored")

    def report(self) -> list[dict[str, Any]]:
        """The audit's buckets."""
        done = run_skidway("audit", "report", "--json", "--config", str(self.site.config("audit")))
        if done.returncode not in (0, 1):
            return []
        return list(json.loads(done.stdout)["buckets"])

    def numbers(self, suffix: str = "") -> list[int]:
        """The numbers of the lines in all rows of the topics, or of what was rejected."""
        found: list[int] = []
        for topic in TOPICS:
            folder = Path(self.site.output, f"{DATACENTER}.{topic}{suffix}")
            for path in sorted(folder.rglob("*.parquet")):
                table = pq.ParquetFile(path).read(columns=["line" if suffix else "number"])
                found += [_number(x.as_py()) for x in table.column(0)]
        return found

    def _is_read(self) -> bool:
        with suppress(SkidwayError):
            return not any(
                file["pending"]
                for host in HOSTS
                for file in ledger.show(self.site.data(f"agent-{host}"))["files"]
            )
        return False

    def _is_mirrored(self) -> bool:
        topics = [*TOPICS, *(f"{each}.rejected" for each in TOPICS)]
        with suppress(SkidwayError):
            source = watermarks(self.site.address("broker-dc1"), topics)
            mirrored = [f"{DATACENTER}.{topic}" for topic in topics]
            mirror = watermarks(self.site.address("broker-offline"), mirrored)
            return all(
                mirror.get(TopicPartition(f"{DATACENTER}.{tp.topic}", tp.partition), -1) >= end
                for tp, end in source.items()
            )
        return False

    # --- programs ---------------------------------------------------------------------------------

    def _program(self, name: str, ahead_s: int = 0) -> Program:
        env: Mapping[str, str] = {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        if ahead_s:
            env = env | {  # type: ignore[operator]
                "LD_PRELOAD": str(FAKETIME), "FAKETIME": f"{ahead_s:+}s",
                "DONT_FAKE_MONOTONIC": "1", "NO_FAKE_STAT": "1",
            }  # fmt: skip
        return Program(self._commands[name], self.site.logs / f"{name}.json", env=env)

    def _watching(self) -> None:
        while not self._over.wait(WATCH_S):
            with self._lock:
                for name, program in self._programs.items():
                    if name not in self._held and not program.running:
                        self.ended[name, program.returncode or 0] += 1
                        program.start()

    @property
    def _disk(self) -> Path:
        """The state of one agent lies on a small disk of its own."""
        return self.site.data(f"agent-{HOSTS[0]}")

    def _mount(self) -> None:
        self._disk.mkdir(parents=True)
        subprocess.run(
            ["mount", "-t", "tmpfs", "-o", f"size={DISK_BYTES}", "torture", str(self._disk)],
            check=True,
        )

    def _write(self, ports: Mapping[str, int]) -> None:
        """Settings: those of a demo's site, with an agent for each host."""
        site = self.site
        site.write(sources(site.folder / "logs" / HOSTS[0]))
        base = yaml.safe_load(site.config("agent").read_text()) | dict(PATIENT["agent"])
        for host in HOSTS:
            own = {
                "host.name": host,
                "state.dir": str(site.data(f"agent-{host}")),
                "metrics.listener": f"127.0.0.1:{ports[host]}",
                "sources": sources(site.folder / "logs" / host),
            }
            site.config(f"agent-{host}").write_text(yaml.safe_dump(base | own, width=1000))
        self._change(
            "broker-dc1",
            {
                "advertised.listeners": f"PLAINTEXT://127.0.0.1:{ports['proxy']}",
                "zookeeper.session.timeout.ms": 5_000,
            },
        )
        self._change("broker-offline", {"zookeeper.session.timeout.ms": 5_000})
        self._change("loader", {"metrics.listener": None})

    def _change(self, name: str, settings: Mapping[str, Any]) -> None:
        path = self.site.config(name)
        path.write_text(
            yaml.safe_dump(yaml.safe_load(path.read_text()) | dict(settings), width=1000)
        )


def _fill(path: Path) -> None:
    """Until the file system has no room."""
    with path.open("wb", buffering=0) as out:
        try:
            while True:
                out.write(bytes(1 << 16))
        except OSError as error:
            if error.errno != errno.ENOSPC:
                raise


def _number(value: str | bytes) -> int:
    """Of a row's `number`, or of a whole rejected line."""
    text = value.decode(errors="replace") if isinstance(value, bytes) else value
    words = text.split(" ")
    return int(words[3] if len(words) > 1 else words[0])
