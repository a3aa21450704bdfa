"""Versions of everything that decides which record a line becomes under a recipe.

The agent makes the records of an intent (a promised byte range) again only if these versions are
the same as the versions in the intent's recipe.
"""

from __future__ import annotations

import platform
import zoneinfo
from dataclasses import replace
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Final

from skidway.agent.parsers import kind_of
from skidway.agent.parsing.framing import FRAMING_VERSION
from skidway.agent.parsing.lines import UTF_8
from skidway.agent.parsing.runtimes import DOCKER
from skidway.agent.recipe import STRIP, Recipe
from skidway.agent.shaping.grammar import parse
from skidway.agent.shaping.pseudonyms import HashKey, read_key, taken_key
from skidway.agent.shaping.rules import SHAPE_VERSION, Mask
from skidway.agent.shaping.rules import Rule as ShapeRule
from skidway.agent.values.intents import crc_of
from skidway.errors import ConfigurationRefused

PRESS_VERSION: Final = 3
"""Increase this version when a change to Skidway's own code changes the record (topic, partition,
key, time or value) that a line becomes under the same recipe.
tests/unit/agent/batches/test_recipe.py finds such changes: it fails if known lines become other
records.
"""

_UTC: Final = ("UTC", "Z", "GMT")


def program_version() -> str:
    """Returns the version of Skidway's own code that makes records of lines (framing and
    pressing)."""
    return f"framing-{FRAMING_VERSION} press-{PRESS_VERSION}"


def program_of(recipe: Recipe) -> str:
    """Returns the versions of all code that decides which record a line becomes. If an intent's
    recipe has other versions, the agent cannot make the intent's records again. Instead, it asks
    the brokers which of these records arrived.

    The following versions are left out, because they never change a record. The compression library
    and `compression.type` change only the bytes of a batch. NumPy computes only integers here
    (positions, times, hashes). The Avro libraries have only one encoding for each value, except for
    the blocks of arrays and maps, which schemas/codec/writing.py makes. google-crc32c computes one
    fixed polynomial. Skidway's own version is not needed, because framing and pressing have version
    numbers of their own.
    """
    names = [program_version()]
    rules = _rules_of(recipe)
    has_masks = any(isinstance(rule, Mask) for rule in rules)
    kind = kind_of(recipe.parser, recipe.json_field)
    if (
        kind.uses_python or recipe.is_replay or has_masks
        or recipe.container == DOCKER or recipe.encoding != UTF_8
    ):  # fmt: skip
        # Python's tables decide which characters bytes mean in an encoding other than UTF-8.
        # Python's JSON decoder decides which lines are JSON, and how many digits a number may have
        # (patch releases of Python have changed this limit). If a line is not JSON, its rejected
        # record contains the decoder's error text. Masks use Python's regular expressions and its
        # tables of letters.
        names.append(f"python-{platform.python_version()}")
    has_patterns = recipe.multiline or recipe.container or recipe.path_patterns or rules
    if kind.uses_pyarrow or has_patterns or recipe.colours == STRIP:
        # pyarrow matches regular expressions (with RE2), and converts text to numbers, booleans and
        # times.
        names.append(f"pyarrow-{_version('pyarrow')}")
    if recipe.time_format is not None and recipe.timezone.upper() not in _UTC:
        # The rules of time zones change without a new version of Python, because they are part of
        # the machine's installation.
        names.append(f"zone-{_zone_rules(recipe.timezone)}")
    if rules:
        names.append(f"shape-{SHAPE_VERSION}")
    if recipe.hash_key_location:
        # A `hash` rule computes a field's value with a key. With another key, the records differ.
        names.append(f"key-{_key_fingerprint(recipe.hash_key_location)}")
    return " ".join(names)


def at_present(recipe: Recipe) -> Recipe:
    """Returns the recipe with the versions of the program that runs now."""
    return replace(recipe, program=program_of(recipe))


_version = cache(version)


def _rules_of(recipe: Recipe) -> tuple[ShapeRule, ...]:
    """Returns the recipe's rules. Returns no rules if this program refuses their text. In this case
    `program_of` leaves out SHAPE_VERSION (the version of the code that applies rules), and its
    result differs from the versions in the recipe. Because of the difference, the agent does not
    make the records of the recipe's intents again, but asks the brokers which of these records they
    have.
    """
    try:
        return parse(recipe.shape)
    except ConfigurationRefused:
        return ()


def key_of(recipe: Recipe) -> HashKey | None:
    """Returns the key with which the recipe's `hash` rules compute their values; None if the recipe
    has no `hash` rules. Even if the file changes, the process never makes records with two keys.
    Raises ConfigurationRefused.
    """
    return _key(recipe.hash_key_location) if recipe.hash_key_location else None


def _key(path: str) -> HashKey:
    return taken_key(path) or _left_key(path)


@cache
def _left_key(path: str) -> HashKey:
    """Returns the key of a recipe that an earlier process left and that no source names now."""
    return read_key(Path(path))


def _key_fingerprint(path: str) -> str:
    try:
        return _key(path).fingerprint
    except ConfigurationRefused:
        return "unreadable"  # Press refuses such a recipe with an error that says why


@cache
def _zone_rules(name: str) -> str:
    """Returns a text that identifies a time zone's rules. If the rules change, the text changes. A
    process makes the text only once, because Python loads a zone only once.
    """
    for folder in zoneinfo.TZPATH:
        try:
            return f"{crc_of((Path(folder) / name).read_bytes()):08x}"
        except OSError:
            continue
    return f"tzdata-{_version('tzdata')}"
