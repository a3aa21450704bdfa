"""Serves Confluent's REST API as an ASGI application. The store answers the requests.

Confluent's clients depend on the following details, which Confluent's documentation leaves out, or
which are easily forgotten:

- every answer of every route is JSON. It has the registry's content type, or another content type
  for JSON if the client accepts only that one. Every error is an object with the keys `error_code`
  and `message`, because clients also send requests that may fail, and then read these two keys
- subjects in paths are percent-encoded and may contain `/`. So routes match the path as the client
  sent it, before it is decoded
- a boolean in a query is true if it is `true` (in upper or lower case) or `1`. The registry ignores
  unknown query parameters. A parameter `limit` below 1 means no limit. The version `-1` means the
  latest version, as does `latest`
- answers have only the documented keys, because strict clients fail on other keys. A client that
  sends `Confluent-Accept-Unknown-Properties: true` gets guids as well
- the answer to GET of a level has the key `compatibilityLevel`; the answer to PUT has the key
  `compatibility`

If possible, the registry answers a request from memory. Only requests that need the registry's log
in ZooKeeper go to threads that may wait for ZooKeeper. So reads from memory are not delayed while
ZooKeeper hangs.

- `headers`: checks the media types of body and answer, and refuses changes from web pages of other
  sites
- `call`: one request: the names in its path, its query and its body
- `answers`: JSON documents and errors, with their content type
- `subjects`, `schemas`, `compatibility`, `config`, `mode`, `metadata`: the answers of each route
- `routes`: the table of all routes
- `application`: the ASGI application
"""

from skidway.schemas.registry.rest.application import BODY_BYTES_MAX, application
from skidway.schemas.registry.rest.headers import CONTENT_TYPE

__all__ = ["BODY_BYTES_MAX", "CONTENT_TYPE", "application"]
