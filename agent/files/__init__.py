"""The host's files: finding them, knowing them, reading them.

host        what the agent asks of the operating system; tests have a host of their own
operating_system  implements `host` with the calls of this machine
birth_times when an inode was made: tells whether a new file has got a deleted file's inode
patterns    which paths a source's patterns match
directories what a look has listed
generations names that rotation gives to generations, the rotated files of a log
sources     which source a path belongs to, and how patterns and links lead into a directory
links       the files in other directories to which a link led between two looks
strays      generations under names that rotation is not known to give
same_file   from evidence to the answer: the same file, another one, or nobody knows
mounts      known files whose file system is not there yet
likeness    gathers the evidence for same_file: compares what lies at a path now with known files
rotations   files that were rotated away before anybody looked, directory by directory
look        one directory at one look, and what was found
history     what became of the files that lay at a path
stillness   whether generations were being renamed while a directory was looked at
watching    events of the operating system, which only make looks earlier
compression which known file a compressed one holds
decompressed, plain_sizes  the plain bytes of a compressed file, and how many they are
copies      of logs: left alone, or read from where their original was cut
known       all known files: by id, by inode, by the path at which they were written
births      how file ids begin
endings     how file ids end
host_files  the owners of all that is known, in one value
recognition what a file found on the host is: new, the same, a copy, another one, rewritten
tracking    makes a look; decides which file ids begin or end, by the files that lie there and
            those that are gone; like recognition and reading, it reports which files were cut or
            vanished, and why
sighting    what a look found, and for which source
unopened    files that were found and could not be opened yet
unreadable  what could not be looked into, by name
news        new file ids and losses, which the agent's loop has to write to the state
handles     open files, bounded
reading     from tracked files to readings, in fair turns

The agent tails a file because a look through the patterns finds it; events only make the look
earlier. If a link leads to the file, the agent watches and lists the directory in which the file
really lies, and looks there for rotated files. Two looks at a meant path (a path that a pattern
matches) may find the same file or two different files. Sometimes nobody can know whether the file
is the same (same_file). If they find different files, rotation has probably renamed the first file
in between, and the agent looks for it beside the path (rotations). So the agent reads every file
that is still on the host, and declares the unread files that are gone.
"""
