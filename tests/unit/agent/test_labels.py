"""Tests the fields that come from the labels of pods (the setting `labels`)."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skidway import settings as loading
from skidway.agent.batches import program_versions
from skidway.agent.batches.source_recipes import derived_schema
from skidway.agent.files import pod_metadata
from skidway.agent.files.operating_system import OperatingSystem
from skidway.agent.files.pod_labels import CHANGING, PodLabels
from skidway.agent.files.pod_metadata import MetadataRefused, keys_of, labels_of, read
from skidway.agent.settings import AgentSettings, LabelSettings
from skidway.agent.state.database import StateDatabase
from skidway.agent.values.labels import (
    LabelSource,
    Unlabelled,
    Unreadable,
    extended,
    from_json,
    labels_at,
    to_json,
)
from skidway.cli import main
from skidway.errors import ConfigurationRefused
from skidway.kafka.types import TopicPartition
from skidway.schemas.codec import Codec
from support.agent_world import World, pa_binary, raw, settings
from support.promises import promise

UID = "0b2e1f7c-3f0c"
LOG = f"/var/log/pods/shop_web-1_{UID}/app/0.log"
LABELS = "/run/pods.json"
LABELLED = LabelSettings(location=Path(LABELS), fields={"app": "app", "release": "version"})
FIRST = TopicPartition("logs", 0)


def line(text: str) -> bytes:
    return f"2026-11-21T08:15:01.5Z stdout F {text}\n".encode()


def write(world: World, content: object) -> None:
    """Writes `content` to a new file, and renames this file to the path of the file with the
    labels."""
    data = content if isinstance(content, bytes) else json.dumps(content).encode()
    world.files.append(f"{LABELS}.new", data)
    world.files.rename(f"{LABELS}.new", LABELS)


def labelled(version: str, app: str = "web") -> dict[str, Any]:
    return {"shop/web-1": {"app": app, "version": version, "other": "x"}}


def a_world(**others: Any) -> World:
    source = raw("logs", LOG, container="cri", labels=LABELLED)
    return World(settings(source, **others))


def rows(world: World) -> list[dict[str, Any]]:
    codec = Codec(derived_schema(world.settings.sources[0]))
    values = [record.value[5:] for record in world.brokers.records("logs")]
    return list(codec.decode(pa_binary(values)).batch.to_pylist())


def seen(world: World) -> list[tuple[str, str, str]]:
    return [(row["line"], row["app"], row["release"]) for row in rows(world)]


@pytest.fixture
def world() -> World:
    return a_world()


def test_records_have_the_labels_of_their_pod(world: World) -> None:
    """Each record has the labels that its pod has when the agent reads the record's line. If the
    labels change, later records have the new labels."""
    write(world, labelled("1"))
    world.files.append(LOG, line("a"))
    world.start()
    world.settle()
    write(world, labelled("2"))
    world.clock.advance(2)
    world.files.append(LOG, line("b"))
    world.settle()
    assert seen(world) == [("a", "web", "1"), ("b", "web", "2")]
    assert [row["pod"] for row in rows(world)] == ["web-1", "web-1"]


@promise("2 labels")
@pytest.mark.parametrize("new", [labelled("2"), {}, b"{", None])
def test_a_record_that_is_sent_again_has_the_labels_that_it_had_first(
    world: World, new: object
) -> None:
    """The agent is killed, and the labels change before its next start. When the agent then sends
    the records in flight again, these records still have the labels that they had first."""
    write(world, labelled("1"))
    world.kill_in_flight(line("a"), line("b"), path=LOG, arrives=FIRST)
    if new is None:
        world.files.delete(LABELS)
    else:
        write(world, new)
    world.start()
    world.settle()
    assert {row for row in seen(world) if row[0] in "ab"} == {("a", "web", "1"), ("b", "web", "1")}
    copies = {(r.file, r.first): r.value for r in world.brokers.records("logs")}
    assert all(copies[r.file, r.first] == r.value for r in world.brokers.records("logs"))


@promise("2 labels")
def test_records_that_are_read_back_have_the_labels_that_they_had_first(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After an upgrade, the agent may find that records of an intent (a stored promise to send
    lines) are missing on the brokers. The agent sends these records with the labels that they had
    before the upgrade."""
    write(world, labelled("1"))
    world.kill_in_flight(line("a"), path=LOG)
    write(world, labelled("2"))
    monkeypatch.setattr(program_versions, "program_version", lambda: "another")
    world.files.append(LOG, line("b"))
    world.start()
    world.settle(rounds=80)
    assert seen(world) == [("a", "web", "1"), ("b", "web", "2")]


@promise("2 labels")
def test_labels_count_from_an_intent_on(world: World) -> None:
    """The agent may be killed while lines of several intents (stored promises to send lines) are on
    their way. It sends the lines of each intent again with the labels that they had first, even if
    the labels have changed since."""
    write(world, labelled("1"))
    world.files.append(LOG, line("a"))
    world.start()
    world.hold()
    for number in (2, 3):
        write(world, labelled(str(number)))
        world.clock.advance(2)
        world.files.append(LOG, line("ab"[number - 2] * 2))
        world.hold()
    world.kill()
    write(world, labelled("9"))
    world.start()
    world.settle()
    assert seen(world) == [("a", "web", "1"), ("aa", "web", "2"), ("bb", "web", "3")]
    state = StateDatabase(world.connection)
    assert len(next(iter(state.labels().values()))) == 3


def test_without_labels_nothing_waits(world: World) -> None:
    """If the file with the labels is missing, or does not name the pod of a log, the log's records
    are delivered with empty fields. As soon as the file names the pod, further records have the
    pod's labels."""
    world.files.append(LOG, line("a"))
    world.start()
    world.settle()
    write(world, {"shop/other": {"app": "x"}})
    world.files.append(LOG, line("b"))
    world.settle()
    assert StateDatabase(world.connection).labels() == {}
    write(world, labelled("1"))
    world.clock.advance(2)
    world.files.append(LOG, line("c"))
    world.settle()
    assert seen(world) == [("a", "", ""), ("b", "", ""), ("c", "web", "1")]
    assert world.only(LOG)["pending"] == 0


@pytest.mark.parametrize("later", [{}, b"{", b"", b"[]", None])
def test_a_pod_that_is_gone_keeps_its_labels(world: World, later: object) -> None:
    """The last lines of a deleted pod have the labels of the lines before them. The agent also uses
    these labels while the file with the labels is missing or cannot be read, and after a
    restart."""
    write(world, labelled("1"))
    world.files.append(LOG, line("a"))
    world.start()
    world.settle()
    if later is None:
        world.files.delete(LABELS)
    else:
        write(world, later)
    world.clock.advance(2)
    world.files.append(LOG, line("b"))
    world.settle()
    world.kill()
    world.files.append(LOG, line("c"))
    world.start()
    world.settle()
    assert seen(world) == [("a", "web", "1"), ("b", "web", "1"), ("c", "web", "1")]


def test_what_is_missing_is_named_once(world: World) -> None:
    """The agent logs only once that a log has no labels. If the file with the labels cannot be
    read, the agent logs the reason once. It logs again if the reason changes, when the file can be
    read again, and when it can no longer be read afterwards."""
    labels = PodLabels(world.files)
    world.files.append(LOG, line("a"))
    world.start()
    world.settle()
    (tracked,) = world.agent.tracker.files.values()
    source = world.destinations()[0].tailed().labels
    assert source is not None
    for now in range(5):
        labels.note(tracked, source, 2.0 * now)
    first, second = labels.take_news()
    assert isinstance(first, Unreadable)
    assert first.reason is not None
    assert second == Unlabelled("logs", LOG, LABELS)
    assert labels.unreadable == 1
    write(world, b"{")
    labels.note(tracked, source, 20)
    labels.note(tracked, source, 22)
    (broken,) = labels.take_news()
    assert isinstance(broken, Unreadable)
    assert str(broken.reason).startswith("it is not JSON")
    write(world, labelled("1"))
    labels.note(tracked, source, 24)
    assert labels.take_news() == [Unreadable(LABELS, None)]
    assert labels.unreadable == 0
    write(world, b"{")
    labels.note(tracked, source, 26)
    labels.note(tracked, source, 28)
    assert labels.take_news() == [broken]
    assert labels.unreadable == 1
    assert dict(labels_at(tracked.labels, tracked.read_position)) == {"app": "web", "version": "1"}


def test_a_file_with_labels_that_no_source_names_is_forgotten(world: World) -> None:
    """If no source names a file with labels any more, the agent no longer counts the file as
    unreadable."""
    world.files.append(LOG, line("a"))
    world.start()
    world.settle()
    labels = world.agent._labels
    assert labels.unreadable == 1
    labels.take_locations([LABELS])
    assert labels.unreadable == 1
    world.reload(settings(raw("others", "/other/b.log")))
    assert labels.unreadable == 0


def test_a_file_that_changes_while_it_is_read_is_read_again(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If a program writes to the file with the labels while the agent reads it, the agent reads the
    file once more, and never uses only a part of it."""
    write(world, labelled("1"))
    look = world.files.look

    def look_and_write(path: str) -> Any:
        found = look(path)
        if path == LABELS:
            world.files.append(LABELS, b" ")
        return found

    world.start()
    world.files.append(LOG, line("a"))
    world.settle()
    (tracked,) = world.agent.tracker.files.values()
    source = world.destinations()[0].tailed().labels
    assert source is not None
    labels = PodLabels(world.files)
    monkeypatch.setattr(world.files, "look", look_and_write)
    labels.note(tracked, source, 0)
    assert labels.take_news() == [Unreadable(LABELS, CHANGING)]
    monkeypatch.undo()
    labels.note(tracked, source, 2)
    assert labels.take_news() == [Unreadable(LABELS, None)]


def test_the_labels_of_a_finished_file_are_forgotten() -> None:
    """The state keeps only the labels that a record still needs. When the state forgets a file, it
    forgets all labels of the file."""
    world = a_world()
    write(world, labelled("1"))
    world.files.append(LOG, line("a"))
    world.start()
    for number in range(4):
        write(world, labelled(str(number)))
        world.clock.advance(2)
        world.files.append(LOG, line("x"))
        world.settle(rounds=5)
    (history,) = StateDatabase(world.connection).labels().values()
    assert len(history) <= 2
    world.files.delete(LOG)
    world.clock.advance(40 * 86_400)
    world.settle(seconds=3_600)
    state = StateDatabase(world.connection)
    assert set(state.labels()) <= {file.file for file in state.files()}


@pytest.mark.parametrize("location", ["/no\0file", "/no\ud800file", "/", "/dev/zero"])
def test_no_location_ends_the_agent(location: str, world: World) -> None:
    """If the location of the file with the labels is an impossible path, a directory or a device,
    the agent reports the location as unreadable."""
    labels = PodLabels(OperatingSystem())
    world.files.append(LOG, line("a"))
    world.start()
    world.settle()
    (tracked,) = world.agent.tracker.files.values()
    labels.note(tracked, LabelSource(location, ("app",)), 0)
    first, _ = labels.take_news()
    assert isinstance(first, Unreadable)
    assert labels_at(tracked.labels, tracked.read_position) == ()


# --- the file with the labels -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "keys"),
    [
        (LOG, (UID, "shop/web-1")),
        (f"{LOG}.20261121-081501", (UID, "shop/web-1")),
        (f"/var/log/containers/web-1_shop_app-{'0a' * 32}.log", ("0a" * 32, "shop/web-1")),
        (f"/var/lib/docker/containers/{'0a' * 32}/{'0a' * 32}-json.log", ("0a" * 32,)),
        ("/var/log/app.log", ()),
    ],
)
def test_the_keys_of_a_log(path: str, keys: tuple[str, ...]) -> None:
    """The path of a log determines the keys under which its labels can be in the file with the
    labels. The most exact key is used first."""
    assert keys_of(path) == keys


POD = {"metadata": {"name": "web-1", "namespace": "shop", "uid": UID, "labels": {"app": "web"}}}


@pytest.mark.parametrize(
    "content",
    [
        '{"shop/web-1": {"app": "web"}}',
        f'{{"{UID}": {{"app": "web"}}, "shop/web-1": {{"app": "of an older pod"}}}}',
        "shop/web-1:\n  app: web\n",
        "shop/web-1: {app: web}\nshop/web-2: text\n3: [1]\n",
        json.dumps({"kind": "List", "items": [POD, 7, {}, {"metadata": {"labels": 3}}]}),
    ],
)
def test_the_forms_of_the_file(content: str) -> None:
    """In the file with the labels, the key of a pod may be its namespace and name, or its uid. The
    file may be JSON, YAML, or a list of pods as kubectl prints it."""
    assert labels_of(read(content.encode()), LOG) == {"app": "web"}


def test_odd_labels_become_texts_or_are_left_out() -> None:
    """Numbers and booleans become texts, long texts are cut, and values that cannot be labels are
    left out. A lone surrogate becomes a question mark."""
    content = {"shop/web-1": {"a": 3, "b": True, "c": None, "d": [1], "e": "x" * 5_000}}
    data = json.dumps(content).encode()[:-2] + rb', "f": "\ud800"}}'
    found = labels_of(read(data), LOG)
    assert found is not None
    assert {name: text for name, text in found.items() if name != "e"} == {
        "a": "3", "b": "true", "f": "?",
    }  # fmt: skip
    assert len(found["e"]) == pod_metadata.TEXT_CHARACTERS_MAX


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=9),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["items", "metadata", "labels", "uid", "x"]), inner)
    ),
    max_leaves=12,
)


@given(st.binary(max_size=60) | VALUES.map(lambda value: json.dumps(value).encode()))
def test_no_content_ends_the_agent(data: bytes) -> None:
    """Whatever bytes the file with the labels contains, the agent either reads or refuses the file,
    and each label can be encoded as UTF-8."""
    try:
        found = read(data)
    except MetadataRefused:
        return
    for labels in found.values():
        for name, text in labels.items():
            assert (name + text).encode().decode() == name + text


@pytest.mark.parametrize("data", [b"[" * 50_000, b"a: " + b"[" * 50_000, b"- " * 30_000])
def test_deep_contents_are_refused(data: bytes) -> None:
    """The agent refuses contents that are nested so deep that they would overflow the stack."""
    with pytest.raises(MetadataRefused):
        read(data)


@pytest.mark.parametrize(
    "text",
    [
        "!!bool xyz", '!!int ""', "!!timestamp x", "!!float x", "!!binary '*'", "!!set [a]",
        "!!omap 1", "!!python/object:os.system {}", "2026-99-99", "0x" + "f" * 9_999, "0o9", "1:99",
    ],
)  # fmt: skip
def test_a_tag_is_a_text_as_any_other(text: str) -> None:
    """Whatever type YAML gives to a value in a file with labels, the agent reads a text, or leaves
    the value out."""
    found = labels_of(read(f"shop/web-1: {{app: web, other: {text}}}".encode()), LOG)
    assert found is not None
    assert found["app"] == "web"
    with contextlib.suppress(MetadataRefused):
        read(f"{text}: {{app: web}}".encode())


ALIASES = "l0: &l0 [x, x]\n" + "".join(
    f"l{number}: &l{number} [{', '.join([f'*l{number - 1}'] * 9)}]\n" for number in range(1, 10)
)


@pytest.mark.parametrize(
    "text",
    [
        f"{ALIASES}items: [{{metadata: {{name: n, namespace: *l9}}}}]",
        "shop/web-1: &a {app: *a}",
        'shop/web-1: {app: "\\UFFFFFFFF"}',
        "shop/web-1: {<<: *a}",
    ],
)
def test_a_small_text_does_not_become_large(text: str) -> None:
    """YAML with aliases, which a few lines can make a text of any size, is refused, and so is an
    escape of a character that does not exist."""
    with pytest.raises(MetadataRefused, match="neither JSON nor plain YAML"):
        read(text.encode())


def test_only_texts_name_a_pod() -> None:
    """In a list of pods, a namespace or name that is no text names no pod."""
    item = {"metadata": {"name": "web-1", "namespace": ["shop"] * 9, "labels": {"app": "x"}}}
    assert read(json.dumps({"items": [item]}).encode()) == {}


@given(
    st.lists(
        st.tuples(st.integers(1, 9), st.dictionaries(st.sampled_from("ab"), st.text(min_size=1)))
    ),
    st.integers(0, 50),
)
def test_the_history_keeps_what_records_need(changes: list[Any], settled: int) -> None:
    """The agent shortens a log's history (the list of changes of its labels) and stores it as text.
    For each position that is not yet acknowledged and not declared lost or uncertain, the shortened
    history still has the same labels as the whole list."""
    history, whole, at = (), {}, 0
    for step, labels in changes:
        at += step
        found = tuple(sorted(labels.items()))
        history = extended(history, at, found, min(settled, at))
        whole[at] = found
    history = from_json(to_json(history))
    for position in range(min(settled, at), at + 3):
        known = [labels for first, labels in whole.items() if first <= position]
        assert labels_at(history, position) == (known[-1] if known else ())


# --- settings -----------------------------------------------------------------------------------

CONFIG = """
bootstrap.servers: 127.0.0.1:9
schema.registry.url: http://127.0.0.1:9
state.dir: /nowhere
"""


@pytest.mark.parametrize(
    ("more", "sentence"),
    [
        ("labels: {location: /l, fields: {app: app}}", "labels: only pods and containers"),
        ("container: cri, labels: {location: l, fields: {app: app}}", "must be absolute"),
        ("container: cri, labels: {location: /l, fields: {a-b: app}}", "'a-b' is no name"),
        ("container: cri, labels: {location: /l, fields: {app: ''}}", "app needs the name"),
        ("container: cri, labels: {location: /l}", "labels.fields"),
        ("container: cri, labels: {location: /l, fields: {}}", "labels.fields"),
        ("container: cri, labels: {location: /l, fields: {pod: app}}", "the name 'pod'"),
        ("container: cri, labels: {location: /l, fields: {line: app}}", "the name 'line'"),
        (
            "container: cri, labels: {location: /l, fields: {app: app}}, schema: SCHEMA,"
            " parser: {type: json}",
            "'app' of path.pattern, fields or labels needs a string field",
        ),
    ],
)
def test_settings_that_cannot_work_are_refused(
    more: str, sentence: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """If a source's setting `labels` cannot work, the agent refuses the source with a sentence that
    names the mistake."""
    fields = [{"name": name, "type": "string"} for name in ("namespace", "pod", "container", "x")]
    schema = tmp_path / "a.avsc"
    schema.write_text(json.dumps({"type": "record", "name": "a", "fields": fields}))
    config = tmp_path / "agent.yml"
    more = more.replace("SCHEMA", str(schema))
    config.write_text(f"{CONFIG}sources: [{{topic: a, paths: [/a], {more}}}]")
    (tmp_path / "a.log").write_text("x\n")
    status = main(["agent", "test", str(tmp_path / "a.log"), "--config", str(config)])
    assert status == ConfigurationRefused.exit_code
    assert sentence in capsys.readouterr().err


def test_a_test_of_settings_shows_the_labels(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """`agent test` shows the present labels from the file with the labels, or says why there are
    none."""
    folder = tmp_path / "pods" / f"shop_web-1_{UID}" / "app"
    folder.mkdir(parents=True)
    log, labels = folder / "0.log", tmp_path / "pods.json"
    log.write_bytes(line("a"))
    config = tmp_path / "agent.yml"
    config.write_text(
        f"{CONFIG}sources: [{{topic: a, paths: ['{log}'], container: cri,"
        f" labels: {{location: '{labels}', fields: {{app: app.kubernetes.io/name}}}}}}]"
    )
    assert loading.load(AgentSettings, config).sources[0].label_fields == {
        "app": "app.kubernetes.io/name"
    }
    command = ["agent", "test", str(log), "--config", str(config)]
    assert main(command) == 0
    assert f"The records have no labels: {labels} cannot be read" in capsys.readouterr().out
    labels.write_text("{}")
    assert main(command) == 0
    assert "does not name the pod or container" in capsys.readouterr().out
    labels.write_text('{"shop/web-1": {"app.kubernetes.io/name": "cart"}}')
    assert main(command) == 0
    assert "app: cart" in capsys.readouterr().out
