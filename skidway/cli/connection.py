"""How a command reaches a Kafka cluster: with short timeouts, because a person waits."""

from __future__ import annotations

import argparse
from dataclasses import replace

from skidway.cli.options import bootstrap_server
from skidway.kafka.connection import KafkaConnection


def connection(args: argparse.Namespace) -> KafkaConnection:
    """Returns the connection to the cluster that `bootstrap_server` names."""
    return for_a_person(KafkaConnection(bootstrap_server(args)))


def for_a_person(kafka: KafkaConnection) -> KafkaConnection:
    """Returns the same connection with short timeouts."""
    return replace(kafka, request_timeout_ms=10_000, refused_timeout_ms=1_000)
