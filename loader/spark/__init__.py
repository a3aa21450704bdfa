"""Spark: one session per run, one task per slice.

    runner        starts Spark at the first slice, runs slices, brings back what tasks raise
    properties    what Spark is told at its start
    scratch       Spark's directory for one run, deleted with it

An idle load starts no JVM. What Spark prints goes to a file and not to the terminal.
"""
