/*
 * Room for what a context of Python sends without a source: immediate messages, requests among them, and responses.
 * Attempts never wait; who was refused waits here until the context tells of room (LBM_SRC_EVENT_WAKEUP), or until a
 * time is over. Compiled into um_cffi.binding._native behind um_py_xsp.c by build.py.
 */

typedef struct um_py_room_stct {
    pthread_mutex_t lock;
    pthread_cond_t changed; /* wakeups */
    uint64_t wakeups;       /* lock */
    int fd;                 /* lock; -1: no event loop has waited yet */
} um_py_room_t;

static um_py_room_t *um_py_room_create(void)
{
    um_py_room_t *room = calloc(1, sizeof *room);
    if (room == NULL)
        return NULL;
    pthread_condattr_t attr;
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&room->changed, &attr);
    pthread_condattr_destroy(&attr);
    pthread_mutex_init(&room->lock, NULL);
    room->fd = -1;
    return room;
}

/* Its context is deleted. */
static void um_py_room_delete(um_py_room_t *room)
{
    if (room->fd >= 0)
        close(room->fd);
    pthread_cond_destroy(&room->changed);
    pthread_mutex_destroy(&room->lock);
    free(room);
}

/* Whoever waits looks again. Any thread. */
static void um_py_room_wake(um_py_room_t *room)
{
    pthread_mutex_lock(&room->lock);
    room->wakeups++;
    if (room->fd >= 0)
        um_py_fd_set(room->fd);
    pthread_cond_broadcast(&room->changed);
    pthread_mutex_unlock(&room->lock);
}

/* [the context's thread] */
static int um_py_on_room(lbm_context_t *ctx, int event, void *ed, void *clientd)
{
    (void)ctx, (void)ed;
    if (event == LBM_SRC_EVENT_WAKEUP)
        um_py_room_wake(clientd);
    return 0;
}

/* Into the attributes of a context, which may not outlive it. */
static int um_py_room_install(um_py_room_t *room, lbm_context_attr_t *attr)
{
    lbm_context_src_event_func_t func = {um_py_on_room, NULL, room};
    return lbm_context_attr_setopt(attr, "source_event_function", &func, sizeof func);
}

/* Taken before an attempt, so that no wakeup behind it is missed. */
static uint64_t um_py_room_seen(um_py_room_t *room)
{
    pthread_mutex_lock(&room->lock);
    uint64_t wakeups = room->wakeups;
    pthread_mutex_unlock(&room->lock);
    return wakeups;
}

/* Until there was a wakeup after `seen` was taken, or so many milliseconds. */
static void um_py_room_wait(um_py_room_t *room, uint64_t seen, int wait_ms)
{
    struct timespec deadline;
    int result = 0;
    um_py_deadline(&deadline, wait_ms);
    pthread_mutex_lock(&room->lock);
    while (room->wakeups == seen && result == 0)
        result = pthread_cond_timedwait(&room->changed, &room->lock, &deadline);
    pthread_mutex_unlock(&room->lock);
}

/* Readable after a wakeup, until um_py_clear_fd(); -1: there can be none. */
static int um_py_room_fd(um_py_room_t *room)
{
    pthread_mutex_lock(&room->lock);
    if (room->fd < 0)
        room->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    int fd = room->fd;
    pthread_mutex_unlock(&room->lock);
    return fd;
}
