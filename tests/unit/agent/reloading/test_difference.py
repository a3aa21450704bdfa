"""Before a reload, the agent compares the new settings with the old ones. It finds out which
settings have changed, and which of these changes need a restart."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from skidway.agent.reloading.difference import RELOADABLE, changes, needs_restart
from skidway.agent.settings import AgentSettings
from skidway.settings.spec import specs
from support.agent_world import raw, settings

BEFORE = settings(raw("logs", "/a", "/b"), raw("others", "/c"))


def test_every_key_that_may_change_exists() -> None:
    """The list of settings that may change while the agent runs has no misspelt key."""
    assert specs(AgentSettings).keys() >= RELOADABLE


def test_what_must_not_change_is_named() -> None:
    """If the agent's state, its cluster or its counts depend on a changed setting, the change needs
    a restart. The comparison names the keys of such settings."""
    after = replace(
        BEFORE,
        bootstrap_servers="other:1",
        state_dir=Path("/other"),
        cluster_name="b",
        audit_bucket_ms=7,
        linger_ms=3,
    )
    assert needs_restart(BEFORE, after) == [
        "bootstrap.servers",
        "state.dir",
        "cluster.name",
        "audit.bucket.ms",
    ]


def test_the_password_of_the_registry_may_change_and_is_not_printed() -> None:
    """A new password for the registry needs no restart. The list of changes contains only the keys
    of settings and never their values."""
    after = replace(BEFORE, schema_registry_user_info=Path("/a/secret"), linger_ms=7)
    assert not needs_restart(BEFORE, after)
    assert changes(BEFORE, after) == [
        "schema.registry.basic.auth.user.info.location changed",
        "linger.ms changed",
    ]


def test_sources_are_named_by_topic() -> None:
    """The list of changes names each source by its topic, and says whether the source was added,
    removed or changed."""
    after = replace(
        BEFORE,
        sources=[raw("logs", "/b", key="line"), raw("new", "/d", "/e")],
    )
    assert changes(BEFORE, after) == [
        "source of topic logs changed: paths, key",
        "source of topic new added: /d, /e",
        "source of topic others removed: /c",
    ]


def test_equal_settings_differ_in_nothing() -> None:
    """If two objects contain equal settings, no setting counts as changed."""
    after = settings(raw("logs", "/a", "/b"), raw("others", "/c"))
    assert changes(BEFORE, after) == needs_restart(BEFORE, after) == []
