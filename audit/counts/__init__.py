"""Counts records by source topic, agent and bucket of event time, each record once.

topic_patterns  which topics a configuration means, by names and patterns
bucket          windows of event time
checksum        the order-independent checksum of record origins
marks           how far each file's bytes are counted, to recognize repeated records
counts          count, bytes and checksum per bucket
deltas          the counts as numbered messages, chained bucket by bucket
"""
