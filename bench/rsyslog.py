"""Runs rsyslog as the peer in the agent's benchmarks. rsyslog reads files with its module imfile,
parses their lines if the benchmark wants it, and sends them to a broker with its module omkafka."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from bench.sites import Program

DEBIAN = ("rsyslog", "rsyslog-kafka")

UNPARSED = ""
"""The argument `parsing` of `program` if rsyslog is to send the lines unparsed: no action parses
them."""


def provide() -> None:
    """If rsyslog or its Kafka output is missing, installs both from Debian's packages."""
    if shutil.which("rsyslogd") and list(Path("/usr/lib").glob("*/rsyslog/omkafka.so")):
        return
    subprocess.run(["apt-get", "update", "-q"], check=True, stdin=subprocess.DEVNULL)
    subprocess.run(
        ["apt-get", "install", "-q", "-y", "--no-install-recommends", *DEBIAN],
        check=True,
        stdin=subprocess.DEVNULL,
    )


def normalized(rule: str, work: Path) -> str:
    """Returns the action, for rsyslog's configuration, that parses lines by a rule of the library
    liblognorm (with the module mmnormalize). Writes the rule into a file in the folder `work`."""
    base = work / "rules.rb"
    base.write_text(f"version=2\nrule=:{rule}\n")
    return f'action(type="mmnormalize" rulebase="{base}")'


JSON = 'action(type="mmjsonparse" cookie="")'
"""The action, in rsyslog's configuration, that parses lines of JSON."""


def program(
    work: Path, address: str, topic: str, files: str, *, parsing: str = UNPARSED, start: str = ""
) -> Program:
    """Returns rsyslog, which is not started yet. rsyslog sends the lines of `files` (a pattern) to
    a topic. If rsyslog parses the lines, it sends the fields of each record as one JSON object.

    work: an existing folder for rsyslog's own files. parsing: the actions that parse a line.
    start: if not empty, a regular expression; each line that matches it begins a new record, and
    the lines after it belong to the same record.
    """
    sent = "$!all-json-plain" if parsing else "msg"
    joined = f'startmsg.regex="{start}"' if start else ""
    modules = "".join(
        f'module(load="{name}")\n' for name in ("mmnormalize", "mmjsonparse") if name in parsing
    )
    config = work / "rsyslog.conf"
    config.write_text(f"""
global(workDirectory="{work}")
module(load="imfile" mode="inotify")
module(load="omkafka")
{modules}
template(name="line" type="list") {{ property(name="{sent}") }}
main_queue(queue.type="LinkedList" queue.size="200000" queue.dequeueBatchSize="4096")
input(type="imfile" File="{files}" Tag="bench" ruleset="ship" reopenOnTruncate="on" {joined})
ruleset(name="ship") {{
  {parsing}
  action(type="omkafka" broker=["{address}"] topic="{topic}" template="line"
         confParam=["linger.ms=20", "acks=1", "queue.buffering.max.messages=1000000"])
}}
""")
    return Program(["rsyslogd", "-n", "-f", str(config), "-i", str(work / "pid")], work / "out")
