"""The judgement makes verdicts from the evidence, without I/O. The rules are in docs/delivery.md,
section 6.

These modules say what the audit expects:

    roster            the hosts that must report
    retired_places    the places and hosts that the audit no longer waits for
    policy            what the audit expects, and how long it waits
    clocks            which clock is wrong: the audit's clock, or a sender's clock
    newest_agents     which agents of a host the audit waits for
    expectation       which agents must seal a topic, and which others may have unread lines

These modules judge a bucket:

    verdict           statuses, findings, and the verdict on a bucket
    reasons           findings as sentences
    counting_places   which senders count a topic in which places
    rules             one module for each rule that keeps a bucket from being complete
    topic_judgement   the verdict on each bucket of a topic

These modules use verdicts and evidence:

    standing          the result of all verdicts together, topic by topic
    hosts             the state of each host, by the messages of its agents
    completeness      whether all buckets of a topic in a span of time are complete
    host_proofs       whether hosts are proven healthy since a given time
    sender_states     which senders are good, silent, late or retired; no verdict depends on this
                      state
    acceptances       which findings a person can accept
"""
