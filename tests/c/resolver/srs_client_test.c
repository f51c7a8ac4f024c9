/* What a context tells resolution servers and hears of them, without sockets: the
 * journal and its readers, records, leaves, and one connection byte by byte, with an
 * integer as clock. */
#define _GNU_SOURCE
#include "um_test.h"

#include <arpa/inet.h>
#include <string.h>

#include "base/um_error.h"
#include "base/um_log.h"
#include "base/um_mem.h"
#include "base/um_random.h"
#include "resolver/um_srs_client.h"
#include "resolver/um_srs_leaves.h"
#include "um_test_torture.h"
#include "wire/um_rsocket.h"

#define MS UM_NS_PER_MS
#define SEC UM_NS_PER_SEC

/* ---- the journal ---- */

static struct um_srs_item *add(struct um_srs_journal *journal, const char *topic)
{
    struct um_srs_item *item = um_srs_journal_add(journal, UM_SRS_TOPIC, topic, strlen(topic), NULL);
    um_srs_journal_publish(journal, item);
    return item;
}

/* Everything there is for the reader: "+a" what is there, "-a" what has ended, "!a" leaves. */
static const char *read_all(struct um_srs_journal *journal, unsigned reader)
{
    static char text[256];
    const struct um_srs_item *item;
    text[0] = '\0';
    while ((item = um_srs_journal_next(journal, reader)) != NULL) {
        char mark = item->kind == UM_SRS_LEAVE ? '!' : item->ended ? '-' : '+';
        snprintf(text + strlen(text), sizeof text - strlen(text), "%c%s", mark, item->text);
        um_srs_journal_take(journal, reader);
    }
    return text;
}

TEST(a_new_reader_is_told_everything_and_one_that_is_up_to_date_the_changes)
{
    struct um_srs_journal *journal = um_srs_journal_create();
    CHECK_STR(read_all(journal, 0), "");
    struct um_srs_item *a = add(journal, "a");
    add(journal, "b");
    um_srs_journal_begin(journal, 0);
    CHECK_STR(read_all(journal, 0), "+a+b");
    CHECK_STR(read_all(journal, 0), "");
    add(journal, "c");
    um_srs_journal_end(journal, a);
    CHECK_STR(read_all(journal, 0), "+c-a");
    um_srs_journal_begin(journal, 1);
    CHECK_STR(read_all(journal, 1), "+b+c");
    CHECK_EQ(um_srs_journal_count(journal), 2);
    um_srs_journal_destroy(journal);
}

TEST(what_came_and_went_before_it_was_told_is_not_told)
{
    struct um_srs_journal *journal = um_srs_journal_create();
    um_srs_journal_begin(journal, 0);
    um_srs_journal_begin(journal, 1);
    struct um_srs_item *a = add(journal, "a");
    CHECK_STR(read_all(journal, 0), "+a");
    um_srs_journal_end(journal, a); /* told to reader 0 alone */
    CHECK_STR(read_all(journal, 1), "");
    CHECK_EQ(um_srs_journal_count(journal), 1);
    CHECK_STR(read_all(journal, 0), "-a");
    CHECK_EQ(um_srs_journal_count(journal), 0);
    struct um_srs_item *unpublished = um_srs_journal_add(journal, UM_SRS_TOPIC, "u", 1, NULL);
    um_srs_journal_end(journal, unpublished);
    CHECK_STR(read_all(journal, 0), "");
    um_srs_journal_destroy(journal);
}

TEST(a_reader_that_is_lost_is_owed_nothing_and_ends_do_not_pile_up)
{
    struct um_srs_journal *journal = um_srs_journal_create();
    struct um_srs_item *items[1000];
    for (int i = 0; i < 1000; i++) {
        items[i] = add(journal, "");
    }
    um_srs_journal_begin(journal, 0);
    CHECK_EQ(strlen(read_all(journal, 0)), 255 /* of 1000 */);
    for (int i = 0; i < 1000; i++) {
        um_srs_journal_end(journal, items[i]);
        um_srs_journal_end(journal, add(journal, "unread"));
    }
    CHECK_EQ(um_srs_journal_count(journal), 1000);
    um_srs_journal_stop(journal, 0);
    CHECK_EQ(um_srs_journal_count(journal), 0);
    CHECK(um_srs_journal_next(journal, 0) == NULL);
    um_srs_journal_begin(journal, 0);
    CHECK_STR(read_all(journal, 0), "");
    um_srs_journal_destroy(journal);
}

TEST(readers_stand_at_different_places_while_items_change)
{
    struct um_srs_journal *journal = um_srs_journal_create();
    struct um_srs_item *items[20];
    char model[UM_SRS_READERS_MAX][20] = {{0}}; /* what each reader believes */
    memset(items, 0, sizeof items);
    struct um_rng rng;
    um_rng_seed(&rng, 7);
    for (unsigned reader = 0; reader < UM_SRS_READERS_MAX; reader++) {
        um_srs_journal_begin(journal, reader);
    }
    for (int i = 0; i < 20000; i++) {
        unsigned at = (unsigned)um_rng_range(&rng, 0, 19);
        unsigned reader = (unsigned)um_rng_range(&rng, 0, UM_SRS_READERS_MAX - 1);
        char name[2] = {(char)('a' + at), 0};
        const struct um_srs_item *next;
        switch (um_rng_range(&rng, 0, 9)) {
        case 0:
            um_srs_journal_begin(journal, reader); /* the other side has forgotten everything */
            memset(model[reader], 0, sizeof model[reader]);
            break;
        case 1:
        case 2:
        case 3:
            if (items[at] == NULL) {
                items[at] = add(journal, name);
            } else {
                um_srs_journal_end(journal, items[at]);
                items[at] = NULL;
            }
            break;
        default:
            if ((next = um_srs_journal_next(journal, reader)) != NULL) {
                char *believed = &model[reader][next->text[0] - 'a'];
                CHECK_EQ(*believed, next->ended); /* nothing is told twice, or ended before it was told */
                *believed = !next->ended;
                um_srs_journal_take(journal, reader);
            }
        }
    }
    for (unsigned reader = 0; reader < UM_SRS_READERS_MAX; reader++) {
        const struct um_srs_item *next;
        while ((next = um_srs_journal_next(journal, reader)) != NULL) {
            model[reader][next->text[0] - 'a'] = !next->ended;
            um_srs_journal_take(journal, reader);
        }
        for (int at = 0; at < 20; at++) {
            CHECK_EQ(model[reader][at], items[at] != NULL);
        }
    }
    um_srs_journal_destroy(journal);
}

/* ---- records ---- */

static const uint8_t instance[8] = {1, 2, 3, 4, 5, 6, 7, 8};
static struct um_srs_self self = {.ctxinst = instance, .host_id = 77, .domain_id = 5, .interest_mode = 1};

static struct um_tr_source tcp_source(void)
{
    struct um_tr_source source = {.topic = "orders", .functionality = 1, .request_port = 14392, .has_otid = true};
    source.info.type = LBM_TRANSPORT_TYPE_TCP;
    source.info.src_ip = inet_addr("10.1.1.5");
    source.info.src_port = 14371;
    source.info.session_id = 0x5eed0001;
    source.info.topic_idx = 10;
    source.request_ip = inet_addr("10.1.1.5");
    memset(source.otid, 9, sizeof source.otid);
    return source;
}

/* A source as the other context hears of it. */
static enum um_srs_verdict exchange(const struct um_tr_source *told, const struct um_srs_self *teller,
                                    struct um_tr_source *heard)
{
    static uint8_t bytes[UM_LBMSRS_RECORD_MAX];
    struct um_srs_journal *journal = um_srs_journal_create();
    struct um_srs_item *item = um_srs_journal_add(journal, UM_SRS_SOURCE, told->topic, strlen(told->topic), told);
    struct um_slice batch = {bytes, um_srs_put_item(item, teller, bytes, sizeof bytes)};
    struct um_lbmsrs_record record;
    enum um_srs_verdict verdict =
        um_lbmsrs_next(&batch, &record) == UM_LBMSRS_OK ? um_srs_read_source(&record, &self, heard) : UM_SRS_BAD_SOURCE;
    um_srs_journal_destroy(journal);
    return verdict;
}

TEST(a_source_is_heard_as_it_was_told)
{
    struct um_tr_source told = tcp_source(), heard;
    CHECK_EQ(exchange(&told, &self, &heard), UM_SRS_TAKEN);
    CHECK_STR(heard.topic, "orders");
    CHECK(memcmp(&heard.info, &told.info, sizeof heard.info) == 0);
    CHECK(heard.has_otid && memcmp(heard.otid, told.otid, sizeof heard.otid) == 0);
    CHECK(heard.has_ctxinst && memcmp(heard.ctxinst, instance, sizeof instance) == 0);
    CHECK_EQ(heard.request_ip, told.request_ip);
    CHECK_EQ(heard.request_port, 14392);
    CHECK_EQ(heard.functionality, 1);
    CHECK_EQ(heard.domain_id, 5);
    told.info = (lbm_transport_source_info_t){.type = LBM_TRANSPORT_TYPE_LBTRM,
                                              .src_ip = inet_addr("10.1.1.5"),
                                              .src_port = 14390,
                                              .session_id = 0x1234,
                                              .mc_group = inet_addr("224.10.10.10"),
                                              .dest_port = 14400,
                                              .topic_idx = 3};
    CHECK_EQ(exchange(&told, &self, &heard), UM_SRS_TAKEN);
    CHECK(memcmp(&heard.info, &told.info, sizeof heard.info) == 0);
    told.request_port = 0; /* then there is nobody to ask for late join */
    CHECK_EQ(exchange(&told, &self, &heard), UM_SRS_TAKEN);
    CHECK_EQ(heard.functionality, 0);
}

TEST(sources_of_another_world_or_without_an_address_are_not_taken)
{
    struct um_tr_source told = tcp_source(), heard;
    struct um_srs_self other = self;
    other.tls = true;
    CHECK_EQ(exchange(&told, &other, &heard), UM_SRS_OTHER_WORLD);
    other = self;
    other.compression = true;
    CHECK_EQ(exchange(&told, &other, &heard), UM_SRS_OTHER_WORLD);
    told.info = (lbm_transport_source_info_t){
        .type = LBM_TRANSPORT_TYPE_LBTIPC, .session_id = 0x1234, .transport_id = 20001, .topic_idx = 3};
    CHECK_EQ(exchange(&told, &self, &heard), UM_SRS_TAKEN);
    CHECK_EQ(heard.info.transport_id, 20001);
    other = self;
    other.host_id = 78;
    CHECK_EQ(exchange(&told, &other, &heard), UM_SRS_OTHER_WORLD);
    told = tcp_source();
    told.info.src_ip = 0;
    CHECK_EQ(exchange(&told, &self, &heard), UM_SRS_UNREACHABLE);
    told.info.src_ip = inet_addr("239.1.1.1");
    CHECK_EQ(exchange(&told, &self, &heard), UM_SRS_UNREACHABLE);
    told = tcp_source();
    told.info.src_port = 0;
    CHECK_EQ(exchange(&told, &self, &heard), UM_SRS_UNREACHABLE);
}

TEST(both_spellings_of_reliable_unicast_are_understood_and_nonsense_is_not)
{
    static const struct {
        const char *text;
        enum um_srs_verdict verdict;
    } cases[] = {{"LBT-RU:10.1.1.5:14380:5eed0001", UM_SRS_TAKEN},
                 {"LBTRU:10.1.1.5:14380:5eed0001", UM_SRS_TAKEN},
                 {"LBTRU:", UM_SRS_BAD_SOURCE},
                 {"", UM_SRS_BAD_SOURCE},
                 {"TCP:10.1.1.5", UM_SRS_BAD_SOURCE},
                 {"BROKER", UM_SRS_BAD_SOURCE},
                 {"TCP:10.1.1.5:14371:5eed0001 and more", UM_SRS_BAD_SOURCE}};
    uint8_t otid[UM_LBMSRS_OTID_LEN] = {1};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct um_tr_source heard;
        struct um_lbmsrs_record record = {.id = UM_LBMSRS_SIR,
                                          .otid = otid,
                                          .topic = {(const uint8_t *)"t", 1},
                                          .source = {(const uint8_t *)cases[i].text, strlen(cases[i].text)},
                                          .context_instance = instance};
        CHECK_EQ(um_srs_read_source(&record, &self, &heard), cases[i].verdict);
        CHECK(cases[i].verdict != UM_SRS_TAKEN || heard.info.type == LBM_TRANSPORT_TYPE_LBTRU);
    }
}

/* ---- leaves ---- */

static unsigned news;

static void on_news(void *user)
{
    news++;
}

TEST(leaves_of_a_source_become_rare_and_begin_anew_after_a_minute)
{
    struct um_timer_wheel *wheel = um_timer_wheel_create(0);
    struct um_srs_journal *journal = um_srs_journal_create();
    struct um_srs_leaves *leaves = um_srs_leaves_create(journal, wheel, on_news, NULL);
    struct um_tr_source source = tcp_source();
    uint64_t now_ns = SEC, last_ns = 0, gaps_ns[8];
    um_srs_journal_begin(journal, 0);
    um_srs_journal_begin(journal, 1);
    for (int i = 0; i < 8; i++) {
        um_srs_leaves_ended(leaves, now_ns, &source, 0);
        um_srs_leaves_ended(leaves, now_ns, &source, 1);
        while (um_srs_journal_next(journal, 0) == NULL) {
            now_ns += 10 * MS;
            um_timer_run(wheel, now_ns);
        }
        CHECK_STR(read_all(journal, 0), "!orders");
        CHECK_STR(read_all(journal, 1), "!orders");
        gaps_ns[i] = now_ns - last_ns;
        last_ns = now_ns;
    }
    CHECK_EQ(gaps_ns[1] / SEC, 1);
    CHECK_EQ(gaps_ns[2] / SEC, 2);
    CHECK_EQ(gaps_ns[5] / SEC, 16);
    CHECK_EQ(gaps_ns[6] / SEC, 30);
    CHECK_EQ(gaps_ns[7] / SEC, 30);
    CHECK_EQ(um_srs_leaves_count(leaves), 1);
    um_timer_run(wheel, now_ns += UM_SRS_LEAVE_KEPT_NS + SEC);
    CHECK_EQ(um_srs_leaves_count(leaves), 0);
    um_srs_leaves_ended(leaves, now_ns, &source, 0);
    um_timer_run(wheel, now_ns += 10 * MS);
    CHECK_STR(read_all(journal, 0), "!orders");
    CHECK_STR(read_all(journal, 1), "");
    um_srs_leaves_destroy(leaves);
    um_srs_journal_destroy(journal);
    um_timer_wheel_destroy(wheel);
}

TEST(remembered_leaves_have_a_bound_and_those_beyond_it_are_told)
{
    struct um_timer_wheel *wheel = um_timer_wheel_create(0);
    struct um_srs_journal *journal = um_srs_journal_create();
    struct um_srs_leaves *leaves = um_srs_leaves_create(journal, wheel, on_news, NULL);
    struct um_tr_source source = tcp_source();
    unsigned told = 0;
    um_srs_journal_begin(journal, 0);
    for (uint32_t i = 0; i < UM_SRS_LEAVES_MAX + 100; i++) {
        memcpy(source.otid, &i, sizeof i);
        um_srs_leaves_ended(leaves, SEC, &source, 0);
    }
    CHECK_EQ(um_srs_leaves_count(leaves), UM_SRS_LEAVES_MAX);
    um_timer_run(wheel, 2 * SEC);
    for (; um_srs_journal_next(journal, 0) != NULL; told++) {
        um_srs_journal_take(journal, 0);
    }
    CHECK_EQ(told, UM_SRS_LEAVES_MAX + 100);
    um_srs_leaves_destroy(leaves);
    um_srs_journal_destroy(journal);
    um_timer_wheel_destroy(wheel);
}

/* ---- one connection ---- */

static struct line {
    struct um_srs_journal *journal;
    struct um_srs_client *client;
    struct um_rsocket_reader reader;
    unsigned connects, disconnects, outputs, active, lost, failed, sources;
    unsigned frames[64]; /* of the client, by type */
    uint32_t last_stream, last_n;
    bool refuse; /* connecting fails at once */
    uint64_t now_ns;
    unsigned records;
} line;

static int line_connect(void *io)
{
    line.connects++;
    return line.refuse ? um_error(UM_EOS, "Test-1", "no route") : 0;
}

static void line_disconnect(void *io, const uint8_t *last, size_t len)
{
    line.disconnects++;
}

static void line_output(void *io)
{
    line.outputs++;
}

static void line_active(void *io, uint32_t domain_id)
{
    line.active++;
}

static void line_lost(void *io)
{
    line.lost++;
}

static void line_failed(void *io)
{
    line.failed++;
}

static void line_source(void *io, const struct um_tr_source *source)
{
    line.sources++;
}

static int no_log(int level, const char *message, void *clientd)
{
    return 0;
}

static bool line_start(uint64_t seed)
{
    static const struct um_srs_client_ops ops = {line_connect, line_disconnect, line_output, line_active,
                                                 line_lost,    line_failed,     line_source};
    memset(&line, 0, sizeof line);
    um_log_set_proc(no_log, NULL);
    line.now_ns = 1000 * SEC;
    line.journal = um_srs_journal_create();
    struct um_srs_client_config config = {.journal = line.journal,
                                          .self = &self,
                                          .service_ip = {inet_addr("10.1.1.7")},
                                          .service_port = 27000,
                                          .seed = seed};
    line.client = line.journal == NULL ? NULL : um_srs_client_create(&config, &ops, NULL);
    um_rsocket_reader_init(&line.reader, UM_RSOCKET_FRAME_MAX);
    return line.client != NULL;
}

static void line_end(void)
{
    um_srs_client_destroy(line.client);
    um_srs_journal_destroy(line.journal);
    um_rsocket_reader_free(&line.reader);
    um_log_set_proc(NULL, NULL);
}

/* What the client has to say is taken, so many bytes at a time. */
static void take_output(size_t at_a_time)
{
    const uint8_t *data;
    size_t len;
    struct um_rsocket_frame frame;
    struct um_lbmsrs_record record;
    while ((len = um_srs_client_output(line.client, line.now_ns, &data)) > 0) {
        struct um_slice input = {data, len < at_a_time ? len : at_a_time};
        size_t taken = input.len;
        while (um_rsocket_read(&line.reader, &input, &frame) == UM_RSOCKET_FRAME) {
            line.frames[frame.type]++;
            line.last_stream = frame.stream;
            line.last_n = frame.request_n;
            if (frame.type == UM_RSOCKET_REQUEST_FNF) {
                while (um_lbmsrs_next(&frame.data, &record) == UM_LBMSRS_OK) {
                    line.records++;
                }
            }
        }
        um_srs_client_sent(line.client, taken);
    }
}

static void say(const struct um_rsocket_frame *frame)
{
    uint8_t bytes[4096];
    um_srs_client_received(line.client, line.now_ns, bytes, um_rsocket_encode(frame, bytes, sizeof bytes));
}

static void registered(void)
{
    uint8_t answer[UM_LBMSRS_RESPONSE_LEN];
    struct um_lbmsrs_response response = {.client_id = 1, .protocol_version = 1};
    um_lbmsrs_put_response(answer, &response);
    um_srs_client_connected(line.client, line.now_ns, (struct in_addr){inet_addr("10.1.1.5")}, 41873);
    take_output(SIZE_MAX);
    say(&(struct um_rsocket_frame){.type = UM_RSOCKET_PAYLOAD,
                                   .flags = UM_RSOCKET_NEXT | UM_RSOCKET_COMPLETE,
                                   .stream = 1,
                                   .data = {answer, sizeof answer}});
}

static void timer(void)
{
    line.now_ns = um_srs_client_due(line.client);
    um_srs_client_on_timer(line.client, line.now_ns);
}

TEST(a_connection_registers_asks_for_sources_and_tells_all_it_has_in_few_frames)
{
    char topic[16];
    CHECK(line_start(1));
    for (int i = 0; i < 5000; i++) {
        snprintf(topic, sizeof topic, "topic-%d", i);
        add(line.journal, topic);
    }
    um_srs_client_start(line.client, line.now_ns);
    CHECK_EQ(um_srs_client_state(line.client), UM_SRS_CONNECTING);
    registered();
    CHECK_EQ(um_srs_client_state(line.client), UM_SRS_ACTIVE);
    CHECK_EQ(line.frames[UM_RSOCKET_SETUP], 1);
    CHECK_EQ(line.frames[UM_RSOCKET_REQUEST_RESPONSE], 1);
    take_output(7);
    CHECK_EQ(line.frames[UM_RSOCKET_REQUEST_STREAM], 1);
    CHECK_EQ(line.records, 5000);
    CHECK(line.frames[UM_RSOCKET_REQUEST_FNF] <= 5000 * 40 / 16384 + 2);
    CHECK_EQ(line.last_stream % 2, 1);
    CHECK_EQ(line.disconnects, 0);
    line_end();
}

TEST(news_after_a_silence_are_told_at_once_and_those_soon_after_together)
{
    CHECK(line_start(1));
    um_srs_client_start(line.client, line.now_ns);
    registered();
    take_output(SIZE_MAX);
    line.now_ns += SEC;
    uint64_t first_ns = line.now_ns;
    unsigned before = line.outputs;
    for (int i = 0; i < 9; i++) {
        char topic[2] = {(char)('a' + i), 0};
        add(line.journal, topic);
        um_srs_client_changed(line.client, line.now_ns);
        CHECK_EQ(line.outputs, before + 1); /* of the first */
        if (i == 0) {
            take_output(SIZE_MAX);
            CHECK_EQ(line.records, 1);
        }
        line.now_ns += MS;
    }
    CHECK_EQ(um_srs_client_due(line.client), first_ns + UM_SRS_GATHER_NS);
    timer();
    CHECK_EQ(line.outputs, before + 2);
    take_output(SIZE_MAX);
    CHECK_EQ(line.records, 9);
    CHECK_EQ(line.frames[UM_RSOCKET_REQUEST_FNF], 2);
    CHECK(um_srs_client_due(line.client) > line.now_ns + SEC); /* nothing waits */
    add(line.journal, "j");
    um_srs_client_changed(line.client, line.now_ns);
    um_srs_client_closed(line.client, line.now_ns, "test"); /* what waits is told anew by the next connection */
    CHECK_EQ(um_srs_client_state(line.client), UM_SRS_BACKOFF);
    CHECK(um_srs_client_due(line.client) >= line.now_ns + UM_SRS_BACKOFF_FIRST_NS / 2);
    line_end();
}

TEST(delays_between_attempts_double_up_to_their_bound_and_begin_anew_after_a_steady_connection)
{
    uint64_t first_ns[8], last_ns = 0;
    for (uint64_t seed = 0; seed < 8; seed++) {
        CHECK(line_start(seed));
        line.refuse = true;
        um_srs_client_start(line.client, line.now_ns);
        first_ns[seed] = um_srs_client_due(line.client) - line.now_ns;
        CHECK(first_ns[seed] >= SEC / 2 && first_ns[seed] <= SEC * 3 / 2);
        for (int i = 0; i < 20; i++) {
            timer();
            last_ns = um_srs_client_due(line.client) - line.now_ns;
            CHECK(last_ns <= UM_SRS_BACKOFF_MOST_NS * 5 / 4);
        }
        CHECK(last_ns >= UM_SRS_BACKOFF_MOST_NS * 3 / 4);
        CHECK_EQ(line.failed, 21);
        line.refuse = false;
        timer();
        registered();
        CHECK_EQ(um_srs_client_state(line.client), UM_SRS_ACTIVE);
        um_srs_client_closed(line.client, line.now_ns += SEC, "test"); /* too short to count */
        CHECK(um_srs_client_due(line.client) - line.now_ns >= UM_SRS_BACKOFF_MOST_NS * 3 / 4);
        timer();
        registered();
        um_srs_client_closed(line.client, line.now_ns += UM_SRS_STEADY_NS, "test");
        CHECK(um_srs_client_due(line.client) - line.now_ns <= SEC * 3 / 2);
        line_end();
    }
    CHECK(first_ns[0] != first_ns[1] && first_ns[1] != first_ns[2]);
}

TEST(no_state_is_without_a_time_at_which_it_ends)
{
    CHECK(line_start(1));
    um_srs_client_start(line.client, line.now_ns);
    for (int hour = 0; hour < 3600; hour++) { /* nobody ever answers */
        CHECK(um_srs_client_due(line.client) <= line.now_ns + UM_SRS_CONNECT_NS);
        timer();
    }
    CHECK(line.connects > 1000);
    while (um_srs_client_state(line.client) != UM_SRS_CONNECTING) {
        timer();
    }
    registered();
    uint64_t since_ns = line.now_ns;
    while (line.lost == 0) { /* nor any keepalive */
        CHECK(um_srs_client_due(line.client) <= line.now_ns + UM_SRS_KEEPALIVE_NS);
        take_output(SIZE_MAX);
        timer();
    }
    CHECK_EQ(line.now_ns - since_ns, UM_SRS_LIFETIME_NS);
    CHECK_EQ(line.frames[UM_RSOCKET_KEEPALIVE], 3);
    line_end();
}

TEST(time_in_which_this_process_stood_still_is_not_the_silence_of_the_server)
{
    CHECK(line_start(1));
    um_srs_client_start(line.client, line.now_ns);
    registered();
    um_srs_client_on_timer(line.client, line.now_ns += 60 * SEC);
    CHECK_EQ(line.lost, 0);
    CHECK_EQ(um_srs_client_state(line.client), UM_SRS_ACTIVE);
    say(&(struct um_rsocket_frame){.type = UM_RSOCKET_KEEPALIVE});
    timer();
    CHECK_EQ(line.lost, 0);
    um_srs_client_on_timer(line.client, line.now_ns += 60 * SEC);
    while (line.lost == 0 && line.now_ns < 2000 * SEC) { /* but only once */
        timer();
    }
    CHECK_EQ(line.lost, 1);
    line_end();
}

TEST(more_is_asked_for_while_half_of_the_credit_is_left_and_keepalives_are_answered)
{
    CHECK(line_start(1));
    um_srs_client_start(line.client, line.now_ns);
    registered();
    take_output(SIZE_MAX);
    struct um_rsocket_frame empty = {.type = UM_RSOCKET_PAYLOAD, .flags = UM_RSOCKET_NEXT, .stream = 3};
    for (unsigned i = 0; i < UM_SRS_CREDIT_STEP; i++) {
        CHECK_EQ(line.frames[UM_RSOCKET_REQUEST_N], 0);
        say(&empty);
    }
    take_output(SIZE_MAX);
    CHECK_EQ(line.frames[UM_RSOCKET_REQUEST_N], 1);
    CHECK_EQ(line.last_n, UM_SRS_CREDIT_STEP);
    for (int i = 0; i < 1000; i++) { /* many questions before one could be answered: one answer */
        say(&(struct um_rsocket_frame){.type = UM_RSOCKET_KEEPALIVE, .flags = UM_RSOCKET_RESPOND});
    }
    take_output(SIZE_MAX);
    CHECK_EQ(line.frames[UM_RSOCKET_KEEPALIVE], 1);
    line_end();
}

TEST(refusals_fragments_and_unasked_payloads_end_the_connection)
{
    static const struct um_rsocket_frame said[] = {
        {.type = UM_RSOCKET_ERROR, .error = UM_RSOCKET_CONNECTION_ERROR},
        {.type = UM_RSOCKET_ERROR, .stream = 3, .error = UM_RSOCKET_REJECTED},
        {.type = UM_RSOCKET_PAYLOAD, .flags = UM_RSOCKET_NEXT | UM_RSOCKET_FOLLOWS, .stream = 3},
        {.type = UM_RSOCKET_PAYLOAD, .flags = UM_RSOCKET_COMPLETE, .stream = 3},
        {.type = UM_RSOCKET_PAYLOAD, .flags = UM_RSOCKET_NEXT, .stream = 9},
        {.type = UM_RSOCKET_REQUEST_FNF, .stream = 2},
        {.type = UM_RSOCKET_PAYLOAD, .flags = UM_RSOCKET_NEXT, .stream = 3, .data = {(const uint8_t *)"\0\63x", 3}},
    };
    for (size_t i = 0; i < sizeof said / sizeof said[0]; i++) {
        CHECK(line_start(1));
        um_srs_client_start(line.client, line.now_ns);
        registered();
        say(&said[i]);
        CHECK_EQ(um_srs_client_state(line.client), UM_SRS_BACKOFF);
        CHECK_EQ(line.lost, 1);
        CHECK_EQ(line.disconnects, 1);
        line_end();
    }
}

TEST(random_bytes_cut_anywhere_never_leave_the_client_without_a_way_on)
{
    struct um_rng rng;
    uint8_t bytes[512];
    um_rng_seed(&rng, 3);
    CHECK(line_start(3));
    um_srs_client_start(line.client, line.now_ns);
    for (int i = 0; i < 20000; i++) {
        if (um_srs_client_state(line.client) == UM_SRS_CONNECTING) {
            registered();
        }
        size_t len = (size_t)um_rng_range(&rng, 1, sizeof bytes);
        for (size_t at = 0; at < len; at++) {
            bytes[at] = (uint8_t)um_rng_u32(&rng);
        }
        if (i % 2 == 0) { /* frames that are whole */
            um_rsocket_put_head(bytes, (uint32_t)um_rng_range(&rng, 0, 3),
                                (enum um_rsocket_type)um_rng_range(&rng, 0, 63), (uint16_t)um_rng_range(&rng, 0, 1023),
                                len < 9 ? 0 : len - 9);
            len = len < 9 ? 9 : len;
        }
        if (um_srs_client_state(line.client) == UM_SRS_ACTIVE) {
            um_srs_client_received(line.client, line.now_ns, bytes, len);
            take_output(SIZE_MAX);
        }
        CHECK(um_srs_client_due(line.client) != UM_NEVER);
        timer();
    }
    CHECK(line.lost > 1000);
    line_end();
}

/* ---- memory ---- */

static unsigned torture_run(void)
{
    unsigned done = 0;
    struct um_timer_wheel *wheel = um_timer_wheel_create(0);
    if (line_start(1) && wheel != NULL) {
        struct um_srs_leaves *leaves = um_srs_leaves_create(line.journal, wheel, on_news, NULL);
        struct um_tr_source source = tcp_source();
        struct um_srs_item *item = um_srs_journal_add(line.journal, UM_SRS_SOURCE, "orders", 6, &source);
        um_srs_client_start(line.client, line.now_ns);
        registered();
        if (item != NULL) {
            um_srs_journal_publish(line.journal, item);
        }
        if (leaves != NULL) {
            um_srs_leaves_ended(leaves, SEC, &source, 0);
            for (uint64_t at_ns = SEC; at_ns < 5 * SEC; at_ns += SEC) {
                um_timer_run(wheel, at_ns);
            }
        }
        take_output(SIZE_MAX);
        done = line.records;
        um_srs_leaves_destroy(leaves);
    }
    line_end();
    um_timer_wheel_destroy(wheel);
    return done;
}

TEST(any_failed_allocation_leaves_everything_whole)
{
    long n = 0;
    bool hit = true;
    int descriptors = open_descriptors();
    torture_name = "srs_client";
    hang_guard(60);
    CHECK_EQ(torture_run(), 2);
    for (; hit; n++) {
        fault_arm(FAULT_MEMORY, n, 1, 0);
        torture_run();
        hit = fault_disarm();
    }
    hang_guard(0);
    CHECK(n > 8);
    CHECK_EQ(open_descriptors(), descriptors);
    CHECK(!leaks_found());
}
