"""Writes the log files of the benchmark `agent`. Each function, except `write`, makes one line from
a number, and returns it without the line terminator. (`trace` makes one record, which may have
several lines.)
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

Line = Callable[[int], str]

TRACED = 10
"""Every TRACED-th record of `trace` has a stack trace."""


def hdfs(number: int, size: int = 143) -> str:
    """A line with `size` characters in the format of the logs of HDFS."""
    head = (
        f"081109 {number % 240000:06d} {number % 977} INFO dfs.DataNode$PacketResponder: Received "
        f"block blk_{number * 7919} of size 67108864 from /10.251.{number % 256}."
    )
    return head.ljust(size, "x")[:size]


def long(number: int) -> str:
    """A line of 1,023 characters in the format of HDFS."""
    return hdfs(number, 1_023)


def members(number: int) -> str:
    """A JSON object with six members."""
    return json.dumps(
        {
            "time": f"2008-11-09T20:{number // 60 % 60:02d}:{number % 60:02d}.000Z",
            "level": "INFO",
            "component": "dfs.DataNode",
            "pid": number % 977,
            "size": 67108864.0,
            "message": f"Received block blk_{number * 7919}",
        },
        separators=(",", ":"),
    )


def values(number: int) -> str:
    """Six values that are separated by commas; the last value is quoted."""
    return (
        f"081109,{number % 240000:06d},{number % 977},INFO,dfs.DataNode$PacketResponder,"
        f'"Received block blk_{number * 7919}, size 67108864, from /10.251.{number % 256}'
        + "x" * 20
        + '"'
    )


def trace(number: int) -> str:
    """A line in the format of HDFS. Every TRACED-th line is followed by five lines of a Java stack
    trace."""
    line = hdfs(number)
    if number % TRACED:
        return line
    frames = "\n".join(f"\tat org.example.Server.step{at}(Server.java:{at})" for at in range(4))
    return f"{line}\njava.io.IOException: connection reset\n{frames}"


def contained(number: int) -> str:
    """A line of HDFS, as the container runtimes of Kubernetes (CRI) write it into their logs."""
    return f"2008-11-09T20:{number // 60 % 60:02d}:{number % 60:02d}.000000000Z stdout F " + hdfs(
        number, 103
    )


def card(number: int) -> str:
    """A line in the format of HDFS. One line in ten contains the number of a credit card."""
    line = hdfs(number)
    return line if number % 10 else line[:-20] + " 4111 1111 1111 1111"


def write(path: Path, line: Line, numbers: range, end: str = "\n") -> None:
    """Writes into the file the records that `line` makes from these numbers, each followed by
    `end`."""
    with path.open("w", newline="") as out:
        out.writelines(line(number) + end for number in numbers)
