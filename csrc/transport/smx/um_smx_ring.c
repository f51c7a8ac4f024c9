/* The slower half of the LBT-SMX ring: looking for room, padding, cancelling,
 * records other than data, finding the present at a join. See um_smx_ring.h. */
#include "transport/smx/um_smx_ring.h"

/* After `limit` changed, or `claimed` otherwise than by a claim that um_smx_reaches(). */
static void set_reach(struct um_smx_writer *writer)
{
    uint64_t lap_end = (writer->claimed | writer->mask) + 1;
    uint64_t room_end = writer->limit - UM_SMX_RECORD_HEADER; /* the commit word of the following record needs room */
    writer->reach = room_end < lap_end ? room_end : lap_end;
}

void um_smx_writer_init(struct um_smx_writer *writer, struct um_shm_header *header, struct um_shm_slot *slots,
                        uint8_t *ring)
{
    *writer = (struct um_smx_writer){
        .ring = ring,
        .ring_len = header->ring_len,
        .mask = header->ring_len - 1,
        .round = UM_SMX_ROUND(header->rec_align),
        .align_mask = ~((uint64_t)header->rec_align - 1),
        .limit = header->ring_len / 4,
        .payload_max = header->datagram_max - UM_SMX_RECORD_HEADER,
        .header = header,
        .slots = slots,
        .slot_count = header->max_receivers,
        .laggard = -1,
    };
    set_reach(writer);
}

static bool is_reading(uint32_t state)
{
    return state == UM_SHM_SLOT_ACTIVE || state == UM_SHM_SLOT_READING;
}

/* The smallest cursor. A cursor ahead of what is published, or one that fell out of the ring although its receiver is
 * reading, was not written by our reader: the slot is given up. A joiner may be far behind for a moment. */
static uint64_t scan(struct um_smx_writer *writer)
{
    uint64_t least = UINT64_MAX;
    writer->laggard = -1;
    for (uint32_t i = 0; i < writer->slot_count; i++) {
        struct um_shm_slot *slot = &writer->slots[i];
        uint32_t state = um_shm_slot_state(slot);
        if (!is_reading(state)) {
            continue;
        }
        uint64_t pos = atomic_load_explicit(&slot->read_pos, memory_order_acquire);
        if (pos > writer->published || (state == UM_SHM_SLOT_READING && writer->published - pos > writer->ring_len)) {
            atomic_store_explicit(&slot->in_use, UM_SHM_SLOT_FREE, memory_order_relaxed);
            writer->evicted++;
            continue;
        }
        if (pos < least) {
            least = pos;
            writer->laggard = (int32_t)i;
        }
    }
    return least;
}

/* What is left of the ring when a record of `size` has no place there. */
static uint64_t padding(const struct um_smx_writer *writer, uint64_t size)
{
    uint64_t rest = writer->ring_len - (writer->claimed & writer->mask);
    return size > rest ? rest : 0;
}

enum um_smx_claim um_smx_refill(struct um_smx_writer *writer, size_t len)
{
    uint64_t size = UM_SMX_RECORD_SIZE(writer, len);
    uint64_t end = writer->claimed + padding(writer, size) + size + UM_SMX_RECORD_HEADER;
    if (end - writer->published > writer->ring_len) {
        return UM_SMX_TOO_MANY;
    }
    if (writer->tail != writer->published) {
        writer->tail = writer->published;
        atomic_store_explicit(&writer->header->tail, writer->tail, memory_order_release);
    }
    atomic_thread_fence(memory_order_seq_cst); /* with the fence of um_shm_slot_take() */
    uint64_t least = scan(writer);
    uint64_t limit = writer->published + writer->ring_len / 4;
    limit = limit > end ? limit : end;
    if (least <= UINT64_MAX - writer->ring_len && least + writer->ring_len < limit) {
        limit = least + writer->ring_len;
    }
    writer->limit = limit;
    set_reach(writer);
    return end <= limit ? UM_SMX_CLAIMED : UM_SMX_FULL;
}

struct um_smx_want um_smx_wanted(const struct um_smx_writer *writer)
{
    uint64_t size = UM_SMX_RECORD_SIZE(writer, writer->payload_max);
    uint64_t end = writer->claimed + padding(writer, size) + size + UM_SMX_RECORD_HEADER;
    uint64_t ahead = end - writer->published; /* no more than the ring: more comes only when buffers are completed */
    uint64_t behind = ahead < writer->ring_len ? writer->ring_len - ahead : 0;
    return (struct um_smx_want){.position = writer->published > behind ? writer->published - behind : 0,
                                .published = writer->published};
}

bool um_smx_has_room(const struct um_shm_segment *segment, const struct um_smx_want *want)
{
    for (uint32_t i = 0; i < segment->max_receivers; i++) {
        struct um_shm_slot *slot = &segment->slots[i];
        uint32_t state = um_shm_slot_state(slot);
        uint64_t pos = atomic_load_explicit(&slot->read_pos, memory_order_relaxed); /* a hint: the owner scans again */
        bool fell_out =
            state == UM_SHM_SLOT_READING && pos < want->published && want->published - pos > segment->ring_len;
        if (is_reading(state) && pos < want->position && !fell_out) {
            return false;
        }
    }
    return true;
}

bool um_smx_extend(struct um_smx_writer *writer, uint64_t size)
{
    uint64_t pad = padding(writer, size);
    if (writer->claimed + pad + size + UM_SMX_RECORD_HEADER > writer->limit) {
        return false;
    }
    if (pad > 0) {
        struct um_smx_record *record = um_smx_at(writer->ring, writer->claimed & writer->mask);
        um_smx_append(writer, record, writer->claimed, pad, um_smx_word(UM_SMX_PAD, pad, 0), 0);
    }
    set_reach(writer);
    return true;
}

/* ---- cancelling ---- */

static uint64_t outstanding_word(const struct um_smx_writer *writer, uint64_t pos)
{
    if (pos == writer->published) {
        return writer->first_commit;
    }
    return atomic_load_explicit(&um_smx_at(writer->ring, pos & writer->mask)->commit, memory_order_relaxed);
}

/* The size that the commit word of any record tells, `size` being that of a record with its length as payload. */
static uint64_t word_size(uint64_t word, uint64_t size)
{
    return um_smx_type(word) == UM_SMX_PAD ? um_smx_len(word) : size;
}

static void mark_cancelled(struct um_smx_writer *writer, uint64_t pos, uint64_t word)
{
    word = um_smx_word(UM_SMX_CANCELLED, um_smx_len(word), um_smx_topic_idx(word));
    if (pos == writer->published) {
        writer->first_commit = word;
    } else {
        atomic_store_explicit(&um_smx_at(writer->ring, pos & writer->mask)->commit, word, memory_order_relaxed);
    }
}

uint32_t um_smx_cancel(struct um_smx_writer *writer, uint32_t topic_idx, uint64_t *bytes)
{
    uint32_t own = 0, others = 0;
    *bytes = 0;
    for (uint64_t pos = writer->published; pos != writer->claimed;) {
        uint64_t word = outstanding_word(writer, pos);
        if (um_smx_type(word) == UM_SMX_DATA) {
            if (um_smx_topic_idx(word) == topic_idx) {
                mark_cancelled(writer, pos, word);
                *bytes += um_smx_len(word);
                own++;
            } else {
                others++;
            }
        }
        pos += word_size(word, UM_SMX_RECORD_SIZE(writer, um_smx_len(word)));
    }
    if (others == 0) { /* as if nothing had ever been claimed */
        writer->claimed = writer->published;
        set_reach(writer);
    }
    return own;
}

/* ---- reader ---- */

void um_smx_reader_init(struct um_smx_reader *reader, const struct um_shm_segment *segment, struct um_shm_slot *slot,
                        uint64_t start)
{
    *reader = (struct um_smx_reader){
        .ring = segment->ring,
        .ring_len = segment->ring_len,
        .mask = segment->ring_len - 1,
        .round = UM_SMX_ROUND(segment->rec_align),
        .align_mask = ~((uint64_t)segment->rec_align - 1),
        .payload_max = segment->datagram_max - UM_SMX_RECORD_HEADER,
        .pos = start,
        .released = start,
        .release_step = segment->ring_len / 64,
        .slot = slot,
    };
}

/* One record that is not data. False: it is none at all. */
static bool pass_over(struct um_smx_reader *reader, uint64_t word)
{
    uint64_t offset = reader->pos & reader->mask;
    uint64_t size = word_size(word, UM_SMX_RECORD_SIZE(reader, um_smx_len(word)));
    enum um_smx_type type = um_smx_type(word);
    if (type == UM_SMX_PAD ? size != reader->ring_len - offset : size > reader->ring_len - offset) {
        return false;
    }
    if (type == UM_SMX_DATA && um_smx_len(word) > reader->payload_max) {
        return false;
    }
    reader->unknown += type >= UM_SMX_CONTROL || type == 0;
    reader->pos += size;
    return true;
}

/* At most one ring in a call, so that a ring full of records that are no data cannot hold the thread. */
enum um_smx_read um_smx_next_slow(struct um_smx_reader *reader, struct um_smx_message *out)
{
    uint64_t most = reader->pos + reader->ring_len;
    while (reader->pos < most) {
        uint64_t word = um_smx_commit_at(reader);
        if (word == 0) {
            return UM_SMX_IDLE;
        }
        if (um_smx_type(word) == UM_SMX_DATA) {
            return um_smx_take(reader, out) ? UM_SMX_MESSAGE : UM_SMX_CORRUPT;
        }
        if (!pass_over(reader, word)) {
            return UM_SMX_CORRUPT;
        }
    }
    return UM_SMX_IDLE;
}

bool um_smx_reader_skip(struct um_smx_reader *reader)
{
    uint64_t most = reader->pos + reader->ring_len;
    uint64_t word;
    while (reader->pos < most && (word = um_smx_commit_at(reader)) != 0) {
        if (!pass_over(reader, word)) {
            return false;
        }
        if (um_smx_release_due(reader)) {
            um_smx_release(reader);
        }
    }
    um_smx_release(reader);
    um_shm_slot_reading(reader->slot);
    return true;
}
