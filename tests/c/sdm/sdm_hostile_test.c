/* Bytes that are no SDM message, and allocations that fail: an error, never more memory than the bytes are worth, and
 * what was there before is as it was. Round trips of random messages. A seed that fails is printed. */
#include "base/um_bytes.h"
#include "base/um_mem.h"
#include "sdm_test_random.h"
#include "um_test.h"

#define OK(call) CHECK_EQ(call, LBMSDM_SUCCESS)
#define SEEDS 400

static size_t largest;

static bool note_size(size_t size)
{
    largest = size > largest ? size : largest;
    return false;
}

static lbmsdm_msg_t *message_of(uint64_t seed)
{
    struct um_rng rng;
    um_rng_seed(&rng, seed);
    return sdm_random_message(&rng, 3);
}

static bool same_bytes(lbmsdm_msg_t *a, lbmsdm_msg_t *b)
{
    size_t len = lbmsdm_msg_get_datalen(a);
    return lbmsdm_msg_get_datalen(b) == len && memcmp(lbmsdm_msg_get_data(a), lbmsdm_msg_get_data(b), len) == 0;
}

static bool same_text(lbmsdm_msg_t *a, lbmsdm_msg_t *b)
{
    static char one[65536], two[65536];
    return lbmsdm_msg_dump(a, one, sizeof one) == 0 && lbmsdm_msg_dump(b, two, sizeof two) == 0 &&
           strcmp(one, two) == 0;
}

/* Whether the bytes say of themselves what the message says of them. */
static bool is_consistent(lbmsdm_msg_t *msg)
{
    lbmsdm_msg_t *again;
    const char *data = lbmsdm_msg_get_data(msg);
    size_t len = lbmsdm_msg_get_datalen(msg);
    if (data == NULL || um_get32((const uint8_t *)data + 8) != len || lbmsdm_msg_parse(&again, data, len) != 0) {
        return false;
    }
    bool same = same_bytes(msg, again) && same_text(msg, again);
    lbmsdm_msg_destroy(again);
    return same;
}

TEST(random_messages_round_trip_and_clone)
{
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        lbmsdm_msg_t *msg = message_of(seed), *clone = NULL;
        bool ok = msg != NULL && is_consistent(msg) && lbmsdm_msg_clone(&clone, msg) == 0 && same_bytes(msg, clone);
        if (!ok) {
            TEST_FAIL("seed %llu: %s", (unsigned long long)seed, lbmsdm_errmsg());
        }
        lbmsdm_msg_destroy(msg);
        lbmsdm_msg_destroy(clone);
    }
}

/* Edits at random: the length is kept right through all of them. */
TEST(random_edits_keep_messages_consistent)
{
    for (uint64_t seed = 1; seed <= SEEDS / 4; seed++) {
        struct um_rng rng;
        lbmsdm_msg_t *msg = message_of(seed);
        CHECK(msg != NULL);
        um_rng_seed(&rng, ~seed);
        for (int i = 0; i < 40; i++) {
            size_t fields = (size_t)lbmsdm_msg_get_fldcnt(msg), field = um_rng_range(&rng, 0, fields);
            int elements = field < fields ? lbmsdm_msg_get_elemcnt_idx(msg, field) : 0;
            size_t element = elements > 0 ? um_rng_range(&rng, 0, (uint64_t)elements) : 0;
            switch (um_rng_range(&rng, 0, 7)) { /* failures are as good as successes here */
            case 0:
                (void)lbmsdm_msg_del_idx(msg, field);
                break;
            case 1:
                (void)lbmsdm_msg_set_null_idx(msg, field);
                break;
            case 2:
                (void)lbmsdm_msg_del_elem_idx(msg, field, element);
                break;
            case 3:
                (void)lbmsdm_msg_set_string_idx(msg, field, "a text of some length");
                break;
            case 4:
                (void)lbmsdm_msg_set_blob_array_idx(msg, field);
                break;
            case 5:
                (void)lbmsdm_msg_set_string_elem_idx(msg, field, element, "another text");
                break;
            case 6:
                (void)lbmsdm_msg_add_blob_elem_idx(msg, field, "12345678", um_rng_range(&rng, 0, 8));
                break;
            default:
                (void)sdm_random_field(&rng, msg, 1000 + (unsigned)i, 1);
                break;
            }
            if (!is_consistent(msg)) {
                TEST_FAIL("seed %llu, edit %d: %s", (unsigned long long)seed, i, lbmsdm_errmsg());
            }
        }
        lbmsdm_msg_destroy(msg);
    }
}

/* In memory of exact size, so that a read beyond it is seen. */
static int parse_exactly(lbmsdm_msg_t *msg, const char *data, size_t len)
{
    char *copy = malloc(len == 0 ? 1 : len);
    memcpy(copy, data, len);
    int done = lbmsdm_msg_parse_reuse(msg, copy, len);
    free(copy);
    return done;
}

TEST(messages_cut_anywhere_are_refused)
{
    lbmsdm_msg_t *into;
    OK(lbmsdm_msg_create(&into));
    for (uint64_t seed = 1; seed <= 40; seed++) {
        lbmsdm_msg_t *msg = message_of(seed);
        CHECK(msg != NULL);
        const char *data = lbmsdm_msg_get_data(msg);
        size_t len = lbmsdm_msg_get_datalen(msg), step = len / 2000 + 1;
        for (size_t cut = 0; cut < len; cut += step) {
            CHECK_EQ(parse_exactly(into, data, cut), LBMSDM_FAILURE);
            CHECK_EQ(lbmsdm_errnum(), LBMSDM_ERR_MSG_INVALID);
            CHECK_EQ(lbmsdm_msg_get_fldcnt(into), 0);
            /* The same with a header that says so. */
            if (cut >= 12) {
                char *lie = malloc(cut);
                memcpy(lie, data, cut);
                um_put32((uint8_t *)lie + 8, (uint32_t)cut);
                int done = lbmsdm_msg_parse_reuse(into, lie, cut);
                free(lie);
                CHECK_EQ(done, LBMSDM_FAILURE);
            }
        }
        OK(parse_exactly(into, data, len)); /* usable after all that */
        CHECK(same_bytes(into, msg));
        lbmsdm_msg_destroy(msg);
    }
    lbmsdm_msg_destroy(into);
}

TEST(changed_bytes_are_refused_or_another_message)
{
    lbmsdm_msg_t *into;
    struct um_rng rng;
    unsigned accepted = 0, refused = 0;
    OK(lbmsdm_msg_create(&into));
    um_rng_seed(&rng, 7);
    for (int round = 0; round < 20000; round++) {
        static lbmsdm_msg_t *msg;
        if (round % 100 == 0) {
            if (msg != NULL) {
                lbmsdm_msg_destroy(msg);
            }
            msg = message_of((uint64_t)round);
            CHECK(msg != NULL);
        }
        size_t len = lbmsdm_msg_get_datalen(msg);
        char *copy = malloc(len);
        memcpy(copy, lbmsdm_msg_get_data(msg), len);
        for (uint64_t i = um_rng_range(&rng, 1, 4); i > 0; i--) {
            size_t at = len > 13 && um_rng_range(&rng, 0, 3) != 0 ? um_rng_range(&rng, 12, len - 1)
                                                                  : um_rng_range(&rng, 0, len - 1);
            copy[at] = (char)um_rng_u32(&rng);
        }
        if (lbmsdm_msg_parse_reuse(into, copy, len) == LBMSDM_SUCCESS) {
            accepted++;
            CHECK(is_consistent(into));
        } else {
            refused++;
            CHECK_EQ(lbmsdm_msg_get_fldcnt(into), 0);
        }
        free(copy);
        if (round == 19999) {
            lbmsdm_msg_destroy(msg);
        }
    }
    CHECK(accepted > 100 && refused > 100);
    lbmsdm_msg_destroy(into);
}

/* ---- malformed in one thing ---- */

static const struct {
    const char *what;
    size_t len;
    const char *bytes;
    int errnum;
} malformed[] = {
    {"nothing", 0, "", LBMSDM_ERR_MSG_INVALID},
    {"another magic", 12, "UMSE\1\0\0\0\0\0\0\x0c", LBMSDM_ERR_MSG_INVALID},
    {"a later version", 12, "UMSD\2\0\0\0\0\0\0\x0c", LBMSDM_ERR_MSG_INVALID},
    {"flags", 12, "UMSD\1\1\0\0\0\0\0\x0c", LBMSDM_ERR_MSG_INVALID},
    {"shorter than its header", 12, "UMSD\1\0\0\0\0\0\0\x0b", LBMSDM_ERR_MSG_INVALID},
    {"longer than there are bytes", 12, "UMSD\1\0\0\0\0\0\0\x0d", LBMSDM_ERR_MSG_INVALID},
    {"a length of 2^31", 12, "UMSD\1\0\0\0\x80\0\0\0", LBMSDM_ERR_MSG_INVALID},
    {"fields that cannot be there", 12, "UMSD\1\0\xff\xff\0\0\0\x0c", LBMSDM_ERR_MSG_INVALID},
    {"bytes behind the fields", 13, "UMSD\1\0\0\0\0\0\0\x0d\0", LBMSDM_ERR_MSG_INVALID},
    {"type 0", 22, "UMSD\1\0\0\1\0\0\0\x16\0\0\0\1\0\0\0\1a\1", LBMSDM_ERR_MSG_INVALID},
    {"type 18", 22, "UMSD\1\0\0\1\0\0\0\x16\0\x12\0\1\0\0\0\1a\1", LBMSDM_ERR_MSG_INVALID},
    {"type 0x0200", 22, "UMSD\1\0\0\1\0\0\0\x16\2\2\0\1\0\0\0\1a\1", LBMSDM_ERR_MSG_INVALID},
    {"an unknown flag of a field", 22, "UMSD\1\0\0\1\0\0\0\x16\0\1\2\1\0\0\0\1a\1", LBMSDM_ERR_MSG_INVALID},
    {"null with a value", 22, "UMSD\1\0\0\1\0\0\0\x16\0\1\1\1\0\0\0\1a\1", LBMSDM_ERR_MSG_INVALID},
    {"no name", 21, "UMSD\1\0\0\1\0\0\0\x15\0\1\0\0\0\0\0\1\1", LBMSDM_ERR_MSG_INVALID},
    {"a NUL in a name", 23, "UMSD\1\0\0\1\0\0\0\x17\0\1\0\2\0\0\0\1a\0\1", LBMSDM_ERR_MSG_INVALID},
    {"a value longer than its type", 23, "UMSD\1\0\0\1\0\0\0\x17\0\1\0\1\0\0\0\2a\1\1", LBMSDM_ERR_MSG_INVALID},
    {"a value longer than the message", 22, "UMSD\1\0\0\1\0\0\0\x16\0\x11\0\1\xff\xff\xff\xff\x61\1",
     LBMSDM_ERR_MSG_INVALID},
    {"a NUL in a string", 24, "UMSD\1\0\0\1\0\0\0\x18\0\x0f\0\1\0\0\0\3ax\0y", LBMSDM_ERR_MSG_INVALID},
    {"an overlong character", 23, "UMSD\1\0\0\1\0\0\0\x17\0\x10\0\1\0\0\0\2a\xc0\x80", LBMSDM_ERR_UNICODE_CONVERSION},
    {"a cut character", 23, "UMSD\1\0\0\1\0\0\0\x17\0\x10\0\1\0\0\0\2a\xe2\x82", LBMSDM_ERR_UNICODE_CONVERSION},
    {"a surrogate", 24, "UMSD\1\0\0\1\0\0\0\x18\0\x10\0\1\0\0\0\3a\xed\xa0\x80", LBMSDM_ERR_UNICODE_CONVERSION},
    {"a character beyond Unicode", 25, "UMSD\1\0\0\1\0\0\0\x19\0\x10\0\1\0\0\0\4a\xf4\x90\x80\x80",
     LBMSDM_ERR_UNICODE_CONVERSION},
    {"a lone continuation", 22, "UMSD\1\0\0\1\0\0\0\x16\0\x10\0\1\0\0\0\1a\x80", LBMSDM_ERR_UNICODE_CONVERSION},
    {"a million microseconds", 33, "UMSD\1\0\0\1\0\0\0\x21\0\x0d\0\1\0\0\0\x0c\x61\0\0\0\0\0\0\0\0\0\x0f\x42\x40",
     LBMSDM_ERR_MSG_INVALID},
    {"an array without a count", 24, "UMSD\1\0\0\1\0\0\0\x18\1\1\0\1\0\0\0\3a\0\0\0", LBMSDM_ERR_MSG_INVALID},
    {"2^32-1 elements of one byte", 25, "UMSD\1\0\0\1\0\0\0\x19\1\2\0\1\0\0\0\4a\xff\xff\xff\xff",
     LBMSDM_ERR_MSG_INVALID},
    {"2^32-1 strings", 25, "UMSD\1\0\0\1\0\0\0\x19\1\x0f\0\1\0\0\0\4a\xff\xff\xff\xff", LBMSDM_ERR_MSG_INVALID},
    {"a string longer than its array", 29, "UMSD\1\0\0\1\0\0\0\x1d\1\x0f\0\1\0\0\0\x08\x61\0\0\0\1\0\0\0\1",
     LBMSDM_ERR_MSG_INVALID},
    {"bytes behind the elements", 26, "UMSD\1\0\0\1\0\0\0\x1a\1\2\0\1\0\0\0\5a\0\0\0\0x", LBMSDM_ERR_MSG_INVALID},
    {"a message that is none", 22, "UMSD\1\0\0\1\0\0\0\x16\0\x0e\0\1\0\0\0\1a\1", LBMSDM_ERR_MSG_INVALID},
    {"two fields of a name", 32, "UMSD\1\0\0\2\0\0\0\x20\0\1\0\1\0\0\0\1a\1\0\1\0\1\0\0\0\1A\1",
     LBMSDM_ERR_DUPLICATE_FIELD},
    {"bytes behind a message inside", 34, "UMSD\1\0\0\1\0\0\0\x22\0\x0e\0\1\0\0\0\x0d\x61UMSD\1\0\0\0\0\0\0\x0c\0",
     LBMSDM_ERR_MSG_INVALID},
};

TEST(what_is_malformed_in_one_thing_is_refused_with_little_memory)
{
    for (size_t i = 0; i < sizeof malformed / sizeof malformed[0]; i++) {
        lbmsdm_msg_t *msg;
        OK(lbmsdm_msg_create(&msg));
        largest = 0;
        um_mem_set_fail_hook(note_size);
        int done = parse_exactly(msg, malformed[i].bytes, malformed[i].len);
        um_mem_set_fail_hook(NULL);
        if (done != LBMSDM_FAILURE || lbmsdm_errnum() != malformed[i].errnum || largest > 256) {
            TEST_FAIL("%s: %d, error %d (%s), allocated %zu", malformed[i].what, done, lbmsdm_errnum(), lbmsdm_errmsg(),
                      largest);
        }
        lbmsdm_msg_destroy(msg);
    }
}

TEST(messages_33_deep_are_refused)
{
    uint8_t bytes[33 * 21 + 12];
    size_t len = 12;
    lbmsdm_msg_t *msg;
    memcpy(bytes, "UMSD\1\0\0\0\0\0\0\x0c", 12);
    for (int depth = 2; depth <= 33; depth++) {
        memmove(bytes + 21, bytes, len);
        memcpy(bytes, "UMSD\1\0\0\1\0\0\0\0\0\x0e\0\1\0\0\0\0m", 21);
        um_put32(bytes + 16, (uint32_t)len);
        len += 21;
        um_put32(bytes + 8, (uint32_t)len);
        int done = lbmsdm_msg_parse(&msg, (const char *)bytes, len);
        CHECK_EQ(done, depth <= 32 ? LBMSDM_SUCCESS : LBMSDM_FAILURE);
        if (done == LBMSDM_SUCCESS) {
            lbmsdm_msg_destroy(msg);
        }
    }
    CHECK_CONTAINS(lbmsdm_errmsg(), "32 deep");
}

/* A message of many small ones costs memory in proportion to its bytes. */
static size_t allocated;

static bool add_size(size_t size)
{
    allocated += size;
    return false;
}

TEST(memory_for_what_is_received_is_in_proportion_to_its_bytes)
{
    lbmsdm_msg_t *msg, *empty, *again;
    OK(lbmsdm_msg_create(&empty));
    OK(lbmsdm_msg_create(&msg));
    OK(lbmsdm_msg_add_message_array(msg, "m"));
    OK(lbmsdm_msg_add_boolean(empty, "b", 1));
    for (int i = 0; i < 5000; i++) {
        OK(lbmsdm_msg_add_message_elem_idx(msg, 0, empty));
    }
    size_t len = lbmsdm_msg_get_datalen(msg);
    const char *data = lbmsdm_msg_get_data(msg);
    allocated = 0;
    um_mem_set_fail_hook(add_size);
    int done = lbmsdm_msg_parse(&again, data, len);
    um_mem_set_fail_hook(NULL);
    CHECK_EQ(done, LBMSDM_SUCCESS);
    CHECK(allocated < 16 * len);
    lbmsdm_msg_destroy(msg);
    lbmsdm_msg_destroy(empty);
    lbmsdm_msg_destroy(again);
}

/* ---- allocations that fail ---- */

static long fail_at, allocations;

static bool fail_one(size_t size)
{
    return allocations++ == fail_at;
}

/* Everything that allocates; true when all of it worked. What fails must leave the message as it was. */
static bool everything(bool *intact)
{
    struct um_rng rng;
    lbmsdm_msg_t *msg = NULL, *clone = NULL, *again = NULL, *inner = NULL;
    lbmsdm_iter_t *iter = NULL;
    lbmsdm_msg_attr_t *attr = NULL;
    bool ok = false;
    um_rng_seed(&rng, 3);
    if (lbmsdm_msg_attr_create(&attr) != 0 || lbmsdm_msg_create_ex(&msg, attr) != 0) {
        goto out;
    }
    for (unsigned i = 0; i < 25; i++) {
        size_t len = lbmsdm_msg_get_datalen(msg);
        int fields = lbmsdm_msg_get_fldcnt(msg);
        if (sdm_random_field(&rng, msg, i, 0) != 0) {
            *intact = lbmsdm_errnum() == LBMSDM_ERR_ENOMEM &&
                      (lbmsdm_msg_get_fldcnt(msg) > fields || lbmsdm_msg_get_datalen(msg) == len);
            goto out;
        }
    }
    ok = lbmsdm_msg_clone(&clone, msg) == 0 && lbmsdm_msg_get_data(msg) != NULL &&
         lbmsdm_msg_parse(&again, lbmsdm_msg_get_data(msg), lbmsdm_msg_get_datalen(msg)) == 0 &&
         lbmsdm_msg_add_message(msg, "inner", clone) == 0 && lbmsdm_msg_get_message_name(msg, "inner", &inner) == 0 &&
         lbmsdm_msg_add_message_array(msg, "messages") == 0 &&
         lbmsdm_msg_add_message_elem_name(msg, "messages", inner) == 0 &&
         lbmsdm_msg_set_message_elem_name(msg, "messages", 0, clone) == 0 &&
         lbmsdm_msg_set_string_name(msg, "inner", "text") == 0 && lbmsdm_msg_add_string_array(msg, "texts") == 0 &&
         lbmsdm_msg_add_string_elem_name(msg, "texts", "one") == 0 &&
         lbmsdm_msg_set_string_elem_name(msg, "texts", 0, "two") == 0 && lbmsdm_iter_create(&iter, msg) == 0;
    *intact = ok || lbmsdm_errnum() == LBMSDM_ERR_ENOMEM;
out:
    um_mem_set_fail_hook(NULL); /* what is left of it must be sound */
    *intact = *intact && (msg == NULL || is_consistent(msg)) && (clone == NULL || is_consistent(clone));
    if (iter != NULL) {
        lbmsdm_iter_destroy(iter);
    }
    lbmsdm_msg_t *all[] = {msg, clone, again, inner};
    for (size_t i = 0; i < 4; i++) {
        if (all[i] != NULL) {
            lbmsdm_msg_destroy(all[i]);
        }
    }
    if (attr != NULL) {
        lbmsdm_msg_attr_delete(attr);
    }
    return ok;
}

TEST(every_allocation_may_fail)
{
    bool done = false;
    for (fail_at = 0; !done; fail_at++) {
        bool intact = true;
        allocations = 0;
        um_mem_set_fail_hook(fail_one);
        done = everything(&intact);
        um_mem_set_fail_hook(NULL);
        if (!intact) {
            TEST_FAIL("allocation %ld: %d %s", fail_at, lbmsdm_errnum(), lbmsdm_errmsg());
        }
    }
    CHECK(fail_at > 100); /* so many there are at least */
}
