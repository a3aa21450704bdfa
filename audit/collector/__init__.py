"""The collector, `skidway audit run`, follows the audit topics, judges buckets and shows verdicts.

roster_file    reads the roster's file, and reads it again when it changes
topic_buckets  the last verdict on each bucket of a topic, and what it depends on
judge          judges what changed, in steps of bounded time
judging_times  when the next step begins: at the moment at which buckets become due
editions       what the collector knew after one step, from which all answers are made
pruning        finds old buckets that the store need not keep
history, history_store, history_answers    since when buckets have their verdicts, and why:
    `history` decides what to note, `history_store` stores it, `history_answers` answers requests
arrivals       when each tier first had all records of a bucket
reject_examples    for each topic, on a thread of its own: reads the text of one line that an agent
    rejected and of one record that the loader rejected
loader_rejects     finds the record that the loader rejected, and reads it
risks          bytes and records that are not safe yet, and when they will be lost
hours          answers programs that wait until all data of an hour is complete
addresses      where the further parts of large answers are
pages          what the dashboard's pages show, as plain values
web            the dashboard: routes, HTML, JSON and CSV
metrics        the metrics that /metrics serves
collector      the loop that collects messages, and the web server
"""
