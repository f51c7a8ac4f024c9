/* Configuration files: the plain-text grammar and its errors, the environment, XML documents with templates, rules,
 * includes and hostile content, and the precedence of all of them. */
#include "um_test.h"

#include <lbm/lbm.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/um_log.h"
#include "base/um_mem.h"
#include "config/um_attr.h"
#include "config/um_config.h"
#include "config/um_options.h"

static char log_text[20000];
static int log_lines;

static int record_log(int level, const char *message, void *clientd)
{
    size_t used = strlen(log_text);
    snprintf(log_text + used, sizeof log_text - used, "%d %s\n", level, message);
    log_lines++;
    return 0;
}

static void fresh(void)
{
    um_log_set_proc(record_log, NULL);
    um_config_reset();
    log_text[0] = '\0';
    log_lines = 0;
}

static int text_config(const char *text)
{
    return um_config_text("test.cfg", text, strlen(text), NULL);
}

/* The value a new attribute object reads back. */
static const char *context_value(const char *option)
{
    static char text[512];
    size_t len = sizeof text;
    lbm_context_attr_t *attr;
    snprintf(text, sizeof text, "(no object)");
    if (lbm_context_attr_create(&attr) == 0) {
        if (lbm_context_attr_str_getopt(attr, option, text, &len) != 0) {
            snprintf(text, sizeof text, "(%.400s)", lbm_errmsg());
        }
        lbm_context_attr_delete(attr);
    }
    return text;
}

static const char *attr_value(lbm_context_attr_t *attr, const char *option)
{
    static char text[512];
    size_t len = sizeof text;
    return lbm_context_attr_str_getopt(attr, option, text, &len) == 0 ? text : lbm_errmsg();
}

/* What a context created with the attribute object (NULL: none) would use, or -1. */
static int created_port_low(const lbm_context_attr_t *attr)
{
    struct um_context_options options;
    if (um_context_options_resolve(attr, &options) != 0) {
        return -1;
    }
    int port = options.request_tcp_port_low;
    um_options_clear(UM_SCOPE_CONTEXT, &options);
    return port;
}

/* A file of the test's own directory in the temporary directory; the name stays valid for seven more calls. */
static const char *temporary(const char *name, const char *text)
{
    static char paths[8][256];
    static int turn;
    char *path = paths[turn++ % 8];
    snprintf(path, sizeof paths[0], "%s/um_config_%d_%s", getenv("TMPDIR") == NULL ? "/tmp" : getenv("TMPDIR"),
             (int)getpid(), name);
    FILE *file = fopen(path, "w");
    if (file != NULL) {
        fputs(text, file);
        fclose(file);
    }
    return path;
}

/* ---- plain text ---- */

TEST(text_file_statements_comments_blanks_and_case)
{
    fresh();
    CHECK_EQ(text_config("\xEF\xBB\xBF# a comment\r\n"
                         "\r\n"
                         "  context \t request_tcp_port_low\t 12000   # lowered\r\n"
                         "CONTEXT Operational_Mode SEQUENTIAL\n"
                         "receiver message_selector  price > 5 AND size = 'big one' \n"
                         "xsp operational_mode sequential\n"
                         "context monitor_transport_opts config=/a b/c;topic=T\n"
                         "context request_tcp_port_low 12001"),
             0);
    CHECK_STR(context_value("request_tcp_port_low"), "12001");
    CHECK_STR(context_value("operational_mode"), "sequential");
    CHECK_STR(context_value("monitor_transport_opts"), "config=/a b/c;topic=T");
    lbm_rcv_topic_attr_t *attr;
    char text[200];
    size_t len = sizeof text;
    CHECK_EQ(lbm_rcv_topic_attr_create(&attr), 0);
    CHECK_EQ(lbm_rcv_topic_attr_str_getopt(attr, "message_selector", text, &len), 0);
    CHECK_STR(text, "price > 5 AND size = 'big one'");
    lbm_rcv_topic_attr_delete(attr);
    CHECK_EQ(log_lines, 0);
}

TEST(text_file_errors_name_file_line_option_value_and_good_lines_apply)
{
    fresh();
    CHECK_EQ(text_config("context request_tcp_port_low 12000\n"
                         "nonsense request_tcp_port_low 1\n"
                         "context no_such_option 1\n"
                         "context request_tcp_port_high 99999\n"
                         "context request_tcp_port_high\n"
                         "context\n"
                         "context request_tcp_port_high 12005\n"
                         "context context_event_function x\n"),
             -1);
    CHECK_EQ(log_lines, 6);
    CHECK_CONTAINS(
        log_text,
        "4 Core-10686-1: problem detected in config file: test.cfg at line 2 (nonsense request_tcp_port_low 1)");
    CHECK_CONTAINS(log_text, "scope nonsense unknown");
    CHECK_CONTAINS(log_text, "Core-10686-2: problem detected in config file: test.cfg at line 3");
    CHECK_CONTAINS(log_text, "option no_such_option unknown");
    CHECK_CONTAINS(log_text, "Core-10686-3: problem detected in config file: test.cfg at line 4");
    CHECK_CONTAINS(log_text, "request_tcp_port_high '99999'");
    CHECK_CONTAINS(log_text, "the value is missing");
    CHECK_CONTAINS(log_text, "the option is missing");
    CHECK_CONTAINS(lbm_errmsg(), "CoreApi-5688-64: config file: test.cfg line 8: ");
    CHECK_STR(context_value("request_tcp_port_low"), "12000");
    CHECK_STR(context_value("request_tcp_port_high"), "12005");
}

TEST(text_file_long_lines_and_zero_bytes_are_errors_of_their_line)
{
    fresh();
    static char text[10000] = "context request_tcp_port_low 12000\ncontext context_name ";
    size_t used = strlen(text);
    memset(text + used, 'a', 9000);
    strcpy(text + used + 9000, "\ncontext request_tcp_port_high 12005\n");
    CHECK_EQ(text_config(text), -1);
    CHECK_CONTAINS(lbm_errmsg(), "line 2: the line has 9021 bytes");
    CHECK_STR(context_value("request_tcp_port_high"), "12005");
    CHECK_EQ(um_config_text("zero", "context \0 x\ncontext request_tcp_port_low 12001\n", 46, NULL), -1);
    CHECK_CONTAINS(lbm_errmsg(), "zero byte");
    CHECK_STR(context_value("request_tcp_port_low"), "12001");
}

TEST(text_file_lists_accumulate_and_deprecated_options_are_named_once)
{
    fresh();
    CHECK_EQ(text_config("context resolver_unicast_daemon 10.1.1.1:15380\n"
                         "context resolver_unicast_daemon 10.1.1.2:15380\n"
                         "receiver otr_request_duration 5\nreceiver otr_request_duration 6\n"
                         "context receive_thread_pool_size 3\n"),
             0);
    CHECK_STR(context_value("resolver_unicast_daemon"), "10.1.1.1:15380,10.1.1.2:15380");
    CHECK_EQ(log_lines, 2);
    CHECK_CONTAINS(log_text,
                   "5 Core-5688-27: WARNING: receiver config variable otr_request_duration is deprecated. Use "
                   "otr_request_message_timeout instead.");
    CHECK_CONTAINS(log_text,
                   "5 Core-5688-28: WARNING: context config variable receive_thread_pool_size is deprecated. Has "
                   "no effect.");
}

TEST(missing_files_urls_and_directories_fail_clearly)
{
    fresh();
    CHECK_EQ(lbm_config("/no/such/file.cfg"), -1);
    CHECK_EQ(lbm_errnum(), LBM_EOS);
    CHECK_CONTAINS(lbm_errmsg(), "/no/such/file.cfg");
    CHECK_CONTAINS(lbm_errmsg(), "No such file");
    CHECK_EQ(lbm_config("http://example.invalid/um.cfg"), -1);
    CHECK_EQ(lbm_errnum(), LBM_EOPNOTSUPP);
    CHECK_CONTAINS(lbm_errmsg(), "http://example.invalid/um.cfg");
    CHECK_EQ(lbm_config_xml_file("ftp://example.invalid/um.xml", NULL), -1);
    CHECK_EQ(lbm_config("/"), -1);
    CHECK_EQ(lbm_config(NULL), -1);
    CHECK_EQ(lbm_config_xml_file(NULL, NULL), -1);
    CHECK_EQ(lbm_config_xml_string(NULL, NULL), -1);
    CHECK_EQ(lbm_errnum(), LBM_EINVAL);
}

TEST(file_lines_of_one_scope_can_be_applied_to_an_attribute_object)
{
    fresh();
    lbm_context_attr_t *attr;
    CHECK_EQ(lbm_context_attr_create(&attr), 0);
    const char *path = temporary("one.cfg", "context request_tcp_port_low 12000\nreceiver nonsense 5\n");
    CHECK_EQ(um_config_file(path, (struct um_attr *)attr), 0);
    CHECK_STR(attr_value(attr, "request_tcp_port_low"), "12000");
    CHECK_STR(context_value("request_tcp_port_low"), "14391");
    lbm_context_attr_delete(attr);
    unlink(path);
}

/* ---- XML ---- */

#define HEAD "<?xml version=\"1.0\" encoding=\"UTF-8\" ?>\n<um-configuration version=\"1.0\">\n"
#define APP(inside)                                                                                                    \
    HEAD "<applications><application name=\"a\">" inside "</application></applications></um-configuration>"
#define CONTEXT_PORT(value, rules)                                                                                     \
    APP("<contexts><context><options type=\"context\"><option name=\"request_tcp_port_low\" default-value=\"" value    \
        "\" " rules "</options></context></contexts>")

TEST(precedence_follows_the_worked_table)
{
    lbm_context_attr_t *attr;
    fresh();
    CHECK_EQ(created_port_low(NULL), 14391);

    fresh();
    CHECK_EQ(text_config("context request_tcp_port_low 12000\n"), 0);
    CHECK_EQ(created_port_low(NULL), 12000);

    fresh();
    CHECK_EQ(lbm_config_xml_string(CONTEXT_PORT("13000", "/>"), "a"), 0);
    CHECK_EQ(created_port_low(NULL), 13000);
    CHECK_EQ(text_config("context request_tcp_port_low 12000\n"), 0);
    CHECK_EQ(lbm_context_attr_create(&attr), 0);
    CHECK_EQ(created_port_low(attr), 12000);
    lbm_context_attr_delete(attr);

    fresh();
    CHECK_EQ(lbm_config_xml_string(CONTEXT_PORT("13000", "order=\"allow,deny\"><allow>13000</allow></option>"), "a"),
             0);
    CHECK_EQ(text_config("context request_tcp_port_low 12000\n"), 0);
    CHECK_EQ(lbm_context_attr_create(&attr), 0);
    CHECK_EQ(created_port_low(attr), -1);
    CHECK_EQ(lbm_errnum(), LBM_EINVAL);
    CHECK_CONTAINS(lbm_errmsg(), "request_tcp_port_low: value '12000' is not admitted");
    lbm_context_attr_delete(attr);
    CHECK_EQ(lbm_context_attr_create_from_xml(&attr, NULL), 0);
    CHECK_EQ(created_port_low(attr), 13000);
    CHECK_EQ(lbm_context_attr_str_setopt(attr, "request_tcp_port_low", "14000"), 0);
    CHECK_EQ(created_port_low(attr), -1);
    lbm_context_attr_delete(attr);
}

TEST(setopt_beats_xml_and_create_default_forgets_files)
{
    lbm_context_attr_t *attr;
    fresh();
    CHECK_EQ(lbm_config_xml_string(CONTEXT_PORT("13000", "/>"), "a"), 0);
    CHECK_EQ(text_config("context request_tcp_port_low 12000\n"), 0);
    CHECK_EQ(lbm_context_attr_create(&attr), 0);
    CHECK_EQ(lbm_context_attr_str_setopt(attr, "request_tcp_port_low", "14000"), 0);
    CHECK_EQ(created_port_low(attr), 14000);
    CHECK_EQ(lbm_context_attr_set_from_xml(attr, NULL), 0);
    CHECK_EQ(created_port_low(attr), 13000);
    CHECK_EQ(lbm_context_attr_str_setopt(attr, "request_tcp_port_low", "14001"), 0);
    CHECK_EQ(created_port_low(attr), 14001);
    lbm_context_attr_delete(attr);
    CHECK_EQ(lbm_context_attr_create_default(&attr), 0);
    CHECK_EQ(created_port_low(attr), 13000);
    lbm_context_attr_delete(attr);
}

#define CONTEXT_BUFFER(value)                                                                                          \
    APP("<contexts><context><options type=\"context\"><option name=\"transport_lbtrm_receiver_socket_buffer\" "        \
        "default-value=\"" value "\"/></options></context></contexts>")

/* Whether a new context would know that nobody has set its request ports, and the receive buffer of LBT-RM. */
static void check_untouched(const lbm_context_attr_t *attr, bool ports, bool buffer)
{
    struct um_context_options options;
    CHECK_EQ(um_context_options_resolve(attr, &options), 0);
    CHECK_EQ(options.default_ranges[UM_RANGE_REQUEST_TCP].high != 0, ports);
    CHECK_EQ(options.default_buffers.transport_lbtrm_receiver_socket_buffer, buffer);
    um_options_clear(UM_SCOPE_CONTEXT, &options);
}

TEST(what_nobody_has_set_is_known_and_stating_the_default_is_setting_it)
{
    lbm_context_attr_t *attr;
    fresh();
    check_untouched(NULL, true, true);

    CHECK_EQ(text_config("context request_tcp_port_low 14391\n"), 0);
    check_untouched(NULL, false, true);

    fresh();
    CHECK_EQ(text_config("context transport_lbtrm_receiver_socket_buffer 8388608\n"), 0);
    check_untouched(NULL, true, false);

    fresh();
    CHECK_EQ(lbm_config_xml_string(CONTEXT_PORT("14391", "/>"), "a"), 0);
    check_untouched(NULL, false, true);

    fresh();
    CHECK_EQ(lbm_config_xml_string(CONTEXT_BUFFER("8388608"), "a"), 0);
    check_untouched(NULL, true, false);

    fresh();
    CHECK_EQ(lbm_context_attr_create(&attr), 0);
    CHECK_EQ(lbm_context_attr_str_setopt(attr, "request_tcp_port_high", "14395"), 0);
    check_untouched(attr, false, true);
    lbm_context_attr_delete(attr);
}

TEST(unknown_names_are_answered_with_what_may_be_meant)
{
    lbm_context_attr_t *attr;
    fresh();
    CHECK_EQ(lbm_context_attr_create(&attr), 0);
    CHECK_EQ(lbm_context_attr_str_setopt(attr, "request_tcp_prot_low", "1"), -1);
    CHECK_CONTAINS(lbm_errmsg(), "did you mean request_tcp_port_low?");
    CHECK_EQ(lbm_context_attr_str_setopt(attr, "ordered_delivery", "1"), -1);
    CHECK_CONTAINS(lbm_errmsg(), "it is an option of scope receiver");
    CHECK_EQ(lbm_context_attr_str_setopt(attr, "nonsense", "1"), -1);
    CHECK_CONTAINS(lbm_errmsg(), "docs/options.md lists all options");
    CHECK_EQ(lbm_context_attr_str_setopt(attr, "", "1"), -1);
    CHECK_EQ(lbm_context_attr_str_setopt(attr, "default_interface", "lo"), -1);
    CHECK_CONTAINS(lbm_errmsg(), "the name of a device in double quotes");
    lbm_context_attr_delete(attr);
    CHECK_EQ(text_config("source transprt tcp\n"), -1);
    CHECK_CONTAINS(lbm_errmsg(), "did you mean transport?");
}

static const char layered[] = HEAD
    "<templates>"
    "<template name=\"base\"><options type=\"context\"><option name=\"request_tcp_port_low\" default-value=\"1\"/>"
    "<option name=\"request_tcp_port_high\" default-value=\"9001\"/></options>"
    "<options type=\"source\"><option name=\"implicit_batching_interval\" default-value=\"1\"/></options></template>"
    "<template name=\"over\"><options type=\"context\"><option name=\"request_tcp_port_low\" "
    "default-value=\"2\"/></options>"
    "<options type=\"source\"><option name=\"implicit_batching_interval\" default-value=\"2\"/></options></template>"
    "<template name=\"src\"><options type=\"source\"><option name=\"implicit_batching_interval\" default-value=\"3\"/>"
    "</options></template></templates>"
    "<applications><application template=\"base\"><contexts template=\"over\">"
    "<context name=\"plain\"><receivers/></context>"
    "<context name=\"own\" template=\"over , base\"><options type=\"context\">"
    "<option name=\"request_tcp_port_high\" default-value=\"9002\"/></options>"
    "<sources template=\"src\"><topic topicname=\"exact\"><options type=\"source\">"
    "<option name=\"implicit_batching_interval\" default-value=\"4\"/></options></topic>"
    "<topic pattern=\"^px\\.\"><options type=\"source\"><option name=\"implicit_batching_interval\" "
    "default-value=\"5\"/>"
    "</options></topic><topic pattern=\"gold\" template=\"base\"/></sources></context>"
    "</contexts></application></applications></um-configuration>";

static long batching(const char *context, const char *topic)
{
    struct um_source_options options;
    if (um_source_options_resolve(NULL, context, 0, topic, &options) != 0) {
        return -1;
    }
    long value = (long)options.implicit_batching_interval;
    um_options_clear(UM_SCOPE_SOURCE, &options);
    return value;
}

static int context_port(const char *name, bool high)
{
    lbm_context_attr_t *attr;
    struct um_context_options options;
    int port = -1;
    if (lbm_context_attr_create_from_xml(&attr, name) != 0) {
        return -1;
    }
    if (um_context_options_resolve(attr, &options) == 0) {
        port = high ? options.request_tcp_port_high : options.request_tcp_port_low;
        um_options_clear(UM_SCOPE_CONTEXT, &options);
    }
    lbm_context_attr_delete(attr);
    return port;
}

TEST(templates_and_elements_apply_from_the_outside_in)
{
    fresh();
    CHECK_EQ(lbm_config_xml_string(layered, NULL), 0);
    CHECK_EQ(context_port("plain", false), 2);
    CHECK_EQ(context_port("own", false), 1);
    CHECK_EQ(context_port("own", true), 9002);
    CHECK_EQ(context_port("plain", true), 9001);
    CHECK_EQ(context_port("unknown", false), 2);
    CHECK_EQ(context_port(NULL, false), 2);
    CHECK_EQ(batching("unknown", "exact"), 2);
    CHECK_EQ(batching("own", "nothing matches"), 3);
    CHECK_EQ(batching("own", "exact"), 4);
    CHECK_EQ(batching("own", "px.IBM"), 5);
    CHECK_EQ(batching("own", "xpx.IBM"), 3);
    CHECK_EQ(batching("own", "px.gold"), 1);
    lbm_src_topic_attr_t *attr;
    CHECK_EQ(lbm_src_topic_attr_create_from_xml(&attr, "own", NULL), -1);
    CHECK_EQ(lbm_src_topic_attr_create_from_xml(&attr, "own", "exact"), 0);
    lbm_src_topic_attr_delete(attr);
}

#define RECEIVERS(order, topics)                                                                                       \
    APP("<contexts><context name=\"c\"><receivers " order ">" topics "</receivers></context></contexts>")

static bool receiver_admitted(const char *topic)
{
    struct um_receiver_options options;
    if (um_receiver_options_resolve(NULL, "c", 0, topic, &options) != 0) {
        return false;
    }
    um_options_clear(UM_SCOPE_RECEIVER, &options);
    return true;
}

TEST(container_rules_admit_what_the_examples_say)
{
    fresh();
    CHECK_EQ(lbm_config_xml_string(
                 RECEIVERS("order=\"allow,deny\"", "<topic topicname=\"general_info\" rule=\"allow\"/>"), "a"),
             0);
    CHECK(receiver_admitted("general_info"));
    CHECK(!receiver_admitted("anything"));
    CHECK_EQ(lbm_errnum(), LBM_EINVAL);
    CHECK_CONTAINS(lbm_errmsg(), "'anything' is not admitted");

    fresh();
    CHECK_EQ(lbm_config_xml_string(RECEIVERS("", "<topic topicname=\"authorize\" rule=\"deny\"/>"), "a"), 0);
    CHECK(!receiver_admitted("authorize"));
    CHECK(receiver_admitted("anything"));

    fresh();
    CHECK_EQ(
        lbm_config_xml_string(RECEIVERS("order=\"deny,allow\"", "<topic pattern=\"^trade\" rule=\"deny\"/>"
                                                                "<topic pattern=\"^trade\\.NASD\" rule=\"allow\"/>"),
                              "a"),
        0);
    CHECK(receiver_admitted("quote"));
    CHECK(!receiver_admitted("trade.NYSE"));
    CHECK(receiver_admitted("trade.NASD.X"));

    fresh();
    CHECK_EQ(
        lbm_config_xml_string(RECEIVERS("order=\"allow,deny\"", "<topic pattern=\"^trade\" rule=\"allow\"/>"
                                                                "<topic pattern=\"^trade\\.NASD\" rule=\"deny\"/>"),
                              "a"),
        0);
    CHECK(!receiver_admitted("quote"));
    CHECK(receiver_admitted("trade.NYSE"));
    CHECK(!receiver_admitted("trade.NASD.X"));
    lbm_rcv_topic_attr_t *attr;
    CHECK_EQ(lbm_rcv_topic_attr_create(&attr), 0);
    CHECK_EQ(lbm_rcv_topic_attr_set_from_xml(attr, "c", "quote"), -1);
    CHECK_EQ(lbm_rcv_topic_attr_set_from_xml(attr, "c", "trade.NYSE"), 0);
    lbm_rcv_topic_attr_delete(attr);
}

#define ORDERED(rules)                                                                                                 \
    APP("<contexts><context name=\"c\"><receivers><topic pattern=\".\"><options type=\"receiver\">"                    \
        "<option name=\"ordered_delivery\" " rules "</option></options></topic></receivers></context></contexts>")

static bool ordering_admitted(const char *value)
{
    lbm_rcv_topic_attr_t *attr;
    struct um_receiver_options options;
    bool admitted = false;
    if (lbm_rcv_topic_attr_create(&attr) == 0 && lbm_rcv_topic_attr_str_setopt(attr, "ordered_delivery", value) == 0) {
        admitted = um_receiver_options_resolve(attr, "c", 0, "t", &options) == 0;
        if (admitted) {
            um_options_clear(UM_SCOPE_RECEIVER, &options);
        }
        lbm_rcv_topic_attr_delete(attr);
    }
    return admitted;
}

TEST(value_rules_compare_parsed_values_and_accumulate)
{
    fresh();
    CHECK_EQ(lbm_config_xml_string(ORDERED("order=\"deny,allow\"><deny> 0 </deny>"), "a"), 0);
    CHECK(ordering_admitted("1") && ordering_admitted("-1") && !ordering_admitted("0"));
    fresh();
    CHECK_EQ(lbm_config_xml_string(ORDERED("order=\"allow,deny\"><allow>1</allow>"), "a"), 0);
    CHECK(ordering_admitted("1") && !ordering_admitted("-1") && !ordering_admitted("0"));

    fresh();
    CHECK_EQ(
        lbm_config_xml_string(
            HEAD
            "<templates><template name=\"t\"><options type=\"source\"><option "
            "name=\"transport\"><deny>LBT-RU</deny></option>"
            "</options></template></templates><applications><application template=\"t\"><contexts><context><sources>"
            "<topic pattern=\".\"><options type=\"source\"><option "
            "name=\"transport\"><deny>lbtipc</deny></option></options>"
            "</topic></sources></context></contexts></application></applications></um-configuration>",
            NULL),
        0);
    static const char *const cases[][2] = {{"tcp", "yes"}, {"lbtrm", "yes"}, {"lbtru", ""}, {"lbt-ipc", ""}};
    for (int i = 0; i < 4; i++) {
        lbm_src_topic_attr_t *attr;
        struct um_source_options options;
        CHECK_EQ(lbm_src_topic_attr_create(&attr), 0);
        CHECK_EQ(lbm_src_topic_attr_str_setopt(attr, "transport", cases[i][0]), 0);
        int result = um_source_options_resolve(attr, NULL, 0, "t", &options);
        CHECK_EQ(result, cases[i][1][0] == 'y' ? 0 : -1);
        if (result == 0) {
            um_options_clear(UM_SCOPE_SOURCE, &options);
        }
        lbm_src_topic_attr_delete(attr);
    }
}

TEST(wildcard_receivers_event_queues_and_hfx_have_their_own_entries)
{
    struct um_wildcard_receiver_options wildcard;
    struct um_event_queue_options queue;
    struct um_hfx_options hfx;
    lbm_event_queue_attr_t *attr;
    fresh();
    CHECK_EQ(lbm_config_xml_string(
                 APP("<contexts><context><wildcard-receivers order=\"allow,deny\"><wildcard-receiver pattern=\"^a.*\">"
                     "<options type=\"wildcard-receiver\"><option name=\"resolver_query_maximum_interval\" "
                     "default-value=\"77\"/></options>"
                     "</wildcard-receiver></wildcard-receivers></context></contexts>"
                     "<event-queues><event-queue name=\"q1\"><options type=\"event-queue\">"
                     "<option name=\"queue_size_warning\" default-value=\"9\"/></options></event-queue></event-queues>"
                     "<hfxs><topic topicname=\"h\"><options type=\"hfx\"><option name=\"duplicate_delivery\" "
                     "default-value=\"1\"/></options>"
                     "</topic></hfxs>"),
                 "a"),
             0);
    CHECK_EQ(um_wildcard_receiver_options_resolve(NULL, NULL, "^a.*", 1, &wildcard), 0);
    CHECK_EQ(wildcard.resolver_query_maximum_interval, 77);
    um_options_clear(UM_SCOPE_WILDCARD_RECEIVER, &wildcard);
    CHECK_EQ(um_wildcard_receiver_options_resolve(NULL, NULL, "^a.*", 2, &wildcard), -1);
    CHECK_EQ(um_wildcard_receiver_options_resolve(NULL, NULL, "^ab", 1, &wildcard), -1);
    CHECK_EQ(um_event_queue_options_resolve(NULL, &queue), 0);
    CHECK_EQ(queue.queue_size_warning, 0);
    um_options_clear(UM_SCOPE_EVENT_QUEUE, &queue);
    CHECK_EQ(lbm_event_queue_attr_create_from_xml(&attr, "q1"), 0);
    CHECK_EQ(um_event_queue_options_resolve(attr, &queue), 0);
    CHECK_EQ(queue.queue_size_warning, 9);
    CHECK_STR(queue.event_queue_name, "q1");
    um_options_clear(UM_SCOPE_EVENT_QUEUE, &queue);
    lbm_event_queue_attr_delete(attr);
    CHECK_EQ(um_hfx_options_resolve(NULL, "h", &hfx), 0);
    CHECK_EQ(hfx.duplicate_delivery, 1);
    um_options_clear(UM_SCOPE_HFX, &hfx);
}

TEST(malformed_documents_are_rejected_whole_with_their_line)
{
    static const char *const documents[][2] = {
        {"", "not well-formed"},
        {"<um-configuration version=\"1.0\">", "not well-formed"},
        {"<other/>", "No declaration for element other"},
        {"<applications/>", "root element must be um-configuration"},
        {HEAD "<unknown/></um-configuration>", "unknown"},
        {"<um-configuration/>", "version"},
        {HEAD "<applications><application name=\"a\"/></applications></um-configuration>", "application"},
        {APP("<contexts order=\"deny\"/>"), "order must be"},
        {APP("<contexts bogus=\"1\"/>"), "bogus"},
        {APP("<contexts><context rule=\"maybe\"><receivers/></context></contexts>"), "rule"},
        {APP("<contexts><context name=\"a b\"><receivers/></context></contexts>"), "line 3: element context"},
        {APP("<contexts><context><sources><topic/></sources></context></contexts>"), "exactly one of"},
        {APP("<contexts><context><sources><topic topicname=\"a\" pattern=\"b\"/></sources></context></contexts>"),
         "exactly one"},
        {APP("<contexts><context><sources><topic pattern=\"(\"/></sources></context></contexts>"), "does not compile"},
        {"<!DOCTYPE um-configuration [<!ENTITY a \"b\">]>\n<um-configuration version=\"1.0\"/>", "entity declarations"},
        {"<!DOCTYPE x [<!ENTITY f SYSTEM \"file:///etc/passwd\">]><um-configuration "
         "version=\"1.0\">&f;</um-configuration>",
         "entity declarations"},
        {"<x:um-configuration xmlns:x=\"urn:x\" version=\"1.0\"/>", "namespace"}};
    for (size_t i = 0; i < sizeof documents / sizeof documents[0]; i++) {
        fresh();
        CHECK_EQ(lbm_config_xml_string(documents[i][0], "a"), -1);
        CHECK_CONTAINS(lbm_errmsg(), documents[i][1]);
        /* A rejected document does not count as loaded. */
        CHECK_EQ(lbm_config_xml_string(APP("<contexts/>"), "a"), 0);
    }
}

TEST(a_document_is_loaded_once_and_its_application_must_exist)
{
    fresh();
    CHECK_EQ(lbm_config_xml_string(APP("<contexts/>"), "b"), -1);
    CHECK_CONTAINS(lbm_errmsg(), "CoreApi-5688-4089: error parsing application name 'b'");
    CHECK_EQ(lbm_config_xml_string(APP("<contexts/>"), NULL), -1);
    CHECK_EQ(lbm_config_xml_string(APP("<contexts/>"), "a"), 0);
    CHECK_EQ(lbm_config_xml_string(APP("<contexts/>"), "a"), -1);
    CHECK_CONTAINS(lbm_errmsg(), "XML configuration has already been loaded.");
}

TEST(imperfect_documents_are_in_force_without_their_bad_parts)
{
    fresh();
    CHECK_EQ(lbm_config_xml_string(APP("<contexts template=\"missing\"><context><options type=\"context\">"
                                       "<option name=\"no_such\" default-value=\"1\"/>"
                                       "<option name=\"request_tcp_port_high\" default-value=\"many\"/>"
                                       "<option name=\"resolver_cache\"><deny>7</deny></option>"
                                       "<option name=\"request_tcp_port_low\" default-value=\"13000\"/>"
                                       "</options><options><option name=\"x\"/></options></context></contexts>"),
                                   "a"),
             -1);
    CHECK_EQ(log_lines, 5);
    CHECK_CONTAINS(log_text, "Core-5626-1");
    CHECK_CONTAINS(log_text, "Option no_such is not recognized");
    CHECK_CONTAINS(log_text, "Core-5626-3");
    CHECK_CONTAINS(log_text, "error parsing default value 'many'");
    CHECK_CONTAINS(log_text, "Core-5626-7");
    CHECK_CONTAINS(log_text, "template 'missing' does not exist");
    CHECK_CONTAINS(lbm_errmsg(), "options without type");
    CHECK_EQ(created_port_low(NULL), 13000);
}

TEST(includes_replace_elements_from_files_and_stop_at_their_limits)
{
    static const char *const namespaces[] = {"http://www.w3.org/2001/XInclude", "http://www.w3.org/2003/XInclude"};
    char text[2000];
    const char *part = temporary("part.xml", "<options type=\"context\"><option name=\"request_tcp_port_low\" "
                                             "default-value=\"13333\"/></options>");
    const char *base = strrchr(part, '/') + 1;
    for (int i = 0; i < 2; i++) {
        fresh();
        snprintf(text, sizeof text,
                 HEAD "<applications><application><contexts><context><xi:include xmlns:xi=\"%s\" href=\"%s\"/>"
                      "</context></contexts></application></applications></um-configuration>",
                 namespaces[i], base);
        const char *whole = temporary("whole.xml", text);
        CHECK_EQ(lbm_config(whole), 0);
        CHECK_EQ(created_port_low(NULL), 13333);
        unlink(whole);
    }
    fresh();
    CHECK_EQ(lbm_config_xml_string("<um-configuration version=\"1.0\" xmlns:xi=\"http://www.w3.org/2001/XInclude\">"
                                   "<xi:include href=\"http://example.invalid/a.xml\"/></um-configuration>",
                                   NULL),
             -1);
    CHECK_CONTAINS(lbm_errmsg(), "http://example.invalid/a.xml");
    CHECK_EQ(lbm_config_xml_string("<um-configuration version=\"1.0\" xmlns:xi=\"http://www.w3.org/2001/XInclude\">"
                                   "<xi:include href=\"/no/such/file.xml\"/></um-configuration>",
                                   NULL),
             -1);
    CHECK_CONTAINS(lbm_errmsg(), "/no/such/file.xml");
    const char *loop = temporary("loop.xml", "");
    snprintf(text, sizeof text,
             "<um-configuration version=\"1.0\" xmlns:xi=\"http://www.w3.org/2001/XInclude\"><xi:include href=\"%s\"/>"
             "</um-configuration>",
             strrchr(loop, '/') + 1);
    temporary("loop.xml", text);
    CHECK_EQ(lbm_config(loop), -1);
    CHECK_CONTAINS(lbm_errmsg(), "XInclude processing failed: more than 16 levels");
    unlink(loop);
    unlink(part);
}

static const char *example(const char *name)
{
    static char path[1024];
    const char *slash = strrchr(__FILE__, '/');
    snprintf(path, sizeof path, "%.*s/../../../examples/config/%s", slash == NULL ? 1 : (int)(slash - __FILE__),
             slash == NULL ? "." : __FILE__, name);
    return path;
}

TEST(example_configurations_load_without_a_complaint)
{
    static const char *const applications[] = {"publisher", "subscriber"};
    fresh();
    CHECK_EQ(lbm_config(example("um.cfg")), 0);
    CHECK_EQ(log_lines, 0);
    for (int i = 0; i < 2; i++) {
        struct um_wildcard_receiver_options wildcard;
        fresh();
        CHECK_EQ(lbm_config_xml_file(example("um.xml"), applications[i]), 0);
        CHECK_EQ(log_lines, 0);
        CHECK_STR(context_value("resolver_multicast_ttl"), "16"); /* XML does not touch the defaults */
        CHECK_EQ(created_port_low(NULL), 14391);
        CHECK_EQ(um_wildcard_receiver_options_resolve(NULL, NULL, "^other", 1, &wildcard), i == 0 ? 0 : -1);
        if (i == 0) {
            um_options_clear(UM_SCOPE_WILDCARD_RECEIVER, &wildcard);
        }
    }
}

/* ---- environment ---- */

/* Runs this program again with the environment that `prepare` sets; true when its checks pass there. */
static bool in_new_process(void (*prepare)(void))
{
    pid_t child = fork();
    if (child == 0) {
        prepare();
        execl("/proc/self/exe", "config_file_test", (char *)NULL);
        _exit(9);
    }
    int status = 0;
    return child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/* What the children of the test below run, told by `task`. */
static void check_environment(const char *task)
{
    const char *files[] = {getenv("LBM_DEFAULT_CONFIG_FILE"), getenv("LBM_XML_CONFIG_FILENAME")};
    um_log_set_proc(record_log, NULL);
    um_config_start();
    for (int i = 0; i < 2; i++) {
        if (files[i] != NULL && strstr(files[i], "um_config_") != NULL) {
            unlink(files[i]);
        }
    }
    if (strcmp(task, "file") == 0) {
        CHECK_STR(context_value("request_tcp_port_low"), "12000");
        CHECK_STR(context_value("resolver_multicast_port"), "2965");
        CHECK_STR(context_value("transport_tcp_port_high"), "4390");
        CHECK_STR(context_value("monitor_interval"), "5");
        CHECK_EQ(created_port_low(NULL), 12000);
    } else if (strcmp(task, "bad file") == 0) {
        CHECK_STR(context_value("request_tcp_port_low"), "14391");
        CHECK_CONTAINS(log_text, "Core-5688-58: loading default config file failed");
    } else if (strcmp(task, "xml") == 0) {
        CHECK_EQ(created_port_low(NULL), 13000);
        CHECK_EQ(lbm_config_xml_string(APP("<contexts/>"), "a"), -1);
        CHECK_CONTAINS(lbm_errmsg(), "already been loaded");
    } else {
        lbm_context_attr_t *attr;
        CHECK_EQ(created_port_low(NULL), -1);
        CHECK_CONTAINS(lbm_errmsg(), "error parsing application name 'other'");
        CHECK_EQ(lbm_context_attr_create_from_xml(&attr, NULL), -1);
    }
}

/* Before main: a process that in_new_process() started does its checks and ends. */
__attribute__((constructor)) static void run_as_child(void)
{
    const char *task = getenv("UM_CONFIG_TEST_CHILD");
    if (task != NULL) {
        check_environment(task);
        exit(um_test_failed ? 1 : 0);
    }
}

static void prepare_file(void)
{
    setenv("UM_CONFIG_TEST_CHILD", "file", 1);
    setenv("LBM_USE_ORIG_DEFAULT_PORTS", "1", 1);
    setenv("LBM_MONITOR_INTERVAL", "5", 1);
    setenv("LBM_DEFAULT_CONFIG_FILE",
           temporary("default.cfg", "context request_tcp_port_low 12000\ncontext request_tcp_port_high 12001\n"), 1);
}

static void prepare_bad_file(void)
{
    setenv("UM_CONFIG_TEST_CHILD", "bad file", 1);
    setenv("LBM_DEFAULT_CONFIG_FILE", "/no/such/file", 1);
}

static void prepare_xml(void)
{
    setenv("UM_CONFIG_TEST_CHILD", "xml", 1);
    setenv("LBM_XML_CONFIG_FILENAME", temporary("env.xml", CONTEXT_PORT("13000", "/>")), 1);
    setenv("LBM_XML_CONFIG_APPNAME", "a", 1);
}

static void prepare_other_application(void)
{
    prepare_xml();
    setenv("UM_CONFIG_TEST_CHILD", "other", 1);
    setenv("LBM_XML_CONFIG_APPNAME", "other", 1);
}

TEST(environment_names_files_application_ports_and_monitoring)
{
    CHECK(in_new_process(prepare_file));
    CHECK(in_new_process(prepare_bad_file));
    CHECK(in_new_process(prepare_xml));
    CHECK(in_new_process(prepare_other_application));
}

/* ---- failing allocations ---- */

static int allocations_left;

static bool fail_when_used_up(size_t size)
{
    return allocations_left-- <= 0;
}

TEST(xml_survives_every_failing_allocation)
{
    bool done = false;
    for (int n = 0; n < 3000 && !done; n++) {
        fresh();
        allocations_left = n;
        um_mem_set_fail_hook(fail_when_used_up);
        bool good = lbm_config_xml_string(layered, NULL) == 0;
        good = context_port("own", true) == 9002 && good;
        good = batching("own", "px.gold") == 1 && good;
        um_mem_set_fail_hook(NULL);
        done = good && allocations_left > 0;
    }
    CHECK(done);
    fresh();
}
