/* The loop of a context or of an XSP: epoll reactor, timer wheel and a
 * mailbox of commands. One thread at a time owns the loop: its host - the
 * embedded thread, or in sequential mode whoever is inside um_loop_run_once(),
 * or, when nobody is, a caller of um_loop_call(), who then runs the command
 * itself - or a guest while the host waits in epoll (receivers of shared memory).
 *
 * Everything marked [loop] may only be called by the owner. */
#ifndef UM_NET_LOOP_H
#define UM_NET_LOOP_H

#include <stdbool.h>
#include <stdint.h>

#include "base/um_list.h"
#include "base/um_timer.h"

enum um_loop_wait { UM_LOOP_PEND = 1, UM_LOOP_BUSY_WAIT = 2 };

#define UM_FD_READ 1u
#define UM_FD_WRITE 2u
#define UM_FD_EXCEPT 4u
#define UM_FD_HANGUP 8u

struct um_loop;

/* Embedded in the owner's structure; the loop keeps a pointer while registered. */
struct um_fd {
    int fd;
    uint32_t interest;                                              /* [loop] */
    void (*fn)(struct um_fd *ufd, uint32_t ready, uint64_t now_ns); /* may remove or free itself and others */
    /* [loop] Not NULL: fn may be called to read though nothing has come, and *arrivals changes when something had. A
     * loop that busy-waits then reads the busiest of these without asking epoll first. Set before it is added. */
    const uint32_t *arrivals;
};

/* embedded: starts a thread (all signals blocked) and returns once it runs. NULL + um_error on failure. */
struct um_loop *um_loop_create(bool embedded, enum um_loop_wait wait, const char *thread_name);
/* Ends and joins the thread (embedded). Pending commands run first. Not from the loop itself. */
void um_loop_destroy(struct um_loop *loop);

/* What runs on this loop counts as running on `head`, the context's, when calls are refused to callbacks. Once, before
 * the loop is used. */
void um_loop_join_family(struct um_loop *loop, struct um_loop *head);
/* Does the calling thread own this loop, or one of its family? Then it is in a callback of the context, which waits for
 * nothing that another loop of the family is to do. */
bool um_loop_in_family(const struct um_loop *loop);

bool um_loop_in_any(void);                                  /* does the calling thread own any loop? */
bool um_loop_user_time(const struct um_loop *loop);         /* [loop] the application provides the time */
bool um_loop_on_thread(const struct um_loop *loop);         /* is the caller the present owner? Any thread. */
uint64_t um_loop_now(const struct um_loop *loop);           /* [loop] time of this pass, monotonic ns */
uint64_t um_loop_wall_now(const struct um_loop *loop);      /* [loop] wall clock of this pass, ns */
struct um_timer_wheel *um_loop_wheel(struct um_loop *loop); /* [loop] */

void um_fd_init(struct um_fd *ufd, int fd, void (*fn)(struct um_fd *, uint32_t, uint64_t));
int um_loop_add_fd(struct um_loop *loop, struct um_fd *ufd, uint32_t interest);       /* [loop] */
int um_loop_set_interest(struct um_loop *loop, struct um_fd *ufd, uint32_t interest); /* [loop] no-op if unchanged */
void um_loop_remove_fd(struct um_loop *loop, struct um_fd *ufd);                      /* [loop] before close(fd) */

/* Run fn(arg) on the loop and wait for its result (errors set by fn become the caller's).
 * Called by the owner: runs at once. Any thread. */
int um_loop_call(struct um_loop *loop, int (*fn)(void *arg), void *arg);
/* Returns when everything that was posted to the loop before has run. 0, or -1 + UM_EOP. Not by the owner: nothing. */
int um_loop_sync(struct um_loop *loop);
/* As um_loop_call(), but refused (-1, UM_EOP, text naming `api`) when called inside a callback of the loop's family. */
int um_loop_call_api(struct um_loop *loop, const char *api, int (*fn)(void *arg), void *arg);

/* What um_loop_call_api() refuses: -1 + UM_EOP inside a callback of the loop's family, else 0. Any thread. */
int um_loop_refuses(const struct um_loop *loop, const char *api);

/* Around waiting, by other means than the calls above, for what `loop` is to do for somebody. -1 + UM_EOP: not begun,
 * since `loop` waits for a loop of the calling thread; from here on, those that would are refused. Any thread. */
int um_loop_wait_begin(struct um_loop *loop);
void um_loop_wait_end(void);

/* Asynchronous command, embedded in the poster's structure; not posted twice before it ran. Any thread. */
struct um_command {
    struct um_list node;
    void (*fn)(struct um_command *cmd);
    bool posted;
};
void um_command_init(struct um_command *cmd, void (*fn)(struct um_command *cmd));
void um_loop_post(struct um_loop *loop, struct um_command *cmd);   /* no effect when already posted */
void um_loop_unpost(struct um_loop *loop, struct um_command *cmd); /* [loop] withdraw */

/* Sequential mode: passes until something ran, waiting up to timeout_ms (-1: without bound, 0: one pass, no wait).
 * 0; 1 when um_loop_unblock() ended it; -1 + error (embedded loop, inside a callback, two threads at once).
 * `user_time_ns` non-zero replaces the clock (LBM_PROC_EVENT_EX_FLAG_USER_TIME). */
int um_loop_run_once(struct um_loop *loop, int timeout_ms, uint64_t user_time_ns);
/* The same for at least so many milliseconds; 0: one pass, no wait. 0, also when it was unblocked, or -1 + error. */
int um_loop_process_events(struct um_loop *loop, unsigned long msec, uint64_t user_time_ns);
/* Guests: threads beside the host that receive for the context (shared memory). Between enter and leave the caller is
 * the owner, as the host in a pass: it may do what is marked [loop], and callbacks run on it. The turn goes round in
 * the order of asking, so neither a busy host nor a busy guest keeps the other out; a guest may stay as long as it has
 * data, if it leaves when `wanted` says that somebody waits. Not inside a callback of the same loop. */
void um_loop_guest_enter(struct um_loop *loop);     /* waits for the turn; reads the clock */
bool um_loop_guest_try_enter(struct um_loop *loop); /* false: not free now */
void um_loop_guest_tick(struct um_loop *loop);      /* [loop] read the clock again, for a guest that stays */
bool um_loop_guest_wanted(const struct um_loop *loop);
void um_loop_guest_leave(struct um_loop *loop); /* [loop] wakes the host if a timer is due before it wakes by itself */

int um_loop_unblock(struct um_loop *loop); /* makes the running or next run_once return; any thread */
bool um_loop_embedded(const struct um_loop *loop);

#endif
