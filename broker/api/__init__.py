"""One file for each Kafka API. The file's docstring says which versions of the API the broker
serves, what the API does, and which parts of it the broker does not support.

Each file defines `API`, a `registration.Api` with key and handler. `registry` collects these
definitions. The versions are defined in `skidway.kafka.protocol.apis`. The answer to ApiVersions is
computed from the registered APIs and these versions.

A handler gets the broker and an `Exchange`. The exchange contains the request, and has methods to
answer the request at once, later (for example when a topic has been created), or never (Produce
with acks=0). The request body is a view of memory that is used for other requests after the turn of
the loop. So a handler decodes the body before it waits for anything.

Produce and Fetch are the hot paths. Their parsers are written by hand, make no object per record,
and copy nothing. The handler of Produce answers no request itself: it notes which requests the
broker has to answer at the end of the current turn of the event loop, when the batches are written.

Most code outside this package raises exceptions, which `errors` maps to Kafka's error codes. Only
the code of consumer groups, and some methods of `Broker`, return error codes themselves.

Besides the files of the APIs, the package has these modules:

    requests         passes each request to its handler
    registration     what the file of an API defines
    exchange         one request, and the methods to answer it
    required         which right each API needs
    config_access    the same for settings, whose resources have other types
    acl_messages     rules of access control in messages
    gathering        answers whose parts arrive one by one
    describe         settings as clients see them
    produce_append   checks a producer's batch, and appends it
    produce_shape    the bytes that all Produce requests of a producer have in common
    produce_run      successive requests of a producer that differ only in their batches; they are
                     answered together
"""
