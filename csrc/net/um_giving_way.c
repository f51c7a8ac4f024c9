/* Giving way to live messages. See um_giving_way.h. A thread that replays is runnable
 * nearly all the time. Whoever waits for its core gets it at once, if the scheduler
 * lets the shorter slice go first, and else when that thread sleeps or has its tick. */
#include "net/um_giving_way.h"

#include <sched.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/um_clock.h"
#include "base/um_mem.h"

#define LARGE_READ 32u  /* messages: the core is offered behind them */
#define REPLAY_SHARE 4u /* so many times as long as others had it then, the replay goes on */

/* struct sched_attr of the kernel, as it was at first: C libraries have it since recently. */
struct thread_attr {
    uint32_t size, policy;
    uint64_t flags;
    int32_t nice;
    uint32_t priority;
    uint64_t runtime_ns, deadline_ns, period_ns;
};

/* Of the calling thread. Linux 6.12 and later tell and take the slice of an ordinary thread, without a privilege; 0:
 * there is none, or the thread is scheduled otherwise, as somebody wanted it to be. */
static uint64_t read_slice(struct thread_attr *attr)
{
    memset(attr, 0, sizeof *attr);
    bool told = syscall(SYS_sched_getattr, 0, attr, sizeof *attr, 0) == 0;
    return told && attr->policy == SCHED_OTHER ? attr->runtime_ns : 0;
}

static bool write_slice(struct thread_attr *attr, uint64_t slice_ns)
{
    attr->size = sizeof *attr;
    attr->runtime_ns = slice_ns;
    return syscall(SYS_sched_setattr, 0, attr, 0) == 0;
}

static void take_long_slice(struct um_giving_way *way)
{
    struct thread_attr attr;
    uint64_t own_ns = read_slice(&attr);
    if (own_ns != 0 && own_ns < UM_GIVING_WAY_SLICE_NS && write_slice(&attr, UM_GIVING_WAY_SLICE_NS)) {
        way->own_slice_ns = own_ns;
    }
}

/* Unless somebody else has changed it meanwhile. */
static void give_back_slice(struct um_giving_way *way)
{
    struct thread_attr attr;
    if (way->own_slice_ns != 0 && read_slice(&attr) == UM_GIVING_WAY_SLICE_NS) {
        (void)write_slice(&attr, way->own_slice_ns);
    }
    way->own_slice_ns = 0;
}

static void on_timer(struct um_timer *timer, uint64_t now_ns)
{
    struct um_giving_way *way = UM_CONTAINER_OF(timer, struct um_giving_way, timer);
    uint64_t until_ns = way->last_ns + UM_GIVING_WAY_QUIET_NS;
    if (now_ns < until_ns) {
        um_timer_arm(um_loop_wheel(way->loop), timer, until_ns);
        return;
    }
    give_back_slice(way);
}

void um_giving_way_init(struct um_giving_way *way, struct um_loop *loop)
{
    memset(way, 0, sizeof *way);
    way->loop = loop;
    um_timer_init(&way->timer, on_timer);
}

void um_giving_way_fini(struct um_giving_way *way)
{
    if (um_timer_armed(&way->timer)) {
        um_timer_cancel(um_loop_wheel(way->loop), &way->timer);
        give_back_slice(way);
    }
}

/* A replay that lasts. The thread of an application is its own business. */
static void begin(struct um_giving_way *way, uint32_t messages, uint64_t now_ns)
{
    way->last_ns = now_ns;
    if (um_timer_armed(&way->timer)) {
        return;
    }
    if (now_ns - way->begin_ns > UM_GIVING_WAY_WITHIN_NS) {
        way->begin_ns = now_ns;
        way->count = 0;
    }
    way->count += messages;
    if (way->count >= UM_GIVING_WAY_MESSAGES && um_loop_embedded(way->loop)) {
        way->count = 0;
        take_long_slice(way);
        um_timer_arm(um_loop_wheel(way->loop), &way->timer, now_ns + UM_GIVING_WAY_QUIET_NS);
    }
}

/* A large read keeps the thread busy for as long as it lasts. Who waits for this core goes on behind it, whatever the
 * scheduler thinks of slices. Costs nothing worth mentioning if nobody waits; who computes takes a tick or more, and so
 * comes to a fifth of the time. */
static void offer_core(struct um_giving_way *way)
{
    uint64_t begin_ns = um_clock_ns();
    if (begin_ns >= way->yields_ns) {
        sched_yield();
        uint64_t end_ns = um_clock_ns();
        way->yields_ns = end_ns + REPLAY_SHARE * (end_ns - begin_ns);
    }
}

void um_giving_way_after(struct um_giving_way *way, uint32_t messages, uint64_t now_ns)
{
    begin(way, messages, now_ns);
    if (messages >= LARGE_READ) {
        offer_core(way);
    }
}
