/* The inside of a loop, shared by its parts: um_loop.c (time, passes, life),
 * um_loop_owner.c (whose turn it is), um_loop_mailbox.c (commands and calls) and
 * um_loop_fds.c (descriptors). Each field says who may touch it. */
#ifndef UM_NET_LOOP_PARTS_H
#define UM_NET_LOOP_PARTS_H

#include <pthread.h>
#include <stdatomic.h>
#include <sys/epoll.h>

#include "base/um_clock.h"
#include "base/um_list.h"
#include "base/um_log.h"
#include "base/um_turn.h"
#include "net/um_loop.h"

#define UM_LOOP_HOT 2 /* descriptors read without asking epoll, while busy-waiting */
#define UM_LOOP_BATCH 64

/* Who runs the mailbox, the descriptors and the timers. */
enum um_loop_host {
    UM_HOST_NONE,
    UM_HOST_CALL,   /* a caller of um_loop_call, for the time of one command */
    UM_HOST_EVENTS, /* um_loop_run_once */
    UM_HOST_THREAD  /* the embedded thread, for its whole life */
};

/* Of the host; under the lock. */
enum um_loop_mark {
    UM_LOOP_ASLEEP = 1, /* it may be waiting in epoll */
    UM_LOOP_UNBLOCK = 2 /* it is to return from where events are processed */
};

/* Of the pass; [loop]. */
enum um_loop_pass {
    UM_LOOP_FD_REMOVED = 1, /* since the host gave up the turn: what epoll found may be gone */
    UM_LOOP_USER_TIME = 2   /* the application provides the time */
};

/* A descriptor that a busy-waiting loop reads without asking epoll. */
struct um_hot {
    struct um_fd *ufd; /* NULL: free place */
    uint64_t last_ns;  /* when something came */
};

struct um_loop {
    int epfd, wakefd;
    bool embedded;
    enum um_loop_wait wait;
    struct um_fd wake;
    const struct um_loop *family; /* fixed: the context's loop */
    struct um_timer_wheel *wheel; /* [loop] */

    pthread_mutex_t lock;
    pthread_cond_t changed;  /* a call completed, or the ownership was given up */
    enum um_loop_host host;  /* lock */
    struct um_list commands; /* lock */
    struct um_list running;  /* lock: commands of the present pass */
    atomic_size_t pending;   /* commands not yet begun; written under the lock */
    unsigned marks;          /* lock: enum um_loop_mark */
    atomic_bool stop;        /* written under the lock */
    pthread_t thread;
    char thread_name[16];

    /* Whoever has the turn is the owner: the host, except while it waits in epoll, or a guest. Nobody waits for the
     * turn with the lock held. */
    struct um_turn turn;
    _Atomic(const void *) owner; /* identity of the thread that has the turn */
    uint64_t wakes_ns;           /* [loop] when the host in epoll wakes by itself; 0: not waiting, or woken */
    unsigned flags;              /* [loop] enum um_loop_pass */

    struct um_loop *outer;      /* [loop] loop that the owning thread owned already */
    struct um_loop *waiting_on; /* um_loop_wait_lock: loop for which the owner waits */

    uint64_t now_ns;                         /* [loop] */
    uint64_t wall_ns;                        /* [loop] 0: not read in this pass */
    uint64_t user_last_ns;                   /* [loop] */
    int64_t user_offset_ns;                  /* [loop] loop time minus user time */
    int ready_count, ready_i;                /* [loop] dispatch in progress: removed entries are blanked */
    struct um_hot hot[UM_LOOP_HOT];          /* [loop] read in every pass, and not in the epoll set meanwhile */
    unsigned hot_count, pass;                /* [loop] */
    struct epoll_event ready[UM_LOOP_BATCH]; /* [loop] */
};

/* um_loop.c */
void um_loop_refresh(struct um_loop *loop); /* [loop] read the clock */

/* um_loop_owner.c */
void um_loop_take_turn(struct um_loop *loop); /* waits for it; no lock held */
void um_loop_give_turn(struct um_loop *loop);
int um_loop_enter(struct um_loop *loop);        /* become the host of a sequential loop; -1 + error */
void um_loop_leave(struct um_loop *loop);       /* the host gives up the turn and the loop */
void um_loop_host_leaves(struct um_loop *loop); /* lock held, not the turn */

/* um_loop_mailbox.c */
void um_loop_wakeup(struct um_loop *loop);    /* any thread */
bool um_loop_must_wake(struct um_loop *loop); /* lock held; true: the caller must um_loop_wakeup() after unlocking */
void um_loop_on_wake(struct um_fd *ufd, uint32_t ready, uint64_t now_ns);
int um_loop_run_commands(struct um_loop *loop); /* [loop] what is posted meanwhile waits for the next pass; how many */

/* um_loop_fds.c */
void um_loop_dispatch(struct um_loop *loop, int count); /* [loop] the first `count` of loop->ready */
int um_loop_read_hot(struct um_loop *loop);             /* [loop] how many had something */

#endif
