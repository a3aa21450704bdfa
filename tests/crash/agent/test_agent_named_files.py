"""A team names files of others as its schema and key. The agent and the teams are real users of the
machine."""

from __future__ import annotations

import argparse
import mmap
import os
import signal
import time
from functools import partial
from pathlib import Path

import pytest
import yaml

from skidway.agent import configuration
from skidway.agent.batches import program_versions
from skidway.agent.settings import AgentSettings
from support.exchanges import exchange
from support.other_users import as_user, become, open_way_to
from support.processes import WITHIN_S

pytestmark = pytest.mark.root

AGENT, SHOP, OTHER, READERS = 63_001, 1, 63_003, 63_100
"""SHOP is daemon, whom every system has: a rule names its owner."""
SECRET = "s3cr3t-one-word-of-the-other-team"
EXCHANGES_MIN = 2_000


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    """The directory of a team, beside secrets that the agent may read and the team may not."""
    open_way_to(tmp_path)
    made, secrets, folder = tmp_path / "shop", tmp_path / "other", tmp_path / "agent.d"
    for each in (made, secrets, folder):
        each.mkdir()
    for name, owner in (("other.avsc", OTHER), ("root.avsc", 0), ("agent.avsc", AGENT)):
        (secrets / name).write_text(f'"{SECRET}"')
        os.chown(secrets / name, owner, READERS)
        (secrets / name).chmod(0o640)
    os.chown(made, SHOP, SHOP)
    document = {
        "bootstrap.servers": "nowhere:1", "schema.registry.url": "http://nowhere:1", "sources": [],
        "state.dir": str(tmp_path / "state"), "sources.dir": str(folder),
        "sources.dir.rules": [
            {"files": ["shop.yml"], "paths": [f"{made}/**"], "topics": ["shop"], "owner": "daemon"}
        ],
    }  # fmt: skip
    (tmp_path / "agent.yml").write_text(yaml.safe_dump(document))
    for name in ("warm.avsc", "warm.key"):  # another user may not be able to import modules
        as_user(SHOP, [], partial((made / name).write_text, '"0123456789abcdef"'))
    named = {"schema": f"{made}/warm.avsc", "hash.key.location": f"{made}/warm.key"}
    say(made, shape="hash line", **named)
    args = argparse.Namespace(config=tmp_path / "agent.yml", set=[])
    assert len(configuration.load(args, "agent").sources) == 1
    say(made, schema="gone.avsc")
    assert configuration.load(args, "agent").sources == []
    (folder / "shop.yml").unlink()
    return made


def say(shop: Path, owner: int = SHOP, **others: str) -> None:
    """Writes the team's file of `sources.dir`."""
    file = shop.parent / "agent.d" / "shop.yml"
    source = {"topic": "shop", "paths": [f"{shop}/a.log"], **others}
    file.write_text(yaml.safe_dump({"sources": [source]}))
    os.chown(file, owner, owner)


def load(shop: Path) -> AgentSettings:
    """Reads the settings as the agent's user."""
    args = argparse.Namespace(config=shop.parent / "agent.yml", set=[])
    found = as_user(AGENT, [READERS], partial(configuration.load, args, "agent"))
    assert isinstance(found, AgentSettings)
    return found


def refusal(shop: Path) -> str:
    found = load(shop)
    assert found.sources == []
    (refused,) = found.refused
    assert SECRET not in refused.words
    return refused.reason


@pytest.mark.parametrize("name", ["other.avsc", "root.avsc", "agent.avsc"])
@pytest.mark.parametrize("how", ["link", "links", "directory", "name", "chosen"])
def test_a_team_names_only_files_of_its_own(shop: Path, name: str, how: str) -> None:
    """Whatever leads from a schema or a key that a team names to a file of another user, the agent
    refuses the team's file, and no sentence has the content."""
    secrets = shop.parent / "other"
    schema, key = shop / "s.avsc", shop / "k"

    def lead() -> None:
        (shop / "directory").symlink_to(secrets)
        for each in (schema, key):
            if how == "link":
                each.symlink_to(f"../other/{name}")
            elif how == "links":
                (shop / f"{each.name}2").symlink_to(secrets / name)
                each.symlink_to(f"{each.name}2")
            elif how == "directory":
                each.symlink_to(f"directory/{name}")

    as_user(SHOP, [], lead)
    if how == "name":
        os.link(secrets / name, schema)
        os.link(secrets / name, key)
    elif how == "chosen":  # a link that root made gives no right to the team either
        schema.symlink_to(secrets / name)
        key.symlink_to(secrets / name)
    say(shop, schema=str(schema))
    reason = "it belongs to user" if how in ("name", "chosen") else "the link"
    assert f"schema: cannot read {schema}: {reason}" in refusal(shop)
    say(shop, shape="hash line", **{"hash.key.location": str(key)})
    assert f"hash.key.location: cannot read {key}: {reason}" in refusal(shop)


def test_a_team_names_its_own_files(shop: Path) -> None:
    """A schema and a key of the team's own are read, also through its own link; if the team's file
    of `sources.dir` is root's, they are not."""

    def make() -> None:
        (shop / "real.avsc").write_text('"string"')
        (shop / "s.avsc").symlink_to("real.avsc")
        (shop / "k").write_text("0123456789abcdef")

    as_user(SHOP, [], make)
    others = {"schema": f"{shop}/s.avsc", "hash.key.location": f"{shop}/k", "shape": "hash line"}
    say(shop, **others)
    (source,) = load(shop).sources
    assert source.schema_text == '"string"'
    say(shop, owner=0, **others)
    assert "it belongs to user 1" in refusal(shop)


def test_the_file_itself_leads_nowhere_else(shop: Path) -> None:
    """If root lets a link of `sources.dir` lead to a file of the team, the team cannot put a link
    to a file of root or of another team there."""
    link = shop.parent / "agent.d" / "shop.yml"
    link.symlink_to(shop / "agent.yml")
    text = f"sources: [{{topic: shop, paths: ['{shop}/a.log']}}]"
    as_user(SHOP, [], partial((shop / "agent.yml").write_text, text))
    assert len(load(shop).sources) == 1
    for name in ("root.avsc", "other.avsc", "agent.avsc"):
        (shop / "agent.yml").unlink()
        as_user(SHOP, [], partial((shop / "agent.yml").symlink_to, f"../other/{name}"))
        assert "cannot read" in refusal(shop) or "belongs to user" in refusal(shop)


def test_no_exchange_gives_a_schema_away(shop: Path) -> None:
    """While a team exchanges its schema with a link to another user's 2,000 times, the agent never
    reads the other one, and reads the team's own."""
    schema, other = shop / "s.avsc", shop / "link"

    def make() -> None:
        schema.write_text('"string"')
        other.symlink_to("../other/root.avsc")

    as_user(SHOP, [], make)
    say(shop, schema=str(schema))
    count = mmap.mmap(-1, 8)  # shared with the child
    writer = os.fork()
    if not writer:
        try:
            become(SHOP, [])
            for number in range(1 << 40):
                exchange(schema, other)
                count[:] = number.to_bytes(8, "little")
        finally:
            os._exit(1)
    args = argparse.Namespace(config=shop.parent / "agent.yml", set=[])

    def texts() -> set[str | None]:
        loads = (configuration.load(args, "agent") for _ in range(100))
        return {source.schema_text for each in loads for source in each.sources}

    try:
        seen: set[str | None] = set()
        deadline = time.monotonic() + WITHIN_S
        while int.from_bytes(count[:], "little") < EXCHANGES_MIN or not seen:
            assert time.monotonic() < deadline
            seen |= as_user(AGENT, [READERS], texts)
    finally:
        os.kill(writer, signal.SIGKILL)
        os.waitpid(writer, 0)
    assert seen == {'"string"'}


def test_records_have_the_key_that_was_judged(shop: Path) -> None:
    """If a team exchanges its key for a link after the settings were read, records are not made
    with the other file."""
    secret = shop.parent / "other" / "root.avsc"
    key = shop / "k"
    as_user(SHOP, [], partial(key.write_text, "0123456789abcdef"))
    say(shop, shape="hash line", **{"hash.key.location": str(key)})
    args = argparse.Namespace(config=shop.parent / "agent.yml", set=[])

    def used() -> bytes:
        configuration.load(args, "agent")
        key.unlink()
        key.symlink_to(secret)
        return program_versions._key(str(key)).secret

    shop.chmod(0o777)
    assert as_user(AGENT, [READERS], used) == b"0123456789abcdef"
