"""Tests what the agent logs about rejected lines, and the recent share of rejected lines in each
topic."""

from skidway.agent.batches.rejected import RejectedLine
from skidway.agent.batches.rejections import HALF_WINDOW_S, TELL_EVERY_S, Rejections, Untold


def line(first: int, reason: str = "no-match", file: int = 5) -> RejectedLine:
    return RejectedLine(reason, "detail", b"payload", "host", f"/log/{file}", file, first, 10)


def counting(*topics: str, share_max: float = 0.5) -> Rejections:
    found = Rejections(share_max)
    found.take_topics(topics)
    return found


def test_the_log_is_told_at_once_and_then_once_a_minute() -> None:
    """The agent logs a summary of a topic's first rejected lines at once, and then at most one
    summary a minute. Each rejected line is counted in one summary. A summary says, for each reason,
    how many lines were rejected. It also says in how many files they are, and where the first of
    these lines is."""
    rejections = counting("logs")
    rejections.saw("logs", 3, [line(40), line(50, "schema")], 0.0)
    assert rejections.due(0.0) == [Untold("logs", {"no-match": 1, "schema": 1}, 1, "/log/5", 40)]
    rejections.saw("logs", 0, [line(60)], 1.0)
    rejections.saw("logs", 0, [line(70, file=6), line(80, file=5)], 2.0)
    assert rejections.due(TELL_EVERY_S - 1) == []
    (untold,) = rejections.due(TELL_EVERY_S)
    assert (untold.count, untold.files, untold.path, untold.position) == (3, 2, "/log/5", 60)
    rejections.saw("logs", 0, [line(90, file=7)], TELL_EVERY_S + 1)
    assert [x.files for x in rejections.due(2 * TELL_EVERY_S)] == [1]
    assert rejections.due(3 * TELL_EVERY_S) == []


def test_a_topic_that_rejects_more_than_its_share_is_named() -> None:
    """The agent reports a topic if more than the configured share of the topic's recent lines were
    rejected. It does not report a topic that had only a few recent lines."""
    rejections = counting("few", "good", "bad")
    rejections.saw("few", 0, [line(1)], 0.0)
    rejections.saw("good", 10, [line(n) for n in range(10)], 0.0)
    rejections.saw("bad", 9, [line(n) for n in range(10)], 0.0)
    assert rejections.too_many() == {
        "bad": "10 of the last 19 lines did not fit, as one in /log/5 at byte 0: no-match; "
        "skidway agent validate shows why"
    }
    tolerant = counting("bad", share_max=1.0)
    tolerant.saw("bad", 0, [line(n) for n in range(100)], 0.0)
    assert not tolerant.too_many()


def test_a_source_that_was_mended_is_well_when_its_recent_lines_are_good() -> None:
    """If a source that rejected most lines is repaired, the agent no longer reports it once good
    lines have replaced the rejected lines among its recent lines. If no new lines come, the agent
    continues to report the source, however much time passes."""
    rejections = counting("logs")
    rejections.saw("logs", 0, [line(n) for n in range(100)], 0.0)
    assert rejections.too_many()
    rejections.saw("logs", 1, [], HALF_WINDOW_S * 3)
    assert rejections.too_many(), "one good line among a hundred"
    rejections.saw("logs", 10, [], HALF_WINDOW_S * 4)
    assert not rejections.too_many()


def test_a_topic_without_a_source_is_no_longer_named() -> None:
    """If no source has a topic any more, the agent no longer reports the topic, even if it still
    rejects lines that it had read before the source was removed. If the topic comes back, its
    former lines do not count. The summaries in the agent's log still count every rejected line."""
    rejections = counting("logs", "others")
    for topic in ("logs", "others"):
        rejections.saw(topic, 0, [line(n) for n in range(10)], 0.0)
    rejections.take_topics(["others"])
    assert list(rejections.too_many()) == ["others"]
    rejections.saw("logs", 0, [line(n) for n in range(10)], 1.0)
    assert list(rejections.too_many()) == ["others"]
    assert {untold.topic: untold.count for untold in rejections.due(1.0)}["logs"] == 20
    rejections.take_topics(["logs", "others"])
    assert list(rejections.too_many()) == ["others"]
    rejections.saw("logs", 0, [line(n) for n in range(10)], 2.0)
    assert rejections.too_many()["logs"].startswith("10 of the last 10 lines")


def test_topics_without_a_source_are_forgotten() -> None:
    """The agent keeps nothing in memory about a topic that no source has any more, once each
    rejected line of the topic is in a summary. So sources that come and go need no memory."""
    rejections = counting("logs")
    for number in range(100):
        rejections.saw(f"gone {number}", 0, [line(1)], 0.0)
    assert len(rejections.due(0.0)) == 100
    rejections.saw("gone 0", 0, [line(2)], 1.0)
    assert [untold.topic for untold in rejections.due(TELL_EVERY_S)] == ["gone 0"]
    assert rejections.due(2 * TELL_EVERY_S) == []
    assert not rejections._topics
