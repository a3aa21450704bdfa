"""What the loader publishes on `_skidway_audit`, and what it reads there.

    feed           what it reads: announcements of files, and the loader's own messages
    delta          what it publishes: the counts of a load, made with its manifest and kept in it
    publication    sends what the topic lacks, after the commit

The manifest is the outbox: whatever was not published is published by the next run.
"""
