"""The agent's program takes over changed settings between two turns (passes) of its loop."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from support.running_agent import Site, running


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    with running(tmp_path, monkeypatch) as made:
        yield made


def test_lines_of_a_new_source_are_sent_and_old_topics_stay_bound(site: Site) -> None:
    """If a reload replaces a source, the agent's program sends the lines of the new source and
    watches its directory. The producer also keeps the id of the old source's topic, because batches
    for this topic may still be on their way. The state has the schemas of the new source, so that
    the next start needs no registry."""
    (site.folder / "a.log").write_text("1\n")
    (site.folder / "b").mkdir()
    (site.folder / "b" / "b.log").write_text("1\n2\n")
    site.turns()
    assert site.lines("logs") == 1
    site.write(sources=[site.source("others", "b/b.log")], linger_ms=1)
    site.reload()
    assert site.lines("others") == 2
    assert site.agent._producer.bound.keys() >= {"logs", "others"}
    assert site.reloader.settings.linger_ms == 1
    assert str(site.folder / "b") in site.agent._watch._roots
    assert "configuration" not in site.agent._status.health.detail
    assert {x.subject for x in site.state.schemas()} == {"others-value", "others.rejected-value"}


def test_a_refused_reload_leaves_the_agent_as_it_is(site: Site) -> None:
    """If a reload is refused, the agent's program continues with its old settings. /health gives
    the reason, but the agent still counts as healthy."""
    site.write(sources=[site.source("others", "a.log")], host_name="elsewhere")
    site.reload()
    (site.folder / "a.log").write_text("1\n")
    site.turns()
    assert site.lines("logs") == 1
    health = site.agent._status.health
    assert health.ok
    assert "host.name" in health.detail["configuration"]["refused"]


def test_a_topic_that_was_made_again_refuses_a_reload(site: Site) -> None:
    """If a topic of the new settings was deleted and created again, the agent's program takes over
    none of the new settings."""
    site.turns(3)
    site.write(sources=[site.source("others", "b.log")])
    site.reload()
    del site.cluster.topics["logs"]
    site.cluster.create("logs", 1)
    site.write(sources=[site.source("logs", "a.log")])
    site.reload()
    assert "was deleted and made again" in site.reloader.detail["configuration"]["refused"]
    assert [each.topic for each in site.reloader.settings.sources] == ["others"]
