"""Takes changed settings while the agent runs, without a restart.

    `skidway agent reload`, SIGHUP -> requests -> reloader
                                                     |  a thread: preparation
                                                     v
    settings from the files -> check -> difference -> registry, cluster -> destinations
                                                     |
                                                     v
                    the loop takes them between two turns, or the reloader says why not

Settings that are refused never replace those that run. What a reload means for lines is the same as
what a restart means: promised bytes are sent as their promise says, and the new settings count for
the bytes behind. But the agent keeps its open files, so that it still reads deleted files.

difference   which settings differ, and which of them need a restart
standing     whether the files of the configuration differ from the settings that run
requests     the files by which the command asks the agent, and by which the agent answers
preparation  what a thread asks registry and cluster before the loop takes new settings
reloader     owns the settings that run, and decides what happens next
"""
