"""Proposes settings for key=value pairs."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import Any, Final

from skidway.agent.parsing import key_values
from skidway.agent.unknown_logs import written_times
from skidway.agent.unknown_logs.shares import LOOKED_AT_MAX, SHARE_LEAST
from skidway.agent.unknown_logs.written_times import Reading

PAIRS_LEAST: Final = 2
TIME_KEYS: Final = ("time", "ts", "timestamp", "at", "t", "date", "datetime", "event_time")

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def proposed(texts: Sequence[str]) -> dict[str, Any] | None:
    """Returns settings for key=value pairs. A log has such pairs if at least SHARE_LEAST of the
    lines have at least PAIRS_LEAST pairs, and no more words without `=` than pairs.
    """
    keys: Counter[str] = Counter()
    good = 0
    times: dict[str, Reading] = {}
    lines = texts[:LOOKED_AT_MAX]
    for line in lines:
        pairs = key_values.split(line)
        count = line.count("=")
        if isinstance(pairs, str) or count < PAIRS_LEAST or len(pairs) > 2 * count:
            continue
        good += 1
        keys.update(list(dict.fromkeys(key for key, _ in pairs if _NAME.fullmatch(key))))
        for key, value in pairs:
            if key in TIME_KEYS and key not in times:
                form = written_times.of_value([value])
                times |= {} if form is None else {key: form}
    if good < SHARE_LEAST * len(lines):
        return None
    time = next((key for key in TIME_KEYS if key in times), None)
    columns = [key for key, count in keys.items() if count > good / 2 and key != time]
    stamp = {} if time is None else {"timestamp": times[time].settings([time])}
    return {"parser": {"type": "logfmt", "columns": columns}, **stamp}
