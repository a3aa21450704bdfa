"""The filters of the collection, by name. Their code is in plugin_utils, with one module for each
noun, such as `clusters` or `roster`.

Playbooks and roles may use only the functions listed here; names that begin with an underscore are
private to their module.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..plugin_utils import (
    addresses,
    clusters,
    ensemble,
    problems,
    roster,
    services,
    settings,
    steps,
    tiers,
    units,
    versions,
    waves,
)

FILTERS: tuple[Callable[..., Any], ...] = (
    addresses.bootstrap_servers,
    addresses.broker_address,
    addresses.collector_url,
    addresses.health_of,
    addresses.health_url,
    addresses.registry_url,
    addresses.zookeeper_connect,
    addresses.zookeeper_servers,
    clusters.counters,
    clusters.mirror_sources,
    clusters.of_cluster,
    ensemble.ensemble,
    ensemble.servers_in,
    problems.inventory_problems,
    roster.retirement_problem,
    roster.roster,
    services.runs_since_before,
    services.started_before,
    settings.holds_secret,
    settings.not_named_by,
    settings.outside,
    settings.over,
    settings.texts,
    steps.touches,
    tiers.exempt_topics,
    tiers.lost_tiers_problem,
    tiers.topics_to_load,
    units.drop_in,
    units.environment,
    units.unit_text,
    versions.is_older,
    versions.python_problem,
    versions.superfluous,
    versions.wheels_for,
    waves.wave_problems,
)


class FilterModule:
    """Ansible looks for filters in this class. Playbooks name a filter `skidway.fleet.<name>`."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """The functions of the filters, by the filters' names."""
        return {each.__name__: each for each in FILTERS}
