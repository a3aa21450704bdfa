from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from skidway.broker.api.requests import Requests
from skidway.broker.mirror.mirrors import Mirrors
from skidway.broker.mirror.source import MirrorSource
from skidway.broker.settings import MirrorSettings
from support.broker_core import broker_core


@pytest.mark.parametrize("step", ["begin_round", "turn"])
def test_a_source_that_fails_is_stopped_by_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    """If the code for one source cluster raises an unexpected exception, the exception is counted
    and shown in the mirror's status. This source is not mirrored any more. The broker and its other
    sources continue."""
    sources = [
        MirrorSettings(cluster=name, bootstrap_servers="127.0.0.1:1", topics=[".*"])
        for name in ("dc1", "dc2")
    ]
    asked: list[str] = []
    real = getattr(MirrorSource, step)

    def sometimes(source: MirrorSource) -> Any:
        cluster = source.topics.mirroring.cluster
        asked.append(cluster)
        if cluster == "dc1":
            raise ZeroDivisionError
        return real(source)

    monkeypatch.setattr(MirrorSource, step, sometimes)
    with broker_core(tmp_path) as core:
        mirrors = Mirrors(core.broker, sources, core.clock)
        core.loop.serve(Requests(core.broker, core.clock, mirrors))
        mirrors.start()
        for _ in range(5):
            core.advance(core.broker.settings.mirror_metadata_interval_ms / 1000)
        first, second = mirrors.status()
        mirrors.close()
        assert "ZeroDivisionError" in first["stopped"]["dc1"]
        assert not second["stopped"]
        assert core.broker.counts.mirrors_failed == 1
        assert asked.count("dc1") == 1 < asked.count("dc2")
