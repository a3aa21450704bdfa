from __future__ import annotations

import contextlib
import itertools
import re
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skidway import settings
from skidway.errors import ConfigurationRefused
from skidway.settings import REQUIRED, documented, example, load, setting
from skidway.settings.document import yaml_text
from skidway.settings.source import read_file


@dataclass(frozen=True, slots=True, kw_only=True)
class Parser:
    type: Literal["raw", "json", "regex"] = setting("type", "raw", help="How lines are parsed.")
    pattern: str | None = setting("pattern", None, help="RE2, for type regex.")

    def check(self) -> None:
        if self.type == "regex" and self.pattern is None:
            raise ConfigurationRefused("parser of type regex needs a pattern")


@dataclass(frozen=True, slots=True, kw_only=True)
class Timestamp:
    fields: list[str] = setting("fields", help="Fields that hold the time.", example=["date"])
    zone: str = setting("timezone", "UTC", help="Zone of times without one.")


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    topic: str = setting("topic", help="Topic to publish to.", example="hdfs-logs")
    paths: list[str] = setting("paths", help="Globs.", at_least=1, example=["/var/log/*.log"])
    parser: Parser = setting("parser", Parser(), help="How lines are parsed.")
    timestamp: Timestamp | None = setting("timestamp", None, help="Where the time stands.")


@dataclass(frozen=True, slots=True, kw_only=True)
class Agent:
    bootstrap: list[str] = setting("bootstrap.servers", ["127.0.0.1:9092"], help="Brokers.")
    state: Path = setting("state.dir", help="Directory of the state.", example="/var/lib/x")
    batch_bytes: int = setting(
        "batch.size", 900_000, help="Bytes a batch.", at_least=1, at_most=1_000_000
    )
    ratio: float = setting("ratio", 0.5, help="A ratio.", at_least=0, at_most=1)
    fsync: bool = setting("fsync", True, help="Whether to sync.")
    cluster: str = setting("cluster.name", "main", help="Name of the cluster.", at_most=10)
    level: str = setting("level", "info", choices=("debug", "info"), help="A level.")
    limit: int | None = setting("limit", None, help="A limit.")
    configs: dict[str, str] = setting("topic", {}, help="Topic settings.", at_most=3)
    sources: list[Source] = setting("sources", [], help="What to tail.")


def given_file(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "agent.yml"
    path.write_text(text)
    return path


def refusal(config: Path | None, *overrides: str) -> str:
    with pytest.raises(ConfigurationRefused) as refused:
        load(Agent, config, ["state.dir=/s", *overrides])
    assert "\n" not in str(refused.value)
    return str(refused.value)


@pytest.mark.parametrize("text", ["'5'", "./5", "/srv/5", "2026-01-31"])
def test_a_path_may_look_like_a_number_if_it_is_written_as_a_path(
    tmp_path: Path, text: str
) -> None:
    """A bare number where a path is expected is refused as a mistake. A number in quotes, or with a
    directory in front, is a path."""
    said = load(Agent, given_file(tmp_path, f"state.dir: {text}"), [])
    assert said.state == Path(text.strip("'"))
    with pytest.raises(ConfigurationRefused, match=r"line 1: state\.dir must be a path, not '5'"):
        load(Agent, given_file(tmp_path, "state.dir: 5"), [])


@pytest.mark.parametrize(
    ("text", "words"),
    [(r"/a\0b", r"state\.dir must be a path, not '/a"), (r"/a\ud800", "is no text in UTF-8")],
)
def test_a_path_that_no_file_can_have_is_refused(tmp_path: Path, text: str, words: str) -> None:
    """A path with a character that the path of no file can have is refused."""
    with pytest.raises(ConfigurationRefused, match=f"line 1: .*{words}"):
        load(Agent, given_file(tmp_path, f'state.dir: "{text}"'), [])


def test_defaults_hold_where_nothing_is_written() -> None:
    """A setting that is not given has its default. Two instances of settings never share a default
    list."""
    one, two = load(Agent, None, ["state.dir=/s"]), load(Agent, None, ["state.dir=/s"])
    assert one.batch_bytes == 900_000
    assert one.bootstrap == ["127.0.0.1:9092"]
    assert one.bootstrap is not two.bootstrap
    assert one.state == Path("/s")


def test_flat_and_nested_keys_are_alike_at_any_depth(tmp_path: Path) -> None:
    """A configuration file gives the same settings whether its keys are written flat (`a.b: x`) or
    nested (`a: {b: x}`)."""
    flat = given_file(
        tmp_path,
        """
state.dir: /s
bootstrap.servers: a:1
cluster.name: dc1
topic.retention.ms: -1
sources:
  - {topic: t, paths: [p], parser.type: regex, parser.pattern: '^x$', timestamp.fields: [a, b]}
""",
    )
    one = load(Agent, flat)
    nested = given_file(
        tmp_path,
        """
state: {dir: /s}
bootstrap:
  servers: [a:1]
cluster: {name: dc1}
topic: {retention: {ms: -1}}
sources:
  - topic: t
    paths: p
    parser: {type: regex, pattern: '^x$'}
    timestamp:
      fields: a,b
""",
    )
    assert load(Agent, nested) == one
    assert one.configs == {"retention.ms": "-1"}
    assert one.sources[0].timestamp == Timestamp(fields=["a", "b"])


def test_flag_beats_file_beats_default(tmp_path: Path) -> None:
    """Key by key, a flag (--set KEY=VALUE) overrides the file, and the file overrides the default.
    If several flags are for one key, the last one wins."""
    path = given_file(tmp_path, "batch.size: 10\ncluster.name: dc1\nstate.dir: /s")
    loaded = load(Agent, path, ["batch.size=20", "batch.size=30"])
    assert (loaded.batch_bytes, loaded.cluster, loaded.ratio) == (30, "dc1", 0.5)


def test_flag_changes_one_key_of_a_section(tmp_path: Path) -> None:
    """If a flag (--set KEY=VALUE) sets one key of a section, the section's other keys have their
    values from the file."""
    path = given_file(tmp_path, "state.dir: /s\ntopic: {a: 1, b: 2}")
    assert load(Agent, path, ["topic.b=3"]).configs == {"a": "1", "b": "3"}


@pytest.mark.parametrize(
    ("override", "name", "value"),
    [
        ("fsync=no", "fsync", False),
        ("fsync=True", "fsync", True),
        ("ratio=1", "ratio", 1.0),
        ("cluster.name=no", "cluster", "no"),
        ("cluster.name=0123", "cluster", "0123"),
        ("cluster.name='a b'", "cluster", "a b"),
        ("cluster.name=*a: %#{", "cluster", "*a: %#{"),
        ("limit=", "limit", None),
        ("limit=null", "limit", None),
        ("limit=7", "limit", 7),
        ("bootstrap.servers=a:1, b:2", "bootstrap", ["a:1", "b:2"]),
        ("bootstrap.servers=[a:1, 'b,c']", "bootstrap", ["a:1", "b,c"]),
        ("batch.size=1_000", "batch_bytes", 1000),
        ("topic={a.b: 1, c: {d: no}}", "configs", {"a.b": "1", "c.d": "no"}),
    ],
)
def test_type_of_the_setting_decides_what_is_meant(override: str, name: str, value: Any) -> None:
    """The value in a flag (--set KEY=VALUE) is read according to the setting's type. For example,
    `KEY=no` sets a setting of the type string to the text "no", and a boolean setting to false.
    Values of number and list settings are read by their types, too."""
    assert getattr(load(Agent, None, ["state.dir=/s", override]), name) == value


@pytest.mark.parametrize(
    ("override", "words"),
    [
        ("batch.siz=1", "unknown key 'batch.siz'; the nearest known one is 'batch.size'"),
        ("log_level=x", "the nearest known one is 'level'"),
        ("batch.size=much", "batch.size must be a whole number, not 'much'"),
        ("batch.size=1.5", "batch.size must be a whole number, not '1.5'"),
        ("batch.size=0", "batch.size must be at least 1, not 0"),
        ("batch.size=1000001", "batch.size must be at most 1000000, not 1000001"),
        ("batch.size=", "batch.size needs a value"),
        ("batch.size=[1]", "batch.size must be a whole number"),
        ("state.dir=5", "state.dir must be a path, not '5'"),
        ("ratio=nan", "ratio must be a number, not 'nan'"),
        ("fsync=maybe", "fsync must be true or false, not 'maybe'"),
        ("level=loud", "level must be one of debug, info, not 'loud'"),
        ("sources=x", "sources must be a list"),
        ("sources=[x]", "sources[0] must be a section with keys such as topic"),
        ("sources=[{paths: [a]}]", "the key 'sources[0].topic' is missing: Topic to publish to"),
        ("sources=[{topic: t, paths: []}]", "sources[0].paths must be at least 1 entry, not 0"),
        ("sources=[{topic: t, pahts: [a]}]", "the nearest known one is 'sources[0].paths'"),
        ("sources=[{topic: t, paths: [a], parser.tpye: raw}]", "'sources[0].parser.type'"),
        ("sources=[{topic: t, paths: a, parser: {type: regex}}]", "needs a pattern"),
        ("sources=[{topic: t, paths: a, parser: regex}]", "parser must be a section with keys"),
        ('sources=[{topic: t, paths: ["a\\udce9"]}]', "'a\\udce9' is no text in UTF-8"),
        ('topic={a: "\\ud800"}', "is no text in UTF-8"),
        ('topic={"\\ud800": a}', "is no text in UTF-8"),
        ("state.dir=/\udce9", "is no text in UTF-8"),
        ('state.dir="\\ud800"', "is no text in UTF-8"),
        ("limit=9223372036854775808", "limit must be at most 9223372036854775807, not 9223"),
        ("limit=-9223372036854775808", "limit must be at least -9223372036854775807, not -9223"),
        ("limit=" + "9" * 400, "limit must be at most 9223372036854775807, not 9999"),
        ("limit=" + "9" * 5_000, "limit must be a whole number"),
        ("cluster.name=" + "x" * 11, "cluster.name must be at most 10 characters, not 11"),
        ("state.dir=" + "x" * 65_537, "a key or value has at most 65,536 characters"),
        ("topic={a: [1]}", "topic.a must be one value"),
        ("topic=x", "topic must be a section"),
        ("cluster=x", "unknown key 'cluster'"),
        ("sources=[{", "this is not YAML"),
        ("batch.size", "it must be KEY=VALUE"),
        ("=1", "it must be KEY=VALUE"),
    ],
)
def test_bad_override_is_one_sentence(override: str, words: str) -> None:
    """An invalid flag (--set KEY=VALUE) is refused with one sentence that contains the flag and
    says what is wrong."""
    said = refusal(None, override)
    assert words in said
    assert said.startswith(f"--set {override}:")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a: 1\nbatch.szie: 2", "agent.yml, line 1: unknown key 'a'"),
        ("\nbatch.szie: 2", "agent.yml, line 2: unknown key 'batch.szie'"),
        ("batch:\n  size: x", "agent.yml, line 2: batch.size must be a whole number, not 'x'"),
        ("batch.size: 1\nbatch: {size: 2}", "line 2: the key 'batch.size' is given twice"),
        ("batch.size: 1\nbatch.size: 2", "line 2: the key 'batch.size' is given twice"),
        ("topic: {a: 1}\ntopic.a: 2", "line 2: the key 'topic.a' is given twice"),
        ("- a", "a configuration is a list of `key: value` lines"),
        ("a: [", "line 1, column 5: this is not YAML"),
        ("pattern: %y", "this is not YAML"),
        ("a: 1\n---\nb: 2", "this is not YAML"),
        ("? {a: b}\n: 1", "a key must be a plain word"),
        ('"x\\nskidway: fine": 1', r"line 1: 'x\nskidway: fine' is no key: it is not printable"),
        ('topic: {"x\\u202ey": 1}', "is no key: it is not printable"),
        ('sources: [{"\\ud800": 1}]', "is no text in UTF-8"),
        ('cluster.name: "\\UFFFFFFFF"', "this is not YAML: it has no such character"),
    ],
)
def test_bad_file_is_one_sentence_with_its_line(tmp_path: Path, text: str, words: str) -> None:
    """An invalid file is refused with one sentence that contains the file's name and, if it is
    known, the line number."""
    said = refusal(given_file(tmp_path, text))
    assert words in said
    assert "agent.yml" in said


LAUGHS = "a: &a [x, x]\n" + "".join(
    f"{name}: &{name} [*{before}, *{before}, *{before}]\n"
    for before, name in itertools.pairwise("abcdefghijklmnopqrstuv")
)


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (LAUGHS, 1),
        ("sources: &a [*a]", 1),
        ("a: 1\nb: &x\n  c: 1", 2),
        ("a: 1\nb: *x", 2),
        ("a: 1\n&x b: 1", 2),
        ("a:\n- {<<: *x}", 2),
        ("paths: [a,\n  *log]", 2),
    ],
)
def test_anchors_and_aliases_are_refused(tmp_path: Path, text: str, line: int) -> None:
    """A file with an anchor or an alias of YAML, which can make a few lines a tree of any size, is
    refused with its line, and with what to write in its place."""
    said = refusal(given_file(tmp_path, text))
    assert f"agent.yml, line {line}: settings have no anchors (&) and aliases (*)" in said


@pytest.mark.parametrize("text", ["", "# nothing\n", "batch:\n", "---\n"])
def test_empty_file_and_empty_section_say_nothing(tmp_path: Path, text: str) -> None:
    """An empty file or section is valid, and the settings have their defaults."""
    assert load(Agent, given_file(tmp_path, text), ["state.dir=/s"]).batch_bytes == 900_000


def test_missing_key_names_file_and_meaning(tmp_path: Path) -> None:
    """If a required setting is missing, the error contains its key, its meaning and the file's
    name."""
    path = given_file(tmp_path, "batch.size: 1")
    with pytest.raises(ConfigurationRefused) as refused:
        load(Agent, path)
    assert str(refused.value) == f"{path}: the key 'state.dir' is missing: Directory of the state"


@dataclass(frozen=True, slots=True, kw_only=True)
class Addresses:
    brokers: str = setting("bootstrap.servers", help="Brokers to load from,\n host:port,...")


def test_the_meaning_of_a_missing_key_is_whole() -> None:
    """A help text that ends with dots, because its list goes on, ends with them in the error,
    too."""
    with pytest.raises(ConfigurationRefused, match=r": Brokers to load from, host:port,\.\.\.$"):
        load(Addresses, None)


def test_missing_key_without_a_file_says_where_a_file_was_looked_for(tmp_path: Path) -> None:
    """If a program's settings lack a required key, and nobody named a configuration file, the error
    says where the program looked for a file."""
    with pytest.raises(ConfigurationRefused) as refused:
        load(Agent, None, program="agent", directory=tmp_path)
    assert str(refused.value) == (
        f"the settings (no --config is given, and {tmp_path}/agent.yml is not here): the key"
        " 'state.dir' is missing: Directory of the state"
    )


def test_named_file_must_be_readable(tmp_path: Path) -> None:
    """If the file that --config gives is missing, is a directory or is not UTF-8, the error names
    the file."""
    assert "no such file" in refusal(tmp_path / "none.yml")
    assert "directory" in refusal(tmp_path)
    binary = tmp_path / "binary.yml"
    binary.write_bytes(b"a: \xff")
    assert "byte 3 is not UTF-8" in refusal(binary)
    binary.write_text("a: 1", "utf-16")
    assert "it is UTF-16; save it as UTF-8" in refusal(binary)


def test_a_section_of_texts_has_at_most_its_entries(tmp_path: Path) -> None:
    """A section of `key: value` lines with more entries than its setting takes is refused."""
    assert load(Agent, given_file(tmp_path, "state.dir: /s\ntopic: {a: 1, b: 1, c: 1}")).configs
    file = given_file(tmp_path, "topic: {a: 1, b: 1, c: 1, d: 1}")
    assert "agent.yml: topic must be at most 3 entries, not 4" in refusal(file)


def test_a_byte_order_mark_is_no_part_of_a_configuration(tmp_path: Path) -> None:
    """A configuration that an editor saved with a byte order mark is read as without it."""
    path = tmp_path / "agent.yml"
    path.write_text("state.dir: /s\ncluster.name: dc1", "utf-8-sig")
    assert load(Agent, path, program="agent", directory=tmp_path).cluster == "dc1"


def test_default_file_is_read_only_if_it_exists(tmp_path: Path) -> None:
    """Without --config the program's default file is read if it exists. With --config only the
    given file is read."""
    flags = ["state.dir=/s"]
    assert load(Agent, None, flags, program="agent", directory=tmp_path).batch_bytes == 900_000
    default = given_file(tmp_path, "batch.size: 5")
    assert load(Agent, None, flags, program="agent", directory=tmp_path).batch_bytes == 5
    other = tmp_path / "other.yml"
    other.write_text("cluster.name: dc1")
    loaded = load(Agent, other, flags, program="agent", directory=tmp_path)
    assert (loaded.cluster, loaded.batch_bytes) == ("dc1", 900_000)
    assert default.exists()


@pytest.mark.parametrize(
    ("text", "overrides", "found"),
    [
        ("a.b.c: x\nunknown: 1\n", [], "x"),
        ("a: {b: {c: x, d: }}\nnumber: many\n", [], "x"),
        ("a.b:\n  c: x\na:\n  other: 1\n", [], "x"),
        ("a.b.c: x\n", ["a.b.c=y", "nonsense", "a.b.d=z"], "y"),
        ("a.b.c: [x]\n", [], None),
        ("a.b.c:\n", [], None),
        ("a.b.cc: x\nb.c: x\n", [], None),
        ("- {\n", [], None),
        ("- {\n", ["a.b.c=y"], "y"),
    ],
)
def test_one_key_is_read_whatever_the_others_are_worth(
    tmp_path: Path, text: str, overrides: list[str], found: str | None
) -> None:
    """`peek` returns the value of one key even from a configuration that `load` refuses. A program
    whose configuration is refused needs this to find out where to report the refusal."""
    assert settings.peek("a.b.c", given_file(tmp_path, text), overrides) == found


def test_one_key_of_a_file_that_is_not_there(tmp_path: Path) -> None:
    """If the given configuration file does not exist, `peek` returns None. If no file is given, it
    reads the program's default file."""
    assert settings.peek("a", tmp_path / "nowhere.yml") is None
    assert settings.peek("a", None, program="x", directory=tmp_path) is None
    (tmp_path / "x.yml").write_text("a: 1\n")
    assert settings.peek("a", None, program="x", directory=tmp_path) == "1"


def test_check_of_a_class_is_told_with_its_place(tmp_path: Path) -> None:
    """If the method `check` of a settings class refuses a combination of settings, the error
    contains the file's name. If the settings are in an item of a list, the error also contains the
    line of the item."""
    text = "state.dir: /s\nsources:\n  - topic: t\n    paths: a\n    parser.type: regex"
    assert refusal(given_file(tmp_path, text)).endswith(
        "agent.yml, line 3: parser of type regex needs a pattern"
    )


def test_documented_lists_every_key_with_nested_ones() -> None:
    """`documented` returns each key of a settings class once, in the form `a.b`. Keys of nested
    sections and lists are included."""
    docs = {doc.key: doc for doc in documented(Agent)}
    assert docs["state.dir"].default is REQUIRED
    assert docs["state.dir"].required
    assert docs["batch.size"].type == "integer, at least 1, at most 1000000"
    assert docs["sources[].parser.type"].type == "raw | json | regex"
    assert docs["sources[].timestamp.fields"].help == "Fields that hold the time."
    assert len(docs) == len(documented(Agent)) == 10 + 4 + 2 + 2


def test_example_with_defaults_loads_to_the_defaults(tmp_path: Path) -> None:
    """The example configuration gives the defaults even if all its commented-out lines are made
    active."""
    loaded = load(Agent, given_file(tmp_path, example(Agent, active=True)))
    plain = load(Agent, None, ["state.dir=/var/lib/x"])
    assert loaded == plain


def test_example_shows_every_key_once_and_only_required_ones_active(tmp_path: Path) -> None:
    """The example configuration shows each key once, with its help. Only required keys are active,
    and all other keys are commented out, so the example gives the defaults."""
    text = example(Agent, title="Settings of the agent.")
    keys = re.findall(r"^[# ]*([\w.]+):", text, re.MULTILINE)
    for doc, key in zip(documented(Agent), keys, strict=True):
        assert doc.key in (key, f"{doc.key.rpartition('.')[0]}.{key}")
        assert f"# {doc.help} (" in text
    active = [line for line in text.splitlines() if line and not line.startswith("#")]
    assert active == ["state.dir: /var/lib/x"]
    assert load(Agent, given_file(tmp_path, text)) == load(Agent, None, ["state.dir=/var/lib/x"])


def test_example_of_a_required_list_of_sections_loads(tmp_path: Path) -> None:
    """If a list of sections is required, the example configuration has a section in which the
    required settings have the values that the settings class gives as `example`."""

    text = example(Sourced)
    loaded = load(Sourced, given_file(tmp_path, text))
    assert loaded.sources == [Source(topic="hdfs-logs", paths=["/var/log/*.log"])]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sourced:
    sources: list[Source] = setting("sources", help="What to tail.")


@dataclass(frozen=True, slots=True, kw_only=True)
class Overlapping:
    schema: str | None = setting("schema", None, help="File or subject.")
    registry: str = setting("schema.registry.url", "http://127.0.0.1:8081", help="Registry.")


def test_key_that_is_also_a_prefix_means_both(tmp_path: Path) -> None:
    """A key (`schema`) may also be the first part of another key (`schema.registry.url`). Then
    `schema: x` sets the first key, and `schema: {registry: ...}` sets the other one."""
    assert load(Overlapping, given_file(tmp_path, "schema: a.avsc")).schema == "a.avsc"
    nested = load(Overlapping, given_file(tmp_path, "schema: {registry: {url: u}}"))
    assert (nested.schema, nested.registry) == (None, "u")


@dataclass(frozen=True, slots=True, kw_only=True)
class Inner:
    needed: int = setting("needed", help="A number.")


@dataclass(frozen=True, slots=True, kw_only=True)
class Outer:
    inner: Inner = setting("inner", help="A section.")


def test_missing_key_of_a_missing_section_is_named_whole() -> None:
    """If a section with a required key is missing in the file, the error names the full path of
    this key (`section.key`)."""
    with pytest.raises(ConfigurationRefused, match=r"the key 'inner\.needed' is missing"):
        load(Outer, None)


@dataclass(frozen=True, slots=True)
class Twice:
    one: int = setting("same", 1, help="x")
    two: int = setting("same", 2, help="x")


@dataclass(frozen=True, slots=True)
class Unsupported:
    one: set[int] = setting("one", help="x")


@dataclass(frozen=True, slots=True)
class Bare:
    one: int = 1


@pytest.mark.parametrize("cls", [Twice, Unsupported, Bare])
def test_a_class_that_no_file_can_fill_is_a_programmers_error(cls: type[Any]) -> None:
    """The first load of a settings class raises TypeError if the class has the same key twice, a
    type that is not supported, or a field that is no setting."""
    with pytest.raises(TypeError):
        load(cls, None)


@given(st.text(max_size=60))
def test_any_text_as_override_loads_or_is_refused(text: str) -> None:
    """Any text as an override (--set) is either loaded or refused with an error message."""
    with contextlib.suppress(ConfigurationRefused):
        assert load(Agent, None, ["state.dir=/s", text]).state


def test_settings_are_immutable() -> None:
    """A loaded configuration cannot be changed."""
    loaded = load(Agent, None, ["state.dir=/s"])
    with pytest.raises(AttributeError):
        setattr(loaded, fields(Agent)[0].name, [])


def test_settings_that_a_program_writes_have_no_anchors(tmp_path: Path) -> None:
    """What a program proposes or writes as settings has no anchor, which it would refuse, although
    a list occurs twice."""
    twice = ["a", "b"]
    text = yaml_text({"one": twice, "other": {"deep": [twice, twice]}})
    assert read_file(given_file(tmp_path, text))
    assert text.count("- a") == 3


def test_public_names_are_those_of_the_package() -> None:
    """The package `settings` exports `load`, `peek`, `setting`, `documented` and `example`."""
    assert {"load", "peek", "setting", "documented", "example"} <= set(settings.__all__)
