/* Segments of shared memory: what a source creates, what a receiver accepts, and
 * that nothing in a header, a slot or a ring makes either of them crash or write
 * where it must not: hostile, stale, truncated and foreign files included. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/um_error.h"
#include "base/um_mem.h"
#include "base/um_random.h"
#include "transport/shm/um_shm_segment.h"
#include "um_test_rcv.h"
#include "um_test_shm.h"

static struct um_shm_spec smx_spec(void)
{
    return (struct um_shm_spec){.kind = UM_SHM_SMX,
                                .transport_id = 30001,
                                .max_receivers = 4,
                                .ring_len = 65536,
                                .rec_align = 16,
                                .datagram_max = 8192,
                                .sm_interval_ms = 1000};
}

static int attach(struct um_shm_segment *receiver, const struct um_shm_segment *source)
{
    return um_shm_attach(receiver, source->kind, source->session_id, source->transport_id);
}

TEST(a_receiver_attaches_to_what_a_source_created_and_sees_its_geometry)
{
    struct um_shm_segment source, receiver;
    struct um_shm_spec spec = smx_spec();
    CHECK_EQ(um_shm_create(&source, &spec), 0);
    CHECK_EQ(um_test_shm_count(), 1);
    CHECK_EQ(attach(&receiver, &source), 0);
    CHECK_EQ(receiver.ring_len, 65536);
    CHECK_EQ(receiver.max_receivers, 4);
    CHECK_EQ(receiver.datagram_max, 8192);
    CHECK_EQ(receiver.sm_interval_ms, 1000);
    CHECK_EQ(receiver.header->src_pid, getpid());
    memcpy(source.ring + 100, "seen", 4);
    CHECK(memcmp(receiver.ring + 100, "seen", 4) == 0);
    CHECK(um_shm_source_alive(&receiver));
    um_shm_close(&source);
    CHECK(!um_shm_source_alive(&receiver));
    CHECK_EQ(atomic_load(&receiver.header->state), UM_SHM_CLOSED);
    CHECK_EQ(um_test_shm_count(), 0);
    um_shm_close(&receiver);
    um_shm_close(&receiver); /* harmless */
}

TEST(the_ring_is_read_only_for_receivers)
{
    struct um_shm_segment source, receiver;
    struct um_shm_spec spec = smx_spec();
    CHECK_EQ(um_shm_create(&source, &spec), 0);
    CHECK_EQ(attach(&receiver, &source), 0);
    int null = open("/dev/zero", O_RDONLY);
    CHECK_EQ(read(null, receiver.ring, 16), -1); /* the kernel says what a store would meet */
    CHECK_EQ(errno, EFAULT);
    CHECK_EQ(read(null, source.ring, 16), 16);
    close(null);
    um_shm_close(&receiver);
    um_shm_close(&source);
}

TEST(each_slot_is_taken_once_and_can_be_taken_again)
{
    struct um_shm_segment source, receivers[5];
    struct um_shm_spec spec = smx_spec();
    uint64_t start;
    CHECK_EQ(um_shm_create(&source, &spec), 0);
    atomic_store(&source.header->tail, 4096);
    for (int i = 0; i < 5; i++) {
        CHECK_EQ(attach(&receivers[i], &source), 0);
        CHECK_EQ(um_shm_slot_take(&receivers[i], 0, 0, &start), i < 4 ? i : -1);
    }
    CHECK_CONTAINS(um_errmsg(), "no more free receiver slots");
    CHECK_EQ(start, 4096);
    CHECK_EQ(um_shm_receivers(&source, false), 4);
    CHECK_EQ(um_shm_receivers(&source, true), 0);
    CHECK(!um_shm_slot_reap(&source, 2)); /* it lives */
    um_shm_slot_leave(&receivers[2], 2);
    CHECK_EQ(um_shm_slot_take(&receivers[4], 0, 0, &start), 2);
    CHECK_EQ(source.slots[2].pid, getpid());
    CHECK_EQ(source.slots[2].generation, 2);
    um_shm_close(&receivers[4]); /* as if it had died: the lock goes with the descriptor */
    CHECK(um_shm_slot_reap(&source, 2));
    CHECK(!um_shm_slot_reap(&source, 2));
    CHECK_EQ(um_shm_receivers(&source, false), 3);
    for (int i = 0; i < 4; i++) {
        um_shm_close(&receivers[i]);
    }
    um_shm_close(&source);
}

/* ---- headers that are not to be believed ---- */

struct damage {
    const char *what;
    size_t offset, size;
    uint64_t value;
};

#define FIELD(name, v)                                                                                                 \
    {                                                                                                                  \
#name, offsetof(struct um_shm_header, name), sizeof(((struct um_shm_header *)0)->name), v                      \
    }

TEST(every_field_of_a_header_is_checked_before_use)
{
    static const struct damage damages[] = {
        FIELD(version, 0x00020000),
        FIELD(endian_tag, 0x04030201),
        FIELD(total_len, 8192),
        FIELD(total_len, 1ull << 62),
        FIELD(pool_off, 0),
        FIELD(pool_off, 8192),
        FIELD(slot_size, 128),
        FIELD(max_receivers, 0),
        FIELD(max_receivers, 4097),
        FIELD(max_receivers, 17),
        FIELD(rec_align, 0),
        FIELD(rec_align, 17),
        FIELD(rec_align, 1u << 31),
        FIELD(ring_off, 0),
        FIELD(ring_off, 4096),
        FIELD(ring_off, 5000),
        FIELD(ring_off, 1ull << 40),
        FIELD(ring_off, UINT64_MAX - 4095),
        FIELD(ring_len, 0),
        FIELD(ring_len, 65535),
        FIELD(ring_len, 131072),
        FIELD(ring_len, 1ull << 63),
        FIELD(datagram_max, 0),
        FIELD(datagram_max, 15),
        FIELD(datagram_max, 32769),
        FIELD(datagram_max, UINT32_MAX),
        FIELD(session_id, 1),
        FIELD(transport_id, 2),
        FIELD(state, UM_SHM_BUILDING),
        FIELD(state, UM_SHM_CLOSED),
        FIELD(state, 77),
        FIELD(magic, 0),
    };
    struct um_shm_segment source, receiver;
    struct um_shm_spec spec = smx_spec();
    CHECK_EQ(um_shm_create(&source, &spec), 0);
    for (size_t i = 0; i < sizeof damages / sizeof damages[0]; i++) {
        const struct damage *d = &damages[i];
        uint8_t saved[8];
        uint8_t *at = (uint8_t *)source.header + d->offset;
        memcpy(saved, at, d->size);
        memcpy(at, &d->value, d->size);
        if (attach(&receiver, &source) != -1) {
            TEST_FAIL("attached in spite of %s = %llu", d->what, (unsigned long long)d->value);
        }
        CHECK_EQ(um_errnum(), UM_EINVAL);
        memcpy(at, saved, d->size);
    }
    CHECK_EQ(attach(&receiver, &source), 0);
    um_shm_close(&receiver);
    um_shm_close(&source);
}

TEST(random_headers_are_refused_or_harmless)
{
    struct um_shm_segment source, receiver;
    struct um_shm_spec spec = smx_spec();
    struct um_rng rng;
    uint8_t saved[0x100];
    uint64_t start;
    um_rng_seed(&rng, 99);
    CHECK_EQ(um_shm_create(&source, &spec), 0);
    memcpy(saved, source.header, sizeof saved);
    for (int round = 0; round < 5000; round++) {
        for (unsigned n = um_rng_u32(&rng) % 4 + 1; n > 0; n--) {
            ((uint8_t *)source.header)[um_rng_u32(&rng) % 0x60] = (uint8_t)um_rng_u32(&rng);
        }
        if (attach(&receiver, &source) == 0) {
            int slot = um_shm_slot_take(&receiver, 0, 0, &start);
            if (slot >= 0) {
                um_shm_slot_leave(&receiver, slot);
            }
            um_shm_close(&receiver);
        }
        memcpy(source.header, saved, sizeof saved);
    }
    um_shm_close(&source);
}

TEST(files_that_are_too_short_or_no_files_are_refused)
{
    struct um_shm_segment receiver;
    char path[128];
    snprintf(path, sizeof path, "%s/LBTSMX_abc_5", um_shm_directory());
    CHECK_EQ(um_shm_attach(&receiver, UM_SHM_SMX, 0xabc, 5), -1);
    int fd = open(path, O_CREAT | O_RDWR, 0600);
    for (off_t len = 0; len <= 16384; len += 1024) {
        CHECK_EQ(ftruncate(fd, len), 0);
        CHECK_EQ(um_shm_attach(&receiver, UM_SHM_SMX, 0xabc, 5), -1);
    }
    close(fd);
    unlink(path);
    CHECK_EQ(mkfifo(path, 0600), 0);
    CHECK_EQ(um_shm_attach(&receiver, UM_SHM_SMX, 0xabc, 5), -1);
    unlink(path);
    CHECK_EQ(symlink("/etc/passwd", path), 0);
    CHECK_EQ(um_shm_attach(&receiver, UM_SHM_SMX, 0xabc, 5), -1);
    unlink(path);
    CHECK_EQ(mkdir(path, 0700), 0);
    CHECK_EQ(um_shm_attach(&receiver, UM_SHM_SMX, 0xabc, 5), -1);
    rmdir(path);
}

/* A segment cut off before the join is an error there. One cut off afterwards can fault: decided, and documented. */
TEST(a_segment_cut_off_before_the_join_is_refused)
{
    struct um_shm_segment source, receiver;
    struct um_shm_spec spec = smx_spec();
    CHECK_EQ(um_shm_create(&source, &spec), 0);
    CHECK_EQ(ftruncate(source.fd, 12288), 0);
    CHECK_EQ(attach(&receiver, &source), -1);
    CHECK_EQ(um_errnum(), UM_EINVAL);
    CHECK_EQ(ftruncate(source.fd, (off_t)source.total_len), 0);
    um_shm_close(&source);
}

/* ---- stale segments ---- */

TEST(what_a_dead_source_left_is_not_joined_and_goes_with_the_next_creation)
{
    struct um_shm_segment receiver, source;
    struct um_shm_spec spec = smx_spec();
    int pipe_fds[2];
    CHECK_EQ(pipe(pipe_fds), 0);
    pid_t pid = fork();
    if (pid == 0) {
        struct um_shm_segment dying;
        if (um_shm_create(&dying, &spec) != 0 ||
            write(pipe_fds[1], &dying.session_id, sizeof dying.session_id) != sizeof dying.session_id) {
            _exit(1);
        }
        kill(getpid(), SIGKILL);
    }
    uint32_t session_id = 0;
    CHECK_EQ(read(pipe_fds[0], &session_id, sizeof session_id), sizeof session_id);
    waitpid(pid, NULL, 0);
    CHECK_EQ(um_test_shm_count(), 1);
    CHECK_EQ(um_shm_attach(&receiver, UM_SHM_SMX, session_id, 30001), -1);
    CHECK_CONTAINS(um_errmsg(), "is gone");
    struct um_shm_entry *entries;
    CHECK_EQ(um_shm_list(UM_SHM_SMX, &entries), 1);
    CHECK_EQ(entries[0].session_id, session_id);
    CHECK_EQ(entries[0].pid, pid);
    CHECK(!entries[0].alive);
    um_free(entries);
    CHECK_EQ(um_shm_create(&source, &spec), 0);
    CHECK_EQ(um_test_shm_count(), 1);
    CHECK_EQ(um_shm_list(UM_SHM_SMX, &entries), 1);
    CHECK(entries[0].alive);
    CHECK_EQ(um_shm_reclaim(&entries[0]), 1); /* never a living one */
    um_free(entries);
    CHECK_EQ(um_test_shm_count(), 1);
    um_shm_close(&source);
    close(pipe_fds[0]);
    close(pipe_fds[1]);
}

TEST(a_forked_child_does_not_keep_the_locks_of_its_parent)
{
    struct um_shm_segment receiver;
    struct um_shm_spec spec = smx_spec();
    int pipe_fds[2];
    struct {
        uint32_t session_id;
        pid_t child;
    } told = {0};
    CHECK_EQ(pipe(pipe_fds), 0);
    pid_t parent = fork();
    if (parent == 0) {
        struct um_shm_segment source;
        if (um_shm_create(&source, &spec) != 0) {
            _exit(1);
        }
        told.session_id = source.session_id;
        told.child = fork();
        if (told.child != 0) {
            told.child = write(pipe_fds[1], &told, sizeof told) == sizeof told ? told.child : 0;
        }
        sleep(60);
        _exit(0);
    }
    CHECK_EQ(read(pipe_fds[0], &told, sizeof told), sizeof told);
    CHECK_EQ(um_shm_attach(&receiver, UM_SHM_SMX, told.session_id, 30001), 0);
    kill(parent, SIGKILL);
    waitpid(parent, NULL, 0);
    bool alive = true;
    for (int i = 0; i < HANG_SECONDS * 1000 && alive; i++) { /* the child may not have run yet */
        alive = um_shm_source_alive(&receiver);
        usleep(1000);
    }
    kill(told.child, SIGKILL);
    um_shm_close(&receiver);
    um_shm_reclaim_dead(UM_SHM_SMX);
    close(pipe_fds[0]);
    close(pipe_fds[1]);
    CHECK(!alive);
    CHECK_EQ(um_test_shm_count(), 0);
}

TEST(mode_bits_come_from_the_environment_and_the_umask)
{
    struct um_shm_segment source;
    struct um_shm_spec spec = smx_spec();
    struct stat st;
    mode_t before = umask(027);
    CHECK_EQ(um_shm_create(&source, &spec), 0);
    CHECK_EQ(fstat(source.fd, &st), 0);
    CHECK_EQ(st.st_mode & 0777, 0640);
    um_shm_close(&source);
    umask(0);
    setenv("UM_SHM_MODE", "0620", 1);
    CHECK_EQ(um_shm_create(&source, &spec), 0);
    CHECK_EQ(fstat(source.fd, &st), 0);
    CHECK_EQ(st.st_mode & 0777, 0620);
    um_shm_close(&source);
    unsetenv("UM_SHM_MODE");
    setenv("UM_SHM_OWNER", "nobody", 1);
    CHECK_EQ(um_shm_create(&source, &spec), -1);
    CHECK_CONTAINS(um_errmsg(), "UM_SHM_OWNER \"nobody\": must be uid:gid");
    unsetenv("UM_SHM_OWNER");
    umask(before);
    CHECK_EQ(um_test_shm_count(), 0);
}

/* ---- a living receiver on memory that somebody scribbles over ---- */

TEST(a_receiver_survives_anything_written_over_its_segment)
{
    TEST_NEEDS_NET();
    struct um_rng rng;
    um_rng_seed(&rng, 5);
    lbm_context_t *sctx = net_context(), *rctx = net_context();
    struct recorder rec = RECORDER_INIT;
    lbm_rcv_t *rcv = net_recording_receiver(rctx, "shm/scribble", &rec);
    lbm_src_topic_attr_t *attr;
    lbm_topic_t *topic;
    lbm_src_t *src;
    MUST(lbm_src_topic_attr_create(&attr));
    MUST(lbm_src_topic_attr_str_setopt(attr, "transport", "lbtsmx"));
    for (int round = 0; round < 12; round++) {
        int eos = recorder_count(&rec, LBM_MSG_EOS);
        MUST(lbm_src_topic_alloc(&topic, sctx, "shm/scribble", attr));
        MUST(lbm_src_create(&src, sctx, topic, NULL, NULL, NULL));
        MUST(um_src_wait_receivers(src, 1, HANG_SECONDS * 1000));
        struct um_shm_entry *entries;
        int count = um_shm_list(UM_SHM_SMX, &entries), fd = -1;
        for (int i = 0; i < count; i++) {
            fd = entries[i].transport_id != 0 ? open(entries[i].path, O_RDWR) : fd;
        }
        um_free(entries);
        struct stat st;
        CHECK(fd >= 0 && fstat(fd, &st) == 0);
        uint8_t *map = mmap(NULL, (size_t)st.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        CHECK(map != MAP_FAILED);
        MUST(lbm_src_send(src, "fine", 4, 0));
        size_t from = round % 3 == 0 ? 0x100 : round % 3 == 1 ? 4096 : 4096 + 64 * 256;
        size_t to = round % 3 == 0 ? 4096 : round % 3 == 1 ? 4096 + 64 * 256 : (size_t)st.st_size;
        for (int i = 0; i < 200; i++) {
            for (size_t at = from; at + 4 <= to; at += 4 * (1 + um_rng_u32(&rng) % 16)) {
                uint32_t word = um_rng_u32(&rng) & (i % 2 ? 0x1fffffff : UINT32_MAX);
                memcpy(map + at, &word, sizeof word);
            }
            usleep(100);
        }
        MUST(lbm_src_delete(src));
        for (int i = 0; i < HANG_SECONDS * 1000 && recorder_count(&rec, LBM_MSG_EOS) == eos; i++) {
            usleep(1000);
        }
        CHECK(recorder_count(&rec, LBM_MSG_EOS) > eos);
        munmap(map, (size_t)st.st_size);
        close(fd);
    }
    lbm_src_topic_attr_delete(attr);
    MUST(lbm_rcv_delete(rcv));
    MUST(lbm_context_delete(rctx));
    MUST(lbm_context_delete(sctx));
}
