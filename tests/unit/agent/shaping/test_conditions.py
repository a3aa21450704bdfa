"""The agent evaluates a condition for whole columns. The result must be the same as that of a slow
function that evaluates one row after the other."""

from __future__ import annotations

import operator
import re
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skidway.agent.shaping import rules as r
from skidway.agent.shaping.checking import check, check_patterns
from skidway.agent.shaping.conditions import holds
from skidway.agent.shaping.grammar import parse
from skidway.agent.shaping.rules import Condition, text_of
from skidway.agent.shaping.words import ShapeRefused

SCHEMA = pa.schema(
    [("text", pa.string()), ("whole", pa.int32()), ("number", pa.float64()), ("yes", pa.bool_()),
     ("at", pa.timestamp("ms", "UTC"))]
)  # fmt: skip

some_text = st.text("aäB. ", max_size=4)
row_text = st.text("aäB\n. ", max_size=4)
some_whole = st.integers(-3, 3)
some_number = st.sampled_from([-1.5, -0.0, 0.0, 0.5, 2.0, 1e300])
VALUES: dict[str, st.SearchStrategy[Any]] = {
    "text": some_text, "whole": some_whole, "number": some_number | some_whole,
    "yes": st.booleans(),
}  # fmt: skip
ORDERS = {
    "=": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt,
    ">=": operator.ge,
}  # fmt: skip


def comparisons(name: str) -> st.SearchStrategy[Condition]:
    orders = ["=", "!="] if name == "yes" else list(r.ORDERS)
    field = st.just(r.Field(name))
    return st.one_of(
        st.builds(r.Comparison, field, st.sampled_from(orders), VALUES[name]),
        st.builds(r.Membership, field, st.lists(VALUES[name], min_size=1, max_size=3).map(tuple)),
    )


searches = st.builds(
    r.Comparison, st.just(r.Field("text")),
    st.sampled_from([r.CONTAINS, r.STARTS_WITH, r.ENDS_WITH]), some_text,
)  # fmt: skip
matches = st.builds(
    r.Comparison, st.just(r.Field("text")), st.just(r.MATCHES),
    st.sampled_from(["a", "^a", "B$", "a.", "(?i)b", "^$", r"\n"]),
)  # fmt: skip
nulls = st.sampled_from(SCHEMA.names).map(lambda name: r.IsNull(r.Field(name)))
parts = st.one_of(searches, matches, nulls, *map(comparisons, VALUES))
conditions: st.SearchStrategy[Condition] = st.recursive(
    parts,
    lambda inner: st.one_of(
        st.builds(r.Not, inner),
        st.builds(r.AllOf, st.lists(inner, min_size=2, max_size=3).map(tuple)),
        st.builds(r.AnyOf, st.lists(inner, min_size=2, max_size=3).map(tuple)),
    ),
    max_leaves=6,
)
rows = st.lists(
    st.fixed_dictionaries(
        {
            "text": st.none() | row_text, "whole": st.none() | some_whole,
            "number": st.none() | some_number, "yes": st.none() | st.booleans(),
            "at": st.none() | st.integers(0, 5),
        }
    ),
    max_size=6,
)  # fmt: skip


def is_true(condition: Condition, row: dict[str, Any]) -> bool:
    """Evaluates a condition for one row, by the rules of docs/agent.md."""
    match condition:
        case r.Comparison(field, how, value):
            found = row[field.name]
            if found is None:
                return False
            if how in ORDERS:
                return bool(ORDERS[how](_bytes(found), _bytes(value)))
            if how == r.MATCHES:
                pattern = str(value).replace("$", r"\Z")
                return re.search(pattern, found) is not None
            return bool(
                {"contains": operator.contains, "starts with": str.startswith,
                 "ends with": str.endswith}[how](found, value)
            )  # fmt: skip
        case r.Membership(field, values):
            return row[field.name] is not None and row[field.name] in values
        case r.IsNull(field):
            return row[field.name] is None
        case r.Not(part):
            return not is_true(part, row)
        case r.AllOf(parts):
            return all(is_true(part, row) for part in parts)
        case r.AnyOf(parts):
            return any(is_true(part, row) for part in parts)


def _bytes(value: Any) -> Any:
    return value.encode() if isinstance(value, str) else value


@given(conditions, rows)
def test_columns_and_single_rows_agree(condition: Condition, given_: list[dict[str, Any]]) -> None:
    """A condition that is evaluated on columns is true for the same rows as a condition that is
    evaluated row by row. A comparison with null is false, and `not` of this comparison is true."""
    batch = pa.RecordBatch.from_pylist(given_, SCHEMA)
    rule = r.Drop(condition, "x")
    check(text_of([rule]), parse(text_of([rule])), SCHEMA)
    assert holds(condition, batch).to_pylist() == [is_true(condition, row) for row in given_]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('drop txt = "a"', "there is no field txt here; did you mean text? the fields are text, "),
        ("drop text = 5", "text is a text, and 5 is none"),
        ('drop whole >= "5"', 'whole is a whole number, and "5" is none'),
        ("drop whole > 1.5", "whole is a whole number, and 1.5 is none"),
        ("drop whole = 9223372036854775808", "is none"),
        ("drop number = true", "number is a number, and true is none"),
        ("drop yes < true", "true is neither more nor less than false"),
        ('drop at = "2024"', "of such a field only `is null` can be asked"),
        ('drop whole contains "5"', "`contains` searches a text"),
        ('drop text matches "("', "missing )"),
        ("mask whole for cards", "`mask` changes texts only"),
        ("hash whole", "`hash` changes texts only"),
        ("rename text to whole", "there is a field whole already"),
        ("remove text\ndrop text is null", "there is no field text here"),
        ("rename text to t\nmask text for cards", "there is no field text here"),
        ('mask text matching "x*"', "also finds an empty text"),
        ("remove text, whole, number, yes, at", "leave no field"),
    ],
)
def test_what_does_not_fit_the_fields_is_refused(text: str, words: str) -> None:
    """If a rule does not fit the fields of the records, it is refused before the first record is
    read."""
    with pytest.raises(ShapeRefused) as caught:
        _refuse(text)
    assert words in str(caught.value)


def _refuse(text: str) -> None:
    check_patterns(text, parse(text))
    check(text, parse(text), SCHEMA)


def test_rules_see_the_fields_as_the_rules_above_leave_them() -> None:
    """A rule sees the fields as the rules above it leave them: a renamed field has only its new
    name, and a removed field no longer exists."""
    text = 'rename text to line\ndrop line = "x"\nremove whole\nrename number to whole'
    after = check(text, parse(text), SCHEMA)
    assert after.names == ["line", "whole", "yes", "at"]
    assert after.field("whole").type == pa.float64()
