"""Which settings were changed, and which of these changes the agent can take while it runs. Does no
I/O."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from skidway.agent.settings import AgentSettings, ReplaySource, SourceSettings
from skidway.settings.spec import specs

REGISTRY: Final = "schema.registry."
RELOADABLE: Final = frozenset(
    {
        "sources", "sources.dir", "sources.dir.rules", "idle.flush.ms", "close.rotated.ms",
        "checkpoint.interval.ms", "reconcile.interval.ms", "seal.interval.ms", "audit.interval.ms",
        "heartbeat.interval.ms", "batch.size", "linger.ms", "compression.type", "max.open.files",
        "topic.partitions", "topic.replication.factor", "rejected.share.max",
    }
)  # fmt: skip
"""The settings that can change while the agent runs. (The settings of the registry can change, too;
they have the prefix REGISTRY.) A change of any other setting needs a restart. This is also true for
each new setting, until developers add it to this set.
"""


def needs_restart(before: AgentSettings, after: AgentSettings) -> list[str]:
    """Returns the keys of the changed settings that cannot change while the agent runs."""
    return [key for key in _changed(before, after) if not _is_reloadable(key)]


def changes(before: AgentSettings, after: AgentSettings) -> list[str]:
    """Returns sentences that say which settings and sources were changed. The sentences name the
    keys of settings, and the topics and paths of sources, but no other values."""
    keys = [key for key in _changed(before, after) if key not in ("sources", "sources.dir")]
    return [*(f"{key} changed" for key in keys), *_of_sources(before.sources, after.sources)]


def _is_reloadable(key: str) -> bool:
    return key in RELOADABLE or key.startswith(REGISTRY)


def _changed(before: Any, after: Any) -> list[str]:
    table = specs(type(before))
    return [
        key
        for key, spec in table.items()
        if getattr(before, spec.name) != getattr(after, spec.name)
    ]


def _of_sources(before: Sequence[SourceSettings], after: Sequence[SourceSettings]) -> Iterator[str]:
    """Yields one sentence for each source that was added, removed or changed. Sources with the same
    topic and a common path count as the same source.
    """
    before, after = _configured(before), _configured(after)
    gone = [each for each in before if each not in after]
    for new in after:
        if new in before:
            continue
        old = next((each for each in gone if _is_same(each, new)), None)
        if old is None:
            yield f"source of topic {new.topic} added: {', '.join(new.paths)}"
        else:
            gone.remove(old)
            yield f"source of topic {new.topic} changed: {', '.join(_changed(old, new))}"
    for old in gone:
        yield f"source of topic {old.topic} removed: {', '.join(old.paths)}"


def _configured(sources: Sequence[SourceSettings]) -> list[SourceSettings]:
    return [each for each in sources if not isinstance(each, ReplaySource)]


def _is_same(one: SourceSettings, other: SourceSettings) -> bool:
    return one.topic == other.topic and not set(one.paths).isdisjoint(other.paths)
