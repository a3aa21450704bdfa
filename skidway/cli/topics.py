"""`skidway topics list|create|describe|delete`, against our broker and Apache Kafka alike."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from skidway.cli.options import add_bootstrap_option, add_json_option
from skidway.cli.output import print_json, print_rows, table
from skidway.errors import UsageError
from skidway.kafka.client import EARLIEST, LATEST, Client, NewTopic, Topic
from skidway.kafka.errors import ErrorCode, KafkaError, error_for
from skidway.kafka.types import TopicPartition

REQUEST_TIMEOUT_MS = 10_000
CONFIGS_SHOWN = ("retention.", "segment.", "max.message.bytes", "message.timestamp.", "mirror.")
"""Beginnings of the settings that a table has room for; --json has them all."""


def register(subparsers: Any) -> None:
    """Adds the noun `topics`."""
    parser = subparsers.add_parser("topics", help="list, create, describe and delete topics")
    verbs = parser.add_subparsers(dest="verb", metavar="VERB")
    listing = _verb(verbs, "list", _list, "every topic with its partitions")
    add_json_option(listing)
    create = _verb(verbs, "create", _create, "make a topic")
    create.add_argument("topic", metavar="TOPIC")
    create.add_argument("--partitions", type=int, default=-1, metavar="N", help="else the broker's")
    create.add_argument("--replication-factor", type=int, default=-1, metavar="N")
    create.add_argument(
        "--topic-config", action="append", default=[], metavar="KEY=VALUE", help="may be repeated"
    )
    create.add_argument("--if-not-exists", action="store_true", help="good if it is there already")
    describe = _verb(verbs, "describe", _describe, "partitions, leaders, offsets and settings")
    describe.add_argument("topic", metavar="TOPIC", nargs="+")
    add_json_option(describe)
    delete = _verb(verbs, "delete", _delete, "delete topics with all their records")
    delete.add_argument("topic", metavar="TOPIC", nargs="+")


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
    if error is None:
        print(f"created {args.topic}")
    elif error.code is ErrorCode.TOPIC_ALREADY_EXISTS and args.if_not_exists:
        print(f"{args.topic} exists already")
    else:
        raise error
    return 0


def _delete(args: argparse.Namespace) -> int:
    with connect(args) as client:
        results = client.delete_topics(args.topic)
    for name, error in results.items():
        if error is None:
            print(f"deleted {name}")
        else:
            sys.stderr.write(f"skidway topics: {name}: {error}\n")
    return 1 if any(results.values()) else 0


def _describe(args: argparse.Namespace) -> int:
    with connect(args) as client:
        documents = [_document(client, topic) for topic in existing(client, args.topic)]
    if args.json:
        print_json(documents)
        return 0
    for number, document in enumerate(documents):
        if number:
            print()
        print(f"{document['topic']}  (id {document['topic_id'] or 'unknown'})")
        for key, value in document["configs"].items():
            if value and key.startswith(CONFIGS_SHOWN):
                print(f"  {key} = {value}")
        table(document["partitions"], list(document["partitions"][0]))
    return 0


def connect(args: argparse.Namespace) -> Client:
    """A client for one command: people wait less long than programs do."""
    return Client(args.bootstrap_server, request_timeout_ms=REQUEST_TIMEOUT_MS)


def existing(client: Client, names: list[str]) -> list[Topic]:
    """The topics of these names. Raises KafkaError for the first that does not exist."""
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


def _document(client: Client, topic: Topic) -> dict[str, Any]:
    partitions = [TopicPartition(topic.name, each.index) for each in topic.partitions]
    first = client.list_offsets(dict.fromkeys(partitions, EARLIEST))
    end = client.list_offsets(dict.fromkeys(partitions, LATEST))
    return {
        "topic": topic.name,
        "topic_id": topic.topic_id.hex if topic.topic_id is not None else None,
        "configs": client.topic_configs([topic.name])[topic.name],
        "partitions": [
            {
                "partition": each.index,
                "leader": each.leader,
                "leader_epoch": each.leader_epoch,
                "replicas": list(each.replicas),
                "isr": list(each.isr),
                "log_start_offset": first[tp].offset,
                "high_watermark": end[tp].offset,
            }
            for each, tp in zip(topic.partitions, partitions, strict=True)
        ],
    }


def _pairs(texts: list[str]) -> dict[str, str]:
    pairs = {}
    for text in texts:
        key, equals, value = text.partition("=")
        if not equals or not key:
            raise UsageError(f"--topic-config {text}: it must be KEY=VALUE")
        pairs[key] = value
    return pairs
