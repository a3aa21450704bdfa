"""Tests which topics of a cluster are selected by names and patterns in settings."""

from __future__ import annotations

import pytest

from skidway.audit.counts import topic_patterns
from skidway.errors import ConfigurationRefused

EXISTING = ["_skidway_audit", "dc1._skidway_audit", "dc1.logs", "dc1.logs.rejected", "logs", "mail"]


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        ([".*"], ["dc1.logs", "dc1.logs.rejected", "logs", "mail"]),
        (["dc1.*"], ["dc1.logs", "dc1.logs.rejected"]),
        (["dc1.logs"], ["dc1.logs", "dc1.logs.rejected"]),
        (["logs"], ["logs"]),
        (["log"], []),
        (["lo[g]"], []),
        (["_skidway_audit"], ["_skidway_audit"]),
    ],
)
def test_patterns_match_whole_names_and_never_our_own_topics(
    texts: list[str], expected: list[str]
) -> None:
    """A name in the settings selects only the topic with exactly this name, and its topic of
    rejected lines. A pattern selects only topics whose whole name it matches. A topic whose name
    begins with _, or with the cluster prefix of a mirror and then _, is selected only by its exact
    name, and never by a pattern."""
    assert topic_patterns.choose(texts, EXISTING) == expected


def test_what_is_no_regular_expression_is_refused_with_a_sentence() -> None:
    """If a setting for topics has a text that is neither a topic's name nor a regular expression,
    the setting is refused with one sentence that says so."""
    with pytest.raises(ConfigurationRefused, match="neither a topic's name"):
        topic_patterns.check(["dc1.(*"])
