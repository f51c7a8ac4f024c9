/* The mailbox of a loop: commands posted by any thread and run by the owner, and
 * calls, whose caller waits for the result - or runs it itself while a sequential
 * loop has no host. Commands run without the lock held. */
#include "net/um_loop_parts.h"

#include <errno.h>
#include <unistd.h>

#include "base/um_error.h"
#include "base/um_mem.h"

void um_loop_wakeup(struct um_loop *loop)
{
    uint64_t one = 1;
    ssize_t rc;
    do {
        rc = write(loop->wakefd, &one, sizeof one);
    } while (rc < 0 && errno == EINTR);
}

/* lock held; true: the caller must um_loop_wakeup() after unlocking */
bool um_loop_must_wake(struct um_loop *loop)
{
    bool wake = (loop->marks & UM_LOOP_ASLEEP) != 0;
    loop->marks &= ~(unsigned)UM_LOOP_ASLEEP;
    return wake;
}

void um_loop_on_wake(struct um_fd *ufd, uint32_t ready, uint64_t now_ns)
{
    uint64_t count;
    if (read(ufd->fd, &count, sizeof count) < 0) {
        return; /* EAGAIN: another wake-up was merged into this one */
    }
}

void um_command_init(struct um_command *cmd, void (*fn)(struct um_command *cmd))
{
    um_list_init(&cmd->node);
    cmd->fn = fn;
    cmd->posted = false;
}

/* lock held */
static void um_loop_enqueue(struct um_loop *loop, struct um_command *cmd)
{
    cmd->posted = true;
    um_list_push_back(&loop->commands, &cmd->node);
    atomic_fetch_add_explicit(&loop->pending, 1, memory_order_release);
}

/* lock held */
static void um_loop_dequeue(struct um_loop *loop, struct um_command *cmd)
{
    um_list_remove(&cmd->node);
    cmd->posted = false;
    atomic_fetch_sub_explicit(&loop->pending, 1, memory_order_release);
}

void um_loop_post(struct um_loop *loop, struct um_command *cmd)
{
    pthread_mutex_lock(&loop->lock);
    bool wake = false;
    if (!cmd->posted) {
        um_loop_enqueue(loop, cmd);
        wake = um_loop_must_wake(loop);
    }
    pthread_mutex_unlock(&loop->lock);
    if (wake) {
        um_loop_wakeup(loop);
    }
}

void um_loop_unpost(struct um_loop *loop, struct um_command *cmd)
{
    pthread_mutex_lock(&loop->lock);
    if (cmd->posted) {
        um_loop_dequeue(loop, cmd);
    }
    pthread_mutex_unlock(&loop->lock);
}

/* Run what is in the mailbox now; what is posted meanwhile waits for the next pass. */
int um_loop_run_commands(struct um_loop *loop)
{
    if (atomic_load_explicit(&loop->pending, memory_order_acquire) == 0) {
        return 0;
    }
    int ran = 0;
    pthread_mutex_lock(&loop->lock);
    struct um_list *node;
    while ((node = um_list_first(&loop->commands)) != NULL) {
        um_list_remove(node);
        um_list_push_back(&loop->running, node);
    }
    while ((node = um_list_first(&loop->running)) != NULL) {
        struct um_command *cmd = UM_CONTAINER_OF(node, struct um_command, node);
        um_loop_dequeue(loop, cmd);
        pthread_mutex_unlock(&loop->lock);
        cmd->fn(cmd);
        ran++;
        pthread_mutex_lock(&loop->lock);
    }
    pthread_mutex_unlock(&loop->lock);
    return ran;
}

/* ---- calls ---- */

/* A command with somebody waiting for its result. */
struct um_call {
    struct um_command command;
    struct um_loop *loop;
    int (*fn)(void *arg);
    void *arg;
    int result;
    bool done; /* loop lock */
    struct um_error_state error;
};

static void um_call_execute(struct um_call *call)
{
    call->result = call->fn(call->arg);
    if (call->result < 0) {
        um_error_save(&call->error);
    }
}

static void um_call_on_loop(struct um_command *cmd)
{
    struct um_call *call = UM_CONTAINER_OF(cmd, struct um_call, command);
    struct um_loop *loop = call->loop;
    um_call_execute(call);
    pthread_mutex_lock(&loop->lock);
    call->done = true;
    pthread_cond_broadcast(&loop->changed);
    pthread_mutex_unlock(&loop->lock);
}

/* Sequential mode and no host (lock held): run the command here. */
static void um_call_as_owner(struct um_loop *loop, struct um_call *call)
{
    if (call->command.posted) {
        um_loop_dequeue(loop, &call->command);
    }
    loop->host = UM_HOST_CALL;
    pthread_mutex_unlock(&loop->lock);
    um_loop_take_turn(loop);
    um_loop_refresh(loop);
    um_call_execute(call);
    um_loop_give_turn(loop);
    pthread_mutex_lock(&loop->lock);
    um_loop_host_leaves(loop);
    call->done = true;
}

int um_loop_call(struct um_loop *loop, int (*fn)(void *arg), void *arg)
{
    if (um_loop_on_thread(loop)) {
        return fn(arg);
    }
    if (um_loop_wait_begin(loop) < 0) {
        return -1;
    }
    struct um_call call = {.loop = loop, .fn = fn, .arg = arg};
    um_command_init(&call.command, um_call_on_loop);
    pthread_mutex_lock(&loop->lock);
    if (loop->embedded || loop->host != UM_HOST_NONE) {
        um_loop_enqueue(loop, &call.command);
        if (um_loop_must_wake(loop)) {
            um_loop_wakeup(loop);
        }
    }
    while (!call.done) {
        /* A command already taken by a host that is running it is no longer posted: wait for it. */
        bool free = !loop->embedded && loop->host == UM_HOST_NONE;
        if (free) {
            um_call_as_owner(loop, &call);
        } else {
            pthread_cond_wait(&loop->changed, &loop->lock);
        }
    }
    pthread_mutex_unlock(&loop->lock);
    um_loop_wait_end();
    if (call.result < 0) {
        um_error_restore(&call.error);
    }
    return call.result;
}

static int um_loop_run_mailbox(void *arg)
{
    um_loop_run_commands(arg);
    return 0;
}

/* A call comes after what was posted before it, but for a sequential loop without a host. */
int um_loop_sync(struct um_loop *loop)
{
    return um_loop_on_thread(loop) ? 0 : um_loop_call(loop, um_loop_run_mailbox, loop);
}

int um_loop_refuses(const struct um_loop *loop, const char *api)
{
    if (!um_loop_in_family(loop)) {
        return 0;
    }
    return um_error(UM_EOP, "CoreApi-1010-3",
                    "%s: must not be called in a callback that runs on the context thread; call it from another "
                    "thread, or receive through an event queue",
                    api);
}

int um_loop_call_api(struct um_loop *loop, const char *api, int (*fn)(void *arg), void *arg)
{
    return um_loop_refuses(loop, api) < 0 ? -1 : um_loop_call(loop, fn, arg);
}
