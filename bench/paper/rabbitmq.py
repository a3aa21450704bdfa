"""Runs Debian's RabbitMQ on loopback, under the load of RabbitMQ's own perf-test.

The set-up is the same as in the paper: a durable queue of persistent messages, no publisher
confirms, and automatic acknowledgement. This module starts Erlang's port mapper (epmd) on loopback
and on a separate port. If the server started the port mapper itself, the port mapper would listen
on all addresses and would continue to run after the server has stopped.
"""

from __future__ import annotations

import contextlib
import re
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

from bench import debian
from bench.paper.series import Point, Series
from bench.produce import MESSAGE
from bench.sites import Program, accepts, free_port, running
from skidway.java import find
from support import peers

NAME = "RabbitMQ 3.10"
PACKAGES = ("rabbitmq-server",)
PERF_TEST = "rabbitmq-perf-test"
QUEUE = "paper"
SERVER = "/usr/lib/rabbitmq/lib/rabbitmq_server-*/sbin/rabbitmq-server"
"""The server's own start script. The benchmark cannot use the script on PATH, because that script
works only with Debian's user and directories."""
SAMPLE = re.compile(r"time ([\d.]+) s, (?:sent|received): (\d+) msg/s")


def provide() -> None:
    """Installs the server, and downloads its load generator. Raises SkidwayError if the
    installation or the download fails."""
    debian.provide("rabbitmq-server", PACKAGES, "RabbitMQ is a peer")
    if not peers.is_complete(PERF_TEST):
        peers.fetch(PERF_TEST, peers.provide_maven())


class RabbitMQ:
    """A RabbitMQ server that writes only to `folder`."""

    def __init__(self, folder: Path) -> None:
        self.port, epmd_port = free_port(), free_port()
        (folder / "plugins").write_text("[].")
        (folder / "rabbitmq.conf").write_text(f"listeners.tcp.1 = 127.0.0.1:{self.port}\n")
        environment = {
            "HOME": str(folder),
            "ERL_EPMD_ADDRESS": "127.0.0.1",
            "ERL_EPMD_PORT": str(epmd_port),
            "RABBITMQ_NODENAME": "paper@localhost",
            "RABBITMQ_DIST_PORT": str(free_port()),
            "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": "-kernel inet_dist_use_interface {127,0,0,1}",
            "RABBITMQ_CONF_ENV_FILE": "/dev/null",
            "RABBITMQ_CONFIG_FILE": str(folder / "rabbitmq.conf"),
            "RABBITMQ_ENABLED_PLUGINS_FILE": str(folder / "plugins"),
            "RABBITMQ_MNESIA_BASE": str(folder / "mnesia"),
            "RABBITMQ_LOG_BASE": str(folder / "log"),
            "RABBITMQ_LOGS": "-",
        }
        script = next(Path("/").glob(SERVER.lstrip("/")))
        self.program = Program(
            [str(script)], folder / "rabbitmq.out", env=environment, session=True
        )
        self._epmd_port = epmd_port
        self._epmd = Program(
            ["epmd", "-address", "127.0.0.1", "-port", str(epmd_port)], folder / "epmd.out"
        )

    @contextlib.contextmanager
    def run(self) -> Iterator[None]:
        """Runs the server inside the block, and ends all its processes afterwards."""
        with running(self._epmd, lambda: accepts(self._epmd_port)):
            self.program.start()
            try:
                self.program.wait_until(lambda: accepts(self.port), 120)
                yield
                self.program.stop(60)
            finally:
                self.program.kill_session()

    def produce(self, count: int, seconds_max: float) -> Series:
        """Sends `count` messages of 200 bytes, but ends early after `seconds_max` seconds."""
        producer = ["-x", "1", "-y", "0", "-s", str(len(MESSAGE)), "-C", str(count)]
        return self._perf_test(producer, seconds_max)

    def consume(self, count: int, seconds_max: float) -> Series:
        """Reads `count` messages, but ends early after `seconds_max` seconds."""
        consumer = ["-x", "0", "-y", "1", "-a", "-q", "1000", "-D", str(count)]
        return self._perf_test(consumer, seconds_max)

    def _perf_test(self, arguments: Sequence[str], seconds_max: float) -> Series:
        jars = f"{peers.jars(PERF_TEST)}/*"
        uri = f"amqp://guest:guest@127.0.0.1:{self.port}"
        queue = ["-u", QUEUE, "-ad", "false", "-f", "persistent"]
        done = subprocess.run(
            [
                *(str(find().command), "-cp", jars, "com.rabbitmq.perf.PerfTest", "-h", uri),
                *(*queue, "-i", "1", "-z", f"{seconds_max:.0f}", *arguments),
            ],
            capture_output=True, text=True, check=True, timeout=seconds_max + 120,
        )  # fmt: skip
        return sampled(done.stdout)


def sampled(printed: str) -> Series:
    """The series from the output of perf-test. perf-test prints one line a second, with the time
    and the rate since the previous line.

        >>> sampled("id: test, time 2.000 s, sent: 100 msg/s").points
        [Point(seconds=2.0, messages=200)]
    """
    series, before, messages = Series(), 0.0, 0.0
    for seconds, rate in SAMPLE.findall(printed):
        messages += float(rate) * (float(seconds) - before)
        before = float(seconds)
        series.points.append(Point(before, int(messages)))
    if not series.points:
        raise RuntimeError(f"perf-test printed no rates:\n{printed[-2000:]}")
    return series
