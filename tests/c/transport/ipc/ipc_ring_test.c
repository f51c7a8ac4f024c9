/* The LBT-IPC ring alone, in plain memory: records of every size, both pacings, overruns found and never delivered,
 * damage found, a slow reader beside a fast source with checksums. */
#include "um_test.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <unistd.h>

#include "base/um_random.h"
#include "transport/ipc/um_ipc_ring.h"

#define DATAGRAM_MAX 1000u
#define RING_LEN 8192u

/* A segment without a file. */
struct memory {
    struct um_shm_segment segment;
    struct um_shm_header *header;
    struct um_shm_slot *slots;
    uint8_t *ring;
};

static void memory_open(struct memory *m, bool waits)
{
    memset(m, 0, sizeof *m);
    m->header = aligned_alloc(4096, sizeof *m->header);
    m->slots = aligned_alloc(4096, 16 * sizeof *m->slots);
    m->ring = aligned_alloc(4096, RING_LEN);
    memset(m->header, 0, sizeof *m->header);
    memset(m->slots, 0, 16 * sizeof *m->slots);
    memset(m->ring, 0xee, RING_LEN);
    m->segment.header = m->header;
    m->segment.slots = m->slots;
    m->segment.ring = m->ring;
    m->segment.ring_len = RING_LEN;
    m->segment.max_receivers = 4;
    m->segment.datagram_max = DATAGRAM_MAX;
    m->segment.flags = waits ? UM_SHM_FLAG_RECEIVER_PACED : 0;
}

static void memory_close(struct memory *m)
{
    free(m->header);
    free(m->slots);
    free(m->ring);
}

/* Payload of record n: its number, a length of its own, bytes that depend on both, a checksum over all. */
static uint32_t length_of(uint64_t n)
{
    return 16 + (uint32_t)((n * 2654435761u) % (DATAGRAM_MAX - 15));
}

UM_TEST_OWN_BYTES static uint64_t checksum(const uint8_t *bytes, uint32_t len)
{
    uint64_t sum = 1469598103934665603ull;
    for (uint32_t i = 0; i < len; i++) {
        sum = (sum ^ bytes[i]) * 1099511628211ull;
    }
    return sum;
}

UM_TEST_OWN_BYTES static uint32_t compose(uint8_t *out, uint64_t n)
{
    uint32_t len = length_of(n);
    memcpy(out, &n, 8);
    for (uint32_t i = 16; i < len; i++) {
        out[i] = (uint8_t)(n * 31 + i);
    }
    memset(out + 8, 0, 8);
    uint64_t sum = checksum(out, len);
    memcpy(out + 8, &sum, 8);
    return len;
}

/* The number of a record, or UINT64_MAX when it is damaged. */
static uint64_t verify(uint8_t *bytes, uint32_t len)
{
    uint64_t n, sum;
    memcpy(&n, bytes, 8);
    memcpy(&sum, bytes + 8, 8);
    memset(bytes + 8, 0, 8);
    return len == length_of(n) && checksum(bytes, len) == sum ? n : UINT64_MAX;
}

static bool write_number(struct um_ipc_writer *writer, uint64_t n)
{
    uint8_t bytes[DATAGRAM_MAX];
    uint32_t len = compose(bytes, n);
    return um_ipc_write(writer, UM_IPC_DATA, bytes, len);
}

TEST(what_is_written_is_read_in_order_whatever_the_sizes)
{
    struct memory m;
    struct um_ipc_writer writer;
    struct um_ipc_reader reader;
    uint8_t out[DATAGRAM_MAX];
    uint32_t len;
    memory_open(&m, false);
    um_ipc_writer_init(&writer, &m.segment);
    CHECK(um_ipc_reader_init(&reader, &m.segment, 0));
    CHECK_EQ(um_ipc_read(&reader, out, &len), UM_IPC_READ_IDLE);
    for (uint64_t n = 0; n < 5000; n++) {
        CHECK(write_number(&writer, n));
        CHECK(um_ipc_readable(&reader));
        enum um_ipc_read got;
        while ((got = um_ipc_read(&reader, out, &len)) == UM_IPC_READ_CONTROL) { /* padding */
        }
        CHECK_EQ(got, UM_IPC_READ_DATA);
        CHECK_EQ(verify(out, len), n);
    }
    CHECK_EQ(um_ipc_read(&reader, out, &len), UM_IPC_READ_IDLE);
    CHECK_EQ(reader.overruns, 0);
    CHECK_EQ(reader.datagrams_overrun, 0);
    memory_close(&m);
}

TEST(a_session_message_is_passed_without_payload)
{
    struct memory m;
    struct um_ipc_writer writer;
    struct um_ipc_reader reader;
    uint8_t out[DATAGRAM_MAX];
    uint32_t len;
    memory_open(&m, false);
    um_ipc_writer_init(&writer, &m.segment);
    CHECK(um_ipc_reader_init(&reader, &m.segment, 0));
    CHECK(um_ipc_write(&writer, UM_IPC_SM, NULL, 0));
    CHECK(um_ipc_write(&writer, UM_IPC_DATA, "x", 1));
    CHECK_EQ(um_ipc_read(&reader, out, &len), UM_IPC_READ_CONTROL);
    CHECK_EQ(um_ipc_read(&reader, out, &len), UM_IPC_READ_DATA);
    CHECK_EQ(len, 1);
    CHECK_EQ(out[0], 'x');
    memory_close(&m);
}

TEST(source_paced_an_overtaken_reader_is_told_and_counts_what_it_missed)
{
    struct memory m;
    struct um_ipc_writer writer;
    struct um_ipc_reader reader;
    uint8_t out[DATAGRAM_MAX];
    uint32_t len;
    uint64_t first = UINT64_MAX, read = 0, next = 0, n = 0;
    memory_open(&m, false);
    um_ipc_writer_init(&writer, &m.segment);
    CHECK(um_ipc_reader_init(&reader, &m.segment, 0));
    struct um_rng rng;
    um_rng_seed(&rng, 7);
    for (int round = 0; round < 3000; round++) {
        for (uint64_t i = um_rng_range(&rng, 0, 60); i > 0; i--) {
            CHECK(write_number(&writer, n++));
        }
        enum um_ipc_read got;
        while ((got = um_ipc_read(&reader, out, &len)) != UM_IPC_READ_IDLE) {
            CHECK(got != UM_IPC_READ_CORRUPT);
            if (got == UM_IPC_READ_DATA) {
                uint64_t number = verify(out, len);
                CHECK(number != UINT64_MAX);
                CHECK(number >= next);
                next = number + 1;
                first = first == UINT64_MAX ? number : first;
                read++;
            }
        }
    }
    CHECK(reader.overruns > 100);
    CHECK(read > 1000);
    CHECK_EQ(first + read + reader.datagrams_overrun, next);
    memory_close(&m);
}

static void activate(struct memory *m, int slot, uint64_t pos)
{
    atomic_store(&m->slots[slot].read_pos, pos);
    atomic_store(&m->slots[slot].in_use, UM_SHM_SLOT_ACTIVE);
}

TEST(receiver_paced_the_source_stops_at_the_slowest_receiver_and_loses_nothing)
{
    struct memory m;
    struct um_ipc_writer writer;
    struct um_ipc_reader readers[2];
    uint8_t out[DATAGRAM_MAX];
    uint32_t len;
    uint64_t n = 0, next[2] = {0, 0};
    struct um_rng rng;
    memory_open(&m, true);
    um_rng_seed(&rng, 11);
    um_ipc_writer_init(&writer, &m.segment);
    for (int i = 0; i < 2; i++) {
        activate(&m, i, 0);
        CHECK(um_ipc_reader_init(&readers[i], &m.segment, 0));
    }
    int refused = 0;
    for (int round = 0; round < 4000; round++) {
        for (uint64_t i = um_rng_range(&rng, 0, 20); i > 0; i--) {
            if (write_number(&writer, n)) {
                n++;
            } else {
                refused++;
                int slow = um_ipc_slowest(&writer);
                CHECK(slow == 0 || slow == 1);
                CHECK(readers[slow].pos <= readers[1 - slow].pos);
            }
        }
        int who = (int)um_rng_range(&rng, 0, 1);
        for (uint64_t i = um_rng_range(&rng, 0, 20); i > 0; i--) {
            enum um_ipc_read got = um_ipc_read(&readers[who], out, &len);
            CHECK(got != UM_IPC_READ_CORRUPT && got != UM_IPC_READ_OVERRUN);
            if (got == UM_IPC_READ_DATA) {
                CHECK_EQ(verify(out, len), next[who]);
                next[who]++;
            }
            atomic_store(&m.slots[who].read_pos, readers[who].pos);
        }
    }
    CHECK(refused > 100);
    CHECK(next[0] > 1000 && next[1] > 1000);
    memory_close(&m);
}

TEST(receiver_paced_without_receivers_nothing_waits)
{
    struct memory m;
    struct um_ipc_writer writer;
    memory_open(&m, true);
    um_ipc_writer_init(&writer, &m.segment);
    for (uint64_t n = 0; n < 1000; n++) {
        CHECK(write_number(&writer, n));
    }
    CHECK_EQ(um_ipc_slowest(&writer), -1);
    memory_close(&m);
}

TEST(a_receiver_with_an_impossible_position_never_makes_the_source_leave_the_ring)
{
    struct memory m;
    struct um_ipc_writer writer;
    memory_open(&m, true);
    um_ipc_writer_init(&writer, &m.segment);
    struct um_rng rng;
    um_rng_seed(&rng, 3);
    activate(&m, 0, 0);
    uint64_t n = 0;
    for (int i = 0; i < 20000; i++) {
        uint64_t pos = um_rng_range(&rng, 0, 2) == 0 ? um_rng_u64(&rng) : writer.tail - um_rng_range(&rng, 0, RING_LEN);
        atomic_store(&m.slots[0].read_pos, pos);
        n += write_number(&writer, n);
        CHECK(writer.oldest <= writer.tail);
    }
    CHECK(n > 100);
    memory_close(&m);
}

/* Random bytes everywhere a reader looks: it must come to an end, inside the ring (the sanitizer watches). */
TEST(damage_anywhere_is_found_or_harmless)
{
    struct um_rng rng;
    um_rng_seed(&rng, 5);
    uint64_t corrupt = 0, data = 0;
    for (int round = 0; round < 3000; round++) {
        struct memory m;
        struct um_ipc_writer writer;
        struct um_ipc_reader reader;
        uint8_t out[DATAGRAM_MAX];
        uint32_t len;
        memory_open(&m, false);
        um_ipc_writer_init(&writer, &m.segment);
        for (uint64_t n = um_rng_range(&rng, 0, 40); n > 0; n--) {
            CHECK(write_number(&writer, n));
        }
        for (uint64_t i = um_rng_range(&rng, 1, 3); i > 0; i--) {
            uint64_t word = um_rng_range(&rng, 0, 1) ? um_rng_u64(&rng) : um_rng_range(&rng, 0, 2 * RING_LEN) * 8;
            switch (um_rng_range(&rng, 0, 3)) {
            case 0:
                atomic_store(&m.header->tail, word);
                break;
            case 1:
                atomic_store(&m.header->resync, word);
                break;
            case 2:
                atomic_store(&m.header->oldest, word);
                break;
            default:
                memcpy(m.ring + um_rng_range(&rng, 0, RING_LEN / 8 - 1) * 8, &word, 8);
            }
        }
        uint64_t start = um_rng_range(&rng, 0, 3) == 0 ? atomic_load(&m.header->tail) : 0;
        if (um_ipc_reader_init(&reader, &m.segment, start)) {
            enum um_ipc_read got = UM_IPC_READ_IDLE;
            for (int i = 0; i < 1000; i++) {
                got = um_ipc_read(&reader, out, &len);
                if (got == UM_IPC_READ_IDLE || got == UM_IPC_READ_CORRUPT) {
                    break;
                }
                CHECK(got != UM_IPC_READ_DATA || len <= DATAGRAM_MAX);
                data += got == UM_IPC_READ_DATA;
            }
            corrupt += got == UM_IPC_READ_CORRUPT;
        } else {
            CHECK(start % UM_IPC_ALIGN != 0);
        }
        memory_close(&m);
    }
    CHECK(corrupt > 100);
    CHECK(data > 100);
}

/* Two threads: the source never waits, the reader sleeps now and then. */
struct race {
    struct memory m;
    struct um_ipc_writer writer;
    atomic_bool stop;
    uint64_t written;
};

static void *race_source(void *arg)
{
    struct race *race = arg;
    while (!atomic_load_explicit(&race->stop, memory_order_relaxed)) {
        bool written = write_number(&race->writer, race->written);
        race->written += written;
        if (!written || race->written % 256 == 0) { /* the reader has its turn, also on a busy machine */
            sched_yield();
        }
    }
    return NULL;
}

static void run_race(bool waits, uint64_t wanted)
{
    struct race race = {0};
    struct um_ipc_reader reader;
    static uint8_t out[DATAGRAM_MAX + 8];
    uint32_t len;
    uint64_t first = UINT64_MAX, read = 0, next = 0;
    pthread_t thread;
    memory_open(&race.m, waits);
    um_ipc_writer_init(&race.writer, &race.m.segment);
    CHECK(um_ipc_reader_init(&reader, &race.m.segment, 0));
    activate(&race.m, 0, 0);
    CHECK_EQ(pthread_create(&thread, NULL, race_source, &race), 0);
    while (read < wanted) {
        enum um_ipc_read got = um_ipc_read(&reader, out, &len);
        if (got == UM_IPC_READ_CORRUPT) {
            break;
        }
        if (got == UM_IPC_READ_IDLE) {
            sched_yield();
        }
        if (got == UM_IPC_READ_DATA) {
            uint64_t n = verify(out, len);
            if (n == UINT64_MAX || n < next || (waits && n != next)) {
                break;
            }
            next = n + 1;
            first = first == UINT64_MAX ? n : first;
            read++;
        }
        if (waits) {
            atomic_store_explicit(&race.m.slots[0].read_pos, reader.pos, memory_order_release);
        }
    }
    atomic_store(&race.stop, true);
    pthread_join(thread, NULL);
    CHECK_EQ(read, wanted);
    if (waits) {
        CHECK_EQ(reader.overruns, 0);
    }
    CHECK_EQ(first + read + reader.datagrams_overrun, next);
    memory_close(&race.m);
}

TEST(a_reader_beside_a_source_that_never_waits_sees_losses_but_no_damage)
{
    run_race(false, 50000);
}

TEST(a_reader_beside_a_source_that_waits_sees_everything)
{
    run_race(true, 50000);
}

TEST(a_ring_holds_two_of_the_longest_records)
{
    CHECK_EQ(um_ipc_ring_len(25165824, 65535), 25165824);
    CHECK_EQ(um_ipc_ring_len(65536, 1000), 65536);
    CHECK_EQ(um_ipc_ring_len(65537, 1000), 69632);
    CHECK(um_ipc_ring_len(65536, 65535) >= 2 * 65568);
    CHECK_EQ(um_ipc_ring_len(65536, 65535) % 4096, 0);
    CHECK_EQ(um_ipc_ring_len(UM_SHM_WINDOW_MAX, 65535), UM_SHM_WINDOW_MAX);
}
