"""What this broker reads from and writes to ZooKeeper, in Kafka's layout.

    /cluster/id                                {"version": "1", "id": "<22 characters>"}
    /brokers/ids/<id>                          ephemeral: endpoints, and our directory id
    /brokers/topics/<topic>                    {"version": 3, "topic_id": ..., "partitions": ...}
    /brokers/topics/<topic>/partitions/<n>/state
                                               {"leader", "leader_epoch", "isr", ...}
    /config/topics/<topic>                     {"version": 1, "config": {...}}
    /admin/delete_topics/<topic>               the topic is being deleted
    /consumers/<group>/...                     committed offsets, generations: see `consumers`
    /controller                                ephemeral: the broker that clients ask for new topics
    /latest_producer_id_block                  {"block_start", "block_end", ...}

    documents     paths and contents
    consumers     the contents of committed offsets
    answers       waiting for kazoo's answers; a timeout becomes `Unreachable`
    stored_groups groups in ZooKeeper: read, listed, deleted
    ledger        writes of groups: generations, committed offsets
    store         the other operations, blocking
    reassignment  a partition's assignment and state, read and changed together
    reader        the catalog; reads again only what has changed, as the watches tell
    session       the thread that does all of it, and what happens when the session is lost
    producer_ids  ids from the block that this broker owns

Only the session's thread talks to ZooKeeper, so the loop never waits for it: the loop hands over a
job, and the session posts the outcome back. While ZooKeeper is away, no job is accepted, and
requests that need a job get an error on which clients try again. The catalog stays unchanged
meanwhile, so produce and fetch go on.

A write is conditional: it creates a node only if the node is absent, or changes it only if it has
the version that was read. So if two brokers do the same thing at the same time, it is done once.
The end of a deletion removes a topic's nodes, and last the mark in /admin/delete_topics, in
transactions that fail if the mark is gone.

Committed offsets are written whatever was there before, and the last commit wins. In a group of
Kafka clients only the group's coordinator writes them. If an old coordinator's commit comes late,
consumers may read records again.
"""
