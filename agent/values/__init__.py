"""What the rooms of the agent hand to each other: plain values, and who owns none of them.

identity  what makes a host this host and a file this file: fingerprint, guard, marks
intents   which bytes of a file are promised to be sent, and as what
tracked   one file id and everything known about it
"""
