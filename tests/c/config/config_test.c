/* Options through the public calls: every option of options_expected.tsv against its default and its documented values,
 * then lists, aliases, binary values, live rules, dumps and failing allocations. The table was made from the published
 * option reference, not by calling the library. */
#include "um_test.h"

#include <arpa/inet.h>

#include <lbm/lbm.h>

#include "base/um_log.h"
#include "base/um_mem.h"
#include "config/um_attr.h"
#include "config/um_config.h"
#include "config/um_option_table.h"

/* ---- the seven families behind one set of calls ---- */

struct family {
    const char *scope;
    int (*create)(void **);
    int (*destroy)(void *);
    int (*set)(void *, const char *, const void *, size_t);
    int (*str_set)(void *, const char *, const char *);
    int (*get)(void *, const char *, void *, size_t *);
    int (*str_get)(void *, const char *, char *, size_t *);
    int (*dump)(void *, int *, lbm_config_option_t *);
    int (*option_size)(void);
};

#define FAMILY_CALLS(prefix, type)                                                                                     \
    static int prefix##_c(void **h)                                                                                    \
    {                                                                                                                  \
        return prefix##_create((type **)h);                                                                            \
    }                                                                                                                  \
    static int prefix##_d(void *h)                                                                                     \
    {                                                                                                                  \
        return prefix##_delete(h);                                                                                     \
    }                                                                                                                  \
    static int prefix##_s(void *h, const char *n, const void *v, size_t l)                                             \
    {                                                                                                                  \
        return prefix##_setopt(h, n, v, l);                                                                            \
    }                                                                                                                  \
    static int prefix##_ss(void *h, const char *n, const char *v)                                                      \
    {                                                                                                                  \
        return prefix##_str_setopt(h, n, v);                                                                           \
    }                                                                                                                  \
    static int prefix##_g(void *h, const char *n, void *v, size_t *l)                                                  \
    {                                                                                                                  \
        return prefix##_getopt(h, n, v, l);                                                                            \
    }                                                                                                                  \
    static int prefix##_sg(void *h, const char *n, char *v, size_t *l)                                                 \
    {                                                                                                                  \
        return prefix##_str_getopt(h, n, v, l);                                                                        \
    }                                                                                                                  \
    static int prefix##_du(void *h, int *n, lbm_config_option_t *o)                                                    \
    {                                                                                                                  \
        return prefix##_dump(h, n, o);                                                                                 \
    }

FAMILY_CALLS(lbm_context_attr, lbm_context_attr_t)
FAMILY_CALLS(lbm_src_topic_attr, lbm_src_topic_attr_t)
FAMILY_CALLS(lbm_rcv_topic_attr, lbm_rcv_topic_attr_t)
FAMILY_CALLS(lbm_wildcard_rcv_attr, lbm_wildcard_rcv_attr_t)
FAMILY_CALLS(lbm_event_queue_attr, lbm_event_queue_attr_t)
FAMILY_CALLS(lbm_hfx_attr, lbm_hfx_attr_t)
FAMILY_CALLS(lbm_xsp_attr, lbm_xsp_attr_t)

#define FAMILY(scope, prefix)                                                                                          \
    {                                                                                                                  \
        scope, prefix##_c, prefix##_d, prefix##_s, prefix##_ss, prefix##_g, prefix##_sg, prefix##_du,                  \
            prefix##_option_size                                                                                       \
    }

static const struct family families[] = {FAMILY("context", lbm_context_attr),
                                         FAMILY("source", lbm_src_topic_attr),
                                         FAMILY("receiver", lbm_rcv_topic_attr),
                                         FAMILY("wildcard_receiver", lbm_wildcard_rcv_attr),
                                         FAMILY("event_queue", lbm_event_queue_attr),
                                         FAMILY("hfx", lbm_hfx_attr),
                                         FAMILY("xsp", lbm_xsp_attr)};

enum { FAMILIES = sizeof families / sizeof families[0] };

static const struct family *family_of(const char *scope)
{
    for (int i = 0; i < FAMILIES; i++) {
        if (strcmp(families[i].scope, scope) == 0) {
            return &families[i];
        }
    }
    return NULL;
}

/* ---- the log ---- */

static char last_log[2000];
static int log_lines;

static int record_log(int level, const char *message, void *clientd)
{
    snprintf(last_log, sizeof last_log, "%d %s", level, message);
    log_lines++;
    return 0;
}

/* Tests never ask the network for a name. */
static int one_known_host(const char *name, struct in_addr *out)
{
    out->s_addr = htonl(INADDR_LOOPBACK);
    return strcmp(name, "known.example") == 0 ? 0 : -1;
}

static void fresh(void)
{
    um_option_set_host_resolver(one_known_host);
    um_log_set_proc(record_log, NULL);
    um_config_reset();
    last_log[0] = '\0';
    log_lines = 0;
}

/* ---- the table ---- */

struct expectation {
    char *scope, *option, *text, *accept, *refuse;
};

static char *next_field(char **rest)
{
    char *field = *rest;
    char *tab = strchr(field, '\t');
    if (tab != NULL) {
        *tab = '\0';
        *rest = tab + 1;
    } else {
        field[strcspn(field, "\n")] = '\0';
        *rest = field + strlen(field);
    }
    return field;
}

static FILE *open_table(void)
{
    char path[1024];
    const char *slash = strrchr(__FILE__, '/');
    snprintf(path, sizeof path, "%.*soptions_expected.tsv", slash == NULL ? 0 : (int)(slash + 1 - __FILE__), __FILE__);
    FILE *file = fopen(path, "r");
    if (file == NULL) {
        perror(path);
    }
    return file;
}

static bool next_expectation(FILE *file, char *line, int room, struct expectation *out)
{
    while (fgets(line, room, file) != NULL) {
        if (line[0] != '#') {
            char *rest = line;
            out->scope = next_field(&rest);
            out->option = next_field(&rest);
            out->text = next_field(&rest);
            out->accept = next_field(&rest);
            out->refuse = next_field(&rest);
            return true;
        }
    }
    return false;
}

/* Calls `check` for every row with an attribute object of its scope; returns the number of rows, -1 on trouble. */
static int for_each_expectation(bool (*check)(const struct family *, void *, const struct expectation *))
{
    char line[8192];
    struct expectation e;
    int rows = 0;
    FILE *file = open_table();
    if (file == NULL) {
        return -1;
    }
    while (next_expectation(file, line, sizeof line, &e)) {
        const struct family *f = family_of(e.scope);
        void *attr = NULL;
        if (f == NULL || f->create(&attr) != 0) {
            rows = -1;
            break;
        }
        bool good = check(f, attr, &e);
        f->destroy(attr);
        if (!good) {
            um_test_failed = true;
        }
        rows++;
    }
    fclose(file);
    return rows;
}

static bool default_reads_back(const struct family *f, void *attr, const struct expectation *e)
{
    char text[512] = "";
    size_t len = sizeof text;
    int result = f->str_get(attr, e->option, text, &len);
    if (strcmp(e->text, "REFUSED") == 0) {
        bool good = result == -1 && lbm_errnum() == LBM_EOPNOTSUPP && strstr(lbm_errmsg(), "not supported") != NULL;
        if (!good) {
            fprintf(stderr, "%s %s: str_getopt was not refused\n", e->scope, e->option);
        }
        return good;
    }
    if (result != 0 || strcmp(text, e->text) != 0 || len != strlen(text)) {
        fprintf(stderr, "%s %s: read \"%s\", expected \"%s\" (%s)\n", e->scope, e->option, text, e->text,
                result == 0 ? "ok" : lbm_errmsg());
        return false;
    }
    return true;
}

TEST(every_option_reads_back_the_default_of_the_table)
{
    fresh();
    CHECK_EQ(for_each_expectation(default_reads_back), 503);
}

/* Reads the value, sets what was read, and reads the same again. */
static bool survives_round_trip(const struct family *f, void *attr, const char *option)
{
    char first[4096] = "", second[4096] = "";
    size_t len = sizeof first;
    if (f->str_get(attr, option, first, &len) != 0) {
        return false;
    }
    if (strchr(first, ',') != NULL || strchr(first, ':') != NULL) {
        return true; /* accumulating lists are set entry by entry */
    }
    len = sizeof second;
    return f->str_set(attr, option, first) == 0 && f->str_get(attr, option, second, &len) == 0 &&
           strcmp(first, second) == 0;
}

static bool documented_values_are_accepted(const struct family *f, void *attr, const struct expectation *e)
{
    bool good = true;
    char *rest = e->accept;
    if (strcmp(e->text, "REFUSED") == 0) {
        return true;
    }
    for (char *value = strsep(&rest, "~"); value != NULL; value = strsep(&rest, "~")) {
        if (f->str_set(attr, e->option, value) != 0) {
            fprintf(stderr, "%s %s: '%s' refused: %s\n", e->scope, e->option, value, lbm_errmsg());
            good = false;
        } else if (!survives_round_trip(f, attr, e->option)) {
            fprintf(stderr, "%s %s: '%s' does not read back to itself\n", e->scope, e->option, value);
            good = false;
        }
    }
    return good;
}

TEST(every_option_accepts_its_documented_values)
{
    fresh();
    CHECK_EQ(for_each_expectation(documented_values_are_accepted), 503);
}

static bool other_values_are_refused(const struct family *f, void *attr, const struct expectation *e)
{
    bool good = true;
    char *rest = e->refuse;
    for (char *value = strsep(&rest, "~"); *e->refuse != '\0' && value != NULL; value = strsep(&rest, "~")) {
        char before[4096] = "", after[4096] = "";
        size_t len = sizeof before;
        f->str_get(attr, e->option, before, &len);
        if (f->str_set(attr, e->option, value) != -1 || strstr(lbm_errmsg(), e->option) == NULL) {
            fprintf(stderr, "%s %s: '%s' not refused with a text that names the option: %s\n", e->scope, e->option,
                    value, lbm_errmsg());
            good = false;
        }
        len = sizeof after;
        f->str_get(attr, e->option, after, &len);
        if (strcmp(before, after) != 0) {
            fprintf(stderr, "%s %s: a refused '%s' changed the value\n", e->scope, e->option, value);
            good = false;
        }
    }
    return good;
}

TEST(every_option_refuses_the_rest_and_keeps_its_value)
{
    fresh();
    CHECK_EQ(for_each_expectation(other_values_are_refused), 503);
}

TEST(option_table_is_in_alphabetical_order)
{
    for (int scope = 0; scope < UM_SCOPE_COUNT; scope++) {
        size_t count;
        const struct um_option *rows = um_option_table(scope, &count);
        for (size_t i = 0; i < count; i++) {
            CHECK(i == 0 || strcmp(rows[i - 1].name, rows[i].name) < 0);
            CHECK(um_option_find(scope, rows[i].name) == &rows[i]);
            CHECK(um_option_storage(&rows[i]) != NULL && um_option_storage(&rows[i])->alias_of == NULL);
        }
    }
}

TEST(names_and_scopes_are_case_insensitive_and_unknown_names_are_errors)
{
    fresh();
    lbm_context_attr_t *attr;
    char text[100];
    size_t len = sizeof text;
    CHECK_EQ(lbm_context_attr_create(&attr), 0);
    CHECK_EQ(lbm_context_attr_str_setopt(attr, "Operational_MODE", "SEQUENTIAL"), 0);
    CHECK_EQ(lbm_context_attr_str_getopt(attr, "operational_mode", text, &len), 0);
    CHECK_STR(text, "sequential");
    CHECK_EQ(lbm_context_attr_str_setopt(attr, "no_such_option", "1"), -1);
    CHECK_EQ(lbm_errnum(), LBM_EINVAL);
    CHECK_CONTAINS(lbm_errmsg(), "option no_such_option unknown");
    CHECK_EQ(lbm_context_attr_str_setopt(attr, NULL, "1"), -1);
    CHECK_CONTAINS(lbm_errmsg(), "must not be NULL");
    CHECK_EQ(lbm_context_attr_str_setopt(NULL, "operational_mode", "embedded"), -1);
    len = 79;
    CHECK_EQ(lbm_context_attr_str_getopt(attr, "operational_mode", text, &len), -1);
    CHECK_CONTAINS(lbm_errmsg(), "optlen too small");
    CHECK_EQ(lbm_context_attr_delete(attr), 0);
}

/* ---- binary values ---- */

TEST(binary_values_have_the_size_and_byte_order_of_the_table)
{
    fresh();
    lbm_context_attr_t *attr;
    lbm_src_topic_attr_t *sattr;
    CHECK_EQ(lbm_context_attr_create(&attr), 0);
    CHECK_EQ(lbm_src_topic_attr_create(&sattr), 0);

    lbm_uint16_t port = htons(12345), read_port = 0;
    size_t len = sizeof port;
    char text[100];
    CHECK_EQ(lbm_context_attr_setopt(attr, "request_tcp_port", &port, sizeof port), 0);
    len = sizeof text;
    CHECK_EQ(lbm_context_attr_str_getopt(attr, "request_tcp_port", text, &len), 0);
    CHECK_STR(text, "12345");
    port = 12000; /* the ends of a range are in host order */
    CHECK_EQ(lbm_context_attr_setopt(attr, "request_tcp_port_low", &port, sizeof port), 0);
    len = sizeof text;
    CHECK_EQ(lbm_context_attr_str_getopt(attr, "request_tcp_port_low", text, &len), 0);
    CHECK_STR(text, "12000");
    len = sizeof read_port;
    CHECK_EQ(lbm_context_attr_getopt(attr, "request_tcp_port_low", &read_port, &len), 0);
    CHECK_EQ(read_port, 12000);
    CHECK_EQ(len, 2);

    int wrong = 1;
    CHECK_EQ(lbm_context_attr_setopt(attr, "request_tcp_port_low", &wrong, sizeof wrong), -1);
    CHECK_CONTAINS(lbm_errmsg(), "optlen incorrect size");
    wrong = 2;
    CHECK_EQ(lbm_context_attr_setopt(attr, "resolver_cache", &wrong, sizeof wrong), -1);
    CHECK_CONTAINS(lbm_errmsg(), "optval must be 0 or 1");
    wrong = 5;
    CHECK_EQ(lbm_src_topic_attr_setopt(sattr, "transport", &wrong, sizeof wrong), -1);

    unsigned rate = 250000;
    lbm_uint64_t read_rate = 0;
    CHECK_EQ(lbm_context_attr_setopt(attr, "transport_lbtrm_data_rate_limit", &rate, sizeof rate), 0);
    len = sizeof read_rate;
    CHECK_EQ(lbm_context_attr_getopt(attr, "transport_lbtrm_data_rate_limit", &read_rate, &len), 0);
    CHECK_EQ(read_rate, 250000);

    lbm_uint16_t swapped = htons(1);
    CHECK_EQ(lbm_src_topic_attr_setopt(sattr, "transport_lbtru_allow_ephemeral", &swapped, sizeof swapped), 0);
    len = sizeof swapped;
    CHECK_EQ(lbm_src_topic_attr_getopt(sattr, "transport_lbtru_allow_ephemeral", &swapped, &len), 0);
    CHECK_EQ(swapped, 1);

    CHECK_EQ(lbm_context_attr_setopt(attr, "context_name", "abcdef", 3), 0);
    len = sizeof text;
    CHECK_EQ(lbm_context_attr_getopt(attr, "context_name", text, &len), 0);
    CHECK_STR(text, "abc");
    CHECK_EQ(len, 3);
    len = 2;
    CHECK_EQ(lbm_context_attr_getopt(attr, "context_name", text, &len), -1);
    CHECK_EQ(len, 4);
    lbm_context_attr_delete(attr);
    lbm_src_topic_attr_delete(sattr);
}

static int dummy_notify(const char *topic, const char *source, void *clientd)
{
    return 0;
}

static lbm_ulong_t dummy_hash(const char *text)
{
    return 1;
}

static lbm_ulong_t dummy_hash_ex(const char *text, size_t len, void *clientd)
{
    return 2;
}

TEST(callbacks_are_set_binary_and_the_last_hash_function_wins)
{
    fresh();
    lbm_context_attr_t *attr;
    lbm_src_notify_func_t notify = {dummy_notify, &attr}, back;
    size_t len = sizeof back;
    char text[100];
    CHECK_EQ(lbm_context_attr_create(&attr), 0);
    CHECK_EQ(lbm_context_attr_setopt(attr, "resolver_source_notification_function", &notify, sizeof notify), 0);
    CHECK_EQ(lbm_context_attr_getopt(attr, "resolver_source_notification_function", &back, &len), 0);
    CHECK(back.notifyfunc == dummy_notify && back.clientd == &attr);
    CHECK_EQ(lbm_context_attr_str_setopt(attr, "resolver_source_notification_function", "x"), -1);
    CHECK_EQ(lbm_errnum(), LBM_EOPNOTSUPP);
    CHECK_CONTAINS(lbm_errmsg(), "str_setopt not supported for option");

    lbm_str_hash_func_t plain = {dummy_hash};
    lbm_str_hash_func_ex_t extended = {dummy_hash_ex, NULL};
    CHECK_EQ(lbm_context_attr_setopt(attr, "resolver_string_hash_function", &plain, sizeof plain), 0);
    len = sizeof text;
    CHECK_EQ(lbm_context_attr_str_getopt(attr, "resolver_string_hash_function", text, &len), -1);
    CHECK_EQ(lbm_context_attr_setopt(attr, "resolver_string_hash_function_ex", &extended, sizeof extended), 0);
    len = sizeof plain;
    CHECK_EQ(lbm_context_attr_getopt(attr, "resolver_string_hash_function", &plain, &len), 0);
    CHECK(plain.hashfunc == NULL);
    CHECK_EQ(lbm_context_attr_str_setopt(attr, "resolver_string_hash_function", "djb2"), 0);
    len = sizeof extended;
    CHECK_EQ(lbm_context_attr_getopt(attr, "resolver_string_hash_function_ex", &extended, &len), 0);
    CHECK(extended.hashfunc == NULL);
    lbm_context_attr_delete(attr);
}

/* ---- options that reach others ---- */

static bool reads(const struct family *f, void *attr, const char *option, const char *expected)
{
    char text[1024] = "";
    size_t len = sizeof text;
    bool same = f->str_get(attr, option, text, &len) == 0 && strcmp(text, expected) == 0;
    if (!same) {
        fprintf(stderr, "%s is \"%s\", expected \"%s\"\n", option, text, expected);
    }
    return same;
}

TEST(write_through_aliases_and_coupled_options_change_together)
{
    fresh();
    void *c, *r, *s;
    const struct family *context = family_of("context"), *receiver = family_of("receiver"),
                        *source = family_of("source");
    CHECK_EQ(context->create(&c), 0);
    CHECK_EQ(receiver->create(&r), 0);
    CHECK_EQ(source->create(&s), 0);
    CHECK_EQ(context->str_set(c, "resolver_multicast_port", "4242"), 0);
    CHECK(reads(context, c, "resolver_multicast_incoming_port", "4242"));
    CHECK(reads(context, c, "resolver_multicast_outgoing_port", "4242"));
    CHECK_EQ(context->str_set(c, "resolver_multicast_incoming_port", "4243"), 0);
    CHECK(reads(context, c, "resolver_multicast_outgoing_port", "4242"));
    CHECK_EQ(context->str_set(c, "mim_address", "224.1.1.1"), 0);
    CHECK(reads(context, c, "mim_incoming_address", "224.1.1.1"));
    CHECK(reads(context, c, "mim_outgoing_address", "224.1.1.1"));
    CHECK_EQ(context->str_set(c, "mim_destination_port", "4000"), 0);
    CHECK(reads(context, c, "mim_incoming_destination_port", "4000"));
    CHECK(reads(context, c, "mim_outgoing_destination_port", "4000"));
    CHECK_EQ(source->str_set(s, "ume_late_join", "1"), 0);
    CHECK(reads(source, s, "late_join", "1"));
    CHECK_EQ(receiver->str_set(r, "ume_retransmit_request_interval", "123"), 0);
    CHECK(reads(receiver, r, "retransmit_request_interval", "123"));
    CHECK_EQ(receiver->str_set(r, "ume_explicit_ack_only", "1"), 0);
    CHECK(reads(receiver, r, "ume_use_ack_batching", "0"));
    CHECK_EQ(receiver->str_set(r, "ume_use_ack_batching", "1"), 0);
    CHECK(reads(receiver, r, "ume_explicit_ack_only", "0"));
    context->destroy(c);
    receiver->destroy(r);
    source->destroy(s);
}

TEST(host_names_stand_for_addresses_and_interfaces)
{
    fresh();
    void *c;
    const struct family *context = family_of("context");
    CHECK_EQ(context->create(&c), 0);
    CHECK_EQ(context->str_set(c, "resolver_multicast_address", "known.example"), 0);
    CHECK(reads(context, c, "resolver_multicast_address", "127.0.0.1"));
    CHECK_EQ(context->str_set(c, "default_interface", "known.example"), 0);
    CHECK(reads(context, c, "default_interface", "127.0.0.1/32"));
    CHECK_EQ(context->str_set(c, "default_interface", "known.example/8"), 0);
    CHECK(reads(context, c, "default_interface", "127.0.0.1/8"));
    CHECK_EQ(context->str_set(c, "resolver_unicast_daemon", "known.example:15380"), 0);
    CHECK(reads(context, c, "resolver_unicast_daemon", "127.0.0.1:15380"));
    CHECK_EQ(context->str_set(c, "resolver_multicast_address", "unknown.example"), -1);
    CHECK_CONTAINS(lbm_errmsg(), "host name not found");
    context->destroy(c);
}

TEST(lists_accumulate_skip_duplicates_and_are_cleared_by_their_entry)
{
    fresh();
    void *c, *s;
    const struct family *context = family_of("context"), *source = family_of("source");
    CHECK_EQ(context->create(&c), 0);
    CHECK_EQ(source->create(&s), 0);
    CHECK_EQ(context->str_set(c, "resolver_unicast_daemon", "10.1.1.1:15380"), 0);
    CHECK_EQ(context->str_set(c, "resolver_unicast_daemon", "127.0.0.1:14402->10.1.1.2:15380"), 0);
    CHECK_EQ(log_lines, 0);
    CHECK_EQ(context->str_set(c, "resolver_unicast_daemon", "10.1.1.1:15380"), 0);
    CHECK_CONTAINS(last_log, "Core-9625-1");
    CHECK(reads(context, c, "resolver_unicast_daemon", "10.1.1.1:15380,127.0.0.1/32:14402->10.1.1.2:15380"));
    lbm_ucast_resolver_entry_t entries[2];
    size_t len = sizeof entries;
    CHECK_EQ(context->get(c, "resolver_unicast_daemon", entries, &len), 0);
    CHECK_EQ(len, 2 * sizeof entries[0]);
    CHECK_EQ(ntohs(entries[1].destination_port), 15380);
    CHECK_EQ(ntohs(entries[1].source_port), 14402);
    CHECK_EQ(ntohl(entries[1].resolver_ip), 0x0a010102);
    len = sizeof entries[0];
    CHECK_EQ(context->get(c, "resolver_unicast_daemon", entries, &len), -1);
    CHECK_EQ(len, 2 * sizeof entries[0]);
    char small[10];
    len = sizeof small;
    CHECK_EQ(context->str_get(c, "resolver_unicast_daemon", small, &len), -1);
    CHECK(len > 40);
    CHECK_EQ(context->str_set(c, "resolver_unicast_daemon", "10.1.1.9:1,nonsense"), -1);
    CHECK(reads(context, c, "resolver_unicast_daemon", "10.1.1.1:15380,127.0.0.1/32:14402->10.1.1.2:15380"));
    CHECK_EQ(context->set(c, "resolver_unicast_daemon", entries, sizeof entries), -1);
    CHECK_EQ(context->str_set(c, "resolver_unicast_daemon", "0.0.0.0:0"), 0);
    CHECK(reads(context, c, "resolver_unicast_daemon", ""));
    CHECK_EQ(context->set(c, "resolver_unicast_daemon", entries, sizeof entries[0]), 0);
    CHECK(reads(context, c, "resolver_unicast_daemon", "10.1.1.1:15380"));

    CHECK_EQ(
        context->str_set(c, "resolver_service", "10.0.0.1:1,10.0.0.2:1,10.0.0.3:1,10.0.0.4:1,10.0.0.5:1,10.0.0.6:1"),
        0);
    CHECK_CONTAINS(last_log, "Core-10779-01");
    CHECK(reads(context, c, "resolver_service", "10.0.0.1:1,10.0.0.2:1,10.0.0.3:1,10.0.0.4:1,10.0.0.5:1"));

    CHECK_EQ(source->str_set(s, "ume_store", "10.1.1.1:14567:3:1"), 0);
    CHECK_EQ(source->str_set(s, "ume_store", "7:10.1.1.2:14567"), 0);
    CHECK(reads(source, s, "ume_store", "10.1.1.1:14567:3:1,7:10.1.1.2:14567:0:0"));
    CHECK_EQ(source->str_set(s, "ume_store_group", "1:3"), 0);
    CHECK_EQ(source->str_set(s, "ume_store_group", "2:3"), 0);
    CHECK_EQ(source->str_set(s, "ume_store_group", "1:5"), 0);
    CHECK(reads(source, s, "ume_store_group", "1:5,2:3"));
    CHECK_EQ(source->str_set(s, "ume_store_group", "0:4"), -1);
    CHECK_EQ(source->str_set(s, "umq_ulb_application_set", "0:1,2;1:3"), 0);
    CHECK(reads(source, s, "umq_ulb_application_set", "0:1,2;1:3"));
    CHECK_EQ(source->str_set(s, "umq_ulb_application_set", "0:9"), 0);
    CHECK(reads(source, s, "umq_ulb_application_set", "0:9"));
    context->destroy(c);
    source->destroy(s);
}

/* ---- whole objects ---- */

TEST(dumps_hold_every_row_but_callbacks_in_table_order)
{
    fresh();
    const int rows[] = {216 + 6, 149 + 1, 104 + 9, 11, 15, 6, 2};
    for (int i = 0; i < FAMILIES; i++) {
        const struct family *f = &families[i];
        void *attr;
        size_t count;
        int callbacks = 0;
        const struct um_option *table = um_option_table(um_scope_find(f->scope), &count);
        for (size_t row = 0; row < count; row++) {
            callbacks += table[row].alias_of == NULL && table[row].kind == UM_KIND_CALLBACK &&
                         (table[row].flags & UM_OPT_HIDDEN) == 0;
        }
        int size = f->option_size();
        CHECK_EQ(size, rows[i] - callbacks);
        lbm_config_option_t *options = calloc((size_t)size + 1, sizeof *options);
        CHECK_EQ(f->create(&attr), 0);
        int filled = size + 1;
        CHECK_EQ(f->dump(attr, &filled, options), 0);
        CHECK_EQ(filled, size);
        for (int o = 0; o < filled; o++) {
            char text[512] = "";
            size_t len = sizeof text;
            CHECK_STR(options[o].type, f->scope);
            CHECK(o == 0 || strcmp(options[o - 1].oname, options[o].oname) < 0);
            CHECK_EQ(f->str_get(attr, options[o].oname, text, &len), 0);
            CHECK_STR(options[o].val, text);
        }
        filled = 1;
        CHECK_EQ(f->dump(attr, &filled, options), 0);
        CHECK_EQ(filled, 1);
        f->destroy(attr);
        free(options);
    }
}

TEST(our_own_options_parse_and_are_dumped)
{
    fresh();
    void *c, *r;
    CHECK_EQ(family_of("context")->create(&c), 0);
    CHECK_EQ(family_of("receiver")->create(&r), 0);
    CHECK(reads(family_of("context"), c, "um_udp_segmentation_offload", "1"));
    CHECK(reads(family_of("receiver"), r, "um_reassembly_maximum_size", "268435456"));
    CHECK_EQ(family_of("context")->str_set(c, "um_udp_segmentation_offload", "2"), -1);
    CHECK_EQ(family_of("receiver")->str_set(r, "um_reassembly_maximum_size", "0"), -1);
    family_of("context")->destroy(c);
    family_of("receiver")->destroy(r);
}

TEST(old_names_outside_the_table_are_accepted_with_one_notice)
{
    fresh();
    void *r;
    CHECK_EQ(family_of("receiver")->create(&r), 0);
    CHECK_EQ(family_of("receiver")->str_set(r, "umq_explicit_ack_only", "1"), 0);
    CHECK_EQ(family_of("receiver")->str_set(r, "umq_explicit_ack_only", "1"), 0);
    CHECK_EQ(log_lines, 1);
    CHECK_CONTAINS(last_log, "umq_explicit_ack_only");
    family_of("receiver")->destroy(r);
}

TEST(live_structures_change_only_what_may_change_during_operation)
{
    fresh();
    struct um_source_options options;
    struct um_context_options context;
    CHECK_EQ(um_source_options_resolve(NULL, NULL, 0, "topic", &options), 0);
    CHECK_EQ(um_options_str_set(UM_SCOPE_SOURCE, &options, "implicit_batching_interval", "17", true), 0);
    CHECK_EQ(options.implicit_batching_interval, 17);
    CHECK_EQ(um_options_str_set(UM_SCOPE_SOURCE, &options, "transport", "lbtrm", true), -1);
    CHECK_EQ(lbm_errnum(), LBM_EINVAL);
    CHECK_CONTAINS(lbm_errmsg(), "option transport may not be set during operation");
    um_options_clear(UM_SCOPE_SOURCE, &options);
    CHECK_EQ(um_context_options_resolve(NULL, &context), 0);
    CHECK_EQ(um_options_str_set(UM_SCOPE_CONTEXT, &context, "resolver_query_interval", "0", true), 0);
    CHECK_EQ(um_options_str_set(UM_SCOPE_CONTEXT, &context, "resolver_query_interval", "5", true), -1);
    CHECK_EQ(context.resolver_query_interval, 0);
    um_options_clear(UM_SCOPE_CONTEXT, &context);
}

TEST(options_that_do_not_act_yet_are_named_once)
{
    fresh();
    lbm_context_attr_t *attr;
    struct um_context_options options;
    CHECK_EQ(lbm_context_attr_create(&attr), 0);
    CHECK_EQ(lbm_context_attr_str_setopt(attr, "ume_ack_batching_interval", "7"), 0);
    for (int i = 0; i < 2; i++) {
        CHECK_EQ(um_context_options_resolve(attr, &options), 0);
        um_options_clear(UM_SCOPE_CONTEXT, &options);
    }
    CHECK_EQ(log_lines, 1);
    CHECK_CONTAINS(last_log, "ume_ack_batching_interval");
    lbm_context_attr_delete(attr);
}

/* ---- findings ---- */

/* Every option is in one class, and its class is what happens when it is set to another value than the default. */
struct class_count {
    int acts, not_yet, no_effect, one_value;
};

static struct class_count classes;

/* What a value needs beside it to be free of contradictions. */
static const char *const companions[][3] = {
    {"mim_sqn_window_size", "mim_sqn_window_increment", "8"},
    {"transport_lbtrdma_port_high", "transport_lbtrdma_port_low", "0"},
    {"ume_receiver_paced_persistence", "ume_flight_size_bytes", "1000"},
    {"ume_store_group", "ume_store", "10.1.1.1:1:0:1"},
    {"ume_store_group", "ume_store", "10.1.1.2:1:0:1"},
    {"ume_store_group", "ume_store", "10.1.1.3:1:0:1"},
};

static int resolve_attr(const struct family *f, void *attr)
{
    union {
        struct um_context_options context;
        struct um_source_options source;
        struct um_receiver_options receiver;
        struct um_wildcard_receiver_options wildcard_receiver;
        struct um_event_queue_options event_queue;
        struct um_hfx_options hfx;
        struct um_xsp_options xsp;
    } out;
    int scope = um_scope_find(f->scope), rc;
    switch (scope) {
    case UM_SCOPE_CONTEXT:
        rc = um_context_options_resolve(attr, &out.context);
        break;
    case UM_SCOPE_SOURCE:
        rc = um_source_options_resolve(attr, NULL, 0, "t", &out.source);
        break;
    case UM_SCOPE_RECEIVER:
        rc = um_receiver_options_resolve(attr, NULL, 0, "t", &out.receiver);
        break;
    case UM_SCOPE_WILDCARD_RECEIVER:
        rc = um_wildcard_receiver_options_resolve(attr, NULL, "t", 1, &out.wildcard_receiver);
        break;
    case UM_SCOPE_EVENT_QUEUE:
        rc = um_event_queue_options_resolve(attr, &out.event_queue);
        break;
    case UM_SCOPE_HFX:
        rc = um_hfx_options_resolve(attr, "t", &out.hfx);
        break;
    default:
        rc = um_xsp_options_resolve(attr, &out.xsp);
        break;
    }
    if (rc == 0) {
        um_options_clear(scope, &out);
    }
    return rc;
}

static char class_log[8192];

static int gather_log(int level, const char *message, void *clientd)
{
    size_t used = strlen(class_log);
    snprintf(class_log + used, sizeof class_log - used, "%s\n", message);
    return 0;
}

/* Another value than the default, if the text names one. */
static bool set_other_value(const struct family *f, void *attr, const struct um_option *option,
                            const struct expectation *e)
{
    unsigned char function[256];
    char *rest = e->accept;
    if (option->kind == UM_KIND_CALLBACK) {
        memset(function, 0x11, sizeof function);
        return option->item_size <= sizeof function && f->set(attr, e->option, function, option->item_size) == 0;
    }
    for (char *value = strsep(&rest, "~"); value != NULL; value = strsep(&rest, "~")) {
        char text[512] = "";
        size_t len = sizeof text;
        if (f->str_set(attr, e->option, value) == 0 && f->str_get(attr, e->option, text, &len) == 0 &&
            strcmp(text, e->text) != 0) {
            return true;
        }
    }
    return false;
}

static bool does_what_its_class_says(const struct family *f, void *attr, const struct expectation *e)
{
    int scope = um_scope_find(e->scope);
    const struct um_option *named = um_option_find(scope, e->option), *option = um_option_storage(named);
    fresh();
    um_log_set_proc(gather_log, NULL);
    class_log[0] = '\0';
    if (named->status == UM_STATUS_ACTS) {
        classes.acts++;
        return true; /* proved elsewhere, by what it does */
    }
    for (size_t i = 0; i < sizeof companions / sizeof companions[0]; i++) {
        if (strcmp(companions[i][0], option->name) == 0 && um_option_find(scope, companions[i][1]) != NULL) {
            f->str_set(attr, companions[i][1], companions[i][2]);
        }
    }
    if (strcmp(option->name, "ume_store_behavior") == 0 || strcmp(option->name, "network_compatibility_mode") == 0) {
        classes.one_value++;
        return !set_other_value(f, attr, option, e);
    }
    if (!set_other_value(f, attr, option, e)) {
        fprintf(stderr, "%s %s: no value but the default\n", e->scope, e->option);
        return false;
    }
    int rc = resolve_attr(f, attr);
    const char *id = named->status == UM_STATUS_NOT_YET ? "Core-9020-2" : "Core-9020-1";
    bool told = strstr(class_log, id) != NULL && strstr(class_log, option->name) != NULL;
    bool good = rc == 0 && told;
    classes.not_yet += named->status == UM_STATUS_NOT_YET;
    classes.no_effect += named->status == UM_STATUS_NO_EFFECT;
    if (!good) {
        fprintf(stderr, "%s %s: %d [%s] %s\n", e->scope, e->option, rc, class_log, rc == 0 ? "" : lbm_errmsg());
    }
    return good;
}

TEST(f24_every_option_acts_or_is_told_of_when_set)
{
    memset(&classes, 0, sizeof classes);
    CHECK_EQ(for_each_expectation(does_what_its_class_says), 503);
    CHECK_EQ(classes.acts + classes.not_yet + classes.no_effect + classes.one_value, 503);
    fresh();
}

TEST(f33_times_below_the_documented_minimum_take_it_and_are_told_once)
{
    static const char file[] = "receiver transport_lbtrm_nak_generation_interval 1\n";
    fresh();
    lbm_rcv_topic_attr_t *attr;
    lbm_ulong_t binary = 2;
    CHECK_EQ(um_config_text("memory", file, sizeof file - 1, NULL), 0);
    CHECK_EQ(log_lines, 1);
    CHECK_CONTAINS(last_log, "Core-9020-3: receiver option transport_lbtrm_nak_generation_interval");
    CHECK_CONTAINS(last_log, "5 milliseconds");
    CHECK_EQ(last_log[0], '0' + LBM_LOG_WARNING);
    CHECK_EQ(lbm_rcv_topic_attr_create(&attr), 0);
    CHECK(reads(family_of("receiver"), attr, "transport_lbtrm_nak_generation_interval", "5"));
    CHECK_EQ(lbm_rcv_topic_attr_setopt(attr, "transport_lbtrm_nak_generation_interval", &binary, sizeof binary), 0);
    CHECK(reads(family_of("receiver"), attr, "transport_lbtrm_nak_generation_interval", "5"));
    CHECK_EQ(log_lines, 1);
    CHECK_EQ(lbm_rcv_topic_attr_str_setopt(attr, "late_join_info_request_interval", "0"), 0);
    CHECK(reads(family_of("receiver"), attr, "late_join_info_request_interval", "1"));
    CHECK_EQ(log_lines, 2);
    lbm_rcv_topic_attr_delete(attr);
}

TEST(f33_other_bounds_stay_errors)
{
    fresh();
    lbm_rcv_topic_attr_t *rattr;
    lbm_context_attr_t *attr;
    CHECK_EQ(lbm_rcv_topic_attr_create(&rattr), 0);
    CHECK_EQ(lbm_rcv_topic_attr_str_setopt(rattr, "late_join_info_request_maximum", "0"), -1); /* not a time */
    CHECK_EQ(lbm_rcv_topic_attr_str_setopt(rattr, "um_transport_lbtrm_nak_backoff_interval_us", "3600000001"), -1);
    CHECK_EQ(lbm_rcv_topic_attr_str_setopt(rattr, "transport_tcp_activity_timeout", "2"), -1); /* 0, or 3 and above */
    CHECK_EQ(lbm_rcv_topic_attr_str_setopt(rattr, "transport_lbtrm_nak_generation_interval", "-1"), -1);
    CHECK_EQ(lbm_context_attr_create(&attr), 0);
    CHECK_EQ(lbm_context_attr_str_setopt(attr, "request_tcp_activity_timeout", "-2"), -1);
    CHECK_EQ(lbm_context_attr_str_setopt(attr, "transport_lbtrm_datagram_max_size", "499"), -1);
    CHECK_EQ(log_lines, 0);
    lbm_context_attr_delete(attr);
    lbm_rcv_topic_attr_delete(rattr);
}

static void *receiving_context_found(const ume_liveness_receiving_context_t *rcv, void *clientd)
{
    return clientd;
}

TEST(f37_the_notification_function_of_receiving_contexts_is_kept)
{
    fresh();
    lbm_context_attr_t *attr;
    struct um_context_options options;
    lbm_ume_ctx_rcv_ctx_notification_func_t set = {.create_func = receiving_context_found, .clientd = &set}, read;
    size_t len = sizeof read;
    const char *name = "ume_receiving_context_notification_function";
    CHECK_EQ(lbm_context_attr_create(&attr), 0);
    CHECK_EQ(lbm_context_attr_setopt(attr, name, &set, sizeof set), 0);
    CHECK_EQ(lbm_context_attr_getopt(attr, name, &read, &len), 0);
    CHECK(read.create_func == receiving_context_found && read.clientd == &set);
    CHECK_EQ(um_context_options_resolve(attr, &options), 0);
    um_options_clear(UM_SCOPE_CONTEXT, &options);
    CHECK_EQ(log_lines, 1);
    CHECK_CONTAINS(last_log, name);
    lbm_context_attr_delete(attr);
}

TEST(f40_options_of_missing_features_share_one_line)
{
    fresh();
    lbm_context_attr_t *attr;
    struct um_context_options options;
    CHECK_EQ(lbm_context_attr_create(&attr), 0);
    CHECK_EQ(lbm_context_attr_str_setopt(attr, "ume_session_id", "7"), 0);
    CHECK_EQ(lbm_context_attr_str_setopt(attr, "ume_ack_batching_interval", "7"), 0);
    CHECK_EQ(lbm_context_attr_str_setopt(attr, "umq_session_id", "7"), 0);
    for (int i = 0; i < 3; i++) {
        CHECK_EQ(um_context_options_resolve(attr, &options), 0);
        um_options_clear(UM_SCOPE_CONTEXT, &options);
    }
    CHECK_EQ(log_lines, 1);
    CHECK_CONTAINS(last_log, "Core-9020-2");
    CHECK_CONTAINS(last_log, "ume_ack_batching_interval, ume_session_id, umq_session_id");
    lbm_context_attr_delete(attr);
}

TEST(f40_a_notice_about_values_comes_once_for_each_value)
{
    fresh();
    lbm_rcv_topic_attr_t *attr;
    struct um_receiver_options options;
    CHECK_EQ(lbm_rcv_topic_attr_create(&attr), 0);
    for (int i = 0; i < 6; i++) {
        CHECK_EQ(lbm_rcv_topic_attr_str_setopt(attr, "transport_lbtrm_activity_timeout", i < 3 ? "9000" : "8000"), 0);
        CHECK_EQ(um_receiver_options_resolve(attr, NULL, 0, "t", &options), 0);
        um_options_clear(UM_SCOPE_RECEIVER, &options);
        CHECK_EQ(log_lines, i < 3 ? 1 : 2);
        CHECK_CONTAINS(last_log, "Core-5688-587");
    }
    lbm_rcv_topic_attr_delete(attr);
}

TEST(contradicting_options_are_refused_at_creation)
{
    static const char *const cases[][4] = {
        {"request_tcp_port_low", "14400", "CoreApi-8812-1", "request_tcp_port_high"},
        {"transport_tcp_port_high", "14000", "CoreApi-8812-2", "transport_tcp_port_low"},
        {"resolver_unicast_port_low", "65000", "CoreApi-8812-3", "resolver_unicast_port_high"},
        {"transport_lbtrm_source_port_low", "65000", "CoreApi-8812-4", "transport_lbtrm_source_port_high"},
        {"transport_lbtrm_multicast_address_low", "224.10.10.200", "CoreApi-8812-5", "224.10.10.14"},
        {"transport_lbtru_port_low", "65000", "CoreApi-8812-6", "transport_lbtru_port_high"},
        {"transport_lbtipc_id_low", "65000", "CoreApi-8812-7", "transport_lbtipc_id_high"},
        {"transport_lbtrdma_port_low", "65000", "CoreApi-8812-8", "transport_lbtrdma_port_high"},
        {"transport_lbtsmx_id_low", "65000", "CoreApi-6976-119", "transport_lbtsmx_id_high"},
        {"mim_sqn_window_increment", "24", "CoreApi-9020-18", "mim_sqn_window_size"}};
    fresh();
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        lbm_context_attr_t *attr;
        struct um_context_options options;
        CHECK_EQ(lbm_context_attr_create(&attr), 0);
        CHECK_EQ(lbm_context_attr_str_setopt(attr, cases[i][0], cases[i][1]), 0);
        CHECK_EQ(um_context_options_resolve(attr, &options), -1);
        CHECK_CONTAINS(lbm_errmsg(), cases[i][2]);
        CHECK_CONTAINS(lbm_errmsg(), cases[i][3]);
        lbm_context_attr_delete(attr);
    }
    lbm_src_topic_attr_t *attr;
    struct um_source_options options;
    CHECK_EQ(lbm_src_topic_attr_create(&attr), 0);
    CHECK_EQ(lbm_src_topic_attr_str_setopt(attr, "ume_store", "10.1.1.1:1:0:1"), 0);
    CHECK_EQ(um_source_options_resolve(attr, NULL, 0, "t", &options), 0);
    CHECK_EQ(options.late_join, 1);
    um_options_clear(UM_SCOPE_SOURCE, &options);
    CHECK_EQ(lbm_src_topic_attr_str_setopt(attr, "ume_store_group", "1:2"), 0);
    CHECK_EQ(um_source_options_resolve(attr, NULL, 0, "t", &options), -1);
    CHECK_CONTAINS(lbm_errmsg(), "CoreApi-5688-3151");
    lbm_src_topic_attr_delete(attr);
}

TEST(attribute_objects_copy_deeply_and_default_ones_ignore_files)
{
    fresh();
    lbm_context_attr_t *attr, *copy, *builtin;
    static const char file[] = "context request_tcp_port_low 12000\n";
    CHECK_EQ(um_config_text("memory", file, sizeof file - 1, NULL), 0);
    CHECK_EQ(lbm_context_attr_create(&attr), 0);
    CHECK_EQ(lbm_context_attr_create_default(&builtin), 0);
    CHECK(reads(family_of("context"), attr, "request_tcp_port_low", "12000"));
    CHECK(reads(family_of("context"), builtin, "request_tcp_port_low", "14391"));
    CHECK_EQ(lbm_context_attr_str_setopt(attr, "context_name", "one"), 0);
    CHECK_EQ(lbm_context_attr_str_setopt(attr, "resolver_unicast_daemon", "10.1.1.1:1"), 0);
    CHECK_EQ(lbm_context_attr_dup(&copy, attr), 0);
    CHECK_EQ(lbm_context_attr_str_setopt(attr, "context_name", "two"), 0);
    CHECK_EQ(lbm_context_attr_str_setopt(attr, "resolver_unicast_daemon", "10.1.1.2:1"), 0);
    CHECK(reads(family_of("context"), copy, "context_name", "one"));
    CHECK(reads(family_of("context"), copy, "resolver_unicast_daemon", "10.1.1.1:1"));
    CHECK_EQ(lbm_context_attr_dup(&copy, NULL), -1);
    lbm_context_attr_delete(attr);
    lbm_context_attr_delete(copy);
    lbm_context_attr_delete(builtin);
}

/* ---- failing allocations ---- */

static int allocations_left;

static bool fail_when_used_up(size_t size)
{
    return allocations_left-- <= 0;
}

/* One run of everything that allocates; true when all of it succeeded. */
static bool exercise(void)
{
    static const char file[] = "context context_name tortured\nsource ume_store_name a:1\nreceiver bad\n";
    lbm_context_attr_t *attr, *copy = NULL;
    struct um_context_options options;
    char text[200];
    size_t len = sizeof text;
    bool good = um_config_text("memory", file, sizeof file - 1, NULL) == -1 && strstr(lbm_errmsg(), "line 3") != NULL;
    if (lbm_context_attr_create(&attr) != 0) {
        return false;
    }
    good = lbm_context_attr_str_setopt(attr, "resolver_unicast_daemon", "10.1.1.1:1,10.1.1.2:2") == 0 && good;
    good = lbm_context_attr_str_setopt(attr, "tls_certificate", "a-file") == 0 && good;
    good = lbm_context_attr_str_getopt(attr, "resolver_unicast_daemon", text, &len) == 0 && good;
    good = lbm_context_attr_dup(&copy, attr) == 0 && good;
    if (copy != NULL && um_context_options_resolve(copy, &options) == 0) {
        um_options_clear(UM_SCOPE_CONTEXT, &options);
    } else {
        good = false;
    }
    if (copy != NULL) {
        lbm_context_attr_delete(copy);
    }
    lbm_context_attr_delete(attr);
    return good;
}

TEST(every_allocation_may_fail_without_a_crash_or_a_leak)
{
    bool done = false;
    for (int n = 0; n < 3000 && !done; n++) {
        fresh();
        allocations_left = n;
        um_mem_set_fail_hook(fail_when_used_up);
        bool good = exercise();
        um_mem_set_fail_hook(NULL);
        done = good && allocations_left > 0;
        CHECK(good || lbm_errnum() == LBM_ENOMEM || lbm_errnum() == LBM_EINVAL);
    }
    CHECK(done);
    fresh();
}
