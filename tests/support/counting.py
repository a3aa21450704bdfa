"""Runs the counting agent (`skidway agent count`) as a process, or on a simulated host with a
simulated clock. In both cases, the agent writes its notes (which lines it has read) to a real
directory."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from skidway.agent.counting.loop import CountLoop
from skidway.agent.counting.settings import CountSettings
from skidway.agent.counting.state import CountState, open_count
from skidway.audit.comparison.lines import hash_of
from skidway.audit.comparison.notes import Counted, Notes
from skidway.errors import UsageError
from support.agent_world import Files
from support.clock import ManualClock
from support.processes import Program, eventually, skidway

LOG = "/log/app.log"


class CountProcess:
    """`skidway agent count` as a process."""

    def __init__(self, directory: Path, *paths: str) -> None:
        self.directory = directory
        options = [each for path in paths for each in ("--files", path)]
        command = skidway("agent", "count", "--into", str(directory), *options)
        self.program = Program(command, directory.with_suffix(".out"))

    def start(self) -> CountProcess:
        """Starts the process, and waits until it has begun to count."""
        self.program = Program(self.program.command, self.program.log)
        before = self.program.output().count("count_started")
        self.program.start()
        self.program.wait_until(
            lambda: self.program.output().count("count_started") > before and self._has_begun()
        )
        return self

    def _has_begun(self) -> bool:
        try:
            return Notes(self.directory).from_ms() > 0
        except UsageError:
            return False

    def lines(self) -> int:
        """Returns the number of lines in the agent's notes."""
        return sum(len(each.begins) for each in Notes(self.directory).read(0, 0).files)

    def wait_noted(self, count: int) -> None:
        eventually(lambda: self.lines() == count, what=f"{count} lines in {self.directory}")


class Counting:
    """Runs `skidway agent count` several times on a simulated host, one run after the other. All
    runs write their notes to the same directory."""

    def __init__(self, directory: Path, *paths: str, start_at: str = "beginning") -> None:
        self.directory = directory
        self.clock = ManualClock()
        self.files = Files(self.clock)
        self.settings = CountSettings(paths or (LOG,), directory, starts_at_end=start_at == "end")
        self.state: CountState | None = None
        self.loop: CountLoop | None = None

    def start(self) -> CountLoop:
        self.directory.mkdir(parents=True, exist_ok=True)
        self.state = open_count(self.directory)
        self.loop = CountLoop(self.settings, self.state, self.files, self.clock, "web7")
        return self.loop

    def kill(self) -> None:
        """Ends the agent as kill -9 does: only committed notes remain."""
        assert self.state is not None
        self.state.close()
        self.state = self.loop = None

    def turn(self, times: int = 4, seconds: float = 1.0) -> None:
        loop = self.loop or self.start()
        for _ in range(times):
            self.clock.advance(seconds)
            loop.turn()

    def write(self, *texts: str, path: str = LOG) -> None:
        self.files.append(path, "".join(f"{text}\n" for text in texts).encode())

    def rotate(self, to: str, path: str = LOG) -> None:
        self.files.rename(path, to)

    def counted(self) -> Counted:
        return Notes(self.directory, self.is_at).read(0, self.clock.time_ms())

    def is_at(self, path: str, device: int, inode: int) -> bool:
        found = self.files.look(path)
        return found is not None and found.key == (device, inode)

    def hashes(self) -> Counter[int]:
        """Returns, for the hash of each text, how many lines with this text the notes contain."""
        return Counter(hash_ for each in self.counted().files for hash_ in each.hashes)


def hashes_of(*texts: str) -> Counter[int]:
    return Counter(hash_of(text.encode()) for text in texts)
