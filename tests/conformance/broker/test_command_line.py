from __future__ import annotations

import json

import pytest

from support.brokers import SkidwayBroker
from support.processes import free_port, run_skidway

pytestmark = pytest.mark.conformance


def test_a_broker_without_mirrors_says_so(skidway_broker: SkidwayBroker) -> None:
    """`skidway mirror status` asks the broker with these settings, in words or as JSON."""
    listener = f"metrics.listener=127.0.0.1:{skidway_broker.metrics_port}"
    done = run_skidway("mirror", "status", "--set", listener)
    assert (done.returncode, done.stdout) == (
        0,
        "this broker mirrors nothing: it has no mirror.sources\n",
    )
    done = run_skidway("mirror", "status", "--json", "--set", listener)
    assert json.loads(done.stdout) == []


def test_a_broker_that_is_away_is_named() -> None:
    """Unreachable is status 3 and one sentence."""
    done = run_skidway("mirror", "status", "--set", f"metrics.listener=127.0.0.1:{free_port()}")
    assert done.returncode == 3
    assert "no broker answers at http://127.0.0.1:" in done.stderr


def test_settings_are_validated_without_starting() -> None:
    """`skidway broker validate` says what is good, and refuses what is not."""
    done = run_skidway("broker", "validate", "--set", "broker.id=7")
    assert done.returncode == 0
    assert "broker 7 of cluster main" in done.stdout
    done = run_skidway("broker", "validate", "--set", "brokr.id=7")
    assert done.returncode == 78
    assert "broker.id" in done.stderr
