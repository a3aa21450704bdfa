"""The loads that a loader commits while a recount runs.

The recount reads the manifests first, and then counts the files that the manifests name. Meanwhile
a later load may put new files into the directories, and may remove files that the recount has not
read yet.
"""

from __future__ import annotations

from skidway.audit.output import Output
from skidway.audit.recount import manifests
from skidway.audit.recount.named_files import NamedFiles


class LaterLoads:
    """The loads of a topic after load `last`, which is the last load that the recount counts. Reads
    the manifest of each later load once, and records in `named` which files that load adds and
    removes."""

    def __init__(self, output: Output, topic: str, named: NamedFiles, last: int) -> None:
        self._output, self._topic, self._named, self._last = output, topic, named, last

    def read(self) -> None:
        """Reads those manifests of later loads that exist now. If one of these manifests names a
        file, the file is no longer a surplus file (a file that does not belong to the output).
        Raises ManifestUnreadable.
        """
        for load in manifests.loads_after(self._output, self._topic, self._last):
            manifest = manifests.read(self._output, self._topic, load)
            for file in manifests.files_of(manifest):
                self._named.explain(file.path)
            self._named.remove_later(manifests.removed_by(manifest))
            self._last = load

    def removes(self, path: str) -> bool:
        """Whether a later load removes the file. The caller must first find that the file is
        missing, and then call this method. If a load has deleted the file, the manifest of this
        load exists by then, because a load writes its manifest before it deletes files. Raises
        ManifestUnreadable.
        """
        if not self._named.is_removed_later(path):
            self.read()
        return self._named.is_removed_later(path)
