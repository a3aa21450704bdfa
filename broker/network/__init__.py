"""Sockets: one non-blocking epoll loop, which owns everything in the broker that changes.

    timers       deadlines in a heap
    inbound      bytes of a connection into frames, received into memory that lasts for a loop turn
    connection   answers in the order of the requests, sent with sendmsg and sendfile
    listener     accepting, and surviving when there are too many
    shares       who is served next, and for how long: the loop's fair division by cost
    loop         turns: poll, receive, handle, append, answer, send

A turn::

    poll -> results from other threads, timers; the answers that these have completed are sent
         -> receive and handle requests of the ready connections (appends are only remembered)
         -> one write per partition, answers that waited for it, flushes begun
         -> send

A turn has a bound, some milliseconds of work, of which each connection gets a fair share by what
its requests cost (`shares`): what does not fit goes on in the next turn. So a few clients that send
requests without end do not keep the others waiting.

A frame is handled where the kernel put it: in the arena, one buffer for all connections that is
emptied at the end of each turn; only what a receive cut is copied (`inbound`). The batches in it go
from there to the file with one `pwritev`; on the way out the kernel copies from the page cache with
`sendfile`. Nothing else touches a payload.

Bounds: frames (`socket.request.max.bytes`), requests of one connection that are handled and not
answered (`queued.max.requests`), answers in memory; a connection over a bound is not read from
until it is under it again, nor one of which whole requests wait for their turn. Idle connections
are closed. A bad frame closes its connection, counted by reason, and no other.
"""
