"""The host's files: finding them, knowing them, reading them.

host        what the agent asks of the operating system; tests have another one
patterns    which paths a source means
discovery   all patterns looked through: the mechanism that makes tailing correct
watching    events of the operating system, which only make it faster
tracked     one file id and everything known about it
tracking    from what was found to file ids: new, renamed, rotated, replaced, gone
reading     from tracked files to readings, in fair turns
"""
