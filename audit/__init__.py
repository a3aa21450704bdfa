"""The audit judges whether records are missing. Every tier commits its progress together with sums
over its records, and the audit compares the sums of the tiers.

    tiers        agent ----> broker ----> mirror ----> hdfs          (each counts what it committed)
                   |            |            |           |
                 deltas,      deltas       deltas      deltas        numbered, without gaps
                 seals          |            |           |
                   v            v            v           v
    topic        _skidway_audit in every cluster; mirrors copy it
                                    |
    collector                    ledger (SQLite) ---> verdict per (source topic, agent, bucket)
                                                       |          |          |
                                                     report   dashboard   metrics

A program of a tier numbers its messages. The key of a message is (tier, producer, epoch, number).
`producer` is the name of the program. A new `epoch` begins, for example, when the program starts
again without its old state. A program never gives one key to two messages with different contents.
So the audit recognizes a repeated message by its key, and messages may arrive in any order and more
than once. The audit notices a missing message by a gap in the numbers. A delta is a message with
counts: for each (source topic, agent, bucket of event time), it contains the number of records,
their bytes, and a checksum of their origins. The checksum does not depend on the order of the
records. With a seal, an agent states that its deltas contain the counts of all lines that its files
had at a given time. A bucket is complete when no message is missing, every expected agent has
sealed the bucket, and the sums of all tiers are equal. The verdict on any other bucket is open,
incomplete, lost or unknown, and gives its reasons as sentences. A *source topic* is the topic to
which a record was first published; its mirrored copies belong to the same source topic. A *sender*
is a program that sends numbered messages: an agent, a counter or a loader. Sections 5 and 6 of
docs/delivery.md give the rules and their reasons.

These are the modules and packages, lowest first. Each of them may import only modules and packages
that come earlier in this list (`make imports` checks this):

    signing    who has sent a message: identities, keys and signatures
    database   opens SQLite databases, durable at every commit
    output     reads the loader's output, local or in HDFS; decides which type a field has in the
               output's Parquet files
    topic      the audit topic: its messages, and how they are published and read
    counts     how records are counted: buckets, checksums, sums, deltas, and marks that exclude
               repeats
    evidence   the content of all messages together; the ledger stores it in SQLite
    judgement  judges the evidence: verdicts, hosts, clocks, findings that an operator can accept
    recount    counts the rows in the loader's files: a second, independent way to a verdict
    settings   settings of counters, collector and commands
    comparison compares log files with the records that another log shipper has sent
    tracing    follows single lines through the tiers
    reports    formats answers as text for people and as JSON for programs
    explanation  says why a bucket is not complete, where, and what to do next
    counter    counts the records of a cluster's topics, for the tier broker or mirror
    collector  the collector and its dashboard
    commands   the commands of people: they query the audit, and publish decisions and results
    cli        the command `skidway audit`

Decisions and I/O are in separate modules. Agent and loader import this package; this package never
imports them.
"""
