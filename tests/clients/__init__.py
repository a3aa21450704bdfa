"""Stock Kafka clients as small programs that do one step at a time and report its result.

Each of these programs (a driver) is started with the broker's address, and for TLS with a file of
authorities and perhaps either the files of a certificate and its key, or a mechanism, a user and a
password. It reads commands from
standard input, one JSON object a line: `{"do": "produce", "topic": ..., ...}`. It answers each
command with one line, `{"ok": {...}}` or `{"error": "..."}`. A driver only translates commands into
calls of its client; the assertions are in tests/conformance/stock_clients. The two drivers of
registry clients (node/*-registry.mjs) are started with the registry's URL and have commands of
their own; the assertions are in tests/conformance/registry.

Each line below has a command, its parameters, and what it does or returns. Records are objects with
partition, offset, timestamp, key, value and headers.

    version                                     version of the client library
    create     topic partitions                 create a topic
    describe   topic                            partitions: [0, 1, ...]
    topics                                      topics: [...], all topics of the cluster
    produce    topic codec acks idempotent records
    consume    topic partition offset count     records; the client assigns itself the partition
    offsets    topic partition                  first, end
    offset_at  topic partition timestamp        first offset at or after the timestamp, or -1
    delete     topic
    join       group topic                      become a member; auto.offset.reset is earliest
    poll       wait_ms                          records that came; assigned: the partitions of the
                                                member, or null if the client does not tell
    commit                                      commit the offsets of the records that poll has
                                                returned
    leave                                       leave the group

The driver of confluent-kafka also has the commands `committed` and `members`, with which tests look
at groups. If a client lacks a function, its driver lacks the command for this function;
`support.stock_clients` lists the missing commands of each client, with the reasons.
"""
