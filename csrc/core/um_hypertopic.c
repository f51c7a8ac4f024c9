/* HyperTopic receivers. Levels of a topic are separated by '/'. In a pattern a
 * level '*' stands for any one level, and a last level '>' for the rest of the
 * topic, whatever it is; everything else stands for itself. See um_hypertopic.h. */
#include "core/um_hypertopic.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>

#include "base/um_error.h"
#include "base/um_fork.h"
#include "base/um_list.h"
#include "base/um_lock.h"
#include "base/um_mem.h"
#include "config/um_attr.h"
#include "core/um_context.h"
#include "core/um_event_queue.h"
#include "core/um_receiver.h"
#include "net/um_loop.h"

#define HYPERTOPIC_MAGIC 0x554d4854u /* "UMHT" */

struct lbm_hypertopic_rcv_stct {
    _Atomic uint32_t magic; /* any thread reads, also while the object is deleted */
    unsigned fork_generation;
    lbm_context_t *ctx;
    lbm_event_queue_t *evq;
    char *prefix;
    atomic_int refs;      /* any thread: of the application until it is destroyed, of each branch until its end */
    struct um_lock lock;  /* for: */
    struct um_list added; /* branch.node, in the order of the calls */
};

/* One pattern with its callback. */
struct branch {
    struct um_list node;
    lbm_hypertopic_rcv_t *owner; /* a reference */
    lbm_wildcard_rcv_t *wrcv;
    lbm_hypertopic_rcv_cb_proc proc;
    void *clientd;
    lbm_delete_cb_info_t deletion; /* whom its end is told. Written before the wildcard receiver is deleted */
    char pattern[];
};

/* ---- patterns ---- */

struct text {
    char *at; /* NULL: only the length is wanted */
    size_t length;
};

static void put(struct text *out, const char *text, size_t length)
{
    if (out->at != NULL) {
        memcpy(out->at + out->length, text, length);
    }
    out->length += length;
}

static void put_literal(struct text *out, const char *text, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        if (strchr("\\^$.[]|()?*+{}", text[i]) != NULL) {
            put(out, "\\", 1);
        }
        put(out, text + i, 1);
    }
}

/* False: a '>' is not the last level. */
static bool put_expression(struct text *out, const char *prefix, const char *pattern)
{
    put(out, "^", 1);
    put_literal(out, prefix, strlen(prefix));
    for (const char *level = pattern;; level++) {
        size_t length = strcspn(level, "/");
        bool last = level[length] == '\0';
        if (length == 1 && level[0] == '>') {
            put(out, "(?s:.*)", 7);
            if (!last) {
                return false;
            }
        } else if (length == 1 && level[0] == '*') {
            put(out, "[^/]*", 5);
        } else {
            put_literal(out, level, length);
        }
        if (last) {
            put(out, "\\z", 3); /* with the zero */
            return true;
        }
        put(out, "/", 1);
        level += length;
    }
}

char *um_hypertopic_expression(const char *prefix, const char *pattern, const char *api)
{
    struct text out = {.at = NULL};
    if (!put_expression(&out, prefix, pattern)) {
        um_error(UM_EINVAL, "CoreApi-20218-1", "%s: pattern \"%s\": '>' must be the last level", api, pattern);
        return NULL;
    }
    size_t size = out.length;
    out = (struct text){.at = um_malloc(size)};
    if (out.at == NULL) {
        um_error_nomem("HyperTopic pattern", size);
        return NULL;
    }
    put_expression(&out, prefix, pattern);
    return out.at;
}

/* ---- the object ---- */

static int check(const lbm_hypertopic_rcv_t *h, const char *api)
{
    if (h == NULL || h->magic != HYPERTOPIC_MAGIC) {
        return um_error(UM_EINVAL, "CoreApi-20218-2", "%s: hrcv %p: must be a live HyperTopic receiver", api,
                        (const void *)h);
    }
    return um_context_check(h->ctx, api);
}

static void unref(lbm_hypertopic_rcv_t *h)
{
    if (atomic_fetch_sub_explicit(&h->refs, 1, memory_order_acq_rel) == 1) {
        um_free(h->prefix);
        um_free(h);
    }
}

int um_hypertopic_init(lbm_hypertopic_rcv_t **out, lbm_context_t *ctx, const char *prefix, lbm_event_queue_t *evq)
{
    static const char api[] = "lbm_hypertopic_rcv_init";
    if (um_context_check_messaging(ctx, api) != 0 || (evq != NULL && um_event_queue_check(evq, api) != 0)) {
        return -1;
    }
    if (out == NULL) {
        return um_error(UM_EINVAL, "CoreApi-20218-3", "%s: hrcvp: must not be NULL", api);
    }
    lbm_hypertopic_rcv_t *h = um_calloc(1, sizeof *h);
    if (h == NULL || (h->prefix = um_strdup(prefix != NULL ? prefix : "")) == NULL) {
        um_free(h);
        return um_error_nomem("HyperTopic receiver", sizeof *h);
    }
    h->ctx = ctx;
    h->evq = evq;
    atomic_init(&h->refs, 1);
    um_list_init(&h->added);
    h->magic = HYPERTOPIC_MAGIC;
    *out = h;
    return 0;
}

/* ---- branches ---- */

static int on_message(lbm_rcv_t *rcv, lbm_msg_t *msg, void *clientd)
{
    const struct branch *branch = clientd;
    return branch->proc(branch->owner, msg, branch->clientd);
}

/* Pattern types and options of wildcard receivers are those of the process, but for the type. */
static int create_wildcard(struct branch *branch, const char *expression)
{
    lbm_hypertopic_rcv_t *h = branch->owner;
    struct um_attr *attr = um_attr_create(UM_SCOPE_WILDCARD_RECEIVER, UM_ATTR_CURRENT);
    if (attr == NULL) {
        return -1;
    }
    int rc = um_attr_str_set(attr, "pattern_type", "pcre");
    if (rc == 0) {
        rc = um_wildcard_create(&branch->wrcv, h->ctx, expression, NULL, (const lbm_wildcard_rcv_attr_t *)attr,
                                on_message, branch, h->evq, NULL, "lbm_hypertopic_rcv_create");
    }
    um_attr_destroy(attr);
    return rc;
}

static void free_branch(struct branch *branch)
{
    lbm_hypertopic_rcv_t *h = branch->owner;
    um_free(branch);
    unref(h);
}

static struct branch *new_branch(lbm_hypertopic_rcv_t *h, const char *pattern)
{
    size_t size = strlen(pattern) + 1;
    struct branch *branch = um_calloc(1, sizeof *branch + size);
    if (branch == NULL) {
        um_error_nomem("HyperTopic pattern", sizeof *branch + size);
        return NULL;
    }
    memcpy(branch->pattern, pattern, size);
    branch->owner = h;
    atomic_fetch_add_explicit(&h->refs, 1, memory_order_relaxed);
    return branch;
}

int um_hypertopic_add(lbm_hypertopic_rcv_t *h, const char *pattern, lbm_hypertopic_rcv_cb_proc proc, void *clientd)
{
    static const char api[] = "lbm_hypertopic_rcv_add";
    if (check(h, api) != 0) {
        return -1;
    }
    if (pattern == NULL || proc == NULL) {
        return um_error(UM_EINVAL, "CoreApi-20218-4", "%s: %s: must not be NULL", api,
                        pattern == NULL ? "pattern" : "proc");
    }
    char *expression = um_hypertopic_expression(h->prefix, pattern, api);
    struct branch *branch = expression == NULL ? NULL : new_branch(h, pattern);
    if (branch == NULL) {
        um_free(expression);
        return -1;
    }
    branch->proc = proc;
    branch->clientd = clientd;
    int rc = create_wildcard(branch, expression);
    um_free(expression);
    if (rc != 0) {
        free_branch(branch);
        return -1;
    }
    um_lock_take(&h->lock);
    um_list_push_back(&h->added, &branch->node);
    um_lock_give(&h->lock);
    return 0;
}

/* The last callback with it has returned. */
static void on_end(int dispatching, void *clientd)
{
    struct branch *branch = clientd;
    if (branch->deletion.cbproc != NULL) {
        branch->deletion.cbproc(dispatching, branch->deletion.clientd);
    }
    free_branch(branch);
}

/* The first one added of those; off the list. NULL: there is none. */
static struct branch *take(lbm_hypertopic_rcv_t *h, const char *pattern, lbm_hypertopic_rcv_cb_proc proc,
                           const void *clientd)
{
    struct branch *found = NULL;
    struct um_list *node;
    um_lock_take(&h->lock);
    UM_LIST_FOREACH(node, &h->added)
    {
        struct branch *branch = UM_CONTAINER_OF(node, struct branch, node);
        if (branch->proc == proc && branch->clientd == clientd && strcmp(branch->pattern, pattern) == 0) {
            found = branch;
            break;
        }
    }
    if (found != NULL) {
        um_list_remove(&found->node);
    }
    um_lock_give(&h->lock);
    return found;
}

/* Off the list, and on it again when it cannot be deleted. */
static int end_branch(struct branch *branch, const lbm_delete_cb_info_t *cbinfo, const char *api)
{
    lbm_hypertopic_rcv_t *h = branch->owner;
    branch->deletion = cbinfo != NULL ? *cbinfo : (lbm_delete_cb_info_t){.cbproc = NULL};
    if (um_wildcard_delete_told(branch->wrcv, on_end, branch, api) != 0) {
        um_lock_take(&h->lock);
        um_list_push_back(&h->added, &branch->node);
        um_lock_give(&h->lock);
        return -1;
    }
    return 0;
}

int um_hypertopic_delete(lbm_hypertopic_rcv_t *h, const char *pattern, lbm_hypertopic_rcv_cb_proc proc, void *clientd,
                         const lbm_delete_cb_info_t *cbinfo)
{
    static const char api[] = "lbm_hypertopic_rcv_delete";
    if (check(h, api) != 0) {
        return -1;
    }
    struct branch *branch = pattern == NULL ? NULL : take(h, pattern, proc, clientd);
    if (branch == NULL) {
        return um_error(UM_EINVAL, "CoreApi-20218-5",
                        "%s: pattern \"%s\": must have been added with this callback and clientd", api,
                        pattern != NULL ? pattern : "(NULL)");
    }
    return end_branch(branch, cbinfo, api);
}

static struct branch *take_any(lbm_hypertopic_rcv_t *h)
{
    um_lock_take(&h->lock);
    struct um_list *node = um_list_first(&h->added);
    if (node != NULL) {
        um_list_remove(node);
    }
    um_lock_give(&h->lock);
    return node != NULL ? UM_CONTAINER_OF(node, struct branch, node) : NULL;
}

int um_hypertopic_destroy(lbm_hypertopic_rcv_t *h)
{
    static const char api[] = "lbm_hypertopic_rcv_destroy";
    struct branch *branch;
    if (check(h, api) != 0) {
        return -1;
    }
    if (um_loop_in_family(h->ctx->loop)) {
        return um_error(UM_EOP, "CoreApi-20218-6",
                        "%s: must not be called in a callback that runs on the thread of the context", api);
    }
    while ((branch = take_any(h)) != NULL) {
        if (end_branch(branch, NULL, api) != 0) {
            return -1;
        }
    }
    h->magic = 0;
    unref(h);
    return 0;
}
