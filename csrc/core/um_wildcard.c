/* Wildcard receivers: a pattern, and an internal receiver for each topic that
 * matches it. An internal receiver shares the sources of its topic with all
 * other receivers on it, and goes when its topic has had no source for a while.
 * Runs on the loop except creation checks. */
#include <stdlib.h>
#include <string.h>

#include "base/um_error.h"
#include "base/um_log.h"
#include "base/um_mem.h"
#include "config/um_attr.h"
#include "core/um_monitored.h"
#include "core/um_object_counts.h"
#include "core/um_rcv_private.h"

#define START_RETRY_NS UM_NS_PER_SEC

/* Internal receivers of a context for which nothing was received yet: whoever forges advertisements makes such. Those
 * that have been silent for a while make room. */
#define SILENT_MATCHES_MAX 16384u
#define SILENT_MATCH_HOLD_NS UM_NS_PER_SEC

enum pattern_kind {
    PATTERN_PCRE = LBM_WILDCARD_RCV_PATTERN_TYPE_PCRE,
    PATTERN_REGEX = LBM_WILDCARD_RCV_PATTERN_TYPE_REGEX,
    PATTERN_CALLBACK = LBM_WILDCARD_RCV_PATTERN_TYPE_APP_CB
};

/* ---- matching ---- */

/* Known topics are matched again later; those matched already stay as they are. */
void um_wildcard_on_pattern_incomplete(void *pattern_user)
{
    lbm_wildcard_rcv_t *w = pattern_user;
    if (!um_timer_armed(&w->start_timer)) {
        um_log(UM_LOG_ERR, "Core-20205-14", "pattern \"%s\": out of memory, topics are matched again in a second",
               w->pattern);
        um_timer_arm(um_loop_wheel(w->ctx->loop), &w->start_timer, um_loop_now(w->ctx->loop) + START_RETRY_NS);
    }
}

static bool matches_pcre(lbm_wildcard_rcv_t *w, const char *topic)
{
    enum um_pattern_result result = um_pattern_match(w->pcre, topic, strlen(topic), NULL);
    if (result == UM_PATTERN_NO_MEMORY) {
        um_wildcard_on_pattern_incomplete(w);
    }
    return result == UM_PATTERN_YES;
}

static bool matches(void *pattern_user, const char *topic)
{
    lbm_wildcard_rcv_t *w = pattern_user;
    switch ((enum pattern_kind)w->opts.pattern_type) {
    case PATTERN_PCRE:
        return matches_pcre(w, topic);
    case PATTERN_REGEX:
        return regexec(&w->regex, topic, 0, NULL, 0) == 0;
    case PATTERN_CALLBACK:
        return w->opts.pattern_callback.compfunc(topic, w->opts.pattern_callback.clientd) == 0;
    }
    return false;
}

/* Error texts show 80 characters of a pattern, so that the reason fits. */
static const char *shortened(const char *pattern)
{
    return strnlen(pattern, 81) > 80 ? "..." : "";
}

static int compile_pcre(lbm_wildcard_rcv_t *w, const char *api)
{
    struct um_pattern_error error;
    w->pcre = um_pattern_compile(w->pattern, strlen(w->pattern), &error);
    if (w->pcre == NULL && error.no_memory) {
        return um_error_nomem("pattern", strlen(w->pattern));
    }
    if (w->pcre == NULL) {
        return um_error(UM_EINVAL, "CoreApi-20205-1", "%s: pattern \"%.80s%s\": does not compile: %s at offset %zu",
                        api, w->pattern, shortened(w->pattern), error.text, error.offset);
    }
    return 0;
}

static int compile_regex(lbm_wildcard_rcv_t *w, const char *api)
{
    int rc = regcomp(&w->regex, w->pattern, REG_EXTENDED | REG_NOSUB);
    if (rc == 0) {
        return 0;
    }
    char text[128];
    regerror(rc, &w->regex, text, sizeof text);
    w->opts.pattern_type = PATTERN_PCRE; /* there is nothing for regfree() */
    return um_error(UM_EINVAL, "CoreApi-20205-2", "%s: pattern \"%.80s%s\": does not compile: %s", api, w->pattern,
                    shortened(w->pattern), text);
}

static int compile(lbm_wildcard_rcv_t *w, const char *api)
{
    if (w->opts.pattern_type != PATTERN_PCRE) {
        um_log(UM_LOG_WARNING, "Core-20205-3", "pattern \"%s\": pattern_type %s is deprecated: use pcre", w->pattern,
               w->opts.pattern_type == PATTERN_REGEX ? "regex" : "appcb");
    }
    switch ((enum pattern_kind)w->opts.pattern_type) {
    case PATTERN_PCRE:
        return compile_pcre(w, api);
    case PATTERN_REGEX:
        return compile_regex(w, api);
    case PATTERN_CALLBACK:
        if (w->opts.pattern_callback.compfunc == NULL) {
            return um_error(UM_EINVAL, "CoreApi-20205-4",
                            "%s: pattern \"%s\": pattern_type appcb needs the option pattern_callback", api,
                            w->pattern);
        }
        return 0;
    }
    return um_error(UM_EINVAL, "CoreApi-20205-5", "%s: pattern_type %d: must be pcre, regex or appcb", api,
                    w->opts.pattern_type);
}

/* ---- internal receivers ---- */

/* Options of a topic matched for the first time: those given at creation, which the create callback may edit. */
static int match_options(lbm_wildcard_rcv_t *w, const char *topic, struct um_receiver_options *opts)
{
    const lbm_wildcard_rcv_create_func_t *func = &w->opts.receiver_create_callback;
    if (func->createfunc == NULL) {
        return um_receiver_options_resolve(w->attr, w->ctx->opts.context_name, w->ctx->opts.um_profile, topic, opts);
    }
    struct um_attr *attr = um_attr_dup((const struct um_attr *)w->attr);
    if (attr == NULL) {
        return -1;
    }
    lbm_rcv_topic_attr_t *handle = (lbm_rcv_topic_attr_t *)attr;
    if (func->createfunc(topic, handle, func->clientd) != 0) {
        um_log(UM_LOG_WARNING, "Core-20205-6", "topic [%s]: receiver_create_callback did not return 0", topic);
    }
    int rc = um_receiver_options_resolve(handle, w->ctx->opts.context_name, w->ctx->opts.um_profile, topic, opts);
    um_attr_destroy(attr);
    return rc;
}

static struct um_rcv_topic *matched_topic(lbm_wildcard_rcv_t *w, const char *name)
{
    struct um_receiver_options opts;
    if (match_options(w, name, &opts) != 0) {
        return NULL;
    }
    struct um_rcv_topic *topic = um_rcv_topic_find(w->ctx, name);
    if (topic != NULL) {
        um_options_clear(UM_SCOPE_RECEIVER, &opts); /* the options of the first receiver rule */
        return topic;
    }
    topic = um_rcv_topic_add(w->ctx, name, &opts);
    if (topic == NULL) {
        um_options_clear(UM_SCOPE_RECEIVER, &opts);
    }
    return topic;
}

void um_wildcard_heard(lbm_rcv_t *rcv)
{
    if (rcv->wildcard != NULL && !um_list_empty(&rcv->match->silent_node)) {
        um_list_remove(&rcv->match->silent_node);
        rcv->ctx->silent_match_count--;
    }
}

static void remove_match(lbm_rcv_t *rcv);

static int forget_match(lbm_rcv_t *rcv)
{
    if (um_rcv_may_detach(rcv) != 0) {
        return -1;
    }
    if (rcv->wildcard->tr != NULL) {
        um_resolver_pattern_forget(rcv->wildcard->tr, rcv->topic->base.name);
    }
    remove_match(rcv);
    return 0;
}

static bool make_room(lbm_context_t *ctx, uint64_t now_ns)
{
    if (ctx->silent_match_count < SILENT_MATCHES_MAX) {
        return true;
    }
    const struct um_rcv_match *oldest =
        UM_CONTAINER_OF(um_list_first(&ctx->silent_matches), struct um_rcv_match, silent_node);
    ctx->matches_deferred++;
    um_log_limited(um_log_of_all(), now_ns, UM_LOG_WARNING, "Core-20205-15",
                   "%u topics that match wildcard patterns have brought nothing: the oldest give way, or new ones wait "
                   "(%llu so far); are advertisements forged?",
                   ctx->silent_match_count, (unsigned long long)ctx->matches_deferred);
    if (now_ns - oldest->matched_ns < SILENT_MATCH_HOLD_NS) {
        return false;
    }
    return forget_match(oldest->rcv) == 0;
}

/* NULL + error. */
static lbm_rcv_t *new_receiver(lbm_wildcard_rcv_t *w, struct um_rcv_topic *topic)
{
    lbm_rcv_t *rcv = um_rcv_new(topic, w->proc, w->clientd, w->evq, w);
    if (rcv != NULL && w->opts.hf_receiver != 0 && um_rcv_hf_attach(rcv, NULL) != 0) {
        um_list_remove(&rcv->topic_node);
        um_rcv_unref(rcv);
        return NULL;
    }
    return rcv;
}

int um_wildcard_on_pattern_match(void *pattern_user, const char *topic_name)
{
    lbm_wildcard_rcv_t *w = pattern_user;
    uint64_t now_ns = um_loop_now(w->ctx->loop);
    if (!make_room(w->ctx, now_ns)) {
        return 1;
    }
    struct um_rcv_topic *topic = matched_topic(w, topic_name);
    lbm_rcv_t *rcv = topic == NULL ? NULL : new_receiver(w, topic);
    if (rcv == NULL) {
        um_log(UM_LOG_ERR, "Core-20205-7", "pattern \"%s\": no receiver for topic [%s]: %s", w->pattern, topic_name,
               um_errmsg());
        if (topic != NULL) {
            um_rcv_topic_discard(topic);
        }
        return -1;
    }
    um_list_push_back(&w->matches, &rcv->match->node);
    if (topic->proved == 0) {
        rcv->match->matched_ns = now_ns;
        um_list_push_back(&w->ctx->silent_matches, &rcv->match->silent_node);
        w->ctx->silent_match_count++;
    }
    um_rcv_start(rcv, now_ns);
    return 0;
}

/* It may be detached. */
static void remove_match(lbm_rcv_t *rcv)
{
    lbm_wildcard_rcv_t *w = rcv->wildcard;
    const lbm_wildcard_rcv_delete_func_t *func = &rcv->wildcard->opts.receiver_delete_callback;
    if (func->deletefunc != NULL && func->deletefunc(rcv->topic->base.name, func->clientd) != 0) {
        um_log(UM_LOG_WARNING, "Core-20205-8", "topic [%s]: receiver_delete_callback did not return 0",
               rcv->topic->base.name);
    }
    um_rcv_detach(rcv);
    struct um_dc_stats counts;
    um_rcv_counted(rcv, &counts);
    um_dc_stats_add(&w->ended, &counts);
    w->ended_not_queued += atomic_load_explicit(&rcv->not_queued, memory_order_relaxed);
    um_rcv_unref(rcv);
}

void um_wildcard_linger(lbm_rcv_t *rcv)
{
    if (rcv->wildcard != NULL && !um_timer_armed(&rcv->timer)) {
        uint64_t linger_ns = um_ms_ns(rcv->wildcard->opts.resolver_no_source_linger_timeout);
        um_timer_arm(um_rcv_wheel(rcv->topic), &rcv->timer, um_loop_now(rcv->ctx->loop) + linger_ns);
    }
}

void um_wildcard_keep(lbm_rcv_t *rcv)
{
    if (rcv->wildcard != NULL && rcv->topic->tr != NULL && rcv->started) {
        um_timer_cancel(um_rcv_wheel(rcv->topic), &rcv->timer);
    }
}

void um_wildcard_linger_over(lbm_rcv_t *rcv)
{
    if (!um_list_empty(&rcv->topic->sources) || rcv->topic->retries.count != 0) {
        um_wildcard_linger(rcv); /* what is left of a withdrawn source, or still to be joined: once more round */
        return;
    }
    if (forget_match(rcv) != 0) {
        um_wildcard_linger(rcv);
    }
}

/* ---- immediate messages ---- */

static void want_channels(lbm_rcv_t *stand_in)
{
    const struct um_attr *attr = (const struct um_attr *)stand_in->wildcard->attr;
    int null_channel = 0, unrecognized = 0;
    size_t len = sizeof null_channel;
    um_attr_get(attr, "null_channel_behavior", &null_channel, &len);
    um_attr_get(attr, "unrecognized_channel_behavior", &unrecognized, &len);
    um_rcv_channels_want(stand_in, null_channel, unrecognized);
}

/* No topic is made for what may come once and from anybody; the application gets a receiver all the same, of which the
 * calls for receivers know nothing. NULL: out of memory. */
static lbm_rcv_t *stand_in(lbm_wildcard_rcv_t *w)
{
    if (w->stand_in == NULL && (w->stand_in = um_calloc(1, sizeof *w->stand_in)) != NULL) {
        w->stand_in->ctx = w->ctx;
        w->stand_in->wildcard = w;
        w->stand_in->proc = w->proc;
        w->stand_in->clientd = w->clientd;
        w->stand_in->evq = w->evq;
        want_channels(w->stand_in);
        w->stand_in->indirect = w->evq != NULL || w->stand_in->wants_channels_only;
        w->stand_in->collector = w->collector;
        atomic_init(&w->stand_in->refs, 1);
    }
    return w->stand_in;
}

static lbm_rcv_t *receiver_for(lbm_wildcard_rcv_t *w, const struct um_rcv_topic *topic)
{
    struct um_list *node;
    if (topic != NULL) {
        UM_LIST_FOREACH(node, &topic->receivers)
        {
            lbm_rcv_t *rcv = UM_CONTAINER_OF(node, lbm_rcv_t, topic_node);
            if (rcv->wildcard == w) {
                return rcv;
            }
        }
    }
    return stand_in(w);
}

bool um_wildcards_deliver(lbm_context_t *ctx, struct um_msg *msg, void (*before)(void *arg), void *arg)
{
    const struct um_rcv_topic *topic = um_rcv_topic_find(ctx, msg->pub.topic_name);
    bool any = false;
    struct um_list *node;
    UM_LIST_FOREACH(node, &ctx->wildcard_receivers)
    {
        lbm_wildcard_rcv_t *w = UM_CONTAINER_OF(node, lbm_wildcard_rcv_t, ctx_node);
        lbm_rcv_t *rcv = matches(w, msg->pub.topic_name) ? receiver_for(w, topic) : NULL;
        if (rcv != NULL) {
            before(arg);
            um_rcv_deliver(rcv, msg);
            any = true;
        }
    }
    return any;
}

/* ---- creation and deletion ---- */

static void on_start_timer(struct um_timer *timer, uint64_t now_ns)
{
    lbm_wildcard_rcv_t *w = UM_CONTAINER_OF(timer, lbm_wildcard_rcv_t, start_timer);
    if (w->tr != NULL) {
        um_resolver_match_pattern_again(w->tr);
        return;
    }
    w->tr = um_resolver_subscribe_pattern(w->ctx->resolver, w->pattern, w->opts.pattern_type, &w->opts, matches, w);
    if (w->tr == NULL) {
        um_log(UM_LOG_ERR, "Core-20205-9", "pattern \"%s\": not resolved yet, trying again: %s", w->pattern,
               um_errmsg());
        um_timer_arm(um_loop_wheel(w->ctx->loop), timer, now_ns + START_RETRY_NS);
    }
}

static void free_wildcard(lbm_wildcard_rcv_t *w)
{
    if (w->opts.pattern_type == PATTERN_REGEX) {
        regfree(&w->regex);
    }
    um_pattern_free(w->pcre);
    um_attr_destroy((struct um_attr *)w->attr);
    um_options_clear(UM_SCOPE_WILDCARD_RECEIVER, &w->opts);
    um_rcv_channels_free(atomic_load_explicit(&w->channels, memory_order_relaxed));
    um_free(w->pattern);
    um_free(w);
}

int um_wildcard_check(const lbm_wildcard_rcv_t *w, const char *api)
{
    if (w == NULL || w->magic != UM_WILDCARD_MAGIC) {
        return um_error(UM_EINVAL, "CoreApi-20205-10", "%s: wrcv %p: must be a live wildcard receiver", api,
                        (const void *)w);
    }
    return um_context_check(w->ctx, api);
}

static int resolve_options(const lbm_wildcard_rcv_attr_t *wattr, lbm_context_t *ctx, const char *pattern,
                           struct um_wildcard_receiver_options *opts)
{
    int type = PATTERN_PCRE;
    size_t len = sizeof type;
    if (wattr != NULL && um_attr_get((const struct um_attr *)wattr, "pattern_type", &type, &len) != 0) {
        return -1;
    }
    return um_wildcard_receiver_options_resolve(wattr, ctx->opts.context_name, pattern, type, opts);
}

/* What the internal receivers are made with. NULL + error. */
static struct um_attr *kept_options(const lbm_rcv_topic_attr_t *tattr)
{
    const struct um_attr *attr = (const struct um_attr *)tattr;
    if (attr == NULL) {
        return um_attr_create(UM_SCOPE_RECEIVER, UM_ATTR_CURRENT);
    }
    return um_attr_check_scope(attr, UM_SCOPE_RECEIVER) == 0 ? um_attr_dup(attr) : NULL;
}

static lbm_wildcard_rcv_t *new_wildcard(lbm_context_t *ctx, const char *pattern, const lbm_rcv_topic_attr_t *tattr,
                                        const lbm_wildcard_rcv_attr_t *wattr, const char *api)
{
    lbm_wildcard_rcv_t *w = um_calloc(1, sizeof *w);
    if (w == NULL) {
        um_error_nomem("wildcard receiver", sizeof *w);
        return NULL;
    }
    if (resolve_options(wattr, ctx, pattern, &w->opts) != 0) {
        um_free(w);
        return NULL;
    }
    w->ctx = ctx;
    w->magic = UM_WILDCARD_MAGIC;
    um_list_init(&w->matches);
    um_list_init(&w->ctx_node);
    um_timer_init(&w->start_timer, on_start_timer);
    int type = w->opts.pattern_type;
    w->opts.pattern_type = PATTERN_PCRE; /* until a regex is compiled there is none to free */
    w->pattern = um_strdup(pattern);
    int rc = w->pattern == NULL ? um_error_nomem("pattern", strlen(pattern) + 1) : 0;
    w->attr = (lbm_rcv_topic_attr_t *)kept_options(tattr);
    rc = w->attr == NULL ? -1 : rc;
    if (rc == 0) {
        w->opts.pattern_type = type;
        rc = compile(w, api);
    }
    if (rc != 0) {
        free_wildcard(w);
        return NULL;
    }
    return w;
}

struct create {
    lbm_wildcard_rcv_t *w;
    lbm_wildcard_rcv_t **wrcvp;
};

/* As for receivers: callbacks come from the timer, not from inside the call. */
static int create_on_loop(void *arg)
{
    struct create *create = arg;
    lbm_wildcard_rcv_t *w = create->w;
    if (um_collector_attach(w->proc, w->clientd, w->ctx, &w->collector) != 0) {
        return -1;
    }
    um_list_push_back(&w->ctx->wildcard_receivers, &w->ctx_node);
    atomic_fetch_add(&w->ctx->live_objects, 1);
    um_object_count(UM_OBJECT_RECEIVER, 1);
    um_timer_arm(um_loop_wheel(w->ctx->loop), &w->start_timer, 0);
    um_monitored_wildcard_created(w);
    *create->wrcvp = w;
    return 0;
}

int um_wildcard_create(lbm_wildcard_rcv_t **wrcvp, lbm_context_t *ctx, const char *pattern,
                       const lbm_rcv_topic_attr_t *tattr, const lbm_wildcard_rcv_attr_t *wattr, lbm_rcv_cb_proc proc,
                       void *clientd, lbm_event_queue_t *evq, const struct um_channel_list *channels, const char *api)
{
    if (um_context_check_messaging(ctx, api) != 0 || (evq != NULL && um_event_queue_check(evq, api) != 0)) {
        return -1;
    }
    if (wrcvp == NULL || proc == NULL || pattern == NULL || pattern[0] == '\0') {
        return um_error(UM_EINVAL, "CoreApi-20205-11", "%s: %s: must be given", api,
                        wrcvp == NULL  ? "wrcvp"
                        : proc == NULL ? "proc"
                                       : "pattern");
    }
    if (um_collector_check_receiver(proc, clientd, evq, api) != 0) {
        return -1;
    }
    if (!ctx->opts.resolver_cache) {
        return um_error(UM_EINVAL, "CoreApi-20205-13", "%s: resolver_cache 0: must be 1 for wildcard receivers", api);
    }
    lbm_wildcard_rcv_t *w = new_wildcard(ctx, pattern, tattr, wattr, api);
    if (w == NULL) {
        return -1;
    }
    w->proc = proc;
    w->clientd = clientd;
    w->evq = evq;
    um_event_owner_init(&w->events, evq);
    struct create create = {w, wrcvp};
    struct um_channel_call call = {.wrcv = w, .api = api};
    if (um_rcv_channels_begin(&call, channels) != 0 || um_loop_call_api(ctx->loop, api, create_on_loop, &create) != 0) {
        free_wildcard(w);
        return -1;
    }
    return 0;
}

/* All of it or nothing: whoever is told that there was no memory has a receiver that hears. Each receiver is on a topic
 * of its own, so the memory for one is not spent on another. */
static int delete_on_loop(void *arg)
{
    lbm_wildcard_rcv_t *w = arg;
    struct um_list *node;
    UM_LIST_FOREACH(node, &w->matches)
    {
        if (um_rcv_may_detach(UM_CONTAINER_OF(node, struct um_rcv_match, node)->rcv) != 0) {
            return -1;
        }
    }
    um_timer_cancel(um_loop_wheel(w->ctx->loop), &w->start_timer);
    if (w->tr != NULL) {
        um_resolver_unsubscribe_pattern(w->ctx->resolver, w->tr);
        w->tr = NULL;
    }
    while ((node = um_list_first(&w->matches)) != NULL) {
        remove_match(UM_CONTAINER_OF(node, struct um_rcv_match, node)->rcv);
    }
    um_list_remove(&w->ctx_node);
    w->magic = 0;
    if (w->stand_in != NULL) {
        um_rcv_unref(w->stand_in);
        w->stand_in = NULL;
    }
    return 0;
}

/* No flow calls its receivers any more. */
static int forget_collector(void *arg)
{
    lbm_wildcard_rcv_t *w = arg;
    um_collector_detach(w->collector);
    um_object_count(UM_OBJECT_RECEIVER, -1);
    return 0;
}

static void on_events_idle(struct um_event_owner *owner)
{
    free_wildcard(UM_CONTAINER_OF(owner, lbm_wildcard_rcv_t, events));
}

int um_wildcard_delete_told(lbm_wildcard_rcv_t *w, lbm_event_queue_cancel_cb_proc told, void *arg, const char *api)
{
    lbm_context_t *ctx = w->ctx;
    bool monitored;
    if (um_rcv_may_delete(ctx, api) != 0 || um_monitored_closing(w, ctx->loop, &monitored) != 0) {
        return -1;
    }
    int rc = um_rcv_delete_on_loops(ctx, api, delete_on_loop, forget_collector, w);
    um_monitored_closed(monitored, w, rc == 0);
    if (rc != 0) {
        return -1;
    }
    atomic_fetch_sub(&ctx->live_objects, 1);
    um_event_owner_end(&w->events, told, arg, on_events_idle);
    return 0;
}

int um_wildcard_delete(lbm_wildcard_rcv_t *w, lbm_event_queue_cancel_cb_info_t *cbinfo, const char *api)
{
    if (um_wildcard_check(w, api) != 0 || (cbinfo != NULL && um_event_cancel_check(cbinfo, api) != 0)) {
        return -1;
    }
    return cbinfo != NULL ? um_wildcard_delete_told(w, cbinfo->cbproc, cbinfo->clientd, api)
                          : um_wildcard_delete_told(w, NULL, NULL, api);
}

lbm_context_t *um_wildcard_context(const lbm_wildcard_rcv_t *w)
{
    return w->ctx;
}

lbm_event_queue_t *um_wildcard_event_queue(const lbm_wildcard_rcv_t *w)
{
    return w->evq;
}

/* ---- options: none of them may be set during operation, so reading needs no loop ---- */

int um_wildcard_setopt(lbm_wildcard_rcv_t *w, const char *name, const void *value, size_t len, const char *text)
{
    return text != NULL ? um_options_str_set(UM_SCOPE_WILDCARD_RECEIVER, &w->opts, name, text, true)
                        : um_options_set(UM_SCOPE_WILDCARD_RECEIVER, &w->opts, name, value, len, true);
}

int um_wildcard_getopt(lbm_wildcard_rcv_t *w, const char *name, void *value, size_t *len)
{
    return um_options_get(UM_SCOPE_WILDCARD_RECEIVER, &w->opts, name, value, len);
}

int um_wildcard_str_getopt(lbm_wildcard_rcv_t *w, const char *name, char *text, size_t *len)
{
    return um_options_str_get(UM_SCOPE_WILDCARD_RECEIVER, &w->opts, name, text, len);
}

int um_wildcard_dump(lbm_wildcard_rcv_t *w, int *count, lbm_config_option_t *out)
{
    return um_options_dump(UM_SCOPE_WILDCARD_RECEIVER, &w->opts, count, out);
}
