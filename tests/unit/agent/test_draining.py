"""Draining before anything is connected."""

import os
from dataclasses import replace
from pathlib import Path

import pytest

from agent import draining
from agent.state.database import open_state
from skidway.errors import StateRefused
from skidway.service import Shutdown
from support.agent_world import raw, settings


def test_a_state_of_another_user_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What root wrote into it, its agent could not read any more."""
    open_state(tmp_path).close()
    owner = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: owner + 1)
    configured = replace(settings(raw()), state_dir=tmp_path)
    with pytest.raises(StateRefused, match="drain as the user of the agent"):
        draining.drain(configured, Shutdown(), 1)
