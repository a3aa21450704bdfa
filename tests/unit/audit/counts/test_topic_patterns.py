"""Names and patterns of topics."""

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
        (["_skidway_audit"], ["_skidway_audit"]),
    ],
)
def test_patterns_match_whole_names_and_never_our_own_topics(
    texts: list[str], expected: list[str]
) -> None:
    """Patterns match whole names; a topic's name also selects its topic of rejected lines; topics
    that begin with _ match only if they are named exactly."""
    assert topic_patterns.choose(texts, EXISTING) == expected


def test_what_is_no_regular_expression_is_refused_with_a_sentence() -> None:
    """A text that is no regular expression is refused before the program starts."""
    with pytest.raises(ConfigurationRefused, match="neither a topic's name"):
        topic_patterns.check(["dc1.(*"])
