"""Commands show one rejected line of a topic as an example. The example was rejected in the time
span that the caller gives, and is shown as text of limited length."""

from __future__ import annotations

from typing import Any

import pytest

from skidway.kafka.types import TopicPartition
from skidway.schemas.consuming.rejected_examples import (
    RECORDS_MAX,
    TEXT_BYTES_MAX,
    RejectedExample,
    rejected_example,
    shown_text,
)
from skidway.schemas.consuming.rejected_lines import NUL_BYTES, WITHHELD, Wanted
from support.rejected_topic import RejectedTopic

TOPIC = "dc1.logs.rejected"
TP = TopicPartition(TOPIC, 0)


@pytest.fixture
def topic(monkeypatch: pytest.MonkeyPatch) -> RejectedTopic:
    """Returns an empty topic of rejected lines."""
    return RejectedTopic(TOPIC, monkeypatch)


def example(topic: RejectedTopic, since: int, until: int, agent: int = 5) -> RejectedExample:
    wanted = Wanted(since=since, until=until)
    found = rejected_example(
        topic.client(), "dc1.logs", wanted, lambda x: bool(x["agent"] == agent)
    )
    assert found is not None
    return found


def test_an_example_is_a_line_of_its_time(topic: RejectedTopic) -> None:
    """If several lines were rejected in the time span, the example is the one whose record comes
    first in the log. The example also says where its record is in the topic, and where the line is
    in its log file."""
    topic.reject(100, b"before")
    topic.reject(200, b"one", b"two", detail="group 3")
    found = example(topic, 150, 250)
    assert (found.text, found.tp, found.offset, found.time_ms) == ("one", TP, 1, 200)
    assert found.where == (
        "dc1.logs.rejected-0 at offset 1 (web1:/var/log/a.log byte 100, no-match: group 3)"
    )


def test_a_detail_that_is_cut_says_so(topic: RejectedTopic) -> None:
    """The detail of an example's reason has a limited length, and ends with an ellipsis if it is
    longer."""
    topic.reject(200, b"one", detail="x" * 500)
    assert example(topic, 200, 201).detail == "x" * 120 + "\u2026"


def test_an_example_is_of_the_agent_that_is_meant(topic: RejectedTopic) -> None:
    """A caller that wants an example of a rejected line can say which agent's lines it prefers. A
    line of this agent is chosen even if records of other agents' lines come earlier in the log. If
    there is no line of this agent, the example is a line of another agent."""
    topic.reject(200, b"of another", agent=6)
    topic.reject(200, b"of this one")
    assert example(topic, 200, 201).text == "of this one"
    assert example(topic, 200, 201, agent=9).text == "of another"


def test_the_search_for_an_example_is_bounded(topic: RejectedTopic) -> None:
    """The search for an example of a rejected line reads at most RECORDS_MAX records of each
    partition."""
    topic.reject(200, *[b"x"] * RECORDS_MAX, agent=6)
    topic.reject(200, b"y")
    assert example(topic, 200, 201).text == "x"


def test_there_is_no_example_without_rejects(topic: RejectedTopic) -> None:
    """If no line was rejected in the time span, there is no example."""
    topic.reject(100, b"before")
    assert rejected_example(topic.client(), "dc1.logs", Wanted(since=150, until=250)) is None


@pytest.mark.parametrize(
    ("line", "others", "expected"),
    [
        (b"plain \\ text", {}, "plain \\ text"),
        (b"\x1b[31mred\x07", {}, "\\x1b[31mred\\x07"),
        (b"caf\xe9 caf\xc3\xa9", {}, "caf\\xe9 café"),
        ("a\u202eb\u2028c".encode(), {}, "a\\u202eb\\u2028c"),
        (b"x" * 400, {}, "x" * TEXT_BYTES_MAX + "…"),
        (b"the head", {"length": 5_000}, "the head…"),
        (WITHHELD, {"length": 5_000}, "[withheld]"),
        (b"", {"length": 5_000, "reason": NUL_BYTES}, "(5,000 NUL bytes)"),
    ],
)
def test_the_text_of_an_example_is_printable_and_short(
    topic: RejectedTopic, line: bytes, others: dict[str, Any], expected: str
) -> None:
    """The text of an example has at most TEXT_BYTES_MAX bytes of the rejected line. It has escapes
    for everything that would change a terminal or the order of the text, and an ellipsis if more of
    the line follows."""
    topic.reject(200, line, **others)
    assert example(topic, 200, 201).text == expected


def test_a_character_is_not_cut() -> None:
    """If the text of an example is cut, it never ends with a part of a character."""
    for size in range(1, 12):
        shown = shown_text("aé€😀z".encode(), size)
        assert "aé€😀z".startswith(shown.removesuffix("…"))
    assert shown_text("aé€😀z".encode(), 11) == "aé€😀z"
