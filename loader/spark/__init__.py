"""Runs the loader's tasks on Spark. A process has at most one Spark session. A task works on one
slice (an offset range of one partition), or on one group of files that are rewritten. Tasks with
few records run in the loader's own process.

    runner        runs tasks from the driver, and starts Spark for the first task that needs it
    own_process   runs tasks in the loader's own process
    session       starts and stops Spark: the session in the driver's JVM
    jvm           the process of that JVM
    patience      decides when an operator should know of a wait
    task          the work: one slice, or one group of files
    failures      turns an error of Spark or its tasks into one sentence
    properties    Spark's properties: the loader's defaults and the operator's
    scratch       Spark's directory for temporary files, which is deleted when Spark ends

A run that has only a few records to load starts no JVM. Spark's output goes to a file, not to the
terminal.
"""
