"""Tests which topics a mirror copies, and that two clusters never mirror a topic back and forth."""

from __future__ import annotations

import re

import pytest

from skidway.broker.mirror import selection
from skidway.broker.settings import BrokerSettings, MirrorSettings
from skidway.kafka import gaps
from skidway.kafka.gaps import Gap

ALL = [re.compile(".*")]


def test_patterns_match_whole_names() -> None:
    """A pattern in the mirror's settings has to match the whole name of a topic, not a part of
    it."""
    assert selection.wanted(["logs", "logs2"], [re.compile("logs")], "off") == ["logs"]


def test_internal_topics_never_match_but_the_audit_topic_always() -> None:
    """`_skidway_audit` is mirrored whatever the patterns say. Other internal topics are never
    mirrored."""
    names = ["__consumer_offsets", "_skidway_audit", "dc2._skidway_audit", "a"]
    assert selection.wanted(names, ALL, "off") == ["_skidway_audit", "a"]
    assert selection.wanted(names, [], "off") == ["_skidway_audit"]


def test_what_came_from_here_is_not_copied_back() -> None:
    """A topic that was mirrored from this cluster is not copied back. Otherwise two clusters that
    mirror each other would create more and more topics."""
    assert selection.wanted(["off.logs", "logs"], ALL, "off") == ["logs"]
    assert selection.is_mirror({"mirror.source.cluster": "dc2"})
    assert not selection.is_mirror({"mirror.source.cluster": ""})


def test_a_topic_that_is_left_out_for_its_name_is_named() -> None:
    """A topic is not mirrored if its name is reserved for a mirror of a topic of this cluster, or
    for a mirror of an internal topic. If a pattern matches such a name, `mistakable` returns the
    name with the reason. It returns neither internal topics nor topics that no pattern matches."""
    names = ["off.loop", "app._tmp", "logs", "off2.loop", "off", "__consumer_offsets"]
    found = selection.mistakable(names, ALL, "off")
    assert found == {
        "off.loop": "names that begin with off. are for mirrors of topics of off",
        "app._tmp": "names that begin with app._ are for mirrors of internal topics",
    }
    assert not found.keys() & set(selection.wanted(names, ALL, "off"))
    assert selection.mistakable(names, [re.compile("logs")], "off") == {}


def test_a_name_that_would_be_too_long_is_refused_in_words() -> None:
    """A topic of the source is not mirrored, and the reason is given, if the name of its mirror
    (cluster, dot, topic) would exceed Kafka's limit of 249 characters."""
    assert selection.name_refusal("dc1", "x" * 245) is None
    assert "250" in str(selection.name_refusal("dc1", "x" * 246))


def test_names_behind_a_sources_name_are_the_mirrors() -> None:
    """Names of topics that begin with the name of a source cluster and a dot are reserved for the
    mirror of that source cluster."""
    source = MirrorSettings(cluster="dc1", bootstrap_servers="127.0.0.1:1")
    settings = BrokerSettings(mirror_sources=[source])
    assert settings.mirrors_as("dc1.logs") == "dc1"
    assert settings.mirrors_as("dc1") is None
    assert settings.mirrors_as("dc10.logs") is None
    assert BrokerSettings().mirrors_as("dc1.logs") is None


def test_gaps_come_back_as_they_were_written() -> None:
    """Gaps (ranges of offsets that a mirror lacks) are read from the topic's config exactly as they
    were written. An empty config value means that there are no gaps."""
    known = [Gap(0, 120, 300, "expired"), Gap(2, 0, 17, "missing-in-source")]
    assert gaps.decode(gaps.encode(known)) == known
    assert gaps.decode("") == []
    assert gaps.refusal(gaps.encode(known)) is None


@pytest.mark.parametrize("text", ["x", "0:1", "0:a-b:why", "0-1-2"])
def test_what_is_no_gap_is_refused(text: str) -> None:
    """If the config value that should contain gaps cannot be read as gaps, reading it raises an
    error with a message."""
    assert gaps.refusal(text)


def test_a_gap_is_named_once() -> None:
    """If a gap is already in the topic's config, and the mirror finds it again, perhaps larger,
    then the config still contains the gap only once."""
    gap, grown, other = Gap(0, 1, 2, "expired"), Gap(0, 1, 5, "expired"), Gap(1, 1, 2, "expired")
    assert gaps.added([gap], gap) == [gap]
    assert gaps.added([gap, other], grown) == [other, grown]
    assert gaps.added([grown], gap) == [grown]


def test_offsets_are_named_if_gaps_cover_all_of_them() -> None:
    """A range of a partition's offsets counts as known to be missing if the gaps in the config
    together cover the whole range."""
    named = [Gap(0, 5, 9, "b"), Gap(0, 2, 5, "a"), Gap(1, 0, 99, "other"), Gap(0, 12, 14, "c")]
    assert gaps.covers(named, 0, 2, 9)
    assert gaps.covers(named, 0, 3, 4)
    assert gaps.covers(named, 0, 7, 7)
    assert not gaps.covers(named, 0, 1, 9)
    assert not gaps.covers(named, 0, 5, 10)
    assert not gaps.covers(named, 0, 9, 14)
    assert not gaps.covers([], 0, 1, 2)
