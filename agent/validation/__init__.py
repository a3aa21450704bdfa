"""`skidway agent validate`: whether the settings fit the host, its files and the registry.

checks  what settings can be wrong about before anything is connected
trial   each source's first and last lines, parsed as they would be
report  what was found, for people and for programs
"""
