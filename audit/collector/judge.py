"""Judges all buckets of a ledger, again and again, in bounded memory and time.

The judge works on blocks of one hour of event time. Every step judges the newest blocks and some
older blocks. The older blocks take turns. So every block is judged again from time to time, and its
new verdicts take changes into account. Such changes are, for example, a late line, a seal, a
decision, or the passage of time. The standing is the result for all blocks together. While there
are blocks that were never judged, the standing says how many there are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from skidway.audit.evidence.evidence import Window
from skidway.audit.evidence.ledger import Ledger
from skidway.audit.evidence.ledger_evidence import NO_BUCKETS
from skidway.audit.judgement.policy import Policy
from skidway.audit.judgement.standing import Standing, joined, of_evidence
from skidway.audit.judgement.topic_judgement import verdicts
from skidway.audit.judgement.verdict import BucketVerdict
from skidway.clock import Clock

BLOCK_MS = 3_600_000
Note = Callable[[Window, Sequence[BucketVerdict], int], None]
"""Is told all verdicts of a block, and the audit's time."""
NEWEST_BLOCKS = 2
"""The number of newest blocks that every step judges."""

NEVER_S, AGAIN_S = 5.0, 0.25
"""After the newest blocks, a step judges older blocks that were never judged, and ends once it has
taken NEVER_S seconds. If no such block is left, the step judges older blocks again, and ends once
it has taken AGAIN_S seconds."""


class Judge:
    """Owns the last judgement of each block. Only the thread that owns the ledger's connection uses
    this object; other threads may only read `blocks`. note: is told the verdicts of each judgement
    that begins when every block has been judged before."""

    def __init__(
        self,
        ledger: Ledger,
        policy: Callable[[], Policy],
        clock: Clock,
        note: Note | None = None,
    ) -> None:
        self._note = note
        self._is_whole = False
        self._ledger = ledger
        self._policy = policy
        self._clock = clock
        self._parts: dict[int, Standing] = {}
        self._turn: list[int] = []

    @property
    def blocks(self) -> dict[int, Standing]:
        """The last judgement of each block (an hour of event time), by the block's start. Any
        thread may read this property."""
        return dict(self._parts)

    def step(self) -> Standing:
        """Judges some blocks. Returns the standing of all blocks, with the last judgement of each
        block."""
        began = self._clock.monotonic()
        blocks = self._ledger.blocks(BLOCK_MS)
        self._parts = {block: part for block, part in self._parts.items() if block in set(blocks)}
        self._is_whole = len(self._parts) == len(blocks)
        for block in self._chosen(blocks, began):
            self._parts[block] = self._judged((block, block + BLOCK_MS))
        parts = [self._parts[block] for block in blocks if block in self._parts]
        parts = parts or [self._judged(NO_BUCKETS)]
        return joined(parts, unjudged=len(blocks) - len(self._parts))

    def _chosen(self, blocks: list[int], began: float) -> Iterator[int]:
        yield from blocks[-NEWEST_BLOCKS:]
        older = blocks[:-NEWEST_BLOCKS]
        never = [block for block in reversed(older) if block not in self._parts]
        for block in never:
            yield block
            if self._clock.monotonic() - began > NEVER_S:
                return
        for _ in older:
            self._turn = [block for block in self._turn if block in set(older)] or older[:]
            yield self._turn.pop()
            if self._clock.monotonic() - began > AGAIN_S:
                return

    def _judged(self, window: tuple[int, int]) -> Standing:
        evidence = self._ledger.evidence(window)
        now_ms = self._clock.time_ms()
        found = verdicts(evidence, self._policy(), now_ms)
        if self._note is not None and self._is_whole:
            self._note(window, found, now_ms)
        return of_evidence(evidence, found, now_ms)
