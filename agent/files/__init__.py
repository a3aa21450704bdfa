"""The host's files: finding them, knowing them, reading them.

host        what the agent asks of the operating system; tests have another one
patterns    which paths a source means
directories what a look has listed
generations names that rotation gives
kin         which source a path belongs to
likeness    whether what lies at a path is, or begins like, a known file
rotations   files that were rotated away before anybody looked
watching    events of the operating system, which only make it faster
tracked     one file id and everything known about it
tracking    from what was found to file ids: new, renamed, rotated, replaced, gone
handles     open files, bounded
reading     from tracked files to readings, in fair turns

A file is tailed because a look through the patterns finds it; events only make the look earlier.
What lies at a meant path at two looks is proven to be the same file or another one; if it is
another, what was there in between has been renamed by rotation and is looked for beside it
(rotations). So nothing that is still on the host is missed, and what is gone is declared.
"""
