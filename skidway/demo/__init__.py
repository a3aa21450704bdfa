"""The whole pipeline on one machine: what `make demo` runs.

    site          folders, ports and the configuration file of every program
    keys          the keys with which the programs sign their messages to the audit
    writer        an application that writes and rotates logs of three formats, as a child process
    sources       the files to tail: the writer's or the programs' own logs, and those of --logs
    supervisor    starts the programs as child processes, waits for them, kills and stops them
    states        what agent and counter have stored durably, read from their files
    kills         a sentence for each kill -9: what the program was doing, and what became of it
    tiers         how many lines each tier (stage of the pipeline) has, as a table
    display       shows the progress: updated in place on a terminal, else line by line
    outcome       what a demo has found out, and whether everything agrees
    obstacles     what keeps the agent from delivering, in words
    flow          the steps of both kinds of demo (`--quick` and the default), from start to verdict
    trial         the default kind: a million lines, and kills
    summary       the table of counts, the verdict and the hints at the end
    cli           `skidway demo`

The demo starts the programs as an operator would, each with a configuration file. From the agent,
the demo imports only the modules that find, recognize and decompress log files. At one moment, the
cut-off, the demo writes down the path, the identity and the size of every tailed file. All programs
continue to run. The verdict covers the bytes of each file up to that size, and the audit's time
buckets up to a moment soon after the cut-off: these buckets contain the records of all these bytes.
Later lines belong to later buckets. A second run in the same folder continues where the first run
stopped.
"""
