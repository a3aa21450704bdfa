"""The values that the agent's packages hand to each other, and the class for all that is known
about one file.

identity   what makes a host this host and a file this file: fingerprint, guard, marks
intents    which bytes of a file are promised to be sent, and as what
found      a file as a look at its path finds it
tracked    one file id and everything known about it; the loop owns it
set_apart  byte ranges that are lost or uncertain
"""
