"""One run of `skidway load run`, on Spark's driver.

run              every chosen topic up to the watermarks at the start of the run
topic_run        one topic in one run: load after load
topic_load       one attempt at one load: plan, run, join, commit
group_offsets    tells the brokers how far is loaded
status           what is loaded, and what a run would load
textfile         what became of the last run, for Prometheus
"""
