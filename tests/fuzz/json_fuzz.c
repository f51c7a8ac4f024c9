/* Fuzz target: JSON of strangers. Texts that are read are written so that they read as the same again. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/um_json.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_text(const char *text)
{
    static struct um_json_object again;
    char out[8 * UM_JSON_MAX_TEXT];
    const char *why = NULL, *found;
    FILE *file = fmemopen(out, sizeof(out), "w");
    if (file == NULL) {
        return;
    }
    fputs("{\"t\":", file);
    um_json_put_text(file, text);
    fputs("}", file);
    long len = ftell(file);
    fclose(file);
    if (!um_json_read(out, (size_t)len, &again, &why)) {
        if (why == NULL || strcmp(why, "a text of more than 255 bytes") != 0) { /* U+FFFD is longer than a byte */
            abort();
        }
        return;
    }
    found = um_json_text(&again, "t");
    if (found == NULL || (strstr(found, "\xef\xbf\xbd") == NULL && strcmp(found, text) != 0)) {
        abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct um_json_object object;
    const char *why = NULL;
    char *exact = malloc(size > 0 ? size : 1); /* so that a byte too far is seen */
    if (exact == NULL) {
        return 0;
    }
    memcpy(exact, data, size);
    if (um_json_read(exact, size, &object, &why)) {
        for (unsigned i = 0; i < object.count; i++) {
            check_text(object.members[i].name);
            check_text(object.members[i].text);
        }
    } else if (why == NULL) {
        abort();
    }
    free(exact);
    return 0;
}
