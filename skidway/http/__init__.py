"""What every HTTP server of ours does, so that a client that sends half a request, or a web page of
another site, gets nothing, and the other clients are served.

    hosts           the names for which a server answers
    counts          the metrics of what was refused
    listeners       addresses and TLS
    refusals        answers to requests that are refused before the application sees them
    bounds          limits of requests: host, body, number at once by address
    server          uvicorn with limits of connections: registry and dashboard
    small_server    a server of the standard library for /metrics and /health, with the same limits

Agent and broker use only `hosts`, `counts` and `small_server`, which need no further package.
"""
