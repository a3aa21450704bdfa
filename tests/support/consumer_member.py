"""A member of a group as a program of its own, to be killed and stopped; prints what it is given.

Its argument is the consumer's, as JSON. Each line: partition, offset, value. SIGTERM ends it.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path

from skidway import log
from skidway.kafka import Consumer


def main() -> None:
    log.configure("member")
    stopped: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, _: stopped.append(number))
    with Consumer(**json.loads(sys.argv[1])) as consumer:
        while not stopped:
            for record in consumer.poll(100, max_records=20):
                line = f"{record.partition} {record.offset} {(record.value or b'').decode()}\n"
                os.write(1, line.encode())


def command(**settings: object) -> list[str]:
    """The command line of a member."""
    return [sys.executable, str(Path(__file__)), json.dumps(settings)]


def delivered(output: str) -> list[tuple[int, int, str]]:
    """What a member printed, log lines left out."""
    rows = [line.split(" ", 2) for line in output.splitlines() if line[:1].isdigit()]
    return [(int(row[0]), int(row[1]), row[2]) for row in rows if len(row) == 3]


if __name__ == "__main__":
    main()
