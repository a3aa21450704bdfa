"""Implements `make incidents`: breaks one part of a small real site after the other, and measures
how soon the first page, `skidway audit why` and `skidway audit report` show the true cause first.
Prints a table in Markdown. Ends with status 1 if one of them needs more than WITHIN_S.

What decides about these times has its default: the silence, the lateness, heartbeats, the length of
a bucket. Only `loads.every.ms` has none; here a load begins every five seconds.
"""

from __future__ import annotations

import contextlib
import json
import sys
import tempfile
import time
import urllib.error
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from skidway.demo.site import OFFLINE
from skidway.kafka.protocol.frames import RequestHeader
from support.incident_site import TOPICS, Incidents, read
from support.pipeline import Writer, source
from support.processes import Program, eventually, skidway
from support.proxy import Fault

WITHIN_S = 60.0
GIVEN_UP_S = 240.0
PLACES = ("page", "why", "report")
ELSEWHERE = "elsewhere.log"
NOTHING, NO_PAGE = "nothing", "no answer"
TOPIC, LINKED, NEW = "killed-agent", "unreadable-log", "new-schema"
DEFAULTS: Mapping[str, Mapping[str, Any]] = {
    "agent": {
        "audit.bucket.ms": 60_000, "seal.interval.ms": 15_000, "audit.interval.ms": 15_000,
    },
    "audit": {"lateness.ms": 120_000, "bucket.ms": 60_000, "loads.every.ms": 30_000},
    "count-dc1": {"bucket.ms": 60_000, "commit.interval.ms": 15_000},
    "count-offline": {"bucket.ms": 60_000, "commit.interval.ms": 15_000},
    "loader": {"bucket.ms": 60_000, "metrics.listener": None, "spark.above.offsets": 1_000_000},
}  # fmt: skip


@dataclass(frozen=True)
class Broken:
    """A part that breaks. cause: the true cause. breaks: breaks it, and repairs it when the `with`
    block ends. page: what the page shows; without its program, it answers nobody."""

    name: str
    cause: str
    breaks: Callable[[Site], contextlib.AbstractContextManager[None]]
    page: str = ""

    def wanted(self) -> dict[str, str]:
        """Returns what each place must show first."""
        return dict.fromkeys(PLACES, self.cause) | {"page": self.page or self.cause}


class Site(Incidents):
    """The site with a loader that runs all the time."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder, DEFAULTS)
        config = str(self.config("loader"))
        words = skidway("load", "run", "--every", "5s", "--config", config)
        self.loader = Program(words, folder / "loader.out", session=True)

    def sources(self) -> list[dict[str, Any]]:
        names = [x for x in (TOPIC, LINKED, NEW) if x in TOPICS]
        return [source(x, self.folder / x, **TOPICS[x]) for x in names]

    def shown(self) -> dict[str, str]:
        """Returns what each place shows first."""
        whole = {"loads": True}
        why = self.asked("why", **whole)
        rows = why["causes"] or [x["cause"] for x in why["topics"]]
        found = {
            "why": rows[0]["cause"] if rows else NOTHING,
            "report": _first(self.asked("report", **whole)),
        }
        try:
            page = json.loads(read(self.pipeline.site.url("dashboard") + "/index.json"))
        except (urllib.error.URLError, ConnectionError):
            return {"page": NO_PAGE} | found
        return {"page": _first(page)} | found


def _first(document: dict[str, Any]) -> str:
    causes = document["causes"] or [document["worst"]]
    return NOTHING if causes[0] is None else str(causes[0]["cause"])


def _killed(*names: str) -> Callable[[Site], contextlib.AbstractContextManager[None]]:
    @contextlib.contextmanager
    def broken(site: Site) -> Iterator[None]:
        for name in names:
            site.pipeline.kill(name)
        yield
        site.pipeline.start(*names)

    return broken


@contextlib.contextmanager
def _without_registry(site: Site) -> Iterator[None]:
    """Only an agent with a schema that is new to it needs the registry."""
    TOPICS[NEW] = {"parser": {"type": "regex", "pattern": r"line (?P<first>\d+) .*"}}
    site.log(NEW).write("app.log", 10)
    with _killed("registry")(site):
        site.pipeline.kill("agent")
        site.rewrite()
        site.pipeline.programs["agent"].start()
        yield
    site.pipeline.wait_healthy("agent")


def _is_of_mirror(header: RequestHeader, body: memoryview) -> bool:
    return header.client_id == f"skidway-mirror-{OFFLINE}"


@contextlib.contextmanager
def _mirror_cut_off(site: Site) -> Iterator[None]:
    held = site.pipeline.proxy.inject(Fault.HOLD_REQUEST, _is_of_mirror)
    yield
    held.release()


@contextlib.contextmanager
def _loader_killed(site: Site) -> Iterator[None]:
    site.loader.kill()
    yield
    site.loader.start()


@contextlib.contextmanager
def _log_taken_away(site: Site) -> Iterator[None]:
    """A link that led to a file leads nowhere."""
    away = site.folder / ELSEWHERE
    kept = away.rename(site.folder / "kept.log")
    yield
    kept.rename(away)


BROKEN = (
    Broken("broker", "cluster away", _killed("broker-dc1")),
    Broken("registry", "registry away", _without_registry),
    Broken("ZooKeeper", "zookeeper away", _killed("zookeeper")),
    Broken("mirror source", "cluster away", _mirror_cut_off),
    Broken("counter", "counter stopped", _killed("count-dc1")),
    Broken("collector", "collector stopped", _killed("audit"), page=NO_PAGE),
    Broken("loader", "load not run", _loader_killed),
    Broken("unreadable log", "file unreadable", _log_taken_away),
)


def main() -> int:
    """Breaks all parts, one after the other."""
    with tempfile.TemporaryDirectory() as folder:
        site = Site(Path(folder))
        log = site.log(LINKED)
        (site.folder / ELSEWHERE).write_text("")
        (log.folder / "app.log").symlink_to(site.folder / ELSEWHERE)
        log.write("app.log", 10)
        try:
            site.pipeline.start()
            site.loader.start()
            with Writer(site.log(TOPIC), "app.log", every_s=0.2):
                return _table([(x, *_measured(site, x)) for x in BROKEN])
        finally:
            if site.loader.running:
                site.loader.kill_session()
            site.pipeline.stop()


def _measured(site: Site, broken: Broken) -> tuple[dict[str, float], list[str]]:
    """Returns after how many seconds each place showed what it must show first, and what else any
    of them showed first before."""
    eventually(lambda: {*site.shown().values()} == {NOTHING}, every_s=0.5, what="all is well")
    print(f"{broken.name} ...", file=sys.stderr)
    took: dict[str, float] = {}
    before: dict[str, None] = {}
    with broken.breaks(site):
        began = time.monotonic()
        while len(took) < len(PLACES) and time.monotonic() - began < GIVEN_UP_S:
            for place, cause in site.shown().items():
                if cause == broken.wanted()[place]:
                    took.setdefault(place, time.monotonic() - began)
                elif place not in took and cause != NOTHING:
                    before[cause] = None
            time.sleep(0.5)
    return took, list(before)


def _table(rows: Sequence[tuple[Broken, Mapping[str, float], Sequence[str]]]) -> int:
    print(f"| part | first cause | {' | '.join(PLACES)} | shown before |")
    print(f"|---|---|{'---|' * (len(PLACES) + 1)}")
    for broken, took, before in rows:
        cells = [f"{took[x]:.0f} s" if x in took else "never" for x in PLACES]
        if broken.page:
            cells[0] = f"{broken.page}, {cells[0]}"
        print(f"| {broken.name} | `{broken.cause}` | {' | '.join(cells)} | {', '.join(before)} |")
    return int(any(took.get(x, GIVEN_UP_S) > WITHIN_S for _, took, _ in rows for x in PLACES))


if __name__ == "__main__":
    sys.exit(main())
