"""The collector, `skidway audit run`, follows the audit topics, judges buckets and shows verdicts.

roster_file  reads the roster's file, and reads it again when it changes
judge        judges every bucket again and again, in bounded memory and time
hours        answers programs that wait until all data of an hour is complete
web          the dashboard, its pages and its JSON
collector    the loop that collects messages, and the web server
history, history_store, history_answers    since when buckets have their verdicts, and why: decides,
    stores, answers
"""
