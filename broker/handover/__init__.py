"""A partition goes to another broker, or to another log directory, while nobody serves it.

Nothing is copied over a network here: files go by rsync, by a disk that is carried, by `mv`. What
is ours is that nothing can be lost and no two brokers can serve the same partition:

    hand-over   (the broker that leads it is stopped) the log is opened as a start would open it,
                every CRC is computed, everything is synced; its directory is renamed to
                `<topic>-<partition>.moved`, and a waybill is written into it: whose it was, the
                leader epoch, log start and end, each file with length, time and CRC-32C.
                From the rename on nobody serves the partition
    copy        by whatever means, into one of the new broker's `log.dirs`, under the same name
    take-over   (the new broker is stopped) every file is compared with the waybill and synced;
                then ZooKeeper is told, in one transaction, conditional on the assignment and on
                the state as they were found: assigned to this broker, led by it in the next
                leader epoch; then the directory gets its own name back, and the waybill goes

A crash between any two of these leaves a partition that is served where it was, or one that nobody
serves and that the same command, given again, brings to its end. The leader epoch makes a copy good
for one take-over: whichever comes first, by the old broker (which so takes its own directory back)
or by a new one, every other copy is refused. The old directory stays until somebody removes it.

    waybill              what belongs to a moved partition, written down and compared
    hand_over            what the old broker's host does
    take_over            what the new broker's host does
    cli                  `skidway broker hand-over|take-over`

Not done: moving while the partition is served, and replicas, of which there is one.
"""
