"""The agent decodes lines with the scanner of Python's JSON decoder. The values, and the reasons
why lines are not JSON, must be the same as those of the decoder itself."""

from __future__ import annotations

import json
import math
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from skidway.agent.parsing.json_lines import DEPTH_MAX, JsonParser
from skidway.agent.parsing.parser import EXTRA, NOT_JSON

SCHEMA = pa.schema([pa.field("a", pa.string(), nullable=True)])
MEMBERS = pa.schema([pa.field(EXTRA, pa.map_(pa.string(), pa.string()))])
LINES = st.lists(
    st.one_of(
        st.none(),
        st.builds(json.dumps, st.dictionaries(st.sampled_from("ab"), st.integers() | st.none())),
        st.builds(
            "".join,
            st.lists(
                st.sampled_from(
                    ['{"a":', '"x"', "}", "{}", " ", "\t", "1e400", "1e5", "NaN", "[", "]", "null"]
                ),
                max_size=5,
            ),
        ),
    ),
    max_size=6,
)


def finite(text: str) -> float:
    if math.isinf(float(text)):
        raise ValueError(f"{text} is too large a number")
    return float(text)


def refused(name: str) -> Any:
    raise ValueError(f"{name} is no JSON number")


def verdict(line: str) -> str | dict[str, str]:
    """Returns the reason why a line is not a JSON object, or the members of the object. A member
    that is no string is written as JSON."""
    try:
        value = json.loads(line, parse_constant=refused, parse_float=finite)
    except ValueError as error:
        return f"the line is not JSON: {error}".replace(": line 1 column ", ": column ")[:200]
    if type(value) is not dict:
        return "the line is JSON, but no object"
    return {name: x if type(x) is str else json.dumps(x) for name, x in value.items()}


@given(LINES)
@example([' {"a": "x"} ', '{"a": "x"} x', '{"a": 1e400}', '{"a": NaN}', ""])
@example(['{"a": 1e5, "b": [0.5, null]}', '{"a": 1, "a": "\\u00e4"}'])
def test_lines_are_decoded_as_by_the_decoder(lines: list[str | None]) -> None:
    """The parser decodes the same lines as Python's decoder, and returns the same values. It
    refuses the same lines, with the same reasons."""
    texts = pa.array([line or "" for line in lines], pa.string())
    parsed = JsonParser(MEMBERS, {}).parse(texts.view(pa.binary()), 0)
    assert {each.reason for each in parsed.rejects} <= {NOT_JSON}
    found: dict[int, object] = {each.row: each.detail for each in parsed.rejects}
    values = parsed.batch.column(EXTRA).to_pylist()
    found.update(zip(parsed.rows.tolist(), map(dict, values), strict=True))
    assert found == {row: verdict(text) for row, text in enumerate(texts.to_pylist())}


@pytest.mark.parametrize(("depth", "is_good"), [(DEPTH_MAX, True), (DEPTH_MAX + 1, False)])
def test_a_line_may_be_nested_to_a_depth(depth: int, is_good: bool) -> None:
    """A line that is nested deeper than DEPTH_MAX is refused. A line with many brackets that are
    not nested deeply is accepted."""
    deep = '{"b":' * depth + "1" + "}" * depth
    wide = '{"b":[' + ",".join(["[]"] * (2 * DEPTH_MAX)) + "]}"
    parsed = JsonParser(SCHEMA, {}).parse(pa.array([deep.encode(), wide.encode()]), 0)
    assert parsed.rows.tolist() == ([0, 1] if is_good else [1])
