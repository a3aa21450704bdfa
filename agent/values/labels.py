"""The labels of a file's pod or container, and from which position of the file on they apply.

A record must be the same each time the agent makes it, but labels come from another file, which
changes at any time. So the state stores, for each file id, which labels apply from which position
on. The agent takes labels only where an intent begins, and stores them in the transaction that
stores the intent. So all records of an intent have the same labels, and they have these labels
again if the agent sends the intent again after a crash.
"""

from __future__ import annotations

import json
from typing import NamedTuple

from skidway.dataclass import dataclass

Labels = tuple[tuple[str, str], ...]
"""The name and the text of each label, sorted by name. Labels without a text are left out."""


class LabelledFrom(NamedTuple):
    """The records of a file have these labels from position `first` of the file on."""

    first: int
    labels: Labels


History = tuple[LabelledFrom, ...]
"""The labels of a file, by rising positions. Records before the first position have no labels."""


@dataclass(frozen=True, slots=True)
class LabelSource:
    """Where a source's labels come from. location: the path of the file with the labels of pods.
    names: the labels that the source's records need.
    """

    location: str
    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Unlabelled:
    """A log that has no labels yet, because the file with the labels does not name the log's
    pod."""

    topic: str
    path: str
    location: str


@dataclass(frozen=True, slots=True)
class Unreadable:
    """The news that a file with labels cannot be read, with the reason, or can be read again (the
    reason is then None)."""

    location: str
    reason: str | None


def labels_at(history: History, position: int) -> Labels:
    """Returns the labels of an intent that begins at `position`."""
    found: Labels = ()
    for each in history:
        if each.first > position:
            break
        found = each.labels
    return found


def extended(history: History, first: int, labels: Labels, settled: int) -> History:
    """Returns `history` with `labels` from position `first` on. Leaves out labels that apply only
    to bytes before `settled`: the agent makes no more records of these bytes.
    """
    kept = [each for each in history if each.first < first]
    while len(kept) > 1 and kept[1].first <= settled:
        del kept[0]
    return (*kept, LabelledFrom(first, labels))


def to_json(history: History) -> str:
    """Returns the history as JSON text, which the state stores."""
    return json.dumps([[first, dict(labels)] for first, labels in history], sort_keys=True)


def from_json(text: str) -> History:
    """Returns the history from which `to_json` made this text."""
    return tuple(
        LabelledFrom(first, tuple(sorted(labels.items()))) for first, labels in json.loads(text)
    )
