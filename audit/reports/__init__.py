"""Answers in the forms for people and programs: a sentence, a table, JSON.

report          verdicts on buckets, and the exit status that goes with them recount_report  a
recount clock_report    clocks host_report     hosts, and the proofs of an upgrade's gate
"""
