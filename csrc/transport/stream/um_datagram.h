/* A piece of output that goes out whole and in order: one batch of LBMC messages of a
 * source session, or one message of a unicast connection. Shared by the queues of
 * several connections. Its owner's lock. */
#ifndef UM_TRANSPORT_STREAM_DATAGRAM_H
#define UM_TRANSPORT_STREAM_DATAGRAM_H

#include <stdbool.h>
#include <stdint.h>

/* Of a source session: from the heap it is shared by the queues of all clients; a transport with memory of its own
 * (ops->acquire) has one at a time and ignores `refs`. */
struct um_datagram {
    struct um_datagram *next_free;
    uint8_t *data; /* room for session->datagram_max bytes */
    uint32_t refs;
    uint32_t len;
    uint32_t user_bytes; /* payload of the messages in it; set when it is transmitted */
    bool continues;      /* a fragmented message goes on in the next datagram */
    bool compact;        /* has room for its `len` bytes only: never becomes a batch again */
};

#endif
