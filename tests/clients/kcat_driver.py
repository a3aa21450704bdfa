"""The driver of kcat. It carries out each command of a test with calls of kcat, with JSON output
where kcat offers it."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from itertools import groupby
from typing import Any

from clients.commands import login, protocol, serve, tls
from clients.members import Member

WITHIN_S = 300.0
FOUND = re.compile(r"\[\d+\] offset (-?\d+)")
ASSIGNMENT = re.compile(rb" rebalanced \(.*\): (assigned|revoked): (.*)")


class Kcat:
    """Runs kcat as a producer, as a consumer or as a group's member; kcat has no admin client."""

    def __init__(self, address: str) -> None:
        self._address = address
        self._member: Member | None = None

    def _run(self, *arguments: str, lines: str = "") -> str:
        done = subprocess.run(
            self._command(*arguments),
            input=lines, capture_output=True, text=True, timeout=WITHIN_S, check=False,
        )  # fmt: skip
        if done.returncode:
            raise RuntimeError(f"{arguments}: {done.stderr}")
        # If kcat decides that the broker does not support a codec, kcat sends uncompressed batches
        # and prints a warning. The driver turns this warning into an error.
        if "ERROR" in done.stderr or "not support" in done.stderr:
            raise RuntimeError(f"{arguments}: {done.stderr}")
        return done.stdout

    def _command(self, *arguments: str) -> list[str]:
        sealed = {"security.protocol": protocol(), **tls(), **login()}
        settings = [word for key, value in sealed.items() for word in ("-X", f"{key}={value}")]
        return ["kcat", "-b", self._address, *settings, *arguments]

    def version(self) -> dict[str, Any]:
        said = subprocess.run(["kcat", "-V"], capture_output=True, text=True, check=True).stdout
        found = re.search(r"Version (\S+) ", said)
        return {"version": found[1] if found else said}

    def describe(self, topic: str) -> dict[str, Any]:
        found = json.loads(self._run("-L", "-J", "-t", topic))["topics"][0]
        return {"partitions": sorted(each["partition"] for each in found["partitions"])}

    def topics(self) -> dict[str, Any]:
        found = json.loads(self._run("-L", "-J"))["topics"]
        return {"topics": sorted(each["topic"] for each in found)}

    def produce(
        self, topic: str, codec: str, acks: int, idempotent: bool, records: list[dict[str, Any]]
    ) -> None:
        settings = [
            *([] if codec == "none" else ["-z", codec]),
            *("-X", f"acks={acks}"),
            *("-X", f"enable.idempotence={str(idempotent).lower()}"),
        ]

        def same(record: dict[str, Any]) -> tuple[int, list[tuple[str, str]]]:
            return record["partition"], sorted(record["headers"].items())

        for (partition, headers), part in groupby(records, same):
            named = [word for name, value in headers for word in ("-H", f"{name}={value}")]
            lines = "".join(f"{record['key']}\t{record['value']}\n" for record in part)
            where = ["-P", "-t", topic, "-p", str(partition), "-K", "\t"]
            self._run(*where, *named, *settings, lines=lines)

    def consume(self, topic: str, partition: int, offset: int, count: int) -> dict[str, Any]:
        where = ["-C", "-q", "-t", topic, "-p", str(partition), "-o", str(offset)]
        printed = self._run(*where, "-c", str(count), "-J")
        return {"records": [_record(line) for line in printed.splitlines()]}

    def offsets(self, topic: str, partition: int) -> dict[str, Any]:
        return {"first": self._offset(topic, partition, -2), "end": self._offset(topic, partition)}

    def offset_at(self, topic: str, partition: int, timestamp: int) -> dict[str, Any]:
        return {"offset": self._offset(topic, partition, timestamp)}

    def _offset(self, topic: str, partition: int, timestamp: int = -1) -> int:
        printed = self._run("-Q", "-t", f"{topic}:{partition}:{timestamp}")
        found = FOUND.search(printed)
        if found is None:
            raise RuntimeError(f"no offset in {printed!r}")
        return int(found[1])

    def join(self, group: str, topic: str) -> None:
        first = ["-X", "auto.offset.reset=earliest", "-X", "heartbeat.interval.ms=300"]
        # -u makes kcat print a record as soon as it is consumed. -E makes kcat continue while no
        # broker can be reached.
        self._member = Member(self._command("-G", group, "-u", "-E", "-J", *first, topic))

    def poll(self, wait_ms: int) -> dict[str, Any]:
        assert self._member is not None
        lines = self._member.printed(wait_ms)
        rebalances = self._member.said(lambda line: ASSIGNMENT.search(line) is not None)
        assigned: list[int] = []
        if rebalances and (last := ASSIGNMENT.search(rebalances[-1])) and last[1] == b"assigned":
            assigned = sorted(int(each) for each in re.findall(rb"\[(\d+)\]", last[2]))
        return {"records": [_record(line) for line in lines], "assigned": assigned}

    def leave(self) -> None:
        assert self._member is not None
        self._member.stop()


def _record(line: str | bytes) -> dict[str, Any]:
    found = json.loads(line)
    headers = found.get("headers", [])
    return {
        "partition": found["partition"],
        "offset": found["offset"],
        "timestamp": found["ts"],
        "key": found["key"],
        "value": found["payload"],
        "headers": dict(zip(headers[::2], headers[1::2], strict=True)),
    }


if __name__ == "__main__":
    serve(Kcat(sys.argv[1]))
