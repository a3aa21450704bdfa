"""Tests how the settings of the agent are read, and which settings it refuses."""

import re
from pathlib import Path

import pytest
import yaml

from skidway import settings
from skidway.agent.settings import AgentSettings
from skidway.agent.validation.checks import check_settings
from skidway.cli import main
from skidway.errors import ConfigurationRefused

SMALLEST = r"""
bootstrap.servers: 127.0.0.1:9092
schema.registry.url: http://127.0.0.1:8081
state.dir: /var/lib/skidway/agent
sources:
  - topic: hdfs-logs
    paths: [/var/log/hadoop/*.log]
    parser: {type: regex, pattern: '^(?P<date>\S+) (?P<time>\S+) (?P<level>\S+) (?P<message>.*)$'}
    timestamp: {fields: [date, time], format: '%y%m%d %H%M%S', timezone: UTC}
"""


def load(text: str, tmp_path: Path) -> AgentSettings:
    path = tmp_path / "agent.yml"
    path.write_text(text)
    return settings.load(AgentSettings, path)


def test_the_smallest_file_is_enough(tmp_path: Path) -> None:
    """A configuration file with only the required keys is valid, because all other keys have
    defaults."""
    loaded = load(SMALLEST, tmp_path)
    check_settings(loaded)
    assert loaded.sources[0].rejected_topic == "hdfs-logs.rejected"
    assert (loaded.batch_size, loaded.compression_type) == (900_000, "zstd")


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("/var/log/hadoop/*.log", "logs/*.log", "absolute"),
        ("/var/log/hadoop/*.log", "/var/log/hadoop/", r"paths: '/var/log/hadoop/' ends in a slash"),
        (
            "[/var/log/hadoop/*.log]",
            "[/x]\n    exclude: ['*.gz']",
            r"exclude: '\*.gz' must be absolute; .* write /\*\*/\*.gz$",
        ),
        ("topic: hdfs-logs", "topic: _mine", "begins with _"),
        ("topic: hdfs-logs", "topic: _mine.logs", "begins with _"),
        ("topic: hdfs-logs", "topic: dc1._mine.logs", "begins with _"),
        ("topic: hdfs-logs", "topic: 'a b'", "no topic name"),
        ("type: regex", "type: json", "pattern"),
        ("fields: [date, time]", "fields: [when]", "'when'"),
        ("%y%m%d %H%M%S", "%H%M%S", "no day"),
        ("timezone: UTC", "timezone: Mars", "Mars"),
        ("(?P<level>", "(?P<level", "pattern"),
        ("topic: hdfs-logs", "topic: hdfs-logs\n    key: nope", "nope"),
        ("topic: hdfs-logs", "topic: hdfs-logs\n    partitioning: key", "key"),
        (
            "topic: hdfs-logs",
            "topic: hdfs-logs\n    schema: /nowhere.avsc",
            "^source of topic hdfs-logs: schema: cannot read /nowhere.avsc: no such file or dire",
        ),
        (
            "topic: hdfs-logs",
            "topic: hdfs-logs\n    schema: nowhere.avsc",
            "schema: cannot read /.*/nowhere.avsc: no such file",
        ),
        ("%y%m%d %H%M%S", "%y%m%d %H%M%S %Z", "%z reads names of zones, too"),
        ("topic: hdfs-logs", "topci: hdfs-logs", "topic"),
        ("http://127", "127", "schema.registry.url: '127.0.0.1:8081' is no URL"),
        ("(?P<level>", "(?P<level>[", r"missing \]"),
        (
            "topic: hdfs-logs",
            "topic: hdfs-logs\n    encoding: utf-32",
            r"sources\[0\].encoding must be one of utf-8, utf-16, .*, not 'utf-32'$",
        ),
        (
            "topic: hdfs-logs",
            "topic: hdfs-logs\n    start_at: middle",
            r"sources\[0\].start_at must be one of beginning, end, not 'middle'$",
        ),
        (
            "topic: hdfs-logs",
            "topic: hdfs-logs\n    ignore.older.ms: 60000",
            r"sources\[0\].ignore.older.ms must be at least 3600000",
        ),
        (
            "topic: hdfs-logs",
            "topic: hdfs-logs\n    on_error: ignore",
            r"sources\[0\].on_error must be one of reject, replace, not 'ignore'$",
        ),
    ],
)
def test_what_cannot_work_is_refused_before_it_runs(
    tmp_path: Path, old: str, new: str, words: str
) -> None:
    """A setting that cannot work is refused before the agent runs, with one sentence that names the
    mistake."""
    assert old in SMALLEST
    with pytest.raises(ConfigurationRefused, match=words):
        check_settings(load(SMALLEST.replace(old, new), tmp_path))


@pytest.mark.parametrize("topic", ["hdfs-logs.rejected", "orders.rejected"])
def test_a_topic_must_not_be_called_like_rejects(tmp_path: Path, topic: str) -> None:
    """A topic named *.rejected is refused, because the audit would treat it as a topic of rejected
    lines. If such a topic were accepted, its lines could also be mixed with the rejected lines of
    another topic."""
    more = f"  - {{topic: {topic}, paths: [/x]}}\n"
    with pytest.raises(ConfigurationRefused, match="rejected"):
        load(SMALLEST + more, tmp_path)


def test_a_schema_file_that_is_none_is_named(tmp_path: Path) -> None:
    """If a schema file does not contain a valid schema, the agent refuses the file. The error names
    the source, the file and the mistake."""
    schema = tmp_path / "s.avsc"
    schema.write_text('{"type": "reco')
    text = SMALLEST.replace("topic: hdfs-logs", f"topic: hdfs-logs\n    schema: {schema}")
    with pytest.raises(ConfigurationRefused, match=f"^source of topic hdfs-logs: schema: {schema}"):
        check_settings(load(text, tmp_path))


def test_a_schema_that_does_not_fit_the_parser_is_refused(tmp_path: Path) -> None:
    """A schema with a required field that the parser does not fill is refused, because every line
    would be rejected."""
    schema = tmp_path / "s.avsc"
    schema.write_text(
        '{"type": "record", "name": "r", "fields": [{"name": "other", "type": "string"}]}'
    )
    text = SMALLEST.replace("topic: hdfs-logs", f"topic: hdfs-logs\n    schema: {schema}")
    with pytest.raises(ConfigurationRefused, match="'other'"):
        check_settings(load(text, tmp_path))
    schema.write_text("{nonsense")
    with pytest.raises(ConfigurationRefused):
        check_settings(load(text, tmp_path))


def test_the_example_file_is_a_configuration(tmp_path: Path) -> None:
    """The example configuration file has the key of every setting. The file is a valid
    configuration as soon as the required keys have values."""
    keys = {each.key for each in settings.documented(AgentSettings)}
    text = settings.example(AgentSettings)
    assert keys_of(yaml.safe_load(uncommented(text, keys))) == keys
    required = {
        "state.dir": "/var/lib/skidway/agent",
        "topic": "logs",
        "paths": "[/log/a]",
    }
    for key, value in required.items():
        text, count = re.subn(rf"(?m)^ *{re.escape(key)}:$", rf"\g<0> {value}", text)
        assert count == 1
    loaded = load(text, tmp_path)
    check_settings(loaded)
    assert loaded.sources[0].topic == "logs"


def uncommented(text: str, keys: set[str]) -> str:
    """Returns the text of the example file without the comment signs before the keys."""
    lines = []
    for line in text.splitlines():
        bare = line.replace("# ", "")
        name = bare.strip().partition(":")[0]
        is_key = name == "-" or any(f".{key}".endswith(f".{name}") for key in keys)
        lines.append(bare if is_key else line)
    return "\n".join(lines)


def keys_of(node: object, prefix: str = "") -> set[str]:
    """Returns the keys of a YAML document, nested ones with dots and `[]`, as `settings.documented`
    writes them."""
    if isinstance(node, list):
        return set().union(*(keys_of(each, f"{prefix[:-1]}[].") for each in node))
    if not isinstance(node, dict):
        return set()
    found = set()
    for name, value in node.items():
        found |= {f"{prefix}{name}"} | keys_of(value, f"{prefix}{name}.")
    return found


def test_exit_statuses_of_the_command_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Exit status 0 means a good configuration, 78 a refused configuration, and 65 that there is no
    state that can be shown or adopted. Each error message begins with `skidway agent: `."""
    good = tmp_path / "good.yml"
    good.write_text(SMALLEST)
    assert main(["agent", "validate", "--config", str(good)]) == 0
    assert main(["agent", "validate", "--config", str(good), "--set", "batch.size=1"]) == 78
    directory = tmp_path / "state"
    show = ["agent", "state", "show", "--config", str(good), "--set", f"state.dir={directory}"]
    assert main(show) == 65
    adopt = ["agent", "state", "adopt", *show[3:]]
    assert main(adopt) == 65
    assert all(line.startswith("skidway agent: ") for line in capsys.readouterr().err.splitlines())
