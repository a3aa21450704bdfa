"""Finds, without I/O, the worst problem of all buckets: the first cause of the worst bucket. It is
told first if nothing is wrong at present that concerns many buckets (see present_causes)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from skidway.audit.explanation.choice import first_explained, is_bad
from skidway.audit.explanation.document import document
from skidway.audit.explanation.explanation import Explanation
from skidway.audit.explanation.next_command import Access, explain_bucket
from skidway.audit.judgement.verdict import BucketVerdict, Status
from skidway.audit.reports.report import time_text
from skidway.audit.reports.topic_names import topic_names
from skidway.kafka.source import Source


@dataclass(frozen=True, slots=True)
class Problem:
    """The first cause of the worst bucket. topic: its name as reports print it."""

    topic: str
    bucket: str
    cause: Explanation

    def sentence(self, access: Access) -> str:
        """What is wrong, and the command to run next. A command that accepts the bucket would also
        accept causes that are not shown, so `why` stands in its place."""
        command = self.cause.repair or explain_bucket(self.topic, self.bucket, access)
        words = f"{self.topic} {self.bucket}: {self.cause.cause.value}: {self.cause.words}"
        return f"{words}. Next: {command}"

    def document(self) -> dict[str, Any]:
        """The problem as a JSON object: the cause (see explanation.document), topic and bucket."""
        return {"topic": self.topic, "bucket": self.bucket, **document(self.cause)}


def worst_problem(
    found: Iterable[BucketVerdict],
    explained: Callable[[BucketVerdict], Sequence[Explanation]],
    names: Mapping[Source, str] | None = None,
) -> Problem | None:
    """Returns the worst problem; None if nobody need look at any bucket. A bucket that is open is
    left out, because each bucket is so for some seconds after it is due. explained: a function that
    returns the causes why a bucket is not complete. names: the topics' names, if they are known."""
    bad = [x for x in found if is_bad(x) and x.residue is not Status.OPEN]
    for verdict in first_explained(bad):
        for cause in explained(verdict)[:1]:
            known = names or topic_names(x.source for x in bad)
            return Problem(known[verdict.source], time_text(verdict.bucket), cause)
    return None
