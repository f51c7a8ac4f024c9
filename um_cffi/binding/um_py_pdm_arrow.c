/*
 * Arrow data as what messages are made of: a column for each field, checked before it is read. Who made it is not
 * trusted: lengths, offsets, children and buffers are looked at as the specification of the C data interface has them.
 * Any thread; nothing is kept. Compiled into um_cffi.binding._native behind um_py_arrow.c by build.py.
 */
#include <stdarg.h>
#include <stdio.h>

enum um_py_pdm_input_kind {
    UM_PY_PDM_NULLS,    /* no row has a value */
    UM_PY_PDM_SAME,     /* numbers as the message has them */
    UM_PY_PDM_BITS,     /* booleans */
    UM_PY_PDM_INTEGERS, /* to other integers, or to floats that have the same value */
    UM_PY_PDM_REALS,    /* floats of the other size */
    UM_PY_PDM_STAMPS,   /* times */
    UM_PY_PDM_PAIRS,    /* decimals of mantissa and exponent */
    UM_PY_PDM_WIDE,     /* decimals of 128 bits with one scale */
    UM_PY_PDM_OFFSETS,  /* texts or bytes, with offsets of `width` bytes */
    UM_PY_PDM_VIEWS,
    UM_PY_PDM_PIECES /* bytes of one length, `width` */
};

/* Values of one array of Arrow, from `first` on. */
typedef struct um_py_pdm_input_stct {
    int kind, is_signed;
    uint32_t width; /* bytes of a number, an offset or a piece */
    int64_t first;  /* the offset of the array */
    int64_t length; /* values behind it */
    int64_t scale;  /* units of a time in a second, or digits behind the point */
    const unsigned char *valid, *values, *data;
    const um_arrow_array_t *array; /* of views: their buffers */
    const um_arrow_array_t *mantissas, *exponents;
    int mantissa_width, mantissa_signed, exponent_width, exponent_signed;
} um_py_pdm_input_t;

/* A column: rows that are values, or lists of them. */
typedef struct um_py_pdm_source_stct {
    um_py_pdm_input_t rows, items; /* of lists: `rows` has their offsets, or kind PIECES with the size of each */
    int given, list;
} um_py_pdm_source_t;

typedef struct um_py_pdm_fault_stct {
    int error; /* of PDM, 0: none */
    int field;
    int64_t row; /* -1: the column */
    char text[200];
} um_py_pdm_fault_t;

static int um_py_pdm_fault(um_py_pdm_fault_t *fault, int error, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static int um_py_pdm_fault(um_py_pdm_fault_t *fault, int error, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    fault->error = error;
    vsnprintf(fault->text, sizeof fault->text, format, arguments);
    va_end(arguments);
    return -1;
}

static int um_py_pdm_malformed(um_py_pdm_fault_t *fault, const char *what)
{
    return um_py_pdm_fault(fault, PDM_ERR_EINVAL, "the Arrow data is not valid: %s", what);
}

/* ---- arrays ---- */

/* Whether an array has `rows` values behind `at`, and the buffers of its format. */
static int um_py_pdm_sound(const um_arrow_array_t *array, int64_t at, int64_t rows, int64_t buffers,
                           um_py_pdm_fault_t *fault)
{
    if (array == NULL || array->release == NULL)
        return um_py_pdm_malformed(fault, "an array is missing or was released");
    if (array->length < 0 || array->offset < 0 || array->offset > INT64_MAX / 64 || array->length > INT64_MAX / 64)
        return um_py_pdm_malformed(fault, "a length or an offset is out of range");
    if (at < 0 || rows < 0 || at > array->length || rows > array->length - at)
        return um_py_pdm_malformed(fault, "an array is shorter than what it is part of");
    if (array->n_buffers < buffers || (array->n_buffers > 0 && array->buffers == NULL))
        return um_py_pdm_malformed(fault, "buffers are missing");
    return 0;
}

/* The bits that tell which values there are; NULL: all. */
static int um_py_pdm_open_valid(const um_arrow_array_t *array, const unsigned char **valid, um_py_pdm_fault_t *fault)
{
    *valid = array->n_buffers > 0 && array->null_count != 0 ? array->buffers[0] : NULL;
    if (array->null_count > 0 && *valid == NULL)
        return um_py_pdm_malformed(fault, "values are null, and no bits tell which");
    return 0;
}

static inline int um_py_pdm_present(const um_py_pdm_input_t *input, int64_t at)
{
    int64_t bit = input->first + at;
    return input->kind != UM_PY_PDM_NULLS && (input->valid == NULL || (input->valid[bit / 8] >> bit % 8 & 1) != 0);
}

/* Bytes of an integer of this format, or 0. */
static int um_py_pdm_integer_format(const char *format, int *is_signed)
{
    static const char formats[] = "cCsSiIlL";
    const char *found = format[0] != 0 && format[1] == 0 ? strchr(formats, format[0]) : NULL;
    if (found == NULL)
        return 0;
    *is_signed = (found - formats) % 2 == 0;
    return 1 << (found - formats) / 2;
}

static int64_t um_py_pdm_offset(const um_py_pdm_input_t *input, int64_t at)
{
    int64_t wide;
    int32_t narrow;
    const unsigned char *from = input->values + (input->first + at) * input->width;
    if (input->width == 8) {
        memcpy(&wide, from, 8);
        return wide;
    }
    memcpy(&narrow, from, 4);
    return narrow;
}

/* Offsets go up from zero or more; `most` is what is behind them, or -1 where nobody knows. */
static int um_py_pdm_check_offsets(const um_py_pdm_input_t *input, int64_t rows, int64_t most, um_py_pdm_fault_t *fault)
{
    if (rows == 0)
        return 0;
    if (input->values == NULL)
        return um_py_pdm_malformed(fault, "a buffer of offsets is missing");
    int64_t last = um_py_pdm_offset(input, 0);
    if (last < 0)
        return um_py_pdm_malformed(fault, "an offset is negative");
    for (int64_t i = 1; i <= rows; i++) {
        int64_t next = um_py_pdm_offset(input, i);
        if (next < last)
            return um_py_pdm_malformed(fault, "offsets go down");
        last = next;
    }
    return most >= 0 && last > most ? um_py_pdm_malformed(fault, "an offset is beyond the values of the lists") : 0;
}

/* ---- formats ---- */

static int um_py_pdm_mismatch(const char *format, um_py_pdm_fault_t *fault)
{
    return um_py_pdm_fault(fault, PDM_ERR_EINVAL, "a column of the Arrow format '%.40s' does not fit: cast it first",
                           format);
}

static int um_py_pdm_open_number(const um_py_pdm_column_t *field, const char *format, um_py_pdm_input_t *out)
{
    static const char same[] = "bcCsSiIlLfg";
    int real = field->code == PDM_TYPE_FLOAT || field->code == PDM_TYPE_DOUBLE;
    if (format[0] == 0 || format[1] != 0)
        return -1;
    int width = um_py_pdm_integer_format(format, &out->is_signed);
    if (format[0] == 'b') {
        out->kind = UM_PY_PDM_BITS;
        return field->code == PDM_TYPE_BOOLEAN ? 0 : -1;
    }
    out->width = (uint32_t)(width != 0 ? width : format[0] == 'f' ? 4 : 8);
    if (field->code == PDM_TYPE_BOOLEAN || (width == 0 && (!real || (format[0] != 'f' && format[0] != 'g'))))
        return -1;
    out->kind = same[field->code] == format[0] ? UM_PY_PDM_SAME : width != 0 ? UM_PY_PDM_INTEGERS : UM_PY_PDM_REALS;
    return 0;
}

static int um_py_pdm_open_stamp(const char *format, um_py_pdm_input_t *out)
{
    static const char units[] = "smun";
    const char *found = strncmp(format, "ts", 2) == 0 && format[2] != 0 ? strchr(units, format[2]) : NULL;
    if (found == NULL || format[3] != ':')
        return -1;
    out->kind = UM_PY_PDM_STAMPS;
    out->width = 8;
    out->scale = 1;
    for (; found > units; found--)
        out->scale *= 1000;
    return 0;
}

static int um_py_pdm_open_bytes(const um_py_pdm_column_t *field, const char *format, um_py_pdm_input_t *out)
{
    int text = field->code != PDM_TYPE_BLOB && field->code != PDM_TYPE_MESSAGE;
    int utf8 = strcmp(format, "u") == 0 || strcmp(format, "U") == 0 || strcmp(format, "vu") == 0;
    if (utf8 && !text)
        return -1;
    if (strcmp(format, "vu") == 0 || strcmp(format, "vz") == 0) {
        out->kind = UM_PY_PDM_VIEWS;
        out->width = 16;
        return 0;
    }
    if (utf8 || strcmp(format, "z") == 0 || strcmp(format, "Z") == 0) {
        out->kind = UM_PY_PDM_OFFSETS;
        out->width = format[0] == 'U' || format[0] == 'Z' ? 8 : 4;
        return 0;
    }
    if (strncmp(format, "w:", 2) != 0 || format[2] < '0' || format[2] > '9')
        return -1;
    out->kind = UM_PY_PDM_PIECES;
    out->width = (uint32_t)strtoul(format + 2, NULL, 10);
    return out->width <= 0x7fffffff ? 0 : -1;
}

/* Mantissa and exponent of a structure, by their names. */
static int um_py_pdm_open_pairs(const um_arrow_schema_t *schema, const um_arrow_array_t *array, um_py_pdm_input_t *out,
                                um_py_pdm_fault_t *fault)
{
    if (schema->n_children != 2 || array->n_children != 2 || schema->children == NULL || array->children == NULL)
        return um_py_pdm_fault(fault, PDM_ERR_EINVAL, "decimals have the members mantissa and exponent");
    for (int i = 0; i < 2; i++) {
        const um_arrow_schema_t *part = schema->children[i];
        const um_arrow_array_t *values = array->children[i];
        const unsigned char *valid;
        int is_signed = 0, width;
        if (part == NULL || part->name == NULL || part->format == NULL || part->dictionary != NULL)
            return um_py_pdm_malformed(fault, "a member of a structure is missing");
        width = um_py_pdm_integer_format(part->format, &is_signed);
        if (um_py_pdm_sound(values, out->first, out->length, 2, fault) != 0 ||
            um_py_pdm_open_valid(values, &valid, fault) != 0)
            return -1;
        if (width == 0 || (out->length > 0 && values->buffers[1] == NULL))
            return um_py_pdm_fault(fault, PDM_ERR_EINVAL, "'%.40s' of a decimal is no column of integers", part->name);
        if (strncmp(part->name, "mant", 4) == 0) {
            out->mantissas = values;
            out->mantissa_width = width;
            out->mantissa_signed = is_signed;
        } else if (strncmp(part->name, "exp", 3) == 0) {
            out->exponents = values;
            out->exponent_width = width;
            out->exponent_signed = is_signed;
        }
    }
    if (out->mantissas == NULL || out->exponents == NULL)
        return um_py_pdm_fault(fault, PDM_ERR_EINVAL, "decimals have the members mantissa and exponent");
    out->kind = UM_PY_PDM_PAIRS;
    return 0;
}

static int um_py_pdm_open_wide(const char *format, um_py_pdm_input_t *out)
{
    int precision, scale, bits = 128;
    if (sscanf(format, "d:%d,%d,%d", &precision, &scale, &bits) < 2 || bits != 128 || scale < -127 || scale > 128)
        return -1;
    out->kind = UM_PY_PDM_WIDE;
    out->width = 16;
    out->scale = scale;
    return 0;
}

/* `length` values of an array behind `at`: elements of the field. */
static int um_py_pdm_open_values(const um_py_pdm_column_t *field, const um_arrow_schema_t *schema,
                                 const um_arrow_array_t *array, int64_t at, int64_t length, um_py_pdm_input_t *out,
                                 um_py_pdm_fault_t *fault)
{
    if (schema == NULL || schema->format == NULL)
        return um_py_pdm_malformed(fault, "a type is missing");
    const char *format = schema->format;
    *out = (um_py_pdm_input_t){.array = array, .length = length};
    if (um_py_pdm_sound(array, at, length, 0, fault) != 0)
        return -1;
    out->first = array->offset + at;
    if (strcmp(format, "n") == 0) {
        out->kind = UM_PY_PDM_NULLS;
        return 0;
    }
    if (schema->dictionary != NULL || array->dictionary != NULL)
        return um_py_pdm_fault(fault, PDM_ERR_EINVAL, "a column of a dictionary does not fit: cast it to its values");
    if (um_py_pdm_open_valid(array, &out->valid, fault) != 0)
        return -1;
    int result, decimal = field->code == PDM_TYPE_DECIMAL, needs = 2;
    if (decimal && strcmp(format, "+s") == 0)
        return um_py_pdm_open_pairs(schema, array, out, fault);
    if (decimal)
        result = um_py_pdm_open_wide(format, out);
    else if (field->code == PDM_TYPE_TIMESTAMP)
        result = um_py_pdm_open_stamp(format, out);
    else if (um_py_pdm_is_text(field->code))
        result = um_py_pdm_open_bytes(field, format, out);
    else
        result = um_py_pdm_open_number(field, format, out);
    if (result != 0)
        return um_py_pdm_mismatch(format, fault);
    needs = out->kind == UM_PY_PDM_OFFSETS || out->kind == UM_PY_PDM_VIEWS ? 3 : 2;
    if (um_py_pdm_sound(array, at, length, needs, fault) != 0)
        return -1;
    out->values = array->buffers[1];
    out->data = needs == 3 ? array->buffers[2] : NULL;
    if (out->kind == UM_PY_PDM_OFFSETS)
        return um_py_pdm_check_offsets(out, length, -1, fault);
    if (length > 0 && out->values == NULL && !(out->kind == UM_PY_PDM_PIECES && out->width == 0))
        return um_py_pdm_malformed(fault, "a buffer of values is missing");
    return 0;
}

/* The column of a field: `rows` rows behind `at`. */
static int um_py_pdm_open(const um_py_pdm_column_t *field, const um_arrow_schema_t *schema,
                          const um_arrow_array_t *array, int64_t at, int64_t rows, um_py_pdm_source_t *out,
                          um_py_pdm_fault_t *fault)
{
    const char *format = schema != NULL && schema->format != NULL ? schema->format : "";
    *out = (um_py_pdm_source_t){.given = 1, .list = field->array && strcmp(format, "n") != 0};
    if (!out->list)
        return um_py_pdm_open_values(field, schema, array, at, rows, &out->rows, fault);
    int pieces = strncmp(format, "+w:", 3) == 0, wide = strcmp(format, "+L") == 0;
    if (!pieces && !wide && strcmp(format, "+l") != 0)
        return um_py_pdm_mismatch(format, fault);
    if (um_py_pdm_sound(array, at, rows, pieces ? 1 : 2, fault) != 0)
        return -1;
    if (schema->n_children != 1 || array->n_children != 1 || schema->children == NULL || array->children == NULL ||
        array->children[0] == NULL)
        return um_py_pdm_malformed(fault, "a list has no values");
    int64_t behind = array->children[0]->length;
    um_py_pdm_input_t *lists = &out->rows;
    *lists = (um_py_pdm_input_t){.first = array->offset + at, .length = rows};
    lists->kind = pieces ? UM_PY_PDM_PIECES : UM_PY_PDM_OFFSETS;
    if (um_py_pdm_open_valid(array, &lists->valid, fault) != 0)
        return -1;
    if (pieces) {
        long long size = strtoll(format + 3, NULL, 10);
        if (size < 0 || size > 0x7fffffff || (size > 0 && lists->first + rows > behind / size))
            return um_py_pdm_malformed(fault, "lists of one size have too few values");
        lists->width = (uint32_t)size;
    } else {
        lists->width = wide ? 8 : 4;
        lists->values = array->buffers[1];
        if (um_py_pdm_check_offsets(lists, rows, behind < 0 ? 0 : behind, fault) != 0)
            return -1;
    }
    return um_py_pdm_open_values(field, schema->children[0], array->children[0], 0, behind, &out->items, fault);
}

/* The elements of a list. */
static void um_py_pdm_list(const um_py_pdm_source_t *source, int64_t row, int64_t *first, int64_t *count)
{
    if (source->rows.kind == UM_PY_PDM_PIECES) {
        *count = source->rows.width;
        *first = (source->rows.first + row) * *count;
        return;
    }
    *first = um_py_pdm_offset(&source->rows, row);
    *count = um_py_pdm_offset(&source->rows, row + 1) - *first;
}

/* ---- values ---- */

/* An integer: its bits, and whether it is negative. */
static uint64_t um_py_pdm_integer(const unsigned char *from, int width, int is_signed, int *negative)
{
    uint64_t value = um_py_pdm_number(from, (uint32_t)width, 0);
    int unused = 64 - 8 * width;
    if (is_signed)
        value = (uint64_t)((int64_t)(value << unused) >> unused);
    *negative = is_signed && (int64_t)value < 0;
    return value;
}

static int um_py_pdm_integer_fits(int code, uint64_t value, int negative)
{
    int is_signed = (code - PDM_TYPE_INT8) % 2 == 0, bits = 8 << (code - PDM_TYPE_INT8) / 2;
    if (negative)
        return is_signed && (int64_t)value >= -((int64_t)1 << (bits - 1));
    return is_signed ? value <= ((uint64_t)1 << (bits - 1)) - 1 : bits == 64 || value >> bits == 0;
}

static int um_py_pdm_put_integer(const um_py_pdm_column_t *field, const um_py_pdm_input_t *input,
                                 const unsigned char *from, unsigned char *to, um_py_pdm_fault_t *fault)
{
    int negative;
    uint64_t value = um_py_pdm_integer(from, (int)input->width, input->is_signed, &negative);
    if (field->code <= PDM_TYPE_UINT64) {
        if (!um_py_pdm_integer_fits(field->code, value, negative))
            return um_py_pdm_fault(fault, PDM_ERR_EINVAL, "%s%llu does not fit in the field", negative ? "-" : "",
                                   (unsigned long long)(negative ? 0 - value : value));
        memcpy(to, &value, field->width); /* of a little-endian host: the low bytes */
        return 0;
    }
    uint64_t size = negative ? 0 - value : value;
    int digits = field->code == PDM_TYPE_FLOAT ? 24 : 53;
    if (size != 0 && 64 - __builtin_clzll(size) - __builtin_ctzll(size) > digits)
        return um_py_pdm_fault(fault, PDM_ERR_EINVAL, "%s%llu would be rounded: cast the column to floats first",
                               negative ? "-" : "", (unsigned long long)size);
    double real = negative ? -(double)size : (double)size;
    float single = (float)real;
    memcpy(to, field->code == PDM_TYPE_FLOAT ? (const void *)&single : (const void *)&real, field->width);
    return 0;
}

static int um_py_pdm_put_real(const um_py_pdm_column_t *field, const unsigned char *from, unsigned char *to,
                              um_py_pdm_fault_t *fault)
{
    double real;
    float single;
    if (field->code == PDM_TYPE_DOUBLE) {
        memcpy(&single, from, 4);
        real = (double)single;
        memcpy(to, &real, 8);
        return 0;
    }
    memcpy(&real, from, 8);
    single = (float)real;
    if (real - real == 0 && single - single != 0) /* it was finite, and is not */
        return um_py_pdm_fault(fault, PDM_ERR_EINVAL, "%g is too large for a FLOAT", real);
    memcpy(to, &single, 4);
    return 0;
}

static int um_py_pdm_put_stamp(const um_py_pdm_input_t *input, const unsigned char *from, unsigned char *to,
                               um_py_pdm_fault_t *fault)
{
    int64_t time, scale = input->scale;
    memcpy(&time, from, 8);
    int64_t seconds = time / scale, rest = time % scale;
    if (rest < 0) {
        rest += scale;
        seconds--;
    }
    if (scale == 1000000000 && rest % 1000 != 0)
        return um_py_pdm_fault(fault, PDM_ERR_EINVAL, "a time has nanoseconds: cast the column to microseconds");
    if (seconds < INT32_MIN || seconds > INT32_MAX)
        return um_py_pdm_fault(fault, PDM_ERR_EINVAL, "a time is not within 32 bits of seconds from 1970");
    int32_t parts[2] = {(int32_t)seconds, (int32_t)(scale == 1000000000 ? rest / 1000 : rest * (1000000 / scale))};
    memcpy(to, parts, 8);
    return 0;
}

static int um_py_pdm_bit_of(const um_arrow_array_t *array, int64_t at)
{
    const unsigned char *valid = array->null_count != 0 ? array->buffers[0] : NULL;
    int64_t bit = array->offset + at;
    return valid == NULL || (valid[bit / 8] >> bit % 8 & 1) != 0;
}

static int um_py_pdm_put_pair(const um_py_pdm_input_t *input, int64_t at, unsigned char *to, um_py_pdm_fault_t *fault)
{
    int64_t index = input->first + at;
    int negative;
    if (!um_py_pdm_bit_of(input->mantissas, index) || !um_py_pdm_bit_of(input->exponents, index))
        return um_py_pdm_fault(fault, PDM_ERR_EINVAL,
                               "mantissa or exponent of a decimal is null: make it whole, or null");
    const unsigned char *mantissas = input->mantissas->buffers[1], *exponents = input->exponents->buffers[1];
    uint64_t exponent = um_py_pdm_integer(exponents + (input->exponents->offset + index) * input->exponent_width,
                                          input->exponent_width, input->exponent_signed, &negative);
    if (!um_py_pdm_integer_fits(PDM_TYPE_INT8, exponent, negative))
        return um_py_pdm_fault(fault, PDM_ERR_EINVAL, "the exponent of a decimal is not within -128 to 127");
    uint64_t mantissa = um_py_pdm_integer(mantissas + (input->mantissas->offset + index) * input->mantissa_width,
                                          input->mantissa_width, input->mantissa_signed, &negative);
    if (!um_py_pdm_integer_fits(PDM_TYPE_INT64, mantissa, negative))
        return um_py_pdm_fault(fault, PDM_ERR_EINVAL, "the mantissa of a decimal has more than 64 bits");
    to[0] = (unsigned char)exponent;
    memcpy(to + 1, &mantissa, 8);
    return 0;
}

static int um_py_pdm_put_wide(const um_py_pdm_input_t *input, const unsigned char *from, unsigned char *to,
                              um_py_pdm_fault_t *fault)
{
    int64_t low, high;
    memcpy(&low, from, 8);
    memcpy(&high, from + 8, 8);
    if (high != (low < 0 ? -1 : 0))
        return um_py_pdm_fault(fault, PDM_ERR_EINVAL, "the digits of a decimal have more than 64 bits");
    to[0] = (unsigned char)(-input->scale);
    memcpy(to + 1, &low, 8);
    return 0;
}

/* An element of a fixed size that is no text, as the message has it. */
static int um_py_pdm_put_element(const um_py_pdm_column_t *field, const um_py_pdm_input_t *input, int64_t at,
                                 unsigned char *to, um_py_pdm_fault_t *fault)
{
    int64_t index = input->first + at;
    switch (input->kind) {
    case UM_PY_PDM_SAME:
        memcpy(to, input->values + index * input->width, input->width);
        return 0;
    case UM_PY_PDM_BITS:
        to[0] = input->values[index / 8] >> index % 8 & 1;
        return 0;
    case UM_PY_PDM_INTEGERS:
        return um_py_pdm_put_integer(field, input, input->values + index * input->width, to, fault);
    case UM_PY_PDM_REALS:
        return um_py_pdm_put_real(field, input->values + index * input->width, to, fault);
    case UM_PY_PDM_STAMPS:
        return um_py_pdm_put_stamp(input, input->values + index * 8, to, fault);
    case UM_PY_PDM_PAIRS:
        return um_py_pdm_put_pair(input, at, to, fault);
    default:
        return um_py_pdm_put_wide(input, input->values + index * 16, to, fault);
    }
}

static int um_py_pdm_view_of(const um_py_pdm_input_t *input, int64_t index, const unsigned char **bytes, int64_t *len,
                             um_py_pdm_fault_t *fault)
{
    const unsigned char *view = input->values + index * 16;
    const um_arrow_array_t *array = input->array;
    int32_t parts[4];
    memcpy(parts, view, sizeof parts);
    *len = parts[0];
    *bytes = view + 4;
    if (parts[0] >= 0 && parts[0] <= 12)
        return 0;
    int64_t buffers = array->n_buffers - 3, size; /* the last one has their sizes */
    const unsigned char *sizes = array->buffers[array->n_buffers - 1];
    if (parts[0] < 0 || parts[2] < 0 || parts[2] >= buffers || parts[3] < 0 || sizes == NULL)
        return um_py_pdm_malformed(fault, "a view of a text is out of range");
    memcpy(&size, sizes + 8 * (size_t)parts[2], 8);
    if ((int64_t)parts[3] + parts[0] > size || array->buffers[2 + parts[2]] == NULL)
        return um_py_pdm_malformed(fault, "a view of a text is out of range");
    *bytes = (const unsigned char *)array->buffers[2 + parts[2]] + parts[3];
    return 0;
}

/* The bytes of a text, blob or message. */
static int um_py_pdm_bytes_of(const um_py_pdm_column_t *field, const um_py_pdm_input_t *input, int64_t at,
                              const unsigned char **bytes, int64_t *len, um_py_pdm_fault_t *fault)
{
    static const unsigned char nothing[1];
    if (input->kind == UM_PY_PDM_VIEWS) {
        if (um_py_pdm_view_of(input, input->first + at, bytes, len, fault) != 0)
            return -1;
    } else if (input->kind == UM_PY_PDM_PIECES) {
        *len = input->width;
        *bytes = *len != 0 ? input->values + (input->first + at) * *len : nothing;
    } else {
        int64_t begin = um_py_pdm_offset(input, at);
        *len = um_py_pdm_offset(input, at + 1) - begin;
        if (*len < 0 || begin < 0 || (*len > 0 && input->data == NULL))
            return um_py_pdm_malformed(fault, "a buffer of texts is missing");
        *bytes = *len != 0 ? input->data + begin : nothing;
    }
    if (*len > 0x7fffffff - 64)
        return um_py_pdm_fault(fault, PDM_ERR_EINVAL, "a value has more than 2^31 bytes");
    if (field->code == PDM_TYPE_MESSAGE) {
        static const unsigned char magics[2][4] = {{0xfe, 0xca, 0x1c, 0xa7}, {0xa7, 0x1c, 0xca, 0xfe}};
        int big = *len >= 16 && memcmp(*bytes, magics[1], 4) == 0;
        if (*len < 16 || (!big && memcmp(*bytes, magics[0], 4) != 0) || (*bytes)[4] >> 4 != 1 ||
            um_py_pdm_word(*bytes + 12, big) != (uint64_t)*len)
            return um_py_pdm_fault(fault, PDM_ERR_EINVAL, "a value is no pre-defined message");
    } else if (field->code != PDM_TYPE_BLOB && !um_py_utf8_valid(*bytes, (size_t)*len)) {
        return um_py_pdm_fault(fault, PDM_ERR_EINVAL, "a text is not UTF-8");
    }
    return 0;
}
