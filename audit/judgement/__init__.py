"""The judgement makes verdicts from the evidence, without I/O. The rules are in docs/delivery.md,
section 6. A *place* is a cluster or an output in which a tier counted. A *finding* is one reason
why a bucket is not complete. A *remark* is a finding that makes no verdict worse. A *warning* is a
fact that an operator should know although the bucket may be complete.

These modules say what the audit expects:

    roster            the hosts that must report, and the hosts that are retired
    retired_places    the places for whose counts the audit no longer waits
    policy            the tiers that the audit expects for each topic, and how long the audit waits
    clocks            which clock is wrong: the audit's clock, or a sender's clock
    newest_agents     which agents of a host the audit waits for
    expectation       which agents must seal a topic, and which others may have unread lines

These modules judge a bucket:

    cause             all causes why a bucket can be incomplete, as a fixed set
    verdict           statuses, findings, and the verdict on a bucket
    reasons           findings as sentences
    counting_places   which senders count a topic in which places
    rules             the larger ones of the rules that keep a bucket from being complete, one
                      module for each; the others are in topic_judgement
    agent_columns     the agents of a topic, as columns
    bucket_columns    the rules, applied to all agents of a bucket at once
    verdicts_of_agents  the verdicts on single agents, made only when they are read
    topic_judgement   the verdict on each bucket of a topic
    dependence        the evidence on which a topic's verdicts depend, so that only buckets whose
                      evidence has changed are judged again

These modules use verdicts and evidence:

    standing          the result of all verdicts together, topic by topic
    refusals          whose messages are refused, so that nothing is heard of them
    hosts             the state of each host, by the messages of its agents
    completeness      whether all buckets of a topic in a span of time are complete
    fileless          sources of which no file was ever found
    host_proofs       whether hosts are proven healthy since a given time
    sender_states     which senders are good, silent, late or retired; no verdict depends on this
                      state
    acceptances       which findings a person can accept, and which messages a person can disown
"""
