"""What a team's settings add to each record is bounded, however short its lines are."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from skidway.agent.batches.parsers import framer_of
from skidway.agent.batches.press import Press
from skidway.agent.batches.row_cost import COST_MAX, TOGETHER_COST, lines_max
from skidway.agent.parsers.settings import ParserSettings
from skidway.agent.parsing.added_fields import ADDED_BYTES_MAX
from skidway.agent.parsing.framing import READ_LINES
from skidway.agent.recipe import Recipe, Schema
from skidway.agent.settings import MultilineSettings
from skidway.agent.values.intents import Reading
from skidway.errors import ConfigurationRefused
from support.agent_press import press, reading, recipe, records, rejected

STRING = {"name": "line", "type": "string"}


def of_schema(*fields: dict[str, Any], **source: Any) -> Recipe:
    """Returns a recipe with the given fields beside that of the line."""
    text = json.dumps({"type": "record", "name": "r", "fields": [STRING, *fields]})
    return replace(recipe(**source), schema=Schema(1, text))


def nested(depth: int) -> dict[str, Any]:
    """Returns a field whose default has 100 to the power of `depth` numbers."""
    type_: Any = "long"
    default: Any = 0
    for level in range(depth):
        field = {"name": "f", "type": type_, "default": default}
        type_ = {
            "type": "array",
            "items": {"type": "record", "name": f"n{level}", "fields": [field]},
        }
        default = [{}] * 100
    return {"name": "more", "type": type_, "default": default}


LONG = {"name": "x", "type": "string", "default": "x" * 900_000}
WIDE = [{"name": f"n{n}", "type": "long", "default": 0} for n in range(1_000)]


@pytest.mark.parametrize(
    "made",
    [
        lambda: recipe(fields={"env": "x" * 16_384}),
        lambda: recipe(fields={f"e{n}": "ü" * 500 for n in range(100)}),
        lambda: of_schema(LONG),
        lambda: of_schema(*({**LONG, "name": f"x{n}", "default": "x" * 299} for n in range(70))),
        lambda: of_schema(nested(2)),
        lambda: of_schema(nested(9)),
        lambda: of_schema({"name": "m", "default": {"k": "x" * 70_000},
                           "type": ["null", {"type": "map", "values": "string"}]}),
    ],
    ids=["constant", "constants", "default", "defaults", "nested", "deep", "map"],
)  # fmt: skip
def test_what_each_record_has_beside_its_line_is_bounded(made: Any) -> None:
    """Constant fields and defaults that would make large records of empty lines are refused before
    a line is read, with the source's topic."""
    with pytest.raises(ConfigurationRefused, match="source of topic logs: constant fields and"):
        Press(made())


@pytest.mark.parametrize(
    "made",
    [
        recipe(), recipe(fields={"env": "prod"}), recipe(fields={"env": "x" * 15_000}),
        of_schema({**LONG, "default": "x" * 15_000}), of_schema(nested(1)), of_schema(*WIDE),
    ],
    ids=["line", "small", "constant", "default", "nested", "wide"],
)  # fmt: skip
def test_the_more_a_record_costs_the_fewer_lines_are_read_together(made: Recipe) -> None:
    """The records of one call of the press have a bounded cost; usual sources read READ_LINES lines
    at a time, and each source at least 1,000."""
    most, data = lines_max(made), b"a\n" * READ_LINES
    assert 1_000 <= most <= READ_LINES
    part = data[: framer_of(made).lines.first_lines_end(data)]
    assert part == b"a\n" * most
    pressed = press(made, reading(part))
    values = sum(len(each.value) for each in records(pressed))
    assert pressed.records == most
    assert values <= TOGETHER_COST + most * COST_MAX // 1_000
    assert framer_of(made).lines.weight(part) <= READ_LINES


def test_a_record_of_many_lines_fits_into_what_is_read_together() -> None:
    """A source whose records cost much, and may have so many lines that no reading has a whole
    record, is refused."""
    made = recipe(
        multiline=MultilineSettings(type="start", pattern="^a", max_lines=600),
        fields={"env": "x" * 15_000},
    )
    with pytest.raises(ConfigurationRefused, match=r"multiline.max.lines must be at most 5\d\d,"):
        framer_of(made)


def test_what_a_path_adds_is_bounded() -> None:
    """If fields of path.pattern and labels would be long, the lines go to the rejected topic, with
    the reason; those of other files do not."""
    made = recipe(path_pattern="(?P<a>(?P<b>.*))")
    long, other = reading(b"x\ny\n", 5), reading(b"z\n", 6)
    long = Reading(long.intent, long.data, "host", "/" + "x" * (ADDED_BYTES_MAX // 2))
    pressed = press(made, long, other)
    assert pressed.records == 1
    assert [(row["line"], row["detail"]) for row in rejected(pressed)] == [
        (b"x", "path.pattern and labels add too much to it"),
        (b"y", "path.pattern and labels add too much to it"),
    ]


def test_a_pattern_has_a_bounded_number_of_groups() -> None:
    """A pattern whose groups would copy each line more than a hundred times is refused."""
    pattern = "".join(f"(?P<g{n}>" for n in range(101)) + ".*" + ")" * 101
    with pytest.raises(ConfigurationRefused, match="has more than 100 named groups"):
        recipe(parser=ParserSettings(type="regex", pattern=pattern))
