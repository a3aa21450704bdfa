"""One file per Kafka API: which versions, what it does, what it leaves out.

Each file defines `API`, an `apis.Api` with key, versions and handler; `registry` collects them, and
the answer to ApiVersions is computed from that.

A handler gets the broker and an `Exchange`, the request with the means to answer it: at once, later
(a topic that is being created) or never (produce with acks=0). The body is a view that is there
until the handler returns, so it is decoded before anything is waited for.

Produce and Fetch are the hot paths: hand-written parsing, no object per record, nothing copied.
Their handlers only note what the end of the turn has to do.

Domain code knows no error codes: `errors` maps its exceptions.

Beside the APIs: `requests` (each to its handler), `registration` (what a file registers),
`exchange`, `gathering` (answers made of parts that come one by one), `describe` (settings as they
are shown), and `produce_shape` and `produce_run` (requests of a producer that are alike, appended
together).
"""
