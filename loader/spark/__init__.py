"""Spark: one session per process, one task per slice (an offset range of one partition), or per
group of files that are rewritten. Tasks with few records run in the loader's own process.

    runner        the driver's side: starts Spark with the first task for it, runs tasks
    own_process   runs tasks in the loader's own process
    session       starts and stops Spark: the driver's JVM, and the session in it
    task          the work: one slice, or one group of files
    failures      turns an error of Spark or its tasks into one sentence
    properties    Spark's properties: the loader's defaults and the operator's
    scratch       Spark's directory, deleted when Spark ends

A run with little to load starts no JVM. Spark's output goes to a file, not to the terminal.
"""
