"""`skidway broker hand-over TOPIC-PARTITION ...` and `skidway broker take-over DIR ...`."""

from __future__ import annotations

import argparse
import contextlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from skidway import log
from skidway.broker.coordination import store
from skidway.broker.handover.hand_over import HandOver
from skidway.broker.handover.take_over import TakeOver
from skidway.broker.log import names
from skidway.broker.log.log_directory import LogDirectory, open_directories
from skidway.broker.settings import BrokerSettings
from skidway.cli.options import add_config_options, load_settings
from skidway.clock import SystemClock
from skidway.coordination import Coordinator
from skidway.errors import SkidwayError, StateRefused, UsageError
from skidway.state_owner import become_owner

PROGRAM: Final = "broker"


def register(verbs: Any) -> None:
    """Adds the commands `skidway broker hand-over` and `skidway broker take-over`."""
    words = "prepare partitions of this stopped broker for a move to another broker or directory"
    give = verbs.add_parser("hand-over", help=words, description=words)
    give.add_argument("partition", metavar="TOPIC-PARTITION", nargs="+")
    add_config_options(give)
    give.set_defaults(run=_hand_over)
    words = "serve partitions that were handed over, copied into log.dirs of this stopped broker"
    take = verbs.add_parser("take-over", help=words, description=words)
    take.add_argument("directory", metavar="DIR", type=Path, nargs="+")
    add_config_options(take)
    take.set_defaults(run=_take_over)


def _hand_over(args: argparse.Namespace) -> int:
    partitions = []
    for text in args.partition:
        partition = names.partition_of(text)
        if partition is None:
            raise UsageError(f"{text!r} is not TOPIC-PARTITION, such as hdfs-logs-0")
        partitions.append(partition)
    with _stopped_broker(args) as (settings, directories, coordinator):
        now_ms = SystemClock().time_ms()
        worker = HandOver(
            settings.broker_id, settings.log_defaults(), directories, coordinator, now_ms
        )
        for partition in partitions:
            path, bill = worker.hand_over(partition, _say)
            print(
                f"{partition}: offsets {bill.log_start_offset} to {bill.log_end_offset}, "
                f"{bill.size_bytes} bytes; copy {path} into log.dirs of its new broker"
            )
    return 0


def _take_over(args: argparse.Namespace) -> int:
    with _stopped_broker(args) as (settings, directories, coordinator):
        worker = TakeOver(settings.broker_id, directories, coordinator)
        for directory in args.directory:
            path, bill, epoch = worker.take_over(directory, _say)
            print(
                f"{bill.partition}: offsets {bill.log_start_offset} to {bill.log_end_offset} are "
                f"broker {settings.broker_id}'s in leader epoch {epoch}, in {path}; start it"
            )
    return 0


@contextlib.contextmanager
def _stopped_broker(
    args: argparse.Namespace,
) -> Iterator[tuple[BrokerSettings, list[LogDirectory], Coordinator]]:
    """Yields the broker's settings, its log directories, and a connection to ZooKeeper (the
    coordinator). The log directories are locked until the end of the `with` block, so that the
    broker cannot be started. Raises SkidwayError.
    """
    log.configure(PROGRAM, args.log_level, sys.stderr)
    settings = load_settings(BrokerSettings, args, PROGRAM)
    for path in settings.log_dirs:
        become_owner(path)
    directories = open_directories(settings.log_dirs)
    try:
        offline = next((each.offline for each in directories if each.offline is not None), None)
        if offline is not None:
            raise SkidwayError(f"{offline}; nothing is moved while a log directory is away")
        with settings.zookeeper.open() as coordinator:
            cluster_id = store.cluster_id(coordinator)
            for each in directories:
                each.claim(settings.broker_id, cluster_id)
            yield settings, directories, coordinator
    except OSError as error:
        where = f" {error.filename}" if error.filename else ""
        raise StateRefused(f"cannot use{where}: {error.strerror}") from error
    finally:
        for each in directories:
            each.lock.release()


def _say(sentence: str) -> None:
    sys.stderr.write(f"skidway broker: {sentence}\n")
