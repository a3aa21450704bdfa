"""The audit judges whether records are missing. Every tier commits sums of its records together
with its progress, and the audit compares these sums.

    tiers        agent ----> broker ----> mirror ----> hdfs          (each counts what it committed)
                   |            |            |           |
                 deltas,      deltas       deltas      deltas        numbered, without holes
                 seals          |            |           |
                   v            v            v           v
    topic        _skidway_audit in every cluster; mirrors copy it
                                    |
    collector                    ledger (SQLite) ---> verdict per (source topic, agent, bucket)
                                                       |          |          |
                                                     report   dashboard   metrics

A message of a tier has the key (tier, producer, epoch, number). The same key always has the same
content, so messages may arrive in any order and more than once. The audit notices a missing message
by a gap in the numbers. A delta is a message with counts: for each (source topic, agent, bucket of
event time), it contains the number of records, their bytes, and a checksum of their origins that
does not depend on the order. With a seal, an agent states that deltas contain the counts of all
lines that its files had at a given time. A bucket is complete when no message is missing, every
expected agent has sealed the bucket, and the sums of all tiers are equal. Otherwise the verdict is
open, incomplete, lost or unknown, always with reasons as sentences. The rules, and the reason for
each rule, are in docs/delivery.md, sections 5 and 6.

These are the modules and packages, lowest first. Each of them may import only modules and packages
above it in this list (`make imports` checks this):

    database   opens SQLite databases, durable at every commit
    output     reads the loader's output, local or in HDFS
    topic      the audit topic: its messages, and how they are published and read
    counts     how records are counted: buckets, checksums, sums, deltas, and marks that exclude
               repeats
    evidence   the content of all messages together, kept in SQLite: the ledger
    judgement  judges the evidence: verdicts, hosts, clocks, findings that an operator can accept
    recount    counts the loader's rows itself, a second and independent way to a verdict
    settings   settings of counters, collector and commands
    reports    formats answers for people and for programs
    counter    counts a cluster's topics for a tier
    collector  the collector and its dashboard
    commands   commands that query the audit
    cli        the command `skidway audit`

Decisions and I/O are in separate modules. Agent and loader import this package; this package never
imports them.
"""
