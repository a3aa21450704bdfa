"""Computes changes of a topic's settings. The functions are pure: their caller reads the settings
from ZooKeeper, and writes the changed settings to ZooKeeper. If the stored settings have changed
between these two steps, the caller begins again.

The settings that a mirror writes (`mirror.*`) say where the topic's bytes come from. So nobody may
change these settings by hand. A request that replaces all settings of a topic leaves the mirror's
settings unchanged.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from skidway.broker.topics.config_table import MIRROR, TOPIC_CONFIGS, elements
from skidway.broker.topics.configs import refusal
from skidway.errors import SkidwayError
from skidway.kafka.protocol.describe_configs import ConfigType
from skidway.kafka.protocol.incremental_alter_configs import ConfigOperation


class ConfigRefused(SkidwayError):
    """Raised if a topic cannot have the wanted settings."""


class ChangeRefused(SkidwayError):
    """Raised for a change that is wrong for any topic, for example a change without a value, or
    with an unknown operation.
    """


class Change(NamedTuple):
    """The change of one setting."""

    name: str
    operation: int
    value: str | None


def replaced(known: Mapping[str, str], wanted: Sequence[tuple[str, str | None]]) -> dict[str, str]:
    """Returns a topic's new settings: the settings `wanted` replace the settings `known`, except
    those that a mirror wrote. Raises ConfigRefused, ChangeRefused.
    """
    kept = {name: value for name, value in known.items() if name.startswith(MIRROR)}
    changes = [
        Change(name, ConfigOperation.SET, value)
        for name, value in wanted
        # A client may read all settings of a topic, and send all of them back, including those that
        # a mirror wrote and those that are empty because nobody has set them. These settings are
        # left out if they are unchanged, so that the request is not refused.
        if not _was_shown(kept, name, value)
    ]
    return altered(kept, changes, {})


def altered(
    known: Mapping[str, str], changes: Sequence[Change], inherited: Mapping[str, str]
) -> dict[str, str]:
    """Returns a topic's settings after the changes. `known` has the settings before the changes,
    and `inherited` has the values of the settings that the topic does not set.

    Raises ConfigRefused for values that a topic cannot have, ChangeRefused for changes that are
    wrong for any topic.
    """
    names = [change.name for change in changes]
    if len(set(names)) != len(names):
        raise ChangeRefused("a setting is named twice")
    found = dict(known)
    for change in changes:
        if change.name not in TOPIC_CONFIGS:
            raise ConfigRefused(f"Unknown topic config name: {change.name}")
        if change.name.startswith(MIRROR):
            raise ConfigRefused(f"only the mirror may write {change.name}")
        _apply(found, change, inherited)
    wrong = refusal({name: found[name] for name in names if name in found})
    if wrong is not None:
        raise ConfigRefused(wrong)
    return found


def _was_shown(kept: Mapping[str, str], name: str, value: str | None) -> bool:
    if name in kept:
        return kept[name] == value
    known = TOPIC_CONFIGS.get(name)
    return value == "" and known is not None and known.check(value) is None


def _apply(found: dict[str, str], change: Change, inherited: Mapping[str, str]) -> None:
    name, operation, value = change
    if operation == ConfigOperation.DELETE:
        found.pop(name, None)
        return
    if value is None:
        raise ChangeRefused(f"{name} has no value")
    if operation == ConfigOperation.SET:
        found[name] = value
        return
    if operation not in (ConfigOperation.APPEND, ConfigOperation.SUBTRACT):
        raise ChangeRefused(f"{name}: there is no operation {operation}")
    if TOPIC_CONFIGS[name].type is not ConfigType.LIST:
        raise ConfigRefused(f"{name} is no list: it can be set, not appended to or subtracted from")
    parts = list(elements(found.get(name, inherited.get(name, ""))))
    given = elements(value)
    if operation == ConfigOperation.APPEND:
        parts += [part for part in dict.fromkeys(given) if part not in parts]
    else:
        parts = [part for part in parts if part not in given]
    found[name] = ",".join(parts)
