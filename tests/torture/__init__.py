"""The torture test ("the torture") runs all programs under all kinds of faults. It checks the
result with an oracle, which remembers every line that was written.

`make torture MINUTES=30 SEED=7` runs a site of real programs on real files. The site has a
datacenter with Skidway's broker, a datacenter with Apache Kafka, and an offline broker that mirrors
both. It also has a counter for each of these three clusters, the collector, the registry,
ZooKeeper, a loader that loads every few seconds, and agents on three hosts. Writers number their
lines and rotate their logs. Meanwhile faults begin at random times, and several faults can be
active at once. Then all faults end, and the torture compares the lines that arrived with the lines
that were written. The numbers that the torture prints are explained in docs/testing.md.

    faults      kinds of faults, their targets, and a schedule drawn from the seed; no I/O
    shrinking   makes a failed schedule shorter by leaving faults out; no I/O
    hosts       a host's writers: numbered lines in logs, and the ways to rotate them
    lake        the loader's current and earlier outputs, and the lines in all of them
    loads       the loader as a program that keeps running, with a load every few seconds
    shifted_clock  a replacement for time.sleep, for every program whose clock is shifted
    settings    the settings of all programs
    programs    starts, kills and freezes programs, and changes their versions and clocks
    disks       small file systems that fill up, or cannot be written to
    operator    what a person does about faults, as docs/operations.md says
    site        all of these together, and how each fault begins and ends
    truth       compares lines, rows and verdicts, and computes the numbers; no I/O
    __main__    the command: runs a schedule, prints it, and replays or shortens a failed schedule

`hosts` remembers every written line, and `truth` compares these lines with the lines that arrived.
The seed decides the schedule of faults, but not how fast the machine runs the programs, so two runs
with one seed may differ.
"""
