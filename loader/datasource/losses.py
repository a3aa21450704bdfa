"""If records are missing, raises an error or logs a warning, as the option `failOnDataLoss`
says."""

from __future__ import annotations

from collections.abc import Sequence

from skidway import log
from skidway.errors import SkidwayError

_log = log.get(__name__)


class DataLost(SkidwayError):
    """Raised if records are missing that the query should have read."""


def report(losses: Sequence[str], *, fails: bool) -> None:
    """Reports that records are missing. losses: a sentence for each range of missing records. If
    there is no sentence, does nothing. If `fails` is true, raises DataLost with the first sentence.
    Otherwise logs each sentence as a warning."""
    if losses and fails:
        more = f" (and {len(losses) - 1} more)" if len(losses) > 1 else ""
        raise DataLost(
            f"{losses[0]}{more}. Set failOnDataLoss to false to read what is left; then a warning "
            "is logged instead"
        )
    for each in losses:
        _log.warning("data_lost", what=each)
