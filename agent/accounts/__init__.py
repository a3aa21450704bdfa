"""Makes the messages that the agent sends to the audit, and decides when each of them is due.

    mail            the durable outbox: a message is stored together with what it reports
    announcements   which file a file id names, and when the file id is closed
    register        announces each file id, repeats announcements, and closes file ids
    deltas          numbered messages: counts of records that the checkpoint passed, declared losses
    sealing         the time up to which deltas count all lines of the files
    set_backs       the greatest time that the clock showed before it was set back
    leaving         the last words (final seals) of an agent that leaves for good
    backlog         notes about bytes that no broker has acknowledged yet
    fieldless_notes notes about members of lines for which the schema has no field
    accounts        deltas, losses and seals, each when it is due

This package sends nothing: `skidway.audit.topic.publisher` takes the messages out of the outbox in
their order.
"""
