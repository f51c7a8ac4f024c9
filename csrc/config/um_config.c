/* The process's configuration: built-in and current defaults, the XML table, start-up from the environment, and the
 * effective options of a new object.
 * Any thread; see um_config.h for the lock. */
#include "config/um_config.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/um_debug.h"
#include "base/um_error.h"
#include "base/um_fork.h"
#include "base/um_log.h"
#include "base/um_mem.h"
#include "config/um_config_load.h"
#include "config/um_option_checks.h"
#include "config/um_profile.h"
#include "config/um_xml.h"

enum start { NOT_STARTED, STARTED };

static pthread_mutex_t start_lock = PTHREAD_MUTEX_INITIALIZER; /* one thread starts; the others wait */
static _Thread_local bool starting;                            /* this thread is inside the start-up */
static void start_in_child(void);
UM_FORK_CHILD_LOCK(start_lock, start_in_child)

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
UM_FORK_GUARD(lock)
static enum start state;                       /* [lock] */
static struct um_attr initial[UM_SCOPE_COUNT]; /* constant once started */
static struct um_attr current[UM_SCOPE_COUNT]; /* [lock] */
static unsigned generation[UM_SCOPE_COUNT];    /* [lock] counts the changes of `current` */
static struct um_xml *xml;                     /* [lock] set once, then constant */
static struct um_error_state xml_failure;      /* constant once started; errnum 0: none */

/* ---- start-up ---- */

static void clear_blocks(struct um_attr *blocks)
{
    for (int scope = 0; scope < UM_SCOPE_COUNT; scope++) {
        um_attr_clear(&blocks[scope]);
    }
}

static bool wants_original_ports(void)
{
    const char *text = getenv("LBM_USE_ORIG_DEFAULT_PORTS");
    return text != NULL && strcmp(text, "1") == 0;
}

/* The monitoring variables replace defaults; they do not count as set by the application. */
static void apply_monitor_variables(void)
{
    static const char *const variables[][2] = {{"LBM_MONITOR_INTERVAL", "monitor_interval"},
                                               {"LBM_MONITOR_TRANSPORT", "monitor_transport"},
                                               {"LBM_MONITOR_TRANSPORT_OPTS", "monitor_transport_opts"},
                                               {"LBM_MONITOR_FORMAT", "monitor_format"},
                                               {"LBM_MONITOR_FORMAT_OPTS", "monitor_format_opts"},
                                               {"LBM_MONITOR_APPID", "monitor_appid"}};
    static const enum um_option_scope scopes[] = {UM_SCOPE_CONTEXT, UM_SCOPE_EVENT_QUEUE};
    for (size_t i = 0; i < sizeof variables / sizeof variables[0]; i++) {
        const char *text = getenv(variables[i][0]);
        for (size_t s = 0; text != NULL && s < sizeof scopes / sizeof scopes[0]; s++) {
            const struct um_option *option = um_option_find(scopes[s], variables[i][1]);
            enum um_option_note note;
            if (um_attr_assign(&current[scopes[s]], option, text, NULL, 0, UM_ORIGIN_XML, &note) != 0) {
                um_log(UM_LOG_ERR, "Core-9021-1", "environment variable %s: %s", variables[i][0], um_errmsg());
            }
        }
    }
}

static int make_blocks(void)
{
    bool original = wants_original_ports();
    for (int scope = 0; scope < UM_SCOPE_COUNT; scope++) {
        if (um_attr_init_defaults(&initial[scope], scope, original) != 0 ||
            um_attr_init_copy(&current[scope], &initial[scope]) != 0) {
            clear_blocks(initial);
            clear_blocks(current);
            return -1;
        }
    }
    return 0;
}

static void read_environment(void)
{
    const char *file = getenv("LBM_DEFAULT_CONFIG_FILE");
    const char *xml_file = getenv("LBM_XML_CONFIG_FILENAME");
    if (getenv("LBM_UMM_INFO") != NULL) {
        um_log(UM_LOG_WARNING, "Core-9021-2",
               "environment variable LBM_UMM_INFO is ignored: there is no manager client");
    }
    um_debug_environment();
    if (file != NULL && *file != '\0' && um_config_load_file(file) != 0) {
        um_log(UM_LOG_ERR, "Core-5688-58", "loading default config file failed: %s", um_errmsg());
    }
    if (xml_file != NULL && *xml_file != '\0' &&
        um_config_load_xml_file(xml_file, getenv("LBM_XML_CONFIG_APPNAME")) == UM_XML_REJECTED) {
        um_error_save(&xml_failure);
        um_log(UM_LOG_ERR, "Core-9021-3", "loading the XML configuration named by LBM_XML_CONFIG_FILENAME failed: %s",
               um_errmsg());
    }
}

/* A fork does not wait for the start-up, which may look names up for a minute. Where another thread was at it, the
 * child begins anew; what that thread has made so far is lost there. A log callback may fork in the middle of its own.
 */
static void start_in_child(void)
{
    if (starting) {
        return;
    }
    pthread_mutex_init(&start_lock, NULL);
    if (state != STARTED) {
        xml = NULL;
        memset(&xml_failure, 0, sizeof xml_failure);
    }
}

static bool is_started(void)
{
    pthread_mutex_lock(&lock);
    bool started = state == STARTED;
    pthread_mutex_unlock(&lock);
    return started;
}

/* Sets no error when it succeeds, so that a caller's own error stays. */
static int start(bool with_environment)
{
    struct um_error_state before;
    um_error_save(&before);
    if (make_blocks() != 0) {
        return -1;
    }
    if (with_environment) {
        starting = true; /* what is logged from here on may come back as a call of the library */
        apply_monitor_variables();
        read_environment();
        starting = false;
    }
    pthread_mutex_lock(&lock);
    state = STARTED;
    pthread_mutex_unlock(&lock);
    um_error_restore(&before);
    return 0;
}

int um_config_ready(void)
{
    if (starting || is_started()) {
        return 0;
    }
    pthread_mutex_lock(&start_lock);
    int result = is_started() ? 0 : start(true);
    pthread_mutex_unlock(&start_lock);
    return result;
}

void um_config_start(void)
{
    (void)um_config_ready(); /* a failure repeats, and is reported, when the first object needs its options */
}

/* Whatever does not succeed here is done by the next um_config_ready. */
void um_config_reset(void)
{
    if (!is_started()) {
        pthread_mutex_lock(&start_lock);
        (void)start(false);
        pthread_mutex_unlock(&start_lock);
    }
    pthread_mutex_lock(&lock);
    um_xml_free(xml);
    xml = NULL;
    memset(&xml_failure, 0, sizeof xml_failure);
    for (int scope = 0; scope < UM_SCOPE_COUNT && state == STARTED; scope++) {
        um_attr_clear(&current[scope]);
        generation[scope]++;
        if (um_attr_init_copy(&current[scope], &initial[scope]) != 0) {
            state = NOT_STARTED;
            clear_blocks(initial);
            clear_blocks(current);
        }
    }
    pthread_mutex_unlock(&lock);
    um_option_warnings_reset();
}

/* ---- defaults and the XML table ---- */

int um_config_attr_current(struct um_attr *attr, enum um_option_scope scope)
{
    if (um_config_ready() != 0) {
        return -1;
    }
    pthread_mutex_lock(&lock);
    int result = um_attr_init_copy(attr, &current[scope]);
    pthread_mutex_unlock(&lock);
    return result;
}

int um_config_attr_initial(struct um_attr *attr, enum um_option_scope scope)
{
    return um_config_ready() != 0 ? -1 : um_attr_init_copy(attr, &initial[scope]);
}

/* Put the changed block in place unless somebody else was faster. */
static bool replace_current(struct um_attr *work, unsigned seen)
{
    struct um_attr old;
    pthread_mutex_lock(&lock);
    bool unchanged = generation[work->scope] == seen;
    if (unchanged) {
        old = current[work->scope];
        current[work->scope] = *work;
        generation[work->scope]++;
    }
    pthread_mutex_unlock(&lock);
    um_attr_clear(unchanged ? &old : work);
    return unchanged;
}

int um_config_assign(const struct um_option *option, const char *text, enum um_option_note *note)
{
    struct um_attr work;
    unsigned seen;
    /* The value is parsed outside the lock, because a host name may have to be looked up. */
    do {
        pthread_mutex_lock(&lock);
        seen = generation[option->scope];
        int copied = um_attr_init_copy(&work, &current[option->scope]);
        pthread_mutex_unlock(&lock);
        if (copied != 0) {
            return -1;
        }
        if (um_attr_assign(&work, option, text, NULL, 0, UM_ORIGIN_APPLICATION, note) != 0) {
            um_attr_clear(&work);
            return -1;
        }
    } while (!replace_current(&work, seen));
    return 0;
}

static struct um_xml *installed_xml(void)
{
    pthread_mutex_lock(&lock);
    struct um_xml *table = xml;
    pthread_mutex_unlock(&lock);
    return table;
}

bool um_config_has_xml(void)
{
    return installed_xml() != NULL;
}

int um_config_install_xml(struct um_xml *loaded)
{
    pthread_mutex_lock(&lock);
    bool first = xml == NULL;
    if (first) {
        xml = loaded;
    }
    pthread_mutex_unlock(&lock);
    return first ? 0 : -1;
}

/* ---- attribute objects from XML ---- */

/* The name a context or event queue goes by is one of its options. */
static void complete_key(const struct um_attr *attr, struct um_xml_key *key)
{
    if (attr->scope == UM_SCOPE_CONTEXT) {
        key->context_name = ((struct um_context_options *)attr->options)->context_name;
    } else if (attr->scope == UM_SCOPE_EVENT_QUEUE) {
        key->name = ((struct um_event_queue_options *)attr->options)->event_queue_name;
    }
}

int um_config_attr_set_from_xml(struct um_attr *attr, const struct um_xml_key *key)
{
    if (um_config_ready() != 0) {
        return -1;
    }
    if (xml_failure.errnum != 0) {
        um_error_restore(&xml_failure);
        return -1;
    }
    struct um_xml *table = installed_xml();
    struct um_xml_key full = *key;
    struct um_attr work;
    if (um_attr_init_copy(&work, attr) != 0) {
        return -1;
    }
    if (key->context_name == NULL && key->name == NULL) {
        complete_key(attr, &full);
    }
    if (table != NULL && (um_xml_admit(table, attr->scope, &full) != 0 ||
                          um_xml_apply(table, &full, &work, UM_ORIGIN_XML_OVERWRITE) != 0)) {
        um_attr_clear(&work);
        return -1;
    }
    /* A context or event queue carries its name on to its creation. */
    const char *option = attr->scope == UM_SCOPE_CONTEXT ? "context_name" : "event_queue_name";
    const char *name = attr->scope == UM_SCOPE_CONTEXT ? key->context_name : key->name;
    bool named = attr->scope == UM_SCOPE_CONTEXT || attr->scope == UM_SCOPE_EVENT_QUEUE;
    if (named && name != NULL && um_attr_str_set(&work, option, name) != 0) {
        um_attr_clear(&work);
        return -1;
    }
    um_attr_clear(attr);
    *attr = work;
    return 0;
}

/* ---- effective options of a new object ---- */

static int apply_xml(struct um_attr *work, struct um_xml_key *key)
{
    struct um_xml *table = installed_xml();
    if (xml_failure.errnum != 0) {
        um_error_restore(&xml_failure);
        return -1;
    }
    if (table == NULL) {
        return 0;
    }
    complete_key(work, key);
    /* The name is taken from the options before XML, and outlives a value that XML may give them. */
    char name[LBM_MAX_CONTEXT_NAME_LEN + 1] = "";
    if (key->context_name != NULL && work->scope == UM_SCOPE_CONTEXT) {
        snprintf(name, sizeof name, "%s", key->context_name);
        key->context_name = name;
    } else if (key->name != NULL && work->scope == UM_SCOPE_EVENT_QUEUE) {
        snprintf(name, sizeof name, "%s", key->name);
        key->name = name;
    }
    if (um_xml_admit(table, work->scope, key) != 0 || um_xml_apply(table, key, work, UM_ORIGIN_XML) != 0) {
        return -1;
    }
    return um_xml_check_values(table, key, work);
}

/* A source with stores serves late joiners whatever its option says. */
static void imply_options(struct um_attr *work)
{
    if (work->scope == UM_SCOPE_SOURCE) {
        struct um_source_options *options = work->options;
        if (options->ume_store.count > 0 || options->ume_store_name.count > 0) {
            options->late_join = 1;
        }
    }
}

/* A context has its profile itself, its objects are told. */
static int apply_profile(struct um_attr *work, int profile)
{
    if (work->scope == UM_SCOPE_CONTEXT) {
        profile = ((const struct um_context_options *)work->options)->um_profile;
    }
    return um_profile_apply(work, (enum um_profile)profile, &initial[work->scope]);
}

/* Left at the built-in value by application, files and XML; a profile counts as somebody, too. */
static bool is_untouched(const struct um_attr *work, const char *name)
{
    const struct um_option *option = um_option_find(work->scope, name);
    return !um_attr_is_given(work, option) &&
           um_option_equal(option, um_option_const_field(option, work->options),
                           um_option_const_field(option, initial[work->scope].options));
}

static lbm_uint16_t port_of(const struct um_attr *work, const char *name)
{
    return *(const lbm_uint16_t *)um_option_const_field(um_option_find(work->scope, name), work->options);
}

static void note_default_ranges(struct um_attr *work)
{
    static const struct {
        enum um_option_scope scope;
        enum um_range_id id;
        const char *low, *high;
    } ranges[] = {
        {UM_SCOPE_CONTEXT, UM_RANGE_REQUEST_TCP, "request_tcp_port_low", "request_tcp_port_high"},
        {UM_SCOPE_CONTEXT, UM_RANGE_TRANSPORT_TCP, "transport_tcp_port_low", "transport_tcp_port_high"},
        {UM_SCOPE_CONTEXT, UM_RANGE_RESOLVER_UNICAST, "resolver_unicast_port_low", "resolver_unicast_port_high"},
        {UM_SCOPE_CONTEXT, UM_RANGE_LBTRM_SOURCE, "transport_lbtrm_source_port_low",
         "transport_lbtrm_source_port_high"},
        {UM_SCOPE_CONTEXT, UM_RANGE_LBTRU, "transport_lbtru_port_low", "transport_lbtru_port_high"},
        {UM_SCOPE_RECEIVER, UM_RANGE_LBTRU, "transport_lbtru_port_low", "transport_lbtru_port_high"},
    };
    for (size_t i = 0; i < sizeof ranges / sizeof ranges[0]; i++) {
        if (ranges[i].scope == work->scope && is_untouched(work, ranges[i].low) && is_untouched(work, ranges[i].high)) {
            struct um_default_range *out = work->scope == UM_SCOPE_CONTEXT
                                               ? ((struct um_context_options *)work->options)->default_ranges
                                               : ((struct um_receiver_options *)work->options)->default_ranges;
            out[ranges[i].id] = (struct um_default_range){port_of(work, ranges[i].low), port_of(work, ranges[i].high)};
        }
    }
}

#define NOTE_DEFAULT_BUFFER(work, options, name) (options)->default_buffers.name = is_untouched(work, #name)

static void note_default_buffers(struct um_attr *work)
{
    if (work->scope == UM_SCOPE_CONTEXT) {
        struct um_context_options *options = work->options;
        NOTE_DEFAULT_BUFFER(work, options, resolver_multicast_receiver_socket_buffer);
        NOTE_DEFAULT_BUFFER(work, options, resolver_unicast_receiver_socket_buffer);
        NOTE_DEFAULT_BUFFER(work, options, transport_lbtrm_receiver_socket_buffer);
        NOTE_DEFAULT_BUFFER(work, options, transport_lbtrm_source_socket_buffer);
        NOTE_DEFAULT_BUFFER(work, options, transport_lbtru_receiver_socket_buffer);
        NOTE_DEFAULT_BUFFER(work, options, transport_lbtru_source_socket_buffer);
    }
}

static int resolve(const void *handle, enum um_option_scope scope, struct um_xml_key key, int profile, void *out)
{
    const struct um_attr *attr = handle;
    struct um_attr work;
    if (um_config_ready() != 0 || (attr != NULL && um_attr_check_scope(attr, scope) != 0)) {
        return -1;
    }
    if ((attr != NULL ? um_attr_init_copy(&work, attr) : um_config_attr_current(&work, scope)) != 0) {
        return -1;
    }
    if (apply_xml(&work, &key) != 0 || apply_profile(&work, profile) != 0 ||
        um_options_check(scope, work.options) != 0) {
        um_attr_clear(&work);
        return -1;
    }
    um_options_warn_inactive(scope, work.options, initial[scope].options);
    imply_options(&work);
    note_default_ranges(&work);
    note_default_buffers(&work);
    memcpy(out, work.options, um_options_size(scope)); /* strings and lists change owner */
    um_free(work.options);
    um_free(work.modified);
    return 0;
}

int um_context_options_resolve(const lbm_context_attr_t *attr, struct um_context_options *out)
{
    return resolve(attr, UM_SCOPE_CONTEXT, (struct um_xml_key){0}, UM_PROFILE_NONE, out);
}

int um_source_options_resolve(const lbm_src_topic_attr_t *attr, const char *context_name, int profile,
                              const char *topic, struct um_source_options *out)
{
    return resolve(attr, UM_SCOPE_SOURCE, (struct um_xml_key){.context_name = context_name, .name = topic}, profile,
                   out);
}

int um_receiver_options_resolve(const lbm_rcv_topic_attr_t *attr, const char *context_name, int profile,
                                const char *topic, struct um_receiver_options *out)
{
    return resolve(attr, UM_SCOPE_RECEIVER, (struct um_xml_key){.context_name = context_name, .name = topic}, profile,
                   out);
}

int um_wildcard_receiver_options_resolve(const lbm_wildcard_rcv_attr_t *attr, const char *context_name,
                                         const char *pattern, int pattern_type,
                                         struct um_wildcard_receiver_options *out)
{
    struct um_xml_key key = {.context_name = context_name, .name = pattern, .pattern_type = pattern_type};
    return resolve(attr, UM_SCOPE_WILDCARD_RECEIVER, key, UM_PROFILE_NONE, out);
}

int um_event_queue_options_resolve(const lbm_event_queue_attr_t *attr, struct um_event_queue_options *out)
{
    return resolve(attr, UM_SCOPE_EVENT_QUEUE, (struct um_xml_key){0}, UM_PROFILE_NONE, out);
}

int um_hfx_options_resolve(const lbm_hfx_attr_t *attr, const char *topic, struct um_hfx_options *out)
{
    return resolve(attr, UM_SCOPE_HFX, (struct um_xml_key){.name = topic}, UM_PROFILE_NONE, out);
}

int um_xsp_options_resolve(const lbm_xsp_attr_t *attr, struct um_xsp_options *out)
{
    return resolve(attr, UM_SCOPE_XSP, (struct um_xml_key){0}, UM_PROFILE_NONE, out);
}
