"""Lists the files that the loads of a topic have committed. The recount begins with the files in a
checkpoint of the loader, if there is one (see checkpoints), and then reads the manifest of every
load after that checkpoint.

The loader itself uses only the newest checkpoint. The recount begins at the oldest checkpoint after
which all manifests are kept. So the recount can compare the newest checkpoint with the manifests.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from skidway.audit.output import Output
from skidway.audit.recount import checkpoints, manifests
from skidway.audit.recount.faults import Fault, Kind
from skidway.audit.recount.manifests import STATE, Checkpoint, ManifestUnreadable
from skidway.audit.recount.named_files import NamedFiles

ATTEMPTS: Final = 5
"""The recount tries at most this many times to read the manifests. It tries again if a load deleted
manifests in the meantime."""


def read(output: Output, topic: str, named: NamedFiles) -> tuple[int, list[Fault]]:
    """Fills `named` with the files that the loads of a topic have committed. Returns the number of
    the newest load, and the faults that the manifests show. Raises ManifestUnreadable.
    """
    for left in reversed(range(ATTEMPTS)):
        oldest = manifests.oldest_kept(output, topic)
        named.clear()
        try:
            last, faults = _read(output, topic, oldest, named)
        except ManifestUnreadable:
            if not left or manifests.oldest_kept(output, topic) == oldest:
                raise
            continue
        if manifests.oldest_kept(output, topic) == oldest:
            return last, faults
    raise ManifestUnreadable(
        f"the loads of {topic} delete old manifests faster than the recount reads them; set "
        "manifests.keep higher"
    )


def _read(output: Output, topic: str, oldest: int, named: NamedFiles) -> tuple[int, list[Fault]]:
    faults = []
    known = manifests.loads(output, topic)
    stored = manifests.checkpoints(output, topic)
    if not known:
        words = f"no manifest of {topic} is there: its rows lie here or were counted, uncommitted"
        faults.append(Fault(Kind.NO_MANIFEST, f"{STATE}/{topic}", words))
    before = [each for each in stored if each.load < oldest]
    last = oldest - 1
    if before:
        last = before[-1].load
        list(named.add(checkpoints.files_of(output, before[-1])))
    newest = next((each for each in reversed(stored) if each.load in known), None)
    for load in known:
        if load != last + 1:
            faults.append(_hole(topic, last + 1, load - 1))
        last = load
        faults += _take(manifests.read(output, topic, load), load, named)
        if newest is not None and load == newest.load:
            faults += _compared(output, newest, named)
    return last, faults


def _take(manifest: Mapping[str, Any], load: int, named: NamedFiles) -> Iterator[Fault]:
    for path, other in named.remove(manifests.removed_by(manifest), load):
        words = f"load {load} removes {path}, which no earlier manifest adds"
        if other is not None:
            words = f"load {load} removes {path}, which load {other} has removed already"
        yield Fault(Kind.REMOVAL, path, words)
    for file, other in named.add(manifests.files_of(manifest)):
        words = f"{file.path} is named by load {other} and by load {load}"
        yield Fault(Kind.TWICE, file.path, words)


def _compared(output: Output, checkpoint: Checkpoint, named: NamedFiles) -> Iterator[Fault]:
    files = checkpoints.files_of(output, checkpoint)
    others = [file.path for file in files if named.named(file.path) != [file]]
    if others or len(files) != named.count():
        words = f"{checkpoint.path} names {len(files)} files; the manifests name {named.count()}"
        if others:
            words = f"{checkpoint.path} names {others[0]}, and the manifests name it otherwise"
        yield Fault(Kind.CHECKPOINT, checkpoint.path, words)


def _hole(topic: str, first: int, last: int) -> Fault:
    words = f"manifest {first} of {topic} is missing"
    if last > first:
        words = f"manifests {first} to {last} of {topic} are missing"
    return Fault(Kind.NO_MANIFEST, f"{STATE}/{topic}/{first:020}.json", words)
