"""A program that is a member of a consumer group and prints the records that it gets. Tests kill
and stop this program.

The program's argument is the consumer's settings as JSON. Each printed line contains the partition,
the offset, the time at which the member got the record, and the value. The time is in nanoseconds
of the machine's monotonic clock. SIGTERM ends the program.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from pathlib import Path

from skidway import log
from skidway.consumer import Consumer


def main() -> None:
    log.configure("member")
    stopped: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, _: stopped.append(number))
    with Consumer(**json.loads(sys.argv[1])) as consumer:
        while not stopped:
            for record in consumer.poll(100, max_records=20):
                value = (record.value or b"").decode()
                line = f"{record.partition} {record.offset} {time.monotonic_ns()} {value}\n"
                os.write(1, line.encode())


def command(**settings: object) -> list[str]:
    """Returns the command line of a member."""
    return [sys.executable, str(Path(__file__)), json.dumps(settings)]


def delivered(output: str) -> list[tuple[int, int, str]]:
    """Returns the partition, offset and value of each record that a member has printed. Skips the
    log lines."""
    return [(partition, offset, value) for partition, offset, _, value in _rows(output)]


def handed_out(output: str) -> dict[int, list[int]]:
    """Returns, for each partition, the times at which the member got the records, in nanoseconds of
    the monotonic clock."""
    found: dict[int, list[int]] = {}
    for partition, _, at, _ in _rows(output):
        found.setdefault(partition, []).append(at)
    return found


def turns(output: str) -> dict[int, list[tuple[int, int]]]:
    """Returns, for each partition, the claims under which the member got records. A claim gives a
    partition to one member until the member releases the partition or ends. Each claim is a pair of
    times in nanoseconds of the monotonic clock. These are the times at which the member got the
    first and the last record under the claim."""
    found: dict[int, list[list[int]]] = {}
    for line in output.splitlines():
        if line.startswith("{") and '"consumer_claimed"' in line:
            partition = int(json.loads(line)["tp"].rpartition("-")[2])
            found.setdefault(partition, []).append([])
        for partition, _, at, _ in _rows(line):
            found[partition][-1].append(at)
    return {
        partition: [(turn[0], turn[-1]) for turn in each if turn]
        for partition, each in found.items()
    }


def _rows(output: str) -> list[tuple[int, int, int, str]]:
    rows = [line.split(" ", 3) for line in output.splitlines() if line[:1].isdigit()]
    return [(int(row[0]), int(row[1]), int(row[2]), row[3]) for row in rows if len(row) == 4]


if __name__ == "__main__":
    main()
