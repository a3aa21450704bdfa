"""Retired places are clusters and outputs for whose counts the audit no longer waits. This module
does no I/O.

A setting or a command names such a place by a text, with the same words as the reports:

    hdfs hdfs://nn/logs             an output with all of its topics: nobody loads into it any more
    hdfs hdfs://nn/logs/dc1.nginx   the output of one topic
    mirror offline                  nothing is mirrored to this cluster any more
    broker dc3                      the counter of this cluster no longer runs
    cluster dc3                     all that was counted in this cluster, or loaded from it
    mirror                          the whole tier mirror

The audit still compares the counts of a retired place. If the place lacks records, or one of its
messages is missing, the report says so, but no verdict becomes worse, except in the two cases that
the module counting_places names.
"""

from __future__ import annotations

from collections.abc import Iterable

from skidway.audit.topic.decisions import Retirement
from skidway.audit.topic.messages import Tier
from skidway.errors import ConfigurationRefused

_TIERS = {"broker": Tier.BROKER, "mirror": Tier.MIRROR, "hdfs": Tier.HDFS}
_CLUSTER = "cluster"
_ROOT = "/"


def check(texts: Iterable[str], key: str = "retired.places") -> None:
    """Raises ConfigurationRefused, with the setting's key, for a text that names no place."""
    for text in texts:
        word, name = _parts(text)
        is_nameless = name == _ROOT or (word == _CLUSTER and not name)
        if word not in (*_TIERS, _CLUSTER) or is_nameless:
            raise ConfigurationRefused(
                f"{key}: {text!r} names no place; it is one of 'hdfs OUTPUT', 'mirror CLUSTER',"
                " 'broker CLUSTER', 'cluster CLUSTER', 'hdfs', 'mirror', 'broker'"
            )


class RetiredPlaces:
    """The places that several texts retire. A text that names no place retires nothing."""

    def __init__(self, texts: Iterable[str] = ()) -> None:
        parts = sorted({_parts(text) for text in texts})
        self._tiers = {_TIERS[word] for word, name in parts if word in _TIERS and not name}
        self._named = {(_TIERS[word], name) for word, name in parts if word in _TIERS and name}
        self._clusters = {name for word, name in parts if word == _CLUSTER and name}

    def holds(self, tier: Tier, name: str, cluster: str) -> bool:
        """Whether the place of this tier and name is retired. cluster: the cluster where the place
        counts, or from which it is loaded."""
        if self.holds_tier(tier) or cluster in self._clusters or (tier, name) in self._named:
            return True
        return tier is Tier.HDFS and (tier, name.rpartition("/")[0]) in self._named

    def holds_cluster(self, cluster: str) -> bool:
        """Whether all places of this cluster are retired."""
        return cluster in self._clusters

    def holds_tier(self, tier: Tier) -> bool:
        """Whether the whole tier is retired."""
        return tier in self._tiers


def retired_by(texts: Iterable[str], retirements: Iterable[Retirement]) -> RetiredPlaces:
    """Returns all retired places: those that the settings name, and those that people retired by a
    command.
    """
    return RetiredPlaces([*texts, *(each.place for each in retirements)])


def is_same(text: str, other: str) -> bool:
    """Whether two texts name the same place."""
    return _parts(text) == _parts(other)


def _parts(text: str) -> tuple[str, str]:
    """Divides a text like `hdfs /srv/lake/` into the tier or kind of place (`hdfs`) and the place's
    name without trailing slashes (`/srv/lake`). A name of only slashes becomes one slash.
    """
    word, _, name = text.strip().partition(" ")
    return word, name.strip().rstrip("/") or name.strip()[:1]
