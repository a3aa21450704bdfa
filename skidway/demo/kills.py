"""Kills four programs with kill -9, each while it has work in hand, and starts them again.

A sentence for each kill tells what the program had not done, and when it had done it. The sentences
judge nothing: the audit, the recount and the comparison with the writer's files say whether
anything is missing.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from skidway.demo.counts import AGENT, BROKER, COUNTED, MIRROR, ROWS, WRITTEN, Tiers
from skidway.demo.programs import Programs
from skidway.loader.runs.progress_display import EVENT

PAUSE_S = 3.0  # before each kill, so that the table shows how the program before catches up

UNACKNOWLEDGED = (WRITTEN, AGENT, "written lines were not acknowledged")
WORK = {
    "agent": (AGENT, *UNACKNOWLEDGED),
    "broker-dc1": (BROKER, *UNACKNOWLEDGED),
    "count-dc1": (COUNTED, BROKER, COUNTED, "records were not counted"),
    "loader": (ROWS, MIRROR, ROWS, "records were not loaded"),
}
"""For each program: its tier, two tiers between which is the work that a kill interrupts, and words
for this work."""


def kill_all(programs: Programs, tiers: Tiers, say: Callable[[str], None]) -> dict[str, str]:
    """Kills the four programs, one after the other, while the writer writes. A kill is over when
    the work that it interrupted is done. say: prints what happened. Returns a sentence for each
    kill, by program."""

    def kill(name: str, start: Callable[[str], None]) -> str:
        tier, ahead, behind, words = WORK[name]
        before, begin = tiers.measure(), time.monotonic()
        pid = programs.kill(name)
        tiers.away.add(tier)
        say(f"kill -9 {pid}: {name}")
        start(name)
        tiers.away.discard(tier)
        programs.until(lambda: tiers.measure()[behind] >= before[ahead], f"the work of {name}")
        say(f"{name} is back, what it had in hand is done again")
        count, seconds = max(before[ahead] - before[behind], 0), time.monotonic() - begin
        return f"{count:,} {words}; {seconds:.1f} s later, all of them were."

    def is_loading() -> bool:
        if programs.load_ended():
            tiers.note_loaded()
            programs.begin_load()  # the last load ended before it could be killed
        return EVENT.encode() in programs.errors("loader").read_bytes()

    def load(_name: str) -> None:
        programs.load()
        tiers.note_loaded()

    said = {}
    for name in ("agent", "broker-dc1", "count-dc1"):
        _wait_for_work(programs, tiers, name)
        said[name] = kill(name, programs.start)
    programs.begin_load()
    programs.until(is_loading, "Spark to load")
    return said | {"loader": kill("loader", load)}


def _wait_for_work(programs: Programs, tiers: Tiers, name: str) -> None:
    _, ahead, behind, _ = WORK[name]
    at_s = time.monotonic() + PAUSE_S

    def is_busy() -> bool:
        now = tiers.measure()
        return time.monotonic() > at_s and now[ahead] > now[behind]

    programs.until(is_busy, f"work for {name}")
