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
    """While the disk is full, refused batches are counted under the reason DiskFull. This includes
    a batch that is out of order only because the batch before it did not fit. An invalid batch,
    which would be refused on any disk, is counted under its own reason. When the disk has space
    again, every refused batch is counted under its own reason."""
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
