/* Fuzz target: values of options. The first two bytes choose the option, the third whether the rest is text or binary.
 * What is accepted is written as text that is accepted again and means the same. Host names resolve to nothing. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/um_log.h"
#include "base/um_mem.h"
#include "config/um_option_value.h"

static int no_host(const char *name, struct in_addr *out)
{
    return -1;
}

static int discard(int level, const char *message, void *clientd)
{
    return 0;
}

static const struct um_option *choose(unsigned number)
{
    size_t total = 0, count;
    for (int scope = 0; scope < UM_SCOPE_COUNT; scope++) {
        um_option_table(scope, &count);
        total += count;
    }
    number %= total;
    for (int scope = 0; scope < UM_SCOPE_COUNT; scope++) {
        const struct um_option *rows = um_option_table(scope, &count);
        if (number < count) {
            return um_option_storage(&rows[number]);
        }
        number -= (unsigned)count;
    }
    abort();
}

/* The text of a value means the value: written again it is the same text. An interface is looked up on this host. */
static void check_text(const struct um_option *option, const void *field)
{
    union {
        max_align_t align;
        char bytes[512];
    } second = {0};
    enum um_option_note note;
    char *text = um_option_format(option, field);
    if (text == NULL || option->size > sizeof second) {
        fprintf(stderr, "%s %s\n", um_scope_name(option->scope), option->name);
        abort();
    }
    if (option->kind != UM_KIND_CALLBACK && option->kind != UM_KIND_INTERFACE && option->kind < UM_KIND_LIST_DAEMON &&
        um_option_parse(option, text, second.bytes, &note) == 0) {
        char *again = um_option_format(option, second.bytes);
        if (again == NULL || strcmp(text, again) != 0) {
            fprintf(stderr, "%s %s: %s, then %s\n", um_scope_name(option->scope), option->name, text, again);
            abort();
        }
        um_free(again);
        um_option_clear(option, second.bytes);
    }
    um_free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    union {
        max_align_t align;
        char bytes[512];
    } field = {0};
    enum um_option_note note;
    if (size < 3) {
        return 0;
    }
    um_option_set_host_resolver(no_host);
    um_log_set_proc(discard, NULL);
    const struct um_option *option = choose((unsigned)data[0] << 8 | data[1]);
    size_t len = size - 3;
    char *rest = malloc(len + 1);
    if (rest == NULL || option->size > sizeof field) {
        abort();
    }
    memcpy(rest, data + 3, len);
    rest[len] = '\0';
    bool text = (data[2] & 1) != 0 || option->kind == UM_KIND_STRING; /* a binary string is a pointer of the caller */
    int rc = text ? um_option_parse(option, rest, field.bytes, &note) : -1;
    if (!text && option->kind != UM_KIND_CALLBACK && option->kind != UM_KIND_HASH) {
        rc = um_option_store(option, rest, len, field.bytes, &note);
    }
    if (rc == 0) {
        check_text(option, field.bytes);
    }
    um_option_clear(option, field.bytes);
    free(rest);
    return 0;
}
