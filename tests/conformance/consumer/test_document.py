"""Runs the examples of docs/client.md in their order."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from skidway.kafka.client import Client, NewTopic
from support.brokers import SkidwayBroker
from support.processes import eventually
from support.zookeeper import ZooKeeper

pytestmark = pytest.mark.java

PAGE = Path(__file__).parents[3] / "docs/client.md"


def test_the_examples_of_the_page_run(
    skidway_broker: SkidwayBroker, zookeeper_server: ZooKeeper
) -> None:
    """Each Python block of docs/client.md after the first one runs. These blocks need only the
    address of a broker. The first block sets an example address. The test does not run this block,
    but sets the address of its own broker."""
    with Client(skidway_broker.address) as client:
        assert client.create_topics([NewTopic("clicks", 3, 1)]) == {"clicks": None}
        eventually(lambda: len(client.metadata(["clicks"]).topics["clicks"].partitions) == 3)
    addresses, *examples = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert len(examples) == 8
    names = {"BROKER": skidway_broker.address}
    assert set(re.findall(r"^(\w+) =", addresses, re.MULTILINE)) == set(names)
    for example in examples:
        exec(compile(example, str(PAGE), "exec"), names)
    assert names["records"]
    assert names["again"]
