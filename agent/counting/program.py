"""`skidway agent count`: builds the loop, runs it, and stops it. The program serves no metrics, so
it needs no port, and can run on the same host as an agent."""

from __future__ import annotations

import resource
import select
from contextlib import ExitStack
from typing import Final

from skidway import log, systemd
from skidway.agent import memory
from skidway.agent.counting.loop import OPEN_FILES_MAX, CountLoop, Progress
from skidway.agent.counting.settings import CountSettings
from skidway.agent.counting.state import check_directory, open_count
from skidway.agent.files.access import access_of
from skidway.agent.files.operating_system import OperatingSystem
from skidway.agent.files.watching import Watch
from skidway.clock import SystemClock
from skidway.files import DirectoryLock
from skidway.host_name import installed_host_name
from skidway.service import Shutdown

TELL_EVERY_S: Final = 60.0

_log = log.get(__name__)


def run(settings: CountSettings, shutdown: Shutdown) -> int:
    """Counts until the shutdown. Raises UsageError if the settings are not valid, StateRefused if
    the notes must not be used, and SkidwayError if the directory cannot be used."""
    settings.check()
    check_directory(settings.directory, settings.patterns)
    memory.collect_seldom()
    with ExitStack() as stack:
        stack.enter_context(DirectoryLock(settings.directory))
        state = open_count(settings.directory)
        stack.callback(state.close)
        clock = SystemClock()
        host = OperatingSystem(access_of(settings.links, settings.directory))
        loop = CountLoop(settings, state, host, clock, installed_host_name(), _open_files_max())
        stack.callback(loop.close)
        watch = Watch(settings.patterns)
        watch.start()
        stack.callback(watch.stop)
        systemd.ready(f"counting into {settings.directory}")
        _log.info("count_started", directory=str(settings.directory), paths=list(settings.paths))
        _run(loop, watch, clock, shutdown)
    _log.info("count_stopped", lines=loop.progress.lines, bytes=loop.progress.bytes)
    return 0


def _open_files_max() -> int:
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return max(1, min(OPEN_FILES_MAX, hard // 2))


def _run(loop: CountLoop, watch: Watch, clock: SystemClock, shutdown: Shutdown) -> None:
    waiting = select.poll()
    for each in (watch.inbox, shutdown):
        waiting.register(each.fileno(), select.POLLIN)
    told, tell_at = Progress(), clock.monotonic() + TELL_EVERY_S
    while not shutdown.requested:
        paths, everything, events = watch.inbox.take()
        everything |= watch.mind(events, clock.monotonic())
        watch.follow(loop.tracker.linked_directories)
        if paths or everything:
            loop.touch(paths, everything=everything)
        loop.turn()
        if clock.monotonic() >= tell_at:
            tell_at = clock.monotonic() + TELL_EVERY_S
            told = _tell(loop.progress, told)
        if not shutdown.wait(loop.pause_s()):
            waiting.poll(round(loop.patience_s() * 1000))


def _tell(now: Progress, told: Progress) -> Progress:
    """If anything was noted since the last call, logs how much. told: the result of the last
    call."""
    if now != told:
        lines, size = now.lines - told.lines, now.bytes - told.bytes
        _log.info("lines_noted", lines=lines, bytes=size)
    return Progress(now.lines, now.bytes)
