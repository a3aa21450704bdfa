"""The audit: every tier commits sums of its records together with its progress; the audit compares
these sums and judges whether records are missing.

    tiers        agent ----> broker ----> mirror ----> hdfs          (each counts what it committed)
                   |            |            |           |
                 deltas,      deltas       deltas      deltas        numbered, without holes
                 seals          |            |           |
                   v            v            v           v
    topic        _skidway_audit in every cluster, followed by mirrors
                                    |
    collector                    ledger (SQLite) ---> verdict per (source topic, agent, bucket)
                                                       |          |          |
                                                     report   dashboard   metrics

A message of a tier has the key (tier, producer, epoch, number). The same key always has the same
content, so messages may arrive in any order and more than once, and a missing message is noticed. A
delta holds count, bytes and an order-independent checksum of record origins for each (source topic,
agent, bucket of event time). A bucket is complete when no message is missing, every expected agent
has sealed the bucket, and the sums of all tiers are equal. Otherwise the bucket is open,
incomplete, lost or unknown, always with reasons in words. docs/delivery.md, sections 5 and 6, has
the rules and the reason for each.

Modules and packages, from the bottom up; imports go downwards only (`make imports` checks):

    database   SQLite as this package uses it
    output     the loader's output, local or in HDFS, for reading
    topic      the audit topic: its messages, and how they are published and read
    counts     what is counted: buckets, checksums, marks, sums, deltas
    evidence   what all messages together say, kept in SQLite: the ledger
    judgement  what follows from the evidence: verdicts, hosts, clocks, what a person can accept
    recount    the second way to the verdict: counts the loader's rows itself
    settings   settings of counters, collector and commands
    reports    answers as people and programs read them
    counter    a tier's counter
    collector  the collector and its dashboard
    commands   commands that query the audit
    cli        `skidway audit`

Everything that decides is free of I/O. Agent and loader import this package, never the other way
around.
"""
