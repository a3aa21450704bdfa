"""Serves the dashboard of a site from support.dashboard_site on a free port, for a browser."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import uvicorn

from support.dashboard_site import Site
from support.processes import accepts, eventually, free_port


@contextmanager
def served(site: Site) -> Iterator[str]:
    """Yields the address of the dashboard while the `with` block runs."""
    port = free_port()
    application = site.dashboard().application()
    config = uvicorn.Config(application, port=port, log_config=None, lifespan="off")
    server = uvicorn.Server(config)
    thread = threading.Thread(target=lambda: asyncio.run(server.serve()), daemon=True)
    thread.start()
    try:
        eventually(lambda: accepts(port), what="the dashboard listens")
        yield f"http://127.0.0.1:{port}"
    finally:
        server.should_exit = True
        thread.join(20)
