"""Consumer groups of stock (standard Kafka) clients: their members, their assignments, and their
committed offsets.

    limits          the limits of groups
    member          one member of a group; chooses the protocol that all members of a group support
    outcomes        what a group's state machine gives to its caller: answers, and requests to store
                    the group
    record          a group as it is stored
    roster          the members of a group, and which of them is the leader
    admission       who may join a group
    join_window     how long a rebalance waits for members
    group           the state machine, without I/O and without a clock
    subscription    the topics in a consumer's metadata
    job_queue       gathers reads and writes for ZooKeeper into jobs
    cache           committed offsets of groups with members
    hosting         the groups in memory: reads and stores them, drops them from memory, and sets
                    their timers
    offsets         commits and reads the offsets of groups
    coordinator     handles the members' requests
    administration  handles the administrators' requests: list, describe, delete
    retention       deletes the old offsets of groups without members

Members, generations and deadlines are in the memory of the loop. Two things must survive a crash:
generations and commits. The broker writes them to ZooKeeper before any client gets an answer about
them. (`record` and `coordination.consumers` define the content of the nodes.) These are the rules:

* A generation is stored with its assignments before the first member gets its assignment. After a
  restart, the members of the last stored generation continue with heartbeats and commits, without a
  new join. Members whose join was not finished get UNKNOWN_MEMBER_ID and join again. So a
  generation never has two assignments. A commit from an older generation of the group is refused.
* A commit is answered when its transaction is done. Offsets are stored in the same nodes as in
  Kafka 0.8, which Skidway's own consumers also use. So a group can change from stock clients to
  Skidway's own consumers, or back. After the change the group continues to read where it had
  stopped.
* At any time, all members of a group are of the same kind: either stock clients or Skidway's own
  consumers. Skidway's own consumers (`skidway.consumer`) register in ZooKeeper. The transaction
  that registers a consumer fails while a generation with members is stored. The transaction that
  stores a generation with members fails while a consumer is registered. Each of the two
  transactions writes to a node that the other transaction checks. So if both are sent at the same
  moment, ZooKeeper refuses one of them. If the generation is refused, the stock clients get
  INCONSISTENT_GROUP_PROTOCOL. If the consumer is refused, it gets `GroupCoordinated`.

All memory is bounded. There are limits for the members of a group and their bytes, for the groups
in memory, and for the member ids that the broker has assigned. There are also limits for the
requests that wait until a group is read, and for the committed offsets that wait to be written to
ZooKeeper.
"""
