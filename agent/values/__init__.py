"""The values that the agent's packages pass to one another, and a class that contains all that the
agent knows about one file.

identity   how hosts and files are recognised: machine id, and checksums of a file's bytes
intents    which bytes of a file the agent is going to send, and by which recipe
labels     the labels of a file's pod, and from which position of the file on they apply
found      a file that was found at a path
path_texts  what a pattern of paths means
room       how many bytes a turn may read of each topic's files
source_files  a file of `sources.dir` as it was read, or why it is refused
schemas    a schema whose id a registry has given
tracked    one file id and everything known about it; the loop owns it
set_apart  byte ranges that are lost or uncertain
escapes    how formats of lines escape codes for terminals
terminals  codes for terminals (colours), which are taken out of texts
"""
