/* Source strings: format, parse, round trip, refusal of everything malformed; and the public calls around them. */
#include <arpa/inet.h>
#include <stddef.h>

#include <lbm/lbm.h>

#include "um_test.h"
#include "wire/um_source_string.h"
#include "wire/um_transport_place.h"

static lbm_transport_source_info_t session(int type)
{
    lbm_transport_source_info_t info;
    memset(&info, 0, sizeof info);
    info.type = type;
    info.src_ip = inet_addr("10.29.3.88");
    info.src_port = 14371;
    info.dest_port = 14400;
    info.mc_group = inet_addr("239.101.3.10");
    info.transport_id = 20003;
    info.session_id = 0x0a11b22c;
    return info;
}

static const char *text_of(lbm_transport_source_info_t info)
{
    static char text[UM_SOURCE_STRING_MAX];
    return um_source_string_format(&info, text, sizeof text) < 0 ? NULL : text;
}

TEST(each_transport_has_its_form)
{
    CHECK_STR(text_of(session(LBM_TRANSPORT_TYPE_TCP)), "TCP:10.29.3.88:14371:0a11b22c");
    CHECK_STR(text_of(session(LBM_TRANSPORT_TYPE_LBTRU)), "LBT-RU:10.29.3.88:14371:0a11b22c");
    CHECK_STR(text_of(session(LBM_TRANSPORT_TYPE_LBTRM)), "LBTRM:10.29.3.88:14371:0a11b22c:239.101.3.10:14400");
    CHECK_STR(text_of(session(LBM_TRANSPORT_TYPE_LBTIPC)), "LBT-IPC:a11b22c:20003");
    CHECK_STR(text_of(session(LBM_TRANSPORT_TYPE_LBTSMX)), "LBT-SMX:a11b22c:20003");
    CHECK_STR(text_of(session(LBM_TRANSPORT_TYPE_BROKER)), "BROKER");
}

TEST(topic_index_is_appended_when_there_is_one)
{
    lbm_transport_source_info_t info = session(LBM_TRANSPORT_TYPE_TCP);
    info.topic_idx = 4294967295u;
    CHECK_STR(text_of(info), "TCP:10.29.3.88:14371:0a11b22c[4294967295]");
}

TEST(tcp_and_lbtru_without_session_id_leave_it_out)
{
    lbm_transport_source_info_t info = session(LBM_TRANSPORT_TYPE_TCP);
    info.session_id = 0;
    CHECK_STR(text_of(info), "TCP:10.29.3.88:14371");
    info.type = LBM_TRANSPORT_TYPE_LBTRU;
    info.topic_idx = 7;
    CHECK_STR(text_of(info), "LBT-RU:10.29.3.88:14371[7]");
}

TEST(unknown_type_has_no_text)
{
    CHECK(text_of(session(0x77)) == NULL);
    CHECK_EQ(lbm_errnum(), LBM_EINVAL);
    CHECK_CONTAINS(lbm_errmsg(), "119");
}

static bool same(const lbm_transport_source_info_t *a, const lbm_transport_source_info_t *b)
{
    return memcmp(a, b, sizeof *a) == 0;
}

TEST(parse_gives_back_what_format_wrote)
{
    static const int types[] = {LBM_TRANSPORT_TYPE_TCP,    LBM_TRANSPORT_TYPE_LBTRU,  LBM_TRANSPORT_TYPE_LBTRM,
                                LBM_TRANSPORT_TYPE_LBTIPC, LBM_TRANSPORT_TYPE_LBTSMX, LBM_TRANSPORT_TYPE_BROKER};
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        lbm_transport_source_info_t info = session(types[i]), parsed, again;
        info.topic_idx = 31415;
        CHECK_EQ(um_source_string_parse(text_of(info), &parsed), 0);
        CHECK_EQ(parsed.type, types[i]);
        CHECK_EQ(parsed.topic_idx, 31415);
        CHECK_EQ(um_source_string_parse(text_of(parsed), &again), 0);
        CHECK(same(&parsed, &again));
    }
}

TEST(parts_a_text_does_not_have_are_zero)
{
    lbm_transport_source_info_t parsed;
    memset(&parsed, 0xff, sizeof parsed);
    CHECK_EQ(um_source_string_parse("TCP:10.29.3.88:14371", &parsed), 0);
    CHECK_EQ(parsed.src_ip, inet_addr("10.29.3.88"));
    CHECK_EQ(parsed.src_port, 14371);
    CHECK_EQ(parsed.session_id, 0);
    CHECK_EQ(parsed.topic_idx, 0);
    CHECK_EQ(parsed.mc_group, 0);
    CHECK_EQ(parsed.transport_idx, 0);
}

TEST(session_ids_are_read_padded_or_not)
{
    lbm_transport_source_info_t padded, bare;
    CHECK_EQ(um_source_string_parse("LBT-IPC:0a11b22c:20003[577]", &padded), 0);
    CHECK_EQ(um_source_string_parse("LBT-IPC:A11B22C:20003[577]", &bare), 0);
    CHECK(same(&padded, &bare));
    CHECK_EQ(padded.session_id, 0x0a11b22c);
}

TEST(malformed_texts_are_refused_and_leave_the_result_alone)
{
    static const char *const texts[] = {
        "",
        "TCP",
        "TCP:",
        "tcp:10.29.3.88:14371",
        "TCP:10.29.3.88",
        "TCP:10.29.3.88:",
        "TCP:10.29.3.88:65536",
        "TCP:10.29.3.888:14371",
        "TCP:10.29.3:14371",
        "TCP:10.29.3.88:14371:",
        "TCP:10.29.3.88:14371:123456789",
        "TCP:10.29.3.88:14371:xyz",
        "TCP:10.29.3.88:14371:0a11b22c[",
        "TCP:10.29.3.88:14371:0a11b22c[]",
        "TCP:10.29.3.88:14371:0a11b22c[4294967296]",
        "TCP:10.29.3.88:14371:0a11b22c[1]x",
        "TCP:10.29.3.88:14371:0a11b22c:1",
        "TCP:111111111111111111111111:1",
        "LBTRM:10.29.3.88:14390:91d4f0b7:239.101.3.10",
        "LBTRM:10.29.3.88:14390:239.101.3.10:14400",
        "LBT-RM:10.29.3.88:14390:91d4f0b7:239.101.3.10:14400",
        "LBT-SMX:77aa01f9",
        "LBT-SMX:77aa01f9:-1",
        "BROKER:1",
        "BROKERS",
    };
    lbm_transport_source_info_t parsed, before;
    memset(&before, 0x5a, sizeof before);
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        parsed = before;
        if (um_source_string_parse(texts[i], &parsed) != -1) {
            TEST_FAIL("\"%s\" was accepted", texts[i]);
        }
        CHECK_EQ(lbm_errnum(), LBM_EINVAL);
        CHECK(same(&parsed, &before));
    }
}

TEST(public_format_reports_the_length_and_needs_room_for_the_nul)
{
    lbm_transport_source_info_t info = session(LBM_TRANSPORT_TYPE_TCP);
    char text[64];
    size_t size = sizeof text;
    CHECK_EQ(lbm_transport_source_format(&info, sizeof info, text, &size), 0);
    CHECK_EQ(size, strlen("TCP:10.29.3.88:14371:0a11b22c"));
    size_t exact = size;
    CHECK_EQ(lbm_transport_source_format(&info, sizeof info, text, &exact), -1);
    CHECK_EQ(lbm_errnum(), LBM_EINVAL);
    exact = size + 1;
    CHECK_EQ(lbm_transport_source_format(&info, sizeof info, text, &exact), 0);
}

TEST(public_calls_accept_a_structure_without_its_last_member)
{
    lbm_transport_source_info_t info;
    memset(&info, 0x5a, sizeof info);
    size_t known = offsetof(lbm_transport_source_info_t, transport_idx);
    CHECK_EQ(lbm_transport_source_parse("TCP:10.29.3.88:14371[5]", &info, known), 0);
    CHECK_EQ(info.topic_idx, 5);
    CHECK_EQ(info.transport_idx, 0x5a5a5a5a);
    CHECK_EQ(lbm_transport_source_parse("TCP:10.29.3.88:14371[5]", &info, known - 1), -1);
    CHECK_EQ(lbm_errnum(), LBM_EINVAL);
}

TEST(public_calls_name_the_argument_that_is_null)
{
    lbm_transport_source_info_t info = session(LBM_TRANSPORT_TYPE_TCP);
    char text[64];
    size_t size = sizeof text;
    CHECK_EQ(lbm_transport_source_parse(NULL, &info, sizeof info), -1);
    CHECK_CONTAINS(lbm_errmsg(), "source must be valid");
    CHECK_EQ(lbm_transport_source_parse("BROKER", NULL, sizeof info), -1);
    CHECK_CONTAINS(lbm_errmsg(), "info must be valid");
    CHECK_EQ(lbm_transport_source_format(&info, sizeof info, NULL, &size), -1);
    CHECK_CONTAINS(lbm_errmsg(), "source must be valid");
    CHECK_EQ(lbm_transport_source_format(&info, sizeof info, text, NULL), -1);
    CHECK_CONTAINS(lbm_errmsg(), "size must be valid");
}

/* ---- where sources are ---- */

TEST(a_type_says_where_its_sources_are)
{
    CHECK_EQ(um_transport_place(LBM_TRANSPORT_TYPE_TCP), UM_PLACE_ADDRESS);
    CHECK_EQ(um_transport_place(LBM_TRANSPORT_TYPE_LBTRU), UM_PLACE_ADDRESS);
    CHECK_EQ(um_transport_place(LBM_TRANSPORT_TYPE_LBTRM), UM_PLACE_GROUP);
    CHECK_EQ(um_transport_place(LBM_TRANSPORT_TYPE_LBTIPC), UM_PLACE_MEMORY);
    CHECK_EQ(um_transport_place(LBM_TRANSPORT_TYPE_LBTSMX), UM_PLACE_MEMORY);
}

TEST(of_other_types_nobody_knows_where_their_sources_are)
{
    const int others[] = {-1, 2, LBM_TRANSPORT_TYPE_LBTRDMA, 0x41, LBM_TRANSPORT_TYPE_BROKER, 1 << 20};
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        CHECK_EQ(um_transport_place(others[i]), UM_PLACE_UNKNOWN);
    }
}
