"""`skidway agent validate`: checks whether the settings fit the host, its files and the registry.

checks    the checks of settings that need no connection to a server
excerpts  lines and values, made safe to show
trial     the first and last lines of each source's files, parsed as by a running agent
report    what was found, for people and for programs
preview   the rows and rejects of a sample, for `agent guess` and `agent test`
"""
