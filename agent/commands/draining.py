"""`skidway agent drain`: before a host leaves for good, its agent delivers all lines and tells the
audit that no more lines will come.

    lock the state -> wait for registry and cluster -> run the loop -> publish the last words

The command works like the running agent, but ends by itself: when every topic has its last word
(its final seal; see `accounts.leaving`), or when its time is over. If the time is over, the command
first waits, for at most `program.SETTLE_S` seconds, until each batch that it has sent is
acknowledged or refused.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Collection, Iterator
from datetime import UTC, datetime
from pathlib import Path

from skidway.agent import program
from skidway.agent.settings import REJECTED_SUFFIX, AgentSettings
from skidway.agent.state.database import DATABASE, StateDatabase
from skidway.clock import SystemClock
from skidway.errors import SkidwayError, StateRefused, Unreachable
from skidway.service import Shutdown
from skidway.telemetry import Health

SENTENCES_MAX = 20


class NotDrained(SkidwayError):
    """Raised if the last word of a topic is missing or not published, for example because lines of
    the host are not delivered yet."""


def drain(settings: AgentSettings, shutdown: Shutdown, timeout_s: float) -> str:
    """Delivers all lines of the files, and then sends the last word of every topic. Returns a
    sentence for the operator.

    Raises Unreachable if cluster or registry do not answer in time, NotDrained if anything is left
    to do, and StateRefused if the state cannot be used. Raises other SkidwayErrors as `program.run`
    does.
    """
    if not _is_ours(settings.state_dir):
        return f"drained: no agent ever ran with the state {settings.state_dir}, nothing to say"
    over = threading.Timer(timeout_s, shutdown.request)
    over.daemon = True
    over.start()
    try:
        with program.opened(settings) as state:
            return _drain(settings, state, shutdown)
    finally:
        over.cancel()


def _drain(settings: AgentSettings, state: StateDatabase, shutdown: Shutdown) -> str:
    clock, status = SystemClock(), program.Status(Health(False, {}))
    with program.connected(settings) as clients:
        found = program.find(settings, state, clients[0], clock, shutdown, status)
        if found is None:
            reason = status.health.detail.get("reason", "it was ended")
            raise Unreachable("\n".join([f"not drained: {reason}", *_unknown(state)]))
        with program.RunningAgent(
            settings, state, clients, clock, shutdown, status, found
        ) as agent:
            drained = agent.drain()
    if agent.made_again:
        raise NotDrained(
            f"not drained: {', '.join(sorted(agent.made_again))} was made again meanwhile; drain"
            " again"
        )
    return answer(drained, state)


def answer(drained: program.Drained, state: StateDatabase) -> str:
    """Returns a sentence for the operator if all lines are delivered and all last words are
    published. If anything is left to do, raises NotDrained, with a text that says what the audit
    still lacks.
    """
    if drained.full_reason is not None:
        raise NotDrained(
            f"not drained: {drained.full_reason}: make room and drain again, before the host is"
            " retired; until then, the agent's last messages remain valid"
        )
    if drained.unsaid:
        raise NotDrained(_said_of(drained, state))
    if not drained.is_published:
        raise NotDrained(
            "not drained: everything is delivered, but the brokers have not taken the last word on"
            " it; it is kept, drain again"
        )
    return f"drained: the last word is said, {drained.said} topics, nothing lies unread"


def _said_of(drained: program.Drained, state: StateDatabase) -> str:
    more = len(drained.obstacles) - SENTENCES_MAX
    said = [
        "not drained: not everything could be delivered in time",
        *drained.obstacles[:SENTENCES_MAX],
        *([f"and {more} more"] if more > 0 else []),
        *_unknown(state, drained.unsaid),
    ]
    if not drained.is_published:
        said.append(
            "the brokers have not taken all that was said of it; it is kept: drain again, before"
            " the host is retired"
        )
    return "\n".join(said)


def _unknown(state: StateDatabase, topics: Collection[str] | None = None) -> Iterator[str]:
    for name, topic in sorted(state.topics().items()):
        if name.endswith(REJECTED_SUFFIX):
            continue
        if name in topics if topics is not None else name not in state.left:
            if topic.sealed_until is None:
                yield f"topic {name}: it was never sealed, all buckets of this host stay unknown"
            else:
                due = f"not due at {_time(topic.sealed_until)}"
                yield f"topic {name}: buckets of this host that were {due} stay unknown"


def _time(time_ms: int) -> str:
    return datetime.fromtimestamp(time_ms / 1000, UTC).strftime("%Y-%m-%d %H:%M:%SZ")


def _is_ours(directory: Path) -> bool:
    """Whether the directory has a state. Raises StateRefused if the state belongs to another user,
    because that user's agent could not read what this process would write into the state. Also
    raises StateRefused if the directory is missing or has only remains of a state."""
    path = directory / DATABASE
    try:
        owner = os.stat(path).st_uid
    except FileNotFoundError:
        _refuse_remains(directory)
        return False
    except OSError as error:
        raise StateRefused(f"the state {path} cannot be looked at: {error.strerror}") from error
    if owner != os.geteuid():
        raise StateRefused(
            f"the state {path} belongs to user {owner}, and this is user {os.geteuid()}: drain as"
            " the user of the agent"
        )
    return True


def _refuse_remains(directory: Path) -> None:
    """Raises StateRefused if the directory is missing, or contains only remains of a state (files
    without the state itself)."""
    if not directory.is_dir():
        raise StateRefused(
            f"there is no directory {directory}: nothing is known of what was read on this host. If"
            " its disk is not mounted, mount it; if state.dir is another one, name that"
        )
    remains = sorted(path.name for path in directory.glob(f"{DATABASE}-*"))
    if remains:
        raise StateRefused(
            f"{directory / DATABASE} is gone, and {', '.join(remains)} is still there: what was"
            " read on this host is not known any more, and no last word can be said"
        )
