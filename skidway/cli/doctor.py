"""`skidway doctor [--config-dir DIRECTORY] [--json]`: lists what is missing on this machine, and
says what to do about it."""

from __future__ import annotations

import argparse
from dataclasses import asdict
from pathlib import Path
from typing import Any

from skidway import certificates, machine
from skidway.cli.options import add_json_option
from skidway.cli.output import print_json
from skidway.machine import Finding
from skidway.settings import DEFAULT_DIRECTORY

PART = "part "
MARKS = {"good": "  ok ", "advice": "  !  ", "missing": "  X  "}


def register(subparsers: Any) -> None:
    """Adds the command `skidway doctor`."""
    parser = subparsers.add_parser("doctor", help="what this machine lacks")
    parser.add_argument(
        "--config-dir",
        type=Path,
        default=DEFAULT_DIRECTORY,
        metavar="DIRECTORY",
        help="whose configurations (*.yml) name the files for TLS to look at (%(default)s)",
    )
    add_json_option(parser)
    parser.set_defaults(run=_run)


def _run(args: argparse.Namespace) -> int:
    findings = [*machine.examine(Path.cwd()), *certificates.examine(args.config_dir)]
    missing = sum(finding.verdict == "missing" for finding in findings)
    if args.json:
        print_json({"ok": not missing, "findings": [asdict(finding) for finding in findings]})
    else:
        print(render(findings), end="")
    return 1 if missing else 0


def render(findings: list[Finding]) -> str:
    """Returns a text with one line for each finding (the result of one check of this machine). If a
    finding has advice, the next line has the advice. A summary is at the end."""
    width = max(len(finding.name) for finding in findings)
    lines = []
    for finding in findings:
        lines.append(f"{MARKS[finding.verdict]}{finding.name:<{width}}  {finding.says}")
        if finding.advice:
            lines.append(f"     {'':<{width}}  -> {finding.advice}")
    missing = [finding.name for finding in findings if finding.verdict == "missing"]
    lines.append("")
    lines.append(f"Missing: {', '.join(missing)}." if missing else _sum(findings))
    return "\n".join(lines) + "\n"


def _sum(findings: list[Finding]) -> str:
    parts = [finding for finding in findings if finding.name.startswith(PART)]
    absent = [each.name.removeprefix(PART) for each in parts if each.verdict != "good"]
    if not absent:
        return "Nothing needed is missing."
    there = [each.name.removeprefix(PART) for each in parts if each.verdict == "good"]
    able = f"This machine can run {', '.join(there)}" if there else "No program can run here"
    return f"{able}; not installed here: {', '.join(absent)}."
