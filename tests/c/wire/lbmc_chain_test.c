/* Element chains and message properties as bytes: golden packets written and read, every truncation, byte orders,
 * offsets out of range, random bytes. */
#include <ctype.h>

#include "base/um_random.h"
#include "um_test.h"
#include "wire/um_lbmc.h"
#include "wire/um_lbmc_chain.h"
#include "wire/um_lbmc_props.h"

static size_t from_hex(const char *hex, uint8_t *out)
{
    size_t len = 0;
    for (; *hex != '\0'; hex++) {
        if (isxdigit((unsigned char)*hex)) {
            char pair[3] = {hex[0], hex[1], '\0'};
            out[len++] = (uint8_t)strtoul(pair, NULL, 16);
            hex++;
        }
    }
    return len;
}

static struct um_slice as_chain(const struct um_chain_writer *w)
{
    return (struct um_slice){w->bytes + 3, w->len - 3u};
}

/* ---- chains ---- */

TEST(a_chain_is_written_as_the_specification_prints_it)
{
    uint8_t expected[64];
    struct um_chain_writer w;
    um_chain_start(&w);
    CHECK(um_chain_add_u32(&w, UM_CHAIN_PROPERTIES_LEN, 0, 30));
    CHECK(um_chain_add_u32(&w, UM_CHAIN_CHANNEL, 0, 7));
    CHECK(um_chain_add_u32(&w, UM_CHAIN_HF_SQN, 0, 9));
    size_t len = from_hex("001c0006 01080000 0000001e 02080000 00000007 ff080000 00000009", expected);
    CHECK(w.len == len && memcmp(w.bytes, expected, len) == 0);
    um_chain_start(&w);
    memcpy(um_chain_add(&w, UM_CHAIN_USER_DATA, 77, 4), "abc", 4);
    len = from_hex("000c0005 ff08004d 61626300", expected);
    CHECK(w.len == len && memcmp(w.bytes, expected, len) == 0);
}

TEST(a_single_element_is_the_chain_that_a_writer_makes)
{
    uint8_t single[UM_CHAIN_SINGLE_U32];
    struct um_chain_writer w;
    um_chain_start(&w);
    CHECK(um_chain_add_u32(&w, UM_CHAIN_CHANNEL, 0, 0x01020304));
    um_chain_put_single_u32(single, UM_CHAIN_CHANNEL, 0x01020304);
    CHECK(w.len == sizeof single && memcmp(w.bytes, single, sizeof single) == 0);
}

/* Few bytes of few values: many of them are chains. */
TEST(a_summary_says_what_a_search_finds)
{
    static const uint8_t likely[] = {1, 2, 5, 6, 255, 0, 4, 8, 8, 8, 7, 9};
    unsigned valid = 0;
    for (int i = 0; i < 200000; i++) {
        uint8_t bytes[33], chance[34];
        struct um_chain_summary told;
        struct um_chain_elem elem;
        um_random_bytes(chance, sizeof chance);
        const struct um_slice chain = {bytes, chance[33] % 34u};
        for (size_t k = 0; k < chain.len; k++) {
            bytes[k] = likely[chance[k] % sizeof likely];
        }
        if (um_chain_summarise(chain, &told) != um_chain_valid(chain)) {
            CHECK(false);
        }
        if (!um_chain_valid(chain)) {
            continue;
        }
        valid++;
        bool channel = um_chain_find(chain, UM_CHAIN_CHANNEL, 4, &elem);
        CHECK(((told.has & UM_CHAIN_HAS_CHANNEL) != 0) == channel);
        CHECK(!channel || told.channel == um_get32(elem.data.ptr));
        bool properties = um_chain_find(chain, UM_CHAIN_PROPERTIES_LEN, 4, &elem);
        CHECK(((told.has & UM_CHAIN_HAS_PROPERTIES) != 0) == properties);
        CHECK(!properties || told.properties_len == um_get32(elem.data.ptr));
        CHECK(((told.has & UM_CHAIN_HAS_USER_DATA) != 0) == um_chain_find(chain, UM_CHAIN_USER_DATA, 0, &elem));
    }
    CHECK(valid > 1000);
}

TEST(a_chain_is_read_in_any_order_and_unknown_elements_are_stepped_over)
{
    uint8_t bytes[64];
    size_t len = from_hex("05 99080000 01020304 01040012 02080000 00003039 ff080002 00001388", bytes);
    struct um_chain_iter iter;
    struct um_chain_elem elem;
    um_chain_begin(&iter, (struct um_slice){bytes, len});
    CHECK(um_chain_next(&iter, &elem) && elem.type == UM_CHAIN_USER_DATA && elem.data.len == 4);
    CHECK(um_chain_next(&iter, &elem) && elem.type == 0x99 && elem.res == 0x12 && elem.data.len == 0);
    CHECK(um_chain_next(&iter, &elem) && elem.type == UM_CHAIN_CHANNEL && um_get32(elem.data.ptr) == 12345);
    CHECK(um_chain_next(&iter, &elem) && elem.type == UM_CHAIN_HF_SQN && elem.res == 2);
    CHECK(!um_chain_next(&iter, &elem));
    CHECK(um_chain_valid((struct um_slice){bytes, len}));
    CHECK(um_chain_find((struct um_slice){bytes, len}, UM_CHAIN_CHANNEL, 4, &elem));
    CHECK(!um_chain_find((struct um_slice){bytes, len}, UM_CHAIN_CHANNEL, 5, &elem));
    CHECK(!um_chain_find((struct um_slice){bytes, len}, UM_CHAIN_PROPERTIES_LEN, 4, &elem));
    bytes[2] = 3; /* shorter than an element can be */
    CHECK(!um_chain_valid((struct um_slice){bytes, len}));
    bytes[2] = 0;
    CHECK(!um_chain_valid((struct um_slice){bytes, len}));
    bytes[2] = 200; /* beyond the header */
    CHECK(!um_chain_valid((struct um_slice){bytes, len}));
}

TEST(a_channel_is_read_wherever_it_stands_and_only_whole)
{
    static const struct {
        const char *chain;
        int64_t channel; /* -1: none */
    } cases[] = {{"01 ff080000 00003039", 12345},
                 {"02 01080000 00000009 ff080000 ffffffff", 4294967295},
                 {"01 01080000 00000000 ff080000 00000007", 0}, /* the first one */
                 {"01 ff0a0000 00000007 abcd", 7},              /* a newer sender may say more */
                 {"01 01060000 0007 ff080000 00000008", 8},     /* too short to be one */
                 {"01 ff060000 0007", -1},
                 {"01 ff040000", -1},
                 {"05 ff080000 00000007", -1},
                 {"01", -1},
                 {"", -1}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        uint8_t bytes[64];
        uint32_t number = 0;
        size_t len = from_hex(cases[i].chain, bytes);
        uint8_t *exact = malloc(len + 1);
        memcpy(exact, bytes, len);
        bool found = um_chain_channel((struct um_slice){exact, len}, &number);
        free(exact);
        CHECK_EQ(found ? (int64_t)number : -1, cases[i].channel);
    }
}

TEST(a_message_whose_chain_is_malformed_is_dropped_and_the_next_one_is_not)
{
    uint8_t bytes[128];
    struct um_lbmc_msg msg;
    size_t len = from_hex("0007001a 5bc8a1f1 0000000e 000c0001 ff080000 00003039 6368", bytes);
    CHECK_EQ(um_lbmc_decode(bytes, len, &msg), UM_LBMC_OK);
    bytes[17] = 0;
    CHECK_EQ(um_lbmc_decode(bytes, len, &msg), UM_LBMC_BAD);
    CHECK_EQ(msg.msglen, len);
    bytes[17] = 9;
    CHECK_EQ(um_lbmc_decode(bytes, len, &msg), UM_LBMC_BAD);
}

TEST(a_chain_holds_251_bytes_of_elements)
{
    struct um_chain_writer w;
    um_chain_start(&w);
    CHECK(um_chain_add(&w, UM_CHAIN_USER_DATA, 0, 248) == NULL);
    CHECK(um_chain_add(&w, UM_CHAIN_USER_DATA, 0, SIZE_MAX) == NULL);
    CHECK_EQ(w.len, UM_CHAIN_HDR_LEN);
    CHECK(um_chain_add(&w, UM_CHAIN_USER_DATA, 0, 247) != NULL);
    CHECK_EQ(w.bytes[1], 255);
    CHECK(um_chain_add(&w, UM_CHAIN_USER_DATA, 0, 0) == NULL);
    CHECK(um_chain_valid(as_chain(&w)));
    um_chain_start(&w);
    CHECK(um_chain_add(&w, UM_CHAIN_USER_DATA, 0, 243) != NULL);
    CHECK(um_chain_add(&w, UM_CHAIN_USER_DATA, 0, 1) == NULL);
    CHECK(um_chain_add(&w, UM_CHAIN_USER_DATA, 0, 0) != NULL);
    CHECK_EQ(w.len, 255);
}

/* ---- properties ---- */

#define LITTLE                                                                                                         \
    "badaacab 02000000 28000000 2c000000 8b5c880b 04000000 30000000 32000000 f8b50200 08000000 61626300 1d000000"      \
    "5300 686900"

static struct um_prop number(const char *name, uint8_t type, uint64_t value)
{
    struct um_prop prop = {.name = name, .name_len = (uint8_t)strlen(name), .type = type, .size = um_prop_size(type)};
    prop.hash = um_prop_hash(name, prop.name_len);
    memcpy(prop.value.bytes, &value, 8);
    return prop;
}

TEST(properties_are_written_as_the_specification_prints_them)
{
    uint8_t expected[64], blob[64];
    struct um_props_writer w;
    struct um_prop text = number("S", UM_PROP_STRING, 0), abc = number("abc", UM_PROP_INT, 29);
    text.size = 3;
    text.value.text = "hi";
    size_t len = from_hex(LITTLE, expected);
    CHECK_EQ(um_props_len(2, um_prop_room(&text) + um_prop_room(&abc)), len);
    um_props_begin(&w, blob, 2);
    um_props_put(&w, &abc);
    um_props_put(&w, &text);
    CHECK_EQ(w.at, len);
    CHECK(memcmp(blob, expected, len) == 0);
}

/* All types, in the byte order of another kind of host: each number turned round. */
static size_t turned_round(const uint8_t *blob, size_t len, uint8_t *out)
{
    memcpy(out, blob, len);
    um_put32(out, 0xABACDABAu);
    uint32_t count = (uint32_t)(blob[4] | blob[5] << 8);
    um_put16(out + 4, (uint16_t)count);
    for (uint32_t i = 0; i < count; i++) {
        uint32_t record[4];
        memcpy(record, blob + 8 + 16 * i, sizeof record);
        for (int j = 0; j < 4; j++) {
            um_put32(out + 8 + 16 * i + 4 * j, record[j]);
        }
        uint32_t size = um_prop_size((uint8_t)record[3]);
        for (uint32_t j = 0; j < size; j++) {
            out[record[1] + j] = blob[record[1] + size - 1 - j];
        }
    }
    return len;
}

TEST(all_types_are_read_from_both_byte_orders)
{
    static const uint8_t types[] = {UM_PROP_BOOLEAN, UM_PROP_BYTE,  UM_PROP_SHORT,  UM_PROP_INT,
                                    UM_PROP_LONG,    UM_PROP_FLOAT, UM_PROP_DOUBLE, UM_PROP_STRING};
    static const char *const names[] = {"b", "y", "sh", "int", "long", "f", "double", "text"};
    uint8_t blob[512], other[512];
    struct um_props_writer w;
    um_props_begin(&w, blob, 8);
    for (int i = 0; i < 8; i++) {
        struct um_prop prop = number(names[i], types[i], i == 0 ? 1 : 0x8182838485868788u);
        if (types[i] == UM_PROP_STRING) {
            prop.size = 6;
            prop.value.text = "hello";
        }
        um_props_put(&w, &prop);
    }
    size_t len = w.at;
    CHECK_EQ(turned_round(blob, len, other), len);
    for (int order = 0; order < 2; order++) {
        struct um_props_reader r;
        struct um_prop prop;
        CHECK(um_props_open(&r, (struct um_slice){order == 0 ? blob : other, len}));
        CHECK_EQ(r.swapped, order);
        for (int i = 0; i < 8; i++) {
            uint64_t value = i == 0 ? 1 : 0x8182838485868788u;
            CHECK(um_props_next(&r, &prop));
            CHECK_STR(prop.name, names[i]);
            CHECK_EQ(prop.type, types[i]);
            CHECK(types[i] == UM_PROP_STRING
                      ? prop.size == 6 && strcmp(prop.value.text, "hello") == 0
                      : prop.size == um_prop_size(types[i]) && memcmp(prop.value.bytes, &value, prop.size) == 0);
        }
        CHECK(!um_props_next(&r, &prop) && r.next == r.count);
    }
}

static bool readable(const uint8_t *blob, size_t len)
{
    struct um_props_reader r;
    struct um_prop prop;
    if (!um_props_open(&r, (struct um_slice){blob, len})) {
        return false;
    }
    while (um_props_next(&r, &prop)) {
    }
    return r.next == r.count;
}

TEST(malformed_properties_are_refused)
{
    static const struct {
        const char *what;
        size_t at;
        uint8_t value;
    } cases[] = {{"magic", 0, 0},          {"number of records", 5, 1}, {"version", 6, 0x10},
                 {"name offset", 8, 53},   {"name offset", 11, 1},      {"value offset", 12, 50},
                 {"value offset", 15, 80}, {"type 0", 20, 0},           {"type 9", 20, 9},
                 {"large type", 23, 1},    {"text offset", 28, 53},     {"text without end", 52, 'x'},
                 {"empty name", 40, '\0'}};
    uint8_t blob[64], bad[64];
    size_t len = from_hex(LITTLE, blob);
    CHECK(readable(blob, len));
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        memcpy(bad, blob, len);
        bad[cases[i].at] = cases[i].value;
        if (readable(bad, len)) {
            TEST_FAIL("%s: read all the same", cases[i].what);
        }
    }
    for (size_t cut = 0; cut < len; cut++) {
        uint8_t *exact = malloc(cut + 1);
        memcpy(exact, blob, cut);
        bool ok = readable(exact, cut);
        free(exact);
        CHECK(!ok);
    }
}

/* 65,535 records that name the same long text would be read for minutes. */
TEST(texts_that_records_share_are_not_read_again_and_again)
{
    uint32_t count = 65535;
    size_t text = 8 + 16 * (size_t)count, len = text + (1u << 20);
    uint8_t *blob = malloc(len);
    struct um_props_writer w;
    um_props_begin(&w, blob, count);
    for (uint32_t i = 0; i < count; i++) {
        uint32_t record[4] = {(uint32_t)(len - 2), (uint32_t)text, 0, UM_PROP_STRING};
        memcpy(blob + 8 + 16 * (size_t)i, record, sizeof record);
    }
    memset(blob + text, 'x', 1u << 20);
    blob[len - 1] = '\0';
    struct um_props_reader r;
    struct um_prop prop;
    bool opened = um_props_open(&r, (struct um_slice){blob, len});
    while (opened && um_props_next(&r, &prop)) {
    }
    free(blob);
    CHECK(opened);
    CHECK(r.next < 4); /* the bytes there are, once */
}

TEST(random_damage_never_leads_outside)
{
    uint8_t blob[64];
    size_t len = from_hex(LITTLE, blob);
    struct um_rng rng;
    um_rng_seed(&rng, 3);
    for (int i = 0; i < 20000; i++) {
        uint8_t *bad = malloc(len);
        memcpy(bad, blob, len);
        for (int hits = (int)um_rng_range(&rng, 1, 4); hits > 0; hits--) {
            bad[um_rng_range(&rng, 4, len - 1)] = (uint8_t)um_rng_u32(&rng);
        }
        struct um_props_reader r;
        struct um_prop prop;
        bool inside = true;
        if (um_props_open(&r, (struct um_slice){bad, len})) {
            while (um_props_next(&r, &prop)) {
                inside &= prop.name >= (char *)bad && prop.name + prop.name_len < (char *)bad + len &&
                          prop.name[prop.name_len] == '\0';
            }
        }
        free(bad);
        CHECK(inside);
    }
}
