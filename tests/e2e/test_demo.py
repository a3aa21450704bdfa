"""`skidway demo` works for a newcomer who has not run any other command before."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
import yaml

from support.hdfs import Hdfs
from support.pipeline import parquet_files
from support.processes import Program, eventually
from support.promises import promise

LOGS = Path(__file__).parents[1] / "data" / "logs"
DEMO = (sys.executable, "-m", "skidway.cli", "demo")
WITHIN_S = 900
TOPICS = ("access-logs", "order-logs", "worker-logs")
KILLED = ("agent", "broker-dc1", "count-dc1", "loader")

pytestmark = [pytest.mark.java, pytest.mark.slow]


@contextmanager
def begun(folder: Path, *arguments: str, **env: str) -> Iterator[Program]:
    """Starts a demo, and kills it after the `with` block. The demo's output goes to a file in the
    folder."""
    folder.mkdir(exist_ok=True)
    demo = Program([*DEMO, *arguments], folder / "said", env=env, cwd=folder, session=True)
    try:
        yield demo.start()
    finally:
        demo.kill()


def said(folder: Path) -> str:
    return (folder / "said").read_text()


def expect_complete(text: str, status: int | None) -> None:
    assert status == 0, text
    assert "Verdict:  complete" in text
    assert "every byte is accounted for" in text


def processes_in(folder: Path) -> list[str]:
    """Returns the command lines of all running processes that contain the path of this folder."""
    found = subprocess.run(["ps", "-ww", "-eo", "args"], capture_output=True, text=True, check=True)
    return [line for line in found.stdout.splitlines() if str(folder) in line]


@dataclass(frozen=True)
class Two:
    """The folders of two demos that were started at the same moment. The demo in `default` has
    three log formats and four kills, and loads into the real HDFS folder `output`. The demo in
    `quick` uses the Java that a Python package contains, and reads logs of Hadoop and OpenSSH; its
    brokers and its registry speak TLS.
    `listeners` contains the addresses on which the programs of both demos served their metrics."""

    default: Path
    output: str
    quick: Path
    listeners: list[str]

    @property
    def given(self) -> tuple[str, ...]:
        return "--quick", "--tls", "--logs", str(self.quick / "logs" / "*.log")


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory, hdfs: Hdfs) -> Two:
    folders = [tmp_path_factory.mktemp(name) for name in ("default", "quick")]
    found = Two(folders[0], f"{hdfs.url}/demo-{os.getpid()}", folders[1], [])
    (found.quick / "logs").mkdir()
    for source in (LOGS / "hadoop.log", LOGS / "openssh.log"):
        shutil.copyfile(source, found.quick / "logs" / source.name)
    with (
        begun(found.default, "--lines", "60000", "--hdfs", found.output) as first,
        begun(found.quick, *found.given, SKIDWAY_JAVA="bundled") as second,
    ):
        first.wait(WITHIN_S)
        second.wait(WITHIN_S)
    for demo in (first, second):
        expect_complete(demo.output(), demo.returncode)
    for folder in (found.default / "skidway-demo", found.quick / "skidway-demo-quick"):
        found.listeners.extend(listeners_in(folder))
    return found


@promise("6 two ways")
def test_every_line_is_a_row_although_four_programs_are_killed(two: Two) -> None:
    """The default demo uses three log formats, rotates logs and kills four programs. Still, every
    line becomes a row, with --hdfs on a real HDFS and not in the demo's own folder. If the demo's
    output goes to a file, it is plain text."""
    text = said(two.default)
    assert not {"\r", "\x1b"} & set(text)
    for program in KILLED:
        kills = [line for line in text.splitlines() if line.startswith(f"kill -9 {program}")]
        assert len(kills) == 1, text
        assert "later, all of them were" in kills[0]
    for topic in TOPICS:
        files = list((two.default / "skidway-demo" / "written" / topic).iterdir())
        lines = sum(path.read_bytes().count(b"\n") for path in files)
        assert len(files) > 1, "nothing was rotated"
        assert lines >= 20_000
        rows = parquet_files(two.output, f"dc1.{topic}")
        assert sum(pq.read_metadata(each).num_rows for each in rows) == lines
    assert not (two.default / "skidway-demo" / "hdfs").exists()
    assert not processes_in(two.default)


def test_every_line_is_a_row_with_tls(two: Two) -> None:
    """With --tls, brokers listen with TLS alone and require certificates. The demo still ends
    complete, with as many rows as lines."""
    rows = ds.dataset(two.quick / "skidway-demo-quick" / "hdfs" / "dc1.app-logs").count_rows()
    assert rows == lines_in(two.quick / "logs")
    for cluster in ("dc1", "offline"):
        config = two.quick / "skidway-demo-quick" / "etc" / f"broker-{cluster}.yml"
        broker = yaml.safe_load(config.read_text())
        assert broker["listeners"].startswith("SSL://")
        assert broker["ssl.client.auth"] == "required"


def listeners_in(folder: Path) -> Iterator[str]:
    """Yields the addresses on which the programs of the demo in this folder serve metrics."""
    for path in (folder / "etc").glob("*.yml"):
        config = yaml.safe_load(path.read_text())
        if "metrics.listener" in config:
            yield config["metrics.listener"]


def test_two_demos_at_once_share_no_port(two: Two) -> None:
    """If two demos are started at the same moment, they use different ports, and both end with the
    verdict "complete"."""
    assert len(set(two.listeners)) == len(two.listeners) > 0


def lines_in(folder: Path) -> int:
    return sum(len(path.read_bytes().splitlines()) for path in folder.iterdir())


def test_the_quick_demo_goes_on_without_duplicates(two: Two) -> None:
    """A second run of the demo in the same folder reads the lines that were written since the first
    run, and makes no duplicates. The second run ends with the verdict "complete", like the first
    run."""
    with (two.quick / "logs" / "hadoop.log").open("a") as out:
        out.write("\n081111 101954 26 INFO dfs.FSNamesystem: written between the runs\n")
    (two.quick / "said").unlink()
    with begun(two.quick, *two.given) as second:
        second.wait(WITHIN_S)
    expect_complete(second.output(), second.returncode)
    lines = lines_in(two.quick / "logs")
    rows = ds.dataset(two.quick / "skidway-demo-quick" / "hdfs" / "dc1.app-logs")
    spot = rows.to_table(columns=["_file_id", "_offset"]).to_pylist()
    places = {(each["_file_id"], each["_offset"]) for each in spot}
    assert len(places) == len(spot), "a line is in the rows twice"
    assert lines <= len(spot) <= lines + 2, "an unterminated last line may come in two parts"
    assert not processes_in(two.quick)


@pytest.mark.parametrize(
    ("number", "moment"),
    [(signal.SIGINT, "starting"), (signal.SIGTERM, "a writer begins")],
)
def test_a_demo_that_is_stopped_leaves_no_process_behind(
    tmp_path: Path, number: signal.Signals, moment: str
) -> None:
    """If the demo gets a signal at any moment, it stops all programs and says that it was stopped.
    The demo's exit status is 128 plus the number of the signal."""
    with begun(tmp_path, "--lines", "60000") as demo:
        eventually(lambda: moment in said(tmp_path), what=moment)
        os.killpg(demo.pid, number)
        assert demo.wait() == 128 + number
    assert "nothing is left running" in said(tmp_path)
    assert "failed" not in said(tmp_path)
    assert not processes_in(tmp_path)


def test_a_killed_demo_leaves_no_process_behind(tmp_path: Path) -> None:
    """If the demo itself is killed with kill -9 while a writer and Spark run, no process is left
    behind."""
    with begun(tmp_path, "--lines", "60000") as demo:
        eventually(lambda: "kill -9" in said(tmp_path), what="the first kill")
        demo.kill()
    eventually(lambda: not processes_in(tmp_path), what="all processes gone")


def test_a_program_that_ends_ends_the_demo(tmp_path: Path) -> None:
    """If one of the demo's programs ends, the demo names this program, stops the other programs,
    and exits with status 1."""
    with begun(tmp_path, "--lines", "60000") as demo:
        eventually(lambda: "a writer begins" in said(tmp_path), what="a writer")
        subprocess.run(["pkill", "-9", "-f", f"{tmp_path}.*/etc/broker-offline.yml"], check=True)
        assert demo.wait() == 1
    assert "broker-offline ended with status -9" in said(tmp_path)
    assert not processes_in(tmp_path)
