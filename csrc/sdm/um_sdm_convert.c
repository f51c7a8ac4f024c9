/* Numbers of one field type read as another. Defined for every value, without undefined behaviour: docs/decisions.md
 * tells the rules. Pure functions; text is used where digits matter, free of the locale. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sdm/um_sdm.h"

#define EXPONENT_LOW (-128)
#define EXPONENT_HIGH 127

/* A number as it is stored, widened within its kind. */
struct number {
    enum { WHOLE, REAL32, REAL64, DECIMAL } kind;
    bool negative; /* of WHOLE: `bits` is an int64_t below 0 */
    uint64_t bits;
    double real;
    lbmsdm_decimal_t decimal;
};

bool um_sdm_is_number(uint16_t type)
{
    return type >= LBMSDM_TYPE_BOOLEAN && type <= LBMSDM_TYPE_DECIMAL;
}

static struct number whole(int64_t value)
{
    return (struct number){.kind = WHOLE, .negative = value < 0, .bits = (uint64_t)value};
}

static struct number load(uint16_t type, const void *cell)
{
    switch (type) {
    case LBMSDM_TYPE_INT8:
        return whole(*(const int8_t *)cell);
    case LBMSDM_TYPE_INT16:
        return whole(*(const int16_t *)cell);
    case LBMSDM_TYPE_UINT16:
        return whole(*(const uint16_t *)cell);
    case LBMSDM_TYPE_INT32:
        return whole(*(const int32_t *)cell);
    case LBMSDM_TYPE_UINT32:
        return whole(*(const uint32_t *)cell);
    case LBMSDM_TYPE_INT64:
        return whole(*(const int64_t *)cell);
    case LBMSDM_TYPE_UINT64:
        return (struct number){.kind = WHOLE, .bits = *(const uint64_t *)cell};
    case LBMSDM_TYPE_FLOAT:
        return (struct number){.kind = REAL32, .real = *(const float *)cell};
    case LBMSDM_TYPE_DOUBLE:
        return (struct number){.kind = REAL64, .real = *(const double *)cell};
    case LBMSDM_TYPE_DECIMAL:
        return (struct number){.kind = DECIMAL, .decimal = *(const lbmsdm_decimal_t *)cell};
    default: /* boolean, uint8 */
        return whole(*(const uint8_t *)cell);
    }
}

/* ---- to integers of `width` bits ---- */

static uint64_t highest(unsigned width, bool is_signed)
{
    return UINT64_MAX >> (64 - width + (is_signed ? 1 : 0));
}

/* A sign and a magnitude, in range or at its end. */
static uint64_t clamp(bool negative, uint64_t magnitude, unsigned width, bool is_signed)
{
    uint64_t high = highest(width, is_signed);
    if (!negative) {
        return magnitude > high ? high : magnitude;
    }
    return !is_signed ? 0 : 0 - (magnitude > high + 1 ? high + 1 : magnitude);
}

static uint64_t real_to_whole(double real, unsigned width, bool is_signed)
{
    if (isnan(real)) {
        return 0;
    }
    double magnitude = trunc(fabs(real));
    return clamp(real < 0, magnitude >= 18446744073709551616.0 ? UINT64_MAX : (uint64_t)magnitude, width, is_signed);
}

static uint64_t decimal_to_whole(lbmsdm_decimal_t decimal, unsigned width, bool is_signed)
{
    bool negative = decimal.mant < 0;
    uint64_t magnitude = negative ? 0 - (uint64_t)decimal.mant : (uint64_t)decimal.mant;
    for (int i = decimal.exp; i < 0 && magnitude != 0; i++) {
        magnitude /= 10;
    }
    for (int i = 0; i < decimal.exp && magnitude != 0; i++) {
        if (__builtin_mul_overflow(magnitude, 10u, &magnitude)) {
            magnitude = UINT64_MAX;
            break;
        }
    }
    return clamp(negative, magnitude, width, is_signed);
}

static uint64_t to_whole(const struct number *number, unsigned width, bool is_signed)
{
    switch (number->kind) {
    case WHOLE:
        return number->bits; /* modulo 2^width, by what is stored of it */
    case DECIMAL:
        return decimal_to_whole(number->decimal, width, is_signed);
    default:
        return real_to_whole(number->real, width, is_signed);
    }
}

static bool to_boolean(const struct number *number)
{
    return number->kind == WHOLE     ? number->bits != 0
           : number->kind == DECIMAL ? number->decimal.mant != 0
                                     : number->real != 0;
}

/* ---- to floating point ---- */

static void decimal_text(lbmsdm_decimal_t decimal, char *text, size_t size)
{
    snprintf(text, size, "%llde%d", (long long)decimal.mant, decimal.exp);
}

static float to_float(const struct number *number)
{
    char text[40];
    switch (number->kind) {
    case WHOLE:
        return number->negative ? (float)(int64_t)number->bits : (float)number->bits;
    case DECIMAL:
        decimal_text(number->decimal, text, sizeof text);
        return strtof(text, NULL);
    default:
        return (float)number->real;
    }
}

static double to_double(const struct number *number)
{
    char text[40];
    switch (number->kind) {
    case WHOLE:
        return number->negative ? (double)(int64_t)number->bits : (double)number->bits;
    case DECIMAL:
        decimal_text(number->decimal, text, sizeof text);
        return strtod(text, NULL);
    default:
        return number->real;
    }
}

/* ---- to decimals ---- */

/* The exponent brought into the range of an int8_t: zeros are appended while they fit, digits are cut. */
static lbmsdm_decimal_t fit_decimal(int64_t mant, int exp)
{
    while (exp > EXPONENT_HIGH) {
        int64_t more;
        if (__builtin_mul_overflow(mant, (int64_t)10, &more)) {
            return (lbmsdm_decimal_t){mant < 0 ? INT64_MIN : INT64_MAX, EXPONENT_HIGH};
        }
        mant = more;
        exp--;
    }
    while (exp < EXPONENT_LOW && mant != 0) {
        mant /= 10;
        exp++;
    }
    return (lbmsdm_decimal_t){mant, (int8_t)(mant == 0 ? 0 : exp)};
}

/* The fewest digits that read back as the same float or double. */
static void shortest(double real, bool is_float, char *text, size_t size)
{
    for (int digits = 1; digits <= (is_float ? 9 : 17); digits++) {
        snprintf(text, size, "%.*e", digits - 1, real);
        if (is_float ? strtof(text, NULL) == (float)real : strtod(text, NULL) == real) {
            return;
        }
    }
}

static lbmsdm_decimal_t real_to_decimal(double real, bool is_float)
{
    char text[64];
    int64_t mant = 0;
    int fraction = 0;
    bool after_point = false;
    if (!isfinite(real) || real == 0) {
        return (lbmsdm_decimal_t){0, 0};
    }
    shortest(fabs(real), is_float, text, sizeof text);
    char *p = text;
    for (; *p != 'e'; p++) {
        if (*p >= '0' && *p <= '9') {
            mant = mant * 10 + (*p - '0'); /* at most 17 digits */
            fraction += after_point;
        } else {
            after_point = true; /* whatever the locale has there */
        }
    }
    return fit_decimal(real < 0 ? -mant : mant, atoi(p + 1) - fraction);
}

static lbmsdm_decimal_t to_decimal(const struct number *number)
{
    switch (number->kind) {
    case WHOLE:
        return (lbmsdm_decimal_t){number->negative || number->bits <= INT64_MAX ? (int64_t)number->bits : INT64_MAX, 0};
    case DECIMAL:
        return number->decimal;
    default:
        return real_to_decimal(number->real, number->kind == REAL32);
    }
}

void um_sdm_convert(uint16_t from, const void *cell, uint16_t to, void *out)
{
    struct number number = load(from, cell);
    switch (to) {
    case LBMSDM_TYPE_BOOLEAN:
        *(uint8_t *)out = to_boolean(&number);
        break;
    case LBMSDM_TYPE_INT8:
    case LBMSDM_TYPE_UINT8:
        *(uint8_t *)out = (uint8_t)to_whole(&number, 8, to == LBMSDM_TYPE_INT8);
        break;
    case LBMSDM_TYPE_INT16:
    case LBMSDM_TYPE_UINT16:
        *(uint16_t *)out = (uint16_t)to_whole(&number, 16, to == LBMSDM_TYPE_INT16);
        break;
    case LBMSDM_TYPE_INT32:
    case LBMSDM_TYPE_UINT32:
        *(uint32_t *)out = (uint32_t)to_whole(&number, 32, to == LBMSDM_TYPE_INT32);
        break;
    case LBMSDM_TYPE_INT64:
    case LBMSDM_TYPE_UINT64:
        *(uint64_t *)out = to_whole(&number, 64, to == LBMSDM_TYPE_INT64);
        break;
    case LBMSDM_TYPE_FLOAT:
        *(float *)out = to_float(&number);
        break;
    case LBMSDM_TYPE_DOUBLE:
        *(double *)out = to_double(&number);
        break;
    default:
        *(lbmsdm_decimal_t *)out = to_decimal(&number);
        break;
    }
}
