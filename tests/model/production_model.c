/* The production code of the rings and of the words that sources and receivers share, run under weak memory: its very
 * sources are included here, with the atomics replaced. Every ordering in them is needed by one of these scenarios;
 * tools/mutate_fences.py takes away one after the other and expects a failure each time. The models beside this one
 * explore smaller copies of the same steps, but every execution of those. */
#include "um_test.h"

#include "virtual_atomics.h"

#define WORDWISE 1 /* bytes that are read while they are overwritten go by words, as the standard would have it */
#include "transport/ipc/um_ipc_ring.c"
#undef WORDWISE
#define scan smx_scan
#include "transport/smx/um_smx_ring.c"
#undef scan
#include "transport/shm/um_shm_slots.c"

/* Runs in which every ordering that is taken away is found many times over. */
#define RUNS 20000

#define RECEIVERS 2
#define RING 256

static _Alignas(4096) struct um_shm_header header;
static _Alignas(256) struct um_shm_slot slots[RECEIVERS];
static _Alignas(64) uint8_t ring[RING];
static struct um_shm_segment segment;

/* ---- what the slots need of the rest of the library ---- */

int um_error(int number, const char *id, const char *fmt, ...)
{
    return -1;
}

int um_shm_refuse(const struct um_shm_segment *from, const char *what, unsigned long long value)
{
    return -1;
}

uint64_t um_shm_start_time(uint32_t pid)
{
    return 1;
}

bool um_shm_lock_try(const struct um_shm_segment *of, unsigned byte)
{
    return vt_lock_try(byte);
}

int um_shm_lock_wait(const struct um_shm_segment *of, unsigned byte)
{
    vt_lock_wait(byte);
    return 0;
}

void um_shm_lock_give(const struct um_shm_segment *of, unsigned byte)
{
    vt_lock_give(byte);
}

static void segment_begin(uint32_t align, uint32_t datagram_max, uint32_t flags)
{
    memset(&header, 0, sizeof header);
    memset(slots, 0, sizeof slots);
    memset(ring, 0, sizeof ring);
    header.max_receivers = RECEIVERS;
    header.rec_align = align;
    header.ring_len = RING;
    header.datagram_max = datagram_max;
    atomic_init(&header.state, UM_SHM_READY);
    segment = (struct um_shm_segment){.max_receivers = RECEIVERS,
                                      .rec_align = align,
                                      .datagram_max = datagram_max,
                                      .flags = flags,
                                      .ring_len = RING,
                                      .header = &header,
                                      .slots = slots,
                                      .ring = ring};
}

/* What message n says in each of its words. */
static uint64_t content(uint32_t n)
{
    return 1000003ull * (n + 1);
}

/* ---- the ring of LBT-SMX ---- */

#define SMX_MESSAGES 24
#define OWN_TOPIC 1
#define OTHER_TOPIC 2

static struct um_smx_writer smx_writer;

static void smx_begin(void)
{
    segment_begin(16, 48, UM_SHM_FLAG_RECEIVER_PACED);
    um_smx_writer_init(&smx_writer, &header, slots, ring);
}

/* One or two words of payload: the records have two sizes, so that the ring's end is padded now and then. */
static size_t smx_length(uint32_t n)
{
    return n % 3 == 0 ? 24 : 8;
}

static uint8_t *smx_claim(size_t len, uint32_t topic, uint32_t sqn)
{
    struct um_smx_record *record;
    while ((record = um_smx_claim(&smx_writer, len, topic, sqn)) == NULL) {
        switch (um_smx_refill(&smx_writer, len)) {
        case UM_SMX_CLAIMED:
            break;
        case UM_SMX_FULL:
            vt_idle();
            break;
        case UM_SMX_TOO_MANY:
            um_smx_publish(&smx_writer);
        }
    }
    return record->payload;
}

static void smx_write(uint32_t n)
{
    size_t len = smx_length(n);
    uint8_t *payload = smx_claim(len, OWN_TOPIC, n);
    for (size_t i = 0; i < len; i += 16) {
        vt_plain_store(payload + i, content(n));
    }
}

/* Single messages, batches, and batches whose first buffer was given back. */
static void smx_source(void)
{
    uint64_t bytes;
    for (uint32_t n = 0; n < SMX_MESSAGES;) {
        unsigned kind = vt_random(4);
        if (kind == 0) {
            smx_claim(8, OTHER_TOPIC, 0);
        }
        smx_write(n++);
        if (kind == 1 && n < SMX_MESSAGES) {
            smx_write(n++);
        }
        if (kind == 0) {
            um_smx_cancel(&smx_writer, OTHER_TOPIC, &bytes);
        }
        um_smx_publish(&smx_writer);
    }
    um_shm_set_state(&header, UM_SHM_CLOSED);
}

static void smx_check(const struct um_smx_message *message)
{
    if (message->topic_idx != OWN_TOPIC || message->len != smx_length(message->sqn)) {
        vt_fail("a message is not what was sent");
    }
    for (size_t i = 0; i < message->len; i += 16) {
        if (vt_plain_load(message->data + i) != content(message->sqn)) {
            vt_fail("a message does not say what was sent");
        }
    }
}

/* Receives up to `most` messages, in order. False: the source has closed, and everything was read. */
static bool smx_receive(struct um_smx_reader *reader, uint32_t *next, unsigned most)
{
    struct um_smx_message message;
    bool any = *next != UINT32_MAX;
    for (unsigned count = 0; count < most;) {
        bool closed = !um_shm_is_ready(&header);
        switch (um_smx_next(reader, &message)) {
        case UM_SMX_MESSAGE:
            smx_check(&message);
            if (any && message.sqn != *next) {
                vt_fail("a message is missing, or comes twice");
            }
            any = true;
            *next = message.sqn + 1;
            count++;
            if (vt_random(2) == 0) {
                um_smx_release(reader);
            }
            break;
        case UM_SMX_CORRUPT:
            vt_fail("a receiver takes the ring for damaged");
            break;
        case UM_SMX_IDLE:
            um_smx_release(reader);
            if (closed) {
                return false;
            }
            vt_idle();
        }
    }
    return true;
}

static int smx_join(struct um_smx_reader *reader)
{
    uint64_t start;
    int slot = um_shm_slot_take(&segment, 0, 7, &start);
    if (slot < 0) {
        return -1;
    }
    um_smx_reader_init(reader, &segment, &slots[slot], start);
    if (!um_smx_reader_skip(reader)) {
        vt_fail("a receiver that joins takes the ring for damaged");
    }
    return slot;
}

static void smx_faithful(void)
{
    struct um_smx_reader reader;
    uint32_t next = UINT32_MAX;
    if (smx_join(&reader) < 0) {
        return; /* closed before it came */
    }
    while (smx_receive(&reader, &next, 100)) {
    }
    if (next != UINT32_MAX && next != SMX_MESSAGES) {
        vt_fail("the last messages are missing");
    }
}

/* Joins, reads some, leaves without a word about how far it was, joins again. */
static void smx_restless(void)
{
    for (int i = 0; i < 3; i++) {
        struct um_smx_reader reader;
        uint32_t next = UINT32_MAX;
        int slot = smx_join(&reader);
        bool open = slot >= 0 && smx_receive(&reader, &next, 1 + vt_random(6));
        if (slot >= 0) {
            um_shm_slot_leave(&segment, slot);
        }
        if (!open) {
            return;
        }
    }
}

static void smx_end(void)
{
    if (smx_writer.evicted != 0) {
        fprintf(stderr, "%u receivers were taken for mad\n", smx_writer.evicted);
    }
    CHECK_EQ(smx_writer.evicted, 0);
}

TEST(f26_smx_every_message_arrives_whole_and_in_order)
{
    static const struct vt_scenario scenario = {
        "LBT-SMX", 3, smx_begin, {smx_source, smx_faithful, smx_restless}, smx_end};
    CHECK(vt_explore(&scenario, RUNS) == NULL);
}

/* ---- the ring of LBT-IPC ---- */

#define IPC_RECORDS 20
#define IPC_DATAGRAM 64

static struct um_ipc_writer ipc_writer;

static void overrun_begin(void)
{
    segment_begin(32, IPC_DATAGRAM, 0);
    um_ipc_writer_init(&ipc_writer, &segment);
}

static void paced_begin(void)
{
    segment_begin(32, IPC_DATAGRAM, UM_SHM_FLAG_RECEIVER_PACED);
    um_ipc_writer_init(&ipc_writer, &segment);
    vt_plain_range(ring, ring + sizeof ring); /* nobody may look while something is written */
}

static uint32_t ipc_length(uint32_t n)
{
    return n % 3 == 0 ? 48 : 16;
}

static void ipc_source(void)
{
    for (uint32_t n = 0; n < IPC_RECORDS; n++) {
        uint64_t words[IPC_DATAGRAM / 8];
        for (size_t i = 0; i < IPC_DATAGRAM / 8; i++) {
            words[i] = content(n);
        }
        if (vt_random(8) == 0 && !um_ipc_write(&ipc_writer, UM_IPC_SM, NULL, 0)) {
            vt_idle();
        }
        while (!um_ipc_write(&ipc_writer, UM_IPC_DATA, words, ipc_length(n))) {
            vt_idle();
        }
    }
    um_shm_set_state(&header, UM_SHM_CLOSED);
}

static uint32_t ipc_check(const uint64_t *words, uint32_t len)
{
    uint32_t n = (uint32_t)(words[0] / 1000003) - 1;
    for (uint32_t i = 0; i < len / 8; i++) {
        if (words[i] != content(n)) {
            vt_fail("a damaged record passes");
        }
    }
    if (len != ipc_length(n)) {
        vt_fail("a record of another length passes");
    }
    return n;
}

/* As smx_receive(). `gaps`: the source does not wait. */
static bool ipc_receive(struct um_ipc_reader *reader, int slot, uint32_t *next, unsigned most, bool gaps)
{
    uint64_t words[IPC_DATAGRAM / 8];
    uint32_t len, n;
    bool any = *next != UINT32_MAX;
    for (unsigned count = 0; count < most;) {
        bool closed = !um_shm_is_ready(&header);
        switch (um_ipc_read(reader, words, &len)) {
        case UM_IPC_READ_DATA:
            n = ipc_check(words, len);
            if (any && (gaps ? n < *next : n != *next)) {
                vt_fail("a record is missing, or comes twice");
            }
            any = true;
            *next = n + 1;
            count++;
            break;
        case UM_IPC_READ_CONTROL:
            break;
        case UM_IPC_READ_OVERRUN:
            if (!gaps) {
                vt_fail("a source that waits overtakes a receiver");
            }
            break;
        case UM_IPC_READ_CORRUPT:
            vt_fail("a receiver takes the ring for damaged");
            break;
        case UM_IPC_READ_IDLE:
            um_ipc_release(reader, &slots[slot]);
            if (closed) {
                return false;
            }
            vt_idle();
        }
        if (vt_random(2) == 0) {
            um_ipc_release(reader, &slots[slot]);
        }
    }
    return true;
}

static int ipc_join(struct um_ipc_reader *reader)
{
    uint64_t start;
    int slot = um_shm_slot_take(&segment, 0, 7, &start);
    if (slot >= 0 && !um_ipc_reader_init(reader, &segment, start)) {
        vt_fail("a receiver begins nowhere");
    }
    return slot;
}

static void ipc_faithful(bool gaps)
{
    struct um_ipc_reader reader;
    uint32_t next = UINT32_MAX;
    int slot = ipc_join(&reader);
    if (slot < 0) {
        return;
    }
    um_shm_slot_reading(&slots[slot]);
    while (ipc_receive(&reader, slot, &next, 100, gaps)) {
    }
    /* Also the last one, however often it was overtaken: else nothing would tell that something is missing. */
    if ((next != UINT32_MAX || reader.overruns > 0) && next != IPC_RECORDS) {
        vt_fail("the last records are missing");
    }
}

static void overrun_faithful(void)
{
    ipc_faithful(true);
}

static void paced_faithful(void)
{
    ipc_faithful(false);
}

static void paced_restless(void)
{
    for (int i = 0; i < 3; i++) {
        struct um_ipc_reader reader;
        uint32_t next = UINT32_MAX;
        int slot = ipc_join(&reader);
        bool open = slot >= 0 && ipc_receive(&reader, slot, &next, 1 + vt_random(4), false);
        if (slot >= 0) {
            um_shm_slot_leave(&segment, slot);
        }
        if (!open) {
            return;
        }
    }
}

TEST(f26_ipc_a_receiver_that_is_overtaken_reads_no_damage_and_the_last_record)
{
    static const struct vt_scenario scenario = {
        "LBT-IPC, source-paced", 3, overrun_begin, {ipc_source, overrun_faithful, overrun_faithful}, NULL};
    CHECK(vt_explore(&scenario, RUNS) == NULL);
}

TEST(f26_ipc_a_source_that_waits_overwrites_nothing_that_is_read)
{
    static const struct vt_scenario scenario = {
        "LBT-IPC, receiver-paced", 3, paced_begin, {ipc_source, paced_faithful, paced_restless}, NULL};
    CHECK(vt_explore(&scenario, RUNS) == NULL);
}

/* ---- who is there ---- */

static bool leaving;

static void slots_begin(void)
{
    segment_begin(32, IPC_DATAGRAM, 0);
    leaving = false;
}

static void visitor(void)
{
    uint64_t start;
    int slot = um_shm_slot_take(&segment, 0, 7, &start);
    um_shm_slot_reading(&slots[slot]);
    leaving = true;
    um_shm_slot_leave(&segment, slot);
}

/* As a source looks at its slots when the epoch has changed. */
static void watcher(void)
{
    for (uint32_t epoch = 0; epoch < 2;) {
        uint32_t now = um_shm_join_epoch(&header);
        if (now == epoch) {
            vt_idle();
            continue;
        }
        epoch = now;
        bool there = um_shm_slot_state(&slots[0]) >= UM_SHM_SLOT_ACTIVE;
        if (there && atomic_load_explicit(&slots[0].ctx_session_id, memory_order_relaxed) != 7) {
            vt_fail("a receiver is there, and nobody knows who it is");
        }
        if (there ? epoch == 2 : epoch == 1 && !leaving) {
            vt_fail("a change of the slots is not seen with the epoch");
        }
    }
}

TEST(f26_a_source_sees_who_came_and_went)
{
    static const struct vt_scenario scenario = {"slots", 2, slots_begin, {visitor, watcher}, NULL};
    CHECK(vt_explore(&scenario, RUNS) == NULL);
}

/* What it sees may be newer than the epoch that made it look. */
static void onlooker(void)
{
    for (uint32_t epoch = 0; epoch < 4;) {
        uint32_t now = um_shm_join_epoch(&header);
        if (now == epoch) {
            vt_idle();
            continue;
        }
        epoch = now;
        for (int i = 0; i < RECEIVERS; i++) {
            if (um_shm_slot_state(&slots[i]) >= UM_SHM_SLOT_ACTIVE &&
                atomic_load_explicit(&slots[i].ctx_session_id, memory_order_relaxed) != 7) {
                vt_fail("a receiver is there, and nobody knows who it is");
            }
        }
    }
}

TEST(f26_a_source_knows_whom_it_sees)
{
    static const struct vt_scenario scenario = {"two slots", 3, slots_begin, {visitor, onlooker, visitor}, NULL};
    CHECK(vt_explore(&scenario, RUNS) == NULL);
}

/* ---- one at a time ---- */

static atomic_bool busy;
static uint64_t guarded;

static void claim_begin(void)
{
    atomic_init(&busy, false);
    guarded = 0;
}

static void claimer(void)
{
    for (int i = 0; i < 4; i++) {
        if (um_shm_claim(&busy)) {
            vt_plain_store(&guarded, vt_plain_load(&guarded) + 1);
            um_shm_unclaim(&busy);
        }
    }
}

TEST(f26_one_thread_at_a_time)
{
    static const struct vt_scenario scenario = {"claims", 2, claim_begin, {claimer, claimer}, NULL};
    CHECK(vt_explore(&scenario, RUNS) == NULL);
}

/* ---- sleeping ---- */

#define GROWTH 3

static _Atomic uint64_t grows;
static _Atomic uint32_t futex, waiting, stop;

static void sleep_begin(void)
{
    atomic_init(&grows, 0);
    atomic_init(&futex, 0);
    atomic_init(&waiting, 0);
    atomic_init(&stop, 0);
}

static void waker(void)
{
    for (uint64_t i = 1; i <= GROWTH; i++) {
        atomic_store_explicit(&grows, i, memory_order_relaxed);
        um_shm_fence_of_waker();
        if (atomic_load_explicit(&waiting, memory_order_relaxed) != 0 &&
            atomic_exchange_explicit(&waiting, 0, memory_order_relaxed) != 0) {
            um_shm_futex_bump(&futex);
            vt_futex_wake(&futex);
        }
    }
}

/* Wakes whether somebody sleeps or not. */
static void stopper(void)
{
    atomic_store_explicit(&stop, 1, memory_order_relaxed);
    um_shm_futex_bump(&futex);
    vt_futex_wake(&futex);
}

static void sleeper(void)
{
    for (;;) {
        uint64_t seen_growth = atomic_load_explicit(&grows, memory_order_relaxed);
        uint32_t seen = um_shm_futex_seen(&futex);
        atomic_store_explicit(&waiting, 1, memory_order_relaxed);
        um_shm_fence_of_sleeper();
        uint64_t growth = atomic_load_explicit(&grows, memory_order_relaxed);
        bool stopped = atomic_load_explicit(&stop, memory_order_relaxed) != 0;
        if (stopped && growth == GROWTH) {
            return;
        }
        if (growth == seen_growth) {
            vt_futex_wait(&futex, seen);
        }
        atomic_store_explicit(&waiting, 0, memory_order_relaxed);
    }
}

TEST(f26_nobody_sleeps_through_what_it_waits_for)
{
    static const struct vt_scenario scenario = {"sleeping", 3, sleep_begin, {waker, sleeper, stopper}, NULL};
    CHECK(vt_explore(&scenario, RUNS) == NULL);
}
