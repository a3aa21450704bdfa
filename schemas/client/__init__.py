"""A client of a schema registry: Skidway's, Confluent's, or any other registry with the same REST
API.

The schema of an id never changes, so the client caches it and sends few requests. Each call tries
the registry's URLs one after the other, in at most `ROUNDS_MAX` rounds, with growing pauses between
the rounds. If each URL gives no answer, an answer with a temporary error (one of the statuses in
`RETRIABLE`), or an answer that no schema registry gives (a page or redirect of a proxy, say), the
call raises `RegistryUnreachable`. One attempt has three time limits of `timeout_s` each: for the
connection, for each part of the answer's head, and for the answer's whole body. If the registry
refuses the request, and trying again would not help, the call raises `RegistryRefused` at once. The
client is safe to use from several threads.

Reading order:

- `security`: credentials, and the certificate authorities that the client trusts
- `urls`: checks the registry's URLs
- `transport`: one request and its retries
- `answers`: turns the registry's JSON documents into values
- `resolution`: schemas together with the schemas that they reference
- `registry_client`: the requests that programs send
- `administration`: the requests of operators (delete, import, set levels of compatibility and
  modes)
- `registry_connection`, `settings`: how a program reaches a registry, and its settings for that
"""

from __future__ import annotations

from skidway.schemas.client.administration import PAGE_SCHEMAS, RegistryAdministration
from skidway.schemas.client.answers import Compatibility, Reference, Registered
from skidway.schemas.client.registry_client import (
    CACHED_MAX,
    RegistryClient,
    SchemaTexts,
    subject_of,
)
from skidway.schemas.client.registry_connection import RegistryConnection, no_pause
from skidway.schemas.client.security import Security
from skidway.schemas.client.settings import RegistryClientSettings
from skidway.schemas.client.transport import (
    LEVEL_UNSET,
    MODE_UNSET,
    RETRIABLE,
    ROUNDS_MAX,
    SCHEMA_UNKNOWN,
    SUBJECT_UNKNOWN,
    Answer,
    HttpTransport,
    RegistryRefused,
    RegistryUnreachable,
    Transport,
)

__all__ = [
    "CACHED_MAX",
    "LEVEL_UNSET",
    "MODE_UNSET",
    "PAGE_SCHEMAS",
    "RETRIABLE",
    "ROUNDS_MAX",
    "SCHEMA_UNKNOWN",
    "SUBJECT_UNKNOWN",
    "Answer",
    "Compatibility",
    "HttpTransport",
    "Reference",
    "Registered",
    "RegistryAdministration",
    "RegistryClient",
    "RegistryClientSettings",
    "RegistryConnection",
    "RegistryRefused",
    "RegistryUnreachable",
    "SchemaTexts",
    "Security",
    "Transport",
    "no_pause",
    "subject_of",
]
