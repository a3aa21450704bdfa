"""Counts records by source topic, agent and bucket of event time, each record once. A *delta* is a
numbered message with counts. A *mark* says up to which byte of a file the records are counted; a
record below the mark is a repeat, and a record that begins below the mark and ends above it is a
*straddle*.

topic_patterns  which topics a configuration chooses, by names and patterns
bucket          windows of event time
checksum        the order-independent checksum of record origins
marks           up to which byte of each file the records are counted, to recognize repeats
counts          count, bytes and checksum per bucket
deltas          the counts as numbered messages; each count names the bucket's previous delta
"""
