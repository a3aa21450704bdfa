"""The consumer for applications, as in the 2011 Kafka paper (section 3.2). The members of a group
coordinate through ZooKeeper. `from skidway.consumer import Consumer` is all that an application
needs (docs/client.md).

A member of a group is one `Consumer`. A member has one stream, or several streams for several
threads. The group divides the partitions among all streams, so each stream is called a reader of
the group.

Reading order:

    tree            asks the brokers for the ZooKeeper that they use
    nodes           paths and contents of a group's nodes, as in Kafka 0.8
    assignment      which reader of a group gets which partition: a pure function
    membership      what a reader does next: claims or releases a partition, or looks for members
    guard           makes each write happen at most once, even if answers are lost
    lease           how long a consumer can rely on its session with ZooKeeper
    reading         how far a partition's records were handed out, finished and committed
    registry        changes nodes in ZooKeeper: each claim, commit or release is one transaction
    registration    the session and its watches, shared by all streams of a consumer
    settings        the consumer's settings, with Kafka's names
    chunk           a record batch as records and as Arrow columns
    positions       the offset at which a reader begins in a partition
    share           a reader's part in the group: its claims and releases, its positions and commits
    reader          one reader at work: fetches records of its share, and hands them out
    stream          one reader, on the thread that iterates it
    consumer        the public interface
    administration  groups seen from outside: list, describe, reset

There is no master. Every member registers (as a node below `ids`), reads who else is registered,
and computes the assignment. All members compute the same assignment. A member reads a partition
only while the partition's owner node (below `owners`) names that member. A rebalance (a new
assignment) does not stop the members: partitions that keep their owner are read without a break. A
member releases a partition and commits its offset in one transaction. A member claims a partition
as soon as a watch reports that the old owner node is gone. If members compute different assignments
for a moment, the owner nodes decide who reads a partition.

Three rules keep a partition from having two readers:

* The owner itself creates and removes the owner node. If the owner's session has ended, ZooKeeper
  removes the node.
* Every claim, commit and release also writes to the member's registration node, in the same
  transaction. The transaction fails if the registration node is gone. Each session has a new
  registration, so every write of a lost session fails.
* Records are handed out only if ZooKeeper confirmed the registration less than three quarters of a
  session timeout ago (`lease`). If a program was stopped for longer than this time (for example by
  SIGSTOP), it asks ZooKeeper again before it hands out the next record.

Delivery is at least once. A record counts as done when the application asks for the next record.
Only the offsets of done records are committed. If the application is killed, some records are
delivered again: the record on which it was working, and the done records whose offsets were not
committed yet. With auto commit, if a member releases a partition and another claims it, no record
is delivered twice.

A stream does all its work on the thread that iterates it. So a partition changes its owner only
between two records: an application that works on one record for an hour keeps its partitions for
that hour. Only kazoo has threads of its own. A thread of kazoo only notes an event and wakes the
stream (`Bell`).
"""

from __future__ import annotations

from skidway.consumer.chunk import Record
from skidway.consumer.consumer import Consumer
from skidway.consumer.positions import NoOffset
from skidway.consumer.registry import GroupCoordinated
from skidway.consumer.settings import ConsumerSettings
from skidway.consumer.stream import NotOwned, Stream
from skidway.kafka.types import TopicPartition

__all__ = [
    "Consumer",
    "ConsumerSettings",
    "GroupCoordinated",
    "NoOffset",
    "NotOwned",
    "Record",
    "Stream",
    "TopicPartition",
]
