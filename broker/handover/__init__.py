"""Moves a partition to another broker, or to another log directory, while nobody serves it.

The commands `hand-over` and `take-over` copy nothing over a network. The operator moves the files,
for example with rsync, on a disk, or with `mv`. The two commands make sure that nothing is lost and
that no two brokers serve the partition:

    hand-over   (the broker that leads the partition is stopped) opens the log as the broker
                does at its start, computes every CRC and syncs everything; renames the
                partition's directory to `<topic>-<partition>.moved`, and writes a waybill into
                it: the broker's id, the leader epoch, log start and end, each file with
                length, time and CRC-32C. From the rename on nobody serves the partition
    copy        by whatever means, into one of the new broker's `log.dirs`, under the same name
    take-over   (the new broker is stopped) compares every file with the waybill and syncs the
                file; then writes to ZooKeeper that the partition is assigned to the new broker,
                which leads it in the next leader epoch (one transaction, which fails if the
                assignment or the state has changed meanwhile); then renames the directory to
                `<topic>-<partition>` again and removes the waybill

After a crash between any two of these steps, either the partition is served where it was, or nobody
serves it until the interrupted step is run again and the move is completed. Because of the leader
epoch, only one copy can be taken over: after the first take-over every other copy is refused. With
`take-over`, the old broker may also take its own directory back. The old directory is kept until
somebody removes it.

    waybill              the list of the files of a moved partition: written, read and compared
    hand_over            what the old broker's host does
    take_over            what the new broker's host does
    cli                  `skidway broker hand-over|take-over`

Not done: moving a partition while it is served, or moving a partition with several replicas.
"""
