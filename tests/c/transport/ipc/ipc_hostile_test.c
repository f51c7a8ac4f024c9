/* LBT-IPC beside a process that writes into the segment whatever it likes: receivers leave or lose, sources go on, and
 * nobody reads or writes outside (the sanitizers watch). Segments that are wrong before anybody joins are in
 * shm_segment_test.c. */
#include <fcntl.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "um_test_shm.h"

#include "base/um_mem.h"
#include "base/um_random.h"
#include "transport/shm/um_shm_segment.h"
#include "um_test_rcv.h"

static int say_nothing(int level, const char *message, void *clientd)
{
    return 0;
}

static lbm_src_t *ipc_source(lbm_context_t *ctx, const char *name, bool paced)
{
    lbm_src_topic_attr_t *attr;
    lbm_topic_t *topic;
    lbm_src_t *src;
    MUST(lbm_src_topic_attr_create(&attr));
    MUST(lbm_src_topic_attr_str_setopt(attr, "transport", "lbt-ipc"));
    MUST(lbm_src_topic_attr_str_setopt(attr, "transport_lbtipc_transmission_window_size", "65536"));
    MUST(lbm_src_topic_attr_str_setopt(attr, "transport_lbtipc_behavior", paced ? "receiver_paced" : "source_paced"));
    MUST(lbm_src_topic_attr_str_setopt(attr, "resolver_advertisement_sustain_interval", "50"));
    MUST(lbm_src_topic_alloc(&topic, ctx, name, attr));
    MUST(lbm_src_create(&src, ctx, topic, NULL, NULL, NULL));
    lbm_src_topic_attr_delete(attr);
    return src;
}

/* The segment of the only source there is, as a third process would map it. */
static uint8_t *map_segment(size_t *len)
{
    struct um_shm_entry *list;
    int count = um_shm_list(UM_SHM_IPC, &list), fd = -1;
    for (int i = 0; i < count; i++) {
        fd = list[i].transport_id != 0 ? open(list[i].path, O_RDWR) : fd;
    }
    um_free(list);
    struct stat st;
    if (fd < 0 || fstat(fd, &st) != 0) {
        abort();
    }
    *len = (size_t)st.st_size;
    uint8_t *at = mmap(NULL, *len, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    return at;
}

static void write_nonsense(uint8_t *segment, size_t len, struct um_rng *rng)
{
    static const size_t words[] = {0x100, 0x108, 0x180, 0x200, 0x280, 0x300, 0x304, 0x4c};
    size_t at = 0;
    switch (um_rng_range(rng, 0, 3)) {
    case 0:
        at = words[um_rng_range(rng, 0, 7)];
        break;
    case 1: /* a slot */
        at = UM_SHM_POOL_OFF + um_rng_range(rng, 0, 63) * 4;
        break;
    case 2: /* the cold part of the header: nobody may look at it any more */
        at = um_rng_range(rng, 0, 0x4b);
        break;
    default:
        at = um_rng_range(rng, 12288, len - 8) / 8 * 8;
    }
    uint64_t value = um_rng_range(rng, 0, 1) ? um_rng_u64(rng) : um_rng_range(rng, 0, 3 * 65536) / 32 * 32;
    memcpy(segment + at, &value, um_rng_range(rng, 1, 8));
}

static void endure(bool paced, int rounds, uint64_t seed)
{
    struct um_rng rng;
    int sessions = 0;
    um_rng_seed(&rng, seed);
    for (int round = 0; round < rounds; round++) {
        struct recorder rec = RECORDER_INIT;
        char message[900] = {0};
        size_t len;
        lbm_context_t *sctx = net_context(), *rctx = net_context();
        lbm_src_t *src = ipc_source(sctx, "hostile", paced);
        lbm_rcv_t *rcv = net_recording_receiver(rctx, "hostile", &rec);
        CHECK(recorder_wait(&rec, LBM_MSG_BOS, 1));
        uint8_t *segment = map_segment(&len);
        for (int i = 0; i < 400; i++) {
            lbm_src_send(src, message, 20 + (size_t)um_rng_range(&rng, 0, 800), LBM_MSG_FLUSH | LBM_SRC_NONBLOCK);
            if (i > 20 && um_rng_range(&rng, 0, 3) == 0) {
                write_nonsense(segment, len, &rng);
            }
        }
        for (int ms = 0; ms < (sessions == 0 ? 1000 : 2) && recorder_count(&rec, LBM_MSG_EOS) == 0; ms++) {
            usleep(1000); /* patiently until there was one */
        }
        sessions += recorder_count(&rec, LBM_MSG_EOS);
        munmap(segment, len);
        MUST(lbm_rcv_delete(rcv));
        MUST(lbm_src_delete(src));
        MUST(lbm_context_delete(rctx));
        MUST(lbm_context_delete(sctx));
    }
    fprintf(stderr, "%d sessions were left for the damage in %d rounds\n", sessions, rounds);
    CHECK(sessions > 0);
    um_shm_reclaim_dead(UM_SHM_IPC);
    CHECK_EQ(um_test_shm_count(), 0);
}

TEST(nonsense_anywhere_in_a_segment_crashes_nobody)
{
    TEST_NEEDS_NET();
    lbm_log(say_nothing, NULL);
    endure(false, 60, 1);
    endure(true, 60, 2);
    lbm_log(NULL, NULL);
}
