"""Consumer groups of stock clients: who is in them, who reads what, how far they have read.

    limits          what bounds groups
    member          one member; which protocol a group's members agree on
    outcomes        what the state machine says
    record          a group as it is stored
    roster          who is in a group
    admission       who may join it
    join_window     how long a rebalance waits for members
    group           the state machine: pure, no I/O, no clock
    subscription    the topics in a consumer's metadata
    job_queue       what is wanted of ZooKeeper, gathered into jobs
    cache           committed offsets of groups with members
    hosting         the groups in memory: read, stored, timed, forgotten
    offsets         what groups have committed
    coordinator     what members ask
    administration  groups listed, described and deleted
    retention       offsets of groups that nobody is in go after a while

Members, generations and deadlines live in the loop's memory. What must survive is in ZooKeeper
(`coordination.consumers` has the layout) before anybody is told of it:

* A generation with its assignments is stored before the first member gets its assignment. After a
  restart the members of the last stored generation go on with heartbeats and commits as if nothing
  had been; those that were joining are told that they are not known, and join again. A generation
  never has two assignments, and a commit of an older one than the group's is refused.
* A commit is answered when its transaction is done. The nodes are those of Kafka 0.8, which our own
  consumers use too: a group can change from one kind to the other and goes on where it was.
* A group has members of one kind at a time. Who registers in ZooKeeper (`skidway.consumer`)
  does so in a transaction that fails while a generation with members is stored; a generation with
  members is stored in one that fails while somebody is registered. Each writes to what the other
  looks at, so of two at the same moment one is refused: stock clients with
  INCONSISTENT_GROUP_PROTOCOL, ours with `GroupCoordinated`.

Everything is bounded: members and their bytes per group, groups in memory, ids given out, requests
that wait for a group to be read, offsets that wait for ZooKeeper.
"""
