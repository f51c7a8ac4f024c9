/* The slower half of the LBT-SMX ring: looking for room, padding, cancelling,
 * records other than data, finding the present at a join. See um_smx_ring.h. */
#include "transport/smx/um_smx_ring.h"

void um_smx_writer_init(struct um_smx_writer *writer, struct um_shm_header *header, struct um_shm_slot *slots,
                        uint8_t *ring)
{
    *writer = (struct um_smx_writer){
        .ring = ring,
        .ring_len = header->ring_len,
        .mask = header->ring_len - 1,
        .align = header->rec_align,
        .limit = header->ring_len / 4,
        .payload_max = header->datagram_max - UM_SMX_RECORD_HEADER,
        .header = header,
        .slots = slots,
        .slot_count = header->max_receivers,
        .laggard = -1,
    };
}

/* The smallest cursor. A cursor ahead of what is published, or one that fell out of the ring although its receiver is
 * reading, was not written by our reader: the slot is given up. A joiner may be far behind for a moment. */
static uint64_t scan(struct um_smx_writer *writer)
{
    uint64_t least = UINT64_MAX;
    writer->laggard = -1;
    for (uint32_t i = 0; i < writer->slot_count; i++) {
        struct um_shm_slot *slot = &writer->slots[i];
        uint32_t state = atomic_load_explicit(&slot->in_use, memory_order_acquire);
        if (state != UM_SHM_SLOT_ACTIVE && state != UM_SHM_SLOT_READING) {
            continue;
        }
        uint64_t pos = atomic_load_explicit(&slot->read_pos, memory_order_acquire);
        if (pos > writer->published || (state == UM_SHM_SLOT_READING && writer->published - pos > writer->ring_len)) {
            atomic_store_explicit(&slot->in_use, UM_SHM_SLOT_FREE, memory_order_release);
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

enum um_smx_claim um_smx_refill(struct um_smx_writer *writer, size_t len)
{
    uint64_t size = um_smx_record_size(writer->align, len);
    uint64_t offset = writer->claimed & writer->mask;
    uint64_t pad = offset + size > writer->ring_len ? writer->ring_len - offset : 0;
    uint64_t end = writer->claimed + pad + size + UM_SMX_RECORD_HEADER;
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
    return end <= limit ? UM_SMX_CLAIMED : UM_SMX_FULL;
}

void um_smx_pad(struct um_smx_writer *writer, uint64_t size)
{
    struct um_smx_record *record = um_smx_at(writer->ring, writer->claimed & writer->mask);
    um_smx_append(writer, record, um_smx_word(UM_SMX_PAD, size), size);
}

/* ---- cancelling ---- */

static uint32_t outstanding_word(const struct um_smx_writer *writer, uint64_t pos)
{
    if (pos == writer->published) {
        return writer->first_commit;
    }
    return atomic_load_explicit(&um_smx_at(writer->ring, pos & writer->mask)->commit, memory_order_relaxed);
}

static uint64_t word_size(uint64_t align, uint32_t word)
{
    uint32_t len = word & UM_SMX_LENGTH_MASK;
    return word >> UM_SMX_TYPE_SHIFT == UM_SMX_PAD ? len : um_smx_record_size(align, len);
}

static bool is_data_of(const struct um_smx_writer *writer, uint64_t pos, uint32_t word, uint32_t topic_idx)
{
    const struct um_smx_record *record = um_smx_at(writer->ring, pos & writer->mask);
    return word >> UM_SMX_TYPE_SHIFT == UM_SMX_DATA &&
           atomic_load_explicit(&record->topic_idx, memory_order_relaxed) == topic_idx;
}

static void mark_cancelled(struct um_smx_writer *writer, uint64_t pos, uint32_t word)
{
    word = um_smx_word(UM_SMX_CANCELLED, word & UM_SMX_LENGTH_MASK);
    if (pos == writer->published) {
        writer->first_commit = word;
    } else {
        atomic_store_explicit(&um_smx_at(writer->ring, pos & writer->mask)->commit, word, memory_order_relaxed);
    }
}

uint32_t um_smx_cancel(struct um_smx_writer *writer, uint32_t topic_idx, uint64_t *bytes)
{
    uint32_t own = 0;
    *bytes = 0;
    for (uint64_t pos = writer->published; pos != writer->claimed;) {
        uint32_t word = outstanding_word(writer, pos);
        if (is_data_of(writer, pos, word, topic_idx)) {
            mark_cancelled(writer, pos, word);
            *bytes += word & UM_SMX_LENGTH_MASK;
            own++;
        }
        pos += word_size(writer->align, word);
    }
    writer->outstanding -= own;
    if (writer->outstanding == 0) { /* nobody else's: as if it had never been claimed */
        writer->claimed = writer->published;
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
        .align = segment->rec_align,
        .payload_max = segment->datagram_max - UM_SMX_RECORD_HEADER,
        .pos = start,
        .released = start,
        .release_step = segment->ring_len / 64,
        .slot = slot,
    };
}

/* One record that is not data. False: it is none at all. */
static bool pass_over(struct um_smx_reader *reader, uint32_t word)
{
    uint64_t offset = reader->pos & reader->mask;
    uint64_t size = word_size(reader->align, word);
    uint32_t type = word >> UM_SMX_TYPE_SHIFT;
    if (type == UM_SMX_PAD ? size != reader->ring_len - offset : size > reader->ring_len - offset) {
        return false;
    }
    if (type == UM_SMX_DATA && (word & UM_SMX_LENGTH_MASK) > reader->payload_max) {
        return false;
    }
    reader->unknown += type == UM_SMX_CONTROL || type > UM_SMX_CONTROL || type == 0;
    reader->pos += size;
    return true;
}

/* At most one ring in a call, so that a ring full of records that are no data cannot hold the thread. */
enum um_smx_read um_smx_next_slow(struct um_smx_reader *reader, struct um_smx_message *out)
{
    uint64_t most = reader->pos + reader->ring_len;
    while (reader->pos < most) {
        uint32_t word = um_smx_commit_at(reader);
        if (word == 0) {
            return UM_SMX_IDLE;
        }
        if (word >> UM_SMX_TYPE_SHIFT == UM_SMX_DATA) {
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
    uint32_t word;
    while (reader->pos < most && (word = um_smx_commit_at(reader)) != 0) {
        if (!pass_over(reader, word)) {
            return false;
        }
        if (um_smx_release_due(reader)) {
            um_smx_release(reader);
        }
    }
    um_smx_release(reader);
    atomic_store_explicit(&reader->slot->in_use, UM_SHM_SLOT_READING, memory_order_release);
    return true;
}
