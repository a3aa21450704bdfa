"""Knows, without I/O, how the programs of a site were started, as far as they have told the audit.
So printed commands name the unit, the configuration file and the host that they need."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from skidway.audit.evidence.statuses import Statuses
from skidway.audit.topic.messages import Tier
from skidway.audit.topic.notes import Note
from skidway.audit.topic.program_status import ProgramStatus
from skidway.invocation import Invocation, installed

UNITS: Mapping[str, str] = {
    "agent": "skidway-agent",
    "broker": "skidway-broker",
    "mirror": "skidway-broker",
    "loader": "skidway-loader",
    "registry": "skidway-registry",
    "zookeeper": "skidway-zookeeper",
    "collector": "skidway-audit",
}
"""The unit of each kind of program, for a program that has told nothing."""
_COUNTER = "skidway-audit-count@"
_VERBS = {
    "agent": "agent run", "collector": "audit run", "counter": "audit count", "loader": "load run"
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Placed:
    """How a program was started, and on which host. host: "" if unknown."""

    host: str
    invocation: Invocation


@dataclass(frozen=True, slots=True)
class Programs:
    """The programs of a site. told: the newest note of each program with its status. starts: by
    kind of program, the command that starts those that tell the audit nothing."""

    told: tuple[tuple[Note, ProgramStatus], ...] = ()
    starts: Mapping[str, str] = field(default_factory=dict)

    def command(self, program: str, verb: str, host: str, place: str) -> tuple[str, str]:
        """Returns a command that runs a verb with the settings of a program, or starts the program
        again if the verb is "". Also returns the host on which to run it. host, place: see `find`.
        """
        found = self.find(program, host, place)
        if found is not None and verb:
            return found.host, found.invocation.command(verb)
        if found is not None:
            return found.host, found.invocation.start()
        if not verb:
            return host, self.starts.get(program) or f"systemctl start {UNITS[program]}"
        own = Invocation() if program in self.starts else installed_as(program)
        return host, own.command(verb)

    def counter(self, action: str, tier: Tier | None, host: str, clusters: tuple[str, ...]) -> str:
        """Returns the command of systemd that starts a counter or shows its state; or, for a
        counter without a unit, the command that runs it."""
        found = self._counter(tier, host, clusters)
        if found is not None and not found.unit:
            return found.start()
        if found is not None:
            return f"systemctl {action} {found.unit}"
        if not clusters:
            return f"systemctl list-units --all '{_COUNTER}*'"
        return " ".join([f"systemctl {action}", *(f"{_COUNTER}{x}" for x in clusters)])

    def find(self, program: str, host: str = "", place: str = "") -> Placed | None:
        """Returns a program of this kind that has told how it was started; None if none has. host:
        the host on which it runs. place: the cluster of which it is a broker (or the addresses of
        its brokers), or in which it works; of a mirror, the cluster that it mirrors; of a loader,
        its output and topic. Each is "" if it is not known."""
        if program in ("broker", "mirror"):
            found = self._brokers(program, place)
        else:
            found = [
                Placed(note.host, status.invocation)
                for note, status in self.told
                if status.invocation.verb == _VERBS.get(program)
                and place in ("", note.cluster, note.producer)
            ]
        named = [x for x in found if host in ("", x.host)]
        if program in ("broker", "mirror"):  # the host of a counter need not be that of its brokers
            named = named or found
        return next((x for x in named if x.invocation.verb), None)

    def _brokers(self, program: str, cluster: str) -> list[Placed]:
        return [
            Placed(each.host, each.invocation)
            for note, status in self.told
            for each in status.brokers
            if not cluster
            or cluster in ((note.cluster,) if program == "broker" else each.mirrors)
            or each.address in cluster.split(",")
            if program == "broker" or each.mirrors
        ]

    def _counter(
        self, tier: Tier | None, host: str, clusters: tuple[str, ...]
    ) -> Invocation | None:
        for note, status in self.told:
            is_meant = note.cluster in clusters and host in ("", note.host)
            is_of_tier = tier is None or status.tier == tier.value
            if is_meant and is_of_tier and status.invocation.verb == _VERBS["counter"]:
                return status.invocation
        return None


def installed_as(program: str) -> Invocation:
    """Returns how a program of this kind runs on a host where its unit is installed."""
    return installed(UNITS[program].removeprefix("skidway-"))


def programs_of(found: Statuses, starts: Mapping[str, str]) -> Programs:
    """Returns the programs that have told these statuses. starts: as in `Programs`."""
    return Programs(found.told, starts)
