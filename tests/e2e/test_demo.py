"""`skidway demo`: what a newcomer runs first, as a newcomer runs it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pyarrow.dataset as ds
import pytest

from support.hdfs import Hdfs
from support.processes import eventually

LOGS = Path(__file__).parents[1] / "data" / "logs"
DEMO = (sys.executable, "-m", "skidway.cli", "demo")
WITHIN_S = 300

pytestmark = [pytest.mark.e2e, pytest.mark.java, pytest.mark.slow]


def run_demo(folder: Path, *arguments: str, **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*DEMO, *arguments], cwd=folder, env={**os.environ, **env}, capture_output=True, text=True,
        timeout=WITHIN_S, check=False, stdin=subprocess.DEVNULL,
    )  # fmt: skip


def expect_complete(done: subprocess.CompletedProcess[str]) -> None:
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Verdict:  complete" in done.stdout
    assert "every byte is accounted for" in done.stdout


def processes_in(folder: Path) -> list[str]:
    """Command lines of processes that were started for this folder."""
    found = subprocess.run(["ps", "-ww", "-eo", "args"], capture_output=True, text=True, check=True)
    return [line for line in found.stdout.splitlines() if str(folder) in line]


def test_the_demo_is_complete_and_goes_on_without_duplicates(tmp_path: Path) -> None:
    """On Java from pip and on logs of other systems it ends complete; so does a second run."""
    logs = tmp_path / "logs"
    logs.mkdir()
    lines = 0
    for source in (LOGS / "hadoop.log", LOGS / "openssh.log"):
        content = source.read_bytes()
        (logs / source.name).write_bytes(content)
        lines += len(content.splitlines())
    given = ("--logs", str(logs / "*.log"))
    expect_complete(run_demo(tmp_path, *given, SKIDWAY_JAVA="bundled"))
    with (logs / "hadoop.log").open("a") as out:
        out.write("\n081111 101954 26 INFO dfs.FSNamesystem: written between the runs\n")
    lines = sum(len(path.read_bytes().splitlines()) for path in logs.iterdir())
    expect_complete(run_demo(tmp_path, *given))
    rows = ds.dataset(tmp_path / "skidway-demo" / "hdfs" / "dc1.app-logs")
    spot = rows.to_table(columns=["_file_id", "_offset"]).to_pylist()
    places = {(each["_file_id"], each["_offset"]) for each in spot}
    assert len(places) == len(spot), "a line is in the rows twice"
    assert lines <= len(spot) <= lines + 2, "an unterminated last line may come in two parts"
    assert not processes_in(tmp_path)


def test_ctrl_c_leaves_no_process_behind(tmp_path: Path) -> None:
    """Interrupted while Spark starts, the demo stops everything and says so."""
    demo = subprocess.Popen(
        DEMO, cwd=tmp_path, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
        stdout=subprocess.DEVNULL, start_new_session=True,
    )  # fmt: skip
    try:
        eventually(
            lambda: any("load run" in line for line in processes_in(tmp_path)),
            what="the first load to run",
        )  # fmt: skip
        os.killpg(demo.pid, signal.SIGINT)
        _, said = demo.communicate(timeout=240)  # 20 s for each program at most
    finally:
        demo.kill()
    assert demo.returncode == 130
    assert "nothing is left running" in said
    eventually(lambda: not processes_in(tmp_path), what="all processes gone")


def test_the_demo_loads_into_a_real_hdfs(tmp_path: Path, hdfs: Hdfs) -> None:
    """With --hdfs the rows, the manifests and the recount are in HDFS."""
    expect_complete(run_demo(tmp_path, "--hdfs", f"{hdfs.url}/demo-{os.getpid()}"))
    assert not (tmp_path / "skidway-demo" / "hdfs").exists()
