/* The algorithms of the ring, with the ordering of every shared access beside
 * it. tests/model/production_model.c runs this file under weak memory, and fails
 * when one of the orderings is taken away. See um_ipc_ring.h. */
#include "transport/ipc/um_ipc_ring.h"

#include <string.h>

#if defined(__SANITIZE_THREAD__)
#define WORDWISE 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define WORDWISE 1
#endif
#endif

/* Source-paced, `oldest` is moved in steps, so that readers do not find its cache line changed with every record. */
#define OLDEST_STEPS 64u
/* Points to resume at after an overrun: at most a quarter of the ring behind the tail. */
#define RESYNC_PARTS 4u
#define RESYNC_TRIES 64u
/* How far a source goes before it looks at the receivers again, if they leave it that much room. A receiver that joins
 * relies on one look per ring length; a quarter leaves a margin. */
#define SCAN_PARTS 4u

static uint32_t round_up(uint32_t len, uint32_t to)
{
    return (len + to - 1) / to * to;
}

uint64_t um_ipc_ring_len(uint64_t window, uint32_t datagram_max)
{
    uint64_t least = 2 * (uint64_t)(UM_IPC_RECORD_HDR + round_up(datagram_max, UM_IPC_ALIGN));
    uint64_t len = window > least ? window : least;
    return (len + 4095) / 4096 * 4096;
}

/* ---- bytes that others may read or write at the same time ----
 * Relaxed 64-bit accesses by the letter; plain copies compile to the same moves. The thread sanitizer gets the letter.
 */

static void put_bytes(uint8_t *to, const void *from, size_t len)
{
#ifdef WORDWISE
    for (size_t i = 0; i < len; i += 8) {
        uint64_t word = 0;
        memcpy(&word, (const uint8_t *)from + i, len - i < 8 ? len - i : 8);
        atomic_store_explicit((_Atomic uint64_t *)(void *)(to + i), word, memory_order_relaxed);
    }
#else
    memcpy(to, from, len);
#endif
}

static void get_bytes(void *to, const uint8_t *from, size_t len)
{
#ifdef WORDWISE
    for (size_t i = 0; i < len; i += 8) {
        uint64_t word = atomic_load_explicit((_Atomic uint64_t *)(void *)(from + i), memory_order_relaxed);
        memcpy((uint8_t *)to + i, &word, len - i < 8 ? len - i : 8);
    }
#else
    memcpy(to, from, len);
#endif
}

static void put_header(uint8_t *to, const struct um_ipc_record *record)
{
    uint64_t words[4];
    memcpy(words, record, sizeof words);
    for (int i = 0; i < 4; i++) {
        atomic_store_explicit((_Atomic uint64_t *)(void *)to + i, words[i], memory_order_relaxed);
    }
}

static void get_header(struct um_ipc_record *record, const uint8_t *from)
{
    uint64_t words[4];
    for (int i = 0; i < 4; i++) {
        words[i] = atomic_load_explicit((_Atomic uint64_t *)(void *)from + i, memory_order_relaxed);
    }
    memcpy(record, words, sizeof words);
}

/* ---- source ---- */

void um_ipc_writer_init(struct um_ipc_writer *writer, struct um_shm_segment *segment)
{
    *writer = (struct um_ipc_writer){.segment = segment, .limit = segment->ring_len};
}

/* Room that no receiver needs: up to the slowest plus the ring, but not further than the next look must be. A receiver
 * whose position makes no sense only harms itself: it is taken for one that keeps up or for one a whole ring behind. */
static uint64_t scan(const struct um_ipc_writer *writer, uint64_t end)
{
    const struct um_shm_segment *segment = writer->segment;
    uint64_t furthest = writer->tail + segment->ring_len / SCAN_PARTS;
    uint64_t limit = furthest > end ? furthest : end;
    /* Pairs with the fence of a receiver that joins: either its slot is seen below, or it sees our tail. */
    atomic_thread_fence(memory_order_seq_cst);
    for (uint32_t i = 0; i < segment->max_receivers; i++) {
        struct um_shm_slot *slot = &segment->slots[i];
        if (um_shm_slot_state(slot) < UM_SHM_SLOT_ACTIVE) {
            continue;
        }
        /* Acquire: what is written over its records comes after its last look at them. */
        uint64_t pos = atomic_load_explicit(&slot->read_pos, memory_order_acquire);
        if (pos > writer->tail || writer->tail - pos > segment->ring_len) {
            pos = pos > writer->tail ? writer->tail : writer->tail - segment->ring_len;
        }
        if (pos + segment->ring_len < limit) {
            limit = pos + segment->ring_len;
        }
    }
    return limit;
}

struct plan {
    uint64_t off, pad, start, end;
};

static struct plan plan_record(const struct um_ipc_writer *writer, uint32_t len)
{
    uint64_t ring_len = writer->segment->ring_len;
    uint64_t size = UM_IPC_RECORD_HDR + (uint64_t)round_up(len, UM_IPC_ALIGN);
    struct plan plan = {.off = writer->tail % ring_len};
    plan.pad = plan.off + size > ring_len ? ring_len - plan.off : 0;
    plan.start = writer->tail + plan.pad;
    plan.end = plan.start + size;
    return plan;
}

bool um_ipc_make_room(struct um_ipc_writer *writer, uint32_t len)
{
    struct plan plan = plan_record(writer, len);
    writer->limit = scan(writer, plan.end);
    return plan.end <= writer->limit;
}

int um_ipc_slowest(const struct um_ipc_writer *writer)
{
    const struct um_shm_segment *segment = writer->segment;
    int slowest = -1;
    uint64_t behind = 0;
    for (uint32_t i = 0; i < segment->max_receivers; i++) {
        struct um_shm_slot *slot = &segment->slots[i];
        if (um_shm_slot_state(slot) < UM_SHM_SLOT_ACTIVE) {
            continue;
        }
        uint64_t pos = atomic_load_explicit(&slot->read_pos, memory_order_relaxed);
        if (pos < writer->tail && writer->tail - pos > behind) {
            behind = writer->tail - pos;
            slowest = (int)i;
        }
    }
    return slowest;
}

/* Declare lost what writing up to `end` destroys, before a byte of it is touched. */
static void give_up(struct um_ipc_writer *writer, uint64_t end)
{
    uint64_t ring_len = writer->segment->ring_len;
    if (end <= ring_len || end - ring_len <= writer->oldest) {
        return;
    }
    bool waits = (writer->segment->flags & UM_SHM_FLAG_RECEIVER_PACED) != 0;
    writer->oldest = end - ring_len + (waits ? 0 : ring_len / OLDEST_STEPS);
    if (writer->oldest > writer->tail) {
        writer->oldest = writer->tail;
    }
    /* Relaxed, and a release fence before what follows: a reader that meets a byte of the new record, and then passes
     * its acquire fence, sees this value or a newer one. */
    atomic_store_explicit(&writer->segment->header->oldest, writer->oldest, memory_order_relaxed);
    atomic_thread_fence(memory_order_release);
}

bool um_ipc_write(struct um_ipc_writer *writer, enum um_ipc_record_type type, const void *data, uint32_t len)
{
    struct um_shm_segment *segment = writer->segment;
    struct plan plan = plan_record(writer, len);
    if ((segment->flags & UM_SHM_FLAG_RECEIVER_PACED) && plan.end > writer->limit && !um_ipc_make_room(writer, len)) {
        return false;
    }
    give_up(writer, plan.end);
    if (plan.pad > 0) {
        struct um_ipc_record pad = {.pos = writer->tail, .size = (uint32_t)plan.pad, .type = UM_IPC_PAD};
        put_header(segment->ring + plan.off, &pad);
        plan.off = 0;
    }
    struct um_ipc_record record = {.pos = plan.start,
                                   .size = (uint32_t)(plan.end - plan.start),
                                   .type = type,
                                   .len = len,
                                   .datagram_sqn = writer->datagram_sqn};
    writer->datagram_sqn += type == UM_IPC_DATA;
    if (len > 0) {
        put_bytes(segment->ring + plan.off + UM_IPC_RECORD_HDR, data, len);
    }
    put_header(segment->ring + plan.off, &record);
    writer->tail = plan.end;
    /* Release: whoever sees the new tail sees the record. */
    atomic_store_explicit(&segment->header->tail, plan.end, memory_order_release);
    if (plan.start >= writer->next_resync) {
        /* Release, after the tail: whoever resumes here finds a tail that is not behind it. */
        atomic_store_explicit(&segment->header->resync, plan.start, memory_order_release);
        writer->next_resync = plan.start + segment->ring_len / RESYNC_PARTS;
    }
    return true;
}

/* ---- receiver ---- */

bool um_ipc_reader_init(struct um_ipc_reader *reader, const struct um_shm_segment *segment, uint64_t start)
{
    *reader = (struct um_ipc_reader){.header = segment->header,
                                     .ring = segment->ring,
                                     .ring_len = segment->ring_len,
                                     .datagram_max = segment->datagram_max,
                                     .pos = start};
    return start % UM_IPC_ALIGN == 0 && segment->ring_len % UM_IPC_ALIGN == 0 &&
           segment->datagram_max <= segment->ring_len;
}

static uint64_t load(const _Atomic uint64_t *word, memory_order order)
{
    return atomic_load_explicit((_Atomic uint64_t *)word, order);
}

/* A recent record to go on with, behind ours and intact. False: the source is writing just now what takes the place of
 * the one it named last. A look that was interrupted is repeated, or a reader could end up behind the last record,
 * where nothing tells it that it missed anything. */
static bool find_resync(const struct um_ipc_reader *reader, uint64_t *pos)
{
    const struct um_shm_header *header = reader->header;
    for (unsigned tries = 0; tries < RESYNC_TRIES; tries++) {
        /* Acquire: the tail loaded next time is not behind the point to resume at. Then relaxed: a stale value only
         * means another overrun. */
        *pos = load(&header->resync, memory_order_acquire);
        if (*pos >= load(&header->oldest, memory_order_relaxed) && *pos > reader->pos) {
            return true;
        }
    }
    return false;
}

static enum um_ipc_read overrun(struct um_ipc_reader *reader)
{
    uint64_t pos;
    reader->overruns++;
    if (!find_resync(reader, &pos)) {
        pos = load(&reader->header->tail, memory_order_relaxed); /* where that record will be */
    }
    if (pos % UM_IPC_ALIGN != 0 || pos < reader->pos) {
        return UM_IPC_READ_CORRUPT; /* a source never goes back */
    }
    reader->pos = pos;
    return UM_IPC_READ_OVERRUN;
}

static bool well_formed(const struct um_ipc_reader *reader, const struct um_ipc_record *record, uint64_t room)
{
    return record->pos == reader->pos && record->type >= UM_IPC_DATA && record->type <= UM_IPC_SM &&
           record->size % UM_IPC_ALIGN == 0 && record->size >= UM_IPC_RECORD_HDR && record->size <= room &&
           record->len <= record->size - UM_IPC_RECORD_HDR && record->len <= reader->datagram_max;
}

static void count_gap(struct um_ipc_reader *reader, uint32_t sqn)
{
    if (reader->sqn_known) {
        reader->datagrams_overrun += (uint32_t)(sqn - reader->next_sqn);
    }
    reader->sqn_known = true;
    reader->next_sqn = sqn + 1;
}

enum um_ipc_read um_ipc_read(struct um_ipc_reader *reader, void *out, uint32_t *len)
{
    const struct um_shm_header *header = reader->header;
    struct um_ipc_record record;
    /* Acquire: the records before it are complete. */
    uint64_t tail = load(&header->tail, memory_order_acquire);
    if (tail == reader->pos) {
        return UM_IPC_READ_IDLE;
    }
    if (tail < reader->pos) {
        return UM_IPC_READ_CORRUPT;
    }
    if (tail - reader->pos > reader->ring_len) {
        return overrun(reader);
    }
    uint64_t off = reader->pos % reader->ring_len;
    uint64_t room = reader->ring_len - off < tail - reader->pos ? reader->ring_len - off : tail - reader->pos;
    get_header(&record, reader->ring + off);
    bool good = well_formed(reader, &record, room);
    if (good && record.type == UM_IPC_DATA) {
        get_bytes(out, reader->ring + off + UM_IPC_RECORD_HDR, record.len);
    }
    /* Acquire fence, then relaxed: if any byte above came from a newer record, this shows that ours was given up. */
    atomic_thread_fence(memory_order_acquire);
    if (load(&header->oldest, memory_order_relaxed) > reader->pos) {
        return overrun(reader);
    }
    if (!good) {
        return UM_IPC_READ_CORRUPT;
    }
    reader->pos += record.size;
    if (record.type != UM_IPC_DATA) {
        return UM_IPC_READ_CONTROL;
    }
    count_gap(reader, record.datagram_sqn);
    *len = record.len;
    return UM_IPC_READ_DATA;
}
