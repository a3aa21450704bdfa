"""The counter of a tier, the program `skidway audit count`, counts the records in a cluster's logs.

continuity  checks that each batch begins where the previous batch ended, or after offsets that are
            reported as missing
batch_runs  groups batches that are counted together
state       the durable state in one SQLite database: offsets, marks, message numbers, outbox
counter     counts fetched records, and commits the counts together with the progress
retentions  reports to the audit how long the brokers keep the records of the counted topics
program     runs the counter until a signal asks it to stop
"""
