"""Puts the history of a bucket into words: one line for each change of the verdict."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any


def lines(changes: Iterable[Mapping[str, Any]], left_out: int) -> list[str]:
    """The lines about one bucket, the oldest change first. changes: the changes of the verdict in
    the bucket's JSON document. left_out: how many changes between the first and the second of
    `changes` are no longer kept.
    """
    found: list[str] = []
    was_complete = False
    for number, change in enumerate(changes):
        if number == 1 and left_out:
            found.append(f"({left_out} changes are no longer kept)")
        found.append(_line(change, was_complete=was_complete))
        was_complete = change["complete"]
    return found


def _line(change: Mapping[str, Any], *, was_complete: bool) -> str:
    word = change["word"]
    if was_complete and not change["complete"]:
        word = "reopened" if word == "open" else f"reopened as {word}"
    why = f" by {change['cause']}" if change["cause"] else ""
    said = "" if change["complete"] else "; ".join(change["reasons"])
    return f"{change['time']} {word}{why}{f': {said}' if said else ''}"


def text(document: Mapping[str, Any]) -> list[str]:
    """The lines that the command prints for `document`, the collector's answer of
    /history.json."""
    found: list[str] = []
    for each in document["buckets"]:
        found.append(f"{each['topic']} {each['bucket']}")
        found += [f"  {line}" for line in lines(each["changes"], each["left_out"])]
    if not document["buckets"]:
        found.append("The history has no such bucket (a bucket that was always open has none).")
    found.append(f"The history remembers since {document['since']}.")
    if document["more"]:
        found.append("There are more buckets; ask with --topic and --bucket, or a later --since.")
    return found
