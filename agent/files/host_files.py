"""All that is known of a host's files, for the modules that find out more."""

from __future__ import annotations

from dataclasses import dataclass

from skidway.agent.files.known import KnownFiles
from skidway.agent.files.news import News
from skidway.agent.files.unopened import Unopened
from skidway.agent.files.unreadable import Unreadable


@dataclass(frozen=True, slots=True)
class HostFiles:
    """The owners of what is known: of files with ids, of files without ids, of places that cannot
    be read, and of the news that the state has to keep.
    """

    known: KnownFiles
    unopened: Unopened
    unreadable: Unreadable
    news: News
