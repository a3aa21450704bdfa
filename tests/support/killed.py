"""Runs a `skidway` command that is killed just before its n-th operation on the files of a folder.

The operations are opening a file for writing, renaming, removing, truncating, setting times, and
making a directory. Operations on lock files (`*.lock`) do not count. Before each operation, Python
calls an audit hook (PEP 578) in the command's own process. Before the n-th operation the hook kills
the process with SIGKILL, so no exit handler runs and no files are cleaned up.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

PROGRAM = """
import os, signal, sys
left, folder = int(sys.argv.pop(1)), sys.argv.pop(1)
EVENTS = {"os.rename", "os.remove", "os.truncate", "os.utime", "os.mkdir", "open"}
WRITING = os.O_WRONLY | os.O_RDWR

def hook(event, args):
    global left
    if event not in EVENTS or (event == "open" and not args[2] & WRITING):
        return
    path = str(args[0])
    if not path.startswith(folder) or path.endswith(".lock"):
        return
    left -= 1
    if left == 0:
        os.kill(os.getpid(), signal.SIGKILL)

from skidway.cli.commands import main
sys.argv[0] = "skidway"
import skidway.broker.handover.cli
sys.addaudithook(hook)
sys.exit(main())
"""


def killed_at(step: int, folder: Path, *arguments: str) -> bool:
    """Runs the command, and kills it just before its operation number `step` on the files of the
    folder. Returns True if the command was killed, and False if it ended with fewer operations."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(step), str(folder), *arguments],
        capture_output=True,
        text=True,
        timeout=60,
        env=dict(os.environ),
        check=False,
    )
    assert done.returncode in (0, -signal.SIGKILL), done.stderr
    return done.returncode != 0
