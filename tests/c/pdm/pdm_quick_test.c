/* The calls that set and get one value have short ways for most fields and a long one for everything. The same random
 * calls, right and wrong, on two messages: one through the calls, the other by the long way alone. Whatever can be seen
 * of the two is the same, after values that were set and after messages, whole and damaged, that were received. */
#include "base/um_random.h"
#include "pdm/um_pdm.h"
#include "um_test_pdm.h"

#define FIELDS_MAX 12
#define ELEMENTS 8
#define ROOM 64 /* bytes of an element here; more than any value that is set */
#define STEPS 300

struct pair {
    struct pdm_spec specs[FIELDS_MAX];
    int count;
    lbmpdm_defn_t *defn;
    lbmpdm_msg_t *quick, *thorough;
};

/* What a call is given or fills, in the form of the calls. */
struct space {
    char bytes[ELEMENTS][ROOM]; /* numbers stand one after the other */
    char *pointers[ELEMENTS];
    size_t lengths[ELEMENTS];
    size_t len, count;
};

static void make_pair(struct um_rng *rng, struct pair *pair)
{
    pair->count = (int)um_rng_range(rng, 1, FIELDS_MAX);
    for (int i = 0; i < pair->count; i++) {
        int scalar = (int)um_rng_range(rng, PDM_TYPE_BOOLEAN, PDM_TYPE_BLOB); /* a message inside has no short way */
        pair->specs[i] = (struct pdm_spec){
            .name = i,
            .type = (int16_t)(um_rng_range(rng, 0, 1) == 1 ? scalar + PDM_TYPE_BOOLEAN_ARR : scalar),
            .optional = um_rng_range(rng, 0, 2) == 0,
            .str_len = (uint32_t)um_rng_range(rng, 1, 9),
            .count = (uint32_t)(um_rng_range(rng, 0, 1) == 1 ? um_rng_range(rng, 1, ELEMENTS) : 0),
        };
    }
    pair->defn = pdm_define(7, 1, 0, pair->specs, pair->count);
    CHECK(pair->defn != NULL);
    CHECK_EQ(lbmpdm_msg_create(&pair->quick, pair->defn, 0) | lbmpdm_msg_create(&pair->thorough, pair->defn, 0), 0);
}

static void end_pair(struct pair *pair)
{
    CHECK_EQ(lbmpdm_msg_delete(pair->quick) | lbmpdm_msg_delete(pair->thorough) | lbmpdm_defn_delete(pair->defn), 0);
}

static bool rarely(struct um_rng *rng)
{
    return um_rng_range(rng, 0, 15) == 0;
}

/* Bytes for a value, and as often as not the lengths and the number that the field wants. */
static void make_space(struct um_rng *rng, const struct um_pdm_field *field, struct space *space)
{
    size_t right = field->type->host != 0 ? field->type->host : field->element;
    for (int i = 0; i < ELEMENTS; i++) {
        size_t end = um_rng_range(rng, 0, ROOM - 1);
        for (size_t k = 0; k < ROOM; k++) {
            space->bytes[i][k] = (char)(k < end ? um_rng_range(rng, rarely(rng) ? 0 : 1, 255) : 0);
        }
        space->pointers[i] = rarely(rng) && rarely(rng) ? NULL : space->bytes[i];
        uint64_t kind = um_rng_range(rng, 0, 3);
        space->lengths[i] = kind == 0 ? 0 : kind == 1 ? um_rng_range(rng, 0, ROOM - 1) : right;
    }
    space->len = space->lengths[0];
    space->count = rarely(rng)         ? um_rng_range(rng, 0, ELEMENTS)
                   : field->count != 0 ? field->count
                                       : um_rng_range(rng, 1, ELEMENTS);
}

/* The same outcome, and the same error if it is one. */
static bool same_end(int quick, int error, int thorough)
{
    return quick == thorough && (quick == PDM_SUCCESS || error == lbmpdm_errnum());
}

static bool set_both(struct um_rng *rng, struct pair *pair, int handle)
{
    const struct um_pdm_field *field = &pair->defn->fields[handle];
    struct space space;
    make_space(rng, field, &space);
    bool array = field->type->array != rarely(rng);
    void *value = rarely(rng)                                    ? NULL
                  : field->type->array && field->type->host == 0 ? (void *)space.pointers
                                                                 : (void *)space.bytes;
    size_t *lengths = um_rng_range(rng, 0, 3) == 0 ? NULL : space.lengths;
    if (array) {
        int rc = lbmpdm_msg_set_field_value_vec(pair->quick, handle, value, lengths, space.count);
        int error = lbmpdm_errnum();
        return same_end(rc, error, um_pdm_set_vec(pair->thorough, handle, value, lengths, space.count));
    }
    int rc = lbmpdm_msg_set_field_value(pair->quick, handle, value, space.len), error = lbmpdm_errnum();
    return same_end(rc, error, um_pdm_set(pair->thorough, handle, value, space.len));
}

/* What a call that gets is given, with bytes that show what was written. */
static void make_room(const struct space *given, struct space *space)
{
    *space = *given;
    memset(space->bytes, 0xee, sizeof space->bytes);
    for (int i = 0; i < ELEMENTS; i++) {
        space->pointers[i] = given->pointers[i] == NULL ? NULL : space->bytes[i];
    }
}

static bool same_space(const struct space *a, const struct space *b)
{
    return memcmp(a->bytes, b->bytes, sizeof a->bytes) == 0 && a->len == b->len && a->count == b->count &&
           memcmp(a->lengths, b->lengths, sizeof a->lengths) == 0;
}

static bool get_both(struct um_rng *rng, struct pair *pair, int handle)
{
    const struct um_pdm_field *field = &pair->defn->fields[handle];
    struct space given, quick, thorough;
    make_space(rng, field, &given);
    for (int i = 0; i < ELEMENTS && um_rng_range(rng, 0, 1) == 1; i++) {
        given.lengths[i] = ROOM;
    }
    given.len = given.lengths[0];
    given.count = um_rng_range(rng, 0, 3) == 0 ? given.count : ELEMENTS;
    make_room(&given, &quick);
    make_room(&given, &thorough);
    bool texts = field->type->array && field->type->host == 0, array = field->type->array != rarely(rng);
    bool lengths = um_rng_range(rng, 0, 3) != 0, counted = !rarely(rng), to = !rarely(rng);
    void *into[2] = {texts ? (void *)quick.pointers : quick.bytes, texts ? (void *)thorough.pointers : thorough.bytes};
    int rc, error, other;
    if (array) {
        rc = lbmpdm_msg_get_field_value_vec(pair->quick, handle, to ? into[0] : NULL, lengths ? quick.lengths : NULL,
                                            counted ? &quick.count : NULL);
        error = lbmpdm_errnum();
        other = um_pdm_get_vec(pair->thorough, handle, to ? into[1] : NULL, lengths ? thorough.lengths : NULL,
                               counted ? &thorough.count : NULL);
    } else {
        rc = lbmpdm_msg_get_field_value(pair->quick, handle, to ? into[0] : NULL, counted ? &quick.len : NULL);
        error = lbmpdm_errnum();
        other = um_pdm_get(pair->thorough, handle, to ? into[1] : NULL, counted ? &thorough.len : NULL);
    }
    return same_end(rc, error, other) && same_space(&quick, &thorough);
}

static bool remove_both(struct pair *pair, int handle)
{
    return lbmpdm_msg_remove_field_value(pair->quick, handle) == lbmpdm_msg_remove_field_value(pair->thorough, handle);
}

/* The bytes of both are the same; both receive them, sometimes damaged. */
static bool transfer(struct um_rng *rng, struct pair *pair)
{
    uint32_t len = lbmpdm_msg_get_length(pair->quick);
    if (len != lbmpdm_msg_get_length(pair->thorough) || len == 0) {
        return lbmpdm_msg_get_length(pair->thorough) == len;
    }
    char *bytes = malloc(len);
    bool same = lbmpdm_msg_serialize(pair->quick, bytes) == PDM_SUCCESS &&
                memcmp(bytes, lbmpdm_msg_get_data(pair->thorough), len) == 0;
    for (uint64_t changes = um_rng_range(rng, 0, 2); changes > 0 && len > 24; changes--) {
        bytes[um_rng_range(rng, 24, len - 1)] = (char)um_rng_range(rng, 0, 255);
    }
    int rc = lbmpdm_msg_deserialize(pair->quick, bytes, len);
    same = same && rc == lbmpdm_msg_deserialize(pair->thorough, bytes, len);
    free(bytes);
    return same;
}

static bool step(struct um_rng *rng, struct pair *pair)
{
    int handle = (int)um_rng_range(rng, 0, (uint64_t)pair->count - 1);
    uint64_t kind = um_rng_range(rng, 0, 19);
    bool same = kind < 8    ? set_both(rng, pair, handle)
                : kind < 17 ? get_both(rng, pair, handle)
                : kind < 18 ? remove_both(pair, handle)
                            : transfer(rng, pair);
    for (int i = -1; i <= pair->count && same; i++) {
        same = lbmpdm_msg_is_field_set(pair->quick, i) == (um_pdm_msg_is_set(pair->thorough, i) ? PDM_TRUE : PDM_FALSE);
    }
    return same && lbmpdm_msg_get_length(pair->quick) == lbmpdm_msg_get_length(pair->thorough);
}

TEST(the_short_ways_do_what_the_long_one_does)
{
    for (uint64_t seed = 1; seed <= 600; seed++) {
        struct um_rng rng;
        struct pair pair;
        um_rng_seed(&rng, seed);
        make_pair(&rng, &pair);
        for (int i = 0; i < STEPS && !um_test_failed; i++) {
            if (!step(&rng, &pair)) {
                TEST_FAIL("seed %llu, step %d", (unsigned long long)seed, i);
            }
        }
        end_pair(&pair);
        if (um_test_failed) {
            return;
        }
    }
}

TEST(without_a_message_or_a_field_the_error_is_told)
{
    lbmpdm_defn_t *defn = pdm_define(1001, 1, 0, pdm_three, 3);
    lbmpdm_msg_t *msg;
    int32_t number = 7;
    size_t len = sizeof number, count = 1;
    CHECK_EQ(lbmpdm_msg_create(&msg, defn, 0), 0);
    for (int handle = -1; handle <= 3; handle += 4) {
        CHECK_EQ(lbmpdm_msg_set_field_value(msg, handle, &number, sizeof number), -1);
        CHECK_EQ(lbmpdm_errnum(), PDM_ERR_FIELD_NOT_FOUND);
        CHECK_EQ(lbmpdm_msg_get_field_value(msg, handle, &number, &len), -1);
        CHECK_EQ(lbmpdm_errnum(), PDM_ERR_FIELD_NOT_FOUND);
        CHECK_EQ(lbmpdm_msg_set_field_value_vec(NULL, handle, &number, NULL, 1), -1);
        CHECK_EQ(lbmpdm_errnum(), PDM_ERR_EINVAL);
        CHECK_EQ(lbmpdm_msg_get_field_value_vec(msg, handle, &number, NULL, &count), -1);
        CHECK_EQ(lbmpdm_errnum(), PDM_ERR_FIELD_NOT_FOUND);
        CHECK_EQ(lbmpdm_msg_is_field_set(NULL, handle), PDM_FALSE);
        CHECK_EQ(lbmpdm_errnum(), PDM_ERR_EINVAL);
    }
    CHECK_EQ(lbmpdm_msg_and_defn_delete(msg), 0);
}

TEST(texts_of_a_peer_end_in_a_nul_where_they_are_got)
{
    static uint8_t bytes[512];
    size_t len = unhex(HEX_C, bytes), room = 13, lengths[] = {6, 6}, count = 2;
    lbmpdm_defn_t *defn = pdm_define(1002, 1, 0, pdm_nine, 9);
    lbmpdm_msg_t *msg;
    char text[13], a[6], b[6], *texts[] = {a, b};
    CHECK(bytes[69] == '\0' && bytes[78] == '\0' && bytes[84] == '\0');
    bytes[69] = bytes[78] = bytes[84] = 'x'; /* instead of the NUL of each */
    CHECK_EQ(lbmpdm_msg_create(&msg, defn, 0), 0);
    CHECK_EQ(lbmpdm_msg_deserialize(msg, (const char *)bytes, (uint32_t)len), 0);
    CHECK_EQ(lbmpdm_msg_get_field_value(msg, 4, text, &room), 0);
    CHECK_EQ(lbmpdm_msg_get_field_value_vec(msg, 8, texts, lengths, &count), 0);
    CHECK_STR(text, "Hello World!");
    CHECK_STR(a, "aaaaa");
    CHECK_STR(b, "bbbbb");
    CHECK_EQ(lbmpdm_msg_and_defn_delete(msg), 0);
}
