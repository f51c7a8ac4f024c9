/* Fuzz target: wildcard patterns as they come from the network, and topics matched against them. The first byte says
 * how much of the rest is the pattern. Neither time nor memory may depend on the input beyond the limits of the
 * compiler. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/um_pattern.h"

#define NAME_MAX_LEN 255u /* of a topic or pattern in a datagram */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct um_pattern_cache *cache;
    if (cache == NULL && (cache = um_pattern_cache_create(4)) == NULL) {
        abort();
    }
    if (size < 1) {
        return 0;
    }
    size_t len = data[0] < size - 1 ? data[0] : size - 1, rest = size - 1 - len;
    char *pattern = malloc(len + 1), *topic = malloc(rest + 1); /* of exact size, so that reads beyond are seen */
    if (pattern == NULL || topic == NULL) {
        abort();
    }
    memcpy(pattern, data + 1, len);
    memcpy(topic, data + 1 + len, rest);
    struct um_pattern_error error = {0};
    const struct um_pattern *compiled = um_pattern_cache_get(cache, pattern, len, &error);
    if (compiled == NULL) {
        if (error.offset > len || memchr(error.text, '\0', sizeof error.text) == NULL) {
            abort();
        }
    } else {
        int code = 0;
        enum um_pattern_result result =
            um_pattern_match(compiled, topic, rest < NAME_MAX_LEN ? rest : NAME_MAX_LEN, &code);
        if (result == UM_PATTERN_ERROR && code == 0) {
            abort();
        }
    }
    if (um_pattern_cache_count(cache) > 4) {
        abort();
    }
    free(pattern);
    free(topic);
    return 0;
}
