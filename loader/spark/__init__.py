"""Spark: one session per run, one task per slice.

    runner        the driver's side: starts Spark at the first slice, runs slices
    task          the worker's side: one slice
    failures      what Spark and its tasks raise, as one sentence
    properties    Spark's properties, ours and the operator's
    scratch       Spark's directory for one run, deleted with it

An idle load starts no JVM. What Spark prints goes to a file and not to the terminal.
"""
