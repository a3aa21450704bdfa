"""Sockets: one non-blocking epoll loop, which owns everything in the broker that changes.

    timers       deadlines in a heap
    inbound      splits a connection's bytes into frames, in memory that lasts for a loop turn
    connection   answers in the order of the requests, sent with sendmsg and sendfile
    listener     accepts connections, and survives when there are too many
    shares       which connection is served next, and for how long: fair queueing by cost
    loop         turns: poll, receive, handle, append, answer, send

A turn::

    poll -> results from other threads, timers; send the answers that these completed
         -> receive and handle requests of the ready connections (appends are only remembered)
         -> one write per partition, answers that waited for it, begin flushes
         -> send

A turn is bounded to some milliseconds of work. Each connection gets a fair share of this time, by
the cost of its requests (`shares`). What does not fit waits for the next turn. In this way a few
clients that send requests without end do not keep the others waiting.

A frame is handled where the kernel put it: in the arena. The arena is one buffer for all
connections, and it is emptied at the end of each turn. Only what a turn leaves unhandled is copied
(`inbound`). Batches go from the arena to the file with one `pwritev`; on the way out the kernel
copies from the page cache with `sendfile`. Nothing else touches a payload.

Bounds: frames (`socket.request.max.bytes`), requests of one connection that are handled and not
answered (`queued.max.requests`), answers in memory. The loop does not read from a connection that
exceeds one of these bounds, nor from a connection of which whole requests still wait for their
turn. Idle connections are closed. A bad frame closes only its own connection; such closings are
counted by reason.
"""
