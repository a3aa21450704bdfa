"""Runs pip with short output: first a summary, then one line for each distribution.

    python deploy/packaging/installation.py "1 GB on disk" --requirement LOCK PIP-ARGUMENT...

The first argument is the space that the packages take; the summary shows it. The script runs `pip
install` with all other arguments, and with the Python that runs this script. In place of pip's
lines, this script prints a line such as " 12 pyspark-4.3.0 (434.1 MB)" for each distribution that
pip downloads or takes from its cache. pip prints nothing while it downloads or builds something
large. During this time, this script prints a line every SILENCE_S seconds, which says what pip is
doing. If pip fails, the script shows pip's last lines. This script needs only the standard library
and any pip, because nothing else is installed yet.
"""

import re
import subprocess
import sys
import threading
import time
from pathlib import Path

SILENCE_S = 10.0
TAIL_LINES = 40
PIP = ("-m", "pip", "--disable-pip-version-check", "install", "--progress-bar", "off")
_FETCHED = re.compile(r"^\s*(Downloading|Using cached) (\S+)(?: \(([^)]+)\))?")
_COLLECTED = re.compile(r"^Collecting ([\w.-]+)")
_BUILT = re.compile(r"^\s*Building wheel for (\S+)")
_LOCKED = re.compile(r"^([\w.-]+)==(.*)$", re.MULTILINE)
_INSTALLED = re.compile(r"^Installing collected packages: (.*)")


class Telling:
    """Turns the many lines that pip prints into a few lines about its progress."""

    def __init__(self) -> None:
        self.said: list[str] = []
        self.doing = "pip starts"
        self._fetched: set[str] = set()

    def line(self, text: str) -> str:
        """Returns the line to print for the line `text` of pip's output. For most lines this is "",
        because nothing is to be printed for them."""
        self.said.append(text)
        if found := _FETCHED.match(text):
            return self._fetch(found[1] == "Using cached", found[2].rpartition("/")[2], found[3])
        if found := _COLLECTED.match(text):
            self.doing = f"looks for {found[1]}"
        elif found := _BUILT.match(text):
            if found[1] in self.doing:
                return ""
            self.doing = f"builds {found[1]}"
            return f"  {self.doing}"
        elif found := _INSTALLED.match(text):
            count = found[1].count(",") + 1
            self.doing = f"unpacks {count} distributions"
            return f"  {self.doing}"
        return ""

    def silence(self, seconds: float) -> str:
        """Returns the line to print when pip has printed nothing for a while: it says what pip is
        doing. seconds: the time since pip was started."""
        return f"  ... {self.doing} ({seconds:.0f} s)"

    def _fetch(self, cached: bool, file: str, size: str) -> str:
        if file.endswith(".metadata") or file in self._fetched:
            return ""
        self._fetched.add(file)
        name = _name(file)
        how = "from pip's cache" if cached else size or "of unknown size"
        self.doing = f"takes {name} from pip's cache" if cached else f"downloads {name} ({how})"
        return f"  {len(self._fetched):2d} {name} ({how})"


def main(arguments: list[str]) -> int:
    """Prints a summary, runs pip and prints its progress. Returns pip's exit status, or 130 if the
    user interrupts the script."""
    size, options = arguments[0], arguments[1:]
    begin = time.monotonic()
    _say(f"Installing {_announced(options)} ({size}): once, the next run finds it.")
    pip = subprocess.Popen(
        [sys.executable, *PIP, *options],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
    )  # fmt: skip
    telling, ended = Telling(), threading.Event()
    spoke_at = [begin]

    def watch() -> None:
        while not ended.wait(1.0):
            quiet = time.monotonic() - spoke_at[0]
            if quiet >= SILENCE_S:
                _say(telling.silence(time.monotonic() - begin))
                spoke_at[0] = time.monotonic()

    watching = threading.Thread(target=watch, daemon=True)
    watching.start()
    assert pip.stdout is not None
    try:
        for text in pip.stdout:
            if said := telling.line(text.rstrip("\n")):
                _say(said)
                spoke_at[0] = time.monotonic()
        status = pip.wait()
    except KeyboardInterrupt:
        pip.terminate()
        pip.wait()
        sys.stderr.write("\nStopped; the next run installs the rest.\n")
        return 130
    finally:
        ended.set()
        watching.join()
    seconds = time.monotonic() - begin
    if status:
        sys.stderr.write("\n".join([*telling.said[-TAIL_LINES:], f"pip failed: status {status}\n"]))
    else:
        _say(f"Installed in {seconds:.0f} s.")
    return status


def locked(text: str) -> set[str]:
    """Returns the names of the packages that a file of locked versions lists, except packages that
    are only for other operating systems. text: the content of the file."""
    return {found[1] for found in _LOCKED.finditer(text) if "sys_platform ==" not in found[2]}


def _announced(options: list[str]) -> str:
    if "--requirement" not in options:
        return "the newest versions that are allowed"
    lock = Path(options[options.index("--requirement") + 1])
    return f"{len(locked(lock.read_text()))} distributions"


def _name(file: str) -> str:
    """Returns name and version of a package, joined by a hyphen. file: the file name of its wheel
    or source archive."""
    for end in (".tar.gz", ".zip"):
        if file.endswith(end):
            return file[: -len(end)]
    return "-".join(file.split("-")[:2])


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
