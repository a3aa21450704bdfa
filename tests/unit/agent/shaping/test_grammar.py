"""Tests how the text of the setting `shape` is parsed. Every text becomes a list of rules, or is
refused with one clear sentence."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skidway.agent.shaping import rules as r
from skidway.agent.shaping.checking import check_patterns
from skidway.agent.shaping.grammar import parse
from skidway.agent.shaping.kinds import KINDS
from skidway.agent.shaping.rules import Condition, Rule, text_of
from skidway.agent.shaping.words import ShapeRefused

EXAMPLE = r"""
# what nobody needs
drop level = "DEBUG" and not path starts with "/pay" as debug
keep status >= 200 as sane   # a comment behind a rule
sample 1/100 where status < 400 as ok-requests
mask message for cards, ibans, ssns, keys, emails, tokens, ips
mask message matching "secret=\\S+"
hash user, client_ip
rename msg to message
remove password
"""

fields = st.builds(
    r.Field,
    st.one_of(
        st.sampled_from(sorted(r.KEYWORDS)),
        st.from_regex(r"[a-z_]\w{0,8}\Z", fullmatch=True).filter(str.isascii),
    ),
)
texts = st.text(st.characters(exclude_characters="\n", exclude_categories=["Cs"]), max_size=12)
numbers = st.one_of(
    st.integers(-(10**18), 10**18), st.floats(allow_nan=False, allow_infinity=False)
)
values = st.one_of(texts, st.booleans(), numbers)
leaves = st.one_of(
    st.builds(r.Comparison, fields, st.sampled_from(r.ORDERS), values),
    st.builds(r.Comparison, fields, st.sampled_from(r.SEARCHES), texts),
    st.builds(r.Membership, fields, st.lists(values, min_size=1, max_size=3).map(tuple)),
    st.builds(r.IsNull, fields),
)


def parts(inner: st.SearchStrategy[Condition]) -> st.SearchStrategy[tuple[Condition, ...]]:
    return st.lists(inner, min_size=2, max_size=3).map(tuple)


conditions: st.SearchStrategy[Condition] = st.recursive(
    leaves,
    lambda inner: st.one_of(
        st.builds(r.Not, inner), st.builds(r.AllOf, parts(inner)), st.builds(r.AnyOf, parts(inner))
    ),
    max_leaves=8,
)
names = texts.filter(bool)
masked = fields | st.just(r.Field(r.ALL_FIELDS))
several = st.lists(fields, min_size=1, max_size=3).map(tuple)
shares = st.tuples(st.integers(1, 50), st.integers(0, 50)).map(lambda x: (x[0], x[0] + x[1]))
rules: st.SearchStrategy[Rule] = st.one_of(
    st.builds(r.Drop, conditions, names),
    st.builds(r.Keep, conditions, names),
    st.builds(
        lambda share, where, name: r.Sample(*share, where, name),
        shares, st.none() | conditions, names,
    ),
    st.builds(
        r.Mask, masked, st.lists(st.sampled_from(list(KINDS)), min_size=1, unique=True).map(tuple)
    ),
    st.builds(r.MaskMatching, masked, texts),
    st.builds(r.Hash, several),
    st.builds(r.Rename, fields, fields),
    st.builds(r.Remove, several),
)  # fmt: skip


@given(st.lists(rules, max_size=4, unique_by=lambda x: getattr(x, "name", id(x))))
def test_the_text_of_rules_becomes_these_rules(given_: list[Rule]) -> None:
    """If the agent writes rules as text and parses this text, the result is equal to the original
    rules. So the text of rules that the agent has stored keeps its meaning."""
    assert parse(text_of(given_)) == tuple(given_)


@given(st.text(max_size=60) | st.text('"`\\#(),/<>=-1.ab \n', max_size=30))
def test_every_text_becomes_rules_or_a_sentence(text: str) -> None:
    """If a text cannot be parsed, it is refused with an error that names a line of the text. No
    text causes any other error."""
    refused = ""
    try:
        parse(text)
    except ShapeRefused as error:
        refused = str(error)
    assert not refused or refused.startswith("shape, line ")


def test_an_example_of_all_rules() -> None:
    """Parses a text with a rule of each kind. Each line of the text is one rule, except blank lines
    and comments."""
    found = parse(EXAMPLE)
    level, path = r.Field("level"), r.Field("path")
    debug = r.Comparison(level, "=", "DEBUG")
    paid = r.Comparison(path, "starts with", "/pay")
    assert found[0] == r.Drop(r.AllOf((debug, r.Not(paid))), "debug")
    assert found[1] == r.Keep(r.Comparison(r.Field("status"), ">=", 200), "sane")
    assert found[2] == r.Sample(1, 100, r.Comparison(r.Field("status"), "<", 400), "ok-requests")
    assert found[3] == r.Mask(r.Field("message"), tuple(KINDS))
    assert found[4] == r.MaskMatching(r.Field("message"), r"secret=\S+")
    assert found[5:] == (
        r.Hash((r.Field("user"), r.Field("client_ip"))),
        r.Rename(r.Field("msg"), r.Field("message")),
        r.Remove((r.Field("password"),)),
    )


def test_a_backslash_needs_no_second_one() -> None:
    """In a quoted text, a quotation mark needs a backslash before it. Before any other character,
    one backslash means the same as two. For example, `d` after one backslash and `d` after two
    backslashes give the same text."""
    one, two = r'drop a matches "\d\"\\d"', r'drop a matches "\\d\"\\d"'
    assert parse(two) == (r.Drop(r.Comparison(r.Field("a"), "matches", r'\d"\d'), two),)
    assert parse(one) == parse(two)


def test_a_rule_without_a_name_has_its_text() -> None:
    """If a rule has no name, its text is used as its name. So the name stays the same when rules
    are added above this rule."""
    (first,) = parse('drop  level="DEBUG"')
    _, second = parse('keep a is null\ndrop level = "DEBUG"  # x')
    assert isinstance(first, r.Drop)
    assert first == second
    assert first.name == 'drop level = "DEBUG"'
    (long,) = parse(f'drop a = "{"x" * 100}"')
    assert isinstance(long, r.Drop)
    assert len(long.name) == r.NAME_CHARACTERS_MAX
    (sample,) = parse("sample 1/10 where a is null")
    assert isinstance(sample, r.Sample)
    assert sample.name == "sample 1/10 where a is null"


@pytest.mark.parametrize(
    ("text", "line", "column", "words"),
    [
        ('\n  drop level == "x"', 2, 15, "is missing before '='"),
        ("drop lvl", 1, 9, "must follow the field lvl"),
        ("mask m for carts", 1, 12, "did you mean cards?"),
        ("drop a = 'x'", 1, 10, "double quotes"),
        ('drop a = "x', 1, 10, "has no end"),
        ("sample 2/1", 1, 8, "a share has at least 1"),
        ("sample 0/9", 1, 8, "to leave out all records, use drop"),
        ("drop a = null", 1, 10, "use `is null`"),
        ("remove", 1, 7, "a field's name is missing"),
        ("drop in = 1", 1, 6, "the field of that name is `in`"),
        ("drop (a=1", 1, 10, "a closing parenthesis is missing"),
        ("drop a=1 b", 1, 10, "the rule has ended before 'b'"),
        ("hash a as x", 1, 8, "only drop, keep and sample have names"),
        ("drop a = 1\ndrop a=1", 2, 1, "line 1 has a rule with the same name"),
        ("drop a = 1 as", 1, 14, "a name such as debug is missing"),
        ("drop a = 1e999", 1, 10, "no field has numbers"),
        ("drop a matches 5", 1, 16, "must follow matches"),
        ("filter a = 1", 1, 1, "a rule begins with drop"),
        ("drop " + "(" * 60 + "a=1", 1, 56, "conditions inside one another"),
        ("drop a is 1", 1, 11, "`null` is missing"),
        ("drop a ~ 1", 1, 8, "'~' has no meaning here"),
        ("rename a b", 1, 10, "`to` and the new name is missing"),
        (f'drop a = 1 as "{"n" * 61}"', 1, 15, "at most 60 characters"),
    ],
)
def test_a_mistake_is_shown_in_its_line(text: str, line: int, column: int, words: str) -> None:
    """The error about a mistake has three parts: a sentence with line and column, the text of this
    line, and a caret below the mistake."""
    with pytest.raises(ShapeRefused) as caught:
        parse(text)
    sentence, shown, caret = str(caught.value).split("\n")
    assert sentence.startswith(f"shape, line {line}, column {column}: ")
    assert words in sentence
    assert text.split("\n")[line - 1] in shown[4:] or len(text) > 60
    assert caret.index("^") - 4 == min(column - 1, caret.index("^") - 4)
    assert column > 51 or caret.index("^") == column + 3


def test_a_source_has_a_limited_number_of_rules() -> None:
    """A source with more than 200 rules is refused, because the agent keeps and sends separate
    counts for each rule."""
    with pytest.raises(ShapeRefused, match="at most 200 rules"):
        parse("\n".join(f"drop a = {number}" for number in range(201)))


def test_half_a_surrogate_pair_is_refused() -> None:
    """A rule with a lone surrogate (half of a surrogate pair), which YAML can contain, is refused
    with a sentence."""
    for rule in ('drop line = "\ud800"', 'sample 1/2 as "\udfff"'):
        with pytest.raises(ShapeRefused, match="half of a surrogate pair") as refused:
            parse(rule)
        str(refused.value).encode()


def test_a_mask_of_places_without_text_is_refused() -> None:
    """A pattern of `mask` that also matches an empty text, for example at a word boundary, is
    refused, because an empty text contains nothing to mask."""
    for pattern in (r"\b", r"\B", r"[0-9]+|\b"):
        shape = f'mask line matching "{pattern}"'
        with pytest.raises(ShapeRefused, match="empty text"):
            check_patterns(shape, parse(shape))
    fine = r'mask line matching "\bx+\b"'
    check_patterns(fine, parse(fine))
