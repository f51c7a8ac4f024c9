/* The nine fields of the documented example, and the task that every encoding gets: bytes of them, and them of bytes.
 * Included from C and from C++. */
#ifndef NINE_H
#define NINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define NINE_TEXT_MAX 64
#define NINE_BYTES_MAX 2048

/* As an application has them. Texts end in a NUL. */
struct nine {
    bool flag;
    int32_t number;
    float price;
    bool has_small; /* whether the optional field is there */
    int8_t small;
    char fixed[13];
    char text[NINE_TEXT_MAX];
    bool flags[3];
    int32_t count; /* of values */
    int32_t values[8];
    char pair[2][6];
};

/* What one encoding does. Objects that can be used again are made once, as each of the libraries advises. */
struct nine_encoding {
    const char *name;
    /* The bytes of `in`, where the library leaves them: in `room` for NINE_BYTES_MAX, or in memory of its own until the
     * next call. NULL: it failed. */
    const uint8_t *(*serialise)(const struct nine *in, uint8_t *room, size_t *len);
    /* Checks the bytes as one must those of a stranger and fills `out` in; false: they are not valid. */
    bool (*parse)(const uint8_t *bytes, size_t len, struct nine *out);
    /* NULL, or: as `parse`, but texts and arrays are only looked at where they are. */
    bool (*view)(const uint8_t *bytes, size_t len, uint64_t *sum);
};

/* Prints one line of JSON: nanoseconds for each message. The exit status of the program. */
int nine_main(int argc, char **argv, const struct nine_encoding *encoding);

#ifdef __cplusplus
}
#endif

#endif
