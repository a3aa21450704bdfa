"""Finds links that point into another directory than at the last look, when the agent last went
through the directories of all sources. For example, a deployment or the start of a new day may
change a link in this way.

Between two looks, a link may have pointed to other files as well. For example, `latest.log` pointed
to `2026-11-19/app.log` at the last look, and points to `2026-11-21/app.log` now. On the 20th, when
the agent did not look, the link pointed to a third file. The agent looks for such files, and for
the files rotated from them, in the neighbouring directories. The agent assumes that the path of
such a file differs only in numbers from the two paths to which the link pointed at the two looks.
If these two paths themselves differ in more than numbers, the agent cannot know where to look, and
declares that files may be unread.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from skidway.agent.files.directories import Directories
from skidway.agent.files.generations import generation
from skidway.agent.files.sources import shape
from skidway.agent.values.found import Found

LEVELS: Final = 3
PLACES_MAX: Final = 5_000
"""To find the files to which a link has pointed, the agent searches at most LEVELS levels of
directories, and at most PLACES_MAX directories.
"""

ID_LENGTH_MIN: Final = 8
"""`_shape` removes the name of a directory from the names of its files only if the directory's name
has at least this many characters. A shorter name may occur in a file's name by chance.
"""


class Links:
    """Owns, for each link, the path to which it pointed at the last look that found it."""

    def __init__(self, directories: Directories) -> None:
        self._directories = directories
        self._led: dict[str, str] = {}

    def load(self, found: Iterable[tuple[str, str]]) -> None:
        """Takes over the files to which links led before the agent started. found: for each file,
        the path of the link and the real path. The newest file comes last.
        """
        self._led = dict(found)

    def moved(self, lay: Mapping[str, Found]) -> Iterator[tuple[Found, list[str] | None]]:
        """Yields each link that points into another directory than at the last look. Each link
        comes with a list of the paths to which it may have pointed between the two looks, or with
        None if the agent cannot guess these paths.
        """
        led = {}
        for path, found in lay.items():
            if not found.is_linked:
                continue
            before = self._led.get(path, found.real_path)
            led[path] = found.real_path
            if os.path.dirname(before) != os.path.dirname(found.real_path):
                yield found, self._between(before, found.real_path)
        self._led.update(led)

    def lost(self, lay: Mapping[str, Found]) -> Iterator[tuple[str, str]]:
        """Yields each link that is broken or gone now, with the path to which it pointed before. If
        the directory of that path is gone, forgets the link.
        """
        for path, real_path in list(self._led.items()):
            if path in lay or path == real_path:
                continue
            try:
                self._directories.names(os.path.dirname(real_path))
            except FileNotFoundError:
                del self._led[path]
            except OSError:
                continue
            else:
                yield path, real_path

    def _between(self, old: str, new: str) -> list[str] | None:
        above = os.path.commonpath([os.path.dirname(old), os.path.dirname(new)])
        ways = [os.path.relpath(os.path.dirname(path), above) for path in (old, new)]
        levels = len(ways[0].split("/"))
        if "." in ways or levels != len(ways[1].split("/")) or levels > LEVELS:
            return None
        directories = [above]
        for _ in range(levels):
            directories = [below for each in directories for below in self._below(each)]
            if len(directories) > PLACES_MAX:
                return None
        shapes = {_shape(*os.path.split(path)) for path in (old, new)}
        if len(shapes) > 1:
            return None
        places = {
            os.path.join(each, name)
            for each in directories
            for name in self._names(each)
            if any(_shape(each, base) in shapes for base in _bases(name))
        }
        return sorted(places - {old, new})

    def _names(self, directory: str) -> list[str]:
        try:
            return [name for name, _ in self._directories.names(directory)]
        except OSError:
            return []  # the path is no directory, or was deleted

    def _below(self, directory: str) -> list[str]:
        return [os.path.join(directory, name) for name in self._names(directory)]


def _bases(name: str) -> list[str]:
    """Returns the file name `name`, and the names of the logs of which this file may be a
    generation."""
    said = generation(name)
    return [name, *(() if said is None else said.bases)]


def _shape(directory: str, name: str) -> str:
    """Returns a file name without its numbers. If the name contains the name of the file's
    directory, as in Docker's `<id>/<id>-json.log`, this part is removed, too.
    """
    id_ = os.path.basename(directory)
    return shape(name.replace(id_, "/") if len(id_) >= ID_LENGTH_MIN else name)
