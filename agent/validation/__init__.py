"""`skidway agent validate`: checks whether the settings fit the host, its files and the registry.

checks  what can be wrong with settings before anything is connected
trial   each source's first and last lines, parsed as a running agent would
report  what was found, for people and for programs
"""
