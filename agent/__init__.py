"""The agent: tails the log files of one host and publishes each of their lines exactly once.

    patterns, events                                           one turn of loop.Loop
        |  files/     discovery, identity, tracking
        v
    readings         whole records: 1 MiB of a file, or one longer record
        |  state/     the intents of all of them are durable: ONE transaction
        v
    records          batches/: parsing/, shaping/, codec, routing, division into batches; no I/O
        |  delivery/  outbound -> the producer -> brokers
        v
    acknowledgements
        |  checkpoint, counts, losses: the next turn's transaction
        v
    accounts/        announcements, deltas, seals -> outbox -> `_skidway_audit`

The agent sends several kinds of messages to the audit. An announcement says which file a file id
names. A delta counts records. A seal says up to which time the deltas contain the counts of all
lines.

The agent gives these guarantees (docs/delivery.md gives the reasons):

* An intent is a row in the state by which the agent promises to send a range of a file's bytes. The
  agent sends bytes only after the transaction that writes their intent is durable.
* After a crash the agent sends again the bytes of every intent that the checkpoint has not passed,
  if the file's bytes still have the intent's CRC. The agent makes the records with the recipe that
  the intent names. A recipe consists of the settings, schemas and versions of code that decide
  which records the bytes become.
* If an intent cannot be sent again, the agent asks the brokers which of the intent's records they
  have. The records that the brokers have count as acknowledged. The agent sends the missing records
  as the present program makes them, or declares their byte range lost or uncertain. One transaction
  writes this declaration and moves the file's position past the range. Acknowledged, rejected,
  filtered, lost, uncertain and pending bytes always add up to the bytes of each file
  (`skidway agent state show`).
* A file id names one immutable sequence of bytes. If the agent doubts that a file still begins with
  this sequence, it ends the file id and gives the file a new file id.

One thread runs the loop and does all the work. The other threads own no state. Three of them only
pass values to the loop: the thread of the library watchdog, the thread that measures compressed
files, and the thread that prepares changed settings. The thread of the metrics endpoint only reads
values. Each mutable state has one owner. These are the most important owners:

    state.database.StateDatabase  the connection, the agent id      SQLite, `<state.dir>/agent.db`
    files.known.KnownFiles        every TrackedFile                 memory; `files` in the database
    files.rotations.Rotations     which file had which path lately  memory, made anew at start
    files.handles.Handles         descriptors of log files          memory
    files.first_looks.FirstLooks  patterns that were looked at      memory; `meta`
    files.ignored.Ignored         counts of files that are too old  memory, made anew at each look
    files.unbegun.Unbegun         empty files, and too old ones     memory; `unbegun`
    files.unopened.Unopened       files that cannot be opened yet   memory; `unopened`
    files.reading.FileReader      files to be read next             memory, made anew at start
    files.pod_labels.PodLabels    files with the labels of pods     memory, made anew at start
    delivery.replay.Replay        intents of the last process       memory, from `intents`
    delivery.inquiry.Inquiry      intents searched for in logs      memory, from `intents`
    delivery.refused.Refused      records that brokers refused      memory; a flag in `intents`
    delivery.search.Search        records found in brokers' logs    memory
    delivery.logs.FetchedLogs     how far each log was searched     memory
    delivery.presses.Presses      recipes, and a press for each     memory; `recipes`
    delivery.outbound.Outbound    batches on their way              memory, made anew from intents
    values.intents.Numbers        sequence numbers of intents       memory, from `intents`
    delivery.progress.Progress    offsets and floors of partitions  memory; `offsets`, `floors`
    accounts.mail.Mail            audit messages that wait          memory; `outbox`
    accounts.deltas.Deltas        numbers; counts in no delta yet   memory; `sums`, `losses`, `meta`
    accounts.accounts.Accounts    the deltas; seals on their way    memory
    accounts.leaving.Leaving      last words (final seals)          memory; `meta`
    cluster.topics.Topics         ids and last seals of topics      memory; `topics`
    loop.schedule.Schedule        when the next look is due         memory
    delivery.silences.Silences    since when brokers are silent     memory
    batches.fieldless.Fieldless   members without a field           memory
    batches.rejections.Rejections lines that were rejected lately   memory
    loop.loop.Loop                the turn                          memory
    reloading.reloader.Reloader   settings in use; requests         memory; files in `reload/`

A reading has the bytes of one intent. If these bytes are one line, or one run of NUL bytes, that is
longer than READ_BYTES, the reading has only the first READ_BYTES bytes. When the readings of a turn
have TURN_BYTES together, the turn begins no further reading. One search of the brokers' logs looks
for records that were made from about SEARCH_BYTES bytes of log files. The agent reads nothing while
`buffer.memory` bytes of batches are unacknowledged. It reads nothing of a topic if the topic's own
unacknowledged batches have at least as many bytes as the part of `buffer.memory` that is still free
(`values.room`). It also reads nothing while RECORDS_MAX records that brokers refused are undecided:
it does not know yet whether an earlier attempt to send these records arrived (`delivery.refused`).
At most `max.open.files` log files are open. While the disk with the state's database is full, the
agent reads no more bytes, and makes no intents.

The agent cannot yet read journal or syslog (docs/open.md).

Reading order, from the lowest package to the highest:

    parsing        framing (lines in bytes), then lines to columns
    shaping        rules that leave records out, and mask, hash, rename and remove fields
    layouts        conversion patterns of log4j and of Python's logging
    recipe         everything that decides which record a line becomes; the state stores recipes
    unknown_logs   how an unknown log is written
    parsers        the types of parsers: everything about a type in one module
    settings       all settings of the program
    formats        well-known logs by name
    configuration  the settings from all their files
    sources_dir    the files of sources.dir: who may write them, and what they may say
    named_files    the schemas and keys that sources name
    good_files     the last good version of each file of sources.dir
    values         what a file is, and which of its bytes have an intent
    batches        recipe and press: from lines to record batches
    state          the database
    files          finding, knowing and reading the host's files
    cluster        destinations, connection, topics
    events         the agent's metrics and log entries
    delivery       from readings to acknowledged batches, and what a restart sends again
    accounts       the messages to the audit: announcements, counts, losses, seals
    loop           the turn: each turn does a part of the work of all packages above
    validation     tries the settings, and parses lines of the sources' files
    reloading      takes over changed settings while the loop runs
    memory         how much freed memory the process keeps
    program        the loop with everything around it
    counting       the agent in count-only mode, a program of its own
    commands, cli  the subcommands of `skidway agent`
"""
