/* Rotation, activity and keepalives of unicast topic resolution. See um_tr_unicast.h. */
#include "resolver/um_tr_unicast.h"

#include "base/um_error.h"
#include "base/um_mem.h"
#include "base/um_random.h"
#include "base/um_timer.h"

struct daemon_state {
    uint64_t heard_ns; /* or when waiting for it began */
    bool active;
    bool heard;
    bool sent; /* since the last keepalive expiry */
};

struct um_tr_unicast {
    struct um_tr_unicast_config config;
    struct um_tr_unicast_ops ops;
    void *io;
    struct um_rng rng;
    size_t current;
    uint64_t change_due_ns, check_due_ns, keepalive_due_ns; /* UM_NEVER: off */
    bool started;
    size_t count;
    struct daemon_state daemons[];
};

static bool any_active(const struct um_tr_unicast *unicast)
{
    for (size_t i = 0; i < unicast->count; i++) {
        if (unicast->daemons[i].active) {
            return true;
        }
    }
    return false;
}

/* A random time around the change interval: half to one and a half of it, half as long when nothing is active. */
static uint64_t change_after(struct um_tr_unicast *unicast, uint64_t now_ns)
{
    uint64_t base = unicast->config.change_interval_ns;
    if (unicast->count < 2 || base == 0) {
        return UM_NEVER;
    }
    base = any_active(unicast) ? base : base / 2;
    return now_ns + um_rng_range(&unicast->rng, base / 2, base + base / 2);
}

struct um_tr_unicast *um_tr_unicast_create(const struct um_tr_unicast_config *config,
                                           const struct um_tr_unicast_ops *ops, void *io, size_t daemons, uint64_t seed,
                                           uint64_t now_ns)
{
    size_t bytes = sizeof(struct um_tr_unicast) + daemons * sizeof(struct daemon_state);
    struct um_tr_unicast *unicast = um_calloc(1, bytes);
    if (unicast == NULL) {
        um_error_nomem("unicast topic resolution", bytes);
        return NULL;
    }
    unicast->config = *config;
    unicast->ops = *ops;
    unicast->io = io;
    unicast->count = daemons;
    um_rng_seed(&unicast->rng, seed);
    unicast->current = (size_t)um_rng_range(&unicast->rng, 0, daemons - 1);
    unicast->check_due_ns = unicast->keepalive_due_ns = UM_NEVER;
    for (size_t i = 0; i < daemons; i++) {
        unicast->daemons[i].active = true;
    }
    unicast->change_due_ns = change_after(unicast, now_ns);
    if (config->force_alive) {
        um_tr_unicast_start(unicast, now_ns);
    }
    return unicast;
}

void um_tr_unicast_destroy(struct um_tr_unicast *unicast)
{
    um_free(unicast);
}

void um_tr_unicast_start(struct um_tr_unicast *unicast, uint64_t now_ns)
{
    if (unicast->started) {
        return;
    }
    unicast->started = true;
    for (size_t i = 0; i < unicast->count; i++) {
        unicast->daemons[i].heard_ns = now_ns;
    }
    /* The first keepalives go out at once: every daemon knows this client from the start. */
    unicast->keepalive_due_ns = unicast->config.keepalive_interval_ns == 0 ? UM_NEVER : now_ns;
    bool checks = unicast->config.check_interval_ns != 0 && unicast->config.activity_timeout_ns != 0;
    unicast->check_due_ns = checks ? now_ns + unicast->config.check_interval_ns : UM_NEVER;
}

int um_tr_unicast_current(const struct um_tr_unicast *unicast)
{
    return unicast->daemons[unicast->current].active ? (int)unicast->current : -1;
}

bool um_tr_unicast_active(const struct um_tr_unicast *unicast, size_t daemon)
{
    return unicast->daemons[daemon].active;
}

void um_tr_unicast_sent(struct um_tr_unicast *unicast, size_t daemon)
{
    unicast->daemons[daemon].sent = true;
}

/* The next active daemon in turn; the next one at all when none is active. */
static void rotate(struct um_tr_unicast *unicast)
{
    for (size_t step = 1; step <= unicast->count; step++) {
        size_t next = (unicast->current + step) % unicast->count;
        if (unicast->daemons[next].active || !any_active(unicast)) {
            unicast->current = next;
            return;
        }
    }
}

void um_tr_unicast_heard(struct um_tr_unicast *unicast, uint64_t now_ns, size_t daemon)
{
    struct daemon_state *state = &unicast->daemons[daemon];
    state->heard_ns = now_ns;
    state->heard = true;
    state->active = true;
    if (!unicast->daemons[unicast->current].active) {
        rotate(unicast);
    }
}

static void check_activity(struct um_tr_unicast *unicast, uint64_t now_ns)
{
    for (size_t i = 0; i < unicast->count; i++) {
        struct daemon_state *state = &unicast->daemons[i];
        if (state->active && now_ns - state->heard_ns > unicast->config.activity_timeout_ns) {
            state->active = false;
            unicast->ops.went_inactive(unicast->io, i, state->heard);
        }
    }
    if (!unicast->daemons[unicast->current].active && any_active(unicast)) {
        rotate(unicast);
    }
}

static void send_keepalives(struct um_tr_unicast *unicast)
{
    for (size_t i = 0; i < unicast->count; i++) {
        if (!unicast->daemons[i].sent) {
            unicast->ops.keepalive(unicast->io, i);
        }
        unicast->daemons[i].sent = false;
    }
}

/* Periodic work missed by a stopped process is done once. */
static uint64_t following(uint64_t due_ns, uint64_t interval_ns, uint64_t now_ns)
{
    return due_ns + interval_ns > now_ns ? due_ns + interval_ns : now_ns + interval_ns;
}

void um_tr_unicast_on_timer(struct um_tr_unicast *unicast, uint64_t now_ns)
{
    if (now_ns >= unicast->keepalive_due_ns) {
        send_keepalives(unicast);
        unicast->keepalive_due_ns = following(unicast->keepalive_due_ns, unicast->config.keepalive_interval_ns, now_ns);
    }
    if (now_ns >= unicast->check_due_ns) {
        check_activity(unicast, now_ns);
        unicast->check_due_ns = following(unicast->check_due_ns, unicast->config.check_interval_ns, now_ns);
    }
    if (now_ns >= unicast->change_due_ns) {
        rotate(unicast);
        unicast->change_due_ns = change_after(unicast, now_ns);
    }
}

uint64_t um_tr_unicast_next(const struct um_tr_unicast *unicast)
{
    uint64_t next = unicast->change_due_ns;
    if (!unicast->started) {
        return UM_NEVER; /* nothing is sent yet: rotation can wait */
    }
    next = unicast->check_due_ns < next ? unicast->check_due_ns : next;
    return unicast->keepalive_due_ns < next ? unicast->keepalive_due_ns : next;
}
