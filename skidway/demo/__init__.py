"""The whole pipeline on one machine: what `make demo` runs.

    site          folders, ports and the configuration file of every program
    writer        an application that writes and rotates logs of three formats, as a child process
    sources       what is tailed: the writer's files or our own programs' logs, and --logs
    supervisor    the programs as child processes: started, awaited, killed, all stopped at the end
    states        what agent and counter have made durable, read from their files
    kills         what each kill -9 met and what it cost, as a sentence
    tiers         how full each tier is, as a table
    display       progress: updated in place on a terminal, else line by line
    flow          the steps of both kinds: start, fill, cut-off, drain, load, verdict
    trial         the default kind: a million lines, and kills
    summary       the table of counts, the verdict and the hints at the end
    cli           `skidway demo`

The demo starts the same programs with the same configuration files as an operator would, and
imports none of them. At its cut-off it writes down path and size of every tailed file; the verdict
covers exactly those bytes. A second run in the same folder goes on where the first one stopped.
"""
