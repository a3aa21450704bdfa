"""`make torture`: a site under faults drawn from a seed, and what became of every line."""

from __future__ import annotations

import argparse
import heapq
import os
import random
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import count
from pathlib import Path

from support.processes import NotReady, eventually
from torture.faults import Fault, Kind, schedule
from torture.site import FAKETIME, QUIET_WITHIN_S, TIMING, TortureSite
from torture.truth import Truth, compared

SHOWN = 10


def main(arguments: list[str] | None = None) -> int:
    """Runs one schedule; 0 when nothing was lost, doubled or falsely complete."""
    parser = argparse.ArgumentParser(prog="torture", description=__doc__)
    parser.add_argument("--minutes", type=float, default=30.0)
    parser.add_argument("--seed", type=int, help="(default: any)")
    parser.add_argument("--rotate-s", type=float, default=8.0, help="how often logs are rotated")
    kinds = [kind.value for kind in Kind]
    parser.add_argument("--without", action="append", default=[], choices=kinds, help="leave out")
    parser.add_argument("--only", metavar="N,N", help="of the schedule these faults alone, from 1")
    parser.add_argument("--keep", action="store_true", help="leave the site's folder")
    args = parser.parse_args(arguments)
    if problem := _lacks():
        print(problem, file=sys.stderr)
        return 2
    seed = random.SystemRandom().randrange(1 << 20) if args.seed is None else args.seed
    faults = schedule(seed, 60 * args.minutes)
    if args.only:
        chosen = {int(number) for number in args.only.split(",")}
        faults = [fault for number, fault in enumerate(faults, 1) if number in chosen]
    faults = [fault for fault in faults if fault.kind.value not in args.without]
    print(f"seed {seed}, {args.minutes} minutes, {len(faults)} faults:")
    for number, fault in enumerate(faults, 1):
        print(f"{number:4} {fault}")
    folder = Path(tempfile.mkdtemp(prefix="skidway-torture-"))
    site = TortureSite(folder, seed, args.rotate_s)
    try:
        site.start()
        _suffer(site, faults, 60 * args.minutes)
        truth = _judged(site)
    finally:
        site.stop()
    _print(truth, faults, site)
    if truth.is_good and not args.keep:
        shutil.rmtree(folder)
    else:
        print(f"the site lies in {folder}; again: make torture MINUTES={args.minutes} SEED={seed}")
    return 0 if truth.is_good else 1


def _lacks() -> str:
    """What this machine has not, in a sentence."""
    if os.geteuid() != 0:
        return "The torture needs root: it mounts a small disk."
    if not FAKETIME.exists():
        return "The torture needs libfaketime (Debian: apt-get install faketime)."
    return ""


def _suffer(site: TortureSite, faults: Sequence[Fault], seconds: float) -> None:
    """Begins and ends the faults in time, several at once."""
    start, order = time.monotonic(), count()
    due: list[tuple[float, int, Fault | None, Callable[[], None]]] = []
    for each in faults:
        heapq.heappush(due, (each.at_s, next(order), each, lambda: None))
    while due:
        at_s, _, fault, end = heapq.heappop(due)
        time.sleep(max(0.0, start + at_s - time.monotonic()))
        if fault is None:
            end()
        else:
            heapq.heappush(due, (at_s + fault.for_s, next(order), None, site.begin(fault)))
    time.sleep(max(0.0, start + seconds - time.monotonic()))


def _judged(site: TortureSite) -> Truth:
    """When it is quiet: the truth, as soon as no bucket changes for the better any more."""
    site.settle()
    lines = [line for host in site.hosts for line in host.lines]
    latest: list[Truth] = []

    def is_healed() -> bool:
        verdicts = site.report()
        found = compared(
            lines, site.numbers(), site.numbers(".rejected"), verdicts, TIMING.bucket_ms
        )
        latest[:] = [found]
        return not found.unhealed and found.is_good and bool(found.buckets)

    try:
        eventually(is_healed, within_s=QUIET_WITHIN_S, every_s=5.0)
    except NotReady:
        pass  # what is wrong is in the truth
    return latest[0]


def _print(truth: Truth, faults: Sequence[Fault], site: TortureSite) -> None:
    kinds = Counter(fault.kind.value for fault in faults)
    print(f"\nfaults: {', '.join(f'{number} {kind}' for kind, number in sorted(kinds.items()))}")
    if site.ended:
        ended = (
            f"{name} {status} ({times})" for (name, status), times in sorted(site.ended.items())
        )
        print(f"ended by themselves, with status: {', '.join(ended)}")
    print(f"{truth.lines:,} lines, {truth.rows:,} rows, {truth.rejects:,} rejects;"
          f" {truth.declared:,} lines missing or double, and declared")  # fmt: skip
    print(f"{truth.buckets:,} buckets, {truth.complete:,} complete")
    for name, found in (
        ("lost", truth.lost), ("doubled", truth.doubled), ("invented", truth.invented),
        ("false complete", sorted(truth.false_complete)),
    ):  # fmt: skip
        print(f"{name}: {len(found)}", *found[:SHOWN])
    for name, why in (("false alarms", truth.false_alarms), ("unhealed", truth.unhealed)):
        print(f"{name}: {len(why)}")
        reasons = Counter(_general(reason) for reason in why.values())
        for reason, times in reasons.most_common(SHOWN):
            print(f"    {times:5} {reason}")


def _general(reason: str) -> str:
    """A reason without its numbers."""
    return " ".join("N" if any(x.isdigit() for x in word) else word for word in reason.split())


if __name__ == "__main__":
    sys.exit(main())
