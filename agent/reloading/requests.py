"""The files with which the command `skidway agent reload` asks the running agent for a reload, and
with which the agent answers.

    <state.dir>/reload/<id>.request   an empty file, which the command makes
    <state.dir>/reload/<id>.taken     the same file; the agent renames it when it finds the request
    <state.dir>/reload/<id>.answer    JSON; the agent writes it, and the command deletes it
    <state.dir>/reload/<id>.unsaid    the file .taken, renamed: the agent could not write an answer

Unlike a signal, files need no process id. So the command cannot reach a wrong process. The command
also reaches an agent in a container if the container shares the directory. Every user who may write
to the agent's state directory may ask for a reload.
"""

from __future__ import annotations

import contextlib
import json
import secrets
from collections.abc import Iterable, Mapping
from dataclasses import asdict, field
from pathlib import Path
from typing import Final

from skidway.dataclass import dataclass
from skidway.errors import SkidwayError
from skidway.files import LOCK_FILE, make_directory, write_atomically
from skidway.regular_file import read_regular

FOLDER: Final = "reload"
REQUEST: Final = ".request"
TAKEN: Final = ".taken"
ANSWER: Final = ".answer"
UNSAID: Final = ".unsaid"
ANSWERS_MAX: Final = 100
"""Commands that are killed leave their files in the folder of the requests. If the folder has more
files than this, the agent deletes the answers in this folder.
"""


@dataclass(frozen=True, slots=True)
class Answer:
    """The result of a reload. status: the command's exit status. sentences: what changed, or why
    the reload was refused. refused: which files of `sources.dir` were refused, while the other
    settings were taken, and why.
    """

    status: int
    sentences: list[str]
    refused: list[str] = field(default_factory=list)


class Requests:
    """The requests, as the agent sees them. Owns the folder of the requests while the agent
    runs."""

    def __init__(self, state_dir: Path) -> None:
        self._folder = state_dir / FOLDER

    def open(self) -> None:
        """Makes the folder, and deletes old answers. If an earlier agent has left requests without
        an answer, this agent takes them over. Raises SkidwayError if the folder cannot be made.
        """
        make_directory(self._folder)
        for path in self._folder.iterdir():
            with contextlib.suppress(OSError):
                if path.suffix == TAKEN:
                    path.rename(path.with_suffix(REQUEST))
                elif path.suffix in (ANSWER, UNSAID):
                    path.unlink()

    def take(self) -> list[str]:
        """Marks all new requests as taken. Returns their ids."""
        taken = []
        try:
            names = list(self._folder.iterdir())
        except OSError:
            return []
        for path in sorted(names):
            if path.suffix == REQUEST:
                with contextlib.suppress(OSError):
                    path.rename(path.with_suffix(TAKEN))
                    taken.append(path.stem)
            elif len(names) > ANSWERS_MAX and path.suffix in (ANSWER, UNSAID):
                with contextlib.suppress(OSError):
                    path.unlink()
        return taken

    def answer(self, ids: Iterable[str], answer: Answer) -> None:
        """Writes the answer to requests. Raises no error, even if the disk is full."""
        data = json.dumps(asdict(answer)).encode()
        for id_ in ids:
            taken = self._folder / f"{id_}{TAKEN}"
            try:
                write_atomically(taken.with_suffix(ANSWER), data)
                taken.unlink(missing_ok=True)
            except OSError:
                with contextlib.suppress(OSError):
                    taken.rename(taken.with_suffix(UNSAID))  # a rename needs no disk space


class Asking:
    """One request, as the command sees it. The end of the `with` block deletes the request's
    files."""

    def __init__(self, state_dir: Path) -> None:
        self._state_dir = state_dir
        self._path = state_dir / FOLDER / secrets.token_hex(8)

    def __enter__(self) -> Asking:
        try:
            self._path.with_suffix(REQUEST).touch(exist_ok=False)
        except FileNotFoundError as error:
            raise SkidwayError(f"no agent ever ran with state.dir {self._state_dir}") from error
        except OSError as error:
            raise SkidwayError(
                f"cannot ask the agent with state.dir {self._state_dir}: {error.strerror}; run"
                " this as the agent's user, or as root"
            ) from error
        return self

    def __exit__(self, *_: object) -> None:
        for suffix in (REQUEST, TAKEN, ANSWER, UNSAID):
            with contextlib.suppress(OSError):
                self._path.with_suffix(suffix).unlink(missing_ok=True)

    @property
    def is_taken(self) -> bool:
        """Whether an agent has found the request."""
        return not self._path.with_suffix(REQUEST).exists()

    def answer(self) -> Answer | None:
        """Returns the agent's answer; None if there is none yet. Raises SkidwayError if the answer
        cannot be read."""
        if self._path.with_suffix(UNSAID).exists():
            return Answer(1, ["the agent cannot write its answer (disk full?): its log has it"])
        try:
            text = read_regular(self._path.with_suffix(ANSWER)).decode()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise SkidwayError(f"cannot read the agent's answer: {error.strerror}") from error
        document: Mapping[str, object] = json.loads(text)
        said, refused = (list(map(str, _list(document[name]))) for name in ("sentences", "refused"))
        return Answer(int(str(document["status"])), said, refused)


def is_stopped(state_dir: Path) -> bool:
    """Whether the last process that used the state has stopped cleanly."""
    try:
        return not read_regular(state_dir / LOCK_FILE).strip()
    except OSError:
        return False


def _list(value: object) -> list[object]:
    assert isinstance(value, list)  # the agent wrote it
    return value
