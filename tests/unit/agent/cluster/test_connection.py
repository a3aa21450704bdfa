"""Tests what an agent asks of the cluster and the schema registry: topics, their settings and ids,
and schemas."""

import contextlib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, cast
from unittest.mock import Mock

import pytest

from skidway.agent import program
from skidway.agent.cluster import connection
from skidway.agent.cluster.destinations import Cluster
from skidway.agent.cluster.known_schemas import known_schemas
from skidway.agent.loop import beginning
from skidway.agent.parsers.settings import ParserSettings
from skidway.agent.recipe import TopicSnapshot
from skidway.agent.settings import AgentSettings, SourceSettings
from skidway.agent.state.changes import Changes
from skidway.agent.state.database import open_state
from skidway.audit.signing.agent_ids import is_id_of
from skidway.audit.signing.identity import Identity
from skidway.audit.signing.keys import KeyRefused
from skidway.audit.topic import topic
from skidway.audit.topic.messages import TOPIC as AUDIT
from skidway.audit.topic.messages import Heartbeat, Tier, decode
from skidway.audit.topic.notes import Note
from skidway.audit.topic.program_status import Kind, status_of
from skidway.audit.topic.publisher import Newest
from skidway.audit.topic.topic import DamagedBatch
from skidway.errors import ConfigurationRefused, Unreachable
from skidway.kafka.batch import CorruptBatch
from skidway.kafka.client import Client, Delivery
from skidway.kafka.types import TopicPartition
from skidway.schemas.client import (
    Registered,
    RegistryClient,
    RegistryConnection,
    RegistryRefused,
    RegistryUnreachable,
)
from skidway.service import Shutdown
from skidway.telemetry import Health
from support.agent_world import raw, settings
from support.clock import ManualClock
from support.memory_kafka import MemoryClient, MemoryCluster, MemoryFetcher, MemoryProducer
from support.promises import promise

Start = Callable[..., program.Found | None]
CLUSTER = Cluster("main", "memory")
NEWEST = '{"type":"record","name":"r","fields":[{"name":"line","type":"string"}]}'


class Registry:
    """A schema registry that numbers the schemas in the order in which they are registered."""

    def __init__(self) -> None:
        self.registered: dict[tuple[str, str], int] = {}

    def register(self, subject: str, schema: str) -> int:
        if "refused" in subject:
            raise RegistryRefused(409, 409, "the schema is incompatible with an earlier one")
        return self.registered.setdefault((subject, schema), len(self.registered) + 1)

    def latest(self, subject: str) -> Registered:
        assert subject == "some-subject"
        return Registered(subject, 3, 77, NEWEST)


class Patient(MemoryProducer):
    """A producer that waits as long as it is told, by the clock of its client."""

    def __init__(self, client: MemoryClient) -> None:
        super().__init__(client.cluster)
        self._clock = cast(ManualClock, client.clock)

    def poll(self, timeout_ms: int, *wake: int) -> list[Delivery]:
        self._clock.advance(timeout_ms / 1000)
        return super().poll(timeout_ms, *wake)


class Away:
    """A registry that does not answer. then: called at the request with the number `after`."""

    def __init__(self, then: Callable[[], None] = lambda: None, after: int = 0) -> None:
        self.asked = 0
        self._then, self._after = then, after

    def register(self, subject: str, schema: str) -> int:
        self.asked += 1
        if self.asked == self._after:
            self._then()
        raise RegistryUnreachable("nobody answers")

    def latest(self, subject: str) -> Registered:
        raise RegistryUnreachable("nobody answers")


class Site:
    def __init__(self, *sources: SourceSettings, **others: Any) -> None:
        self.clock = ManualClock()
        self.cluster = MemoryCluster()
        self.client = cast(Client, MemoryClient(self.cluster, self.clock))
        self.registry = cast(RegistryClient, Registry())
        self.settings: AgentSettings = settings(*sources, **others)

    def ensure(self, *, apache: bool = False) -> None:
        connection.ensure_topics(self.client, self.settings, apache, self.clock.advance)

    def resolve(self) -> list:
        schemas = connection.schemas_of(self.registry, self.settings)
        return connection.resolve(self.client, schemas, self.settings, CLUSTER)


def test_missing_topics_are_made_and_existing_ones_left_alone() -> None:
    """The agent creates missing data topics and missing topics for rejected lines, with the
    configured number of partitions. It does not change existing topics."""
    site = Site(raw("a"), raw("b"), topic_partitions=3)
    site.cluster.create("a", 7)
    site.ensure()
    counts = {name: len(topic.logs) for name, topic in site.cluster.topics.items()}
    assert counts == {"a": 7, "a.rejected": 3, "b": 3, "b.rejected": 3}
    assert site.cluster.topics["b"].configs == {}


@promise("4 Apache Kafka")
def test_on_apache_kafka_nothing_may_expire_by_event_time() -> None:
    """Apache Kafka may delete a segment because its records have old event times, even if the
    records were written just now. The agent creates topics whose settings prevent this, and refuses
    an existing topic whose settings allow it."""
    site = Site(raw("a"))
    site.ensure(apache=True)
    configs = site.cluster.topics["a"].configs
    assert (configs["retention.ms"], configs["message.timestamp.type"]) == ("-1", "CreateTime")
    configs["retention.ms"] = "604800000"
    with pytest.raises(ConfigurationRefused, match=r"topic a: retention\.ms"):
        site.ensure(apache=True)
    site.ensure(apache=False)


def test_event_times_are_not_written_over() -> None:
    """The agent refuses a topic with LogAppendTime, even on Skidway's own broker, because the
    broker would overwrite the event times."""
    site = Site(raw("a"))
    site.cluster.create("a", 1, {"message.timestamp.type": "LogAppendTime"})
    with pytest.raises(ConfigurationRefused, match=r"topic a: message\.timestamp\.type"):
        site.ensure()


def test_a_source_becomes_a_recipe() -> None:
    """The agent turns each source of its settings into a recipe (the rules by which lines become
    records). The recipe has the ids of the source's schemas, and the numbers of partitions and the
    size limits of its topics."""
    site = Site(raw("a"))
    site.cluster.create("a", 4, {"max.message.bytes": "5000"})
    site.ensure()
    (found,) = site.resolve()
    assert (found.recipe.data.partitions, found.recipe.data.limit_bytes) == (4, 5000)
    assert found.recipe.rejected.limit_bytes == connection.MESSAGE_BYTES_DEFAULT
    assert {found.recipe.schema.id, found.recipe.rejected_schema.id} == {1, 2}
    assert found.data.topic_id == site.cluster.topics["a"].topic_id.hex
    assert (found.data.cluster, found.data.cluster_id) == ("main", "memory")
    assert found.tailed().recipe == found.recipe.fingerprint


def test_schemas_come_from_files_and_subjects(tmp_path: Path) -> None:
    """If the settings name a schema file, the agent registers the file's schema under the subject
    of the topic's values, and uses it. If the settings name a subject, the agent uses the subject's
    newest version, and registers no schema of the topic's values."""
    path = tmp_path / "line.avsc"
    path.write_text('{"type":"record","name":"r","fields":[{"name":"text","type":"string"}]}')
    site = Site(raw("a", schema=str(path)), raw("b", schema="some-subject"))
    site.ensure()
    first, second = site.resolve()
    assert first.recipe.schema.text == path.read_text()
    registered = cast(Registry, site.registry).registered
    assert registered["a-value", path.read_text()] == first.recipe.schema.id
    assert (second.recipe.schema.id, second.recipe.schema.text) == (77, NEWEST)
    assert {subject for subject, _ in registered} == {
        "a-value", "a.rejected-value", "b.rejected-value"
    }  # fmt: skip


def test_a_byte_order_mark_is_no_part_of_a_schema(tmp_path: Path) -> None:
    """A schema file that begins with the byte order mark of UTF-8 is read without the mark; one in
    UTF-16 is refused by that name."""
    path = tmp_path / "line.avsc"
    for encoding in ("utf-8", "utf-8-sig"):
        path.write_text(NEWEST, encoding)
        assert connection.schema_of_file(raw(schema=str(path))) == NEWEST
    path.write_text(NEWEST, "utf-16")
    with pytest.raises(ConfigurationRefused, match="it is UTF-16; save it as UTF-8"):
        connection.schema_of_file(raw(schema=str(path)))


def test_a_schema_that_the_registry_refuses_is_a_mistake_of_the_configuration() -> None:
    """If the registry refuses a schema, the agent reports a configuration error that names the
    source and quotes the registry's answer."""
    site = Site(raw("refused"))
    with pytest.raises(ConfigurationRefused, match="topic refused: the schema is incompatible"):
        connection.schemas_of(site.registry, site.settings)


def test_parser_and_schema_are_compared_before_anything_is_read() -> None:
    """When the agent starts, it refuses a registered schema with a required field that the source's
    parser does not fill."""
    source = SourceSettings(
        topic="a",
        paths=["/x"],
        schema="some-subject",
        parser=ParserSettings(type="regex", pattern="(?P<other>.*)"),
    )
    site = Site(source)
    with pytest.raises(ConfigurationRefused, match="'line'"):
        connection.schemas_of(site.registry, site.settings)


@pytest.fixture
def start(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Start:
    """Returns a function that lets an agent with the given settings ask cluster and registry, as a
    starting agent does, and returns what it found. All its starts have one state."""

    def run(site: Site, shutdown: Shutdown | None = None) -> program.Found | None:
        monkeypatch.setattr(RegistryConnection, "client", lambda *_, **__: site.registry)
        monkeypatch.setattr(program, "Producer", lambda client: Patient(client))
        monkeypatch.setattr(program, "Fetcher", lambda client: MemoryFetcher(client.cluster))
        monkeypatch.setattr(connection, "cluster_of", lambda *_: (CLUSTER, False))
        if AUDIT not in site.cluster.topics:
            site.cluster.create(AUDIT, 1)
        asked = site.settings, site.client, site.clock, shutdown or Shutdown()
        with contextlib.closing(open_state(tmp_path)) as state:
            settings, client, clock, until = asked
            status = program.Status(Health(False))
            found = program.find(settings, state, client, clock, until, status)
            if found is not None:
                known = known_schemas(settings.schema_registry_url, found.destinations)
                first = beginning.first_changes(state, CLUSTER, found.destinations, known, 0)
                state.commit(first)
            return found

    return run


def test_a_configuration_that_cannot_run_leaves_no_topics(start: Start) -> None:
    """The agent registers its schemas before it creates any topic of a source. So a schema that the
    registry refuses leaves no topics behind."""
    site = Site(raw("refused"))
    with pytest.raises(ConfigurationRefused, match="incompatible"):
        start(site)
    assert set(site.cluster.topics) == {AUDIT}


def test_an_agent_that_starts_again_needs_no_registry(start: Start) -> None:
    """While no registry answers, an agent that starts again uses the schema ids in its state, for
    schemas that it registered and for subjects that its sources name. It says that the registry did
    not answer. It asks the registry only once, and not once for each source."""
    sources = raw("a"), raw("b"), raw("c", schema="some-subject")
    first = start(site := Site(*sources))
    assert first is not None
    away = Away()
    site.registry = cast(RegistryClient, away)
    again = start(site)
    assert again is not None
    assert again.registry_away == "nobody answers"
    assert [x.recipe for x in again.destinations] == [x.recipe for x in first.destinations]
    assert away.asked == 1


@pytest.mark.parametrize(
    ("before", "after", "url"),
    [
        ((), (raw("a"),), "http://nowhere:1"),
        ((raw("a"),), (raw("a"), raw("b")), "http://nowhere:1"),
        ((raw("a"),), (raw("a"),), "http://another:1"),
    ],
    ids=["first start", "new source", "another registry"],
)
def test_an_agent_waits_for_the_registry_and_says_so(
    start: Start,
    before: tuple[SourceSettings, ...],
    after: tuple[SourceSettings, ...],
    url: str,
) -> None:
    """An agent with a schema that it does not know, or that another registry named, waits for the
    registry. Meanwhile it sends heartbeats, and a note that says what does not answer. So the audit
    does not call its host silent."""
    if before:
        start(Site(*before))
    shutdown = Shutdown()
    site = Site(*after, host_name="web1")
    site.settings = replace(site.settings, schema_registry_url=url)
    site.registry = cast(RegistryClient, Away(lambda: shutdown.request(), after=3))
    assert start(site, shutdown) is None
    partition = TopicPartition(AUDIT, 0)
    span = {partition: (0, site.cluster.log(partition).end)}
    read = topic.read(site.client, MemoryFetcher(site.cluster), span, site.clock)
    said = [decode(value) for _, _, value, _ in read]
    [beat, *_] = [x for x in said if isinstance(x, Heartbeat)]
    [note] = [x for x in said if isinstance(x, Note)]
    assert (beat.sender.host, note.host) == ("web1", "web1")
    [obstacle] = status_of(note).obstacles
    assert (obstacle.kind, obstacle.words) == (Kind.REGISTRY, "nobody answers")
    assert obstacle.name == url


@promise("6 signed")
def test_an_agents_id_says_whose_it_is(tmp_path: Path) -> None:
    """A new agent takes an id that says whose it is, also before its host has a key, and keeps it.
    An agent that has told the audit something under another name, and has a key now, waits: the
    audit would refuse its messages. Without a key it keeps its id."""
    web1, web2 = (Identity.parse(f"agent/dc1/{x}") for x in ("web1", "web2"))
    with contextlib.closing(open_state(tmp_path)) as state:
        assert program.settle_id(state, web1, has_key=False)
        assert is_id_of(state.agent, web1)
        assert not program.settle_id(state, web1, has_key=True)
        taken = state.agent
        changes = Changes()
        changes.put_meta("number", "3")
        state.commit(changes)
    with contextlib.closing(open_state(tmp_path)) as told:
        assert not program.settle_id(told, web2, has_key=False)
        with pytest.raises(KeyRefused, match="under another name than agent/dc1/web2"):
            program.settle_id(told, web2, has_key=True)
        assert not program.settle_id(told, web1, has_key=True)
        assert told.agent == taken


@promise("2 topic made again")
def test_new_partitions_are_seen_and_a_topic_made_again_is_not_mixed_in() -> None:
    """When a running agent asks the brokers about its topics again, it takes over new partitions
    and new size limits, and keeps the schemas of the records. If a topic was deleted and created
    again, the agent uses nothing of the new topic, and reports that it was created again."""
    site = Site(raw("a"))
    site.ensure()
    before = site.resolve()
    site.cluster.topics["a"].logs *= 3
    for name, size in (("a", "5000"), ("a.rejected", "6000")):
        site.cluster.topics[name].configs["max.message.bytes"] = size
    (after,) = connection.refresh(site.client, before).destinations
    assert after.recipe.data == TopicSnapshot("a", 3, 5000)
    assert after.recipe.rejected == TopicSnapshot("a.rejected", 1, 6000)
    assert after.recipe.schema == before[0].recipe.schema
    site.cluster.create("a", 9)
    found = connection.refresh(site.client, [after])
    assert (found.destinations, found.made_again) == ([after], {"a"})
    del site.cluster.topics["a"]
    with pytest.raises(Unreachable):
        connection.refresh(site.client, [after])


@promise("1 restored state")
def test_an_agent_waits_while_the_audit_topic_is_damaged(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A damaged batch may hide the agent's newest message. So an agent that starts again waits
    until the batch can be read, or has expired, and does not end."""
    site = Site(raw("a"))
    assert start(site)
    damaged = DamagedBatch(TopicPartition(AUDIT, 0), 7, CorruptBatch("the CRC is wrong"))
    search = Mock(side_effect=[damaged, damaged, None])
    monkeypatch.setattr(program, "newest_own", search)
    assert start(site)
    assert search.call_count == 3


def test_only_a_new_agent_does_not_search_for_its_messages(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """When an agent starts, it searches the audit topic for its own newest message, to find out
    whether its state is an older copy. An agent that has just created its own id does not search,
    because the search would read the whole topic."""
    site, newest = Site(raw("a")), Newest(2, 9, 0)
    searched: list[str] = []

    def search(*arguments: object) -> Newest:
        searched.append(str(arguments[2]))
        return newest

    monkeypatch.setattr(program, "newest_own", search)
    monkeypatch.setattr(program, "Fetcher", lambda client: client)
    with contextlib.closing(open_state(tmp_path)) as made:
        assert program.newest_of(made, site.client, site.clock, None) is None
    with contextlib.closing(open_state(tmp_path)) as again:
        assert program.newest_of(again, site.client, site.clock, None) == newest
    assert searched == [str((Tier.AGENT, str(made.agent)))]
