"""The consumer for applications, as in the 2011 Kafka paper (section 3.2): its groups coordinate
through ZooKeeper. `from skidway.consumer import Consumer` is all they need (docs/client.md).

Reading order:

    tree            the brokers' ZooKeeper, found by asking them
    nodes           paths and contents of a group's nodes, as in Kafka 0.8
    assignment      which reader of a group gets which partition: a pure function
    membership      what one reader does next: claim, release, look again
    guard           each write at most once, whatever answers are lost
    lease           how long we may trust our session with ZooKeeper
    reading         how far a partition was handed out, finished and committed
    registry        the nodes in ZooKeeper: claims, commits, releases, each one transaction
    registration    our session, shared by all streams of a consumer; its watches
    settings        Kafka's names
    chunk           a record batch as records and as Arrow columns
    positions       where to begin in a partition
    share           what a reader owns: its steps in the group, its positions and commits
    reader          one reader at work: it fetches its share, and hands it out
    stream          one reader, on the thread that iterates it
    consumer        the public face
    administration  groups seen from outside: list, describe, reset

There is no master. Every member registers (`ids`), sees who else is there, works out the same
assignment, and owns what it reads (`owners`): a partition is read only while its owner node is
ours. Nothing stops the world: a member reads on in the partitions that it keeps; it releases a
partition in the same transaction that commits its offset; it claims a partition as soon as the old
owner node is gone, which a watch reports. Where members see different views for a moment, the owner
nodes decide.

Three rules keep a partition from having two readers:

* An owner node is made and removed by its owner, or by ZooKeeper when the owner's session is over.
* Every claim, commit and release writes to our registration in the same transaction, and fails if
  that is gone. Each session has a new registration: after a lost session its writes must fail.
* Records are handed out only if the registration was seen within three quarters of the session
  timeout (`lease`). A program that was stopped for longer asks again before the next record.

Delivery is at least once. A record counts as done when the application asks for the next one, and
only done records are committed. So after a kill, the record in hand and the uncommitted ones come
again; an orderly change of owners repeats nothing.

A stream does all its work on the thread that iterates it, so a partition changes hands between two
records: an application that is busy with one for an hour keeps its partitions for an hour. Threads
exist for kazoo alone; they ring a bell and leave a note.
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
