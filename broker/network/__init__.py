"""Sockets: one non-blocking epoll loop. All changes to the state of the broker happen on the loop's
thread.

    timers       deadlines in a heap
    inbound      splits a connection's bytes into frames, in memory that is valid for one turn
    frame_memory decides which connections may begin to receive a request, so that the requests that
                 have arrived in part need no more memory than allowed
    connection   sends answers in the order of the requests
    transport    the bytes of a connection as they are, or sealed by TLS
    listener     accepts connections, and continues to work when there are too many of them
    listener_tls the certificate of the broker, and which clients it accepts
    handshakes   the connections whose TLS handshake is not complete
    fair_threads threads for handshakes and passwords, for one address after the other
    unauthenticated  how many connections may be without a complete handshake or login, how long
    shares       decides which connection is served next, and for how long: fair queueing by cost
    loop         runs the turns

A turn::

    poll -> process results from other threads and due timers; send the answers that are complete
         -> receive and handle requests of the ready connections (appended batches stay in memory)
         -> write the appends with one write per partition; fill in the answers that waited for
            these writes; begin flushes
         -> send

A turn does work for a few milliseconds at most. Each connection gets a fair share of this time
(`shares` measures the cost of its requests). If a turn has no time left for a request, the request
waits for the next turn. In this way a few clients that send requests without pause do not keep the
other clients waiting.

The kernel puts received bytes into the *arena*: one buffer for all connections, which is emptied at
the end of each turn. Frames are handled in the arena without a copy. Only bytes that were not
handled in the turn are copied (`inbound`). At the end of the turn, the batches for a partition are
written from the arena to its file with one `pwritev`. When batches are sent to consumers, the
kernel copies them from the page cache with `sendfile`. The broker makes only one other copy of a
batch: a temporary one, to compute the CRC.

There are limits for the size of a frame (`socket.request.max.bytes`), for the requests of one
connection that are handled but not answered (`queued.max.requests`), and for answers in memory. If
a frame is too large, the loop closes the frame's connection. The loop stops reading from a
connection in two cases: if the connection has reached its limit of unanswered requests or of
answers in memory, or if it has whole requests that are not handled yet. The requests of all
connections that have arrived in part, and the answers of all connections in memory, have a limit
too (`queued.max.request.bytes`): at it, connections wait before they begin a request
(`frame_memory`), and a connection whose client does not read its answers is closed. The loop also
closes idle connections. After a bad frame, the loop closes only the connection on which the frame
came. The broker counts the connections that it closes, by reason.
"""
