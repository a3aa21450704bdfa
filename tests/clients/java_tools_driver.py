"""The driver of Apache Kafka's own command line tools (Java). It carries out each command of a test
with calls of these tools."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from clients.commands import login, protocol, serve, tls
from clients.members import Member
from support.kafka import java, tool

TOOLS = "org.apache.kafka.tools"
CONSUMER = f"{TOOLS}.consumer.ConsoleConsumer"
PRINTED = ("timestamp", "partition", "offset", "headers", "key", "value")


class JavaTools:
    """Calls TopicCommand, ConsoleProducer, ConsoleConsumer and GetOffsetShell."""

    def __init__(self, address: str) -> None:
        self._address = address
        self._member: Member | None = None
        self._sealed = _tls()

    def _run(self, name: str, *arguments: str, lines: str | None = None) -> str:
        words = ["--bootstrap-server", self._address, *self._sealed, *arguments]
        return tool(f"{TOOLS}.{name}", words, input_text=lines)

    def version(self) -> dict[str, Any]:
        return {"version": self._run("TopicCommand", "--version").split()[0]}

    def create(self, topic: str, partitions: int) -> None:
        self._run("TopicCommand", "--create", "--topic", topic, "--partitions", str(partitions))

    def describe(self, topic: str) -> dict[str, Any]:
        described = self._run("TopicCommand", "--describe", "--topic", topic)
        words = [line.split() for line in described.splitlines() if "\tPartition: " in line]
        return {"partitions": sorted(int(each[each.index("Partition:") + 1]) for each in words)}

    def topics(self) -> dict[str, Any]:
        return {"topics": sorted(self._run("TopicCommand", "--list").split())}

    def produce(
        self, topic: str, codec: str, acks: int, idempotent: bool, records: list[dict[str, Any]]
    ) -> None:
        settings = [
            *("--compression-codec", codec),
            *("--request-required-acks", str(acks)),
            *("--command-property", f"enable.idempotence={str(idempotent).lower()}"),
            *("--reader-property", "parse.key=true", "--reader-property", "parse.headers=true"),
        ]
        lines = "".join(
            ",".join(f"{name}:{value}" for name, value in record["headers"].items())
            + f"\t{record['key']}\t{record['value']}\n"
            for record in records
        )
        self._run("ConsoleProducer", "--topic", topic, *settings, lines=lines)

    def consume(self, topic: str, partition: int, offset: int, count: int) -> dict[str, Any]:
        where = ["--topic", topic, "--partition", str(partition), "--offset", str(offset)]
        limits = ["--max-messages", str(count), "--timeout-ms", "120000"]
        printed = self._run("consumer.ConsoleConsumer", *where, *limits, *_printing())
        return {"records": [_record(line) for line in printed.splitlines()]}

    def offsets(self, topic: str, partition: int) -> dict[str, Any]:
        first, end = (self._offset(topic, partition, at) for at in ("earliest", "latest"))
        return {"first": first, "end": end}

    def offset_at(self, topic: str, partition: int, timestamp: int) -> dict[str, Any]:
        return {"offset": self._offset(topic, partition, str(timestamp))}

    def _offset(self, topic: str, partition: int, at: str) -> int:
        where = ["--topic-partitions", f"{topic}:{partition}", "--time", at]
        printed = self._run("GetOffsetShell", *where).strip()
        return int(printed.rpartition(":")[2] or -1)

    def delete(self, topic: str) -> None:
        self._run("TopicCommand", "--delete", "--topic", topic)

    def join(self, group: str, topic: str) -> None:
        command = [*java(heap_mb=128), CONSUMER, "--bootstrap-server", self._address, *self._sealed]
        where = ["--group", group, "--topic", topic, "--from-beginning"]
        settings = ["--command-property", "heartbeat.interval.ms=300", *_printing()]
        self._member = Member([*command, *where, *settings])

    def poll(self, wait_ms: int) -> dict[str, Any]:
        assert self._member is not None
        lines = self._member.printed(wait_ms)
        return {"records": [_record(line.decode()) for line in lines], "assigned": None}

    def leave(self) -> None:
        assert self._member is not None
        self._member.stop()


def _tls() -> list[str]:
    """Writes the settings for TLS beside the file of authorities. Returns the option for them."""
    if not tls():
        return []
    authorities, *pair = map(Path, tls().values())
    settings = [f"security.protocol={protocol()}", "ssl.truststore.type=PEM", *_login()]
    settings.append(f"ssl.truststore.location={authorities}")
    if pair:
        both = authorities.with_name("java.pem")
        both.write_text("".join(each.read_text() for each in reversed(pair)))
        settings += ["ssl.keystore.type=PEM", f"ssl.keystore.location={both}"]
    file = authorities.with_name(f"java-{len(pair)}.properties")
    file.write_text("\n".join(settings))
    return ["--command-config", str(file)]


def _login() -> list[str]:
    if not login():
        return []
    mechanism, user, password = login().values()
    kind = "plain.Plain" if mechanism == "PLAIN" else "scram.Scram"
    module = f"org.apache.kafka.common.security.{kind}LoginModule"
    told = f'{module} required username="{user}" password="{password}";'
    return [f"sasl.mechanism={mechanism}", f"sasl.jaas.config={told}"]


def _printing() -> list[str]:
    return [word for name in PRINTED for word in ("--formatter-property", f"print.{name}=true")]


def _record(line: str) -> dict[str, Any]:
    timestamp, partition, offset, headers, key, value = line.rstrip("\n").split("\t")
    return {
        "partition": int(partition.removeprefix("Partition:")),
        "offset": int(offset.removeprefix("Offset:")),
        "timestamp": int(timestamp.removeprefix("CreateTime:")),
        "key": key,
        "value": value,
        "headers": dict([each.split(":", 1) for each in headers.split(",")]),
    }


if __name__ == "__main__":
    serve(JavaTools(sys.argv[1]))
