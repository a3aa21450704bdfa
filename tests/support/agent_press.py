"""Makes recipes, readings and batches for tests of the agent's delivery.

A recipe decides which records are made from a file's bytes. An intent is a durable row of the
agent's state: it says that the agent will send the records of a range of bytes of a file. A
`Reading` contains an intent and these bytes. A `Press` makes record batches from readings according
to one recipe.
"""

from __future__ import annotations

from typing import Any

from skidway.agent.batches.press import Press, Pressed
from skidway.agent.batches.source_recipes import derived_schema, recipe_of
from skidway.agent.parsers.settings import ParserSettings
from skidway.agent.recipe import Recipe, Schema, TopicSnapshot
from skidway.agent.settings import SourceSettings
from skidway.agent.values.intents import Intent, Reading, crc_of
from skidway.kafka.source import Source
from skidway.schemas.codec import Codec
from skidway.schemas.single_object import schema_text
from support.agent_world import Brokers, Record, pa_binary, records_of

AGENT = 77
READ_MS = 1_700_000_000_000
DATA = Source("main", "c", "logs", "t1")
REJECTED = Source("main", "c", "logs.rejected", "t2")


def recipe(
    *, partitions: int = 1, limit: int = 1_048_588, batch: int = 900_000, **source: Any
) -> Recipe:
    configured = SourceSettings(topic="logs", paths=["/log/*"], **source)
    return recipe_of(
        configured,
        TopicSnapshot("logs", partitions, limit),
        TopicSnapshot("logs.rejected", partitions, limit),
        Schema(1, derived_schema(configured)),
        Schema(2, schema_text("Rejected")),
        batch,
    )


def regex(pattern: str, **source: Any) -> dict[str, Any]:
    return {"parser": ParserSettings(type="regex", pattern=pattern), **source}


def reading(data: bytes, file: int = 5, first: int = 100) -> Reading:
    intent = Intent(1, file, first, first + len(data), crc_of(data), READ_MS, b"")
    return Reading(intent, data, "host", "/log/a")


def press(made: Recipe, *readings: Reading) -> Pressed:
    return Press(made).press(AGENT, readings, (DATA, REJECTED), 60_000)


def records(pressed: Pressed, topic: str = "logs") -> list[Record]:
    return [r for b in pressed.batches if b.tp.topic == topic for r in records_of(b.encoded)]


def rejected_rows(brokers: Brokers) -> list[dict[str, Any]]:
    """Returns the decoded records of the topic logs.rejected, which the agent sends for rejected
    lines."""
    values = [record.value[5:] for record in brokers.records("logs.rejected")]
    return Codec(schema_text("Rejected")).decode(pa_binary(values)).batch.to_pylist()


def rejected(pressed: Pressed) -> list[dict[str, Any]]:
    values = [record.value[5:] for record in records(pressed, "logs.rejected")]
    return Codec(schema_text("Rejected")).decode(pa_binary(values)).batch.to_pylist()
