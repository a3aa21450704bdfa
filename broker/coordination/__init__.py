"""What this broker reads from ZooKeeper and writes to it, in Kafka's layout of nodes.

    /cluster/id                                {"version": "1", "id": "<22 characters>"}
    /brokers/ids/<id>                          ephemeral: endpoints, and Skidway's directory id
    /brokers/topics/<topic>                    {"version": 3, "topic_id": ..., "partitions": ...}
    /brokers/topics/<topic>/partitions/<n>/state
                                               {"leader", "leader_epoch", "isr", ...}
    /config/topics/<topic>                     {"version": 1, "config": {...}}
    /config/users/<user>                       the same: credentials for SCRAM
    /kafka-acl..., see `access_documents`      rules of access control
    /admin/delete_topics/<topic>               the topic is being deleted
    /consumers/<group>/...                     committed offsets, generations: see `consumers`
    /controller                                ephemeral: the broker to which clients send requests
                                               to create topics
    /producer_id_numbers                       {"block_start", "block_end", ...}
    /producer_id_key                           {"key": ...}; see `log.producer_id` for both

    documents     the paths of the nodes, and their contents
    consumers     the content of a node that stores a committed offset
    answers       waits for kazoo's answers; raises `Unreachable` after a timeout
    stored_groups reads, lists and deletes groups in ZooKeeper
    ledger        writes what is stored about groups: generations and committed offsets
    store         the other operations, such as creating a topic; each waits for ZooKeeper
    reassignment  reads and changes a partition's assignment and state together
    watched_nodes nodes that are read again when they have changed, as ZooKeeper's watches report
    reader        reads the catalog (the cluster's brokers and topics): at first all of it, and
                  later only the nodes that have changed
    access_documents  the nodes of users and rules
    access_store  changes users and rules
    access_reader reads users and rules, as `reader` the catalog
    session       the thread that carries out all operations; registers the broker again after the
                  session was lost
    producer_ids  assigns producer ids with the numbers of the block that this broker owns

While the broker runs, only the session's thread waits for ZooKeeper's answers, and the broker's
event loop never does: the loop submits a job to the session, and the session posts the outcome to
the loop. While ZooKeeper cannot be reached, the session accepts no job. Requests that need a job
then get an error after which clients try again. The broker keeps its last catalog during this time,
so it still serves produce and fetch requests.

Most writes are conditional: they create a node only if it does not exist, or change a node only if
it still has the version that was read. So if two brokers make the same change at the same time, the
change is made only once. At the end of a topic's deletion, the broker removes the topic's nodes,
and after them the node in /admin/delete_topics. All these removals are in transactions that fail if
the node in /admin/delete_topics is already gone.

Writes of committed offsets are not conditional: each write replaces the offset that was written
before. In a group of Kafka clients only the group's coordinator writes committed offsets. If a
write of a previous coordinator reaches ZooKeeper late, it may replace a higher offset, and
consumers may read records again.
"""
