"""Asks our own programs over HTTP (/health, the collector's answers), and never through a proxy.

Companies set http_proxy, so that pip and browsers reach the internet. The addresses of our own
programs are in the company's network, and often on the same host, where a proxy cannot reach them.
So commands of ours ignore the proxies of the environment, as the clients of brokers, registry and
collector do, which open their connections themselves. No other module imports urllib.request.
"""

from __future__ import annotations

import http.client
import urllib.request
from typing import cast

_direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))


def open_url(url: str, timeout_s: float) -> http.client.HTTPResponse:
    """Returns the answer to a GET, whose body is not read yet. Raises urllib.error.HTTPError if the
    answer's status is not good, and OSError if there is no answer. The caller has checked that the
    URL begins with http:// or https://.
    """
    return cast(http.client.HTTPResponse, _direct.open(url, timeout=timeout_s))
