"""Takes changed settings while the agent runs, without a restart.

    `skidway agent reload`, SIGHUP -> requests -> reloader
                                                     |  a thread: preparation
                                                     v
    settings from the files -> check -> difference -> registry, cluster -> destinations
                                                     |
                                                     v
                    the loop takes the settings between two turns, or the reloader says why not

If new settings are refused, the agent continues with its present settings. For the lines that are
sent, a reload has the same effect as a restart: bytes that already have an intent are sent as the
intent says, and the new settings apply to all later bytes. But unlike a restart, a reload keeps
files open, so the agent can still read files that have been deleted.

difference   which settings differ, and which of them need a restart
standing     whether the files of the configuration differ from the settings in use
requests     the files by which the command asks the agent, and by which the agent answers
preparation  asks the registry and the cluster, in a thread, before the loop takes new settings
reloader     owns the settings in use, and decides what happens next
"""
