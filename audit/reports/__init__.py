"""The audit's answers as sentences, as tables and as JSON.

The package has these modules:

    topic_names     the names of source topics, and which source topics a name matches
    report          verdicts on buckets, and the exit status of `skidway audit report`
    fieldless_report
                    members of lines for which a topic's schema has no field
    recount_report  the result of a recount
    clock_report    which senders have wrong clocks
    host_report     the state of hosts, and the result of `skidway audit wait`
    refused_report  refused and disowned messages
    source_remarks  sources without files, and paths that agents cannot read
    completeness_question
                    asks the ledger whether topics are complete
    completeness_report
                    whether topics are complete, for `skidway audit complete`
    history_report  the history of verdicts in words
    latencies       how long after the end of a bucket each place had all its records
"""
