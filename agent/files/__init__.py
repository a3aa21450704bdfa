"""The host's files: finding them, knowing them, reading them.

host        what the agent asks of the operating system; tests have another one
operating_system  its answers, from the calls of this machine
birth_times when an inode was made: what tells a file from the next one that gets its inode
patterns    which paths a source means
directories what a look has listed
generations names that rotation gives
sources     which source a path belongs to, and how patterns and links lead into a directory
links       what links led to, one after the other, in other directories
strays      generations under names that rotation is not known to give
same_file   from evidence to the answer: the same file, another one, or nobody knows
mounts      known files whose file system is not there yet
likeness    gathers that evidence: compares what lies at a path now with known files
rotations   files that were rotated away before anybody looked, directory by directory
look        one directory at one look, and what was found
history     what became of the files that lay at a path
stillness   whether generations were being renamed while a directory was looked at
watching    events of the operating system, which only make looks earlier
compression which known file a compressed one holds
decompressed, plain_sizes  its plain bytes, and how many they are
copies      of logs: left alone, or read from where their original was cut
known       all of them: by id, by inode, by the path at which they were written
births      how file ids begin, and
endings     how they end
host_files  the owners of what is known, for those who find out more
recognition from one file that is there to file ids: new, the same, a copy, another one, rewritten
tracking    a look: from what lies there, and what does not, to file ids; here, in recognition and
            in reading it is noticed, and said with a reason, what was cut or vanished
sighting    what a look found, and for which source
unopened    files that were found and could not be opened yet
unreadable  what could not be looked into, by name
news        what the owner of all this has to write down
handles     open files, bounded
reading     from tracked files to readings, in fair turns

A file is tailed because a look through the patterns finds it; events only make the look earlier.
Where a link leads to it, its directory is the one where it really lies: that one is watched,
listed, and searched for rotated files. Two looks at a meant path (one that a pattern means) find
the same file, or another one, or nobody knows (same_file). If it is another one, rotation has
renamed what lay there in between, and it is looked for beside the path (rotations). So nothing that
is still on the host is missed, and what is gone is declared.
"""
