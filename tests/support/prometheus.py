"""Runs Debian's Prometheus for a test, and queries its HTTP API."""

from __future__ import annotations

import functools
import json
import shutil
import threading
import urllib.parse
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import yaml

from support.alert_cases import RULES
from support.peers import PeerMissing
from support.processes import Program, answers, free_port

EVERY = "1s"
QUERY_WITHIN_S = 30


def command(name: str) -> str:
    """Returns the path of `prometheus` or `promtool`. If the command is missing, raises PeerMissing
    with a message that says how to get it."""
    found = shutil.which(name)
    if found is None:
        raise PeerMissing(f"{name} is not there: run `make foreign`")
    return found


class Prometheus:
    """A Prometheus with the rules of deploy/monitoring. It scrapes its targets every second.
    `targets` contains the addresses to scrape for each job, and the labels that the job adds."""

    def __init__(self, folder: Path, targets: Mapping[str, tuple[list[str], Mapping[str, str]]]):
        self.port = free_port()
        folder.mkdir(parents=True, exist_ok=True)
        config = folder / "prometheus.yml"
        config.write_text(yaml.safe_dump(_configuration(targets)))
        self.program = Program(
            [
                command("prometheus"),
                f"--config.file={config}",
                f"--storage.tsdb.path={folder / 'data'}",
                f"--web.listen-address=127.0.0.1:{self.port}",
            ],
            folder / "prometheus.log",
        )

    def __enter__(self) -> Prometheus:
        self.program.start()
        return self._when_ready()

    def __exit__(self, *_: object) -> None:
        self.program.kill()

    def _when_ready(self) -> Prometheus:
        self.program.wait_until(lambda: answers(f"http://127.0.0.1:{self.port}/-/ready"))
        self.program.wait_until(self._is_scraped)
        return self

    def _is_scraped(self) -> bool:
        """Whether Prometheus has scraped each target, so that it knows the names of all metrics."""
        found = self._get("targets", state="active")["activeTargets"]
        return bool(found) and all(each["health"] == "up" for each in found)

    def query(self, expression: str) -> list[dict[str, Any]]:
        """Returns the series to which a PromQL expression evaluates now. Raises HTTPError if
        Prometheus does not understand the expression."""
        found = self._get("query", query=expression)
        return list(found["result"])

    def families(self) -> set[str]:
        """The names of all metrics that the targets export, including metrics that have no series
        yet."""
        return {each["metric"] for each in self._get("targets/metadata")}

    def rules(self) -> list[dict[str, Any]]:
        """All rules that Prometheus has loaded. For each rule, `health` says whether its last
        evaluation succeeded."""
        return [rule for group in self._get("rules")["groups"] for rule in group["rules"]]

    def _get(self, path: str, **parameters: str) -> Any:
        url = f"http://127.0.0.1:{self.port}/api/v1/{path}?{urllib.parse.urlencode(parameters)}"
        with urllib.request.urlopen(url, timeout=QUERY_WITHIN_S) as answer:
            return json.load(answer)["data"]


@contextmanager
def textfiles(folder: Path) -> Iterator[str]:
    """Serves the files of a folder over HTTP, in place of node_exporter's textfile collector.
    Yields the address to scrape."""

    class Handler(SimpleHTTPRequestHandler):
        def log_message(self, format: str, *args: Any) -> None:
            pass

    handler = functools.partial(Handler, directory=str(folder))
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def _configuration(
    targets: Mapping[str, tuple[list[str], Mapping[str, str]]],
) -> dict[str, Any]:
    jobs = [
        {
            "job_name": job,
            "static_configs": [{"targets": addresses, "labels": dict(labels)}],
            **({"metrics_path": "/skidway_load.prom"} if job == "node" else {}),
        }
        for job, (addresses, labels) in targets.items()
    ]
    return {
        "global": {"scrape_interval": EVERY, "evaluation_interval": EVERY},
        "rule_files": [f"{RULES.resolve()}/*.yml"],
        "scrape_configs": jobs,
    }
