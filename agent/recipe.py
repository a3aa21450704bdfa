"""A file's bytes and its recipe together decide which records the file becomes.

A recipe consists of settings, schemas, topics and versions of code. An intent names its recipe by a
fingerprint (a hash); the state keeps the recipe as long as an intent needs it. So if the agent has
to send yesterday's intent again today, it uses yesterday's settings, yesterday's size limit, and
the partitions that the topic had yesterday.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, fields, replace
from typing import Any, Final

from skidway.agent.parsing.joins import Rule
from skidway.dataclass import dataclass
from skidway.errors import ConfigurationRefused

STRIP: Final = "strip"
KEEP: Final = "keep"
"""Values of a recipe's `colours`: whether codes for terminals are taken out of lines."""


@dataclass(frozen=True, slots=True)
class Schema:
    """A registered schema and its id."""

    id: int
    text: str


@dataclass(frozen=True, slots=True)
class TopicSnapshot:
    """A topic as it was when the recipe was made. limit_bytes: its max.message.bytes."""

    name: str
    partitions: int
    limit_bytes: int


@dataclass(frozen=True, slots=True)
class Recipe:
    """Together with a file's bytes, a recipe decides which records the agent makes from them.

    shape: the text of the rules that shape records. parsed_schema: the schema that records have
    before the rules are applied; empty if the rules do not change the fields. labels: the fields
    that take labels of a pod, each with the name of the label. colours: STRIP or KEEP.

    A field with a default is newer than recipes that a state may contain. If it has its default, it
    is left out of the JSON, so that such a recipe still has the same fingerprint.
    """

    program: str
    data: TopicSnapshot
    rejected: TopicSnapshot
    schema: Schema
    rejected_schema: Schema
    parser: str
    pattern: str | None
    time_fields: tuple[str, ...]
    time_format: str | None
    timezone: str
    key: str | None
    partitioning: str
    line_bytes: int
    batch_bytes: int
    encoding: str
    on_error: str
    multiline: Rule | None
    container: str | None
    path_patterns: tuple[str, ...]
    fields: tuple[tuple[str, str], ...]
    time_on_error: str
    is_replay: bool
    columns: tuple[str, ...]
    delimiter: str
    header: str | None
    json_field: str | None
    shape: str
    parsed_schema: str
    hash_key_location: str
    labels: tuple[tuple[str, str], ...]
    colours: str = KEEP

    def to_json(self) -> str:
        """Returns canonical JSON, so that equal recipes give equal text."""
        defaults = {each.name: each.default for each in fields(self)}
        content = {name: value for name, value in asdict(self).items() if value != defaults[name]}
        return json.dumps(content, sort_keys=True, separators=(",", ":"))

    @property
    def fingerprint(self) -> bytes:
        """SHA-256 of the canonical text."""
        return hashlib.sha256(self.to_json().encode()).digest()

    @property
    def topics(self) -> tuple[str, str]:
        """The topics to which lines of a file with this recipe can go."""
        return self.data.name, self.rejected.name


def from_json(text: str) -> Recipe:
    """Returns the recipe from which `Recipe.to_json` made this text."""
    content: dict[str, Any] = json.loads(text)
    for name in ("data", "rejected"):
        content[name] = TopicSnapshot(**content[name])
    for name in ("schema", "rejected_schema"):
        content[name] = Schema(**content[name])
    for name in ("time_fields", "path_patterns", "columns"):
        content[name] = tuple(content[name])
    for name in ("fields", "labels"):
        content[name] = tuple((field, text) for field, text in content[name])
    if content["multiline"] is not None:
        content["multiline"] = Rule(**content["multiline"])
    return Recipe(**content)


def with_refusal(recipe: Recipe) -> Recipe:
    """Returns the recipe with the flag ` refused` at the end of its field `program`. If an intent
    has such a recipe, the agent does not simply send the intent again after a crash, but first asks
    the brokers which records arrived (see `has_refusal`).
    """
    return replace(recipe, program=f"{recipe.program}{_REFUSED}")


def has_refusal(recipe: Recipe) -> bool:
    """Whether `with_refusal` has flagged the recipe: a broker refused a record of the recipe's
    intents, and may have accepted records that come after the refused record.
    """
    return recipe.program.endswith(_REFUSED)


_REFUSED = " refused"


def of_source(recipe: Recipe, error: ConfigurationRefused) -> ConfigurationRefused:
    """Returns the error, but with the name of the recipe's data topic before its text."""
    which = f"source of topic {recipe.data.name}: "
    return ConfigurationRefused(which + str(error).removeprefix(which))
