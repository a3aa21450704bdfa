"""Sockets: one non-blocking epoll loop, which owns everything in the broker that changes.

    timers       deadlines in a heap
    inbound      bytes of a connection into frames, received into memory that lasts for a loop turn
    connection   answers in the order of the requests, sent with sendmsg and sendfile
    listener     accepting, and surviving when there are too many
    loop         turns: poll, receive, handle, append, answer, send

A turn::

    poll -> receive and handle requests of the ready connections (appends are only remembered)
         -> results from other threads, timers
         -> one write per partition, answers that waited for it, flushes begun
         -> send

A frame is handled where the kernel put it: in the arena, one buffer for all connections that is
emptied at the end of each turn; only what a receive cut is copied (`inbound`). The batches in it go
from there to the file with one `pwritev`; on the way out the kernel copies from the page cache with
`sendfile`. Nothing else touches a payload.

Bounds: frames (`socket.request.max.bytes`), requests of one connection that are handled and not
answered (`queued.max.requests`), answers in memory; a connection over a bound is not read from
until it is under it again. Idle connections are closed. A bad frame closes its connection, counted
by reason, and no other.
"""
