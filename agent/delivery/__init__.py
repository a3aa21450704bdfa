"""Sends the bytes of files as batches until brokers acknowledge them, and sends them again after a
crash.

    presses     recipes, and a press for each that is in use
    outbound    batches on their way: sent, given back, sent again, halved when refused
    replay      intents of the last process, sent again unchanged
    evidence    the bytes of an intent, if the file still has the same bytes
    inquiry     intents that cannot be sent again: read back from the brokers, then acknowledged,
                sent, or set apart (declared lost or uncertain)
    refused     records that a broker refuses: read back, then counted or set apart
    search      one pass over the partitions' logs, from their floors (lowest offsets needed) on
    read_back   pure functions: where an intent's records can be, and which of them were found
    progress    which flights (intents under way) the checkpoint passes; partitions' offsets, floors
    logs        the logs of the brokers, fetched to be read back
    silences    partitions whose leader does not answer

If the agent sends a range again, the range's records are the same, byte for byte. The records that
`batches.press` makes depend only on three things: the intent, the recipe that the intent names, and
the bytes, whose CRC the intent contains.
"""
