"""Asks the brokers of the counter's cluster what they say about themselves. Brokers send nothing to
the audit, so the counter tells the audit what keeps them from their work."""

from __future__ import annotations

import json

from skidway import invocation, log
from skidway.audit.topic.messages import Tier
from skidway.audit.topic.program_status import CONFIG, BrokerStatus, ProgramStatus, broker_of
from skidway.errors import Unreachable
from skidway.kafka.client import Client
from skidway.kafka.errors import KafkaError

_log = log.get(__name__)


def status_with_brokers(client: Client, tier: Tier) -> ProgramStatus | None:
    """Returns the status of this process, a counter of this tier, with that of each broker that
    answers. Returns None if the cluster does not answer. Brokers of Apache Kafka say nothing about
    themselves."""
    try:
        told = client.config_of_brokers(CONFIG)
    except (KafkaError, Unreachable) as error:
        _log.warning("brokers_not_asked", reason=str(error))
        return None
    brokers = tuple(_broker(address, text) for address, text in told.items())
    return ProgramStatus(invocation.of_this_process(), brokers=brokers, tier=tier.value)


def _broker(address: str, text: str) -> BrokerStatus:
    try:
        document = json.loads(text)
    except ValueError:
        document = None
    return broker_of(address, document if isinstance(document, dict) else {})
