"""Tests the broker's cache of encoded answers. Many clients send requests with the same bytes, and
all of them get the cached answer."""

from __future__ import annotations

from skidway.broker.kept_answers import (
    BYTES_MAX,
    ENTRIES_MAX,
    ENTRY_BYTES,
    REQUEST_BYTES_MAX,
    KeptAnswers,
)

WORDS = memoryview(b"words")


class World:
    """A cache of answers, and the two objects from which the broker makes these answers. The test
    replaces the objects."""

    def __init__(self) -> None:
        self.topics: object = {"a": 1}
        self.stopped: object = {}
        self.answers = KeptAnswers(lambda: (self.topics, self.stopped))

    def keep(self, version: int, request: bytes, answer: bytes) -> None:
        assert self.answers.get(version, memoryview(request)) is None
        self.answers.keep(version, memoryview(request), answer)


def test_the_same_words_get_the_same_answer() -> None:
    """A request with the same bytes and the same version as an earlier one gets the cached answer.
    A request with another version, or with other bytes, does not."""
    world = World()
    answer = b"answer"
    world.keep(5, b"words", answer)
    assert world.answers.get(5, WORDS) is answer
    assert world.answers.get(6, WORDS) is None
    assert world.answers.get(5, memoryview(b"word")) is None
    assert world.answers.get(5, WORDS, "SSL") is None


def test_a_picture_that_was_replaced_ends_all_answers() -> None:
    """The broker caches answers that it made from certain objects, such as the catalog of topics.
    When one of these objects is replaced, the broker drops all cached answers, even if the new
    object equals the old one."""
    for which in ("topics", "stopped"):
        world = World()
        world.keep(5, b"words", b"answer")
        setattr(world, which, dict(getattr(world, which)))
        assert world.answers.get(5, WORDS) is None
        assert (len(world.answers), world.answers.size_bytes) == (0, 0)


def test_an_answer_made_while_a_picture_was_replaced_is_not_kept() -> None:
    """The broker makes answers from certain objects, such as the catalog of topics. If such an
    object is replaced while an answer is being made, the answer is not cached, because it may come
    from the old object."""
    world = World()
    assert world.answers.get(5, WORDS) is None
    world.topics = {}
    world.answers.keep(5, WORDS, b"answer")
    assert world.answers.get(5, WORDS) is None


def test_the_number_of_answers_is_bounded() -> None:
    """The number of cached answers has a limit. The least recently requested answers are dropped
    first."""
    world = World()
    for number in range(ENTRIES_MAX):
        world.keep(5, b"%d" % number, b"answer")
    assert world.answers.get(5, memoryview(b"0")) is not None
    world.keep(5, b"one more", b"answer")
    assert len(world.answers) == ENTRIES_MAX
    assert world.answers.get(5, memoryview(b"0")) is not None
    assert world.answers.get(5, memoryview(b"1")) is None


def test_the_bytes_of_answers_are_bounded() -> None:
    """The cache's size in bytes has a limit. The size includes the answers, their requests, and the
    overhead of each entry."""
    world = World()
    large = bytes(BYTES_MAX // 4)
    for number in range(10):
        world.keep(5, b"%d" % number, large)
        assert world.answers.size_bytes <= BYTES_MAX
    assert len(world.answers) == 3
    assert world.answers.size_bytes == 3 * (len(large) + 1 + ENTRY_BYTES)
    assert world.answers.get(5, memoryview(b"9")) is large


def test_what_is_too_large_is_not_kept_and_costs_the_others_nothing() -> None:
    """An answer is not cached if it is as large as the cache, or if its request is very long (such
    a request hardly ever comes twice). Such an answer does not displace cached answers."""
    world = World()
    world.keep(5, b"words", b"answer")
    world.keep(5, b"all", bytes(BYTES_MAX))
    world.keep(5, bytes(REQUEST_BYTES_MAX + 1), b"answer")
    assert len(world.answers) == 1
    assert world.answers.get(5, WORDS) == b"answer"


def test_an_answer_kept_again_counts_once() -> None:
    """If an answer is cached again, it replaces the old answer, and counts only once towards the
    size."""
    world = World()
    world.keep(5, b"words", b"answer")
    world.answers.keep(5, WORDS, b"newer")
    assert world.answers.get(5, WORDS) == b"newer"
    assert world.answers.size_bytes == len(b"words" + b"newer") + ENTRY_BYTES
