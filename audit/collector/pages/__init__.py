"""What the dashboard's pages show. For each page, a function without I/O makes a *view model*
(tables, a grid, sentences) from facts. The package web renders view models as HTML, JSON and CSV.

    facts       what all pages are made of: the verdicts, the evidence, the history
    words       verdicts, times, durations and sizes as people read them
    table       a table with a caption; pages show it, and JSON and CSV have the same rows
    pace        how long buckets take until they are complete, and how old the oldest bucket is that
                is not complete yet
    risk        bytes that only a host has, records that only the first tiers have, and hosts whose
                agents have sent no recent seal
    rejects     which share of a topic's lines was rejected, with an example
    grid        topics by time: minutes, hours or days
    overview    the first page: a summary of the modules above
    refused     the messages that the audit refused, for the page of hosts
    topics, hosts, loads, mirrors    a page each
    bucket      one bucket of a topic: the counts of the tiers, why it is not complete, what to do
                next, and its history
    search      finds topics, hosts, senders and reasons by text

The pages take verdicts from the standing (the last verdicts on all buckets), which the collector's
judging thread has made. Only two pages judge buckets themselves: the page of a bucket, and the list
of buckets. These pages judge at most PAGE_BUCKETS buckets of one topic, or the newest buckets of
all topics.
"""
