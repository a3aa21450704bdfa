"""`skidway topics list|create|describe|alter|delete`, for Skidway's brokers and Apache Kafka's."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from skidway.cli.connection import connection
from skidway.cli.options import add_bootstrap_option, add_json_option
from skidway.cli.output import print_json, print_rows, table
from skidway.cli.plan import add_plan_options, agreed
from skidway.errors import UsageError
from skidway.kafka.client import (
    EARLIEST,
    LATEST,
    READ_UNCOMMITTED,
    Client,
    ConfigChanges,
    NewTopic,
    TopicMetadata,
    wait_until_known,
)
from skidway.kafka.errors import (
    BrokerUnreachable,
    ErrorCode,
    KafkaError,
    error_for,
)
from skidway.kafka.protocol.describe_configs import ConfigSource
from skidway.kafka.types import TopicPartition

CONFIGS_SHOWN = ("retention.", "segment.", "max.message.bytes", "message.timestamp.", "mirror.")
"""`describe` prints the settings whose names begin with one of these texts, and the settings that
are set for the topic itself. With --all or --json, it prints all settings."""

Results = dict[str, KafkaError | None]

SOURCES = {
    "TOPIC_CONFIG": "topic",
    "STATIC_BROKER_CONFIG": "broker's configuration",
    "DYNAMIC_BROKER_CONFIG": "broker, dynamic",
    "DYNAMIC_DEFAULT_BROKER_CONFIG": "cluster, dynamic",
    "DEFAULT_CONFIG": "default",
}
"""For each source of a setting's value (Kafka's ConfigSource), the words that `describe` prints."""


def register(subparsers: Any) -> None:
    """Adds the command `skidway topics`."""
    words = "list, create, describe, alter and delete topics"
    parser = subparsers.add_parser("topics", help=words)
    verbs = parser.add_subparsers(dest="verb", metavar="VERB")
    listing = _verb(verbs, "list", _list, "every topic with its partitions")
    add_json_option(listing)
    create = _verb(verbs, "create", _create, "make a topic")
    create.add_argument("topic", metavar="TOPIC")
    words = "else the broker's"
    create.add_argument("--partitions", type=_count, default=-1, metavar="N", help=words)
    create.add_argument("--replication-factor", type=_factor, default=-1, metavar="N")
    create.add_argument(
        "--topic-config", action="append", default=[], metavar="KEY=VALUE", help="may be repeated"
    )
    create.add_argument("--if-not-exists", action="store_true", help="no error if it exists")
    add_json_option(create)
    words = "partitions with leaders, offsets and sizes; settings, and their sources"
    describe = _verb(verbs, "describe", _describe, words)
    describe.add_argument("topic", metavar="TOPIC", nargs="+")
    describe.add_argument("--all", action="store_true", help="every setting, defaults too")
    add_json_option(describe)
    _register_alter(_verb(verbs, "alter", _alter, "more partitions, other settings"))
    delete = _verb(verbs, "delete", _delete, "delete topics with all their records")
    delete.add_argument("topic", metavar="TOPIC", nargs="+")
    add_plan_options(delete)
    add_json_option(delete)


def _register_alter(alter: argparse.ArgumentParser) -> None:
    alter.add_argument("topic", metavar="TOPIC")
    alter.add_argument("--partitions", type=_count, metavar="N", help="new number of partitions")
    options = (
        ("--topic-config", "KEY=VALUE", "set it; may be repeated, as the next three"),
        ("--delete-config", "KEY", "back to the broker's default"),
        ("--append-config", "KEY=VALUE", "add to a setting that is a list"),
        ("--subtract-config", "KEY=VALUE", "take out of a setting that is a list"),
    )
    for option, metavar, words in options:
        alter.add_argument(option, action="append", default=[], metavar=metavar, help=words)
    alter.add_argument("--validate-only", action="store_true", help="only check the changes")
    add_json_option(alter)


def _count(text: str) -> int:
    """Returns the number of partitions that `text` gives. In the protocol, this number is a signed
    32-bit integer; -1 means the broker's default."""
    return _within(text, 1 << 31)


def _factor(text: str) -> int:
    """Returns the number of replicas that `text` gives. In the protocol, this number is a signed
    16-bit integer; -1 means the broker's default."""
    return _within(text, 1 << 15)


def _within(text: str, end: int) -> int:
    try:
        count = int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text} is no number") from None
    if not -1 <= count < end:
        raise argparse.ArgumentTypeError(f"{text} is not between -1 and {end - 1}")
    return count


def _verb(verbs: Any, name: str, run: Any, words: str) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = verbs.add_parser(name, help=words, description=words)
    add_bootstrap_option(parser)
    parser.set_defaults(run=run)
    return parser


def _list(args: argparse.Namespace) -> int:
    with connect(args) as client:
        topics = client.metadata().topics
    rows = [
        {
            "topic": topic.name,
            "partitions": len(topic.partitions),
            "replicas": max((len(p.replicas) for p in topic.partitions), default=0),
        }
        for topic in sorted(topics.values(), key=lambda topic: topic.name)
    ]
    print_rows(rows, ["topic", "partitions", "replicas"], as_json=args.json)
    return 0


def _create(args: argparse.Namespace) -> int:
    new = NewTopic(args.topic, args.partitions, args.replication_factor, _pairs(args.topic_config))
    with connect(args) as client:
        error = client.create_topics([new])[args.topic]
        exists = error is not None and error.code is ErrorCode.TOPIC_ALREADY_EXISTS
        if error is not None and not (exists and args.if_not_exists):
            raise error
        _wait_until_known(client, args.topic, 1)
    words = f"{args.topic} exists already" if exists else f"created {args.topic}"
    _tell({"topic": args.topic, "created": not exists}, words, args)
    return 0


def _wait_until_known(client: Client, topic: str, partitions: int) -> None:
    for broker in wait_until_known(client, topic, partitions, client.pause):
        where = f"broker {broker.id} ({broker.address})"
        sys.stderr.write(f"skidway topics: {where} does not list the change to {topic} yet\n")


def _delete(args: argparse.Namespace) -> int:
    with connect(args) as client:
        # With --yes, only the controller checks whether the topics exist, because it knows new
        # topics earlier than the other brokers.
        results: Results = {} if args.yes else _missing(client, args.topic)
        _tell_errors(results)
        found = [name for name in args.topic if name not in results]
        if found:
            if not agreed(args, _doomed(client, found), ["topic", "partitions", "offsets"]):
                return int(bool(results) or not args.dry_run)
            deleted = client.delete_topics(found)
            _tell_errors(deleted)
            results |= deleted
    if args.json:
        print_json([{"topic": name, "deleted": results[name] is None} for name in results])
    else:
        for name in (name for name, error in results.items() if error is None):
            print(f"deleted {name}")
    return 1 if any(results.values()) else 0


def _missing(client: Client, names: list[str]) -> Results:
    topics, code = client.metadata(names).topics, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return {
        name: KafkaError(code, f"there is no topic {name}")
        for name in names
        if name not in topics or topics[name].error is code
    }


def _tell_errors(results: Results) -> None:
    for name, error in results.items():
        if error is not None:
            sys.stderr.write(f"skidway topics: {name}: {error}\n")


def _doomed(client: Client, names: list[str]) -> list[dict[str, Any]]:
    """Returns one row for each topic that would be deleted. The column `offsets` has the number of
    offsets between log start and log end, summed over all partitions, or None if it is unknown."""
    found = client.metadata(names).topics
    rows = []
    for name in names:
        topic = found.get(name)
        partitions = () if topic is None else topic.partitions
        tps = [TopicPartition(name, each.index) for each in partitions]
        rows.append({"topic": name, "partitions": len(tps), "offsets": _held(client, tps)})
    return rows


def _held(client: Client, partitions: list[TopicPartition]) -> int | None:
    try:
        first, unknown = client.list_offsets_now(dict.fromkeys(partitions, EARLIEST))
        end, ends_unknown = client.list_offsets_now(
            dict.fromkeys(partitions, LATEST), READ_UNCOMMITTED
        )
    except BrokerUnreachable:
        return None
    if unknown or ends_unknown:
        return None
    return sum(end[tp].offset - first[tp].offset for tp in partitions)


def _tell(document: dict[str, Any], words: str, args: argparse.Namespace) -> None:
    if args.json:
        print_json(document)
    else:
        print(words)


def _alter(args: argparse.Namespace) -> int:
    changes = ConfigChanges(
        _pairs(args.topic_config),
        tuple(args.delete_config),
        _pairs(args.append_config, "--append-config"),
        _pairs(args.subtract_config, "--subtract-config"),
    )
    wants_configs = changes != ConfigChanges()
    if not wants_configs and args.partitions is None:
        raise UsageError("say what to alter: --partitions or one of the --*-config options")
    only = args.validate_only
    with connect(args) as client:
        existing(client, [args.topic])
        error = None
        if wants_configs:
            error = client.alter_configs(args.topic, changes, validate_only=only)
        if error is None and args.partitions is not None:
            counts = {args.topic: args.partitions}
            error = client.create_partitions(counts, validate_only=only)[args.topic]
        if error is not None:
            raise error
        if args.partitions is not None and not only:
            _wait_until_known(client, args.topic, args.partitions)
    words = f"{args.topic} can be altered like this" if only else f"altered {args.topic}"
    _tell({"topic": args.topic, "altered": not only}, words, args)
    return 0


def _describe(args: argparse.Namespace) -> int:
    with connect(args) as client:
        sizes = _sizes(client)
        errors: dict[TopicPartition, KafkaError] = {}
        topics = existing(client, args.topic)
        documents = [_document(client, topic, sizes, errors) for topic in topics]
    _show(documents, args)
    for error in errors.values():
        sys.stderr.write(f"skidway topics: {error}\n")
    return 1 if errors else 0


def _show(documents: list[dict[str, Any]], args: argparse.Namespace) -> None:
    if args.json:
        print_json(documents)
        return
    for number, document in enumerate(documents):
        if number:
            print()
        print(f"{document['topic']}  (id {document['topic_id'] or 'unknown'})")
        for key, value in document["configs"].items():
            source = document["config_sources"][key]
            is_own = source == ConfigSource.TOPIC_CONFIG.name
            if args.all or is_own or (value and key.startswith(CONFIGS_SHOWN)):
                print(f"  {key} = {value}  ({SOURCES.get(source, source.lower())})")
        if document["partitions"]:
            table(document["partitions"], list(document["partitions"][0]))
        else:
            print("  its partitions are not known: the broker does not name them as 0, 1, 2 ...")


def connect(args: argparse.Namespace) -> Client:
    """Returns a client for one command, with short timeouts, because a person is waiting."""
    return connection(args).client()


def existing(client: Client, names: list[str]) -> list[TopicMetadata]:
    """Returns the topics with these names. Raises KafkaError for the first topic that does not
    exist or has another error."""
    topics = client.metadata(names).topics
    for name in names:
        topic = topics.get(name)
        code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if topic is None else topic.error
        if code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            how = f"there is no topic {name}; make it with: skidway topics create {name}"
            raise KafkaError(code, how)
        if code is not ErrorCode.NONE:
            raise error_for(code, f"topic {name}")
    return [topics[name] for name in names]


def _sizes(client: Client) -> dict[tuple[int, TopicPartition], tuple[int, str]] | None:
    found = {}
    for broker in client.metadata(()).brokers.values():
        try:
            directories = client.log_dirs(broker)
        except (KafkaError, BrokerUnreachable):  # perhaps this client may not see them
            return None
        for directory in directories:
            for tp, size_bytes in directory.partition_bytes.items():
                found[broker.id, tp] = size_bytes, directory.path
    return found


def _document(
    client: Client,
    topic: TopicMetadata,
    sizes: dict[tuple[int, TopicPartition], tuple[int, str]] | None,
    errors: dict[TopicPartition, KafkaError],
) -> dict[str, Any]:
    """Returns the description of a topic as a JSON object. If the offsets of a partition are
    unknown, adds the partition's error to `errors`."""
    partitions = [TopicPartition(topic.name, each.index) for each in topic.partitions]
    first, refused = client.list_offsets_now(dict.fromkeys(partitions, EARLIEST))
    end, ends_refused = client.list_offsets_now(dict.fromkeys(partitions, LATEST), READ_UNCOMMITTED)
    errors.update(refused | ends_refused)
    entries = client.config_entries(topic.name)
    rows = []
    for each, tp in zip(topic.partitions, partitions, strict=True):
        size_bytes, directory = (sizes or {}).get((each.leader, tp), (None, None))
        rows.append(
            {
                "partition": each.index,
                "leader": each.leader,
                "leader_epoch": each.leader_epoch,
                "replicas": list(each.replicas),
                "isr": list(each.isr),
                "log_start_offset": first[tp].offset if tp in first else None,
                "high_watermark": end[tp].offset if tp in end else None,
                "size_bytes": size_bytes,
                "log_dir": directory,
            }
        )
    return {
        "topic": topic.name,
        "topic_id": topic.topic_id.hex if topic.topic_id is not None else None,
        "configs": {each.name: each.value for each in entries if each.value is not None},
        "config_sources": {each.name: each.source.name for each in entries},
        "partitions": rows,
    }


def _pairs(texts: list[str], option: str = "--topic-config") -> dict[str, str]:
    pairs = {}
    for text in texts:
        key, equals, value = text.partition("=")
        if not equals or not key:
            raise UsageError(f"{option} {text}: it must be KEY=VALUE")
        pairs[key] = value
    return pairs
