"""Decides when settings are read again, and reports the result of each reload.

    asked (SIGHUP, request) -> preparing -> the program applies the settings, or refuses them
                                  |
                                  asked again meanwhile: another preparation follows

A preparation answers only the requests that came before it began. So its answer is about the files
as they were when the operator asked, or about newer files. If the agent cannot apply settings at
the moment, it refuses requests without a preparation.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from skidway.agent import events
from skidway.agent.configuration import Configuration, SourcesRefused
from skidway.agent.reloading.difference import changes
from skidway.agent.reloading.preparation import Preparation, Prepared, Refusal
from skidway.agent.reloading.requests import Answer, Requests
from skidway.agent.reloading.standing import Standing
from skidway.agent.settings import AgentSettings
from skidway.agent.validation.checks import checked
from skidway.cli.moments import shown
from skidway.clock import Clock
from skidway.errors import ConfigurationRefused

LOOK_EVERY_S = 0.5
"""After this many seconds, the agent checks again whether there are requests."""

CLOSE_S = 5.0


class Reloader:
    """Owns the settings in use, the requests, and the preparation that is under way."""

    def __init__(self, configuration: Configuration, settings: AgentSettings, clock: Clock) -> None:
        self.configuration = configuration
        self.settings = settings
        self._requests = Requests(settings.state_dir)
        self._standing = Standing(configuration, settings, clock)
        self._is_asked = False
        self._waiting: list[str] = []
        self._answering: list[str] = []
        self._preparation: Preparation | None = None
        self._look_at = 0.0

    def open(self) -> None:
        """Makes the folder for requests, so that operators can ask for reloads. Raises SkidwayError
        if the folder cannot be made."""
        self._requests.open()

    def ask(self) -> None:
        """Asks for a reload, as SIGHUP does. Signal handlers may call this method."""
        self._is_asked = True

    def look(self, now: float) -> None:
        """Every LOOK_EVERY_S seconds, checks whether there are requests. Also checks, less often,
        whether the configuration's files differ from the settings in use.
        """
        if now < self._look_at:
            return
        self._look_at = now + LOOK_EVERY_S
        self._waiting += self._requests.take()
        self._standing.look(now)
        events.configuration_differs(self._standing.differs_since_ms)

    @property
    def is_due(self) -> bool:
        """Whether somebody has asked for a reload and no preparation is under way. If so, a
        preparation must begin."""
        return self._preparation is None and (self._is_asked or bool(self._waiting))

    def set_aside(self, refused: SourcesRefused) -> None:
        """Reads the settings without these files of `sources.dir`, which a starting agent found
        that it cannot use. Raises SourcesRefused if that was done already."""
        known = {each.path: each.reason for each in self.settings.refused}
        if refused.files.keys() <= known.keys():
            raise refused
        self.settings = self.configuration.taken(checked, refused.files | known)
        self._standing.took(self.settings)

    def begin(self, work: Callable[[], Prepared]) -> None:
        """Begins a preparation, which answers all requests that wait now. work: a function that
        prepares the settings; it runs on a thread of its own."""
        self._is_asked = False
        self._answering, self._waiting = self._waiting, []
        self._preparation = Preparation(work)

    def result(self) -> Prepared | Refusal | None:
        """Returns the result of the preparation; None while the preparation is under way. Later
        calls return None, too, until another preparation has ended."""
        result = None if self._preparation is None else self._preparation.result()
        if result is not None:
            self._preparation = None
        return result

    def took(self, prepared: Prepared, also: Sequence[str]) -> None:
        """Answers the requests that led to this preparation: the agent runs with new settings now.
        also: sentences about further changes, such as new schemas in the registry.
        """
        words = [*changes(self.settings, prepared.settings), *also]
        self.settings = prepared.settings
        self._standing.took(prepared.settings)
        events.reloaded(words)
        refused = [each.words for each in prepared.settings.refused]
        status = ConfigurationRefused.exit_code if refused else 0
        said = [*(words or ["nothing changed"]), *prepared.warnings]
        self._answer(Answer(status, said, refused))

    def refuse(self, refusal: Refusal) -> None:
        """Answers the requests that led to the preparation: the agent keeps its present settings,
        for this reason."""
        self._standing.refused(refusal.public or refusal.reason)
        events.reload_refused(refusal.reason)
        self._answer(Answer(refusal.status, [refusal.reason]))

    def refuse_all(self, reason: str) -> None:
        """Refuses all waiting requests without a preparation, because the agent cannot apply
        settings at this moment.
        """
        self._waiting += self._requests.take()
        if self._is_asked or self._waiting:
            self._is_asked = False
            self._answering, self._waiting = [*self._answering, *self._waiting], []
            self.refuse(Refusal(reason, 1))

    def close(self) -> None:
        """Waits up to CLOSE_S seconds for the preparation to end, and refuses all requests that are
        not answered yet.
        """
        if self._preparation is not None:
            self._preparation.wait(CLOSE_S)
            self._preparation, self._is_asked = None, True
        self.refuse_all("the agent is ending")

    @property
    def detail(self) -> dict[str, Any]:
        """What /health says about the configuration; empty if the configuration's files contain the
        settings in use.
        """
        since_ms, refusal = self._standing.differs_since_ms, self._standing.refusal
        if since_ms is None:
            return {}
        said: dict[str, Any] = {"differs_since": shown(since_ms)}
        if refusal is not None:
            said["refused"] = refusal
        if self._standing.files:
            said["refused_files"] = {each.path: each.instead for each in self._standing.files}
        return {"configuration": said}

    def _answer(self, answer: Answer) -> None:
        answering, self._answering = self._answering, []
        self._requests.answer(answering, answer)
