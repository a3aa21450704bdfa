"""The metrics of what HTTP servers refuse."""

from __future__ import annotations

from prometheus_client import Counter

refused_requests = Counter(
    "skidway_http_requests_refused",
    "Requests refused for head, host or body, or not run: too many waited, or the client left.",
    ["reason"],
)
closed_connections = Counter(
    "skidway_http_connections_closed",
    "Connections closed: slow clients, two requests at once, others needed room, TLS failed.",
    ["reason"],
)
