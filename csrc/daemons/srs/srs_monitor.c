/* See srs_monitor.h. Three threads meet here: the loop of the daemon hands over
 * events, the thread of the context commands, and the monitor's own thread
 * publishes. What they share is under the lock, which nobody keeps while it
 * waits, sends or formats. */
#include "srs_monitor.h"

#include <arpa/inet.h>
#include <inttypes.h>
#include <lbm/lbm.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/um_clock.h"
#include "base/um_log.h"
#include "base/um_mem.h"
#include "base/um_thread.h"
#include "base/um_timer.h"
#include "base/um_wait.h"
#include "srs_commands.h"
#include "srs_records.h"

#define EVENTS_MAX 16384u                    /* that wait for their interval: up to 9 MiB */
#define COMMANDS_A_SECOND 50u                /* of all senders; beyond, they are not answered */
#define SNAPSHOT_MIN_NS (100 * UM_NS_PER_MS) /* between two snapshots of a category: those meanwhile are one */
#define ROOM_NS (10 * UM_NS_PER_MS)          /* where a receiver is slow, the source is tried again after that */
#define PATIENCE_NS (5 * UM_NS_PER_SEC)      /* for all records of a publication; those left over are lost */

struct srs_monitor {
    struct um_loop *loop;
    const struct um_srs_engine *engine; /* on the loop */
    lbm_context_t *ctx;
    lbm_src_t *src;
    pthread_t thread;
    bool started;
    uint32_t host;               /* address of its context, network order */
    struct srs_records *records; /* monitor's thread, and the loop while that thread waits for it */
    uint64_t sample_due_ns;      /* monitor's thread, as below */
    uint64_t patience_ns;        /* until when this publication may wait for receivers */
    uint64_t snapshot_ns[SRS_INTERVAL_COUNT];
    uint64_t published, lost_records;

    pthread_mutex_t lock;
    pthread_cond_t wake;
    struct srs_settings settings;        /* [lock] with the intervals in force; its texts are the daemon's */
    uint64_t due_ns[SRS_INTERVAL_COUNT]; /* [lock] UM_NEVER: off */
    bool asked[SRS_INTERVAL_COUNT];      /* [lock] for a snapshot */
    bool stopping;                       /* [lock] */
    struct srs_event *events;            /* [lock] ring of EVENTS_MAX */
    unsigned event_head, event_count;    /* [lock] */
    uint64_t lost_events, told_events;   /* [lock] no room; those a line has told of */
    uint64_t command_second, commands;   /* context's thread */
    uint64_t unanswered;                 /* context's thread */
};

/* ---- publishing --------------------------------------------------------------------- */

/* False: the monitor stops, or the publication has had its time. */
static bool wait_for_room(struct srs_monitor *monitor)
{
    uint64_t now_ns = um_clock_ns();
    pthread_mutex_lock(&monitor->lock);
    bool good = !monitor->stopping && now_ns < monitor->patience_ns;
    if (good) {
        um_cond_wait_until(&monitor->wake, &monitor->lock, now_ns + ROOM_NS);
    }
    pthread_mutex_unlock(&monitor->lock);
    return good;
}

static bool send_record(struct srs_monitor *monitor, const char *text, size_t len)
{
    int rc;
    while ((rc = lbm_src_send(monitor->src, text, len, LBM_MSG_FLUSH | LBM_SRC_NONBLOCK)) != 0) {
        if (lbm_errnum() != LBM_EWOULDBLOCK || !wait_for_room(monitor)) {
            return false;
        }
    }
    return true;
}

static void publish(void *arg, const struct srs_record *record)
{
    struct srs_monitor *monitor = arg;
    size_t len;
    char *text = monitor->settings.monitor.protobuf
                     ? srs_record_packet(record, monitor->host, monitor->settings.application_id, &len)
                     : srs_record_json(record, &len);
    if (text != NULL && send_record(monitor, text, len)) {
        monitor->published++;
    } else {
        monitor->lost_records++;
        um_log_limited(um_log_of(srs_category_name(record->category)), um_clock_ns(), UM_LOG_ERR, "SRS-um-19",
                       "a record of %s was not published: %s", srs_category_name(record->category),
                       text == NULL ? "out of memory" : lbm_errmsg());
    }
    free(text);
}

static void free_event(struct srs_event *event)
{
    um_free(event->topic);
    um_free(event->source);
}

static bool take_event(struct srs_monitor *monitor, struct srs_event *out)
{
    pthread_mutex_lock(&monitor->lock);
    bool found = monitor->event_count > 0 && !monitor->stopping;
    if (found) {
        *out = monitor->events[monitor->event_head];
        monitor->event_head = (monitor->event_head + 1) % EVENTS_MAX;
        monitor->event_count--;
    }
    pthread_mutex_unlock(&monitor->lock);
    return found;
}

static void publish_events(struct srs_monitor *monitor)
{
    struct srs_event event;
    pthread_mutex_lock(&monitor->lock);
    unsigned most = monitor->event_count; /* those that come meanwhile have the next turn */
    uint64_t lost = monitor->lost_events - monitor->told_events;
    monitor->told_events = monitor->lost_events;
    pthread_mutex_unlock(&monitor->lock);
    if (lost > 0) {
        um_log_limited(um_log_of_all(), um_clock_ns(), UM_LOG_WARNING, "SRS-um-20",
                       "%" PRIu64 " connection events were not published: more than %u between two publications", lost,
                       EVENTS_MAX);
    }
    for (unsigned i = 0; i < most && take_event(monitor, &event); i++) {
        struct srs_record record = {.category = SRS_INTERVAL_EVENTS, .client = &event.client, .event = &event};
        publish(monitor, &record);
        free_event(&event);
    }
}

static int sample_on_loop(void *arg)
{
    struct srs_monitor *monitor = arg;
    return srs_records_sample(monitor->records, monitor->engine) ? 0 : -1;
}

/* Periodic records tell of the last sample; a snapshot tells how things are. */
static void publish_category(struct srs_monitor *monitor, enum srs_interval category, bool snapshot)
{
    uint64_t now_ns = um_clock_ns();
    monitor->patience_ns = now_ns + PATIENCE_NS;
    if (category == SRS_INTERVAL_EVENTS) {
        publish_events(monitor);
        return;
    }
    pthread_mutex_lock(&monitor->lock);
    struct srs_settings settings = monitor->settings;
    pthread_mutex_unlock(&monitor->lock);
    if (snapshot || now_ns >= monitor->sample_due_ns) {
        monitor->sample_due_ns = now_ns + um_ms_ns(settings.monitor.ping_ms);
        um_loop_call(monitor->loop, sample_on_loop, monitor);
    }
    srs_records_publish(monitor->records, category, &settings, snapshot);
}

/* What is due first of all that is due now, and whether it was asked for; else SRS_INTERVAL_DEFAULT, and when to look
 * again. The lock is held. */
static enum srs_interval next_due(struct srs_monitor *monitor, uint64_t now_ns, bool *asked, uint64_t *wake_ns)
{
    *wake_ns = UM_NEVER;
    for (int i = 1; i < SRS_INTERVAL_COUNT; i++) {
        uint64_t may_ns = monitor->asked[i] ? monitor->snapshot_ns[i] : UM_NEVER;
        *asked = may_ns <= now_ns;
        if (*asked) {
            monitor->asked[i] = false;
            monitor->snapshot_ns[i] = now_ns + SNAPSHOT_MIN_NS;
            return (enum srs_interval)i;
        }
        if (monitor->due_ns[i] <= now_ns) {
            monitor->due_ns[i] = now_ns + um_ms_ns(monitor->settings.monitor.interval_ms[i]);
            return (enum srs_interval)i;
        }
        uint64_t next_ns = may_ns < monitor->due_ns[i] ? may_ns : monitor->due_ns[i];
        *wake_ns = next_ns < *wake_ns ? next_ns : *wake_ns;
    }
    return SRS_INTERVAL_DEFAULT;
}

static void *run(void *arg)
{
    struct srs_monitor *monitor = arg;
    pthread_mutex_lock(&monitor->lock);
    while (!monitor->stopping) {
        bool asked;
        uint64_t wake_ns;
        enum srs_interval category = next_due(monitor, um_clock_ns(), &asked, &wake_ns);
        if (category != SRS_INTERVAL_DEFAULT) {
            pthread_mutex_unlock(&monitor->lock);
            publish_category(monitor, category, asked);
            pthread_mutex_lock(&monitor->lock);
        } else if (wake_ns == UM_NEVER) {
            pthread_cond_wait(&monitor->wake, &monitor->lock);
        } else {
            um_cond_wait_until(&monitor->wake, &monitor->lock, wake_ns);
        }
    }
    pthread_mutex_unlock(&monitor->lock);
    return NULL;
}

/* ---- what comes from the other threads -------------------------------------------------- */

/* JSON has no records of interest and of leaves. */
static bool has_form(const struct srs_monitor *monitor, const char *type)
{
    return monitor->settings.monitor.protobuf || type[0] == 'U' || strcmp(type, "SIR") == 0 || strcmp(type, "SDR") == 0;
}

void srs_monitor_event(void *arg, const char *type, uint32_t ip, uint16_t port, uint32_t session_id, const char *topic,
                       const char *source)
{
    struct srs_monitor *monitor = arg;
    struct srs_event event = {.type = type, .client = {0, ip, port, session_id}, .time = time(NULL)};
    if (monitor->events == NULL || !has_form(monitor, type)) { /* not allowed, or no memory for them */
        return;
    }
    event.topic = topic != NULL ? um_strdup(topic) : NULL;
    event.source = source != NULL ? um_strdup(source) : NULL;
    pthread_mutex_lock(&monitor->lock);
    if (monitor->event_count == EVENTS_MAX) { /* the newest ones are kept */
        free_event(&monitor->events[monitor->event_head]);
        monitor->event_head = (monitor->event_head + 1) % EVENTS_MAX;
        monitor->event_count--;
        monitor->lost_events++;
    }
    monitor->events[(monitor->event_head + monitor->event_count++) % EVENTS_MAX] = event;
    pthread_mutex_unlock(&monitor->lock);
}

/* The lock is held. */
static void set_interval(struct srs_monitor *monitor, enum srs_interval category, uint64_t interval_ms)
{
    monitor->settings.monitor.interval_ms[category] = interval_ms;
    monitor->due_ns[category] = interval_ms > 0 ? um_clock_ns() + um_ms_ns(interval_ms) : UM_NEVER;
}

static void carry_out(struct srs_monitor *monitor, const struct srs_command *command)
{
    pthread_mutex_lock(&monitor->lock);
    if (command->kind == SRS_COMMAND_SNAPSHOT) {
        monitor->asked[command->category] = true;
    } else if (command->kind == SRS_COMMAND_INTERVAL) {
        set_interval(monitor, command->category, command->interval_ms);
    }
    pthread_cond_signal(&monitor->wake);
    pthread_mutex_unlock(&monitor->lock);
}

static bool has_budget(struct srs_monitor *monitor)
{
    uint64_t second = um_clock_ns() / UM_NS_PER_SEC;
    if (second != monitor->command_second) {
        monitor->command_second = second;
        monitor->commands = 0;
    }
    return ++monitor->commands <= COMMANDS_A_SECOND;
}

static int on_command(lbm_context_t *ctx, lbm_msg_t *msg, void *clientd)
{
    struct srs_monitor *monitor = clientd;
    struct srs_command command;
    if (msg->type != LBM_MSG_REQUEST || !has_budget(monitor)) {
        monitor->unanswered++;
        um_log_limited(um_log_of(msg->source), um_clock_ns(), UM_LOG_WARNING, "SRS-um-18",
                       "a command of [%s] was not answered: it is no request, or there are more than %u in a second "
                       "(%" PRIu64 " so far)",
                       msg->source, COMMANDS_A_SECOND, monitor->unanswered);
        return 0;
    }
    srs_command_read(&monitor->settings.monitor, msg->data, msg->len, &command); /* permissions never change */
    carry_out(monitor, &command);
    if (lbm_send_response(msg->response, command.answer, strlen(command.answer) + 1, LBM_SRC_NONBLOCK) < 0) {
        monitor->unanswered++;
    }
    return 0;
}

/* ---- beginning ------------------------------------------------------------------------------ */

struct attributes {
    lbm_context_attr_t *context;
    lbm_src_topic_attr_t *source;
    lbm_rcv_topic_attr_t *receiver; /* checked only: the monitor receives nothing by topic */
};

static void free_attributes(struct attributes *attributes)
{
    if (attributes->context != NULL) {
        lbm_context_attr_delete(attributes->context);
    }
    if (attributes->source != NULL) {
        lbm_src_topic_attr_delete(attributes->source);
    }
    if (attributes->receiver != NULL) {
        lbm_rcv_topic_attr_delete(attributes->receiver);
    }
}

static int set_attribute(struct attributes *attributes, const struct srs_attribute *attribute)
{
    switch (attribute->scope[0]) {
    case 'c':
        return lbm_context_attr_str_setopt(attributes->context, attribute->name, attribute->value);
    case 's':
        return lbm_src_topic_attr_str_setopt(attributes->source, attribute->name, attribute->value);
    default:
        return lbm_rcv_topic_attr_str_setopt(attributes->receiver, attribute->name, attribute->value);
    }
}

/* NULL: good; else what is not, with the reason in lbm_errmsg(). */
static const char *make_attributes(struct attributes *out, const struct srs_monitor_settings *settings)
{
    *out = (struct attributes){NULL, NULL, NULL};
    if (lbm_context_attr_create(&out->context) != 0 || lbm_src_topic_attr_create(&out->source) != 0 ||
        lbm_rcv_topic_attr_create(&out->receiver) != 0) {
        return "attributes";
    }
    for (unsigned i = 0; i < settings->attribute_count; i++) {
        if (set_attribute(out, &settings->attributes[i]) != 0) {
            return settings->attributes[i].name;
        }
    }
    return NULL;
}

bool srs_monitor_check(const struct srs_settings *settings, FILE *errors)
{
    struct attributes attributes;
    const char *wrong = make_attributes(&attributes, &settings->monitor);
    if (wrong != NULL) {
        fprintf(errors, "SRS-10386-1303: lbm-attributes: option %s: %s\n", wrong, lbm_errmsg());
    }
    free_attributes(&attributes);
    return wrong == NULL;
}

/* NULL: good. */
static const char *make_objects(struct srs_monitor *monitor, const struct srs_monitor_settings *settings)
{
    struct attributes attributes;
    lbm_topic_t *topic;
    const char *wrong = make_attributes(&attributes, settings);
    if (wrong == NULL && lbm_context_create(&monitor->ctx, attributes.context, NULL, NULL) != 0) {
        wrong = "its context";
    }
    if (wrong == NULL && lbm_context_rcv_immediate_msgs(monitor->ctx, on_command, monitor, NULL) != 0) {
        wrong = "its commands";
    }
    if (wrong == NULL && (lbm_src_topic_alloc(&topic, monitor->ctx, settings->topic, attributes.source) != 0 ||
                          lbm_src_create(&monitor->src, monitor->ctx, topic, NULL, NULL, NULL) != 0)) {
        wrong = "its source";
    }
    free_attributes(&attributes);
    return wrong;
}

/* That of its context, as others see it. */
static uint32_t own_address(struct srs_monitor *monitor)
{
    char address[256];
    size_t len = sizeof(address);
    struct in_addr ip = {0};
    if (lbm_context_str_getopt(monitor->ctx, "resolver_multicast_interface", address, &len) == 0) {
        address[strcspn(address, "/")] = '\0';
        inet_pton(AF_INET, address, &ip);
    }
    return ip.s_addr;
}

static void log_start(struct srs_monitor *monitor)
{
    char bound[256], port[256], address[256];
    size_t bound_len = sizeof(bound), port_len = sizeof(port), address_len = sizeof(address);
    um_log(UM_LOG_INFO, "SRS-10386-1403", "Daemon monitor sending monitor info messages on topic: %s",
           monitor->settings.monitor.topic);
    if (lbm_context_str_getopt(monitor->ctx, "request_tcp_bind_request_port", bound, &bound_len) == 0 &&
        strcmp(bound, "1") == 0 && lbm_context_str_getopt(monitor->ctx, "request_tcp_port", port, &port_len) == 0 &&
        lbm_context_str_getopt(monitor->ctx, "request_tcp_interface", address, &address_len) == 0) {
        address[strcspn(address, "/")] = '\0';
        um_log(UM_LOG_INFO, "SRS-10386-1405", "Daemon monitor listens for command requests: TCP:%s:%s", address, port);
    }
}

void srs_monitor_stop(struct srs_monitor *monitor)
{
    if (monitor == NULL) {
        return;
    }
    pthread_mutex_lock(&monitor->lock);
    monitor->stopping = true;
    pthread_cond_signal(&monitor->wake);
    pthread_mutex_unlock(&monitor->lock);
    if (monitor->started) {
        pthread_join(monitor->thread, NULL);
    }
    if (monitor->src != NULL) {
        lbm_src_delete(monitor->src);
    }
    if (monitor->ctx != NULL) {
        lbm_context_delete(monitor->ctx);
    }
    if (monitor->started) {
        um_log(UM_LOG_INFO, "SRS-um-21",
               "daemon monitor ends: %" PRIu64 " records published, %" PRIu64 " records lost, %" PRIu64
               " events lost, %" PRIu64 " commands not answered",
               monitor->published, monitor->lost_records, monitor->lost_events, monitor->unanswered);
    }
    monitor->started = false;
    monitor->src = NULL;
    monitor->ctx = NULL;
}

void srs_monitor_destroy(struct srs_monitor *monitor)
{
    if (monitor == NULL) {
        return;
    }
    for (; monitor->event_count > 0; monitor->event_count--) {
        free_event(&monitor->events[monitor->event_head]);
        monitor->event_head = (monitor->event_head + 1) % EVENTS_MAX;
    }
    if (monitor->records != NULL) {
        srs_records_destroy(monitor->records);
    }
    um_free(monitor->events);
    pthread_cond_destroy(&monitor->wake);
    pthread_mutex_destroy(&monitor->lock);
    um_free(monitor);
}

struct srs_monitor *srs_monitor_create(struct um_loop *loop, const struct srs_settings *settings)
{
    struct srs_monitor *monitor = settings->monitor.topic != NULL ? um_calloc(1, sizeof(*monitor)) : NULL;
    if (monitor == NULL) {
        return NULL;
    }
    monitor->loop = loop;
    monitor->settings = *settings;
    pthread_mutex_init(&monitor->lock, NULL);
    um_cond_init(&monitor->wake);
    monitor->records = srs_records_create(publish, monitor, settings->monitor.protobuf);
    monitor->events = settings->monitor.events_allowed ? um_calloc(EVENTS_MAX, sizeof(*monitor->events)) : NULL;
    const char *wrong = monitor->records == NULL ? "memory" : make_objects(monitor, &settings->monitor);
    if (wrong == NULL) {
        monitor->host = own_address(monitor);
    } else {
        um_log(UM_LOG_ERR, "SRS-um-14", "daemon monitor cannot start, the service goes on without it: %s: %s", wrong,
               lbm_errmsg());
        srs_monitor_stop(monitor);
        srs_monitor_destroy(monitor);
        return NULL;
    }
    return monitor;
}

void srs_monitor_start(struct srs_monitor *monitor, const struct um_srs_engine *engine)
{
    monitor->engine = engine;
    pthread_mutex_lock(&monitor->lock);
    for (int i = 1; i < SRS_INTERVAL_COUNT; i++) {
        set_interval(monitor, (enum srs_interval)i, monitor->settings.monitor.interval_ms[i]);
    }
    pthread_mutex_unlock(&monitor->lock);
    int rc = um_thread_start(&monitor->thread, run, monitor);
    monitor->started = rc == 0;
    if (rc != 0) {
        um_log(UM_LOG_ERR, "SRS-um-14", "daemon monitor cannot start, the service goes on without it: %s",
               strerror(rc));
    } else {
        log_start(monitor);
    }
}
