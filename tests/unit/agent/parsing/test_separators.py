from __future__ import annotations

import pytest

from skidway.agent.parsing.separators import separators


@pytest.mark.parametrize(
    ("pattern", "signs"),
    [
        (r"(?P<a>[^;]*);(?P<b>\d+)", ";"),
        (r"\[(?P<a>\S+)\] (?:x,)?(?P<b>.*)", " ,[]"),
        (r"(?P<a>\w+)[:|](?P<b>(?:x-)?\w+)", ":|"),
        (r"(?P<a>.*)", ""),
    ],
)
def test_the_signs_outside_of_groups_are_found(pattern: str, signs: str) -> None:
    """The signs that a pattern has between its named groups divide the fields of a line."""
    assert separators(pattern) == signs
