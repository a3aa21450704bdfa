"""How a command reaches a Kafka cluster: with short timeouts, because a person waits."""

from __future__ import annotations

import argparse
from dataclasses import replace

from skidway.cli import profile
from skidway.cli.options import bootstrap_server
from skidway.kafka.connection import KafkaConnection
from skidway.kafka.security import NAMES


def connection(args: argparse.Namespace) -> KafkaConnection:
    """Returns the connection to the cluster that `bootstrap_server` names, with the security of the
    user's profile. Raises ConfigurationRefused."""
    return for_a_person(KafkaConnection(bootstrap_server(args), security=profile.read().security))


def for_a_person(kafka: KafkaConnection) -> KafkaConnection:
    """Returns the same connection with short timeouts."""
    return replace(kafka, request_timeout_ms=10_000, refused_timeout_ms=1_000)


def cluster_settings(args: argparse.Namespace) -> list[str]:
    """Returns the same as settings, KEY=VALUE, for a program that has none. Raises
    ConfigurationRefused."""
    security = connection(args).security
    given = {name: getattr(security, field) for name, field in NAMES.items()}
    words = [f"{name}={value}" for name, value in given.items() if value is not None]
    return [f"bootstrap.servers={bootstrap_server(args)}", *words]
