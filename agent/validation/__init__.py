"""`skidway agent validate`: checks whether the settings fit the host, its files and the registry.

checks    the checks of settings that need no connection to a server
excerpts  makes lines and values safe to show on a terminal
trial     the first and last lines of each source's files, parsed as by a running agent
pattern_uses  how many files each pattern takes
report    the result of the trial, as text and as JSON
preview   the rows and rejects of a sample, for `agent guess` and `agent test`
"""
