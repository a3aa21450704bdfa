from __future__ import annotations

from pathlib import Path

from skidway.broker.log.files import StorageFailed
from skidway.broker.log.producer_state import OutOfOrderSequence
from skidway.broker.log.validation import BatchCorrupt
from skidway.kafka.protocol.create_topics import CreatableTopic, CreateTopicsRequest
from skidway.kafka.protocol.frames import request_frame
from skidway.kafka.protocol.messages import encode
from skidway.kafka.types import TopicPartition
from support.broker_core import broker_core

LOGS = TopicPartition("logs", 0)


def test_batches_refused_on_a_full_disk_are_counted_so(tmp_path: Path) -> None:
    """If the disk is full, refused batches are counted under the reason DiskFull. This includes
    batches that are out of order only because the batch before them did not fit. A batch that would
    be refused on any disk, because it is invalid, is counted under its own reason, as are all
    refused batches when the disk has space again."""
    with broker_core(tmp_path) as core:
        wanted = CreateTopicsRequest(topics=(CreatableTopic(name="logs", num_partitions=1),))
        assert core.connect().ask(request_frame(wanted.API, 5, 1, "test", encode(wanted, 5)))
        broker, [directory] = core.broker, core.broker.logs.directories
        directory.note_full("no space")
        assert broker.not_written(LOGS) == "no space"
        for kind in (StorageFailed, OutOfOrderSequence, BatchCorrupt):
            broker.count_refused(LOGS, kind)
        assert broker.counts.refused == {"DiskFull": 3, "BatchCorrupt": 1}
        directory.note_written()
        broker.count_refused(LOGS, OutOfOrderSequence)
        assert broker.counts.refused["OutOfOrderSequence"] == 1
