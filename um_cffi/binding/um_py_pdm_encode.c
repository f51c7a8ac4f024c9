/*
 * Many pre-defined messages made of columns: the bytes that the library makes of the same values one by one. One pass,
 * row by row. Any thread; nothing is kept. Compiled into um_cffi.binding._native behind um_py_pdm_arrow.c by build.py.
 */

/* The messages that were made; the buffers are the caller's, to be freed by um_py_pdm_free(). */
typedef struct um_py_pdm_encoded_stct {
    unsigned char *data;
    size_t size, room;
    int64_t *ends; /* where each message begins, and where the last one ends */
    um_py_pdm_fault_t fault;
} um_py_pdm_encoded_t;

/* The pass: the definition, its columns, what comes out. */
typedef struct um_py_pdm_writing_stct {
    const um_py_pdm_column_t *fields;
    size_t count;
    um_py_pdm_source_t *sources; /* one for each field */
    const unsigned char *key;
    uint32_t section;
    um_py_pdm_encoded_t *out;
} um_py_pdm_writing_t;

static int um_py_pdm_out(um_py_pdm_encoded_t *out, size_t more)
{
    if (out->room - out->size >= more)
        return 0;
    size_t room = um_py_pdm_larger(out->room, out->size + more);
    if (um_py_pdm_resize((void **)&out->data, room, 1) != 0)
        return um_py_pdm_fault(&out->fault, PDM_ERR_NOMEM, "no memory for the messages");
    out->room = room;
    return 0;
}

static void um_py_pdm_word_to(unsigned char *to, uint32_t value)
{
    memcpy(to, &value, sizeof value);
}

static void um_py_pdm_segment(unsigned char *to, unsigned char next, uint32_t size)
{
    memset(to, 0, 4);
    to[0] = next;
    um_py_pdm_word_to(to + 4, size);
}

static int um_py_pdm_row_given(const um_py_pdm_source_t *source, int64_t row)
{
    return source->given && um_py_pdm_present(&source->rows, row);
}

/* A text of a fixed length: characters, NUL, zeros. */
static int um_py_pdm_write_slot(const um_py_pdm_column_t *field, const um_py_pdm_input_t *input, int64_t at,
                                unsigned char *to, um_py_pdm_fault_t *fault)
{
    const unsigned char *bytes = NULL;
    int64_t len = 0;
    if (um_py_pdm_bytes_of(field, input, at, &bytes, &len, fault) != 0)
        return -1;
    if (len >= field->element)
        return um_py_pdm_fault(fault, PDM_ERR_EINVAL, "a text of %lld bytes: the field has room for %u", (long long)len,
                               (unsigned)field->element - 1);
    memcpy(to, bytes, (size_t)len);
    memset(to + len, 0, field->element - (size_t)len);
    return 0;
}

/* An element with a length before it. */
static int um_py_pdm_write_bytes(um_py_pdm_encoded_t *out, const um_py_pdm_column_t *field,
                                 const um_py_pdm_input_t *input, int64_t at)
{
    const unsigned char *bytes = NULL;
    int64_t len = 0;
    uint32_t nul = field->code == PDM_TYPE_STRING || field->code == PDM_TYPE_UNICODE;
    if (um_py_pdm_bytes_of(field, input, at, &bytes, &len, &out->fault) != 0 ||
        um_py_pdm_out(out, 4 + (size_t)len + nul) != 0)
        return -1;
    um_py_pdm_word_to(out->data + out->size, (uint32_t)len + nul);
    memcpy(out->data + out->size + 4, bytes, (size_t)len);
    if (nul)
        out->data[out->size + 4 + len] = 0;
    out->size += 4 + (size_t)len + nul;
    return 0;
}

/* `count` elements of a fixed size to `to`, which has room for them. */
static int um_py_pdm_write_fixed(const um_py_pdm_column_t *field, const um_py_pdm_input_t *input, int64_t first,
                                 int64_t count, unsigned char *to, um_py_pdm_fault_t *fault)
{
    int text = um_py_pdm_is_text(field->code);
    for (int64_t i = 0; i < count; i++, to += field->element) {
        if (text ? um_py_pdm_write_slot(field, input, first + i, to, fault) != 0
                 : um_py_pdm_put_element(field, input, first + i, to, fault) != 0)
            return -1;
    }
    return 0;
}

/* The elements of a row: one value, or those of a list, none of which may be null. */
static int um_py_pdm_elements_of(const um_py_pdm_column_t *field, const um_py_pdm_source_t *source, int64_t row,
                                 int64_t *first, int64_t *count, um_py_pdm_fault_t *fault)
{
    *first = row;
    *count = 1;
    if (!field->array)
        return 0;
    um_py_pdm_list(source, row, first, count);
    if (field->count != 0 ? *count != field->count : *count == 0)
        return um_py_pdm_fault(fault, PDM_ERR_EINVAL, "a list of %lld elements: the field has %u (0: at least one)",
                               (long long)*count, (unsigned)field->count);
    for (int64_t i = 0; i < *count; i++) {
        if (!um_py_pdm_present(&source->items, *first + i))
            return um_py_pdm_fault(fault, PDM_ERR_EINVAL, "an element of a list is null");
    }
    return 0;
}

/* The value of a field at the end of what is written. */
static int um_py_pdm_write_value(um_py_pdm_writing_t *writing, size_t at, int64_t row)
{
    const um_py_pdm_column_t *field = &writing->fields[at];
    const um_py_pdm_source_t *source = &writing->sources[at];
    const um_py_pdm_input_t *input = field->array ? &source->items : &source->rows;
    um_py_pdm_encoded_t *out = writing->out;
    int64_t first, count;
    if (um_py_pdm_elements_of(field, source, row, &first, &count, &out->fault) != 0)
        return -1;
    size_t before = field->array && (field->count == 0 || field->element == 0) ? 4 : 0, begin = out->size;
    if (field->element != 0 && count > 0x7fffffff / (int64_t)field->element)
        return um_py_pdm_fault(&out->fault, PDM_ERR_EINVAL, "a list has more than 2^31 bytes");
    if (um_py_pdm_out(out, before + (size_t)count * field->element) != 0)
        return -1;
    out->size += before;
    if (field->element != 0) {
        if (um_py_pdm_write_fixed(field, input, first, count, out->data + out->size, &out->fault) != 0)
            return -1;
        out->size += (size_t)count * field->element;
    }
    for (int64_t i = 0; field->element == 0 && i < count; i++) {
        if (um_py_pdm_write_bytes(out, field, input, first + i) != 0)
            return -1;
        if (out->size - begin > 0x7fffffff)
            return um_py_pdm_fault(&out->fault, PDM_ERR_EINVAL, "a list has more than 2^31 bytes");
    }
    if (before != 0)
        um_py_pdm_word_to(out->data + begin, (uint32_t)(out->size - begin - before));
    return 0;
}

/* How many values the table of offsets tells of; -1 when a required one is missing. */
static int um_py_pdm_entries_of(um_py_pdm_writing_t *writing, int64_t row)
{
    int found = 0;
    for (size_t i = 0; i < writing->count; i++) {
        const um_py_pdm_column_t *field = &writing->fields[i];
        int given = um_py_pdm_row_given(&writing->sources[i], row);
        if (!given && field->required) {
            writing->out->fault.field = (int)i;
            return um_py_pdm_fault(&writing->out->fault, PDM_ERR_REQ_FIELD_NOT_SET, "a required field is null");
        }
        found += given && !field->plain;
    }
    return found;
}

/* The values that are not in the fixed section, and the table that tells where they are. */
static int um_py_pdm_write_rest(um_py_pdm_writing_t *writing, int64_t row, size_t table, size_t data)
{
    um_py_pdm_encoded_t *out = writing->out;
    for (size_t i = 0; i < writing->count; i++) {
        if (writing->fields[i].plain || !um_py_pdm_row_given(&writing->sources[i], row))
            continue;
        um_py_pdm_word_to(out->data + table, (uint32_t)i);
        um_py_pdm_word_to(out->data + table + 4, (uint32_t)(out->size - data));
        table += 8;
        out->fault.field = (int)i;
        if (um_py_pdm_write_value(writing, i, row) != 0)
            return -1;
        if (out->size - data > 0x7fffffff - 64)
            return um_py_pdm_fault(&out->fault, PDM_ERR_EINVAL, "the message is longer than 2^31 bytes");
    }
    return 0;
}

static int um_py_pdm_write_section(um_py_pdm_writing_t *writing, int64_t row, size_t data)
{
    um_py_pdm_encoded_t *out = writing->out;
    for (size_t i = 0; i < writing->count; i++) {
        const um_py_pdm_column_t *field = &writing->fields[i];
        const um_py_pdm_source_t *source = &writing->sources[i];
        int64_t first, count;
        if (!field->plain)
            continue;
        out->fault.field = (int)i;
        if (um_py_pdm_elements_of(field, source, row, &first, &count, &out->fault) != 0 ||
            um_py_pdm_write_fixed(field, field->array ? &source->items : &source->rows, first, count,
                                  out->data + data + field->place, &out->fault) != 0)
            return -1;
    }
    return 0;
}

static int um_py_pdm_write_row(um_py_pdm_writing_t *writing, int64_t row)
{
    static const unsigned char version[] = {0x10, 1}; /* the offset table is first */
    um_py_pdm_encoded_t *out = writing->out;
    int entries = um_py_pdm_entries_of(writing, row);
    if (entries < 0)
        return -1;
    size_t begin = out->size, table = begin + 24, data = table + 8 * (size_t)entries + 8;
    if (um_py_pdm_out(out, data - begin + writing->section) != 0)
        return -1;
    out->size = data + writing->section;
    if (um_py_pdm_write_section(writing, row, data) != 0 || um_py_pdm_write_rest(writing, row, table, data) != 0)
        return -1;
    unsigned char *at = out->data + begin;
    if (out->size - begin > 0x7fffffff)
        return um_py_pdm_fault(&out->fault, PDM_ERR_EINVAL, "the message is longer than 2^31 bytes");
    um_py_pdm_word_to(at, 0xA71CCAFE);
    memcpy(at + 4, version, 2);
    memcpy(at + 6, writing->key, 6);
    um_py_pdm_word_to(at + 12, (uint32_t)(out->size - begin));
    um_py_pdm_segment(at + 16, 0, 8 * (uint32_t)entries);
    um_py_pdm_segment(out->data + data - 8, 0xff, (uint32_t)(out->size - data));
    return 0;
}

static int um_py_pdm_write_all(um_py_pdm_writing_t *writing, int64_t rows)
{
    um_py_pdm_encoded_t *out = writing->out;
    if ((uint64_t)rows > (SIZE_MAX - 64) / ((size_t)writing->section + 64) ||
        um_py_pdm_resize((void **)&out->ends, (size_t)rows + 1, sizeof *out->ends) != 0 ||
        um_py_pdm_out(out, ((size_t)writing->section + 32) * (size_t)rows + 1) != 0)
        return um_py_pdm_fault(&out->fault, PDM_ERR_NOMEM, "no memory for the messages");
    out->ends[0] = 0;
    for (int64_t row = 0; row < rows; row++) {
        if (um_py_pdm_write_row(writing, row) != 0) {
            out->fault.row = row;
            return -1;
        }
        out->ends[row + 1] = (int64_t)out->size;
    }
    return 0;
}

/*
 * Messages of `rows` rows behind `at` of the columns: for each field a type and an array, or NULL where there is none.
 * `key` is as of um_py_pdm_gather(). 0; -1 with the fault, and nothing to be freed.
 */
static int um_py_pdm_encode(const um_py_pdm_column_t *fields, size_t count, um_arrow_schema_t *const *schemas,
                            um_arrow_array_t *const *arrays, int64_t at, int64_t rows, const char *key,
                            uint32_t section, um_py_pdm_encoded_t *out)
{
    um_py_pdm_writing_t writing = {.fields = fields, .count = count, .section = section, .out = out};
    writing.key = (const unsigned char *)key;
    writing.sources = calloc(count + 1, sizeof *writing.sources);
    *out = (um_py_pdm_encoded_t){.fault.row = -1};
    int result = writing.sources != NULL ? 0 : um_py_pdm_fault(&out->fault, PDM_ERR_NOMEM, "no memory");
    for (size_t i = 0; i < count && result == 0; i++) {
        out->fault.field = (int)i;
        if (arrays[i] != NULL)
            result = um_py_pdm_open(&fields[i], schemas[i], arrays[i], at, rows, &writing.sources[i], &out->fault);
        else if (fields[i].required)
            result = um_py_pdm_fault(&out->fault, PDM_ERR_REQ_FIELD_NOT_SET, "there is no column of a required field");
    }
    if (result == 0)
        result = um_py_pdm_write_all(&writing, rows);
    free(writing.sources);
    if (result != 0) {
        free(out->data);
        free(out->ends);
        out->data = NULL;
        out->ends = NULL;
    }
    return result;
}
