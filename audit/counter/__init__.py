"""The counter of a tier, the program `skidway audit count`, counts the records in a cluster's logs.

continuity  checks that each batch begins where the previous batch ended, or after a named gap
batch_runs  puts batches together that are counted at once
state       the durable state: offsets, marks, chains and outbox, in one SQLite database
counter     counts fetched records, and commits deltas together with the progress
program     runs the counter until it is told to stop
"""
