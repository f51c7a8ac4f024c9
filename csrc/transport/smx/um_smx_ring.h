/* The ring of LBT-SMX: records whose header begins with a commit word. Pure: it
 * works on memory laid out as a segment and knows no system call, clock or lock.
 * One writer (the source, under its session's rules) and one reader per slot.
 *
 * Publication. The writer fills a record, clears the commit word of the record
 * that will follow, and stores its own commit word with release. A batch stores
 * the commit words of its records 2..n as they are written, and that of record 1
 * last: readers cannot pass record 1 before. Readers poll the commit word of the
 * next record with acquire, and never look at the shared tail.
 *
 * Room. A reader stores read_pos with release after the callbacks; the writer
 * reads it with acquire when it looks for room, at least once per quarter of the
 * ring: tail = published (release), seq_cst fence, scan of the slots. A joiner
 * does the mirror image (um_shm_slot_take). Either the scan sees the joiner or
 * the joiner sees that tail, behind which nothing is overwritten before the next
 * scan; so the paths of a message need neither fence nor shared load. */
#ifndef UM_TRANSPORT_SMX_RING_H
#define UM_TRANSPORT_SMX_RING_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "transport/shm/um_shm_segment.h"

#define UM_SMX_RECORD_HEADER 16u
#define UM_SMX_LENGTH_MASK 0x0fffffffu
#define UM_SMX_TYPE_SHIFT 28

enum um_smx_type {
    UM_SMX_DATA = 1,
    UM_SMX_PAD = 2,       /* length: of the whole record, up to the end of the ring */
    UM_SMX_CANCELLED = 3, /* acquired, then given back among the records of others */
    UM_SMX_CONTROL = 4    /* reserved: passed over */
};

struct um_smx_record {
    /* Type and payload length; 0: not published. Writer: release (relaxed for all of a batch but its first record, and
     * to clear it before the record in front of it is published). Readers: acquire. */
    _Atomic uint32_t commit;
    _Atomic uint32_t topic_idx; /* relaxed: ordered by commit, like the rest */
    _Atomic uint32_t sqn;
    uint32_t reserved;
    uint8_t payload[];
};

/* ---- writer ---- */

struct um_smx_writer {
    uint8_t *ring;
    uint64_t ring_len, mask;
    uint64_t align; /* of records */
    uint64_t claimed, published, limit;
    uint64_t tail; /* last value of header->tail */
    uint32_t payload_max;
    uint32_t first_commit; /* commit word held back: of the record at `published`, when claimed > published */
    struct um_shm_header *header;
    struct um_shm_slot *slots;
    uint32_t slot_count;
    uint32_t evicted;     /* slots given up because their cursor was impossible */
    int32_t laggard;      /* slot that holds the writer up, as of the last scan; -1: none */
    uint64_t outstanding; /* data records claimed and not published */
};

/* On a segment just created, or on memory laid out like one. */
void um_smx_writer_init(struct um_smx_writer *writer, struct um_shm_header *header, struct um_shm_slot *slots,
                        uint8_t *ring);

enum um_smx_claim {
    UM_SMX_CLAIMED,
    UM_SMX_FULL,    /* readers have to catch up: refill again */
    UM_SMX_TOO_MANY /* what is claimed and not published leaves no room: waiting is of no use */
};

/* Look for room for a payload of `len` bytes: store the tail, fence, scan. CLAIMED: um_smx_claim() succeeds now. */
enum um_smx_claim um_smx_refill(struct um_smx_writer *writer, size_t len);
/* Gives back the records of this topic. Returns how many there were, *bytes their payload; the others stay claimed. */
uint32_t um_smx_cancel(struct um_smx_writer *writer, uint32_t topic_idx, uint64_t *bytes);
/* Fills the rest of the ring; internal. */
void um_smx_pad(struct um_smx_writer *writer, uint64_t size);

static inline struct um_smx_record *um_smx_at(uint8_t *ring, uint64_t offset)
{
    return (struct um_smx_record *)(void *)(ring + offset);
}

static inline uint64_t um_smx_record_size(uint64_t align, uint64_t len)
{
    return (UM_SMX_RECORD_HEADER + len + align - 1) & ~(align - 1);
}

static inline uint32_t um_smx_word(enum um_smx_type type, uint64_t len)
{
    return (uint32_t)type << UM_SMX_TYPE_SHIFT | (uint32_t)len;
}

/* The commit word of a record being written: kept back for the first of a batch, stored for the others. */
static inline void um_smx_append(struct um_smx_writer *writer, struct um_smx_record *record, uint32_t word,
                                 uint64_t size)
{
    if (writer->claimed == writer->published) {
        writer->first_commit = word;
    } else {
        atomic_store_explicit(&record->commit, word, memory_order_relaxed);
    }
    writer->claimed += size;
}

/* The record at the end of what is claimed, or NULL: no room by the last scan, see um_smx_refill(). `len` is at most
 * payload_max. The payload is the caller's to write until um_smx_publish(). */
static inline struct um_smx_record *um_smx_claim(struct um_smx_writer *writer, size_t len, uint32_t topic_idx,
                                                 uint32_t sqn)
{
    uint64_t size = um_smx_record_size(writer->align, len);
    uint64_t offset = writer->claimed & writer->mask;
    if (__builtin_expect(offset + size > writer->ring_len, 0)) {
        uint64_t pad = writer->ring_len - offset;
        if (writer->claimed + pad + size + UM_SMX_RECORD_HEADER > writer->limit) {
            return NULL;
        }
        um_smx_pad(writer, pad);
        offset = 0;
    } else if (__builtin_expect(writer->claimed + size + UM_SMX_RECORD_HEADER > writer->limit, 0)) {
        return NULL; /* the commit word of the following record needs room, too */
    }
    struct um_smx_record *record = um_smx_at(writer->ring, offset);
    atomic_store_explicit(&record->topic_idx, topic_idx, memory_order_relaxed);
    atomic_store_explicit(&record->sqn, sqn, memory_order_relaxed);
    um_smx_append(writer, record, um_smx_word(UM_SMX_DATA, len), size);
    writer->outstanding++;
    return record;
}

/* Ask for a cache line that will be written soon. */
static inline void um_smx_prefetch(const uint8_t *at)
{
#if defined(__x86_64__)
    __asm__ volatile("prefetchw %0" : : "m"(*at));
#else
    __builtin_prefetch(at, 1);
#endif
}

/* Would um_smx_claim() fail by the last scan? */
static inline bool um_smx_refill_wanted(const struct um_smx_writer *writer, size_t len)
{
    uint64_t size = um_smx_record_size(writer->align, len);
    uint64_t offset = writer->claimed & writer->mask;
    uint64_t pad = offset + size > writer->ring_len ? writer->ring_len - offset : 0;
    return writer->claimed + pad + size + UM_SMX_RECORD_HEADER > writer->limit;
}

static inline void um_smx_publish(struct um_smx_writer *writer)
{
    if (writer->claimed == writer->published) {
        return;
    }
    struct um_smx_record *first = um_smx_at(writer->ring, writer->published & writer->mask);
    struct um_smx_record *following = um_smx_at(writer->ring, writer->claimed & writer->mask);
    atomic_store_explicit(&following->commit, 0, memory_order_relaxed);
    atomic_store_explicit(&first->commit, writer->first_commit, memory_order_release);
    writer->published = writer->claimed;
    writer->outstanding = 0;
    /* Stores become visible in their order: the next commit word would wait for the lines that are written before it.
     */
    um_smx_prefetch(writer->ring + ((writer->claimed + 64) & writer->mask));
    um_smx_prefetch(writer->ring + ((writer->claimed + 128) & writer->mask));
}

/* ---- reader ---- */

struct um_smx_reader {
    const uint8_t *ring; /* mapped read-only */
    uint64_t ring_len, mask;
    uint64_t align;
    uint32_t payload_max;
    uint64_t pos;      /* of the next record */
    uint64_t released; /* last value of slot->read_pos */
    uint64_t release_step;
    struct um_shm_slot *slot;
    uint64_t unknown; /* records of a type this version does not know, passed over */
};

struct um_smx_message {
    const uint8_t *data; /* in the ring: valid until um_smx_release() */
    uint32_t len;
    uint32_t topic_idx;
    uint32_t sqn;
};

enum um_smx_read {
    UM_SMX_IDLE,
    UM_SMX_MESSAGE,
    UM_SMX_CORRUPT /* what lies here is no record: leave */
};

/* `start` from um_shm_slot_take(). */
void um_smx_reader_init(struct um_smx_reader *reader, const struct um_shm_segment *segment, struct um_shm_slot *slot,
                        uint64_t start);
/* Pass over what was published before now, at most one ring; then the slot is READING. False: corrupt. */
bool um_smx_reader_skip(struct um_smx_reader *reader);
enum um_smx_read um_smx_next_slow(struct um_smx_reader *reader, struct um_smx_message *out); /* internal */

static inline uint32_t um_smx_commit_at(const struct um_smx_reader *reader)
{
    const struct um_smx_record *record =
        (const struct um_smx_record *)(const void *)(reader->ring + (reader->pos & reader->mask));
    return atomic_load_explicit(&record->commit, memory_order_acquire);
}

/* The data record that is next, if it is one. Returns its size in the ring; 0 when it is not published, or no data, or
 * impossible. */
static inline uint64_t um_smx_peek(const struct um_smx_reader *reader, struct um_smx_message *out)
{
    uint64_t offset = reader->pos & reader->mask;
    const struct um_smx_record *record = (const struct um_smx_record *)(const void *)(reader->ring + offset);
    uint32_t word = atomic_load_explicit(&record->commit, memory_order_acquire);
    uint32_t len = word & UM_SMX_LENGTH_MASK;
    uint64_t size = um_smx_record_size(reader->align, len);
    if (word >> UM_SMX_TYPE_SHIFT != UM_SMX_DATA || len > reader->payload_max || size > reader->ring_len - offset) {
        return 0;
    }
    out->data = record->payload;
    out->len = len;
    out->topic_idx = atomic_load_explicit(&record->topic_idx, memory_order_relaxed);
    out->sqn = atomic_load_explicit(&record->sqn, memory_order_relaxed);
    return size;
}

static inline bool um_smx_take(struct um_smx_reader *reader, struct um_smx_message *out)
{
    uint64_t size = um_smx_peek(reader, out);
    reader->pos += size;
    return size != 0;
}

/* The next message, which stays untouched by the writer until um_smx_release(). */
static inline enum um_smx_read um_smx_next(struct um_smx_reader *reader, struct um_smx_message *out)
{
    if (__builtin_expect(um_smx_take(reader, out), 1)) {
        return UM_SMX_MESSAGE;
    }
    return um_smx_commit_at(reader) == 0 ? UM_SMX_IDLE : um_smx_next_slow(reader, out);
}

/* Everything read so far may be overwritten. */
static inline void um_smx_release(struct um_smx_reader *reader)
{
    if (reader->released != reader->pos) {
        reader->released = reader->pos;
        atomic_store_explicit(&reader->slot->read_pos, reader->pos, memory_order_release);
    }
}

/* Often enough for the writer, seldom enough for the cache line. */
static inline bool um_smx_release_due(const struct um_smx_reader *reader)
{
    return reader->pos - reader->released >= reader->release_step;
}

#endif
