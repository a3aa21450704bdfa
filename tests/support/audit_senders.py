"""Topics and senders that most unit tests of the audit use."""

from skidway.audit.topic.messages import Sender, Tier
from skidway.kafka.source import Source

LOGS = Source("dc1", "cid", "logs", "tid")
OTHER = Source("dc1", "cid", "other", "oid")
REJECTED = Source("dc1", "cid", "logs.rejected", "rid")
AGENT = Sender(Tier.AGENT, "dc1", "7", "web1", 1)
BROKER = Sender(Tier.BROKER, "dc1", "broker-dc1", "c1", 1)
