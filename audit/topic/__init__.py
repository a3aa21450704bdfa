"""The audit topic of a cluster, `_skidway_audit`: its messages, and how they are sent and read.

The package has these modules:

    decisions       decisions of people about verdicts: accepted findings, retired places, and
                    disowned messages
    recount_result  results of recounts
    source_names    the text that names the source topics of a message
    count_columns   the counts of a delta, as values and as columns
    seal_columns    the topics of a seal, as values and as columns
    notes           messages that make no verdict better
    backlog         the note of an agent: bytes that no broker has acknowledged yet
    fieldless_note  the note of an agent: members of lines for which the schema has no field
    source_report   the note of an agent: paths that it cannot read, and sources without files
    transactions    the note of a counter: open transactions, and the number of aborted records
    retention       the note of a counter: how long brokers keep the records of topics
    load_note       the note of a loader: rows, files and duration of one load
    program_status  the note of a program: how it was started, and what it waits for
    messages        all kinds of messages, from and to Avro; defines deltas, seals, heartbeats and
                    announcements
    field_bounds    which values the fields of a message may have
    usual_messages  decodes the most frequent kinds of messages faster
    claims          which messages a sender may send
    head            reads the first fields of a message with counts or seals, without decoding the
                    rest
    status_notes    makes the notes of a program's status
    topic           creates the topic, and reads values from it
    publisher       publishes messages from a durable outbox, in order; reads back the newest
                    message that the program has published
"""
