"""Settings of `skidway agent`: every key, its default and its reason.

The command line imports this module for each subcommand of `skidway agent`. Arrow takes long to
load, and imports pandas if this is not prevented. So modules that import Arrow are imported here
only inside the checks that need them.
"""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar, Literal

from skidway.agent.parsers.settings import (
    NAMES_MAX,
    PATTERN_CHARACTERS_MAX,
    ParserSettings,
    check_field_name,
)
from skidway.agent.parsing.byte_order import WIDE
from skidway.agent.parsing.framing import READ_BYTES, READ_LINES
from skidway.agent.parsing.joins import CONTINUATION, END, START, TRACES, Rule
from skidway.agent.parsing.runtimes import CRI, KUBERNETES
from skidway.agent.values import path_texts
from skidway.agent.values.source_files import RefusedFile, Version
from skidway.audit.signing.setting import audit_key_setting
from skidway.audit.topic.count_columns import LONGEST_MS
from skidway.dataclass import dataclass
from skidway.errors import ConfigurationRefused
from skidway.host_name import host_name_setting
from skidway.http.hosts import allowed_hosts_setting
from skidway.kafka.codecs import BY_NAME, ZSTD
from skidway.kafka.settings import KafkaSettings
from skidway.kafka.source import check_cluster_name
from skidway.schemas.client import RegistryClientSettings
from skidway.settings import beside, setting
from skidway.telemetry import host_and_port

AUDIT_PREFIX = "_"
REJECTED_SUFFIX = ".rejected"

LINE_BYTES_MAX = READ_BYTES // 4 * 3
YEARS_MS = 10 * 365 * 86_400_000
BATCH_BYTES_MIN = 16_384

_TOPIC_CHARACTERS = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-")
_TOPIC_CHARACTERS_MAX = 249 - len(REJECTED_SUFFIX)


@dataclass(frozen=True, slots=True, kw_only=True)
class MultilineSettings:
    """The settings that say how several lines become one record."""

    type: Literal[
        "start",
        "continuation",
        "end",
        "java",
        "python",
        "node",
        "go",
        "ruby",
        "dotnet",
        "indented",
    ] = setting(
        "type",
        help="start: a record begins at each line that matches pattern; continuation: a line that "
        "matches belongs to the record before it; end: a record ends after each line that "
        "matches. The other types have no pattern. A language: the lines of its stack traces "
        "belong to the record before them; indented: lines that begin with a blank or a tab "
        "belong to the record before them. If the parser knows how its records begin (format, "
        "log4j, python), these types join all lines up to the next beginning.",
    )
    pattern: str | None = setting(
        "pattern",
        None,
        help="RE2, searched in a line; ^ and $ are the line's beginning and end.",
        at_most=PATTERN_CHARACTERS_MAX,
    )
    max_lines: int = setting(
        "max.lines",
        500,
        help="Most lines of a record; the next line begins another.",
        at_least=1,
        at_most=READ_LINES // 2,
    )
    timeout_ms: int = setting(
        "timeout.ms",
        5_000,
        help="How long a file must not change before its last record counts as whole.",
        at_least=10,
        at_most=YEARS_MS,
    )

    @property
    def rule(self) -> Rule:
        """The rule by which lines are joined."""
        if self.type in (START, CONTINUATION, END):
            assert self.pattern is not None  # check() refuses None
            return Rule(self.type, self.pattern, self.max_lines)
        return Rule(CONTINUATION, TRACES[self.type], self.max_lines)

    def check(self) -> None:
        """Refuses a rule that lacks its pattern, a pattern in addition to a type that has its own,
        and a pattern that RE2 refuses.
        """
        if (self.type in (START, CONTINUATION, END)) != (self.pattern is not None):
            raise ConfigurationRefused(
                f"multiline.pattern is missing: type {self.type} needs one"
                if self.pattern is None
                else f"multiline.pattern does not belong to type {self.type}, which has its own"
            )
        from skidway.agent.parsing.joints import (
            check_rule,  # imported only here, because it imports Arrow (see the module's docstring)
        )

        check_rule(self.rule)


@dataclass(frozen=True, slots=True, kw_only=True)
class TimestampSettings:
    """The settings that say which fields of a line have its event time, and in which format."""

    fields: list[str] = setting(
        "fields",
        help="Groups or members that hold the time, joined by a blank. A member inside an object "
        "is written as meta.time.",
        at_least=1,
        at_most=NAMES_MAX,
    )
    format: str = setting(
        "format",
        help="Python's strptime directives except %Z (%z reads letters of zones, too), or rfc3339, "
        "epoch (seconds), epoch_ms, epoch_us, epoch_ns.",
        at_most=PATTERN_CHARACTERS_MAX,
    )
    timezone: str = setting(
        "timezone", "UTC", help="Time zone of times that name no zone, such as Europe/Berlin."
    )
    on_error: Literal["reject", "read_time"] = setting(
        "on_error",
        "reject",
        help="What to do with a record whose time cannot be read: reject sends it to "
        "<topic>.rejected; read_time gives it the time of reading, and sets timestamp_replaced.",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelSettings:
    """The settings that say which labels of its pod or container a record gets."""

    location: Path = setting(
        "location",
        help="File with the labels, JSON or YAML: by namespace/pod, uid of a pod, or id of a "
        "container; or a list of pods, as kubectl prints it. Another program keeps it up to date.",
    )
    fields: dict[str, str] = setting(
        "fields",
        help="The field for each label, such as app: app.kubernetes.io/name.",
        at_most=NAMES_MAX,
    )

    def check(self) -> None:
        """Refuses a path that is not absolute, a setting without fields, names that no field can
        have, and empty names of labels."""
        if not self.location.is_absolute():
            raise ConfigurationRefused(f"labels.location: {str(self.location)!r} must be absolute")
        if not self.fields:
            raise ConfigurationRefused("labels.fields is empty: name a field for each label")
        for name, label in self.fields.items():
            check_field_name("labels.fields", name)
            if not label:
                raise ConfigurationRefused(f"labels.fields: {name} needs the name of a label")


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceSettings:
    """One source: the paths of its files, how their lines are parsed, and the topic for these
    lines.
    """

    topic: str = setting("topic", help="Topic that takes the records.")
    paths: list[str] = setting(
        "paths",
        help="Files to tail: absolute patterns with *, ?, [...], {a,b} and **; see Patterns of "
        "paths.",
        at_least=1,
        at_most=NAMES_MAX,
    )
    exclude: list[str] = setting(
        "exclude",
        [],
        help="Files to leave out: patterns like those of paths.",
        at_most=NAMES_MAX,
    )
    optional: bool = setting(
        "optional",
        False,
        help="Whether the files may be missing on this host. If not, and no file has matched yet, "
        "the audit calls the topic unknown.",
    )
    start_at: Literal["beginning", "end"] = setting(
        "start_at",
        "beginning",
        help="Where reading begins in files that exist when the agent first looks at this pattern; "
        "files that appear later are read from their beginning.",
    )
    ignore_older_ms: int | None = setting(
        "ignore.older.ms",
        None,
        help="If a file was last changed longer ago than this when the agent first finds it, the "
        "agent reads it only after it has changed; if not set, every file is read.",
        at_least=3_600_000,
        at_most=YEARS_MS,
    )
    deleted_after_ms: int | None = setting(
        "deleted.after.ms",
        None,
        help="How long after the creation of a file of these paths this host deletes the file; the "
        "audit shows how much of this time is left. If not set, earlier files of the "
        "directory show it.",
        at_least=1_000,
        at_most=YEARS_MS,
    )
    parser: ParserSettings = setting(
        "parser",
        ParserSettings(),
        help="How a line becomes fields; if not set, the whole line is one field.",
    )
    format: str | None = setting(
        "format",
        None,
        help="Name of a well-known format instead of parser: `skidway agent formats` lists all.",
    )
    timezone: str | None = setting(
        "timezone",
        None,
        help="With format, or a log4j or python parser: time zone of times that name no zone; UTC "
        "if not set.",
    )
    fields: dict[str, str] = setting(
        "fields",
        {},
        help="Further fields with the same text in each record, such as env: prod.",
        at_most=NAMES_MAX,
    )
    container: Literal["cri", "docker"] | None = setting(
        "container",
        None,
        help="The files are a container runtime's: cri (Kubernetes), or docker (json-file). Parts "
        "of a line are joined; container_stream and container_time take what the runtime wrote.",
    )
    path_pattern: str | None = setting(
        "path.pattern",
        None,
        help="RE2, searched in a file's path; its named groups are fields. With container: cri, "
        "the default finds namespace, pod and container.",
        at_most=PATTERN_CHARACTERS_MAX,
    )
    labels: LabelSettings | None = setting(
        "labels", None, help="With container: labels of the pod or container that become fields."
    )
    multiline: MultilineSettings | None = setting(
        "multiline",
        None,
        help="How lines become records of several lines; if not set, a format and a log4j or "
        "python parser join lines by what they know; with other parsers each line is a record.",
    )
    timestamp: TimestampSettings | None = setting(
        "timestamp",
        None,
        help="Which part of a line is the event time; if not set, the event time is the time of "
        "reading.",
    )
    schema: str | None = setting(
        "schema",
        None,
        help="An .avsc file, or a subject; if not set, the schema is derived from the parser. A "
        "relative path begins at the directory of the file that names it.",
    )
    key: str | None = setting("key", None, help="Field whose value becomes the record's key.")
    partitioning: Literal["file", "key", "spread"] | None = setting(
        "partitioning",
        None,
        help="file: a file's records stay together; key: by the key field (the default if key is "
        "set); spread: every MiB of a file to the next partition.",
    )
    shape: str | None = setting(
        "shape",
        None,
        help="Rules, one a line, that leave out records (drop, keep, sample), mask or hash texts, "
        "and rename or remove fields; see Shaping records.",
    )
    hash_key_location: Path | None = setting(
        "hash.key.location",
        None,
        help="File with the secret key of the rules `hash` in shape; restart the agent after a "
        "change of this file. A relative path begins at the directory of the file that names "
        "it.",
    )
    max_line_bytes: int = setting(
        "max.line.bytes",
        524_288,
        help="A longer line goes to <topic>.rejected, cut to fit; a record of several lines ends "
        "before the line that would make the record longer than this.",
        at_least=64,
        at_most=LINE_BYTES_MAX,
    )
    encoding: Literal[
        "utf-8", "utf-16", "utf-16le", "utf-16be",
        "latin-1", "iso-8859-15", "windows-1252", "shift-jis", "euc-jp", "gb18030",
        "big5", "koi8-r",
    ] = setting(
        "encoding",
        "utf-8",
        help="How the lines are encoded. Records are always UTF-8. utf-16: the byte order mark of "
        "a file says its byte order; a file without a mark is little-endian.",
    )  # fmt: skip
    on_error: Literal["reject", "replace"] = setting(
        "on_error",
        "reject",
        help="What to do with a line in another encoding: reject sends it to <topic>.rejected; "
        "replace delivers it with U+FFFD for each invalid part, and sets encoding_replaced.",
    )
    colours: Literal["strip", "keep"] | None = setting(
        "colours",
        None,
        help="What to do with codes for terminals, such as colours: strip takes them out of a line "
        "before anything else is done with it; keep leaves them there. keep is the default of a "
        "raw parser without shape, and strip that of all others.",
    )
    replay: bool = setting(
        "replay",
        False,
        help="Whether `skidway agent replay` may send repaired lines to the topic; a derived schema"
        " gets the fields original_agent, original_file and original_first.",
    )
    schema_text: str | None = beside(None)
    """What the file has that `schema` names; None if it names none, or nobody read it yet."""
    file: str | None = beside(None)
    """The file of `sources.dir` that has the source; None if the agent's own configuration has."""

    def check(self) -> None:
        """Raises ConfigurationRefused if a topic name, a path or a rule of `shape` is not valid, or
        if settings of the source contradict each other."""
        _check_topic(self.topic)
        path_texts.check("paths", self.paths)
        path_texts.check("exclude", self.exclude)
        if self.timestamp is not None and not self.parser.kind.has_fields and self.format is None:
            raise ConfigurationRefused(
                f"timestamp: a {self.parser.type} parser has no fields to take the time from; "
                "use a parser of another type"
            )
        if self.encoding in WIDE and self.container is not None:
            raise ConfigurationRefused(
                f"encoding: {self.encoding} does not go with container; runtimes write UTF-8"
            )
        if self.labels is not None and self.container is None:
            raise ConfigurationRefused(
                "labels: only pods and containers have labels; set container: cri or docker"
            )
        self._check_format()
        if self.parser.types and self.schema is not None:
            raise ConfigurationRefused("parser.types: the schema already says the types of fields")
        if self.partitioning == "key" and self.key is None:
            raise ConfigurationRefused("partitioning: key needs the setting key")
        if self.parser.kind.fills_by_name and self.parser.columns and self.schema is not None:
            raise ConfigurationRefused("parser.columns: the schema already says which keys count")
        if self.parser.kind.needs_schema and self.schema is None:
            raise ConfigurationRefused(f"schema: a {self.parser.type} parser needs one")
        _check_shape(self.shape, self.hash_key_location, self.colours)

    def _check_format(self) -> None:
        if self.format is not None and self.parser != ParserSettings():
            raise ConfigurationRefused("format: a source has either a format or a parser")
        has_times = self.format is not None or self.parser.kind.takes_zone
        if self.timezone is not None and (not has_times or self.timestamp is not None):
            raise ConfigurationRefused(
                "timezone: it belongs to format, and to a log4j or python parser; beside "
                "timestamp, set timestamp.timezone"
            )

    @property
    def path_patterns(self) -> tuple[str, ...]:
        """The pattern of `path.pattern`, or its default patterns. Their groups are fields. If
        several patterns match a path, the first of them counts.
        """
        if self.path_pattern is not None:
            return (self.path_pattern,)
        return KUBERNETES if self.container == CRI else ()

    @property
    def schema_file(self) -> Path | None:
        """The file that the setting `schema` names; None if the setting is missing, or names a
        subject of the registry."""
        is_file = self.schema is not None and self.schema.endswith(".avsc")
        return Path(str(self.schema)) if is_file else None

    @property
    def label_fields(self) -> dict[str, str]:
        """The fields that take labels: by field, the name of the label."""
        return {} if self.labels is None else self.labels.fields

    @property
    def rejected_topic(self) -> str:
        """The topic for rejected lines."""
        return self.topic + REJECTED_SUFFIX


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplaySource(SourceSettings):
    """A source whose files contain the repaired lines of another source, to be sent again
    (replayed). This source has the settings of the other source, except the settings that say which
    files are read, where reading begins, and how long a line may be. The agent makes this source
    itself; it is not in the configuration.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class SourcesRule:
    """What some files of `sources.dir` may say."""

    files: list[str] = setting(
        "files", help="Names of the files, such as shop.yml or shop-*.yml.", at_least=1
    )
    paths: list[str] = setting(
        "paths", help="Patterns of the paths that their sources may have.", at_least=1
    )
    topics: list[str] = setting(
        "topics", help="Topics that their sources may have, such as shop-*.", at_least=1
    )
    owner: str | None = setting(
        "owner", None, help="The user who owns the files; if not set, root or the agent's user."
    )

    def check(self) -> None:
        """Refuses what is no pattern of paths."""
        path_texts.check("sources.dir.rules: paths", self.paths)


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentSettings(RegistryClientSettings, KafkaSettings):
    """All settings of `skidway agent run`."""

    CLIENT_ID: ClassVar[str] = "skidway-agent"

    state_dir: Path = setting("state.dir", help="Directory of the agent's database.")
    sources: list[SourceSettings] = setting(
        "sources", help="What to tail; [] if all sources are in the files of sources.dir."
    )
    sources_dir: Path | None = setting(
        "sources.dir",
        None,
        help="Directory of further sources: each file *.yml in it has a list `sources`.",
        example="/etc/skidway/agent.d",
    )
    sources_dir_rules: list[SourcesRule] = setting(
        "sources.dir.rules",
        [],
        help="What the files of sources.dir may say; without rules, each of them may name any path "
        "and topic.",
    )
    links: Literal["owner", "all", "none"] = setting(
        "links",
        "owner",
        help="Which links the agent follows: owner, those of root, of its own user, and of the "
        "owner of the file to which they lead; all; none.",
    )
    decompression_memory_bytes: int = setting(
        "decompression.memory.bytes",
        128 << 20,
        help="How much memory the decompression of a file may need; a file that needs more counts "
        "as damaged. One file at a time is read, and one or two are measured.",
        at_least=1 << 20,
        at_most=1 << 30,
    )
    decompression_ratio_max: int = setting(
        "decompression.ratio.max",
        1_000,
        help="A file of more than 1 GiB plain bytes that has more than this many for each of its "
        "compressed bytes counts as damaged.",
        at_least=10,
    )
    cluster_name: str | None = setting(
        "cluster.name",
        None,
        help="Name of the cluster, without a dot; if not set, the agent asks the broker for it.",
    )
    host_name: str | None = host_name_setting()
    metrics_listener: str = setting(
        "metrics.listener", "127.0.0.1:9101", help="Where /metrics and /health answer."
    )
    allowed_hosts: list[str] = allowed_hosts_setting()
    checkpoint_interval_ms: int = setting(
        "checkpoint.interval.ms",
        200,
        help="Least time between two checkpoints of what was acknowledged.",
        at_least=1,
    )
    idle_flush_ms: int = setting(
        "idle.flush.ms",
        5_000,
        help="How long a file must not change before its last line is sent without a line end.",
        at_least=10,
    )
    close_rotated_ms: int = setting(
        "close.rotated.ms",
        60_000,
        help="How long a file must not change after its rotation or deletion before the agent ends "
        "its file id.",
        at_least=100,
    )
    reconcile_interval_ms: int = setting(
        "reconcile.interval.ms",
        60_000,
        help="Longest time between two looks through all patterns; shorter with few files.",
        at_least=100,
    )
    seal_interval_ms: int = setting(
        "seal.interval.ms",
        15_000,
        help="How often the agent sends a seal, which says up to which time its files are "
        "complete.",
        at_least=100,
    )
    audit_key_location: Path | None = audit_key_setting("agent")
    audit_interval_ms: int = setting(
        "audit.interval.ms",
        15_000,
        help="How often counts are sent, if there are new ones.",
        at_least=10,
    )
    heartbeat_interval_ms: int = setting(
        "heartbeat.interval.ms",
        10_000,
        help="How often an agent with nothing else to say sends a heartbeat.",
        at_least=100,
    )
    lateness_ms: int = setting(
        "lateness.ms",
        120_000,
        help="How much older than the last seal the lines of a lost, unread file may be. Audit "
        "messages contain this value; the audit uses its own lateness.ms if that is larger.",
        at_least=0,
    )
    audit_bucket_ms: int = setting(
        "audit.bucket.ms",
        60_000,
        help="Size of a bucket of event time.",
        at_least=1_000,
        at_most=LONGEST_MS,
    )
    batch_size: int = setting(
        "batch.size",
        900_000,
        help="Largest batch before compression, bytes; never above the topic's max.message.bytes.",
        at_least=BATCH_BYTES_MIN,
        at_most=64 << 20,
    )
    linger_ms: int = setting(
        "linger.ms",
        10,
        help="Least time between two turns that read, so that lines gather.",
        at_least=0,
        at_most=1000,
    )
    compression_type: str = setting(
        "compression.type",
        ZSTD.name,
        help="How batches are compressed.",
        choices=tuple(BY_NAME),
    )
    buffer_memory: int = setting(
        "buffer.memory",
        16 << 20,
        help="Bytes of unacknowledged batches at which reading stops. A topic that brokers do not "
        "acknowledge takes about half of what other topics leave free.",
        at_least=1 << 20,
    )
    max_open_files: int = setting(
        "max.open.files",
        512,
        help="Most files that are open at a time; the agent closes the least recently used file.",
        at_least=8,
    )
    close_inactive_ms: int | None = setting(
        "close.inactive.ms",
        None,
        help="How long a file that is read to its end stays open without new bytes; if not set, "
        "the agent closes files only because of max.open.files.",
        at_least=1_000,
    )
    read_back_wait_ms: int = setting(
        "read.back.wait.ms",
        150_000,
        help="How long batches that an earlier process sent may still reach a broker. Until then, "
        "the agent decides nothing about lines that were sent and that the brokers do not "
        "have.",
        at_least=0,
    )
    topic_partitions: int = setting(
        "topic.partitions",
        -1,
        help="Partitions of topics that are created; -1: the broker decides.",
        at_least=-1,
    )
    topic_replication_factor: int = setting(
        "topic.replication.factor",
        -1,
        help="Replicas of topics that are created; -1: the broker decides.",
        at_least=-1,
    )
    rejected_share_max: float = setting(
        "rejected.share.max",
        0.5,
        help="Share of a topic's lines that may be rejected; above it, /health is 503 and names "
        "the topic.",
        at_least=0,
        at_most=1,
    )

    refused: tuple[RefusedFile, ...] = beside((), compare=False)
    """The files of `sources.dir` that are refused."""
    versions: tuple[Version, ...] = beside((), compare=False)
    """The other files of `sources.dir`."""

    @property
    def idle_reason(self) -> str | None:
        """Why the agent has nothing to read; None if there are sources."""
        if self.sources:
            return None
        if self.refused:
            return f"there are no sources: all files of {self.sources_dir} are refused"
        return (
            f"there are no sources: no file *.yml is in {self.sources_dir} (sources.dir) yet; "
            "reload the agent when there is one"
        )

    def check(self) -> None:
        """Raises ConfigurationRefused if settings contradict each other, or have an invalid
        form."""
        if not self.sources and self.sources_dir is None:
            raise ConfigurationRefused("sources: there is none, and sources.dir is not set")
        for source in self.sources:
            older_ms = source.ignore_older_ms
            if older_ms is not None and older_ms < 2 * self.reconcile_interval_ms:
                raise ConfigurationRefused(
                    f"source of topic {source.topic}: ignore.older.ms must be at least twice "
                    "reconcile.interval.ms, or new files would be taken for old ones"
                )
        host_and_port(self.metrics_listener, key="metrics.listener")
        check_cluster_name(self.cluster_name)
        _ = self.kafka
        self.registry.check()


def _check_shape(text: str | None, key_file: Path | None, colours: str | None) -> None:
    if not text:
        if key_file is not None:
            raise ConfigurationRefused("hash.key.location: no rule of shape hashes a field")
        return
    if colours == "keep":
        raise ConfigurationRefused(
            "colours: keep does not go with shape, because its rules would not see texts that have "
            "codes inside"
        )
    from skidway.agent.shaping.checking import check_patterns  # imports Arrow
    from skidway.agent.shaping.grammar import parse
    from skidway.agent.shaping.rules import needs_key

    rules = parse(text)
    check_patterns(text, rules)
    if needs_key(rules) and key_file is None:
        raise ConfigurationRefused("hash.key.location: a rule `hash` of shape needs a key")
    if key_file is not None and not needs_key(rules):
        raise ConfigurationRefused("hash.key.location: no rule of shape hashes a field")


def _check_topic(topic: str) -> None:
    if not topic or len(topic) > _TOPIC_CHARACTERS_MAX or not _TOPIC_CHARACTERS.issuperset(topic):
        raise ConfigurationRefused(
            f"topic: {topic!r} is no topic name; it takes 1 to {_TOPIC_CHARACTERS_MAX} of "
            "a-z A-Z 0-9 . _ -"
        )
    if topic in (".", "..") or any(part.startswith(AUDIT_PREFIX) for part in topic.split(".")):
        # Topics whose names begin with this prefix are internal: they are not counted or loaded,
        # and of these topics, mirrors copy only the audit topic. A name in which the prefix follows
        # a dot is refused too, because the part before the dot could be a cluster's name.
        raise ConfigurationRefused(
            f"topic: {topic!r} or a part of it begins with _, which is reserved"
        )
    if topic.endswith(REJECTED_SUFFIX):
        raise ConfigurationRefused(
            f"topic: {topic!r} takes the lines of {topic.removesuffix(REJECTED_SUFFIX)} that do not"
            " fit; give the topic another name"
        )
