"""Asks our own programs over HTTP (/health, the collector's answers), and never through a proxy.

Companies set http_proxy, so that pip and browsers reach the internet. The addresses of our own
programs are in the company's network, and often on the same host, where a proxy cannot reach them.
So commands of ours ignore the proxies of the environment, as the clients of brokers, registry and
collector do, which open their connections themselves. No other module imports urllib.request.
"""

from __future__ import annotations

import http.client
import urllib.request
from collections.abc import Callable
from typing import Any, cast

from skidway.http_answer import HttpAnswer


class _InTime(urllib.request.AbstractHTTPHandler):
    """Opens connections whose answers are limited in time as a whole."""

    def do_open(
        self, http_class: Callable[..., Any], req: urllib.request.Request, **http_conn_args: Any
    ) -> http.client.HTTPResponse:
        def connection(*args: Any, **named: Any) -> Any:
            made = http_class(*args, **named)
            made.response_class = HttpAnswer
            return made

        return super().do_open(cast(Any, connection), req, **http_conn_args)


class _Http(_InTime, urllib.request.HTTPHandler):
    pass


class _Https(_InTime, urllib.request.HTTPSHandler):
    pass


_direct = urllib.request.build_opener(urllib.request.ProxyHandler({}), _Http, _Https)


def open_url(url: str, timeout_s: float) -> http.client.HTTPResponse:
    """Returns the answer to a GET, whose body is not read yet. Raises urllib.error.HTTPError if the
    answer's status is not good, and OSError if there is no answer; reading raises TimeoutError if
    the whole answer has not arrived within `timeout_s`. The caller has checked that the
    URL begins with http:// or https://.
    """
    return cast(http.client.HTTPResponse, _direct.open(url, timeout=timeout_s))
