/* Random definitions of all types with random values from a seed go there and back, also in the other order of bytes;
 * random bytes; every allocation failing. */
#include "base/um_mem.h"
#include "base/um_random.h"
#include "um_test_pdm.h"

#define FIELDS_MAX 24
#define TEXT_MAX 40

/* A value in the form of the calls. */
struct value {
    bool set;
    size_t count;
    size_t lengths[8];
    uint64_t numbers[16]; /* C values one after the other, of up to 16 bytes each */
    char texts[8][TEXT_MAX];
    const char *pointers[8];
};

struct sample {
    struct pdm_spec specs[FIELDS_MAX];
    char names[FIELDS_MAX][12];
    int count;
    lbmpdm_defn_t *defn;
    struct value values[FIELDS_MAX];
};

static int scalar_of(int type)
{
    return type >= PDM_TYPE_BOOLEAN_ARR ? type - PDM_TYPE_BOOLEAN_ARR : type;
}

static size_t host_size(int type)
{
    static const size_t sizes[] = {1, 1, 1, 2, 2, 4, 4, 8, 8, 4, 8, sizeof(lbmpdm_decimal_t), 8};
    int scalar = scalar_of(type);
    return scalar <= PDM_TYPE_TIMESTAMP ? sizes[scalar] : 0;
}

static void make_definition(struct um_rng *rng, struct sample *sample)
{
    bool named = um_rng_range(rng, 0, 1) == 1;
    sample->count = (int)um_rng_range(rng, 1, FIELDS_MAX);
    for (int i = 0; i < sample->count; i++) {
        snprintf(sample->names[i], sizeof sample->names[i], "f%d", i);
        sample->specs[i] = (struct pdm_spec){
            .name = (int)um_rng_u32(rng) / 64 * 64 + i,
            .text = named ? sample->names[i] : NULL,
            .type = (int16_t)um_rng_range(rng, 0, PDM_TYPE_MESSAGE_ARR),
            .optional = um_rng_range(rng, 0, 1) == 1,
            .str_len = (uint32_t)um_rng_range(rng, 1, 9),
            .count = (uint32_t)(um_rng_range(rng, 0, 1) == 1 ? um_rng_range(rng, 1, 8) : 0),
        };
    }
    sample->defn = pdm_define((int32_t)um_rng_u32(rng), (int8_t)um_rng_u32(rng), (int8_t)um_rng_u32(rng), sample->specs,
                              sample->count);
}

static void make_text(struct um_rng *rng, const struct pdm_spec *spec, struct value *value, size_t i)
{
    int type = scalar_of(spec->type);
    size_t slot = type == PDM_TYPE_FIX_STRING    ? spec->str_len + 1
                  : type == PDM_TYPE_FIX_UNICODE ? 4 * spec->str_len + 1
                                                 : TEXT_MAX;
    value->lengths[i] = um_rng_range(rng, slot == TEXT_MAX ? 0 : 1, slot < TEXT_MAX ? slot : TEXT_MAX);
    memset(value->texts[i], 0, TEXT_MAX);
    for (size_t at = 0; at < value->lengths[i]; at++) {
        value->texts[i][at] = (char)um_rng_range(rng, 1, 255);
    }
    if (value->lengths[i] == slot && slot < TEXT_MAX) { /* what fills a slot ends in a NUL */
        value->texts[i][slot - 1] = '\0';
    }
    value->pointers[i] = value->texts[i];
}

static void make_value(struct um_rng *rng, const struct pdm_spec *spec, struct value *value)
{
    bool array = spec->type >= PDM_TYPE_BOOLEAN_ARR;
    size_t size = host_size(spec->type);
    value->set = !spec->optional || um_rng_range(rng, 0, 2) != 0;
    value->count = !array ? 1 : spec->count != 0 ? spec->count : um_rng_range(rng, 1, 8);
    memset(value->numbers, 0, sizeof value->numbers);
    for (size_t i = 0; i < value->count; i++) {
        if (size == 0) {
            make_text(rng, spec, value, i);
            continue;
        }
        value->lengths[i] = size;
        uint64_t words[2] = {um_rng_u64(rng), um_rng_u64(rng)};
        if (scalar_of(spec->type) == PDM_TYPE_BOOLEAN) {
            words[0] &= 1;
        }
        if (scalar_of(spec->type) == PDM_TYPE_DECIMAL) {
            words[1] &= 0xff;
        }
        memcpy((char *)value->numbers + i * size, words, size);
    }
}

/* A nested message holds the text in a field of its own. */
static lbmpdm_msg_t *nest(const char *text, size_t len)
{
    static const struct pdm_spec blob[] = {{1, NULL, PDM_TYPE_BLOB, false, 0, 0}};
    lbmpdm_defn_t *defn = pdm_define(77, 1, 0, blob, 1);
    lbmpdm_msg_t *msg;
    if (defn == NULL || lbmpdm_msg_create(&msg, defn, PDM_MSG_FLAG_INCL_DEFN) != 0) {
        return NULL;
    }
    lbmpdm_defn_delete(defn);
    return lbmpdm_msg_set_field_value(msg, 0, (void *)text, len) == 0 ? msg : NULL;
}

static int set_nested(lbmpdm_msg_t *msg, int handle, bool array, const struct value *value)
{
    lbmpdm_msg_t *nested[8];
    for (size_t i = 0; i < value->count; i++) {
        nested[i] = nest(value->texts[i], value->lengths[i]);
    }
    int rc = array ? lbmpdm_msg_set_field_value_vec(msg, handle, nested, NULL, value->count)
                   : lbmpdm_msg_set_field_value(msg, handle, nested[0], sizeof nested[0]);
    for (size_t i = 0; i < value->count; i++) {
        lbmpdm_msg_delete(nested[i]);
    }
    return rc;
}

static int set_value(lbmpdm_msg_t *msg, int handle, const struct pdm_spec *spec, struct value *value)
{
    bool array = spec->type >= PDM_TYPE_BOOLEAN_ARR;
    if (scalar_of(spec->type) == PDM_TYPE_MESSAGE) {
        return set_nested(msg, handle, array, value);
    }
    if (host_size(spec->type) != 0) {
        return array ? lbmpdm_msg_set_field_value_vec(msg, handle, value->numbers, value->lengths, value->count)
                     : lbmpdm_msg_set_field_value(msg, handle, value->numbers, value->lengths[0]);
    }
    return array ? lbmpdm_msg_set_field_value_vec(msg, handle, value->pointers, value->lengths, value->count)
                 : lbmpdm_msg_set_field_value(msg, handle, value->texts[0], value->lengths[0]);
}

static bool same_nested(const char *bytes, size_t len, const char *text, size_t text_len)
{
    lbmpdm_msg_t *msg;
    char back[TEXT_MAX];
    size_t back_len = sizeof back;
    bool same = lbmpdm_msg_create(&msg, NULL, 0) == 0 && lbmpdm_msg_deserialize(msg, bytes, (uint32_t)len) == 0 &&
                lbmpdm_msg_get_field_value(msg, 0, back, &back_len) == 0 && back_len == text_len &&
                memcmp(back, text, text_len) == 0;
    lbmpdm_msg_and_defn_delete(msg);
    return same;
}

static bool same_element(const struct pdm_spec *spec, const struct value *value, size_t i, const char *got, size_t len)
{
    int type = scalar_of(spec->type);
    size_t size = host_size(spec->type);
    if (type == PDM_TYPE_DECIMAL) { /* padding does not count */
        lbmpdm_decimal_t a, b;
        memcpy(&a, (const char *)value->numbers + i * size, size);
        memcpy(&b, got, size);
        return len == size && a.mant == b.mant && a.exp == b.exp;
    }
    if (size != 0) {
        return len == size && memcmp(got, (const char *)value->numbers + i * size, size) == 0;
    }
    if (type == PDM_TYPE_MESSAGE) {
        return same_nested(got, len, value->texts[i], value->lengths[i]);
    }
    bool slot = type == PDM_TYPE_FIX_STRING || type == PDM_TYPE_FIX_UNICODE;
    size_t whole = type == PDM_TYPE_FIX_STRING ? spec->str_len + 1 : 4 * spec->str_len + 1;
    return len == (slot ? whole : value->lengths[i]) && memcmp(got, value->texts[i], slot ? whole : len) == 0;
}

static bool same_value(lbmpdm_msg_t *msg, int handle, const struct pdm_spec *spec, const struct value *value)
{
    lbmpdm_field_value_t got;
    if (!value->set) {
        return !lbmpdm_msg_is_field_set(msg, handle);
    }
    if (lbmpdm_msg_get_field_value_stct(msg, handle, &got) != 0) {
        return false;
    }
    bool same = got.field_type == spec->type;
    if (!got.is_array) {
        same = same && same_element(spec, value, 0, got.value, got.len);
    } else {
        same = same && got.num_arr_elem == value->count;
        for (size_t i = 0; same && i < value->count; i++) {
            same = same_element(spec, value, i, got.value_arr[i], got.len_arr[i]);
        }
    }
    lbmpdm_field_value_stct_delete(&got);
    return same;
}

static bool same_values(lbmpdm_msg_t *msg, const struct sample *sample)
{
    for (int i = 0; i < sample->count; i++) {
        if (!same_value(msg, i, &sample->specs[i], &sample->values[i])) {
            fprintf(stderr, "field %d of type %d: %s\n", i, sample->specs[i].type, lbmpdm_errmsg());
            return false;
        }
    }
    return true;
}

static int fill(struct um_rng *rng, struct sample *sample, lbmpdm_msg_t *msg)
{
    int rc = 0;
    for (int i = 0; i < sample->count && rc == 0; i++) {
        make_value(rng, &sample->specs[i], &sample->values[i]);
        rc = sample->values[i].set ? set_value(msg, i, &sample->specs[i], &sample->values[i])
                                   : lbmpdm_msg_remove_field_value(msg, i);
    }
    return rc;
}

static struct sample sample;

/* One definition, several messages through the same objects. */
static void round_trip(uint64_t seed)
{
    struct um_rng rng;
    lbmpdm_msg_t *msg, *known, *bare, *written;
    um_rng_seed(&rng, seed);
    make_definition(&rng, &sample);
    CHECK(sample.defn != NULL);
    CHECK_EQ(lbmpdm_msg_create(&msg, sample.defn, 0) | lbmpdm_msg_create(&known, sample.defn, 0), 0);
    CHECK_EQ(lbmpdm_msg_create(&bare, NULL, 0) | lbmpdm_msg_create(&written, sample.defn, 0), 0);
    for (int i = 0; i < 3; i++) {
        CHECK_EQ(fill(&rng, &sample, msg), 0);
        CHECK(same_values(msg, &sample));
        CHECK_EQ(lbmpdm_msg_set_incl_defn_flag(msg), 0);
        CHECK_EQ(lbmpdm_msg_deserialize(bare, lbmpdm_msg_get_data(msg), lbmpdm_msg_get_length(msg)), 0);
        CHECK_EQ(lbmpdm_msg_unset_incl_defn_flag(msg), 0);
        uint32_t len = lbmpdm_msg_get_length(msg);
        char *exact = malloc(len);
        CHECK_EQ(lbmpdm_msg_serialize(msg, exact), 0);
        CHECK_EQ(lbmpdm_msg_deserialize(known, exact, len), 0);
        CHECK(same_values(known, &sample));
        CHECK(same_values(bare, &sample));
        CHECK_EQ(lbmpdm_msg_get_length(bare), len); /* written again it is the same */
        CHECK(memcmp(lbmpdm_msg_get_data(bare), exact, len) == 0);
        for (uint32_t cut = 0; cut < len; cut += 1 + cut / 8) {
            char *part = malloc(cut + 1);
            memcpy(part, exact, cut);
            CHECK_EQ(lbmpdm_msg_deserialize(written, part, cut), -1);
            free(part);
        }
        CHECK_EQ(lbmpdm_msg_deserialize(written, exact, len), 0);
        CHECK(same_values(written, &sample));
        free(exact);
    }
    CHECK_EQ(lbmpdm_msg_delete(msg) | lbmpdm_msg_delete(known) | lbmpdm_msg_delete(written), 0);
    CHECK_EQ(lbmpdm_msg_and_defn_delete(bare), 0);
    CHECK_EQ(lbmpdm_defn_delete(sample.defn), 0);
}

TEST(any_definition_and_values_go_there_and_back)
{
    for (uint64_t seed = 1; seed <= 1500; seed++) {
        round_trip(seed);
        if (um_test_failed) {
            TEST_FAIL("seed %llu", (unsigned long long)seed);
        }
    }
}

TEST(random_and_damaged_bytes_are_refused_or_can_be_read)
{
    static uint8_t bytes[512];
    struct um_rng rng;
    lbmpdm_defn_t *defn = pdm_define(1002, 1, 0, pdm_nine, 9);
    lbmpdm_msg_t *msg;
    int accepted = 0;
    CHECK_EQ(lbmpdm_msg_create(&msg, defn, 0), 0);
    um_rng_seed(&rng, 7);
    for (int i = 0; i < 60000; i++) {
        size_t len = unhex(HEX_C, bytes);
        for (uint64_t changes = um_rng_range(&rng, 1, 3); changes > 0; changes--) {
            bytes[um_rng_range(&rng, 16, len - 1)] = (uint8_t)um_rng_range(&rng, 0, 255);
        }
        char *exact = malloc(len);
        memcpy(exact, bytes, len);
        if (lbmpdm_msg_deserialize(msg, exact, (uint32_t)len) == 0) {
            accepted++;
            CHECK(lbmpdm_msg_get_data(msg) != NULL);
        }
        free(exact);
    }
    CHECK(accepted > 1000);
    CHECK_EQ(lbmpdm_msg_and_defn_delete(msg), 0);
}

/* ---- the other order of bytes: an encoder of its own ---- */

static void big(uint8_t *out, size_t *at, uint64_t value, int bytes)
{
    while (bytes-- > 0) {
        out[(*at)++] = (uint8_t)(value >> 8 * bytes);
    }
}

TEST(values_of_the_other_order_are_turned)
{
    static const struct pdm_spec specs[] = {
        {1, NULL, PDM_TYPE_INT64, false, 0, 0},      {2, NULL, PDM_TYPE_DECIMAL_ARR, true, 0, 0},
        {3, NULL, PDM_TYPE_STRING_ARR, true, 0, 2},  {4, NULL, PDM_TYPE_TIMESTAMP, true, 0, 0},
        {5, NULL, PDM_TYPE_UINT16_ARR, false, 0, 2}, {6, NULL, PDM_TYPE_STRING, true, 0, 0},
        {7, NULL, PDM_TYPE_UNICODE_ARR, true, 0, 0}, {8, NULL, PDM_TYPE_INT32_ARR, true, 0, 0},
    };
    lbmpdm_defn_t *defn = pdm_define(12, 1, 0, specs, 8);
    lbmpdm_msg_t *msg, *native;
    uint8_t out[256];
    size_t at = 0;
    const uint64_t head[] = {0xa71ccafe, 0x10010100, 12, 0};
    const uint32_t table[] = {1, 12, 2, 34, 3, 49, 5, 57, 6, 64, 7, 76}, before = 24 + 48;
    for (int i = 0; i < 4; i++) {
        big(out, &at, head[i], 4);
    }
    big(out, &at, 0, 4);
    big(out, &at, sizeof table, 4);
    for (int i = 0; i < 12; i++) {
        big(out, &at, table[i], 4);
    }
    CHECK_EQ(at, before);
    big(out, &at, 0xff000000, 4);
    big(out, &at, 88, 4);
    big(out, &at, 0x0102030405060708, 8);
    big(out, &at, 0x0a0b0c0d, 4); /* two of 16 bits */
    big(out, &at, 18, 4);         /* two decimals */
    big(out, &at, 0xfe, 1);
    big(out, &at, 31415, 8);
    big(out, &at, 3, 1);
    big(out, &at, (uint64_t)-5, 8);
    big(out, &at, 11, 4); /* "ab", "" */
    big(out, &at, 3, 4);
    big(out, &at, 0x616200, 3);
    big(out, &at, 0, 4);
    big(out, &at, 1700000000, 4);
    big(out, &at, 123456, 4);
    big(out, &at, 3, 4);
    big(out, &at, 0x787900, 3);
    big(out, &at, 8, 4); /* "abc" and its NUL */
    big(out, &at, 4, 4);
    big(out, &at, 0x61626300, 4);
    big(out, &at, 8, 4); /* two of 32 bits */
    big(out, &at, 0x01020304, 4);
    big(out, &at, 0x05060708, 4);
    out[15] = (uint8_t)at;
    CHECK_EQ(lbmpdm_msg_create(&msg, defn, 0) | lbmpdm_msg_create(&native, defn, 0), 0);
    CHECK_EQ(lbmpdm_msg_deserialize(msg, (const char *)out, (uint32_t)at), 0);
    for (int again = 0; again < 2; again++) { /* as received, and as written in the order of this host */
        int64_t number;
        uint16_t pair[2];
        int32_t numbers[2];
        lbmpdm_decimal_t decimals[2];
        lbmpdm_timestamp_t stamp;
        char a[8], b[8], *texts[] = {a, b}, text[8];
        size_t len = 8, count = 2, lengths[] = {8, 8};
        CHECK_EQ(lbmpdm_msg_get_field_value(msg, 0, &number, &len), 0);
        CHECK(number == 0x0102030405060708);
        CHECK_EQ(lbmpdm_msg_get_field_value_vec(msg, 1, decimals, NULL, &count), 0);
        CHECK(decimals[0].mant == 31415 && decimals[0].exp == -2 && decimals[1].mant == -5 && decimals[1].exp == 3);
        CHECK_EQ(lbmpdm_msg_get_field_value_vec(msg, 2, texts, lengths, &count), 0);
        CHECK_STR(a, "ab");
        CHECK_EQ(lengths[1], 0);
        CHECK_EQ(lbmpdm_msg_get_field_value(msg, 3, &stamp, &len), 0);
        CHECK(stamp.tv_secs == 1700000000 && stamp.tv_usecs == 123456);
        CHECK_EQ(lbmpdm_msg_get_field_value_vec(msg, 4, pair, NULL, &count), 0);
        CHECK(pair[0] == 0x0a0b && pair[1] == 0x0c0d);
        CHECK_EQ(lbmpdm_msg_get_field_value(msg, 5, text, &len), 0);
        CHECK_STR(text, "xy");
        lengths[0] = 8;
        CHECK_EQ(lbmpdm_msg_get_field_value_vec(msg, 6, texts, lengths, &count), 0);
        CHECK_EQ(count, 1);
        CHECK_STR(a, "abc");
        count = 2;
        CHECK_EQ(lbmpdm_msg_get_field_value_vec(msg, 7, numbers, NULL, &count), 0);
        CHECK(count == 2 && numbers[0] == 0x01020304 && numbers[1] == 0x05060708);
        CHECK_EQ(lbmpdm_msg_deserialize(native, lbmpdm_msg_get_data(msg), lbmpdm_msg_get_length(msg)), 0);
        lbmpdm_msg_t *swapped = msg;
        msg = native;
        native = swapped;
    }
    CHECK_EQ(lbmpdm_msg_delete(native), 0);
    CHECK_EQ(lbmpdm_msg_and_defn_delete(msg), 0);
}

/* ---- every allocation fails once ---- */

static long allocations, failing;

static bool fail_one(size_t size)
{
    return allocations++ == failing;
}

/* Everything with a definition that was made before the allocations fail. 0, or -1 with an error. */
static int everything(lbmpdm_defn_t *nine, const char *bytes, uint32_t len)
{
    lbmpdm_msg_t *msg = NULL, *copy = NULL;
    lbmpdm_iter_t *iter = NULL;
    lbmpdm_field_value_t value = {0}, array = {0};
    lbmpdm_defn_t *defn = pdm_define(50, 1, 0, pdm_named, PDM_COUNT(pdm_named)), *extra = NULL;
    int rc = defn == NULL || lbmpdm_msg_create(&msg, nine, 0) || pdm_fill_nine(msg) ||
             lbmpdm_msg_get_data(msg) == NULL || lbmpdm_msg_create(&copy, NULL, 0) ||
             lbmpdm_msg_deserialize(copy, bytes, len) || lbmpdm_iter_create(&iter, msg) ||
             lbmpdm_msg_get_field_value_stct(msg, 5, &value) || lbmpdm_msg_get_field_value_stct(msg, 8, &array) ||
             (extra = pdm_define(51, 1, 0, pdm_three, 3)) == NULL || lbmpdm_cache_struct_add(extra);
    lbmpdm_field_value_stct_delete(&value);
    lbmpdm_field_value_stct_delete(&array);
    (void)(iter == NULL ? 0 : lbmpdm_iter_delete(iter));
    (void)(copy == NULL ? 0 : lbmpdm_msg_and_defn_delete(copy));
    (void)(msg == NULL ? 0 : lbmpdm_msg_delete(msg));
    (void)(defn == NULL ? 0 : lbmpdm_defn_delete(defn));
    (void)(rc == 0 || extra == NULL ? 0 : lbmpdm_defn_delete(extra));
    lbmpdm_cache_clear_all();
    return rc == 0 ? 0 : -1;
}

TEST(every_allocation_may_fail)
{
    static uint8_t bytes[512];
    size_t len = unhex(HEX_D, bytes);
    lbmpdm_defn_t *nine = pdm_define(1002, 1, 0, pdm_nine, 9);
    int rc = -1, failures = 0;
    for (failing = 0; failing < 1000 && rc != 0; failing++) {
        allocations = 0;
        um_mem_set_fail_hook(fail_one);
        rc = everything(nine, (const char *)bytes, (uint32_t)len);
        um_mem_set_fail_hook(NULL);
        failures += rc != 0;
        CHECK(rc == 0 || lbmpdm_errnum() == PDM_ERR_NOMEM);
    }
    CHECK_EQ(rc, 0);
    CHECK(failures > 20);
    CHECK_EQ(lbmpdm_defn_delete(nine), 0);
}
