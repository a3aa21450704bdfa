"""Lists the filters of the collection by name. The code of the filters is in plugin_utils, which
has one module for each subject, such as `clusters` or `roster`.

Playbooks and roles may use only the functions that this module lists.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..plugin_utils import (
    addresses,
    clusters,
    ensemble,
    identities,
    problems,
    roster,
    scraping,
    services,
    settings,
    steps,
    tiers,
    units,
    versions,
    waves,
)

FILTERS: tuple[Callable[..., Any], ...] = (
    addresses.address,
    addresses.allowed_hosts,
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
    identities.identity,
    problems.inventory_problems,
    roster.retirement_problem,
    roster.roster,
    scraping.scrape_targets,
    scraping.unscraped,
    scraping.with_skidway,
    scraping.without_skidway,
    services.needs_restart,
    services.runs_since_before,
    services.started_before,
    services.taken_by_reload,
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
    units.set_options,
    units.protect_home,
    units.unit_text,
    versions.is_older,
    versions.python_problem,
    versions.superfluous,
    versions.wheels_for,
    waves.wave_problems,
)


class FilterModule:
    """Ansible looks for filters in this class. Playbooks refer to a filter as
    `skidway.fleet.<name>`."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """Returns {name of a filter: its function}."""
        return {each.__name__: each for each in FILTERS}
