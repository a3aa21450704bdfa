"""The audit: sums that every tier commits together with its progress, and what they prove.

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

A tier's message has the key (tier, producer, epoch, number); the same key always has the same
content, so messages may come in any order and more than once, and a missing one is seen. A delta
holds per (source topic, agent, bucket of event time) count, bytes and an order-independent checksum
of record origins. A bucket is complete when no message is missing, every expected agent has sealed
it, and all tiers' sums are equal; it can be open, incomplete, lost or unknown, always with reasons
in words. docs/delivery.md, sections 5 and 6, has the rules and why each is there.

Reading order: bucket, checksum, marks, decisions, recount_result, messages, counts, deltas (what is
counted and said); rereading, hearing, overlaps, evidence, topics (which are meant by names and
patterns), roster, retired_places, verdict, clocks, newest_agents, expectation, doublings, reasons,
counting_places, rejects, reconcile, standing (what follows from it, pure); hosts, waiting (the
same, host by host, pure), sender_states, accepting (what a person can accept); ledger,
ledger_evidence (the same kept in SQLite); topic, publisher (how it travels); continuity,
counter_state, counter, counter_program (a tier's counter); collection, roster_file, judging,
collector, web, report, host_report, clock_report (who reads it); output (the loader's, to be read),
manifests, faults, row_files, listing, recount (the second way to the verdict; recount_report is
what it says), settings, database (SQLite as used here), and the command line: cli and commands.
Everything that decides is free of I/O. Agent and loader import this package, never the other way
around.
"""
