"""Implements `make mutants`. A mutant is a change that breaks one rule. The command tries the
mutants one by one in a copy of the source tree: it makes the change, runs the tests that must
notice it, and undoes the change."""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue

from mutants.listing import drawn, mutants_of, packages
from mutants.mutant import Mutant
from mutants.trial import BAD, UNCHANGED_LIMIT_S, Fate, Tree

ROOT = Path(__file__).parents[2]
SHOWN_LINES = 15


def main(arguments: list[str] | None = None) -> int:
    """Tries the selected mutants. Returns 0 if the tests noticed every mutant. Returns 1 if the
    tests missed a mutant, if a mutant could not be tried, if no mutant was selected, or if the
    tests fail without a mutant."""
    args = _arguments(arguments)
    listed = [(name, mutant) for name in args.packages for mutant in mutants_of(name)]
    listed = [x for x in listed if all(word in x[1].broken for word in args.word)]
    if args.parts > 1:
        chosen = drawn([mutant for _, mutant in listed], args.parts, args.drawn_by)
        listed = [x for x in listed if x[1] in chosen]
    if not listed:
        print("There is no such mutant.", file=sys.stderr)
        return 1
    begin = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="skidway-mutants-") as folder:
        trees = [Tree(ROOT, Path(folder) / str(number)) for number in range(args.processes)]
        if not _are_good(trees[0], [mutant for _, mutant in listed], args.processes):
            return 1
        fates = _tried(trees, listed)
    _print_table(fates)
    bad = sum(fate in BAD for _, fate in fates)
    seconds = time.monotonic() - begin
    print(f"{len(fates)} mutants, {len(fates) - bad} noticed, {bad} not, {seconds:.0f} s")
    return 1 if bad else 0


def _arguments(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="mutants", description=__doc__)
    parser.add_argument("packages", nargs="*", help=f"of {', '.join(packages())} (default: all)")
    parser.add_argument("--word", action="append", default=[], help="those whose text has it")
    parser.add_argument("--parts", type=int, default=1, help="try one of so many of them")
    parser.add_argument("--drawn-by", default="", help="the text that decides which")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    args = parser.parse_args(arguments)
    if unknown := set(args.packages) - set(packages()):
        parser.error(f"no such package: {', '.join(sorted(unknown))}")
    if args.parts < 1 or args.processes < 1:
        parser.error("--parts and --processes are at least 1")
    args.packages = args.packages or packages()
    return args


def _are_good(tree: Tree, mutants: list[Mutant], processes: int) -> bool:
    """Returns whether the tests of all these mutants pass in an unchanged tree. If they fail there,
    a failure with a mutant proves nothing."""
    tests = sorted({test for mutant in mutants for test in mutant.tests})
    status, output = tree.passes(tests, "-n", str(processes), limit_s=UNCHANGED_LIMIT_S)
    if status is None:
        words = f"The tests without a mutant took longer than {UNCHANGED_LIMIT_S:.0f} s:"
        print(f"{words}\n{output}", file=sys.stderr)
    elif status != 0:
        print(f"The tests do not pass without a mutant:\n{output}", file=sys.stderr)
    return status == 0


def _tried(trees: list[Tree], listed: list[tuple[str, Mutant]]) -> list[tuple[str, Fate]]:
    idle: SimpleQueue[Tree] = SimpleQueue()
    for tree in trees:
        idle.put(tree)

    def one(package: str, mutant: Mutant) -> tuple[str, Fate]:
        tree = idle.get()
        try:
            fate, output = tree.tried(mutant)
        finally:
            idle.put(tree)
        print(f"{package:10} {fate}: {mutant.broken} ({mutant.file})", flush=True)
        if fate in BAD and output:
            print("\n".join(f"    {line}" for line in output.splitlines()[-SHOWN_LINES:]))
        return package, fate

    with ThreadPoolExecutor(len(trees)) as pool:
        return list(pool.map(lambda x: one(*x), listed))


def _print_table(fates: list[tuple[str, Fate]]) -> None:
    print(f"\n{'package':16} {'mutants':>8} {'noticed':>8}")
    total = Counter(package for package, _ in fates)
    noticed = Counter(package for package, fate in fates if fate not in BAD)
    for package in sorted(total):
        print(f"{package:16} {total[package]:>8} {noticed[package]:>8}")


if __name__ == "__main__":
    sys.exit(main())
