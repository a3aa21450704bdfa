"""Tests how the Ansible roles decide whether a service has to be restarted."""

from __future__ import annotations

from typing import Any

from deploy.ansible.plugins.plugin_utils import services


def status(state: str = "active") -> dict[str, str]:
    return {"ActiveState": state, "ExecMainStartTimestamp": "Fri 2026-11-20 20:44:43 UTC"}


BEGAN = 1795207483.0


def files(*times: float) -> list[dict[str, Any]]:
    return [{"mtime": t} for t in times]


def test_a_restart_is_due_when_a_file_is_newer_than_the_process() -> None:
    """A restart is due if one of a service's files is newer than the service's process. So if a
    playbook run was interrupted after it had written a file and before the restart, the next run
    restarts the service."""
    assert services.started_before(status(), files(BEGAN - 60, BEGAN + 1))
    assert not services.started_before(status(), files(BEGAN - 60, BEGAN))
    assert not services.started_before(status("inactive"), files(BEGAN + 1))


def test_a_service_that_cannot_come_up_is_restarted_from_newer_files() -> None:
    """A file may be newer than a service that is still starting. The service is then restarted,
    because systemd's `start` would do nothing, and the service would continue with the old file."""
    assert services.started_before(status("activating"), files(BEGAN + 1))
    assert not services.started_before(status("activating"), files(BEGAN - 1))


def test_a_roll_back_leaves_a_service_alone_that_was_not_stopped() -> None:
    """A roll-back does not restart a service that still runs the version to which the roll-back
    returns. Otherwise the roll-back could stop a healthy ZooKeeper server while other servers of
    its ensemble are unhealthy, and so end the quorum."""
    assert services.runs_since_before(status(), BEGAN + 60.5)
    assert not services.runs_since_before(status(), BEGAN)  # the process runs the new version
    assert not services.runs_since_before(status("activating"), BEGAN + 60)
    assert not services.runs_since_before(status("failed"), BEGAN + 60)
    assert not services.runs_since_before({"ActiveState": "active"}, BEGAN)  # no process


def test_a_restart_that_was_done_is_not_done_again() -> None:
    """When a rolling restart is resumed, it skips each service that was restarted after the rolling
    restart had begun."""
    assert services.started_before(status(), files(), "2026-11-20T20:44:44Z")
    assert not services.started_before(status(), files(), "2026-11-20T20:44:43Z")
