"""The audit topic of a cluster, `_skidway_audit`: its messages, and how they are sent and read.

decisions       what people decide about verdicts: acceptances, and retired places and hosts
recount_result  what a recount found
messages        deltas, seals, heartbeats, announcements, and the two above; to Avro and back
topic           makes the topic, and reads values from it
publisher       publishes messages from a durable outbox, in order; reads the newest one back
"""
