"""The counter, the program `skidway audit count`, counts the records in a cluster's topics for a
tier (broker or mirror).

continuity  checks that each batch begins where the previous batch ended; if it begins later, the
            offsets in between are reported as missing
batch_runs  groups batches of a partition, so that they are counted together
counted_topics  which topics are counted, and which are left out, and why
counted_until  up to when all records of the topics are counted
transactions  reports open transactions, and the number of aborted records
state       the durable state in one SQLite database: offsets, marks, message numbers, outbox
counter     counts fetched records, and commits the counts together with the progress
retentions  reports to the audit how long the brokers keep the records of the counted topics
brokers     asks the brokers of the cluster what they say about themselves, for the audit
program     runs the counter until a signal asks it to stop
"""
