"""`skidway agent count`: the agent in count-only mode. In this mode, the agent runs beside another
log shipper, and stores notes (database rows with the length and hash of each line of a file). With
the notes, `skidway audit compare --counted` can compare the lines with the shipper's records even
after the files were rotated and deleted. This mode sends nothing, and needs neither a broker nor a
registry.

The mode finds, recognizes and reads files by the same code as the agent (package `files`). The mode
stores its state in a directory of its own, so it does not disturb an agent on the same host. The
module `notes` of the package `audit.comparison` describes what the directory contains.

    settings  what to count, where the notes are, how many notes are kept
    segments  which notes are the oldest, and when they are deleted; no I/O
    noting    makes the notes of a reading
    state     the database and its transactions
    loop      the turn: a look, readings, ONE TRANSACTION with their notes and the new positions
    program   the loop with everything around it

A turn is stored completely or not at all: if a crash comes before its transaction is durable, the
next process reads the same bytes again, and notes their lines.
"""
