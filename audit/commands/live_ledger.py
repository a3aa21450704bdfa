"""A ledger that is updated while a command waits: either the collector's ledger, or a ledger in
memory."""

from __future__ import annotations

import argparse
from types import TracebackType

from skidway.audit.commands import options
from skidway.audit.evidence.collection import Collection
from skidway.audit.evidence.ledger import DATABASE, Ledger
from skidway.audit.settings import AuditSettings
from skidway.clock import Clock
from skidway.kafka.client import Client, Fetcher


class LiveLedger:
    """If the options or settings name a collector's store, reads the ledger in this store, which
    the collector updates. Without such a store, keeps a ledger in memory, to which `catch_up` adds
    the new messages of the cluster's audit topics. Only one thread uses this object."""

    def __init__(
        self, args: argparse.Namespace, settings: AuditSettings | None, clock: Clock
    ) -> None:
        """Raises UsageError if an option names a store that does not exist."""
        self._args = args
        self._settings = settings
        self._clock = clock
        folder = options.store_of(args, settings)
        self.is_store = folder is not None
        if folder is None:
            self.ledger = Ledger(signatures=options.signatures_of(settings, clock))
        else:
            self.ledger = Ledger(folder / DATABASE, only_read=True)
        self._client: Client | None = None
        self._collection: Collection | None = None

    def __enter__(self) -> LiveLedger:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._disconnect()
        self.ledger.close()

    def catch_up(self) -> None:
        """If the ledger is in memory, adds all messages that are in the audit topics now. (The
        collector itself updates the ledger of its store.) Raises Unreachable, KafkaError or
        CorruptBatch if the topics cannot be read. After an error, the next call opens new
        connections."""
        if self.is_store:
            return
        if self._client is None or self._collection is None:
            self._client = options.client_of(self._args, self._settings)
            fetcher = Fetcher(self._client)
            self._collection = Collection(self._client, fetcher, self.ledger, self._clock)
        try:
            self._collection.catch_up()
        except BaseException:
            self._disconnect()
            raise

    def _disconnect(self) -> None:
        if self._client is not None:
            self._client.close()
        self._client = self._collection = None
