"""If an agent is killed with batches in flight, and another version of the program is started, no
line is lost or doubled.

Both versions of the program are real source trees. One is this tree, and the other is a copy with a
different PRESS_VERSION, which is the version of the code that makes records from lines. The agent
reaches the broker through a proxy. The proxy lets some batches reach the broker but hides the
broker's answers from the agent. The proxy holds back the other batches.
"""

import collections
from collections.abc import Callable
from pathlib import Path

import pytest

from support.agent_process import AgentProcess, records
from support.brokers import SkidwayBroker
from support.processes import eventually
from support.promises import promise
from support.proxy import Fault, Intervention, Proxy, fetches, produces
from support.trees import with_another_press

WAIT_MS = 4_000
FILES = ("a.log", "b.log", "c.log", "d.log")

Make = Callable[..., AgentProcess]


@pytest.fixture
def upgraded(tmp_path: Path) -> Path:
    """The source tree of another version of the program. Its PRESS_VERSION says that it makes other
    records from the same lines."""
    return with_another_press(tmp_path / "upgraded")


class Logs:
    """Log files in which all lines are different."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        self.folder = folder
        self.written: list[str] = []

    def write(self, count: int, *names: str) -> None:
        for name in names or FILES:
            with (self.folder / name).open("a") as out:
                for _ in range(count):
                    line = f"{name} {len(self.written):06}"
                    self.written.append(line)
                    out.write(line + "\n")

    def sizes(self) -> dict[Path, int]:
        return {path: path.stat().st_size for path in self.folder.iterdir()}


@pytest.fixture
def logs(tmp_path: Path) -> Logs:
    return Logs(tmp_path / "log")


def killed_on_the_way(
    agent: Make, logs: Logs, proxy: Proxy, broker: SkidwayBroker, *, holds: bool = True
) -> tuple[AgentProcess, Intervention]:
    """Starts an agent and kills it while batches are in flight: the broker has received some of
    them, but the agent has no answer yet. Returns the agent, and the `Intervention` (a fault that
    the proxy causes) that holds back further batches.

    If `holds` is False, the broker has received all batches, and the `Intervention` holds back an
    answer of the broker.
    """
    process = agent({"topic": "logs", "paths": [str(logs.folder / "*")]})
    process.settings |= {"topic.partitions": 3, "read.back.wait.ms": WAIT_MS}
    logs.write(500)
    process.start()
    eventually(lambda: process.settled(logs.sizes()), what="the first lines")
    arrived = proxy.inject(Fault.HOLD_ANSWER, produces("logs"), times=1)
    logs.write(300, "a.log", "b.log")
    arrived.wait_for_hit()
    on_its_way = arrived
    if holds:
        on_its_way = proxy.inject(Fault.HOLD_REQUEST, produces("logs"))
    logs.write(400)
    if holds:
        on_its_way.wait_for_hit()
    else:
        size = len(logs.written)
        eventually(lambda: len(list(records(broker.address, "logs"))) == size, what="all there")
    process.program.kill()
    return process, on_its_way


def started_to_read_back(process: AgentProcess, proxy: Proxy) -> Intervention:
    """Starts the agent, and waits until it asks the broker for records of its topic. Returns the
    `Intervention` (a fault that the proxy causes) that holds this request back until the test
    releases or drops the request."""
    held = proxy.inject(Fault.HOLD_REQUEST, fetches("logs"))
    process.start(ready=False)
    process.program.wait_until(lambda: held.hits)
    return held


def check_each_once(logs: Logs, broker: SkidwayBroker) -> None:
    """Asserts that the topic `logs` has exactly one record of every written line, and so no
    repeated record."""
    found = collections.Counter(line for _, _, line, _, _ in records(broker.address, "logs"))
    assert found == collections.Counter(logs.written)


def apart(process: AgentProcess, fate: str) -> int:
    return sum(file[fate] for file in process.ledger())


@promise("2 read back")
@pytest.mark.parametrize(
    "fate", ["never arrived", pytest.param("arrive late", marks=pytest.mark.quick), "arrived"]
)
def test_an_upgrade_leaves_nothing_uncertain_that_the_broker_has(
    proxy: Proxy, agent: Make, logs: Logs, own_broker: SkidwayBroker, upgraded: Path, fate: str
) -> None:
    """After an upgrade, the agent looks for its records on the broker. If the broker has a record,
    this record counts as delivered. The agent sends all other records. Every line arrives once, and
    the agent declares no byte lost or uncertain. It does not matter whether batches that were in
    flight have arrived, arrive late or never arrive."""
    holds = fate != "arrived"
    process, on_its_way = killed_on_the_way(agent, logs, proxy, own_broker, holds=holds)
    process.tree = upgraded
    if fate != "arrive late":
        on_its_way.drop()
    if fate == "arrive late":
        reading_back = started_to_read_back(process, proxy)
        size = len(list(records(own_broker.address, "logs")))
        on_its_way.release()
        eventually(lambda: len(list(records(own_broker.address, "logs"))) > size, what="late")
        reading_back.release()
    else:
        process.start(ready=False)
    logs.write(100)
    eventually(lambda: process.settled(logs.sizes()), what="all settled")
    check_each_once(logs, own_broker)
    assert (apart(process, "lost"), apart(process, "uncertain")) == (0, 0)
    eventually(process.healthy, what="well again")
    assert "reading_back" not in process.health()
    assert process.program.stop() == 0


@promise("2 set apart")
def test_what_the_host_has_no_more_is_lost_and_what_the_broker_has_is_not(
    proxy: Proxy, agent: Make, logs: Logs, own_broker: SkidwayBroker, upgraded: Path
) -> None:
    """If a file is deleted after the agent was killed and before the upgrade, the agent looks for
    the file's bytes on the broker. The bytes that it finds there count as delivered, and the file's
    other bytes count as lost."""
    process, on_its_way = killed_on_the_way(agent, logs, proxy, own_broker)
    on_its_way.drop()
    sizes = logs.sizes()
    path = logs.folder / "a.log"
    path.unlink()
    process.tree = upgraded
    process.start()
    eventually(lambda: process.settled(sizes), what="all settled")
    (file,) = (each for each in process.ledger() if each["path"] == str(path))
    have = [line for *_, line, _, _ in records(own_broker.address, "logs")]
    found = sum(len(line) + 1 for line in have if line.startswith("a.log "))
    assert len(have) == len(set(have))
    assert found >= 500 * len("a.log 000000\n")
    assert (file["acknowledged"], file["uncertain"]) == (found, 0)
    assert file["lost"] == sizes[path] - found
    assert process.program.stop() == 0


def test_without_brokers_nothing_is_decided(
    proxy: Proxy, agent: Make, logs: Logs, own_broker: SkidwayBroker, upgraded: Path
) -> None:
    """If no broker can be reached after an upgrade, /health answers 503 and names the partitions in
    which the agent must look for its records. After a broker has started, all lines arrive once."""
    process, on_its_way = killed_on_the_way(agent, logs, proxy, own_broker)
    on_its_way.drop()
    process.tree = upgraded
    reading_back = started_to_read_back(process, proxy)
    own_broker.program.kill()
    reading_back.drop()
    said = eventually(lambda: process.health().get("troubles"), what="it says what it waits for")
    assert process.health()["reading_back"]["partitions"]
    assert any("could not be read back for" in each for each in dict(said).values())  # type: ignore[call-overload]
    assert process.health()["ok"] is False
    assert (apart(process, "lost"), apart(process, "uncertain")) == (0, 0)
    assert apart(process, "pending") > 0
    own_broker.start()
    eventually(lambda: process.settled(logs.sizes()), what="all settled")
    check_each_once(logs, own_broker)
    assert (apart(process, "lost"), apart(process, "uncertain")) == (0, 0)
    assert process.program.stop() == 0
