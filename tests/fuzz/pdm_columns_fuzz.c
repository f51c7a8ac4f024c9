/* Fuzz target: many pre-defined messages as columns. The columns have what the decoder of the library finds in each
 * message, and the first message that it refuses is the one that they refuse. Two halves of the messages decoded alone
 * give what both together give. An input is a definition, chosen by its first byte, and messages with their lengths. */
#include <stdlib.h>
#include <string.h>

#include <lbm/lbmpdm.h>

#include "../../um_cffi/binding/um_py_pdm.c"
#include "../../um_cffi/binding/um_py_pdm_text.c"
#include "../../um_cffi/binding/um_py_pdm_columns.c"

#define FIELDS_MAX 38
#define MESSAGES_MAX 24

static void check(int ok)
{
    if (!ok) {
        abort();
    }
}

/* The rows of a table: where each message is and how long. */
struct row {
    uint64_t offset;
    uint32_t length;
} __attribute__((packed));

struct shape {
    lbmpdm_defn_t *defn;
    um_py_pdm_column_t columns[FIELDS_MAX]; /* what they are, without buffers */
    size_t fields;
    uint32_t section;
};

static const uint8_t widths[19] = {0, 1, 1, 2, 2, 4, 4, 8, 8, 4, 8, 8, 8};
static const uint8_t elements[19] = {1, 1, 1, 2, 2, 4, 4, 8, 8, 4, 8, 9, 8};

/* Definition `which` of 8: bit 0 fields are optional, bit 1 arrays, bit 2 arrays of two elements; or some of each. */
static void add_field(struct shape *shape, int code, int optional, int array, uint32_t count)
{
    um_py_pdm_column_t *column = &shape->columns[shape->fields];
    int slot = code == PDM_TYPE_FIX_STRING || code == PDM_TYPE_FIX_UNICODE;
    lbmpdm_field_info_attr_t attr = {.flags = 7, .req = !optional, .fixed_str_len = slot ? 3 : 0};
    attr.num_arr_elem = count;
    *column = (um_py_pdm_column_t){.code = code, .array = array, .required = !optional, .count = count};
    column->width = widths[code];
    column->element = slot ? (code == PDM_TYPE_FIX_UNICODE ? 13 : 4) : elements[code];
    column->plain = !optional && column->element != 0 && (!array || count != 0);
    column->place = shape->section;
    if (column->plain) {
        shape->section += column->element * (array ? count : 1);
    } else {
        column->place = 0;
        for (size_t i = 0; i < shape->fields; i++) {
            column->place += !shape->columns[i].plain;
        }
    }
    int16_t type = (int16_t)(code + (array ? 19 : 0));
    check(lbmpdm_defn_add_field_info_by_int_name(shape->defn, (int32_t)shape->fields, type, &attr) ==
          (int32_t)shape->fields);
    shape->fields++;
}

static void make_shape(struct shape *shape, unsigned which)
{
    *shape = (struct shape){.fields = 0};
    check(lbmpdm_defn_create(&shape->defn, FIELDS_MAX, 7, 1, 0, PDM_DEFN_INT_FIELD_NAMES) == 0);
    for (int code = 0; code < 19; code++) {
        if (which < 8) {
            add_field(shape, code, which & 1, (which & 2) != 0, (which & 6) == 6 ? 2 : 0);
        } else if (which == 8 ? code < 13 : code % 3 == 0) { /* of fixed layout; or a few */
            add_field(shape, code, 0, 0, 0);
        }
    }
    if (which > 8) {
        add_field(shape, PDM_TYPE_STRING, 1, 0, 0);
        add_field(shape, PDM_TYPE_INT32, 1, 1, 0);
    }
    check(lbmpdm_defn_finalize(shape->defn) == 0);
}

/* ---- columns against messages ---- */

/* The bytes of one element that the library has decoded, against those of a column. */
static void same_element(const um_py_pdm_column_t *column, size_t at, const char *value, size_t len)
{
    if (um_py_pdm_is_text(column->code)) {
        const char *bytes = (const char *)column->values + column->texts[at];
        size_t size = (size_t)(column->texts[at + 1] - column->texts[at]);
        int slot = column->element != 0, string = column->code == PDM_TYPE_STRING || column->code == PDM_TYPE_UNICODE;
        while (len > 0 && value[len - 1] == 0 && (slot || string)) {
            len--;
            if (!slot) {
                break;
            }
        }
        int text = slot || string;
        check(text && !um_py_utf8_valid((const unsigned char *)value, len)
                  ? um_py_utf8_valid((const unsigned char *)bytes, size)
                  : size == len && (len == 0 || memcmp(bytes, value, len) == 0));
    } else if (column->code == PDM_TYPE_BOOLEAN) {
        check((column->values[at / 8] >> at % 8 & 1) == value[0]);
    } else if (column->code == PDM_TYPE_DECIMAL) {
        lbmpdm_decimal_t decimal;
        memcpy(&decimal, value, sizeof decimal);
        check(memcmp(column->values + at * 8, &decimal.mant, 8) == 0 && column->exponents[at] == decimal.exp);
    } else if (column->code == PDM_TYPE_TIMESTAMP) {
        lbmpdm_timestamp_t stamp;
        int64_t time;
        memcpy(&stamp, value, sizeof stamp);
        memcpy(&time, column->values + at * 8, 8);
        check(time == (int64_t)stamp.tv_secs * 1000000 + stamp.tv_usecs);
    } else {
        check(memcmp(column->values + at * column->width, value, column->width) == 0);
    }
}

static void same_field(const um_py_pdm_column_t *column, size_t row, lbmpdm_msg_t *msg, int32_t handle)
{
    lbmpdm_field_value_t value;
    int set = lbmpdm_msg_is_field_set(msg, handle);
    check(column->valid == NULL ? set : (column->valid[row / 8] >> row % 8 & 1) == set);
    size_t first = row, count = 1;
    if (column->lists != NULL) {
        first = (size_t)column->lists[row];
        count = (size_t)column->lists[row + 1] - first;
    } else if (column->array) {
        first = row * column->count;
        count = column->count;
    }
    if (!set) {
        check(column->lists == NULL || count == 0);
        return;
    }
    check(lbmpdm_msg_get_field_value_stct(msg, handle, &value) == PDM_SUCCESS);
    if (!column->array) {
        same_element(column, first, value.value, value.len);
    } else {
        check(value.num_arr_elem == count);
        for (size_t i = 0; i < count; i++) {
            same_element(column, first + i, value.value_arr[i], value.len_arr[i]);
        }
    }
    check(lbmpdm_field_value_stct_delete(&value) == PDM_SUCCESS);
}

/* ---- a run ---- */

struct run {
    um_py_pdm_column_t columns[FIELDS_MAX];
    char *memory;
    size_t done;
    int error;
};

static void decode(struct run *run, const struct shape *shape, const uint8_t *data, size_t len, const struct row *rows,
                   size_t count)
{
    static const char key[] = {1, 0, 7, 0, 0, 0};
    memcpy(run->columns, shape->columns, sizeof run->columns);
    void *memory;
    check(posix_memalign(&memory, 64, um_py_pdm_memory(run->columns, shape->fields, count, NULL) + 1) == 0);
    run->memory = memory;
    (void)um_py_pdm_memory(run->columns, shape->fields, count, run->memory);
    run->done =
        um_py_pdm_decode((const char *)data, len, (const char *)&rows->offset, (const char *)rows + sizeof rows->offset,
                         sizeof *rows, count, key, shape->section, run->columns, shape->fields, &run->error);
    check(run->error == 0 ? run->done == count : run->done < count);
}

static void discard(struct run *run, const struct shape *shape)
{
    if (run->error == 0) {
        um_py_pdm_columns_free(run->columns, shape->fields);
    }
    free(run->memory);
}

/* Whether the library accepts it as a message of this definition and version. Of another id it may bring its own. */
static int accepted(lbmpdm_msg_t *msg, const struct shape *shape, const uint8_t *data, const struct row *row)
{
    const char *at = (const char *)data + row->offset;
    return lbmpdm_msg_deserialize(msg, at, row->length) == PDM_SUCCESS && at[6] == 1 && at[7] == 0 &&
           lbmpdm_msg_get_defn(msg) == shape->defn;
}

static void compare(const struct run *run, const struct shape *shape, const uint8_t *data, const struct row *rows,
                    size_t count)
{
    lbmpdm_msg_t *msg;
    check(lbmpdm_msg_create(&msg, shape->defn, 0) == 0);
    size_t good = run->error == 0 ? count : run->done;
    for (size_t row = 0; row < good; row++) {
        check(accepted(msg, shape, data, &rows[row]));
        for (size_t i = 0; run->error == 0 && i < shape->fields; i++) {
            same_field(&run->columns[i], row, msg, (int32_t)i);
        }
    }
    check(good == count || !accepted(msg, shape, data, &rows[good]));
    check((lbmpdm_msg_get_defn(msg) == shape->defn ? lbmpdm_msg_delete(msg) : lbmpdm_msg_and_defn_delete(msg)) == 0);
}

/* Row `at` of a column is row `other_at` of another. */
static void same_rows(const um_py_pdm_column_t *one, size_t at, const um_py_pdm_column_t *other, size_t other_at)
{
    if (one->valid != NULL) {
        check((one->valid[at / 8] >> at % 8 & 1) == (other->valid[other_at / 8] >> other_at % 8 & 1));
    }
    if (one->lists != NULL) {
        check(one->lists[at + 1] - one->lists[at] == other->lists[other_at + 1] - other->lists[other_at]);
    } else if (!one->array && um_py_pdm_is_text(one->code)) {
        size_t size = (size_t)(one->texts[at + 1] - one->texts[at]);
        check(size == (size_t)(other->texts[other_at + 1] - other->texts[other_at]));
        check(memcmp(one->values + one->texts[at], other->values + other->texts[other_at], size) == 0);
    } else if (one->width != 0) {
        size_t size = one->width * (one->array ? (size_t)one->count : 1);
        check(memcmp(one->values + at * size, other->values + other_at * size, size) == 0);
    }
}

static void halves(const struct run *whole, const struct shape *shape, const uint8_t *data, size_t len,
                   const struct row *rows, size_t count)
{
    size_t middle = count / 2, firsts[2] = {0, middle}, counts[2] = {middle, count - middle};
    for (int half = 0; half < 2; half++) {
        struct run run;
        decode(&run, shape, data, len, rows + firsts[half], counts[half]);
        check(run.error == 0);
        for (size_t i = 0; i < shape->fields; i++) {
            for (size_t row = 0; row < counts[half]; row++) {
                same_rows(&run.columns[i], row, &whole->columns[i], firsts[half] + row);
            }
        }
        discard(&run, shape);
    }
}

/* ---- inputs ---- */

/* Splits the input behind its first byte: a length of one byte (255: of two more) before each message. */
static size_t split(const uint8_t *data, size_t len, struct row *rows)
{
    size_t at = 1, count = 0;
    while (at < len && count < MESSAGES_MAX) {
        size_t size = data[at++];
        if (size == 255 && len - at >= 2) {
            size = data[at] | (size_t)data[at + 1] << 8;
            at += 2;
        }
        size = size > len - at ? len - at : size;
        rows[count++] = (struct row){at, (uint32_t)size};
        at += size;
    }
    return count;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    struct row rows[MESSAGES_MAX] = {{0, 0}}, twice[2 * MESSAGES_MAX];
    struct shape shape;
    struct run run;
    if (len < 1) {
        return 0;
    }
    make_shape(&shape, data[0] % 10);
    size_t count = split(data, len, rows);
    memcpy(twice, rows, count * sizeof *rows);
    memcpy(twice + count, rows, count * sizeof *rows);
    decode(&run, &shape, data, len, twice, 2 * count);
    compare(&run, &shape, data, twice, 2 * count);
    if (run.error == 0) {
        halves(&run, &shape, data, len, twice, 2 * count);
    }
    discard(&run, &shape);
    check(lbmpdm_defn_delete(shape.defn) == 0);
    return 0;
}
