"""The ids of schemas that a registry gave this agent before. If the registry does not answer when
the agent starts, these ids are used: the schema of an id never changes. So an agent that starts
again needs a registry only for schemas that are new to it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol

from skidway import log
from skidway.agent.cluster.destinations import Destination
from skidway.agent.values.schemas import KnownSchema
from skidway.schemas.client import Registered, RegistryUnreachable, subject_of

_log = log.get(__name__)


class Registry(Protocol):
    """What the agent asks a schema registry for."""

    def register(self, subject: str, schema: str) -> int: ...

    def latest(self, subject: str) -> Registered: ...


class KnownSchemas:
    """A registry that falls back to what it answered before. If the registry does not answer, it
    is not asked again, and `failure` says why it did not answer."""

    def __init__(self, registry: Registry, url: str, known: Iterable[KnownSchema]) -> None:
        """url: the addresses of the registry; the ids of another registry mean other schemas."""
        self.failure = ""
        self._registry = registry
        self._known = [x for x in known if x.registry == url]

    def register(self, subject: str, schema: str) -> int:
        """Like RegistryClient.register. Raises RegistryUnreachable if the registry does not answer
        and the schema is not known."""
        if not self.failure:
            try:
                return self._registry.register(subject, schema)
            except RegistryUnreachable as error:
                self._away(error)
        return self._found(x for x in self._known if (x.subject, x.text) == (subject, schema)).id

    def latest(self, subject: str) -> Registered:
        """Like RegistryClient.latest. If the registry does not answer, the newest version of which
        the agent knows counts as the latest, as it does for an agent that runs."""
        if not self.failure:
            try:
                return self._registry.latest(subject)
            except RegistryUnreachable as error:
                self._away(error)
        found = self._found(x for x in self._known if x.subject == subject and x.version)
        return Registered(subject, found.version, found.id, found.text)

    def _away(self, error: RegistryUnreachable) -> None:
        self.failure = str(error)
        _log.warning("registry_away", reason=self.failure, known_schemas=len(self._known))

    def _found(self, found: Iterable[KnownSchema]) -> KnownSchema:
        known = next(iter(found), None)
        if known is None:
            raise RegistryUnreachable(self.failure)
        return known


def known_schemas(url: str, destinations: Sequence[Destination]) -> list[KnownSchema]:
    """Returns the schemas of all destinations, for the state. url: the addresses of the registry
    that gave their ids."""
    found = {}
    for each in destinations:
        source, recipe = each.settings, each.recipe
        is_named = source.schema is not None and source.schema_file is None
        subject = str(source.schema) if is_named else subject_of(source.topic)
        rejected = subject_of(source.rejected_topic)
        for name, schema, version in (
            (subject, recipe.schema, int(is_named)),
            (rejected, recipe.rejected_schema, 0),
        ):
            known = KnownSchema(url, name, schema.id, schema.text, version)
            found[name, schema.text] = known
    return list(found.values())
