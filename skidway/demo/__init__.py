"""The whole pipeline on one machine: what `make demo` runs.

    site          folders, ports and the configuration file of every program
    writer        an application that writes and rotates logs of three formats, as a child process
    sources       the files to tail: the writer's or the programs' own logs, and --logs
    supervisor    the programs as child processes: starts, awaits, kills and at last stops them
    states        what agent and counter have stored durably, read from their files
    kills         for each kill -9 a sentence: what the program was doing, and what was lost
    tiers         how full each tier is, as a table
    display       progress: updated in place on a terminal, else line by line
    flow          the steps of both kinds of demo: start, fill, cut-off, drain, load, verdict
    trial         the default kind: a million lines, and kills
    summary       the table of counts, the verdict and the hints at the end
    cli           `skidway demo`

The demo starts the same programs with the same configuration files as an operator would, and
imports none of them. At the cut-off the demo writes down path and size of every tailed file. The
verdict covers exactly the bytes of each file up to that size. A second run in the same folder goes
on where the first one stopped.
"""
