"""One file for each Kafka API: the versions that it serves, what it does, what it leaves out.

Each file defines `API`, a `registration.Api` with key and handler; `registry` collects them. The
versions stand in `skidway.kafka.protocol.apis`. The answer to ApiVersions is computed from the
registered APIs and these versions.

A handler gets the broker and an `Exchange`, which holds the request and the means to answer it: at
once, later (for example when a topic has been created), or never (produce with acks=0). The request
body is a view that is valid only until the handler returns, so a handler decodes it before it waits
for anything.

Produce and Fetch are the hot paths: hand-written parsing, no object per record, nothing copied.
Their handlers only note what has to be done at the end of the turn.

Domain code knows no error codes: `errors` maps its exceptions to codes.

Beside the files of the APIs, the package has `requests` (dispatches each request to its handler),
`registration` (what a file registers), `exchange`, `gathering` (answers whose parts arrive one by
one), `describe` (settings as clients see them), and `produce_shape` and `produce_run` (a producer's
successive requests that differ only in their batch, appended together).
"""
