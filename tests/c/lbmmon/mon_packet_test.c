/* Packets of monitoring: the documented bytes, attributes of either width, and bytes of strangers. */
#include <arpa/inet.h>

#include <lbm/lbmmon.h>

#include "base/um_random.h"
#include "lbmmon/um_mon_packet.h"
#include "um_test.h"

/* The example of the documentation: context statistics of application "A", CSV version 5, no data. */
static const uint8_t example[] = {0x1b, 0x33, 0x04, 0x1b, 0x00, 0x03, 0x00, 0x0f, 0x00, 0x00, 0x00, 0x00, 0x00, 0x02,
                                  0x00, 0x0f, 0x00, 0x02, 0x00, 0x01, 0x41, 0x00, 0x03, 0x00, 0x02, 0x01, 0x05};

TEST(documented_packet_is_read)
{
    struct um_mon_packet packet;
    lbmmon_packet_attributes_t a;
    CHECK_EQ(um_mon_packet_read(example, sizeof example, &packet), 0);
    CHECK_EQ(packet.type, LBMMON_PACKET_TYPE_CONTEXT);
    CHECK_EQ(packet.data_len, 0);
    CHECK_EQ(um_mon_attributes_read(packet.attributes, packet.attributes_len, &a), 0);
    CHECK_STR(a.mApplicationSourceID, "A");
    CHECK_EQ(a.mModuleID, 0x0105);
    CHECK_EQ(a.mFlags, UM_MON_HAS(LBMMON_ATTR_APPSOURCEID) | UM_MON_HAS(LBMMON_ATTR_FORMAT_MODULEID));
}

TEST(documented_packet_is_written)
{
    uint8_t out[64];
    lbmmon_packet_attributes_t a;
    um_mon_attributes_init(&a);
    a.mFlags = UM_MON_HAS(LBMMON_ATTR_APPSOURCEID) | UM_MON_HAS(LBMMON_ATTR_FORMAT_MODULEID);
    a.mModuleID = 0x0105;
    strcpy(a.mApplicationSourceID, "A");
    size_t len = um_mon_attributes_write(&a, out + UM_MON_HEAD_LEN, sizeof out - UM_MON_HEAD_LEN);
    um_mon_head_write(out, LBMMON_PACKET_TYPE_CONTEXT, len, 0);
    CHECK_EQ(UM_MON_HEAD_LEN + len, sizeof example);
    CHECK(memcmp(out, example, sizeof example) == 0);
}

static void fill(lbmmon_packet_attributes_t *a)
{
    um_mon_attributes_init(a);
    a->mFlags = (UM_MON_HAS(LBMMON_ATTR_DOMAINID) << 1) - 1;
    a->mAddress = htonl(0x0a010105);
    a->mTimestamp = 1700000000;
    memset(a->mApplicationSourceID, 'x', UM_MON_APPID_MAX);
    a->mModuleID = 0x0201;
    a->mObjectID = 0x1122334455667788;
    a->mProcessID = 4321;
    a->mSourceFlag = LBMMON_ATTR_SOURCE_IM;
    memcpy(a->mContextInstance, "instance", 8);
    a->mDomainID = 9;
}

TEST(all_attributes_come_back_and_fit_the_room_that_is_kept_for_them)
{
    uint8_t out[UM_MON_ATTRIBUTES_MAX];
    lbmmon_packet_attributes_t a, b;
    fill(&a);
    size_t len = um_mon_attributes_write(&a, out, sizeof out);
    CHECK(len > 0);
    CHECK_EQ(um_mon_attributes_read(out, len, &b), 0);
    CHECK(memcmp(&a, &b, sizeof a) == 0);
    for (size_t room = 0; room < len; room++) {
        CHECK_EQ(um_mon_attributes_write(&a, out, room), 0);
    }
}

TEST(integers_have_four_or_eight_bytes)
{
    static const uint8_t narrow[] = {0, 2, 0, 20, 0, 4, 0, 4, 1, 2, 3, 4, 0, 5, 0, 4, 0, 0, 0, 9};
    static const uint8_t wide[] = {0, 1, 0, 16, 0, 1, 0, 8, 0, 0, 0, 1, 0, 0, 0, 2};
    static const uint8_t odd[] = {0, 1, 0, 11, 0, 1, 0, 3, 1, 2, 3};
    lbmmon_packet_attributes_t a;
    CHECK_EQ(um_mon_attributes_read(narrow, sizeof narrow, &a), 0);
    CHECK_EQ(a.mObjectID, 0x01020304);
    CHECK_EQ(a.mProcessID, 9);
    CHECK_EQ(um_mon_attributes_read(wide, sizeof wide, &a), 0);
    CHECK_EQ(a.mTimestamp, 0x100000002);
    CHECK_EQ(um_mon_attributes_read(odd, sizeof odd, &a), -1);
}

/* What later versions add is passed over; the entries count, not the total length. */
TEST(unknown_attributes_are_passed_over)
{
    static const uint8_t block[] = {0, 2, 0xff, 0xff, 0, 77, 0, 3, 1, 2, 3, 0, 3, 0, 2, 1, 5, 99, 99};
    lbmmon_packet_attributes_t a;
    CHECK_EQ(um_mon_attributes_read(block, sizeof block, &a), 0);
    CHECK_EQ(a.mFlags, UM_MON_HAS(LBMMON_ATTR_FORMAT_MODULEID));
    CHECK_EQ(a.mModuleID, 0x0105);
}

TEST(truncated_and_forged_packets_are_refused)
{
    struct um_mon_packet packet;
    uint8_t bytes[sizeof example];
    for (size_t len = 0; len < sizeof example; len++) {
        CHECK_EQ(um_mon_packet_read(example, len, &packet), -1);
    }
    for (size_t at = 0; at < 4; at++) { /* signature; and every length */
        memcpy(bytes, example, sizeof bytes);
        bytes[at] ^= 1;
        CHECK_EQ(um_mon_packet_read(bytes, sizeof bytes, &packet), -1);
    }
    for (size_t at = 6; at < 10; at++) {
        memcpy(bytes, example, sizeof bytes);
        bytes[at] ^= 1;
        CHECK_EQ(um_mon_packet_read(bytes, sizeof bytes, &packet), -1);
    }
}

/* Every cut of a block is read within its bounds (the address sanitizer looks), and so is whatever chance makes of it.
 */
TEST(blocks_of_attributes_are_never_left)
{
    uint8_t whole[UM_MON_ATTRIBUTES_MAX];
    lbmmon_packet_attributes_t a;
    fill(&a);
    size_t len = um_mon_attributes_write(&a, whole, sizeof whole);
    for (size_t cut = 0; cut < len; cut++) {
        uint8_t *part = malloc(cut + 1);
        memcpy(part, whole, cut);
        CHECK_EQ(um_mon_attributes_read(part, cut, &a), -1);
        free(part);
    }
    struct um_rng rng;
    um_rng_seed(&rng, 1);
    for (int i = 0; i < 20000; i++) {
        uint8_t *noise = malloc(len);
        memcpy(noise, whole, len);
        for (int flips = 0; flips < 4; flips++) {
            noise[um_rng_range(&rng, 0, len - 1)] = (uint8_t)um_rng_u32(&rng);
        }
        um_mon_attributes_read(noise, len, &a);
        CHECK(strlen(a.mApplicationSourceID) <= UM_MON_APPID_MAX);
        free(noise);
    }
}

TEST(getters_read_decoded_attributes_and_blocks)
{
    uint8_t block[UM_MON_ATTRIBUTES_MAX];
    lbmmon_packet_attributes_t decoded;
    fill(&decoded);
    um_mon_attributes_write(&decoded, block, sizeof block);
    const void *const forms[] = {&decoded, block};
    for (int i = 0; i < 2; i++) {
        lbm_uint_t address;
        time_t timestamp;
        lbm_ulong_t object, context, process, source;
        lbm_uint32_t domain;
        char appid[256];
        lbm_uint8_t instance[8];
        CHECK_EQ(lbmmon_attr_get_ipv4sender(forms[i], &address), 0);
        CHECK_EQ(address, htonl(0x0a010105));
        CHECK_EQ(lbmmon_attr_get_timestamp(forms[i], &timestamp), 0);
        CHECK_EQ(timestamp, 1700000000);
        CHECK_EQ(lbmmon_attr_get_appsourceid(forms[i], appid, sizeof appid), 0);
        CHECK_EQ(strlen(appid), UM_MON_APPID_MAX);
        CHECK_EQ(lbmmon_attr_get_appsourceid(forms[i], appid, 255), -1);
        CHECK_EQ(lbmmon_attr_get_objectid(forms[i], &object), 0);
        CHECK_EQ(lbmmon_attr_get_contextid(forms[i], &context), 0);
        CHECK_EQ(object, 0x1122334455667788);
        CHECK_EQ(context, object);
        CHECK_EQ(lbmmon_attr_get_processid(forms[i], &process), 0);
        CHECK_EQ(process, 4321);
        CHECK_EQ(lbmmon_attr_get_source(forms[i], &source), 0);
        CHECK_EQ(source, LBMMON_ATTR_SOURCE_IM);
        CHECK_EQ(lbmmon_attr_get_ctxinst(forms[i], instance, sizeof instance), 0);
        CHECK(memcmp(instance, "instance", 8) == 0);
        CHECK_EQ(lbmmon_attr_get_domainid(forms[i], &domain), 0);
        CHECK_EQ(domain, 9);
    }
    decoded.mFlags = 0;
    lbm_uint32_t domain;
    CHECK_EQ(lbmmon_attr_get_domainid(&decoded, &domain), -1);
    CHECK_EQ(lbmmon_errnum(), LBMMON_EINVAL);
    CHECK_CONTAINS(lbmmon_errmsg(), "does not have this attribute");
}

TEST(key_value_pairs_are_taken_one_by_one)
{
    char key[16], value[16];
    const char *rest = lbmmon_next_key_value_pair("a=1; b = two words ;;=x;c;d=", key, sizeof key, value, sizeof value);
    CHECK_STR(key, "a");
    CHECK_STR(value, "1");
    rest = lbmmon_next_key_value_pair(rest, key, sizeof key, value, sizeof value);
    CHECK_STR(key, "b");
    CHECK_STR(value, "two words");
    rest = lbmmon_next_key_value_pair(rest, key, sizeof key, value, sizeof value);
    CHECK_STR(key, "c");
    CHECK_STR(value, "");
    rest = lbmmon_next_key_value_pair(rest, key, sizeof key, value, sizeof value);
    CHECK_STR(key, "d");
    CHECK(lbmmon_next_key_value_pair(rest, key, sizeof key, value, sizeof value) == NULL);
    CHECK(lbmmon_next_key_value_pair(NULL, key, sizeof key, value, sizeof value) == NULL);
    CHECK(lbmmon_next_key_value_pair("a=1", key, 0, value, sizeof value) == NULL);
    CHECK(lbmmon_next_key_value_pair("a-name-that-is-too-long=1", key, sizeof key, value, sizeof value) == NULL);
    CHECK_STR(key, "");
}
