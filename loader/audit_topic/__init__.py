"""Publishes the loader's audit messages on the topic `_skidway_audit`, and reads the audit messages
that the loader needs.

    feed           reads announcements of files, and the loader's own messages
    endings        collects closures (agents' messages that a file is closed), and agents' seals
    delta          makes the counts of a load, which are stored in its manifest
    publication    after the commit, publishes the messages that the audit topic lacks

A load stores its messages in its manifest. If a run is killed before it has published a message,
the next run publishes this message from the manifest.
"""
