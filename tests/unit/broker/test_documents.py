"""docs/broker.md lists all settings with their defaults, and all API versions."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from skidway.broker.api import registry
from skidway.broker.api.describe import describe_broker, inherited
from skidway.broker.settings import BrokerSettings
from skidway.broker.topics.config_table import TOPIC_CONFIGS
from skidway.kafka import gaps
from skidway.kafka.protocol.apis import PRODUCE_SERVED_SINCE, SASL_HANDSHAKE_SERVED_SINCE, ApiKey

PAGE = (Path(__file__).parents[3] / "docs/broker.md").read_text()


def rows(table: str) -> list[list[str]]:
    """Returns the cells of one table of docs/broker.md, without the table's head. The table is
    between two markers with the name `table`."""
    body = PAGE.partition(f"<!-- {table} -->\n")[2].partition(f"<!-- /{table} -->")[0]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in body.splitlines()[2:]]


def test_every_setting_of_the_broker_is_there() -> None:
    """docs/broker.md lists all broker settings, each with its default and a description, in the
    order in which the code defines them."""
    defaults = {each.name: each.value or "" for each in describe_broker(BrokerSettings())}
    assert [(key.strip("`"), default.strip("`")) for key, default, _ in rows("settings")] == list(
        defaults.items()
    )
    assert all(words for *_, words in rows("settings"))


def test_every_setting_of_a_topic_is_there() -> None:
    """docs/broker.md lists each topic setting with its default, a description, and the broker
    setting from which the default comes."""
    defaults = inherited(BrokerSettings())
    expected = [
        (name, defaults[name], ", ".join(f"`{key}`" for key in each.broker_keys))
        for name, each in TOPIC_CONFIGS.items()
    ]
    found = rows("topic settings")
    assert [(name.strip("`"), value.strip("`"), keys) for name, value, keys, _ in found] == expected
    assert all(words for *_, words in found)


def test_a_setting_that_is_shown_in_parts_says_so() -> None:
    """Answers to DescribeConfigs divide a very long value of a setting among several settings. In
    docs/broker.md, the row of such a setting also names the second of these settings, such as
    `mirror.gaps.2`."""
    second = list(gaps.shown("0:1-2:expired,0:3-4:expired", size_max=20))[1]
    (words,) = (words for name, *_, words in rows("topic settings") if name == f"`{gaps.CONFIG}`")
    assert f"`{second}`" in words


REFUSED_BELOW = {
    ApiKey.PRODUCE: PRODUCE_SERVED_SINCE,
    ApiKey.SASL_HANDSHAKE: SASL_HANDSHAKE_SERVED_SINCE,
}
"""The APIs of which lower versions are offered, but answered with an error."""


@pytest.mark.parametrize("key", registry.SERVED, ids=lambda key: key.name)
def test_every_api_is_there_with_its_versions(key: ApiKey) -> None:
    """For each API that the broker serves, docs/broker.md lists the served versions."""
    name = key.name.title().replace("_", "")
    lowest, highest = registry.SERVED[key].versions
    lowest = REFUSED_BELOW.get(key, lowest)
    versions = f"{lowest}-{highest}" if lowest < highest else str(lowest)
    assert re.search(rf"\b{name} {versions}\b", PAGE), name
