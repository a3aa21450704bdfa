"""The whole pipeline on one machine: what `make demo` runs.

    certificates  an authority for --tls, and the certificates that it signs
    site          folders, ports, keys and the configuration file of every program
    writer        an application that writes and rotates logs of three formats, as a child process
    programs      starts the programs as child processes, waits for them, kills and stops them
    counts        what the programs should have done, what they have done, and whether it agrees
    kills         kills four programs with kill -9 while they work
    display       prints events, the table of tiers in its place, and the summary at the end
    cli           `skidway demo`, and its steps from start to verdict

The demo starts the programs as an operator would, each with a configuration file. At one moment,
the cut-off, it writes down how long every tailed file is. All programs continue to run. The verdict
covers the bytes up to there, and the audit's time buckets up to a moment soon after. Later lines
belong to later buckets. A second run in the same folder continues where the first run stopped.
"""
