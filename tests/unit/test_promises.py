"""The list of promises, the decorators `@promise` of the tests, and docs/promises.md agree with
each other."""

from __future__ import annotations

from pathlib import Path

import pytest

from support import promises_page
from support.promises import PROMISES, SECTIONS, promise

ROOT = Path(__file__).parents[2]


def test_the_page_is_what_the_marks_say() -> None:
    """docs/promises.md equals the output of `make docs-promises`, which reads the decorators
    `@promise`."""
    assert promises_page.page() == promises_page.PAGE.read_text()


def test_every_promise_has_a_test() -> None:
    """Each promise has at least one test that checks it."""
    assert not PROMISES.keys() - promises_page.kept().keys()


def test_every_mark_is_of_a_test_and_names_a_promise() -> None:
    """Each decorator `@promise` is on a test and names an existing promise, even in test suites
    that cannot run on this machine."""
    kept = promises_page.kept()
    assert not kept.keys() - PROMISES.keys()
    marked = {test for tests in kept.values() for test in tests}
    assert not [test for test in marked if not test.partition("::")[2].startswith("test_")]


def test_a_mark_that_names_no_promise_ends_the_run() -> None:
    """A decorator `@promise` with a misspelt name, or without a name, raises LookupError as soon as
    its module is imported."""
    with pytest.raises(LookupError, match="4 watermrak"):
        promise("4 watermark", "4 watermrak")
    with pytest.raises(LookupError):
        promise()


def test_a_promise_begins_with_a_section_of_the_rules() -> None:
    """Each promise's name begins with the key of a section in SECTIONS. The headings of the
    numbered sections in SECTIONS are those of docs/delivery.md."""
    assert {name.partition(" ")[0] for name in PROMISES} == SECTIONS.keys()
    rules = (ROOT / "docs/delivery.md").read_text().splitlines()
    numbered = [f"## {number}. {words}" for number, words in SECTIONS.items() if number.isdigit()]
    assert not set(numbered) - set(rules)
