"""`skidway agent reload`: asks the running agent to read its settings anew, and waits for the
answer.

The command checks the settings first. So it can report most mistakes without asking the agent. The
agent checks its settings again, because it may read other files than the command, for example if
the agent runs in another container.
"""

from __future__ import annotations

import contextlib
import time
from pathlib import Path
from typing import Final

from skidway.agent.configuration import SourcesRefused
from skidway.agent.reloading.requests import Answer, Asking, is_stopped
from skidway.agent.settings import AgentSettings
from skidway.agent.validation.checks import check_settings
from skidway.errors import Unreachable

TAKEN_WITHIN_S: Final = 15.0
"""If no agent has taken the request after this many seconds, the command gives up. A running agent
looks for requests every second, or every ten seconds while it waits for brokers or for the
registry.
"""

ASK_EVERY_S: Final = 0.1


def reload(settings: AgentSettings, timeout_s: float) -> Answer:
    """Asks the agent to reload, and returns its answer. Raises Unreachable if no agent runs, if it
    does not take the request within TAKEN_WITHIN_S, or if no answer comes within `timeout_s`.
    Raises ConfigurationRefused if the settings cannot work, and SkidwayError if the request cannot
    be written.
    """
    with contextlib.suppress(SourcesRefused):  # the agent takes the other files
        check_settings(settings)
    if is_stopped(settings.state_dir):
        raise Unreachable(f"no agent runs with state.dir {settings.state_dir}")
    with Asking(settings.state_dir) as asking:
        begin = time.monotonic()
        while (answer := asking.answer()) is None:
            passed_s = time.monotonic() - begin
            if passed_s >= min(timeout_s, TAKEN_WITHIN_S) and not asking.is_taken:
                raise Unreachable(_silence(settings.state_dir))
            if passed_s >= timeout_s:
                raise Unreachable(
                    f"the agent has not answered within {timeout_s:.0f} s; it may still take the"
                    " settings: its log says so"
                )
            time.sleep(ASK_EVERY_S)
        return answer


def _silence(state_dir: Path) -> str:
    return (
        f"no agent that runs with state.dir {state_dir} took the request; an agent that drains, or"
        " that was killed, takes none"
    )
