/*
 * Many pre-defined messages of one definition as columns, in the layout of Arrow: one pass, some messages at a time so
 * that they stay in the cache while one column after the other takes its values. What is refused is what the decoder of
 * the library refuses. Any thread; nothing is kept. The messages must not change meanwhile. Compiled into
 * um_cffi.binding._native behind um_py_pdm_text.c by build.py.
 */
#include <stdlib.h>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#define UM_PY_PDM_ROWS 512        /* messages at a time, at most; a multiple of 64 */
#define UM_PY_PDM_BYTES 131072    /* of those messages and what is known of them, about */
#define UM_PY_PDM_LARGE (1 << 21) /* columns of so many bytes are written past the cache */
#define UM_PY_PDM_OVERLAP_MAX 16  /* as OVERLAP_MAX of um_pdm_read.c */

/*
 * One column. Python says what the field is. Buffers whose size the number of rows tells lie in one piece of memory,
 * the caller's; those that grow, which are the bytes of texts and the elements of lists, are freed by free().
 */
typedef struct um_py_pdm_column_stct {
    int32_t code;     /* type of an element, PDM_TYPE_BOOLEAN to PDM_TYPE_MESSAGE */
    int32_t array;    /* rows are lists */
    int32_t required; /* no row is null */
    int32_t plain;    /* fixed and required: in the fixed section */
    uint32_t element; /* bytes of an element in a message, 0: they differ */
    uint32_t count;   /* elements of each row of an array, 0: they differ */
    uint32_t place;   /* in the fixed section; of others, their number among those that are not there */
    uint32_t width;   /* bytes of an element in `values`: 1, 2, 4, 8; 0: bits, or texts */

    unsigned char *valid;   /* bits; NULL where `required` */
    int64_t *lists;         /* where the elements of each row begin, and where they end; arrays that are not plain */
    int64_t *texts;         /* where the bytes of each element begin, and where they end; texts, blobs, messages */
    unsigned char *values;  /* numbers, bits of booleans, mantissas, microseconds since 1970, or bytes of texts */
    signed char *exponents; /* of decimals */
    int64_t nulls;          /* rows that are null */
    size_t elements, bytes; /* in use; bytes are those of texts */
    size_t element_room, byte_room;
} um_py_pdm_column_t;

/* The messages at hand. */
typedef struct um_py_pdm_block_stct {
    size_t rows;
    uint32_t slots; /* fields that are not in the fixed section */
    int some_swap;
    int large; /* the columns will not stay in the cache anyway */
    unsigned char tile[UM_PY_PDM_ROWS * 8] __attribute__((aligned(64)));
    const unsigned char *data[UM_PY_PDM_ROWS];
    unsigned char swap[UM_PY_PDM_ROWS];
    const unsigned char **values; /* values[slot * UM_PY_PDM_ROWS + row]: NULL where it is not set */
} um_py_pdm_block_t;

static int um_py_pdm_is_text(int code) /* of either kind, or bytes */
{
    return code >= PDM_TYPE_FIX_STRING;
}

static uint64_t um_py_pdm_number(const unsigned char *at, uint32_t width, int swap)
{
    uint64_t value = 0;
    for (uint32_t i = 0; i < width; i++)
        ((unsigned char *)&value)[i] = at[swap ? width - 1 - i : i];
    return value; /* its first bytes in memory are the number */
}

/* ---- memory ---- */

static int um_py_pdm_resize(void **where, size_t count, size_t width)
{
    void *more = count > SIZE_MAX / width - 1 ? NULL : realloc(*where, count * width);
    if (more == NULL)
        return -1;
    *where = more;
    return 0;
}

/* At first what is asked for; then by halves, so that little is moved. */
static size_t um_py_pdm_larger(size_t room, size_t need)
{
    return need > room + room / 2 ? need : room + room / 2;
}

/* Room for so many elements more. */
static int um_py_pdm_elements(um_py_pdm_column_t *column, size_t more)
{
    size_t need = column->elements + more, room = um_py_pdm_larger(column->element_room, need);
    if (need <= column->element_room)
        return 0;
    int result;
    if (um_py_pdm_is_text(column->code))
        result = um_py_pdm_resize((void **)&column->texts, room + 1, sizeof *column->texts);
    else if (column->code == PDM_TYPE_BOOLEAN)
        result = um_py_pdm_resize((void **)&column->values, room / 8 + 1, 1);
    else
        result = um_py_pdm_resize((void **)&column->values, room, column->width);
    if (result == 0 && column->code == PDM_TYPE_DECIMAL)
        result = um_py_pdm_resize((void **)&column->exponents, room, 1);
    column->element_room = result == 0 ? room : column->element_room;
    return result;
}

/* Room for so many bytes of texts more. */
static int um_py_pdm_bytes(um_py_pdm_column_t *column, size_t more)
{
    size_t need = column->bytes + more, room = um_py_pdm_larger(column->byte_room, need);
    if (need <= column->byte_room)
        return 0;
    if (um_py_pdm_resize((void **)&column->values, room, 1) != 0)
        return -1;
    column->byte_room = room;
    return 0;
}

/* Whether the number of rows does not tell that of the elements. */
static int um_py_pdm_grows(const um_py_pdm_column_t *column)
{
    return column->array && !column->plain;
}

/* Frees what has grown. */
static void um_py_pdm_columns_free(um_py_pdm_column_t *columns, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        um_py_pdm_column_t *column = &columns[i];
        if (um_py_pdm_is_text(column->code) || um_py_pdm_grows(column)) {
            free(column->values);
            column->values = NULL;
        }
        if (um_py_pdm_grows(column)) {
            free(column->texts);
            free(column->exponents);
            column->texts = NULL;
            column->exponents = NULL;
        }
    }
}

/* The next `size` bytes of the memory; without any it is only counted. Not a multiple of the size of a page apart, so
 * that the same row of several columns is not in one place of the cache. */
static void *um_py_pdm_piece(unsigned char *memory, size_t *used, size_t size)
{
    unsigned char *piece = memory != NULL ? memory + *used : NULL;
    *used += (size + 63) / 64 * 64 + 320;
    return piece;
}

/* Bytes of memory that the columns of so many rows need; where it is given they get it. */
static size_t um_py_pdm_memory(um_py_pdm_column_t *columns, size_t fields, size_t rows, char *memory)
{
    unsigned char *given = (unsigned char *)memory;
    size_t used = 0;
    for (size_t i = 0; i < fields; i++) {
        um_py_pdm_column_t *column = &columns[i];
        size_t elements = column->array ? rows * column->count : rows;
        int grows = um_py_pdm_grows(column), text = um_py_pdm_is_text(column->code);
        column->valid = column->required ? NULL : um_py_pdm_piece(given, &used, rows / 8 + 1);
        column->lists = grows ? um_py_pdm_piece(given, &used, (rows + 1) * sizeof *column->lists) : NULL;
        column->texts = text && !grows ? um_py_pdm_piece(given, &used, (elements + 1) * sizeof(int64_t)) : NULL;
        column->exponents = column->code == PDM_TYPE_DECIMAL && !grows ? um_py_pdm_piece(given, &used, elements) : NULL;
        if (!text && !grows)
            column->values =
                um_py_pdm_piece(given, &used, column->width != 0 ? elements * column->width : elements / 8 + 1);
        column->element_room = grows ? 0 : elements;
    }
    return used;
}

static int um_py_pdm_prepare(um_py_pdm_column_t *column, size_t rows)
{
    if (column->valid != NULL)
        memset(column->valid, 0, rows / 8 + 1);
    if (column->lists != NULL)
        column->lists[0] = 0;
    if (um_py_pdm_grows(column) && um_py_pdm_elements(column, 64) != 0)
        return -1;
    if (!um_py_pdm_is_text(column->code))
        return 0;
    column->texts[0] = 0;
    return um_py_pdm_bytes(column, 64);
}

/* ---- elements ---- */

/* A bit behind those before it; the rest of its byte becomes zero. */
static void um_py_pdm_put_bit(unsigned char *bits, size_t at, int value)
{
    unsigned before = at % 8 == 0 ? 0 : bits[at / 8];
    bits[at / 8] = (unsigned char)(before | (unsigned)(value != 0) << at % 8);
}

static int64_t um_py_pdm_microseconds(const unsigned char *from, int swap)
{
    int32_t seconds = (int32_t)um_py_pdm_word(from, swap), rest = (int32_t)um_py_pdm_word(from + 4, swap);
    return (int64_t)seconds * 1000000 + rest;
}

/* `count` elements that are no texts, to place `at`. */
static void um_py_pdm_put(um_py_pdm_column_t *column, size_t at, const unsigned char *from, size_t count, int swap)
{
    uint32_t width = column->width;
    for (size_t i = 0; i < count; i++, from += column->element) {
        unsigned char *to = column->values + (at + i) * width;
        if (column->code == PDM_TYPE_BOOLEAN) {
            um_py_pdm_put_bit(column->values, at + i, *from != 0);
        } else if (column->code == PDM_TYPE_TIMESTAMP) {
            int64_t time = um_py_pdm_microseconds(from, swap);
            memcpy(to, &time, sizeof time);
        } else if (column->code == PDM_TYPE_DECIMAL) {
            uint64_t mantissa = um_py_pdm_number(from + 1, 8, swap);
            memcpy(to, &mantissa, sizeof mantissa);
            column->exponents[at + i] = (signed char)from[0];
        } else if (swap) {
            uint64_t number = um_py_pdm_number(from, width, 1);
            memcpy(to, &number, width);
        } else {
            memcpy(to, from, count * width);
            return;
        }
    }
}

/* One text, blob or message behind those that are there. */
static int um_py_pdm_put_bytes(um_py_pdm_column_t *column, const unsigned char *from, size_t len)
{
    int text = column->code != PDM_TYPE_BLOB && column->code != PDM_TYPE_MESSAGE;
    int valid = !text || um_py_utf8_valid(from, len);
    if (um_py_pdm_elements(column, 1) != 0 || um_py_pdm_bytes(column, valid ? len : 3 * len) != 0)
        return -1;
    if (valid && len != 0)
        memcpy(column->values + column->bytes, from, len);
    column->bytes += valid ? len : um_py_utf8_replaced(column->values + column->bytes, from, len);
    column->texts[++column->elements] = (int64_t)column->bytes;
    return 0;
}

/* A short text into room that is there. */
static inline void um_py_pdm_put_short(um_py_pdm_column_t *column, const unsigned char *from, size_t len)
{
    memcpy(column->values + column->bytes, from, len);
    column->bytes += len;
    column->texts[++column->elements] = (int64_t)column->bytes;
}

/* Texts of a fixed length, which end in a NUL whatever came. */
static int um_py_pdm_put_slots(um_py_pdm_column_t *column, const unsigned char *from, size_t count)
{
    for (size_t i = 0; i < count; i++, from += column->element) {
        size_t len = um_py_pdm_trimmed(from, column->element - 1);
        if (um_py_pdm_put_bytes(column, from, len) != 0)
            return -1;
    }
    return 0;
}

/* ---- columns of the fixed section ---- */

/* Memory that is written past the cache need not be read before: with many columns that is what costs. Both begin at a
 * multiple of 16 bytes. */
static void um_py_pdm_stream(unsigned char *to, const unsigned char *from, size_t size)
{
    size_t done = 0;
#if defined(__SSE2__)
    for (; done + 16 <= size; done += 16)
        _mm_stream_si128((__m128i *)(void *)(to + done), _mm_load_si128((const __m128i *)(const void *)(from + done)));
#endif
    memcpy(to + done, from + done, size - done);
}

#define UM_PY_PDM_STRIDED(type)                                                                                        \
    for (size_t i = 0; i < block->rows; i++) {                                                                         \
        type value;                                                                                                    \
        memcpy(&value, block->data[i] + place, sizeof value);                                                          \
        memcpy(to + i * sizeof value, &value, sizeof value);                                                           \
    }

/* One number of each message, in the order of this host; `at` is a multiple of 8. */
static void um_py_pdm_numbers(um_py_pdm_column_t *column, size_t at, um_py_pdm_block_t *block)
{
    unsigned char *out = column->values + at * column->width;
    int tile = block->large && (uintptr_t)out % 16 == 0;
    unsigned char *to = tile ? block->tile : out;
    size_t place = column->place;
    switch (column->width) {
    case 1:
        UM_PY_PDM_STRIDED(uint8_t)
        break;
    case 2:
        UM_PY_PDM_STRIDED(uint16_t)
        break;
    case 4:
        UM_PY_PDM_STRIDED(uint32_t)
        break;
    default:
        UM_PY_PDM_STRIDED(uint64_t)
    }
    if (tile)
        um_py_pdm_stream(out, to, block->rows * column->width);
}

/* One boolean of each message; `at` is a multiple of 8. */
static void um_py_pdm_booleans(um_py_pdm_column_t *column, size_t at, const um_py_pdm_block_t *block)
{
    for (size_t i = 0; i < block->rows; i += 8) {
        unsigned byte = 0;
        for (size_t j = i; j < block->rows && j < i + 8; j++)
            byte |= (unsigned)(block->data[j][column->place] != 0) << (j - i);
        column->values[(at + i) / 8] = (unsigned char)byte;
    }
}

/* One text of a fixed length of each message. */
static int um_py_pdm_short_texts(um_py_pdm_column_t *column, const um_py_pdm_block_t *block)
{
    size_t most = column->element - 1;
    if (um_py_pdm_bytes(column, block->rows * most) != 0)
        return -1;
    for (size_t i = 0; i < block->rows; i++) {
        const unsigned char *from = block->data[i] + column->place;
        size_t len = um_py_pdm_trimmed(from, most), left = (block->rows - i) * most;
        if (um_py_utf8_ascii(from, len) && len <= column->byte_room - column->bytes)
            um_py_pdm_put_short(column, from, len);
        else if (um_py_pdm_put_bytes(column, from, len) != 0 || um_py_pdm_bytes(column, left) != 0)
            return -1;
    }
    return 0;
}

static int um_py_pdm_take_plain(um_py_pdm_column_t *column, size_t first, um_py_pdm_block_t *block)
{
    size_t count = column->array ? column->count : 1;
    int text = um_py_pdm_is_text(column->code);
    if (text && !column->array)
        return um_py_pdm_short_texts(column, block);
    if (!text && !column->array && !block->some_swap) {
        int number = column->code != PDM_TYPE_TIMESTAMP && column->code != PDM_TYPE_DECIMAL;
        if (number && column->code != PDM_TYPE_BOOLEAN) {
            um_py_pdm_numbers(column, first, block);
            return 0;
        }
        if (number) {
            um_py_pdm_booleans(column, first, block);
            return 0;
        }
    }
    for (size_t i = 0; i < block->rows; i++) {
        const unsigned char *from = block->data[i] + column->place;
        if (!text)
            um_py_pdm_put(column, (first + i) * count, from, count, block->swap[i]);
        else if (um_py_pdm_put_slots(column, from, count) != 0)
            return -1;
    }
    return 0;
}

/* ---- values that are not in the fixed section ---- */

typedef struct um_py_pdm_value_stct {
    const unsigned char *elements; /* the first one, or the length before it */
    uint32_t count;
    uint64_t total; /* bytes, with what is before the elements */
} um_py_pdm_value_t;

/* Elements with lengths before them: `count` of them or, without one, as many as fill the room. 0 when they do not. */
static int um_py_pdm_walk(um_py_pdm_value_t *value, uint32_t count, size_t room, int swap)
{
    size_t at = 0;
    uint32_t found = 0;
    for (; count != 0 ? found < count : at < room; found++) {
        if (room - at < 4)
            return 0;
        uint32_t len = um_py_pdm_word(value->elements + at, swap);
        if (len > room - at - 4)
            return 0;
        at += 4 + (size_t)len;
    }
    value->count = found;
    value->total = 4 + (uint64_t)at;
    return 1;
}

/* The value at `at`, with at most `room` bytes behind it; 0 when it does not fit. As um_pdm_value_read(). */
static int um_py_pdm_value(const um_py_pdm_column_t *column, const unsigned char *at, size_t room, int swap,
                           um_py_pdm_value_t *out)
{
    *out = (um_py_pdm_value_t){.elements = at, .count = 1};
    if (column->element != 0 && (!column->array || column->count != 0)) {
        out->count = column->array ? column->count : 1;
        out->total = (uint64_t)out->count * column->element;
        return out->total <= room;
    }
    if (room < 4)
        return 0;
    uint32_t bytes = um_py_pdm_word(at, swap);
    if (!column->array) {
        out->total = 4 + (uint64_t)bytes;
        return bytes <= room - 4;
    }
    out->elements = at + 4;
    if (column->count != 0) /* the length of all is not believed, those of the elements are */
        return um_py_pdm_walk(out, column->count, room - 4, swap);
    if (bytes > room - 4)
        return 0;
    if (column->element == 0)
        return um_py_pdm_walk(out, 0, bytes, swap);
    out->count = bytes / column->element;
    out->total = 4 + (uint64_t)bytes;
    return bytes % column->element == 0;
}

static int um_py_pdm_append(um_py_pdm_column_t *column, const unsigned char *at, int swap)
{
    um_py_pdm_value_t value;
    (void)um_py_pdm_value(column, at, SIZE_MAX, swap, &value); /* it has been read before */
    if (column->element != 0 && um_py_pdm_is_text(column->code))
        return um_py_pdm_put_slots(column, value.elements, value.count);
    if (column->element != 0) {
        if (um_py_pdm_elements(column, value.count) != 0)
            return -1;
        um_py_pdm_put(column, column->elements, value.elements, value.count, swap);
        column->elements += value.count;
        return 0;
    }
    at = value.elements;
    for (uint32_t i = 0; i < value.count; i++) {
        uint32_t len = um_py_pdm_word(at, swap), shown = len;
        if ((column->code == PDM_TYPE_STRING || column->code == PDM_TYPE_UNICODE) && len != 0 && at[4 + len - 1] == 0)
            shown--;
        if (um_py_pdm_put_bytes(column, at + 4, shown) != 0)
            return -1;
        at += 4 + (size_t)len;
    }
    return 0;
}

/* A row without a value. What stands in its place is zero, and no memory that nobody has written. */
static int um_py_pdm_append_null(um_py_pdm_column_t *column)
{
    column->nulls++;
    if (column->array)
        return 0;
    if (um_py_pdm_is_text(column->code))
        return um_py_pdm_put_bytes(column, (const unsigned char *)"", 0);
    if (column->code == PDM_TYPE_BOOLEAN)
        um_py_pdm_put_bit(column->values, column->elements, 0);
    else
        memset(column->values + column->elements * column->width, 0, column->width);
    if (column->code == PDM_TYPE_DECIMAL)
        column->exponents[column->elements] = 0;
    column->elements++;
    return 0;
}

static int um_py_pdm_take_slot(um_py_pdm_column_t *column, size_t first, const um_py_pdm_block_t *block)
{
    const unsigned char **values = block->values + (size_t)column->place * UM_PY_PDM_ROWS;
    for (size_t i = 0; i < block->rows; i++) {
        if (values[i] == NULL ? um_py_pdm_append_null(column) != 0
                              : um_py_pdm_append(column, values[i], block->swap[i]) != 0)
            return -1;
        if (column->valid != NULL && values[i] != NULL)
            column->valid[(first + i) / 8] |= (unsigned char)(1u << (first + i) % 8);
        if (column->lists != NULL)
            column->lists[first + i + 1] = (int64_t)column->elements;
    }
    return 0;
}

/* ---- messages ---- */

/* The whole pass, on one thread. */
typedef struct um_py_pdm_pass_stct {
    um_py_pdm_column_t *columns;
    size_t fields;
    const unsigned char *key;
    uint32_t section;
    uint32_t needed; /* required fields that are not in the fixed section */
    um_py_pdm_head_t head;
    um_py_pdm_block_t *block;
} um_py_pdm_pass_t;

/* The values that the table of offsets tells: an error of PDM, or 0. */
static int um_py_pdm_entries(const um_py_pdm_pass_t *pass, const um_py_pdm_parts_t *parts, size_t row)
{
    uint64_t left = (uint64_t)parts->data_len * UM_PY_PDM_OVERLAP_MAX, nested = parts->data_len;
    uint32_t needed = pass->needed;
    for (uint32_t i = 0; i < parts->table_len; i += 8) {
        uint32_t id = um_py_pdm_word(parts->table + i, parts->swap);
        uint32_t offset = um_py_pdm_word(parts->table + i + 4, parts->swap);
        um_py_pdm_value_t value;
        if (id > 0x7fffffff || offset > 0x7fffffff)
            return PDM_ERR_MSG_INVALID;
        if (id >= pass->fields)
            continue; /* of a newer sender */
        const um_py_pdm_column_t *column = &pass->columns[id];
        if (column->plain || offset < pass->section || offset >= parts->data_len)
            return PDM_ERR_MSG_INVALID;
        const unsigned char **where = pass->block->values + (size_t)column->place * UM_PY_PDM_ROWS + row;
        if (*where != NULL ||
            !um_py_pdm_value(column, parts->data + offset, parts->data_len - offset, parts->swap, &value) ||
            value.total > left || (column->code == PDM_TYPE_MESSAGE && value.total > nested))
            return PDM_ERR_MSG_INVALID;
        left -= value.total;
        nested -= column->code == PDM_TYPE_MESSAGE ? value.total : 0;
        needed -= column->required != 0;
        *where = parts->data + offset;
    }
    return needed == 0 ? 0 : PDM_ERR_REQ_FIELD_NOT_SET;
}

/* Where the values of one message are: an error of PDM, or 0. */
static int um_py_pdm_find(um_py_pdm_pass_t *pass, const unsigned char *at, uint32_t length, size_t row)
{
    um_py_pdm_block_t *block = pass->block;
    um_py_pdm_parts_t parts;
    if (at == NULL)
        return PDM_ERR_MSG_INVALID;
    block->swap[row] = 0;
    if (um_py_pdm_same_head(&pass->head, at, length)) {
        block->data[row] = at + pass->head.size;
        return 0;
    }
    if (!um_py_pdm_parse(at, length, pass->key, &parts) || parts.data_len < pass->section)
        return PDM_ERR_MSG_INVALID;
    int error = um_py_pdm_entries(pass, &parts, row);
    if (error == 0 && pass->needed == 0)
        um_py_pdm_remember(&pass->head, at, &parts, pass->section);
    block->data[row] = parts.data;
    block->swap[row] = (unsigned char)parts.swap;
    block->some_swap |= parts.swap;
    return error;
}

/* The columns take the values of the messages at hand. */
static int um_py_pdm_take(const um_py_pdm_pass_t *pass, size_t first)
{
    for (size_t i = 0; i < pass->fields; i++) {
        um_py_pdm_column_t *column = &pass->columns[i];
        if ((column->plain ? um_py_pdm_take_plain(column, first, pass->block)
                           : um_py_pdm_take_slot(column, first, pass->block)) != 0)
            return PDM_ERR_NOMEM;
    }
    return 0;
}

static size_t um_py_pdm_rows_at_once(const um_py_pdm_pass_t *pass)
{
    size_t each = 64 + pass->section + 8 * (size_t)pass->block->slots, rows = UM_PY_PDM_BYTES / each & ~(size_t)63;
    return rows < 64 ? 64 : rows > UM_PY_PDM_ROWS ? UM_PY_PDM_ROWS : rows;
}

static um_py_pdm_block_t *um_py_pdm_block_new(void)
{
    void *block;
    if (posix_memalign(&block, 64, sizeof(um_py_pdm_block_t)) != 0)
        return NULL;
    memset(block, 0, sizeof(um_py_pdm_block_t));
    return block;
}

static size_t um_py_pdm_run(um_py_pdm_pass_t *pass, const char *base, size_t size, const char *offsets,
                            const char *lengths, size_t stride, size_t count, int *error)
{
    um_py_pdm_block_t *block = pass->block;
    size_t most = um_py_pdm_rows_at_once(pass);
    for (size_t first = 0; first < count; first += block->rows) {
        block->rows = count - first < most ? count - first : most;
        block->some_swap = 0;
        if (block->slots != 0)
            memset(block->values, 0, (size_t)block->slots * UM_PY_PDM_ROWS * sizeof *block->values);
        for (size_t i = 0; i < block->rows && *error == 0; i++) {
            uint32_t length;
            const unsigned char *at = um_py_pdm_at(base, size, offsets, lengths, stride, first + i, &length);
            if ((*error = um_py_pdm_find(pass, at, length, i)) != 0)
                return first + i;
        }
        if ((*error = um_py_pdm_take(pass, first)) != 0)
            return first;
    }
#if defined(__SSE2__)
    _mm_sfence(); /* other threads see what went past the cache */
#endif
    return count;
}

/*
 * Fills in the columns, one for each field of the definition in its order, which um_py_pdm_memory() has given memory
 * for so many rows, from `count` messages; base, offsets, lengths, stride and key are as of um_py_pdm_gather(). What
 * has grown is the caller's, to be freed one by one with free() or by um_py_pdm_columns_free(). The number of the first
 * message that is refused, with its error of PDM and nothing to be freed, or `count`.
 */
static size_t um_py_pdm_decode(const char *base, size_t size, const char *offsets, const char *lengths, size_t stride,
                               size_t count, const char *key, uint32_t section, um_py_pdm_column_t *columns,
                               size_t fields, int *error)
{
    um_py_pdm_pass_t pass = {.columns = columns, .fields = fields, .key = (const unsigned char *)key};
    uint64_t large = 0;
    pass.section = section;
    pass.block = um_py_pdm_block_new();
    *error = pass.block != NULL ? 0 : PDM_ERR_NOMEM;
    for (size_t i = 0; i < fields && *error == 0; i++) {
        pass.block->slots += !columns[i].plain;
        pass.needed += !columns[i].plain && columns[i].required;
        large += (uint64_t)columns[i].width * count;
        *error = um_py_pdm_prepare(&columns[i], count) == 0 ? 0 : PDM_ERR_NOMEM;
    }
    if (*error == 0 && pass.block->slots != 0) {
        pass.block->values = calloc((size_t)pass.block->slots * UM_PY_PDM_ROWS, sizeof *pass.block->values);
        *error = pass.block->values != NULL ? 0 : PDM_ERR_NOMEM;
    }
    if (*error == 0)
        pass.block->large = large > UM_PY_PDM_LARGE;
    size_t done = *error == 0 ? um_py_pdm_run(&pass, base, size, offsets, lengths, stride, count, error) : 0;
    if (*error != 0)
        um_py_pdm_columns_free(columns, fields);
    if (pass.block != NULL)
        free(pass.block->values);
    free(pass.block);
    return done;
}

static void um_py_pdm_free(void *buffer)
{
    free(buffer);
}
