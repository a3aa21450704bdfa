"""A tier's counter, the program `skidway audit count`: counts a cluster's log.

continuity  each batch begins where the one before ended, or at the end of a named gap
state       offsets, marks, chains and outbox, in one SQLite database
counter     counts what was fetched, and commits deltas together with the progress
program     the loop around it
"""
