"""The collector, `skidway audit run`: follows the audit topics, judges buckets, shows verdicts.

roster_file  the roster's file, read again when it changes
judge        judges every bucket again and again, in bounded memory and time
web          the dashboard, its pages and its JSON
collector    the loop that collects, and the server beside it
"""
