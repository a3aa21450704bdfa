"""The program behind `make torture`: runs a site under a schedule of faults that a seed decides,
and reports what happened to the lines."""

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

from skidway.errors import UNEXPECTED_EXIT_CODE
from support.peers import is_complete
from support.processes import NotReady
from torture.faults import Fault, Kind, schedule
from torture.programs import FAKETIME
from torture.shrinking import shrunk
from torture.site import TortureSite
from torture.truth import Truth

SHOWN = 10


def main(arguments: list[str] | None = None) -> int:
    """Runs one schedule of faults. Returns 0 if the run was good (see `Truth.is_good`)."""
    args = _arguments(arguments)
    if problem := _lacks():
        print(problem, file=sys.stderr)
        return 2
    seed = random.SystemRandom().randrange(1 << 20) if args.seed is None else args.seed
    numbered = dict(enumerate(schedule(seed, 60 * args.minutes), 1))
    chosen = {int(each) for each in args.only.split(",")} if args.only else set(numbered)
    faults = [
        fault
        for number, fault in numbered.items()
        if number in chosen and fault.kind.value not in args.without
    ]
    numbers = {fault: number for number, fault in numbered.items()}

    def is_bad(tried: Sequence[Fault]) -> bool:
        print(f"\nseed {seed}, {args.minutes} minutes, {len(tried)} faults:")
        for fault in tried:
            print(f"{numbers[fault]:4} {fault}", flush=True)
        return not _run(seed, tried, args)

    if not is_bad(faults):
        return 0
    short = shrunk(faults, is_bad, args.shrink)
    only = ",".join(str(numbers[fault]) for fault in short)
    print(f'\nagain: make torture MINUTES={args.minutes} SEED={seed} ARGS="--only {only}"')
    return 1


def _arguments(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="torture", description=__doc__)
    parser.add_argument("--minutes", type=float, default=30.0)
    parser.add_argument("--seed", type=int, help="(default: any)")
    parser.add_argument("--rotate-s", type=float, default=8.0, help="how often logs are rotated")
    kinds = [kind.value for kind in Kind]
    parser.add_argument("--without", action="append", default=[], choices=kinds, help="leave out")
    parser.add_argument("--only", metavar="N,N", help="of the schedule these faults alone, from 1")
    parser.add_argument(
        "--shrink", type=int, default=0, metavar="RUNS",
        help="leave faults out of a schedule that fails, with so many more runs at most",
    )  # fmt: skip
    parser.add_argument("--keep", action="store_true", help="leave the site's folder")
    return parser.parse_args(arguments)


def _run(seed: int, faults: Sequence[Fault], args: argparse.Namespace) -> bool:
    """Runs a site under these faults, and prints what happened to the lines. Returns whether the
    run was good (see `Truth.is_good`), all programs finished their work in time, no program ended
    with UNEXPECTED_EXIT_CODE, and no thread of the torture failed."""
    folder = Path(tempfile.mkdtemp(prefix="skidway-torture-"))
    site = TortureSite(folder, seed, args.rotate_s)
    problems: list[str] = []
    try:
        site.start()
        _suffer(site, faults, 60 * args.minutes)
        try:
            truth = site.judged()
        except NotReady as error:
            problems, truth = [str(error)], site.truth()
        problems += [f"the torture's own: {error!r}" for error in site.failed]
        problems += [
            f"{name} ended with 70" for name, status in site.ended if status == UNEXPECTED_EXIT_CODE
        ]
        is_good = truth.is_good and not problems
        is_kept = args.keep or not is_good or bool(truth.unhealed)
        if is_kept:
            site.keep()
    finally:
        site.stop()
    _print(truth, faults, site)
    print(*problems, sep="\n", end="\n" if problems else "")
    if is_kept:
        print(f"the site lies in {folder}")
    else:
        shutil.rmtree(folder)
    return is_good


def _lacks() -> str:
    """Returns a sentence that lists what the torture needs and this machine lacks. The sentence is
    empty if the machine lacks nothing."""
    if os.geteuid() != 0:
        return "The torture needs root: it mounts small disks."
    if not FAKETIME.exists():
        return "The torture needs libfaketime (Debian: apt-get install faketime)."
    if not is_complete("kafka"):
        return "The torture needs Apache Kafka: make peers."
    return ""


def _suffer(site: TortureSite, faults: Sequence[Fault], seconds: float) -> None:
    """Begins each fault at its scheduled time, and ends it when its duration is over. Returns when
    all faults have ended, but not before `seconds` have passed."""
    start, order = time.monotonic(), count()
    due: list[tuple[float, int, Fault | None, Callable[[], object]]] = []
    for each in faults:
        heapq.heappush(due, (each.at_s, next(order), each, lambda: None))
    while due:
        at_s, _, fault, end = heapq.heappop(due)
        time.sleep(max(0.0, start + at_s - time.monotonic()))
        if fault is None:
            end()
        else:
            end = site.begin(fault)
            ends_at = max(at_s, time.monotonic() - start) + fault.for_s
            heapq.heappush(due, (ends_at, next(order), None, end))
    time.sleep(max(0.0, start + seconds - time.monotonic()))


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
    print(f"{site.replaced:,} files were replaced by rewritten ones")
    print(f"{truth.buckets:,} buckets, {truth.complete:,} complete: {truth.proven:,} lines proven")
    print(f"{truth.marked:,} hours of topics have _SUCCESS")
    for name, found in (
        ("lost", truth.lost), ("doubled", truth.doubled), ("invented", truth.invented),
        ("torn, or not where it belongs", truth.torn), ("missing without a word", truth.missing),
        ("false complete", sorted(truth.false_complete)),
        ("false _SUCCESS", sorted(truth.false_marks)),
    ):  # fmt: skip
        print(f"{name}: {len(found)}", *found[:SHOWN])
    for name, why in (
        ("beside a loss or a doubling", truth.beside), ("false alarms", truth.false_alarms),
        ("unhealed", truth.unhealed),
    ):  # fmt: skip
        print(f"{name}: {len(why)}")
        reasons = Counter(f"{topic}: {_general(reason)}" for (topic, _), reason in why.items())
        for reason, times in reasons.most_common(SHOWN):
            print(f"    {times:5} {reason}")


def _general(reason: str) -> str:
    """Returns a verdict's reason with "N" in place of each word that contains a digit."""
    return " ".join("N" if any(x.isdigit() for x in word) else word for word in reason.split())


if __name__ == "__main__":
    sys.exit(main())
