"""The values that the agent's packages exchange, and the class for all that is known about one
file.

identity   how hosts and files are recognised: machine id, fingerprint, guard, marks
intents    which bytes of a file are promised to be sent, and by which recipe
found      a file that was found at a path
tracked    one file id and everything known about it; the loop owns it
set_apart  byte ranges that are lost or uncertain
"""
