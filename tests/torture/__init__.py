"""The torture runs all programs under all faults, and checks with an oracle that knows every line.

`make torture MINUTES=30 SEED=7` runs a site of real programs on real files: a datacenter with a
broker of ours, a datacenter with Apache Kafka, an offline broker that mirrors both, a counter for
each of these three clusters, the collector, the registry, ZooKeeper, a loader that loads every few
seconds, and agents on three hosts. Writers number their lines and rotate their logs, while faults
hit at random, several at once. Then all faults end, and the torture compares the lines that arrived
with the lines that were written. docs/testing.md says what the numbers mean.

    faults      kinds of faults, their targets, and a schedule drawn from the seed. Pure
    shrinking   makes a failed schedule shorter by leaving faults out. Pure
    hosts       a host's writers: numbered lines in logs, and the ways to rotate them
    lake        the outputs: the current one, the rows set aside, and the lines in all of them
    loads       the loader as a program that keeps running, with a load every few seconds
    shifted_clock  time.sleep under libfaketime, for every program whose clock is shifted
    settings    the settings of all programs
    programs    the running programs: down, frozen, in another version, with another clock
    disks       small file systems that fill up, or cannot be written to
    operator    what a person does about faults, as docs/operations.md says
    site        all of these together, and how each fault begins and ends
    truth       compares lines, rows and verdicts, and gives the numbers. Pure
    __main__    the command: runs a schedule, prints it, and replays or shortens one that failed

Data flows only from the hosts to the truth: the programs read nothing that the oracle knows. The
seed decides the schedule, but not how fast the machine runs it.
"""
