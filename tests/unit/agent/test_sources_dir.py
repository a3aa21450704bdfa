"""What the files of `sources.dir` may say, and who may have written them."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from skidway.agent.settings import SourceSettings, SourcesRule
from skidway.agent.sources_dir import files_in, read_file
from skidway.agent.values.path_texts import lies_within, matcher
from skidway.agent.values.path_texts import refusal as refusal_of
from skidway.errors import ConfigurationRefused

SHOP = SourcesRule(
    files=["shop.yml", "shop-*.yml"], paths=["/srv/shop/**", "/var/log/shop/*.log"],
    topics=["shop", "shop-*"],
)  # fmt: skip
REST = SourcesRule(files=["*.yml"], paths=["/**"], topics=["*"])
GOOD = "sources:\n- {topic: shop-web, paths: [/srv/shop/web/*.log]}\n"


def write(tmp_path: Path, text: str = GOOD, name: str = "shop.yml") -> Path:
    folder = tmp_path / "agent.d"
    folder.mkdir(exist_ok=True)
    (folder / name).write_text(text)
    return folder


def sources_in(
    folder: Path, rules: Sequence[SourcesRule]
) -> Iterator[tuple[Path, list[SourceSettings]]]:
    for file in files_in(folder):
        yield file, read_file(file, rules)[1]


def refusal(folder: Path, *rules: SourcesRule) -> str:
    with pytest.raises(ConfigurationRefused) as refused:
        list(sources_in(folder, rules))
    return str(refused.value)


@pytest.mark.parametrize(
    "paths",
    [
        "[/srv/shop/a.log]", "[/srv/shop/*]", "[/srv/shop/**]", "[/srv/shop/**/*.log]",
        "[/srv/shop/a/b/c.log, /var/log/shop/x.log]", "[/var/log/shop/*.log]",
        "['/srv/shop/{a,b}/*.log']", "['/var/log/shop/web-*[ab].log']", "[/srv/shop/**/a/**]",
    ],
)  # fmt: skip
def test_what_a_rule_allows_is_read(tmp_path: Path, paths: str) -> None:
    """A file of `sources.dir` may name the topics and paths of its rule, also narrower patterns."""
    folder = write(tmp_path, f"sources:\n- {{topic: shop, paths: {paths}}}\n", "shop-1.yml")
    ((file, sources),) = sources_in(folder, [SHOP])
    assert (file.name, len(sources)) == ("shop-1.yml", 1)


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("topic: cart, paths: [/srv/shop/a.log]", "topic cart"),
        ("topic: shop2, paths: [/srv/shop/a.log]", "topic shop2"),
        ("topic: shop, paths: [/srv/cart/a.log]", "paths /srv/cart/a.log"),
        ("topic: shop, paths: [/srv/**]", "paths /srv/**"),
        ("topic: shop, paths: [/**/shop/a.log]", "paths /**/shop/a.log"),
        ("topic: shop, paths: [/srv/shop*/a.log]", "paths /srv/shop*/a.log"),
        ("topic: shop, paths: [/var/log/shop/**/x.log]", "paths /var/log/shop/**/x.log"),
        ("topic: shop, paths: [/var/log/shop/*]", "paths /var/log/shop/*"),
        ("topic: shop, paths: ['/var/log/shop/[.]x.log*']", "paths /var/log/shop/[.]x.log*"),
        ("topic: shop, paths: ['/srv/{shop,cart}/a.log']", "paths /srv/{shop,cart}/a.log"),
        ("topic: shop, paths: [/srv/shop/.hidden/a.log]", "paths /srv/shop/.hidden/a.log"),
        ("topic: shop, paths: [/srv/shop/a.log], schema: /etc/secret.avsc", "schema"),
        ("topic: shop, paths: [/srv/shop/a.log], schema: ../secret.avsc", "schema"),
        ("topic: shop, paths: [/srv/shop/a.log], container: cri, "
         "labels: {location: /etc/pods, fields: {app: app}}", "labels.location /etc/pods"),
        ("topic: shop, paths: [/srv/shop/a.log], hash.key.location: /etc/key, "
         "shape: hash f", "hash.key.location"),
    ],
)  # fmt: skip
def test_what_a_rule_does_not_allow_is_refused(tmp_path: Path, source: str, words: str) -> None:
    """A file of `sources.dir` that names a topic, a pattern or a further file outside of its rule
    is refused, with the file, the setting and the value."""
    said = refusal(write(tmp_path, f"sources:\n- {{{source}}}\n"), SHOP, REST)
    assert "shop.yml: sources.dir.rules does not allow this file" in said
    assert words in said


def test_a_file_without_a_rule_is_refused(tmp_path: Path) -> None:
    """With rules, each file needs one, and the first that means its name counts. Without rules, a
    file may name any topic and path."""
    folder = write(tmp_path, GOOD.replace("shop", "cart"), "cart.yml")
    assert "no rule of sources.dir.rules is for this file" in refusal(folder, SHOP)
    assert len(list(sources_in(folder, [SHOP, REST]))) == 1
    assert len(list(sources_in(folder, []))) == 1


@pytest.mark.parametrize("mode", [0o664, 0o646, 0o666])
def test_a_file_that_others_can_write_is_refused(tmp_path: Path, mode: int) -> None:
    """A file of `sources.dir`, or the directory, that others than its owner can write is refused,
    with the command that mends it."""
    folder = write(tmp_path)
    (folder / "shop.yml").chmod(mode)
    assert f"run chmod go-w {folder}/shop.yml" in refusal(folder)
    (folder / "shop.yml").chmod(0o640)
    assert len(list(sources_in(folder, [SHOP]))) == 1
    folder.chmod(mode | 0o111)
    assert f"run chmod go-w {folder}" in refusal(folder)


@pytest.mark.parametrize(
    ("sources", "words"),
    [
        ("{topic: t, paths: [/a]}," * 1001, "sources must be at most 1000 entries, not 1001"),
        ("{topic: t, paths: [" + "/a," * 1001 + "]}", "paths must be at most 1000 entries"),
        (" " * (256 << 10), "a file in sources.dir has at most 256 KiB"),
        ("{topic: t, paths: ['/{" + "a," * 98 + "b}1'" + ",'/{a,b}'" * 999 + "]}", "at most 1,000"),
        ("{topic: t, paths: [" + f"/{'a' * 4_000}," * 55 + "]}", "and 200,000 characters"),
        ("{topic: t, paths: [/a], exclude: [" + f"/{'a' * 4_000}," * 55 + "]}", "200,000"),
    ],
    ids=["sources", "paths", "bytes", "braces", "characters", "exclude"],
)
def test_a_file_has_a_bounded_number_of_patterns(tmp_path: Path, sources: str, words: str) -> None:
    """A file of `sources.dir` has so few sources and patterns that no look takes long."""
    said = refusal(write(tmp_path, f"sources: [{sources}]"))
    assert "shop.yml" in said
    assert words in said


def test_what_is_no_file_is_refused_at_once(tmp_path: Path) -> None:
    """A FIFO in `sources.dir` does not block the agent, and a device does not fill its memory."""
    folder = write(tmp_path)
    os.mkfifo(folder / "pipe.yml")
    assert "not a regular file" in refusal(folder)
    (folder / "pipe.yml").unlink()
    (folder / "zero.yml").symlink_to("/dev/zero")
    assert "zero.yml" in refusal(folder)


@pytest.mark.root
def test_a_file_of_another_user_is_refused(tmp_path: Path) -> None:
    """A file of `sources.dir` belongs to root or to the agent's user, or to the owner whom its rule
    names."""
    folder = write(tmp_path)
    os.chown(folder / "shop.yml", 1, 1)  # daemon, which every system has
    assert "belongs to user 1; what is in sources.dir must belong to root" in refusal(folder, SHOP)
    own = SourcesRule(files=["*"], paths=["/**"], topics=["*"], owner="daemon")
    assert len(list(sources_in(folder, [own]))) == 1
    nobody = SourcesRule(files=["*"], paths=["/**"], topics=["*"], owner="no-such-user")
    assert "there is no user no-such-user" in refusal(folder, nobody)
    os.chown(folder, 1, 1)
    assert "belongs to user 1" in refusal(folder, own)


NAMES = st.text("ab*?.", min_size=1, max_size=4) | st.sampled_from(
    ["**", "[ab]", "[!o]*", "[.]a", "*a", "?*", "a", "*"]
)
PATTERNS = st.lists(NAMES, min_size=1, max_size=3).map(lambda names: "/" + "/".join(names))
PATHS = st.lists(st.text("abo.", min_size=1, max_size=4), min_size=1, max_size=4).map(
    lambda names: "/" + "/".join(names)
)


@given(PATTERNS, PATTERNS, st.lists(PATHS, min_size=20, max_size=40))
def test_a_pattern_within_another_means_nothing_else(
    allowed: str, text: str, paths: list[str]
) -> None:
    """If a pattern lies within the pattern of a rule, the rule's pattern matches every path that it
    matches."""
    assume(refusal_of(allowed) is None and refusal_of(text) is None)
    if lies_within(text, allowed):
        meant = [path for path in paths if matcher(text).fullmatch(path)]
        assert all(matcher(allowed).fullmatch(path) for path in meant)


@pytest.mark.parametrize(
    ("allowed", "text"),
    [
        ("/srv/[!o]*/**", "/srv/?*/*.txt"), ("/srv/**/?", "/srv/**"), ("/srv/**/?", "/srv/**/*"),
        ("/srv/*/a", "/srv/**/a"), ("/srv/**", "/srv/.x/a"), ("/srv/*", "/srv/.*"),
        ("/srv/**/a", "/srv/**"), ("/srv/*.log", "/srv/*[.log]"),
    ],
)  # fmt: skip
def test_a_wider_pattern_does_not_lie_within_another(allowed: str, text: str) -> None:
    """A rule's pattern does not allow a pattern that matches a path more."""
    assert not lies_within(text, allowed)
    assert lies_within(allowed, allowed)
