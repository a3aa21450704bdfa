"""The whole pipeline on one machine: what `make demo` runs.

    site          folders, free ports and the configuration file of every program
    sources       what is tailed: the logs of our own programs, and those named with --logs
    supervisor    the programs as child processes: started, awaited, stopped, never left behind
    flow          the demo itself, step by step: start, load, cut-off, drain, load, verdict
    summary       the table of counts, the verdict and the hints at the end
    cli           `skidway demo`

The demo starts the same programs with the same configuration files as an operator would, and
imports none of them. At its cut-off it writes down path and size of every tailed file; the verdict
covers exactly those bytes. A second run in the same folder goes on where the first one stopped.
"""
