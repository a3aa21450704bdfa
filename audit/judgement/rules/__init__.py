"""The larger rules of a bucket's verdict, one module for each rule. The module topic_judgement has
the other rules, for example the rule about expected hosts. The rules do no I/O.

Most rules yield findings on one agent's part of a bucket. A finding is a reason why the bucket is
not complete. The rule `rejects` yields warnings about a whole bucket. Most rules take their facts
from topic_facts:

    topic_facts     the evidence of one topic, and what the audit expects of it
    sender_numbers  missing messages: holes in the message numbers of a sender, or in the deltas of
                    a bucket
    epochs          buckets that are in doubt because an agent began a new epoch
    doublings       lines that two agents may both have delivered
    losses          lines that an agent declared lost
    seals           whether the agent has sealed the bucket
    without_origin  records that no agent seals
    equation        whether every tier has counted the same records
    rejects         whether too many records were rejected; only warns
"""
