"""Tests when the default demo kills a program."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path

import pytest

from skidway.demo.display import Display
from skidway.demo.site import DEFAULT_PORTS, Site
from skidway.demo.trial import Trial
from skidway.loader.runs.progress_display import EVENT


def test_a_load_of_a_later_run_is_killed_although_an_earlier_log_is_longer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The demo kills a load as soon as the load's own log says that Spark runs its slices. A longer
    log that a load of an earlier run, or an earlier load, has left does not hide this."""
    site = Site(tmp_path, dict.fromkeys(DEFAULT_PORTS, 1), str(tmp_path / "hdfs"))
    with Trial(site, Display(io.StringIO()), [], 1) as trial:
        log = trial.supervisor.errors("loader")
        log.write_text(f'{{"event": "{EVENT}"}}\n' * 1_000)

        def spawn(_name: str, _module: str, _arguments: Sequence[str], _output: Path) -> None:
            log.touch()

        monkeypatch.setattr(trial.supervisor, "_spawn", spawn)
        trial._begin_load_to_kill()
        assert not trial._is_loading()
        log.write_text(f'{{"event": "{EVENT}"}}\n')
        assert trial._is_loading()
