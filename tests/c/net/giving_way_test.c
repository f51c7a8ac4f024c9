/* A thread that replays has a longer slice than others for as long as that lasts, if the
 * kernel has slices (Linux 6.12), and its own one before and afterwards. */
#define _GNU_SOURCE /* SCHED_BATCH */
#include "um_test.h"

#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/um_clock.h"
#include "net/um_giving_way.h"
#include "net/um_loop.h"

struct replaying {
    struct um_giving_way way;
    struct um_loop *loop;
    uint32_t messages;
    uint64_t now_ns;   /* of the reads */
    uint64_t slice_ns; /* of the loop's thread */
    uint64_t own_ns;   /* at first */
    int policy;
};

/* The kernel's structure, as in the code, and not from there. */
static void look(struct replaying *r)
{
    struct {
        uint32_t size, policy;
        uint64_t flags;
        int32_t nice;
        uint32_t priority;
        uint64_t runtime_ns, deadline_ns, period_ns;
    } attr = {0};
    CHECK_EQ(syscall(SYS_sched_getattr, 0, &attr, sizeof attr, 0), 0);
    r->slice_ns = attr.runtime_ns;
    r->policy = (int)attr.policy;
}

static int on_look(void *arg)
{
    look(arg);
    return 0;
}

static int on_read(void *arg)
{
    struct replaying *r = arg;
    um_giving_way_after(&r->way, r->messages, r->now_ns);
    look(r);
    return 0;
}

static int on_end(void *arg)
{
    struct replaying *r = arg;
    um_giving_way_fini(&r->way);
    look(r);
    return 0;
}

static void begin(struct replaying *r)
{
    *r = (struct replaying){.loop = um_loop_create(true, UM_LOOP_PEND, "test")};
    CHECK(r->loop != NULL);
    um_giving_way_init(&r->way, r->loop);
    CHECK_EQ(um_loop_call(r->loop, on_look, r), 0);
    r->own_ns = r->slice_ns;
}

static void read_messages(struct replaying *r, uint32_t messages, uint64_t now_ns)
{
    r->messages = messages;
    r->now_ns = now_ns;
    CHECK_EQ(um_loop_call(r->loop, on_read, r), 0);
}

static uint64_t long_slice(uint64_t own_ns)
{
    return own_ns != 0 ? UM_GIVING_WAY_SLICE_NS : 0; /* 0: a kernel without slices */
}

TEST(a_replay_that_lasts_gives_its_thread_a_long_slice_and_its_end_gives_the_own_one_back)
{
    struct replaying r;
    uint64_t give_up_ns = um_clock_ns() + 30 * UM_NS_PER_SEC;
    begin(&r);
    uint64_t own_ns = r.own_ns;
    CHECK(own_ns < UM_GIVING_WAY_SLICE_NS);
    read_messages(&r, UM_GIVING_WAY_MESSAGES, um_clock_ns());
    CHECK_EQ(r.slice_ns, long_slice(own_ns));
    CHECK_EQ(r.policy, SCHED_OTHER);
    while (r.slice_ns != own_ns && um_clock_ns() < give_up_ns) {
        usleep(10000);
        CHECK_EQ(um_loop_call(r.loop, on_look, &r), 0);
    }
    CHECK_EQ(r.slice_ns, own_ns);
    read_messages(&r, UM_GIVING_WAY_MESSAGES, um_clock_ns()); /* the next one */
    CHECK_EQ(r.slice_ns, long_slice(own_ns));
    CHECK_EQ(um_loop_call(r.loop, on_end, &r), 0);
    CHECK_EQ(r.slice_ns, own_ns);
    um_loop_destroy(r.loop);
}

TEST(a_few_messages_now_and_then_change_nothing_and_many_reads_of_a_few_do)
{
    struct replaying r;
    begin(&r);
    uint64_t own_ns = r.own_ns, now_ns = um_clock_ns();
    read_messages(&r, UM_GIVING_WAY_MESSAGES - 10, now_ns);
    CHECK_EQ(r.slice_ns, own_ns);
    now_ns += UM_GIVING_WAY_WITHIN_NS + 1; /* too late: counted anew */
    read_messages(&r, UM_GIVING_WAY_MESSAGES - 10, now_ns);
    CHECK_EQ(r.slice_ns, own_ns);
    read_messages(&r, 10, now_ns + UM_GIVING_WAY_WITHIN_NS);
    CHECK_EQ(r.slice_ns, long_slice(own_ns));
    CHECK_EQ(um_loop_call(r.loop, on_end, &r), 0);
    um_loop_destroy(r.loop);
}

static int become_batch(void *arg)
{
    (void)arg;
    const struct sched_param param = {0};
    return sched_setscheduler(0, SCHED_BATCH, &param);
}

TEST(a_thread_that_somebody_schedules_otherwise_is_left_alone)
{
    struct replaying r;
    begin(&r);
    uint64_t own_ns = r.own_ns;
    CHECK_EQ(um_loop_call(r.loop, become_batch, NULL), 0);
    read_messages(&r, UM_GIVING_WAY_MESSAGES, um_clock_ns());
    CHECK_EQ(r.slice_ns, own_ns);
    CHECK_EQ(r.policy, SCHED_BATCH);
    CHECK_EQ(um_loop_call(r.loop, on_end, &r), 0);
    um_loop_destroy(r.loop);
}

TEST(the_thread_of_an_application_is_left_alone)
{
    struct replaying r = {.loop = um_loop_create(false, UM_LOOP_PEND, "test")};
    CHECK(r.loop != NULL);
    um_giving_way_init(&r.way, r.loop);
    look(&r);
    uint64_t own_ns = r.slice_ns;
    read_messages(&r, UM_GIVING_WAY_MESSAGES, um_clock_ns());
    CHECK_EQ(r.slice_ns, own_ns);
    CHECK_EQ(um_loop_call(r.loop, on_end, &r), 0);
    um_loop_destroy(r.loop);
}
