/* Fuzz target: source strings. What parses is written as text that parses to the same again. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "wire/um_source_string.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    lbm_transport_source_info_t first, second;
    char *text = malloc(size + 1), again[UM_SOURCE_STRING_MAX];
    if (text == NULL) {
        return 0;
    }
    memcpy(text, data, size);
    text[size] = '\0';
    memset(&first, 0, sizeof first);
    memset(&second, 0, sizeof second);
    if (um_source_string_parse(text, &first) == 0) {
        int len = um_source_string_format(&first, again, sizeof again);
        if (len < 0 || (size_t)len != strlen(again) || um_source_string_parse(again, &second) != 0 ||
            memcmp(&first, &second, sizeof first) != 0) {
            abort();
        }
    }
    free(text);
    return 0;
}
