/* The ring of LBT-SMX on plain memory: records, padding, limits, batches,
 * cancelling, joiners, cursors that no reader writes, and what a reader does with
 * bytes that are no records. */
#include "um_test.h"

#include <pthread.h>
#include <sched.h>

#include "base/um_mem.h"
#include "base/um_random.h"
#include "transport/smx/um_smx_ring.h"
#include "um_test_shm.h"

#define SLOTS 4

/* A segment in private memory, with its two ends. */
struct fixture {
    struct um_shm_header *header;
    struct um_shm_slot *slots;
    uint8_t *ring;
    struct um_smx_writer writer;
    struct um_shm_segment segment; /* as a reader sees it */
};

static void fixture_init(struct fixture *f, uint64_t ring_len, uint32_t datagram_max)
{
    memset(f, 0, sizeof *f);
    f->header = um_aligned_alloc(4096, sizeof *f->header);
    f->slots = um_aligned_alloc(4096, SLOTS * 4096);
    f->ring = um_aligned_alloc(4096, ring_len < 4096 ? 4096 : ring_len);
    memset(f->header, 0, sizeof *f->header);
    memset(f->slots, 0, SLOTS * sizeof *f->slots);
    memset(f->ring, 0, ring_len);
    f->header->ring_len = ring_len;
    f->header->datagram_max = datagram_max;
    f->header->max_receivers = SLOTS;
    f->header->rec_align = ring_len >= 4096 ? 64 : 16;
    um_smx_writer_init(&f->writer, f->header, f->slots, f->ring);
    f->segment = (struct um_shm_segment){.ring = f->ring,
                                         .ring_len = ring_len,
                                         .rec_align = f->header->rec_align,
                                         .datagram_max = datagram_max,
                                         .header = f->header,
                                         .slots = f->slots};
}

static void fixture_fini(struct fixture *f)
{
    um_free(f->header);
    um_free(f->slots);
    um_free(f->ring);
}

/* What um_shm_slot_take() does after it has the locks. */
static void join(struct fixture *f, int slot, struct um_smx_reader *reader)
{
    struct um_shm_slot *s = &f->slots[slot];
    atomic_store(&s->read_pos, atomic_load(&f->header->tail));
    atomic_store(&s->in_use, UM_SHM_SLOT_ACTIVE);
    atomic_thread_fence(memory_order_seq_cst);
    uint64_t start = atomic_load(&f->header->tail);
    atomic_store(&s->read_pos, start);
    um_smx_reader_init(reader, &f->segment, s, start);
}

/* A message of `len` bytes, each of the value of its number; NULL room is looked for once. */
static enum um_smx_claim put(struct fixture *f, uint32_t sqn, size_t len)
{
    struct um_smx_record *record = um_smx_claim(&f->writer, len, 7, sqn);
    if (record == NULL) {
        enum um_smx_claim rc = um_smx_refill(&f->writer, len);
        if (rc != UM_SMX_CLAIMED) {
            return rc;
        }
        record = um_smx_claim(&f->writer, len, 7, sqn);
    }
    memset(record->payload, (int)sqn, len);
    return UM_SMX_CLAIMED;
}

static enum um_smx_claim publish(struct fixture *f, uint32_t sqn, size_t len)
{
    enum um_smx_claim rc = put(f, sqn, len);
    if (rc == UM_SMX_CLAIMED) {
        um_smx_publish(&f->writer);
    }
    return rc;
}

static bool all_bytes(const struct um_smx_message *m)
{
    for (uint32_t i = 0; i < m->len; i++) {
        if (m->data[i] != (uint8_t)m->sqn) {
            return false;
        }
    }
    return true;
}

TEST(messages_of_every_length_come_out_as_they_went_in_over_many_laps)
{
    static const uint64_t rings[] = {64, 128, 1024, 4096, 65536};
    for (size_t r = 0; r < sizeof rings / sizeof rings[0]; r++) {
        struct fixture f;
        struct um_smx_reader reader;
        struct um_smx_message m;
        fixture_init(&f, rings[r], (uint32_t)rings[r] / 2);
        join(&f, 0, &reader);
        CHECK(um_smx_reader_skip(&reader));
        uint32_t longest = f.writer.payload_max;
        for (uint32_t i = 0; i < 2000; i++) {
            size_t len = longest == 0 ? 0 : (i * 7919u) % (longest + 1);
            CHECK_EQ(publish(&f, i, len), UM_SMX_CLAIMED);
            CHECK_EQ(um_smx_next(&reader, &m), UM_SMX_MESSAGE);
            CHECK_EQ(m.len, len);
            CHECK_EQ(m.sqn, i);
            CHECK_EQ(m.topic_idx, 7);
            CHECK(all_bytes(&m));
            CHECK_EQ(um_smx_next(&reader, &m), UM_SMX_IDLE);
            um_smx_release(&reader);
        }
        fixture_fini(&f);
    }
}

TEST(a_full_ring_refuses_until_the_reader_releases)
{
    struct fixture f;
    struct um_smx_reader reader;
    struct um_smx_message m;
    fixture_init(&f, 4096, 512);
    join(&f, 0, &reader);
    CHECK(um_smx_reader_skip(&reader));
    uint32_t sent = 0;
    while (publish(&f, sent, 48) == UM_SMX_CLAIMED) {
        sent++;
    }
    CHECK_EQ(sent, 4096 / 64 - 1); /* one record stays free for the commit word that follows */
    CHECK_EQ(f.writer.laggard, 0);
    CHECK_EQ(publish(&f, sent, 48), UM_SMX_FULL);
    for (uint32_t i = 0; i < sent; i++) {
        CHECK_EQ(um_smx_next(&reader, &m), UM_SMX_MESSAGE);
        CHECK_EQ(m.sqn, i);
        CHECK(all_bytes(&m));
    }
    CHECK_EQ(publish(&f, sent, 48), UM_SMX_FULL); /* read, but still in the reader's hands */
    um_smx_release(&reader);
    CHECK_EQ(publish(&f, sent, 48), UM_SMX_CLAIMED);
    fixture_fini(&f);
}

TEST(a_batch_is_invisible_until_it_is_published_and_then_whole)
{
    struct fixture f;
    struct um_smx_reader reader;
    struct um_smx_message m;
    fixture_init(&f, 4096, 512);
    join(&f, 0, &reader);
    CHECK(um_smx_reader_skip(&reader));
    for (uint32_t lap = 0; lap < 50; lap++) {
        for (uint32_t i = 0; i < 5; i++) {
            CHECK_EQ(put(&f, lap * 5 + i, 100 + i), UM_SMX_CLAIMED);
            CHECK_EQ(um_smx_next(&reader, &m), UM_SMX_IDLE);
        }
        um_smx_publish(&f.writer);
        for (uint32_t i = 0; i < 5; i++) {
            CHECK_EQ(um_smx_next(&reader, &m), UM_SMX_MESSAGE);
            CHECK_EQ(m.sqn, lap * 5 + i);
            CHECK(all_bytes(&m));
        }
        CHECK_EQ(um_smx_next(&reader, &m), UM_SMX_IDLE);
        um_smx_release(&reader);
    }
    fixture_fini(&f);
}

TEST(buffers_that_fill_the_window_by_themselves_are_an_error_and_no_hang)
{
    struct fixture f;
    fixture_init(&f, 4096, 2048);
    CHECK_EQ(put(&f, 0, 2032), UM_SMX_CLAIMED);
    CHECK_EQ(put(&f, 1, 1000), UM_SMX_CLAIMED);
    CHECK_EQ(put(&f, 2, 2032), UM_SMX_TOO_MANY);
    um_smx_publish(&f.writer);
    CHECK_EQ(put(&f, 2, 2032), UM_SMX_CLAIMED);
    fixture_fini(&f);
}

TEST(cancelled_buffers_are_as_if_never_acquired_or_passed_over_among_others)
{
    struct fixture f;
    struct um_smx_reader reader;
    struct um_smx_message m;
    uint64_t bytes;
    fixture_init(&f, 4096, 512);
    join(&f, 0, &reader);
    CHECK(um_smx_reader_skip(&reader));
    for (int i = 0; i < 3; i++) {
        CHECK(um_smx_claim(&f.writer, 10, 7, 0) != NULL);
    }
    uint64_t before = f.writer.published;
    CHECK_EQ(um_smx_cancel(&f.writer, 7, &bytes), 3);
    CHECK_EQ(bytes, 30);
    CHECK_EQ(f.writer.claimed, before);
    um_smx_publish(&f.writer);
    CHECK_EQ(um_smx_next(&reader, &m), UM_SMX_IDLE);
    CHECK(um_smx_claim(&f.writer, 10, 7, 0) != NULL);
    CHECK(um_smx_claim(&f.writer, 20, 8, 5) != NULL);
    CHECK(um_smx_claim(&f.writer, 30, 7, 1) != NULL);
    CHECK_EQ(um_smx_cancel(&f.writer, 7, &bytes), 2);
    CHECK_EQ(um_smx_cancel(&f.writer, 7, &bytes), 0);
    um_smx_publish(&f.writer);
    CHECK_EQ(um_smx_next(&reader, &m), UM_SMX_MESSAGE);
    CHECK_EQ(m.topic_idx, 8);
    CHECK_EQ(m.len, 20);
    CHECK_EQ(um_smx_next(&reader, &m), UM_SMX_IDLE);
    CHECK_EQ(reader.unknown, 0);
    fixture_fini(&f);
}

TEST(a_joiner_begins_with_what_is_published_after_it_however_old_the_tail)
{
    struct fixture f;
    struct um_smx_reader reader;
    struct um_smx_message m;
    fixture_init(&f, 65536, 1024);
    for (uint32_t i = 0; i < 3000; i++) { /* without receivers nothing holds the writer up */
        CHECK_EQ(publish(&f, i, 100), UM_SMX_CLAIMED);
    }
    CHECK(atomic_load(&f.header->tail) < f.writer.published);
    join(&f, 2, &reader);
    CHECK_EQ(atomic_load(&f.slots[2].in_use), UM_SHM_SLOT_ACTIVE);
    CHECK(um_smx_reader_skip(&reader));
    CHECK_EQ(atomic_load(&f.slots[2].in_use), UM_SHM_SLOT_READING);
    CHECK_EQ(reader.pos, f.writer.published);
    CHECK_EQ(um_smx_next(&reader, &m), UM_SMX_IDLE);
    CHECK_EQ(publish(&f, 3000, 100), UM_SMX_CLAIMED);
    CHECK_EQ(um_smx_next(&reader, &m), UM_SMX_MESSAGE);
    CHECK_EQ(m.sqn, 3000);
    fixture_fini(&f);
}

TEST(a_cursor_that_no_reader_writes_costs_its_slot_and_nothing_else)
{
    struct fixture f;
    struct um_smx_reader good, bad;
    fixture_init(&f, 4096, 512);
    join(&f, 0, &good);
    join(&f, 1, &bad);
    CHECK(um_smx_reader_skip(&good));
    CHECK(um_smx_reader_skip(&bad));
    atomic_store(&f.slots[1].read_pos, UINT64_MAX - 100); /* ahead of what is published */
    uint32_t sent = 0;
    while (publish(&f, sent, 48) == UM_SMX_CLAIMED) {
        sent++;
    }
    CHECK_EQ(sent, 63); /* the good one still protects its messages */
    CHECK_EQ(f.writer.evicted, 1);
    CHECK_EQ(atomic_load(&f.slots[1].in_use), UM_SHM_SLOT_FREE);
    fixture_fini(&f);
}

TEST(a_joiner_far_behind_holds_the_writer_up_but_keeps_its_slot)
{
    struct fixture f;
    fixture_init(&f, 4096, 512);
    for (uint32_t i = 0; i < 1000; i++) {
        CHECK_EQ(publish(&f, i, 48), UM_SMX_CLAIMED);
    }
    atomic_store(&f.slots[0].read_pos, 0); /* read the tail long ago, then lost the processor */
    atomic_store(&f.slots[0].in_use, UM_SHM_SLOT_ACTIVE);
    uint32_t sent = 0;
    while (publish(&f, sent, 48) == UM_SMX_CLAIMED) {
        sent++;
    }
    CHECK(sent <= 17); /* at most what the last scan had allowed */
    CHECK_EQ(f.writer.evicted, 0);
    CHECK_EQ(f.writer.laggard, 0);
    atomic_store(&f.slots[0].read_pos, f.writer.published);
    CHECK_EQ(publish(&f, 0, 48), UM_SMX_CLAIMED);
    fixture_fini(&f);
}

/* Records of every kind of nonsense: the reader stays inside the ring and either passes over or says corrupt. */
TEST(random_bytes_in_the_ring_never_take_the_reader_outside)
{
    struct um_rng rng;
    um_rng_seed(&rng, 20);
    struct fixture f;
    fixture_init(&f, 4096, 512);
    for (int round = 0; round < 20000; round++) {
        struct um_smx_reader reader;
        struct um_smx_message m;
        for (int i = 0; i < 64; i++) {
            uint64_t word = um_rng_u32(&rng) | (uint64_t)um_rng_u32(&rng) << 32;
            switch (um_rng_u32(&rng) % 4) {
            case 0:
                word = 0;
                break;
            case 1:
                word = um_smx_word(1 + word % 4, um_rng_u32(&rng) % 600, (uint32_t)(word >> 32));
                break;
            case 2:
                word &= 0xf00000ff;
                break;
            default:
                break;
            }
            atomic_store(&um_smx_at(f.ring, (uint64_t)i * 64)->commit, word);
        }
        join(&f, 0, &reader);
        reader.pos = um_rng_range(&rng, 0, 63) * 64;
        for (int i = 0; i < 200; i++) {
            enum um_smx_read rc = um_smx_next(&reader, &m);
            if (rc != UM_SMX_MESSAGE) {
                break;
            }
            CHECK(m.data >= f.ring + 16 && m.data + m.len <= f.ring + 4096);
            CHECK(m.len <= 496);
            CHECK_EQ(reader.pos % 64, 0);
        }
        um_smx_reader_skip(&reader);
        CHECK(reader.pos % 64 == 0);
    }
    fixture_fini(&f);
}

/* ---- threads ---- */

#define THREADED_MESSAGES (UM_TEST_SANITIZED ? 200000u : 3000000u)

struct reading {
    struct um_smx_reader reader;
    uint32_t next;
    bool wrong;
};

static void *read_all(void *arg)
{
    struct reading *r = arg;
    struct um_smx_message m;
    unsigned idle = 0;
    while (r->next < THREADED_MESSAGES && !r->wrong) {
        enum um_smx_read rc = um_smx_next(&r->reader, &m);
        if (rc == UM_SMX_IDLE) {
            um_smx_release(&r->reader);
            if (++idle % 64 == 0) {
                sched_yield();
            }
            continue;
        }
        r->wrong = rc != UM_SMX_MESSAGE || m.sqn != r->next || !all_bytes(&m);
        r->next++;
        if (um_smx_release_due(&r->reader)) {
            um_smx_release(&r->reader);
        }
    }
    um_smx_release(&r->reader);
    return NULL;
}

TEST(three_readers_get_every_message_of_a_writer_that_runs_as_it_can)
{
    struct fixture f;
    struct reading r[3];
    pthread_t threads[3];
    fixture_init(&f, 16384, 256);
    for (int i = 0; i < 3; i++) {
        r[i] = (struct reading){0};
        join(&f, i, &r[i].reader);
        CHECK(um_smx_reader_skip(&r[i].reader));
        pthread_create(&threads[i], NULL, read_all, &r[i]);
    }
    for (uint32_t i = 0; i < THREADED_MESSAGES; i++) {
        unsigned batch = i % 5;
        while (put(&f, i, (i * 31) % 200) != UM_SMX_CLAIMED) {
            um_smx_publish(&f.writer);
            sched_yield();
        }
        if (batch != 1 && batch != 2) {
            um_smx_publish(&f.writer);
        }
    }
    um_smx_publish(&f.writer);
    for (int i = 0; i < 3; i++) {
        pthread_join(threads[i], NULL);
        CHECK(!r[i].wrong);
        CHECK_EQ(r[i].next, THREADED_MESSAGES);
    }
    fixture_fini(&f);
}

/* The join rule: one reader that comes and goes. Only one: a second would keep the writer near. */
struct joining {
    struct fixture *f;
    atomic_bool stop, wrong;
    atomic_ulong joins;
    unsigned long messages;
};

static void *join_and_leave(void *arg)
{
    struct joining *j = arg;
    struct um_smx_message m;
    while (!atomic_load(&j->stop) && !j->wrong) {
        struct um_smx_reader reader;
        join(j->f, 0, &reader);
        for (int i = 0; i < 40 && !j->wrong; i++) {
            enum um_smx_read rc = um_smx_next(&reader, &m);
            if (rc == UM_SMX_MESSAGE) {
                j->wrong = !all_bytes(&m) || m.topic_idx != 7;
                j->messages++;
                um_smx_release(&reader);
            } else {
                j->wrong = rc == UM_SMX_CORRUPT;
            }
        }
        atomic_store_explicit(&j->f->slots[0].in_use, UM_SHM_SLOT_FREE, memory_order_release);
        j->joins++;
    }
    return NULL;
}

TEST(one_reader_joining_and_leaving_all_the_time_sees_only_whole_messages)
{
    struct fixture f;
    pthread_t thread;
    fixture_init(&f, 16384, 256);
    struct joining j = {.f = &f};
    pthread_create(&thread, NULL, join_and_leave, &j);
    for (uint32_t i = 0; (i < THREADED_MESSAGES * 2 || j.joins <= 10) && !j.wrong; i++) {
        while (publish(&f, i, 8 + i % 180) != UM_SMX_CLAIMED) {
            sched_yield();
        }
    }
    atomic_store(&j.stop, true);
    pthread_join(thread, NULL);
    CHECK(!j.wrong);
    CHECK(j.messages > 0);
    fixture_fini(&f);
}
