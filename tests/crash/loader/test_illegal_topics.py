"""Loads from a broker that lists topics with illegal names."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from support.lying_broker import lying
from tests.crash.loader.conftest import Loading, fill

pytestmark = pytest.mark.java


def test_a_name_from_a_broker_leads_nowhere(loading: Loading, tmp_path: Path) -> None:
    """A load takes only topics with legal names, although its pattern matches others that a broker
    lists: it loads the legal ones, ends well, names each of the others once, and writes nothing
    beside its output."""
    fill(loading, 0, 100)
    names = [f"{loading.topic}/../../stolen", f"{loading.topic}\x00", f"{loading.topic}\n" * 200]
    loading.output = str(tmp_path / "below" / "output")
    with lying(loading.cluster.broker, names) as liar:
        program = loading.start(
            f"bootstrap.servers={liar.address}", f'topics=["{loading.topic}.*"]'
        )
        assert program.wait() == 0, program.output()
        assert liar.lies
    assert len(loading.rows()) == 200
    assert {each.name for each in (tmp_path / "below").iterdir()} == {"output"}
    logged = [json.loads(x) for x in program.output().splitlines() if x.startswith('{"time"')]
    dropped = [
        name for x in logged if x["event"] == "illegal_topics_dropped" for name in x["topics"]
    ]
    assert dropped == [*names[:2], names[2][:249]]
