/* The options of SDM messages: one table of names, ranges and defaults. Any thread; an attribute object belongs to the
 * thread that uses it. */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "sdm/um_sdm.h"

const struct um_sdm_attr um_sdm_defaults = {.field_array_allocation = 32, .name_tree = 1, .integer_index = 0};

static const struct option {
    const char *name;
    size_t at;
    int high; /* the lowest is 0 */
} options[] = {
    {"field_array_allocation", offsetof(struct um_sdm_attr, field_array_allocation), INT_MAX},
    {"name_tree", offsetof(struct um_sdm_attr, name_tree), 1},
    {"integer_index", offsetof(struct um_sdm_attr, integer_index), 1},
};

static const struct option *find(const char *name)
{
    for (size_t i = 0; i < sizeof options / sizeof options[0]; i++) {
        if (strcmp(options[i].name, name) == 0) {
            return &options[i];
        }
    }
    um_sdm_error(LBMSDM_ERR_EINVAL, "%.64s: no such option (field_array_allocation, name_tree, integer_index)", name);
    return NULL;
}

int um_sdm_attr_set(struct um_sdm_attr *attr, const char *name, long long value)
{
    const struct option *option = find(name);
    if (option == NULL) {
        return LBMSDM_FAILURE;
    }
    if (value < 0 || value > option->high) {
        return um_sdm_error(LBMSDM_ERR_EINVAL, "%s %lld: must be 0..%d", name, value, option->high);
    }
    *(int *)((char *)attr + option->at) = (int)value;
    return LBMSDM_SUCCESS;
}

int um_sdm_attr_set_text(struct um_sdm_attr *attr, const char *name, const char *text)
{
    char *end;
    errno = 0;
    long long value = strtoll(text, &end, 10);
    if (find(name) == NULL) {
        return LBMSDM_FAILURE;
    }
    if (end == text || *end != '\0' || errno != 0) {
        return um_sdm_error(LBMSDM_ERR_EINVAL, "%s \"%.64s\": must be an integer", name, text);
    }
    return um_sdm_attr_set(attr, name, value);
}

const int *um_sdm_attr_get(const struct um_sdm_attr *attr, const char *name)
{
    const struct option *option = find(name);
    return option == NULL ? NULL : (const int *)((const char *)attr + option->at);
}
