"""Implements `make explore`. It runs the random tests again and again, each time with new seeds,
until a given time has passed.

A round runs every test with the pytest mark `random` once. Each test derives its seeds from the
number of the round. The option --seed sets the number of the first round. Each later round has the
next number. For each failure, the program prints a command that repeats the failure. If a test
failed or no test ran, the exit status is 1.
"""

from __future__ import annotations

import argparse
import random
import shlex
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from pathlib import Path

SUITES = ("tests/unit", "tests/model")
NUMBERS = 1 << 20
"""Without --seed, the first round has a random number below this bound. The bound is so small that
the seeds of the tests stay below 2^41."""
GRACE_S = 3600.0
"""A round that has begun before the end of the given time may continue for this many seconds
afterwards.
"""
GOOD, FAILED = (0, 1)  # pytest's exit statuses after tests have run


class NoRound(Exception):
    """Raised if pytest could not run the tests of a round."""


def main(arguments: list[str] | None = None) -> int:
    """Runs rounds until the time is over. Returns the exit status."""
    parser = argparse.ArgumentParser(prog="explore", description=__doc__)
    parser.add_argument("--minutes", type=float, default=30.0)
    parser.add_argument("--seed", type=int, help="the first round's number (default: any)")
    parser.add_argument("--processes", default="auto", help="how many tests run at once")
    parser.add_argument("tests", nargs="*", default=list(SUITES), help="(default: %(default)s)")
    args = parser.parse_args(arguments)
    number = random.SystemRandom().randrange(NUMBERS) if args.seed is None else args.seed
    deadline = time.monotonic() + 60 * args.minutes
    rounds, tried, failures = 0, 0, 0
    while rounds == 0 or time.monotonic() < deadline:
        begin = time.monotonic()
        count, failed = _round(number, args.tests, args.processes, deadline)
        for test in failed:
            print(f"FAILED  {_replay(number, test)}", flush=True)
        took = time.monotonic() - begin
        print(f"round {number}: {count} tests, {len(failed)} failed, {took:.0f} s", flush=True)
        rounds, tried, failures = rounds + 1, tried + count, failures + len(failed)
        number += 1
    print(f"{tried - failures} passed, {failures} failed")
    return 1 if failures or not tried else 0


def _round(number: int, tests: list[str], processes: str, deadline: float) -> tuple[int, list[str]]:
    """Runs one round. Returns the number of tests that ran, and the ids of the failed tests. Raises
    NoRound if pytest could not run the tests."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.xml"
        command = [
            *(sys.executable, "-m", "pytest", "--quiet", "--no-header", "-p", "no:cacheprovider"),
            *("-n", processes, "-m", "random", f"--hypothesis-seed={number}"),
            *(f"--junit-xml={report}", *tests),
        ]
        limit = max(0.0, deadline - time.monotonic()) + GRACE_S
        try:
            done = subprocess.run(
                command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
                timeout=limit,
            )  # fmt: skip
        except subprocess.TimeoutExpired as error:
            raise NoRound(f"round {number} did not end in {limit:.0f} s") from error
        if done.returncode not in (GOOD, FAILED):
            raise NoRound(f"pytest ended with {done.returncode}:\n{done.stdout}\n{done.stderr}")
        cases = list(ET.parse(report).getroot().iter("testcase"))
        failed = [case for case in cases if list(_faults(case))]
        for case in failed:
            for fault in _faults(case):
                print(fault.text, flush=True)
        return len(cases), [_id(case) for case in failed]


def _faults(case: ET.Element) -> Iterator[ET.Element]:
    yield from case.iter("failure")
    yield from case.iter("error")


def _id(case: ET.Element) -> str:
    """Returns the id of a test. The id is made from the attribute `classname` in pytest's XML
    report, which contains the folders, the file and the classes of the test.

    The report's attribute `file` cannot be used, because for tests of Hypothesis it may name a
    source file of the library Hypothesis.
    """
    parts = case.get("classname", "").split(".")
    at = next(i for i in range(1, len(parts) + 1) if Path(*parts[:i]).with_suffix(".py").is_file())
    file = Path(*parts[:at]).with_suffix(".py")
    return "::".join([str(file), *parts[at:], case.get("name", "")])


def _replay(number: int, test: str) -> str:
    return f".venv/bin/pytest --hypothesis-seed={number} {shlex.quote(test)}"


if __name__ == "__main__":
    sys.exit(main())
