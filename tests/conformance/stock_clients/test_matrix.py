"""docs/clients.md has a table of stock clients and steps (for example, to produce with zstd). A
cell says "yes" if a test runs the step with the client. All other cells are empty."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from conformance.stock_clients import test_broker_crash, test_groups, test_story
from support import peers
from support.stock_clients import CLIENTS, CODECS, StockClient

PAGE = peers.ROOT / "docs" / "clients.md"

Test = Callable[..., None]
STEPS: dict[str, tuple[Test, str]] = {
    "create": (test_story.test_topics_are_created_and_described, "create"),
    "describe": (test_story.test_topics_are_created_and_described, ""),
    **{f"produce {codec}": (test_story.test_what_is_produced_comes_back, "") for codec in CODECS},
    "idempotent": (test_story.test_idempotent_producers_are_served, ""),
    "assign": (test_story.test_every_acks_and_every_offset, "assign"),
    "two members": (test_groups.test_partitions_are_shared_and_handed_over, ""),
    "commit": (test_groups.test_what_is_not_committed_comes_again, ""),
    "resume": (test_groups.test_a_group_goes_on_where_it_committed, ""),
    "kill -9": (test_broker_crash.test_two_members_go_on_with_a_broker_that_was_killed, ""),
    "time": (test_story.test_offsets_are_found_by_time, ""),
    "delete": (test_story.test_topics_are_deleted, ""),
}
"""Maps each step to a pair. The first element is the test of the step. The second element is the
command of `tests.clients` that the step needs, or "". If a client's `lacks` contains this command,
the test uses another client for the step."""


def runs_for(test: Test, step: str) -> Iterator[str]:
    """Yields the names of the clients for which a test runs. If the step contains a compression
    codec, as "produce zstd" does, yields only the clients that support this codec."""
    codec = step.partition(" ")[2] if step.startswith("produce") else None
    marks: list[pytest.Mark] = getattr(test, "pytestmark")  # noqa: B009 (functions have none)
    [cases] = [mark.args[1] for mark in marks if mark.name == "parametrize"]
    for case in cases:
        client: StockClient = case.values[0]
        if codec is None or codec in case.values:
            yield client.name


def table() -> list[str]:
    """Returns the lines of the table, which are generated from the tests."""
    able = {step: set(runs_for(test, step)) for step, (test, _) in STEPS.items()}

    def cell(client: StockClient, step: str) -> str:
        by_itself = STEPS[step][1] not in client.lacks
        return "yes" if client.name in able[step] and by_itself else ""

    lines = [["client", *STEPS], ["---"] * (len(STEPS) + 1)]
    lines += [[name, *(cell(each, step) for step in STEPS)] for name, each in CLIENTS.items()]
    return [
        f"| {' | '.join(line)} |".replace("|  |", "| |").replace("|  |", "| |") for line in lines
    ]


def test_the_page_has_the_table_that_the_tests_are() -> None:
    """docs/clients.md contains each line of the table that is generated from the tests. A cell is
    empty only if `support.stock_clients` says that the client lacks what the step needs."""
    page = PAGE.read_text().splitlines()
    assert [line for line in table() if line not in page] == []
    empty = {name: line.count("| |") for name, line in zip(CLIENTS, table()[2:], strict=True)}
    for name, count in empty.items():
        lacking = {STEPS[step][1] or step for step in STEPS} & CLIENTS[name].lacks.keys()
        assert count == len(lacking), name
