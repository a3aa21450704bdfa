"""Publishes audit messages of others without a signature, as anybody can who reaches a broker: a
seal and a heartbeat of an agent, and a person's retirement of its cluster.

    forge.py BROKER AGENT HOST      an agent's id, and the host of this agent
"""

import sys
import time

from skidway.audit.topic import topic
from skidway.audit.topic.decisions import Retirement
from skidway.audit.topic.messages import TOPIC, Heartbeat, Seal, Sender, Tier, encode
from skidway.audit.topic.publisher import MemoryOutbox, Publisher
from skidway.audit.topic.seal_columns import SealedTopic
from skidway.clock import SystemClock
from skidway.kafka.client import Client, Producer
from skidway.kafka.source import Source
from skidway.kafka.types import TopicPartition

broker, agent, host = sys.argv[1:]
now_ms = int(time.time() * 1000)
later_ms = now_ms + 3_600_000
sender = Sender(Tier.AGENT, "dc1", agent, host, 1_000)
sealed = SealedTopic(Source("dc1", "", "nginx", ""), later_ms, 1)
forged = (
    Seal(sender, 2, later_ms, (sealed,)),
    Heartbeat(sender, 2, later_ms),
    Retirement(4711, now_ms, "mallory", "not mine", "cluster dc1"),
)
with Client(broker) as client:
    partition = topic.partition_of(agent, topic.ensure(client, time.sleep))
    outbox = MemoryOutbox([encode(each) for each in forged])
    publisher = Publisher(Producer(client), outbox, TopicPartition(TOPIC, partition), SystemClock())
    assert publisher.flush(30.0)
