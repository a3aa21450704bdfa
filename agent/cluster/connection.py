"""Asks the cluster and the registry for what a starting agent needs: topics, ids, schemas.

If the cluster is down when the agent starts, or the registry and the state lacks an id of a schema
(see known_schemas), the agent waits, reads no lines, and logs that it waits. Nothing is lost,
because the lines stay in the files until the agent reads them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from skidway import log
from skidway.agent.batches.press import Press
from skidway.agent.batches.source_recipes import derived_schema, recipe_of
from skidway.agent.cluster.destinations import Cluster, Destination
from skidway.agent.cluster.known_schemas import Registry
from skidway.agent.configuration import Faults, refusal_of
from skidway.agent.named_files import read_any
from skidway.agent.named_files import schema_text as schema_text_of
from skidway.agent.recipe import Recipe, Schema, TopicSnapshot
from skidway.agent.settings import AgentSettings, SourceSettings
from skidway.dataclass import dataclass
from skidway.errors import ConfigurationRefused, Unreachable
from skidway.kafka.client import LATEST, Client, NewTopic
from skidway.kafka.client import ensure_topics as ensure
from skidway.kafka.source import CLUSTER_NAME, Source, cluster_name_of
from skidway.kafka.types import TopicPartition
from skidway.schemas.avro_schema import SchemaInvalid, parse
from skidway.schemas.client import RegistryRefused, subject_of
from skidway.schemas.single_object import schema_text

MESSAGE_BYTES_DEFAULT: Final = 1_048_588
AFTER_MS_MIN: Final = 86_400_000

_KAFKA_CONFIGS: Final = {
    "retention.ms": "-1",
    "message.timestamp.type": "CreateTime",
    "message.timestamp.after.max.ms": str((1 << 63) - 1),
}
"""The topic configs that the agent's topics need in Apache Kafka. With other values, Apache Kafka
refuses records because of their event time, or deletes records before anybody has read them.
"""

_log = log.get(__name__)

Pause = Callable[[float], object]


def cluster_of(client: Client, name: str | None) -> tuple[Cluster, bool]:
    """Returns the cluster that `client` reaches, and whether it is Apache Kafka. name: the agent's
    setting `cluster.name`, if it is set. Raises Unreachable, KafkaError, ConfigurationRefused.
    """
    configs = client.broker_configs(CLUSTER_NAME)
    cluster_id = client.metadata([]).cluster_id or ""
    return Cluster(cluster_name_of(configs, name), cluster_id), CLUSTER_NAME not in configs


def ensure_topics(
    client: Client, settings: AgentSettings, is_apache_kafka: bool, pause: Pause
) -> None:
    """Creates the data topics and the rejected topics that are missing, and waits until all
    partitions have leaders. Then checks the configs of all these topics. Raises Unreachable,
    KafkaError, and ConfigurationRefused if a config would lose lines or event times.
    """
    names = _topics(settings.sources)
    wanted = (settings.topic_partitions, settings.topic_replication_factor)
    configs_wanted = dict(_KAFKA_CONFIGS) if is_apache_kafka else {}
    ensure(client, [NewTopic(name, *wanted, configs_wanted) for name in names], pause)
    configs = client.topic_configs(names)
    check = _check_kafka_configs if is_apache_kafka else _check_timestamp_type
    for name, known in configs.items():
        try:
            check({name: known})
        except ConfigurationRefused as error:
            users = [each for each in settings.sources if name in _topics([each])]
            raise refusal_of(users, str(error)) from error


@dataclass(frozen=True, slots=True)
class SourceSchemas:
    """The registered schemas of a source: one for its records, and one for its rejected lines."""

    records: Schema
    rejected: Schema


def schemas_of(registry: Registry, settings: AgentSettings) -> list[SourceSchemas]:
    """Registers the schemas of every source, or gets the latest version of the subject that a
    source names, and checks that the schemas fit the source's parser.

    The caller calls this function before it creates topics. So if the agent cannot run with a
    configuration, it creates no topics. Raises Unreachable, ConfigurationRefused,
    SchemaUnsupported, and SourcesRefused if only files of `sources.dir` are to blame.
    """
    found, faults = [], Faults()
    for source in settings.sources:
        with faults.of(source):
            try:
                records = _schema(registry, source)
                compiled(source, records, settings.batch_size)
                rejected = _registered(registry, source.rejected_topic, schema_text("Rejected"))
            except RegistryRefused as error:
                raise ConfigurationRefused(f"source of topic {source.topic}: {error}") from error
            found.append(SourceSchemas(records, rejected))
    faults.check()
    return found


def compiled(source: SourceSettings, schema: Schema, batch_bytes: int) -> Press:
    """Compiles a source's press (which makes record batches of lines) without asking the cluster:
    as if each topic had only one partition.

    Raises ConfigurationRefused if the parser does not fit the schema, and SchemaUnsupported if
    records of the schema cannot be encoded.
    """
    return Press(
        recipe_of(
            source,
            TopicSnapshot(source.topic, 1, batch_bytes),
            TopicSnapshot(source.rejected_topic, 1, batch_bytes),
            schema,
            Schema(0, schema_text("Rejected")),
            batch_bytes,
        )
    )


def resolve(
    client: Client,
    schemas: Sequence[SourceSchemas],
    settings: AgentSettings,
    cluster: Cluster,
) -> list[Destination]:
    """Returns one destination for each source: the source with its topics and schemas. Raises
    Unreachable, KafkaError."""
    topics = _topics_now(client, _topics(settings.sources))
    sources = {
        name: Source(cluster.name, cluster.id, name, topic_id)
        for name, (_, topic_id) in topics.items()
    }
    return [
        Destination(
            source,
            _recipe(each, source, topics, settings.batch_size),
            sources[source.topic],
            sources[source.rejected_topic],
        )
        for source, each in zip(settings.sources, schemas, strict=True)
    ]


@dataclass(frozen=True, slots=True)
class Refreshed:
    """The result of `refresh`. destinations: the destinations with the current partitions and
    limits of their topics. A destination stays unchanged if one of its topics was deleted and made
    again. made_again: the names of the topics that were deleted and made again.
    """

    destinations: list[Destination]
    made_again: set[str]


def refresh(client: Client, destinations: Sequence[Destination]) -> Refreshed:
    """Asks the cluster again about the topics of these destinations, but does not ask the registry.
    Raises Unreachable, KafkaError.
    """
    topics = _topics_now(client, _topics([each.settings for each in destinations]))
    found = Refreshed([], set())
    for each in destinations:
        data, rejected = topics[each.data.topic], topics[each.rejected.topic]
        others = {source for source in (each.data, each.rejected) if _is_another(source, topics)}
        recipe = replace(each.recipe, data=data[0], rejected=rejected[0])
        found.destinations.append(each if others else replace(each, recipe=recipe))
        found.made_again.update(source.topic for source in others)
    return found


def ends_of(client: Client, partitions: Sequence[TopicPartition]) -> dict[TopicPartition, int]:
    """Returns the present log end offset of each partition. Raises Unreachable, KafkaError."""
    if not partitions:
        return {}
    listed = client.list_offsets(dict.fromkeys(partitions, LATEST))
    return {tp: found.offset for tp, found in listed.items()}


def _topics_now(client: Client, names: Sequence[str]) -> dict[str, tuple[TopicSnapshot, str]]:
    """Returns each topic and its id. Raises KafkaError, and Unreachable if a topic has no
    partitions."""
    topics = client.metadata(names).topics
    for name in names:
        if name not in topics or not topics[name].partitions:
            raise Unreachable(f"topic {name} has no partitions now")
    configs = client.topic_configs(names)
    found = {}
    for name in names:
        topic = topics[name]
        topic_id = "" if topic.topic_id is None else topic.topic_id.hex
        limit = int(configs[name].get("max.message.bytes", MESSAGE_BYTES_DEFAULT))
        found[name] = TopicSnapshot(name, len(topic.partitions), limit), topic_id
    return found


def _is_another(source: Source, topics: Mapping[str, tuple[TopicSnapshot, str]]) -> bool:
    _, topic_id = topics[source.topic]
    return bool(topic_id and source.topic_id) and topic_id != source.topic_id


def _recipe(
    schemas: SourceSchemas,
    source: SourceSettings,
    topics: Mapping[str, tuple[TopicSnapshot, str]],
    batch_bytes: int,
) -> Recipe:
    data, set_apart = topics[source.topic][0], topics[source.rejected_topic][0]
    return recipe_of(source, data, set_apart, schemas.records, schemas.rejected, batch_bytes)


def _schema(registry: Registry, source: SourceSettings) -> Schema:
    if source.schema is None:
        return _registered(registry, source.topic, derived_schema(source))
    if source.schema_file is not None:
        return _registered(registry, source.topic, schema_of_file(source))
    latest = registry.latest(source.schema)
    return Schema(latest.id, latest.schema)


def schema_of_file(source: SourceSettings) -> str:
    """Returns the text of the schema file that a source names. Raises ConfigurationRefused if the
    file cannot be read or is no schema.
    """
    path, text = Path(str(source.schema)), source.schema_text
    if text is None:  # the program made the source, and did not read it
        text = schema_text_of(path, read_any)
    try:
        parse(text)
    except SchemaInvalid as error:
        raise ConfigurationRefused(f"schema: {path}: {error}") from error
    return text


def _registered(registry: Registry, topic: str, text: str) -> Schema:
    return Schema(registry.register(subject_of(topic), text), text)


def _topics(sources: Sequence[SourceSettings]) -> list[str]:
    names = dict.fromkeys(
        name for source in sources for name in (source.topic, source.rejected_topic)
    )
    return list(names)


def _check_timestamp_type(configs: Mapping[str, Mapping[str, str]]) -> None:
    for topic, known in configs.items():
        if known.get("message.timestamp.type") == "LogAppendTime":
            raise ConfigurationRefused(
                f"topic {topic}: message.timestamp.type is LogAppendTime, it must be CreateTime; "
                "otherwise its records lose their event times"
            )


def _check_kafka_configs(configs: Mapping[str, Mapping[str, str]]) -> None:
    """Refuses a topic if its configs let Apache Kafka delete records because of their event time.
    Warns about a topic if Apache Kafka refuses some event times that are less than a day
    (AFTER_MS_MIN) in the future.
    """
    for topic, known in configs.items():
        for key in ("retention.ms", "message.timestamp.type"):
            wanted = _KAFKA_CONFIGS[key]
            if known.get(key, wanted) != wanted:
                raise ConfigurationRefused(
                    f"topic {topic}: {key} is {known[key]}, it must be {wanted}; otherwise old "
                    "lines are deleted before anyone reads them (limit it with retention.bytes)"
                )
        after = known.get("message.timestamp.after.max.ms")
        if after is not None and int(after) < AFTER_MS_MIN:
            _log.warning("topic_refuses_future_times", topic=topic, after_max_ms=int(after))
