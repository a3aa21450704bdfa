"""`skidway demo`: what a newcomer runs first, as a newcomer runs it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow.dataset as ds
import pytest
import yaml

from support.hdfs import Hdfs
from support.processes import eventually

LOGS = Path(__file__).parents[1] / "data" / "logs"
DEMO = (sys.executable, "-m", "skidway.cli", "demo")
WITHIN_S = 900
TOPICS = ("access-logs", "order-logs", "worker-logs")
PROGRAMS = ("agent", "broker-dc1", "count-dc1", "loader")

pytestmark = [pytest.mark.e2e, pytest.mark.java, pytest.mark.slow]


def run_demo(folder: Path, *arguments: str, **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*DEMO, *arguments], cwd=folder, env={**os.environ, **env}, capture_output=True, text=True,
        timeout=WITHIN_S, check=False, stdin=subprocess.DEVNULL,
    )  # fmt: skip


@contextmanager
def begun(folder: Path, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    """A demo that runs; killed behind the block. What it says goes to files in the folder."""
    folder.mkdir(exist_ok=True)
    with (folder / "said").open("w") as out, (folder / "errors").open("w") as err:
        demo = subprocess.Popen(
            [*DEMO, *arguments], cwd=folder, stdin=subprocess.DEVNULL, stdout=out, stderr=err,
            text=True, start_new_session=True,
        )  # fmt: skip
    try:
        yield demo
    finally:
        demo.kill()
        demo.wait()


def said(folder: Path) -> str:
    return (folder / "said").read_text() + (folder / "errors").read_text()


def expect_complete(text: str, status: int | None) -> None:
    assert status == 0, text
    assert "Verdict:  complete" in text
    assert "every byte is accounted for" in text


def processes_in(folder: Path) -> list[str]:
    """Command lines of processes that were started for this folder."""
    found = subprocess.run(["ps", "-ww", "-eo", "args"], capture_output=True, text=True, check=True)
    return [line for line in found.stdout.splitlines() if str(folder) in line]


def test_every_line_is_a_row_although_four_programs_are_killed(tmp_path: Path) -> None:
    """The default demo: three formats, rotations and four kills, into a file as plain text."""
    done = run_demo(tmp_path, "--lines", "60000")
    expect_complete(done.stdout + done.stderr, done.returncode)
    assert not {"\r", "\x1b"} & set(done.stdout + done.stderr)
    for program in PROGRAMS:
        kills = [line for line in done.stdout.splitlines() if line.startswith(f"kill -9 {program}")]
        assert len(kills) == 1, done.stdout
        assert "Lost: nothing" in kills[0]
    for topic in TOPICS:
        files = list((tmp_path / "skidway-demo" / "written" / topic).iterdir())
        lines = sum(path.read_bytes().count(b"\n") for path in files)
        assert len(files) > 1, "nothing was rotated"
        assert lines >= 20_000
        assert ds.dataset(tmp_path / f"skidway-demo/hdfs/dc1.{topic}").count_rows() == lines
    assert not processes_in(tmp_path)


def test_the_quick_demo_is_complete_and_goes_on_without_duplicates(tmp_path: Path) -> None:
    """On Java from pip and on logs of other systems it ends complete; so does a second run."""
    logs = tmp_path / "logs"
    logs.mkdir()
    lines = 0
    for source in (LOGS / "hadoop.log", LOGS / "openssh.log"):
        content = source.read_bytes()
        (logs / source.name).write_bytes(content)
        lines += len(content.splitlines())
    given = ("--quick", "--logs", str(logs / "*.log"))
    done = run_demo(tmp_path, *given, SKIDWAY_JAVA="bundled")
    expect_complete(done.stdout + done.stderr, done.returncode)
    with (logs / "hadoop.log").open("a") as out:
        out.write("\n081111 101954 26 INFO dfs.FSNamesystem: written between the runs\n")
    lines = sum(len(path.read_bytes().splitlines()) for path in logs.iterdir())
    done = run_demo(tmp_path, *given)
    expect_complete(done.stdout + done.stderr, done.returncode)
    rows = ds.dataset(tmp_path / "skidway-demo" / "hdfs" / "dc1.app-logs")
    spot = rows.to_table(columns=["_file_id", "_offset"]).to_pylist()
    places = {(each["_file_id"], each["_offset"]) for each in spot}
    assert len(places) == len(spot), "a line is in the rows twice"
    assert lines <= len(spot) <= lines + 2, "an unterminated last line may come in two parts"
    assert not processes_in(tmp_path)


@pytest.mark.parametrize(
    ("number", "moment"),
    [
        (signal.SIGINT, "starting"),
        (signal.SIGINT, "a writer begins"),
        (signal.SIGINT, "kill -9"),
        (signal.SIGTERM, "agent is back"),
    ],
)
def test_a_demo_that_is_stopped_leaves_no_process_behind(
    tmp_path: Path, number: signal.Signals, moment: str
) -> None:
    """At any moment: it stops everything, says so, and its status is the signal's."""
    with begun(tmp_path) as demo:
        eventually(lambda: moment in said(tmp_path), within_s=WITHIN_S, what=moment)
        os.killpg(demo.pid, number)
        assert demo.wait(240) == 128 + number  # 20 s for each program at most
    assert "nothing is left running" in said(tmp_path)
    assert "failed" not in said(tmp_path)
    assert not processes_in(tmp_path)


def test_a_killed_demo_leaves_no_process_behind(tmp_path: Path) -> None:
    """kill -9 of the demo itself, with a writer and Spark at work."""
    with begun(tmp_path) as demo:
        eventually(lambda: "kill -9" in said(tmp_path), within_s=WITHIN_S, what="the first kill")
        demo.kill()
    eventually(lambda: not processes_in(tmp_path), what="all processes gone")


def test_a_program_that_ends_ends_the_demo(tmp_path: Path) -> None:
    """It is named, the status is 1, and the others are stopped."""
    with begun(tmp_path) as demo:
        eventually(lambda: "a writer begins" in said(tmp_path), within_s=WITHIN_S, what="a writer")
        subprocess.run(["pkill", "-9", "-f", f"{tmp_path}.*/etc/broker-offline.yml"], check=True)
        assert demo.wait(240) == 1
    assert "broker-offline ended with status -9" in said(tmp_path)
    assert not processes_in(tmp_path)


def test_two_demos_at_once_share_no_port(tmp_path: Path) -> None:
    """Begun at the same moment, both end complete."""
    one, two = tmp_path / "one", tmp_path / "two"
    with begun(one, "--quick") as first, begun(two, "--quick") as second:
        assert (first.wait(WITHIN_S), second.wait(WITHIN_S)) == (0, 0), said(one) + said(two)
    taken = [
        config["metrics.listener"]
        for folder in (one, two)
        for path in (folder / "skidway-demo" / "etc").glob("*.yml")
        if "metrics.listener" in (config := yaml.safe_load(path.read_text()))
    ]
    assert len(set(taken)) == len(taken)
    for folder in (one, two):
        expect_complete(said(folder), 0)


def test_the_demo_loads_into_a_real_hdfs(tmp_path: Path, hdfs: Hdfs) -> None:
    """With --hdfs the rows, the manifests and the recount are in HDFS."""
    done = run_demo(tmp_path, "--quick", "--hdfs", f"{hdfs.url}/demo-{os.getpid()}")
    expect_complete(done.stdout + done.stderr, done.returncode)
    assert not (tmp_path / "skidway-demo" / "hdfs").exists()
