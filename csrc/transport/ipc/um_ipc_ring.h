/* The ring of an LBT-IPC segment: records written by one source, read by many
 * receivers that may be overtaken (source-paced) or are waited for
 * (receiver-paced). No system call, no allocation, no lock: the source confines
 * a writer to its session lock, a receiver a reader to its thread.
 *
 * Positions count bytes and never wrap; the place in the ring is the position
 * modulo its length. A record is a header of 32 bytes and the payload, rounded
 * up to 32, and never crosses the end of the ring. */
#ifndef UM_TRANSPORT_IPC_RING_H
#define UM_TRANSPORT_IPC_RING_H

#include "transport/shm/um_shm_words.h"

#define UM_IPC_ALIGN 32u
#define UM_IPC_RECORD_HDR 32u

enum um_ipc_record_type { UM_IPC_DATA = 1, UM_IPC_PAD = 2, UM_IPC_SM = 3 };

/* Written and read as relaxed 64-bit words: a reader may look while the record is overwritten, and finds out after. */
struct um_ipc_record {
    uint64_t pos;          /* of this record */
    uint32_t size, type;   /* bytes with header and padding; enum um_ipc_record_type */
    uint32_t len;          /* payload bytes */
    uint32_t datagram_sqn; /* +1 per data record of the session */
    uint64_t reserved;     /* 0 */
    uint8_t payload[];
};

/* Bytes of ring a window option (at most UM_SHM_WINDOW_MAX) asks for: whole pages, and two of the longest records fit.
 */
uint64_t um_ipc_ring_len(uint64_t window, uint32_t datagram_max);

/* ---- source: session lock ---- */

struct um_ipc_writer {
    struct um_shm_segment *segment;
    uint64_t tail;        /* end of what is written */
    uint64_t oldest;      /* as in the header: nothing before it can be relied upon */
    uint64_t limit;       /* receiver-paced: no receiver needs anything that writing up to here destroys */
    uint64_t next_resync; /* first position whose record becomes a point to resume at */
    uint32_t datagram_sqn;
};

void um_ipc_writer_init(struct um_ipc_writer *writer, struct um_shm_segment *segment);
/* Write and publish one record. False (receiver-paced only): a receiver still needs the room; nothing was written. */
bool um_ipc_write(struct um_ipc_writer *writer, enum um_ipc_record_type type, const void *data, uint32_t len);
/* Receiver-paced: look at the positions of all receivers anew. Is there room for a record of `len` bytes? */
bool um_ipc_make_room(struct um_ipc_writer *writer, uint32_t len);
/* Receiver-paced: the slot that leaves the least room; -1: none. */
int um_ipc_slowest(const struct um_ipc_writer *writer);

/* ---- receiver: its thread ---- */

struct um_ipc_reader {
    const struct um_shm_header *header;
    const uint8_t *ring; /* read-only */
    uint64_t ring_len;
    uint32_t datagram_max;
    uint64_t pos;      /* next record */
    uint64_t overruns; /* times the source came round */
    uint32_t next_sqn; /* datagram_sqn expected; for the count of what was overrun */
    bool sqn_known;
    uint64_t datagrams_overrun; /* counted when the next data record is read */
};

enum um_ipc_read {
    UM_IPC_READ_IDLE,    /* nothing new */
    UM_IPC_READ_DATA,    /* *len bytes are in `out` */
    UM_IPC_READ_CONTROL, /* a session message or padding was passed */
    UM_IPC_READ_OVERRUN, /* records were overwritten before they could be read; resumed at a recent one */
    UM_IPC_READ_CORRUPT  /* the segment is damaged: leave it */
};

/* `start` as um_shm_slot_take() gave it. False: no place where a record can begin; do not read. */
bool um_ipc_reader_init(struct um_ipc_reader *reader, const struct um_shm_segment *segment, uint64_t start);
/* What was read before may be overwritten (receiver-paced), or is of no interest to the source (source-paced). */
static inline void um_ipc_release(const struct um_ipc_reader *reader, struct um_shm_slot *slot)
{
    /* Release: what was read was read before. */
    atomic_store_explicit(&slot->read_pos, reader->pos, memory_order_release);
}
/* Is there something to read? One load; reading looks again. */
static inline bool um_ipc_readable(const struct um_ipc_reader *reader)
{
    return atomic_load_explicit(&((struct um_shm_header *)reader->header)->tail, memory_order_relaxed) != reader->pos;
}
/* `out` has room for datagram_max bytes, rounded up to 8. What is in it is only good after UM_IPC_READ_DATA. */
enum um_ipc_read um_ipc_read(struct um_ipc_reader *reader, void *out, uint32_t *len);

#endif
