"""The torture: all programs under all faults, and an oracle that knows every line.

`make torture MINUTES=30 SEED=7` runs a site of real programs on real files: ZooKeeper, a registry,
the broker of a datacenter, an offline broker that mirrors it, a counter in each, the collector, a
loader every few seconds, and agents on several hosts. Writers number their lines and rotate their
logs, while faults hit at random, several at once. Then everything is healed, and what has arrived
is held against what was written:

    lost             a line that is neither a row nor a reject, of a bucket that is called complete
    doubled          a row that came twice, of a bucket that is called complete
    false complete   a bucket that is called complete, and is not (its lines are those above)
    false alarm      a bucket that stays lost or unknown although it has each of its lines once
    unhealed         a bucket that stays open or incomplete although it has each of its lines once

The first three must be 0. The last two have reasons, which are printed: the audit is cautious where
it cannot know.

    faults      what can happen to whom: kinds, and a schedule of them drawn from the seed. Pure
    hosts       a host's writers: numbered lines in logs, and the ways to rotate them
    loads       the loader as a program that stays, a load every few seconds
    site        the programs, and how a fault is begun and ended on them
    truth       lines, rows and verdicts together: the five numbers. Pure
    __main__    the command: runs a schedule, prints it, and replays or shortens one that failed

Data flows from the hosts to the truth; nothing of the oracle is read by the programs. A schedule is
a function of the seed, what the machine makes of it is not: a failure is replayed with its seed,
and shortened by leaving faults out.
"""
