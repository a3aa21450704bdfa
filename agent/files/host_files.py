"""A class that holds the objects with all facts about the host's files. The modules of this package
share these objects."""

from __future__ import annotations

from skidway.agent.files.known import KnownFiles
from skidway.agent.files.news import News
from skidway.agent.files.unopened import Unopened
from skidway.agent.files.unreadable import Unreadable
from skidway.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class HostFiles:
    """The objects that own the facts about files: the files with ids, the files without ids, the
    paths that cannot be read, and the new file ids and losses that must be written to the state.
    """

    known: KnownFiles
    unopened: Unopened
    unreadable: Unreadable
    news: News
