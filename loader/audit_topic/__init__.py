"""What the loader says on `_skidway_audit`, and what it hears there.

    feed           what is heard: announcements of files, and the loader's own messages
    delta          what is said: the counts of a load, made with its manifest and kept in it
    publication    sends what the topic lacks, after the commit

The manifest is the outbox: whatever was not published is published by the next run.
"""
