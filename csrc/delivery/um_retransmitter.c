/* Answers to late joiners and to recovery. See um_retransmitter.h. */
#include "delivery/um_retransmitter.h"

#include <string.h>

#include "base/um_hash.h"
#include "base/um_mem.h"
#include "base/um_timer.h"

#define REQUEST_NS_MAX 50000u /* what a request may well take: the budgets do not go below nothing */

/* What may be used of something that refills: for a second at most. */
struct bucket {
    uint64_t level, at_ns;
};

/* A request that waits for its pace. */
struct waiting {
    uint32_t topic_idx, sqn, len;
    uint32_t ip, asker_ip; /* the answer goes to; it came from */
    uint32_t asker_len;
    uint16_t port;
    bool has_instance;
    uint8_t instance[8];
};

/* First come, first served. */
struct line {
    struct waiting *items; /* ring */
    uint32_t head, count, capacity;
    uint64_t bytes;
};

struct um_retransmitter {
    const struct um_retransmitter_ops *ops;
    void *user;
    uint64_t pace_bytes[UM_RETRANSMITTER_PACES]; /* in a second; 0: not limited */
    struct bucket paces[UM_RETRANSMITTER_PACES];
    struct line lines[UM_RETRANSMITTER_PACES];
    uint64_t due_ns; /* UM_NEVER: no timer */
    struct bucket all, shares[UM_RETRANSMITTER_PLACES];
    uint64_t line_bytes[UM_RETRANSMITTER_PLACES]; /* in lines, of those who ask and share a place */
    struct um_retransmitter_stats stats;
    uint8_t message[UM_LBMC_MAX_MSGLEN];
};

struct um_retransmitter *um_retransmitter_create(const uint64_t pace_bps[UM_RETRANSMITTER_PACES],
                                                 const struct um_retransmitter_ops *ops, void *user)
{
    struct um_retransmitter *retransmitter = um_calloc(1, sizeof *retransmitter);
    if (retransmitter == NULL) {
        return NULL;
    }
    retransmitter->ops = ops;
    retransmitter->user = user;
    retransmitter->due_ns = UM_NEVER;
    for (unsigned i = 0; i < UM_RETRANSMITTER_PACES; i++) {
        retransmitter->pace_bytes[i] = retransmitter->paces[i].level = pace_bps[i] / 8;
    }
    retransmitter->all.level = UM_RETRANSMITTER_WORK_NS;
    for (unsigned i = 0; i < UM_RETRANSMITTER_PLACES; i++) {
        retransmitter->shares[i].level = UM_RETRANSMITTER_SHARE_NS;
    }
    return retransmitter;
}

void um_retransmitter_destroy(struct um_retransmitter *retransmitter)
{
    for (unsigned i = 0; retransmitter != NULL && i < UM_RETRANSMITTER_PACES; i++) {
        um_free(retransmitter->lines[i].items);
    }
    um_free(retransmitter);
}

/* What has come since, in whole units. */
static void refill(struct bucket *bucket, uint64_t rate, uint64_t now_ns)
{
    uint64_t passed_ns = now_ns - bucket->at_ns;
    if (passed_ns == 0) {
        return; /* in the same pass of the loop */
    }
    bucket->at_ns = now_ns;
    if (passed_ns >= UM_NS_PER_SEC || bucket->level + passed_ns * rate / UM_NS_PER_SEC > rate) {
        bucket->level = rate;
    } else {
        uint64_t gained = passed_ns * rate / UM_NS_PER_SEC;
        bucket->level += gained;
        bucket->at_ns -= passed_ns - gained * UM_NS_PER_SEC / rate; /* what was too little for a unit counts later */
    }
}

/* ---- budgets ---- */

static bool may_work(struct um_retransmitter *retransmitter, uint32_t ip, uint64_t now_ns)
{
    struct bucket *share = &retransmitter->shares[um_hash_u32(ip) % UM_RETRANSMITTER_PLACES];
    refill(&retransmitter->all, UM_RETRANSMITTER_WORK_NS, now_ns);
    refill(share, UM_RETRANSMITTER_SHARE_NS, now_ns);
    return retransmitter->all.level >= REQUEST_NS_MAX && share->level >= REQUEST_NS_MAX;
}

static void pay(struct bucket *bucket, uint64_t amount)
{
    bucket->level -= amount < bucket->level ? amount : bucket->level;
}

void um_retransmitter_worked(struct um_retransmitter *retransmitter, uint32_t ip, uint64_t took_ns)
{
    pay(&retransmitter->all, took_ns);
    pay(&retransmitter->shares[um_hash_u32(ip) % UM_RETRANSMITTER_PLACES], took_ns);
}

/* A message longer than a second's worth goes when nothing was sent for a second. */
static bool may_send(struct um_retransmitter *retransmitter, unsigned pace, size_t len, uint64_t now_ns)
{
    uint64_t rate = retransmitter->pace_bytes[pace];
    struct bucket *bucket = &retransmitter->paces[pace];
    if (rate == 0) {
        return true;
    }
    refill(bucket, rate, now_ns);
    if (bucket->level < len && bucket->level < rate) {
        return false;
    }
    pay(bucket, len);
    return true;
}

/* ---- answers ---- */

static void drop(struct um_retransmitter *retransmitter, enum um_retransmitter_drop why,
                 const struct um_retransmitter_asker *asker, uint32_t topic_idx, uint64_t now_ns)
{
    retransmitter->stats.drops[why]++;
    retransmitter->ops->dropped(retransmitter->user, why, asker, topic_idx, now_ns);
}

/* The parts that all requests have in common. False: it is dropped. */
static bool admit(struct um_retransmitter *retransmitter, uint64_t now_ns, uint16_t port,
                  const struct um_retransmitter_asker *asker, uint32_t topic_idx)
{
    retransmitter->stats.requests++;
    if (port == 0) {
        drop(retransmitter, UM_RETRANSMITTER_NO_PORT, asker, topic_idx, now_ns);
        return false;
    }
    if (!may_work(retransmitter, asker->ip, now_ns)) {
        drop(retransmitter, UM_RETRANSMITTER_OVER_BUDGET, asker, topic_idx, now_ns);
        return false;
    }
    return true;
}

static struct um_retransmitter_answer answer_to(const struct um_retransmitter_asker *asker, uint32_t ip, uint16_t port)
{
    return (struct um_retransmitter_answer){.ip = ip != 0 ? ip : asker->ip, .port = port, .instance = asker->instance};
}

/* What goes in front on the connection is no longer than what came in front of the request. */
static bool is_proved(const struct um_retransmitter_asker *asker, const struct um_retransmitter_answer *to, size_t len)
{
    return to->ip == asker->ip ||
           len + UM_LBMC_STREAM_HDR_LEN + UM_LBMC_DESTINATION_HDR_LEN <= UM_RETRANSMITTER_AMPLIFICATION * asker->len;
}

static bool send(struct um_retransmitter *retransmitter, uint64_t now_ns, const struct um_retransmitter_answer *to,
                 const uint8_t *message, size_t len, const struct um_retransmitter_asker *asker, uint32_t topic_idx)
{
    if (!is_proved(asker, to, len)) {
        drop(retransmitter, UM_RETRANSMITTER_UNPROVED, asker, topic_idx, now_ns);
        return false;
    }
    if (!retransmitter->ops->send(retransmitter->user, to, message, len)) {
        drop(retransmitter, UM_RETRANSMITTER_BLOCKED, asker, topic_idx, now_ns);
        return false;
    }
    retransmitter->stats.bytes += len;
    return true;
}

static bool find(struct um_retransmitter *retransmitter, uint64_t now_ns, uint32_t topic_idx, uint32_t transport_idx,
                 const struct um_retransmitter_asker *asker, uint32_t *low, uint32_t *high)
{
    /* transport index: we tell none */
    if (transport_idx != 0 || !retransmitter->ops->range(retransmitter->user, topic_idx, low, high)) {
        drop(retransmitter, UM_RETRANSMITTER_NO_SOURCE, asker, topic_idx, now_ns);
        return false;
    }
    return true;
}

void um_retransmitter_on_lji_req(struct um_retransmitter *retransmitter, uint64_t now_ns,
                                 const struct um_lbmc_lji_req *req, const struct um_retransmitter_asker *asker)
{
    struct um_lbmc_lj_info info = {.request_idx = req->request_idx};
    uint8_t message[UM_LBMC_CONTROL_HDR_LEN + UM_LBMC_LJ_INFO_LEN];
    if (!admit(retransmitter, now_ns, req->port, asker, req->topic_idx) ||
        !find(retransmitter, now_ns, req->topic_idx, req->transport_idx, asker, &info.low, &info.high)) {
        return;
    }
    const struct um_retransmitter_answer to = answer_to(asker, req->ip, req->port);
    um_lbmc_put_control_hdr(message, UM_LBMC_HDR_LJ_INFO, sizeof message);
    um_lbmc_put_lj_info(message + UM_LBMC_CONTROL_HDR_LEN, UM_LBMC_HDR_NONE, &info);
    if (send(retransmitter, now_ns, &to, message, sizeof message, asker, req->topic_idx)) {
        retransmitter->stats.informed++;
    }
}

/* The message into `message`. 0: it is not there, which was told. */
static size_t copy(struct um_retransmitter *retransmitter, uint64_t now_ns, uint32_t topic_idx, uint32_t sqn,
                   const struct um_retransmitter_asker *asker, unsigned *pace)
{
    *pace = 0;
    size_t len = retransmitter->ops->copy(retransmitter->user, topic_idx, sqn, retransmitter->message, pace);
    if (len != 0 && len != UM_RETRANSMITTER_NO_TOPIC) {
        return len;
    }
    drop(retransmitter, len == 0 ? UM_RETRANSMITTER_NOT_KEPT : UM_RETRANSMITTER_NO_SOURCE, asker, topic_idx, now_ns);
    return 0;
}

static void tell_last(struct um_retransmitter *retransmitter, uint64_t now_ns, const struct um_lbmc_rxreq *req,
                      const struct um_retransmitter_asker *asker, uint32_t last)
{
    const struct um_retransmitter_answer to = answer_to(asker, req->ip, req->port);
    uint8_t message[UM_LBMC_CONTROL_HDR_LEN + 12];
    size_t len = um_lbmc_encode_tsni(message, &req->id, &last, 1);
    if (send(retransmitter, now_ns, &to, message, len, asker, req->id)) {
        retransmitter->stats.informed++;
    }
}

/* ---- waiting for the pace ---- */

static bool grow(struct line *line)
{
    uint32_t capacity = line->capacity == 0 ? 16 : line->capacity * 2;
    struct waiting *items = um_malloc(capacity * sizeof *items);
    if (items == NULL) {
        return false;
    }
    for (uint32_t i = 0; i < line->count; i++) {
        items[i] = line->items[(line->head + i) % line->capacity];
    }
    um_free(line->items);
    line->items = items;
    line->head = 0;
    line->capacity = capacity;
    return true;
}

static void arm(struct um_retransmitter *retransmitter, uint64_t due_ns)
{
    if (due_ns < retransmitter->due_ns) {
        retransmitter->due_ns = due_ns;
        retransmitter->ops->set_timer(retransmitter->user, due_ns);
    }
}

/* When the first in line may go. */
static void arm_line(struct um_retransmitter *retransmitter, unsigned pace, uint64_t now_ns)
{
    const struct line *line = &retransmitter->lines[pace];
    if (line->count == 0) {
        return;
    }
    uint64_t rate = retransmitter->pace_bytes[pace], len = line->items[line->head].len;
    uint64_t level = retransmitter->paces[pace].level, wanted = len < rate ? len : rate;
    arm(retransmitter, wanted > level ? now_ns + (wanted - level) * UM_NS_PER_SEC / rate + 1 : now_ns);
}

static unsigned place_in_line(const struct waiting *waiting)
{
    return um_hash_u32(waiting->asker_ip ^ um_hash_u32(waiting->port)) % UM_RETRANSMITTER_PLACES;
}

static struct waiting *in_line(const struct line *line, uint32_t i)
{
    return &line->items[(line->head + i) % line->capacity];
}

static void count_in_line(struct um_retransmitter *retransmitter, struct line *line, const struct waiting *waiting,
                          int sign)
{
    uint64_t len = sign > 0 ? waiting->len : -(uint64_t)waiting->len;
    line->bytes += len;
    line->count += (uint32_t)sign;
    retransmitter->line_bytes[place_in_line(waiting)] += len;
    retransmitter->stats.waiting += (uint64_t)sign;
}

static struct um_retransmitter_asker asker_of(const struct waiting *waiting)
{
    return (struct um_retransmitter_asker){.ip = waiting->asker_ip,
                                           .len = waiting->asker_len,
                                           .instance = waiting->has_instance ? waiting->instance : NULL};
}

/* The newest request of whoever has the most in line gives its place to who has less. False: nobody has more. */
static bool give_place(struct um_retransmitter *retransmitter, struct line *line, const struct waiting *newcomer,
                       uint64_t now_ns)
{
    const uint64_t *bytes = retransmitter->line_bytes;
    unsigned most = 0;
    for (unsigned i = 1; i < UM_RETRANSMITTER_PLACES; i++) {
        most = bytes[i] > bytes[most] ? i : most;
    }
    uint32_t at = line->count;
    while (at > 0 && place_in_line(in_line(line, at - 1)) != most) {
        at--;
    }
    if (at == 0 || bytes[place_in_line(newcomer)] + newcomer->len + in_line(line, at - 1)->len > bytes[most]) {
        return false;
    }
    const struct waiting leaver = *in_line(line, at - 1);
    const struct um_retransmitter_asker asker = asker_of(&leaver);
    for (; at < line->count; at++) {
        *in_line(line, at - 1) = *in_line(line, at);
    }
    count_in_line(retransmitter, line, &leaver, -1);
    drop(retransmitter, UM_RETRANSMITTER_OVER_PACE, &asker, leaver.topic_idx, now_ns);
    return true;
}

static bool is_full(const struct um_retransmitter *retransmitter, unsigned pace, uint32_t len)
{
    const struct line *line = &retransmitter->lines[pace];
    uint64_t room = retransmitter->pace_bytes[pace] * UM_RETRANSMITTER_LINE_MS / 1000;
    return line->count >= UM_RETRANSMITTER_LINE_MAX || (line->count > 0 && line->bytes + len > room);
}

/* False: there is no room in the line. */
static bool enter_line(struct um_retransmitter *retransmitter, unsigned pace, const struct waiting *waiting,
                       uint64_t now_ns)
{
    struct line *line = &retransmitter->lines[pace];
    while (is_full(retransmitter, pace, waiting->len)) {
        if (!give_place(retransmitter, line, waiting, now_ns)) {
            return false;
        }
    }
    if (line->count == line->capacity && !grow(line)) {
        return false;
    }
    *in_line(line, line->count) = *waiting;
    count_in_line(retransmitter, line, waiting, 1);
    retransmitter->stats.waited++;
    arm_line(retransmitter, pace, now_ns);
    return true;
}

static struct waiting leave_line(struct um_retransmitter *retransmitter, unsigned pace)
{
    struct line *line = &retransmitter->lines[pace];
    const struct waiting waiting = line->items[line->head];
    count_in_line(retransmitter, line, &waiting, -1);
    line->head = (line->head + 1) % line->capacity;
    return waiting;
}

static void retransmit(struct um_retransmitter *retransmitter, uint64_t now_ns,
                       const struct um_retransmitter_answer *to, size_t len, const struct um_retransmitter_asker *asker,
                       uint32_t topic_idx)
{
    retransmitter->message[0] = UM_LBMC_RETRANS;
    if (send(retransmitter, now_ns, to, retransmitter->message, len, asker, topic_idx)) {
        retransmitter->stats.retransmitted++;
    }
}

/* The message may be gone by now, and its source, too. */
static void serve(struct um_retransmitter *retransmitter, uint64_t now_ns, const struct waiting *waiting)
{
    const struct um_retransmitter_asker asker = asker_of(waiting);
    const struct um_retransmitter_answer to = answer_to(&asker, waiting->ip, waiting->port);
    unsigned pace;
    size_t len = copy(retransmitter, now_ns, waiting->topic_idx, waiting->sqn, &asker, &pace);
    if (len == 0) {
        return;
    }
    retransmit(retransmitter, now_ns, &to, len, &asker, waiting->topic_idx);
}

void um_retransmitter_on_timer(struct um_retransmitter *retransmitter, uint64_t now_ns)
{
    retransmitter->due_ns = UM_NEVER;
    for (unsigned pace = 0; pace < UM_RETRANSMITTER_PACES; pace++) {
        const struct line *line = &retransmitter->lines[pace];
        while (line->count > 0 && may_send(retransmitter, pace, line->items[line->head].len, now_ns)) {
            const struct waiting waiting = leave_line(retransmitter, pace);
            serve(retransmitter, now_ns, &waiting);
        }
        arm_line(retransmitter, pace, now_ns);
    }
}

/* ---- requests for messages ---- */

void um_retransmitter_on_rxreq(struct um_retransmitter *retransmitter, uint64_t now_ns, const struct um_lbmc_rxreq *req,
                               const struct um_retransmitter_asker *asker)
{
    uint32_t low, high;
    unsigned pace;
    if (!admit(retransmitter, now_ns, req->port, asker, req->id)) {
        return;
    }
    if (req->tsni || req->transport_idx != 0) {
        if (find(retransmitter, now_ns, req->id, req->transport_idx, asker, &low, &high)) {
            tell_last(retransmitter, now_ns, req, asker, high);
        }
        return;
    }
    size_t len = copy(retransmitter, now_ns, req->id, req->sqn, asker, &pace);
    if (len == 0) {
        return;
    }
    const struct um_retransmitter_answer to = answer_to(asker, req->ip, req->port);
    if (!is_proved(asker, &to, len)) {
        drop(retransmitter, UM_RETRANSMITTER_UNPROVED, asker, req->id, now_ns);
        return;
    }
    if (retransmitter->lines[pace].count == 0 && may_send(retransmitter, pace, len, now_ns)) {
        retransmit(retransmitter, now_ns, &to, len, asker, req->id);
        return;
    }
    struct waiting waiting = {.topic_idx = req->id,
                              .sqn = req->sqn,
                              .len = (uint32_t)len,
                              .ip = to.ip,
                              .asker_ip = asker->ip,
                              .asker_len = (uint32_t)asker->len,
                              .port = to.port,
                              .has_instance = asker->instance != NULL};
    if (asker->instance != NULL) {
        memcpy(waiting.instance, asker->instance, sizeof waiting.instance);
    }
    if (!enter_line(retransmitter, pace, &waiting, now_ns)) {
        drop(retransmitter, UM_RETRANSMITTER_OVER_PACE, asker, req->id, now_ns);
    }
}

struct um_retransmitter_stats um_retransmitter_stats(const struct um_retransmitter *retransmitter)
{
    return retransmitter->stats;
}
