"""Moves a partition to another broker, or to another log directory, while nobody serves it.

The commands `hand-over` and `take-over` copy no files between hosts. The operator copies the files,
for example with rsync, with `mv`, or by moving a disk. The two commands make sure that nothing is
lost and that two brokers never serve the partition at the same time:

    hand-over   runs while the broker that leads the partition is stopped. It opens the log as the
                broker does at its start, computes every CRC, and syncs what is not on disk yet.
                Then it renames the partition's directory to `<topic>-<partition>.moved`, and writes
                a waybill (a file that describes the partition) into this directory. The waybill
                contains the broker's id, the leader epoch, the log start and log end offsets, and
                the length, time and CRC-32C of each file. After the rename no broker serves the
                partition
    copy        the operator copies the directory by any means into one of the new broker's
                `log.dirs`, under the same name
    take-over   runs while the new broker is stopped. It compares every file with the waybill and
                syncs the file. Then it writes to ZooKeeper that the partition is assigned to the
                new broker, which leads it in the next leader epoch. This write is one transaction,
                which fails if the assignment or the state has changed meanwhile. Then the command
                renames the directory to `<topic>-<partition>` again and removes the waybill

After a crash during any of these steps, at most one broker serves the partition. The old broker
serves it until `hand-over` has renamed the directory, and the new broker serves it after
`take-over` has renamed the directory. If no broker serves the partition, the operator runs the
interrupted step again and completes the move.
Only one copy can be taken over: the first take-over raises the leader epoch, and later take-overs
refuse every other copy. The operator may also run `take-over` on the old broker's host, so that the
old broker gets its own directory back. The renamed directory on the old broker's host remains until
somebody removes it.

    waybill              writes, reads and compares the list of the files of a moved partition
    hand_over            what the old broker's host does
    take_over            what the new broker's host does
    cli                  `skidway broker hand-over|take-over`

The commands can move neither a partition that a running broker serves, nor a partition with several
replicas.
"""
