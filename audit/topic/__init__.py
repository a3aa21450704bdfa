"""The audit topic of a cluster, `_skidway_audit`: what is said in it, and how that travels.

decisions       what people say to a verdict: acceptances, and places and hosts that are retired
recount_result  what a recount found
messages        deltas, seals, heartbeats, announcements, and the two above; as Avro and back
topic           making the topic, and reading values from it
publisher       numbered messages out of a durable outbox, in order; the newest one read back
"""
