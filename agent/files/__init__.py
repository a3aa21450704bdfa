"""Finds, recognises and reads the log files of the host.

host           the calls to the operating system; tests replace it by a simulated host
operating_system  implements `host` with the calls of this machine
birth_times    when an inode was made; shows whether a new file got a deleted file's inode number
patterns       which paths a source's patterns match
directories    the directories that a look has listed
generations    the names that rotation gives to generations (the rotated files of a log)
sources        which source a path belongs to, and how patterns and links lead into a directory
links          the files in other directories to which a link pointed between two looks
strays         rotated files with names that no known rotation program gives
same_file      decides from evidence whether two files are the same, or whether nobody can know
mounts         known files whose file system is not mounted yet
likeness       reads the evidence for same_file: compares the file at a path with known files
rotations      finds files, in each directory, that were rotated away before the agent looked
look           what the agent knows about one directory during a look, and the results of the look
history        decides what became of the files that lay at a path
stillness      whether generations were being renamed while the agent looked at a directory
watching       events of the operating system about files; an event makes the next look earlier
trees          makes these events, for directories and all that is below them
inotify        the calls of the kernel for these events
access         decides which files a pattern may lead to: which links count
compression    finds the known file that a compressed file contains
decompressed   reads the plain bytes of a compressed file
unpacking      lets one compressed file at a time be decompressed
plain_sizes    measures how many plain bytes a compressed file has
copies         copies of logs: the agent reads at most those bytes of a copy that it had not read
               of the original before the original was truncated
known          all known files: by id, by inode, by the path at which they were written
first_looks    where reading begins in files that the first look found
ignored        counts the files that are too old to be read
set_back       notices that the wall clock was set back while the agent runs
births         how file ids begin
endings        how file ids end
holes          lines that a program writes in place of NUL bytes that were read already
host_files     one object that holds the owners of all facts about the host's files
recognition    decides what a file is: a new file, a known file, a copy, a new file with a known
               inode, or a known file that was rewritten
tracking       makes a look: compares the files that are there, and the files that are gone, with
               the known file ids, and begins and ends file ids
sighting       a file that a look found, and its source
unopened       files that were found but could not be opened yet
unbegun        files without a file id, because they are empty or too old
unreadable     paths that could not be read
matches        sources of which no file was found, and since when
news           new file ids and losses, which the agent's loop has to write to the state
handles        a limited number of open files
nameless       files without a name that a running agent still has open; for another process
pod_metadata   reads files with the labels of pods
pod_labels     which labels the records of a file get, and from which position on
reading        makes readings of tracked files, so that no file waits for long
ready          the files that the next turns try to read; topics take turns

In a look, the agent goes once through the directories of all sources, to find new, renamed and
deleted log files. If a link points to a file, the agent watches and lists the directory in which
the file really is, and looks there for rotated files. A meant path is a path that a pattern
matches. Two looks may find the same file or two different files at a meant path. Sometimes nobody
can know whether the file is the same (same_file). If the two looks find two different files,
rotation has probably renamed the first file between the looks, and the agent looks for it in the
path's directory (rotations). So the agent reads every file that is still on the host, and declares
a loss for unread files that are gone.
"""
