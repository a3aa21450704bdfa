"""Consumer groups of stock clients: who is in them, who reads what, how far they have read.

    limits          what bounds groups
    member          one member; which protocol a group's members agree on
    outcomes        what the state machine returns: answers, and what to store
    record          a group as it is stored
    roster          who is in a group
    admission       who may join a group
    join_window     how long a rebalance waits for members
    group           the state machine: pure, no I/O, no clock
    subscription    the topics in a consumer's metadata
    job_queue       reads and writes for ZooKeeper, batched into jobs
    cache           committed offsets of groups with members
    hosting         the groups in memory: read, stored, timed, forgotten
    offsets         what groups have committed
    coordinator     the members' requests
    administration  the administrators' requests: list, describe, delete
    retention       expiring the offsets of groups without members

Members, generations and deadlines live in the loop's memory. What must survive a crash is written
to ZooKeeper (`coordination.consumers` has the layout) before anybody is told of it:

* A generation is stored with its assignments before the first member gets its assignment. After a
  restart the members of the last stored generation go on with heartbeats and commits as if nothing
  had happened; members that were joining get UNKNOWN_MEMBER_ID and join again. A generation never
  has two assignments, and a commit from an older generation than the group's is refused.
* A commit is answered when its transaction is done. Offsets are stored in the nodes of Kafka 0.8,
  which Skidway's own consumers also use. So a group can change from stock clients to Skidway's own
  consumers or back, and reads on where it had stopped.
* A group has members of one of these two kinds at a time. Skidway's own consumers
  (`skidway.consumer`) register in ZooKeeper. The transaction that registers a consumer fails while
  a generation with members is stored. The transaction that stores a generation with members fails
  while a consumer is registered. Each of the two transactions writes to the node that the other one
  checks. So if both come at the same moment, one of them is refused: stock clients get
  INCONSISTENT_GROUP_PROTOCOL, Skidway's own consumers `GroupCoordinated`.

Everything is bounded: members and their bytes per group, groups in memory, ids given out, requests
that wait for a group to be read, offsets that wait for ZooKeeper.
"""
