/* Who runs a loop: one thread at a time has its turn, the host or a guest; and who
 * waits for whom, so that no circle of contexts closes. Called on every thread
 * that wants the loop; see um_loop_parts.h. */
#include "net/um_loop_parts.h"

#include "base/um_error.h"
#include "base/um_fork.h"

/* Identity of a thread is the address of this variable; its value is the innermost loop the thread owns. */
static _Thread_local struct um_loop *um_loop_current;

/* Guards every waiting_on: who waits for whom, so that no circle closes. */
static pthread_mutex_t um_loop_wait_lock = PTHREAD_MUTEX_INITIALIZER;
UM_FORK_GUARD(um_loop_wait_lock)

static const void *um_loop_self(void)
{
    return &um_loop_current;
}

bool um_loop_on_thread(const struct um_loop *loop)
{
    return atomic_load_explicit(&loop->owner, memory_order_acquire) == um_loop_self();
}

bool um_loop_in_family(const struct um_loop *loop)
{
    for (const struct um_loop *mine = um_loop_current; mine != NULL; mine = mine->outer) {
        if (mine->family == loop->family) {
            return true;
        }
    }
    return false;
}

bool um_loop_in_any(void)
{
    return um_loop_current != NULL;
}

/* ---- the turn ---- */

static void um_loop_turn_taken(struct um_loop *loop)
{
    atomic_store_explicit(&loop->owner, um_loop_self(), memory_order_release);
    loop->outer = um_loop_current;
    um_loop_current = loop;
}

void um_loop_take_turn(struct um_loop *loop)
{
    um_turn_take(&loop->turn);
    um_loop_turn_taken(loop);
}

void um_loop_give_turn(struct um_loop *loop)
{
    um_loop_current = loop->outer;
    loop->outer = NULL;
    atomic_store_explicit(&loop->owner, NULL, memory_order_release);
    um_turn_give(&loop->turn);
}

/* ---- who waits for whom ---- */

/* The caller is about to wait for `loop`: mark the loops it owns, unless one of them is what `loop` waits for in turn.
 */
int um_loop_wait_begin(struct um_loop *loop)
{
    if (um_loop_current == NULL) {
        return 0;
    }
    int rc = 0;
    pthread_mutex_lock(&um_loop_wait_lock);
    for (struct um_loop *next = loop; next != NULL && rc == 0; next = next->waiting_on) {
        rc = um_loop_on_thread(next) ? -1 : 0;
    }
    for (struct um_loop *mine = um_loop_current; rc == 0 && mine != NULL; mine = mine->outer) {
        mine->waiting_on = loop;
    }
    pthread_mutex_unlock(&um_loop_wait_lock);
    return rc == 0
               ? 0
               : um_error(
                     UM_EOP, "CoreApi-1010-2",
                     "contexts wait for each other: the callback in progress on the other context must return first; "
                     "make this call outside callbacks");
}

void um_loop_wait_end(void)
{
    if (um_loop_current == NULL) {
        return;
    }
    pthread_mutex_lock(&um_loop_wait_lock);
    for (struct um_loop *mine = um_loop_current; mine != NULL; mine = mine->outer) {
        mine->waiting_on = NULL;
    }
    pthread_mutex_unlock(&um_loop_wait_lock);
}

/* ---- hosts ---- */

/* lock held, not the turn */
void um_loop_host_leaves(struct um_loop *loop)
{
    loop->host = UM_HOST_NONE;
    pthread_cond_broadcast(&loop->changed);
}

/* Become the host and owner; short calls of other threads are waited for, another run_once is an error. */
int um_loop_enter(struct um_loop *loop)
{
    if (um_loop_on_thread(loop)) {
        return um_error(UM_EOP, "CoreApi-1010-10",
                        "processing events: must not be called in a callback of the same context");
    }
    if (um_loop_wait_begin(loop) < 0) {
        return -1;
    }
    pthread_mutex_lock(&loop->lock);
    while (loop->host == UM_HOST_CALL) {
        pthread_cond_wait(&loop->changed, &loop->lock);
    }
    bool entered = loop->host == UM_HOST_NONE;
    if (entered) {
        loop->host = UM_HOST_EVENTS;
    }
    pthread_mutex_unlock(&loop->lock);
    if (entered) {
        um_loop_take_turn(loop);
    }
    um_loop_wait_end();
    if (!entered) {
        return um_error(
            UM_EOP, "CoreApi-1010-11",
            "processing events: another thread is processing the events of this context; use one thread at a time");
    }
    return 0;
}

/* The host gives up the turn and the loop. */
void um_loop_leave(struct um_loop *loop)
{
    um_loop_give_turn(loop);
    pthread_mutex_lock(&loop->lock);
    um_loop_host_leaves(loop);
    pthread_mutex_unlock(&loop->lock);
}

/* ---- guests ---- */

void um_loop_guest_enter(struct um_loop *loop)
{
    um_loop_take_turn(loop);
    um_loop_refresh(loop);
}

bool um_loop_guest_try_enter(struct um_loop *loop)
{
    if (!um_turn_try(&loop->turn)) {
        return false;
    }
    um_loop_turn_taken(loop);
    um_loop_refresh(loop);
    return true;
}

void um_loop_guest_tick(struct um_loop *loop)
{
    um_loop_refresh(loop);
}

bool um_loop_guest_wanted(const struct um_loop *loop)
{
    return um_turn_wanted(&loop->turn);
}

void um_loop_guest_leave(struct um_loop *loop)
{
    bool sooner = um_timer_next(loop->wheel) < loop->wakes_ns;
    if (sooner) {
        loop->wakes_ns = 0;
    }
    um_loop_give_turn(loop);
    if (sooner) {
        um_loop_wakeup(loop);
    }
}
