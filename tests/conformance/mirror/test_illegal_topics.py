"""Clients and mirrors of brokers that list topics with illegal names."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from skidway.errors import Unreachable
from skidway.kafka.client import Client
from support.lying_broker import LyingBroker, lying
from support.mirroring import HERE, Cluster, mirror_sources
from support.processes import eventually

NAMES = ["x/../y", "/etc", "..", "nul\x00", "line\nbreak", "\x1b]0;title\x07", "a" * 250]


@pytest.fixture
def source(tmp_path: Path, zookeeper: str) -> Iterator[Cluster]:
    made = Cluster(tmp_path, zookeeper, "dc1")
    try:
        made.start()
        yield made
    finally:
        made.program.kill()


@pytest.fixture
def liar(source: Cluster) -> Iterator[LyingBroker]:
    with lying(source.address, NAMES) as made:
        yield made


def test_a_client_does_not_see_them(source: Cluster, liar: LyingBroker) -> None:
    """A client gives its user only topics with legal names, whatever the brokers list."""
    source.create("logs")
    with Client(liar.address) as client:
        assert set(client.metadata().topics) == {"logs"}
        assert set(client.metadata(["logs", *NAMES]).topics) == {"logs"}
        assert set(client.picture.cluster.topics) == {"logs"}
    assert liar.lies >= 2


def test_a_mirror_goes_on(
    source: Cluster, liar: LyingBroker, tmp_path: Path, zookeeper: str
) -> None:
    """A mirror copies the topics with legal names. It names each of the others once in its log, in
    however many rounds the source lists them."""
    here = Cluster(tmp_path, zookeeper, HERE, mirror_sources=mirror_sources(liar.address))
    here.start()
    try:
        for topic in ("first", "second"):
            source.create(topic)
            source.produce(topic, 3)
            mirrored = f"dc1.{topic}"
            eventually(lambda name=mirrored: here.ends(name) == {0: 9}, what="mirrored")
            rounds = liar.lies
            eventually(lambda before=rounds: liar.lies > before + 5, what="more rounds")
        assert here.mirror()["reachable"]
        logged = [json.loads(each) for each in here.program.output().splitlines()]
        [dropped] = [x for x in logged if x["event"] == "illegal_topics_dropped"]
        assert dropped["topics"] == [name[:249] for name in NAMES]
    finally:
        here.program.kill()


def test_the_answer_of_no_real_cluster_is_refused(source: Cluster) -> None:
    """A client refuses an answer with more brokers than any cluster has, and says why in one
    sentence."""
    with (
        lying(source.address, (), brokers=20_000) as liar,
        Client(liar.address, refused_timeout_ms=1) as client,
        pytest.raises(Unreachable, match="more than 10000 brokers in one message"),
    ):
        client.metadata()
