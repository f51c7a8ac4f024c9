/* Shared-memory segments of LBT-SMX and LBT-IPC: layout of header and receiver
 * slots, creation, attaching with validation, locks that tell the living from
 * the dead, receiver slots, reclaiming. Used by the two transports and the
 * resource managers. The owner of a um_shm_segment confines it to one thread,
 * except for the shared words themselves. */
#ifndef UM_TRANSPORT_SHM_SEGMENT_H
#define UM_TRANSPORT_SHM_SEGMENT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/um_list.h"

_Static_assert(ATOMIC_LLONG_LOCK_FREE == 2 && ATOMIC_INT_LOCK_FREE == 2, "shared words need lock-free atomics");

#define UM_SHM_VERSION 0x00010000u /* major << 16 | minor; another major is refused */
#define UM_SHM_ENDIAN_TAG 0x01020304u
#define UM_SHM_POOL_OFF 4096u
#define UM_SHM_SLOT_SIZE 256u
#define UM_SHM_RECEIVERS_MAX 4096u
#define UM_SHM_WINDOW_MAX (1ull << 40) /* bytes of a ring: beyond is a mistake, and sums of lengths stay small */

enum um_shm_kind { UM_SHM_IPC, UM_SHM_SMX };

/* `state` of a segment. How the shared words are read and written: um_shm_words.h. */
enum um_shm_state { UM_SHM_BUILDING = 0, UM_SHM_READY = 1, UM_SHM_CLOSED = 2 };

/* `in_use` of a slot. */
enum um_shm_slot_state {
    UM_SHM_SLOT_FREE = 0,
    UM_SHM_SLOT_JOINING = 1, /* being filled under the registration lock */
    UM_SHM_SLOT_ACTIVE = 2,  /* the source waits for read_pos */
    UM_SHM_SLOT_READING = 3  /* as ACTIVE, and the receiver has found its first message: what is published from now on
                                reaches it */
};

#define UM_SHM_FLAG_RECEIVER_PACED 1u /* flags of the header */
#define UM_SHM_SLOT_BUSY_WAIT 1u      /* flags of a slot: never signal */

/* Bytes of the segment file that are locked (OFD locks: the kernel gives them up when the holder dies). */
enum um_shm_lock {
    UM_SHM_LOCK_REGISTRATION = 0, /* whoever edits the slots, for microseconds */
    UM_SHM_LOCK_SOURCE = 1,       /* the source, for life */
    UM_SHM_LOCK_SLOT = 16         /* + i: the receiver in slot i, for the time of its membership */
};

/* The first page. What is not marked atomic is written before `state` becomes READY and never changes. */
struct um_shm_header {
    char magic[8];
    uint32_t version;
    uint32_t endian_tag;
    uint64_t total_len; /* of the file */
    uint32_t pool_off;
    uint32_t slot_size;
    uint32_t max_receivers;
    uint32_t rec_align;
    uint64_t ring_off;
    uint64_t ring_len;
    uint32_t datagram_max;
    uint32_t flags;
    uint32_t session_id;
    uint16_t transport_id;
    uint16_t reserved;
    uint32_t src_pid; /* for display only: liveness is the lock */
    _Atomic uint32_t state;
    uint64_t src_start_time; /* clock ticks since boot, for display */
    uint64_t sm_interval_ms;
    uint8_t pad0[0x100 - 0x60];
    /* End of published data. Source: release. Receivers: acquire. LBT-SMX stores it only when it scans the slots. */
    _Atomic uint64_t tail;
    _Atomic uint64_t resync; /* LBT-IPC: a recent start of a record. Source: relaxed before tail. Receivers: acquire. */
    uint8_t pad1[0x180 - 0x110];
    _Atomic uint64_t oldest; /* LBT-IPC: start of the oldest intact record */
    uint8_t pad2[0x200 - 0x188];
    _Atomic uint64_t activity; /* +1 every sm_interval and on close; orders nothing */
    uint8_t pad3[0x280 - 0x208];
    _Atomic uint32_t join_epoch; /* +1 by a receiver after it joined or left: release; source: acquire */
    uint8_t pad4[0x300 - 0x284];
    _Atomic uint32_t space_futex; /* LBT-IPC receiver-paced */
    _Atomic uint32_t src_waiting; /* LBT-IPC receiver-paced */
    uint8_t pad5[0x1000 - 0x308];
};

/* One receiving context. */
struct um_shm_slot {
    /* Receiver: release, and a seq_cst fence after ACTIVE. Source: acquire, after a seq_cst fence. The source stores
     * FREE for a dead receiver, relaxed. */
    _Atomic uint32_t in_use;
    /* Written by a joining receiver under the registration lock, relaxed, also while the source still reads what the
     * receiver before it had left here; ordered by in_use. */
    _Atomic uint32_t generation; /* +1 per join */
    _Atomic uint32_t pid;        /* S4: names the process that holds the source up */
    _Atomic uint32_t flags;
    uint64_t start_time; /* for tools */
    _Atomic uint32_t ctx_session_id;
    uint8_t pad0[0x80 - 0x1c];
    _Atomic uint64_t read_pos; /* everything before it is consumed. Receiver: release. Source: acquire. */
    uint8_t pad1[0xc0 - 0x88];
    _Atomic uint32_t waiting; /* LBT-IPC: about to sleep */
    uint8_t pad2[0x100 - 0xc4];
};

static inline uint32_t um_shm_slot_pid(const struct um_shm_slot *slot)
{
    return atomic_load_explicit(&slot->pid, memory_order_relaxed);
}

/* What a source asks for. */
struct um_shm_spec {
    enum um_shm_kind kind;
    uint16_t transport_id;
    uint32_t max_receivers;
    uint64_t ring_len; /* rounded by the caller: LBT-SMX power of two >= 64, LBT-IPC multiple of 4096 */
    uint32_t rec_align;
    uint32_t datagram_max;
    uint32_t flags;
    uint64_t sm_interval_ms;
};

/* A mapped segment. The geometry is a private copy, checked once: later changes in the file have no effect. */
struct um_shm_segment {
    int fd; /* -1: not open */
    bool is_source;
    enum um_shm_kind kind;
    char path[128];
    uint32_t session_id;
    uint16_t transport_id;
    uint32_t max_receivers;
    uint32_t rec_align;
    uint32_t datagram_max;
    uint32_t flags;
    uint64_t ring_len;
    uint64_t ring_off;
    uint64_t total_len;
    uint64_t sm_interval_ms;
    dev_t dev;
    ino_t ino;
    struct um_shm_header *header; /* read and write */
    struct um_shm_slot *slots;    /* read and write */
    uint8_t *ring;                /* source: read and write; receivers: mapped read-only */
};

/* Host id of advertisements: FNV-1a of boot id and device and inode of the directory of the segments. 0 + error: the
 * boot id cannot be read now. */
uint32_t um_shm_host_id(void);
const char *um_shm_directory(void);                           /* UM_SHM_DIR, else /dev/shm */
uint64_t um_shm_start_time(uint32_t pid);                     /* field 22 of /proc/PID/stat; 0: no such process */
bool um_shm_process_alive(uint32_t pid, uint64_t start_time); /* for display; the locks decide */

/* Is a transmission window of `bytes` within reason? 0, or -1 + UM_EINVAL naming `option`. */
int um_shm_check_window(const char *option, uint64_t bytes);
/* Source: a new segment under a random session id, complete, locked and with its pages reserved before its name
 * appears. Segments of the same kind whose owners are dead are removed first. `state` is READY. -1 + error naming size,
 * path and remedy (UM_EOS; a full file system fails here, never as SIGBUS later). */
int um_shm_create(struct um_shm_segment *segment, const struct um_shm_spec *spec);
/* Receiver: open, check every field, copy the geometry, map. -1 + error: no such segment, stale (no living source),
 * closed, malformed, another version, not permitted. */
/* Is there a file of that name? Needs no descriptor. */
bool um_shm_exists(enum um_shm_kind kind, uint32_t session_id, uint16_t transport_id);
int um_shm_attach(struct um_shm_segment *segment, enum um_shm_kind kind, uint32_t session_id, uint16_t transport_id);
/* Unmap and close (gives up the locks). A source first stores CLOSED, activity + 1, and removes the name. Harmless when
 * not open. */
void um_shm_close(struct um_shm_segment *segment);
/* Remove the name if it still belongs to this segment. For a receiver that found the source dead. */
void um_shm_unlink(const struct um_shm_segment *segment);

/* Locks of the segment, by enum um_shm_lock. Each um_shm_segment is a holder of its own, also inside one process. */
bool um_shm_lock_try(const struct um_shm_segment *segment, unsigned byte);
int um_shm_lock_wait(const struct um_shm_segment *segment, unsigned byte); /* -1 + error */
void um_shm_lock_give(const struct um_shm_segment *segment, unsigned byte);
bool um_shm_lock_held(const struct um_shm_segment *segment, unsigned byte); /* by somebody else */
static inline bool um_shm_source_alive(const struct um_shm_segment *segment)
{
    return um_shm_lock_held(segment, UM_SHM_LOCK_SOURCE);
}

/* Receiver: take a slot and with it protection from the tail read last, which is *start. -1 + error: no free slot
 * ("no more free receiver slots"), closed. Returns the index. The join rule: read_pos = tail, ACTIVE (release), seq_cst
 * fence, tail again (acquire): the source fences and scans at least once per ring_len bytes, so either it sees ACTIVE
 * or we see a tail behind which nothing is overwritten before its next scan. */
int um_shm_slot_take(struct um_shm_segment *segment, uint32_t slot_flags, uint32_t ctx_session_id, uint64_t *start);
void um_shm_slot_leave(struct um_shm_segment *segment, int index);
/* Source: is the receiver of this slot dead? Then the slot is free again. One system call. */
bool um_shm_slot_reap(struct um_shm_segment *segment, uint32_t index);
uint32_t um_shm_receivers(const struct um_shm_segment *segment, bool reading_only); /* slots in use now */

/* The one-page object of a receiving context, transport id 0: LBT-IPC sleeps on its futex, LBT-SMX only shows itself.
 */
struct um_shm_control {
    char magic[8]; /* "UMIPS\0\0\1", "UMSXS\0\0\1" */
    uint32_t version;
    uint32_t pid;
    uint64_t start_time;
    uint8_t pad0[0x80 - 0x18];
    _Atomic uint32_t futex; /* both sides; LBT-IPC */
    uint8_t pad1[0x1000 - 0x84];
};
struct um_shm_control_object {
    int fd; /* -1: not open */
    bool is_owner;
    char path[128];
    uint32_t session_id;
    dev_t dev;
    ino_t ino;
    struct um_shm_control *map;
};
int um_shm_control_create(struct um_shm_control_object *object, enum um_shm_kind kind); /* -1 + error */
int um_shm_control_attach(struct um_shm_control_object *object, enum um_shm_kind kind, uint32_t session_id);
void um_shm_control_close(struct um_shm_control_object *object); /* the owner also removes the name */

/* For the resource managers: every object of a kind in the directory, in order of name. */
struct um_shm_entry {
    char path[128];
    uint32_t session_id;
    uint16_t transport_id; /* 0: control object */
    uint32_t pid;          /* of the owner, as the object says; 0: unreadable */
    bool alive;            /* the owner's lock is held */
};
int um_shm_list(enum um_shm_kind kind, struct um_shm_entry **out); /* count; free with um_free. -1 + error */
/* Removes the object unless its owner lives. 0 removed, 1 alive, -1 + error. Safe at any time. */
int um_shm_reclaim(const struct um_shm_entry *entry);
/* Removes what dead owners left; returns how many. */
int um_shm_reclaim_dead(enum um_shm_kind kind);

#endif
