"""Sends the bytes of files as batches until brokers acknowledge them, and sends them again after a
crash.

    presses     recipes, and a press for each that is in use
    outbound    batches on their way: sent, sent again, or halved if a broker refuses them
    replay      intents of the last process, sent again unchanged
    evidence    the bytes of an intent, if the file still has the same bytes
    inquiry     intents that cannot be sent again: looks for their records in the brokers' logs;
                then the records count as acknowledged, are sent, or are declared lost or uncertain
    refused     records that a broker refuses: looks for them in the log, then counts them or
                declares them lost or uncertain
    search      one pass over the partitions' logs, from their floors (lowest offsets needed) on
    read_back   pure functions: where an intent's records can be, and which of them were found
    progress    which flights (intents under way) the checkpoint passes; partitions' offsets, floors
    logs        fetches the brokers' logs for `search`
    silences    partitions whose leader does not answer

If the agent sends a range again, the range's records are the same, byte for byte. The records that
`batches.press` makes depend only on three things: the intent, the recipe that the intent names, and
the bytes, whose CRC the intent contains.
"""
