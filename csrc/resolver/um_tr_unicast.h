/* Which lbmrd is used now, which are alive, and when keepalives go out: the
 * decisions of unicast topic resolution, without sockets. Driven by the unicast
 * agent or the simulator; one thread. */
#ifndef UM_RESOLVER_TR_UNICAST_H
#define UM_RESOLVER_TR_UNICAST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define UM_TR_UNICAST_MAX 64 /* daemons of one context */

struct um_tr_unicast;

struct um_tr_unicast_config {
    uint64_t activity_timeout_ns; /* 0: always active */
    uint64_t check_interval_ns;   /* 0: no checks */
    uint64_t change_interval_ns;
    uint64_t keepalive_interval_ns; /* 0: none */
    bool force_alive;
};

struct um_tr_unicast_ops {
    void (*keepalive)(void *io, size_t daemon); /* send one to this daemon */
    void (*went_inactive)(void *io, size_t daemon, bool heard_before);
};

/* NULL + error. */
struct um_tr_unicast *um_tr_unicast_create(const struct um_tr_unicast_config *config,
                                           const struct um_tr_unicast_ops *ops, void *io, size_t daemons, uint64_t seed,
                                           uint64_t now_ns);
void um_tr_unicast_destroy(struct um_tr_unicast *unicast);

/* The daemon that gets the traffic of this moment; -1 while all are inactive. */
int um_tr_unicast_current(const struct um_tr_unicast *unicast);
void um_tr_unicast_sent(struct um_tr_unicast *unicast, size_t daemon); /* something other than a keepalive went there */
void um_tr_unicast_heard(struct um_tr_unicast *unicast, uint64_t now_ns, size_t daemon);
/* The context has its first source or receiver: keepalives start and never end. Harmless when they run. */
void um_tr_unicast_start(struct um_tr_unicast *unicast, uint64_t now_ns);
bool um_tr_unicast_active(const struct um_tr_unicast *unicast, size_t daemon);

void um_tr_unicast_on_timer(struct um_tr_unicast *unicast, uint64_t now_ns);
uint64_t um_tr_unicast_next(const struct um_tr_unicast *unicast); /* when on_timer is wanted; UM_NEVER */

#endif
