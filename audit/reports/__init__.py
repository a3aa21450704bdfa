"""Answers in the forms for people and programs: a sentence, a table, JSON.

report          verdicts on buckets, and the exit status of `skidway audit report`
recount_report  the result of a recount
clock_report    wrong clocks
host_report     the state of hosts, and the proofs of `skidway audit wait`
"""
