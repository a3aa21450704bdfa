"""Spark: one session per process, one task per slice (an offset range of one partition), or per
group of files that are rewritten.

    runner        the driver's side: starts Spark with the first task, runs tasks
    session       starts and stops Spark: the driver's JVM, and the session in it
    task          the worker's side: one slice, or one group of files
    failures      turns an error of Spark or its tasks into one sentence
    properties    Spark's properties: the loader's defaults and the operator's
    scratch       Spark's directory, deleted when Spark ends

A run without anything to load starts no JVM. Spark's output goes to a file, not to the terminal.
"""
