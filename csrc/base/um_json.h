/* JSON for the daemons: objects without depth are read within a bound, texts of
 * any bytes are written so that they are valid. Pure functions on the caller's
 * memory; any thread. */
#ifndef UM_BASE_JSON_H
#define UM_BASE_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define UM_JSON_MAX_TEXT 255
#define UM_JSON_MAX_MEMBERS 16

/* One member of an object. Numbers are whole and not negative. */
struct um_json_member {
    char name[UM_JSON_MAX_TEXT + 1];
    char text[UM_JSON_MAX_TEXT + 1]; /* of a string; empty otherwise */
    uint64_t number;
    bool is_number;
};

struct um_json_object {
    struct um_json_member members[UM_JSON_MAX_MEMBERS];
    unsigned count;
};

/* An object of strings and whole numbers, with blanks around it and nothing else. Names and texts have at most
 * UM_JSON_MAX_TEXT bytes and no NUL. False: it is something else, and why is in *why. */
bool um_json_read(const char *data, size_t len, struct um_json_object *out, const char **why);
/* NULL: no string (no number) of that name; of several the first. */
const char *um_json_text(const struct um_json_object *object, const char *name);
const uint64_t *um_json_number(const struct um_json_object *object, const char *name);

/* The text in quotes. What is not UTF-8 becomes U+FFFD, byte by byte. */
void um_json_put_text(FILE *out, const char *text);

#endif
