"""The audit messages that the loader publishes on `_skidway_audit`, and the audit messages that it
reads from there.

    feed           reads announcements of files, and the loader's own messages
    endings        agents' messages that a file is closed, and the seals that come after them
    delta          makes the counts of a load, which are stored in its manifest
    publication    after the commit, publishes the messages that the audit topic lacks

The manifest stores the messages of its load: if a run did not publish a message, the next run
publishes this message from the manifest.
"""
