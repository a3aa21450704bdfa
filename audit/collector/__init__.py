"""The collector, `skidway audit run`, follows the audit topics, judges buckets and shows verdicts.

roster_file    reads the roster's file, and reads it again when it changes
topic_buckets  the last verdict on each bucket of a topic, and the facts on which the verdict
    depends
judge          judges the buckets whose verdict may have changed, in steps of bounded time
judging_times  when the next step begins: if possible, when buckets become due (old enough for a
    final verdict)
editions       an edition is what the collector knew after one step; all answers are made from
               editions
pruning        finds old buckets that the store need not keep
history, history_store, history_answers    since when buckets have their verdicts, and why:
    `history` decides which verdicts to store, `history_store` stores them, `history_answers`
    answers requests
arrivals       when each tier first had all records of a bucket
reject_examples    on a thread of its own, reads for each topic the text of one line that an agent
    rejected, and of one record that the loader rejected
loader_rejects     finds a record that the loader rejected, and reads it
risks          bytes that only a host has, records that only the first tiers have, and when they
    will be lost
hours          answers programs that wait until all data of an hour is complete
addresses      the addresses (URLs) of the further parts of large answers
pages          what the dashboard's pages show, as plain values
web            the dashboard: routes, HTML, JSON and CSV
metrics        the metrics that /metrics serves
collector      the loop that collects messages, and the web server
"""
