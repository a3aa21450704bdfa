"""Counts records by source topic, agent and bucket of event time, each record once.

topic_patterns  which topics a configuration chooses, by names and patterns
bucket          windows of event time
checksum        the order-independent checksum of record origins
marks           up to which byte of each file the records are counted, to recognize repeats
counts          count, bytes and checksum per bucket
deltas          the counts as numbered messages, chained bucket by bucket
"""
