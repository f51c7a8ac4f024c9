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

#include "transport/shm/um_shm_words.h"
#include "transport/shm/um_shm_spin.h"

#define UM_SMX_RECORD_HEADER 16u
#define UM_SMX_LENGTH_MASK 0x0fffffffu
#define UM_SMX_TYPE_SHIFT 28
#define UM_SMX_TOPIC_SHIFT 32

enum um_smx_type {
    UM_SMX_DATA = 1,
    UM_SMX_PAD = 2,       /* length: of the whole record, up to the end of the ring */
    UM_SMX_CANCELLED = 3, /* acquired, then given back among the records of others */
    UM_SMX_CONTROL = 4    /* reserved: passed over */
};

struct um_smx_record {
    /* Type, payload length and topic index; 0: not published. Writer: release (relaxed for all of a batch but its first
     * record, and to clear it before the record in front of it is published). Readers: acquire. */
    _Atomic uint64_t commit;
    _Atomic uint32_t sqn; /* relaxed: ordered by commit, like the payload */
    uint32_t reserved;
    uint8_t payload[];
};

/* ---- writer ---- */

/* Owned by whoever sends: callers of general sends under the session lock, those of lbm_src_buff_acquire() and its kin
 * by taking turns. Nobody else writes here; what may be read from outside is atomic. */
struct um_smx_writer {
    /* What a message touches, in one cache line. */
    uint8_t *ring;
    uint64_t mask;
    uint64_t round, align_mask; /* size of a record: payload length + round, and align_mask */
    uint64_t claimed, published;
    uint64_t reach; /* a record that ends here or before is claimed without a look: room by the last scan, and the
                       ring's end */
    uint32_t payload_max;
    bool counting;
    uint64_t first_commit; /* commit word held back: of the record at `published`, when claimed > published */
    /* The rest. */
    int32_t laggard;                  /* slot that holds the writer up, as of the last scan; -1: none */
    _Atomic uint64_t messages, bytes; /* with `counting`: data records and their bytes; any thread reads */
    uint64_t ring_len;
    uint64_t limit; /* of what is claimed, and the commit word behind it, by the last scan */
    uint64_t tail;  /* last value of header->tail */
    struct um_shm_header *header;
    struct um_shm_slot *slots;
    uint32_t slot_count;
    uint32_t evicted; /* slots given up because their cursor was impossible */
};

static inline void um_smx_count(struct um_smx_writer *writer, uint64_t messages, uint64_t bytes)
{
    messages += atomic_load_explicit(&writer->messages, memory_order_relaxed);
    bytes += atomic_load_explicit(&writer->bytes, memory_order_relaxed);
    atomic_store_explicit(&writer->messages, messages, memory_order_relaxed);
    atomic_store_explicit(&writer->bytes, bytes, memory_order_relaxed);
}

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
/* Where room for the longest message is, for others than the owner to find out by um_smx_has_room(). */
struct um_smx_want {
    uint64_t position;  /* all receivers have to read up to here */
    uint64_t published; /* when it was asked */
};
struct um_smx_want um_smx_wanted(const struct um_smx_writer *writer);
/* Have the receivers read that far? Also true where one wrote what no receiver writes: the owner's next scan gives its
 * slot up. Any thread: writes nothing. */
bool um_smx_has_room(const struct um_shm_segment *segment, const struct um_smx_want *want);
/* Gives back the records of this topic. Returns how many there were, *bytes their payload; the others stay claimed. */
uint32_t um_smx_cancel(struct um_smx_writer *writer, uint32_t topic_idx, uint64_t *bytes);
/* Is there room for a record of `size` beyond `reach`, by the last scan? Fills the rest of the ring when the record has
 * to begin anew at its start. Internal. */
bool um_smx_extend(struct um_smx_writer *writer, uint64_t size);

static inline struct um_smx_record *um_smx_at(uint8_t *ring, uint64_t offset)
{
    return (struct um_smx_record *)(void *)(ring + offset);
}

/* In the ring, of a payload of `len` bytes. */
#define UM_SMX_ROUND(align) (UM_SMX_RECORD_HEADER + (align)-1)
#define UM_SMX_RECORD_SIZE(end, len) (((len) + (end)->round) & (end)->align_mask)

static inline uint64_t um_smx_word(enum um_smx_type type, uint64_t len, uint32_t topic_idx)
{
    return (uint64_t)topic_idx << UM_SMX_TOPIC_SHIFT | (uint32_t)type << UM_SMX_TYPE_SHIFT | len;
}

static inline enum um_smx_type um_smx_type(uint64_t word)
{
    return (enum um_smx_type)((uint32_t)word >> UM_SMX_TYPE_SHIFT);
}

static inline uint32_t um_smx_len(uint64_t word)
{
    return (uint32_t)word & UM_SMX_LENGTH_MASK;
}

static inline uint32_t um_smx_topic_idx(uint64_t word)
{
    return (uint32_t)(word >> UM_SMX_TOPIC_SHIFT);
}

/* The header of a record being written. The commit word of the first of a batch is kept back. */
static inline void um_smx_append(struct um_smx_writer *writer, struct um_smx_record *record, uint64_t claimed,
                                 uint64_t size, uint64_t word, uint32_t sqn)
{
    atomic_store_explicit(&record->sqn, sqn, memory_order_relaxed);
    if (claimed == writer->published) {
        writer->first_commit = word;
    } else {
        atomic_store_explicit(&record->commit, word, memory_order_relaxed);
    }
    writer->claimed = claimed + size;
}

/* Does a record of `size` fit without a look? */
static inline bool um_smx_reaches(const struct um_smx_writer *writer, uint64_t size)
{
    return writer->claimed + size <= writer->reach;
}

/* Claim what um_smx_reaches(). */
static inline struct um_smx_record *um_smx_claim_reached(struct um_smx_writer *writer, uint64_t size, size_t len,
                                                         uint32_t topic_idx, uint32_t sqn)
{
    uint64_t claimed = writer->claimed;
    struct um_smx_record *record = um_smx_at(writer->ring, claimed & writer->mask);
    um_smx_append(writer, record, claimed, size, um_smx_word(UM_SMX_DATA, len, topic_idx), sqn);
    return record;
}

/* The record at the end of what is claimed, or NULL: no room by the last scan, see um_smx_refill(). `len` is at most
 * payload_max. The payload is the caller's to write until um_smx_publish(). */
static inline struct um_smx_record *um_smx_claim(struct um_smx_writer *writer, size_t len, uint32_t topic_idx,
                                                 uint32_t sqn)
{
    uint64_t size = UM_SMX_RECORD_SIZE(writer, len);
    if (__builtin_expect(!um_smx_reaches(writer, size), 0) && !um_smx_extend(writer, size)) {
        return NULL;
    }
    return um_smx_claim_reached(writer, size, len, topic_idx, sqn);
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

static inline void um_smx_publish(struct um_smx_writer *writer)
{
    uint64_t claimed = writer->claimed, published = writer->published, mask = writer->mask;
    uint8_t *ring = writer->ring;
    if (claimed == published) {
        return;
    }
    writer->published = claimed;
    atomic_store_explicit(&um_smx_at(ring, claimed & mask)->commit, 0, memory_order_relaxed);
    atomic_store_explicit(&um_smx_at(ring, published & mask)->commit, writer->first_commit, memory_order_release);
    /* Stores become visible in their order: the next commit word would wait for the lines that are written before it.
     */
    um_smx_prefetch(ring + ((claimed + 64) & mask));
    um_smx_prefetch(ring + ((claimed + 128) & mask));
}

/* ---- reader ---- */

struct um_smx_reader {
    const uint8_t *ring; /* mapped read-only */
    uint64_t ring_len, mask;
    uint64_t round, align_mask; /* size of a record: payload length + round, and align_mask */
    uint64_t pos;               /* of the next record */
    uint64_t released;          /* last value of slot->read_pos */
    uint64_t release_step;
    uint32_t payload_max;
    unsigned linger; /* looks at an empty ring before a read is over; set by the reader's owner */
    bool drained;    /* the last um_smx_peek() found nothing published */
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

static inline uint64_t um_smx_commit_at(const struct um_smx_reader *reader)
{
    const struct um_smx_record *record =
        (const struct um_smx_record *)(const void *)(reader->ring + (reader->pos & reader->mask));
    return atomic_load_explicit(&record->commit, memory_order_acquire);
}

/* The data record that is next, if it is one. Returns its size in the ring; 0 when it is not published, or no data, or
 * impossible. */
static inline uint64_t um_smx_peek(struct um_smx_reader *reader, struct um_smx_message *out)
{
    uint64_t offset = reader->pos & reader->mask;
    const struct um_smx_record *record = (const struct um_smx_record *)(const void *)(reader->ring + offset);
    uint64_t word = atomic_load_explicit(&record->commit, memory_order_acquire);
    uint32_t len = (uint32_t)(word - um_smx_word(UM_SMX_DATA, 0, 0)); /* of another type: longer than any payload */
    uint64_t size = UM_SMX_RECORD_SIZE(reader, len);
    if (len > reader->payload_max || size > reader->ring_len - offset) {
        reader->drained = word == 0;
        return 0;
    }
    out->data = record->payload;
    out->len = len;
    out->topic_idx = um_smx_topic_idx(word);
    out->sqn = atomic_load_explicit(&record->sqn, memory_order_relaxed);
    return size;
}

/* Look again until there is something, up to `looks` times. Returns how many of them are left. A tight loop: the
 * processor foresees its end when answers take equally long, and runs ahead into their handling. */
static inline unsigned um_smx_await(const struct um_smx_reader *reader, unsigned looks)
{
    const struct um_smx_record *record =
        (const struct um_smx_record *)(const void *)(reader->ring + (reader->pos & reader->mask));
    while (looks > 0 && atomic_load_explicit(&record->commit, memory_order_relaxed) == 0) {
        um_shm_relax(); /* leaves the cache line to the source */
        looks--;
    }
    return looks;
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
    return reader->drained ? UM_SMX_IDLE : um_smx_next_slow(reader, out);
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
