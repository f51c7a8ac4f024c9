/* The rows of options.def as constant tables, one per scope, and the binary search by name.
 * Used by every other file here. Read-only; any thread. */
#include "config/um_option_table.h"

#include <strings.h>

/* The bytes of one binary value. A string has none of its own: its length is its text. */
#define UM_ITEM_NUMBER(type) sizeof(type)
#define UM_ITEM_SWITCH(type) sizeof(type)
#define UM_ITEM_ENUM(type) sizeof(type)
#define UM_ITEM_RATE(type) sizeof(type)
#define UM_ITEM_PORT(type) sizeof(type)
#define UM_ITEM_ADDRESS(type) sizeof(type)
#define UM_ITEM_INTERFACE(type) sizeof(type)
#define UM_ITEM_SESSION_ID(type) sizeof(type)
#define UM_ITEM_MASK(type) sizeof(type)
#define UM_ITEM_HASH(type) sizeof(type)
#define UM_ITEM_CALLBACK(type) sizeof(type)
#define UM_ITEM_STRING(type) 0
#define UM_ITEM_LIST_DAEMON(type) sizeof(type)
#define UM_ITEM_LIST_SERVICE(type) sizeof(type)
#define UM_ITEM_LIST_BROKER(type) sizeof(type)
#define UM_ITEM_LIST_STORE(type) sizeof(type)
#define UM_ITEM_LIST_STORE_NAME(type) sizeof(type)
#define UM_ITEM_LIST_STORE_GROUP(type) sizeof(type)
#define UM_ITEM_LIST_QUEUE(type) sizeof(type)
#define UM_ITEM_LIST_ULB_SET(type) sizeof(type)
#define UM_ITEM_LIST_ULB_SET_VALUE(type) sizeof(type)
#define UM_ITEM_LIST_ULB_TYPE_VALUE(type) sizeof(type)

#define UM_IS_SIGNED(options, field) _Generic(((struct options *)0)->field, int : true, default : false)

#define UM_ROW(scope_id, options, field, type, kind_id, units_text, def, min, max, allowed, when_id, order_id,         \
               status_id, flag_bits)                                                                                   \
    {.name = #field,                                                                                                   \
     .scope = scope_id,                                                                                                \
     .kind = UM_KIND_##kind_id,                                                                                        \
     .when = UM_WHEN_##when_id,                                                                                        \
     .order = UM_ORDER_##order_id,                                                                                     \
     .status = UM_STATUS_##status_id,                                                                                  \
     .flags = flag_bits,                                                                                               \
     .offset = offsetof(struct options, field),                                                                        \
     .size = sizeof(((struct options *)0)->field),                                                                     \
     .item_size = UM_ITEM_##kind_id(type),                                                                             \
     .is_signed = UM_IS_SIGNED(options, field),                                                                        \
     .units = units_text,                                                                                              \
     .text_default = def,                                                                                              \
     .minimum = min,                                                                                                   \
     .maximum = max,                                                                                                   \
     .values = allowed},

#define UM_ALIAS_ROW(scope_id, alias, target, status_id, flag_bits)                                                    \
    {.name = #alias, .alias_of = #target, .scope = scope_id, .status = UM_STATUS_##status_id, .flags = flag_bits},

static const struct um_option context_rows[] = {
#define UM_CONTEXT(...) UM_ROW(UM_SCOPE_CONTEXT, um_context_options, __VA_ARGS__)
#define UM_CONTEXT_ALIAS(...) UM_ALIAS_ROW(UM_SCOPE_CONTEXT, __VA_ARGS__)
#include "config/options.def"
};
static const struct um_option source_rows[] = {
#define UM_SOURCE(...) UM_ROW(UM_SCOPE_SOURCE, um_source_options, __VA_ARGS__)
#define UM_SOURCE_ALIAS(...) UM_ALIAS_ROW(UM_SCOPE_SOURCE, __VA_ARGS__)
#include "config/options.def"
};
static const struct um_option receiver_rows[] = {
#define UM_RECEIVER(...) UM_ROW(UM_SCOPE_RECEIVER, um_receiver_options, __VA_ARGS__)
#define UM_RECEIVER_ALIAS(...) UM_ALIAS_ROW(UM_SCOPE_RECEIVER, __VA_ARGS__)
#include "config/options.def"
};
static const struct um_option wildcard_receiver_rows[] = {
#define UM_WILDCARD_RECEIVER(...) UM_ROW(UM_SCOPE_WILDCARD_RECEIVER, um_wildcard_receiver_options, __VA_ARGS__)
#include "config/options.def"
};
static const struct um_option event_queue_rows[] = {
#define UM_EVENT_QUEUE(...) UM_ROW(UM_SCOPE_EVENT_QUEUE, um_event_queue_options, __VA_ARGS__)
#include "config/options.def"
};
static const struct um_option hfx_rows[] = {
#define UM_HFX(...) UM_ROW(UM_SCOPE_HFX, um_hfx_options, __VA_ARGS__)
#include "config/options.def"
};
static const struct um_option xsp_rows[] = {
#define UM_XSP(...) UM_ROW(UM_SCOPE_XSP, um_xsp_options, __VA_ARGS__)
#include "config/options.def"
};

#define UM_COUNT(rows) (sizeof(rows) / sizeof((rows)[0]))

static const struct {
    const char *name;
    const struct um_option *rows;
    size_t count;
    size_t size;
} scopes[UM_SCOPE_COUNT] = {
    [UM_SCOPE_CONTEXT] = {"context", context_rows, UM_COUNT(context_rows), sizeof(struct um_context_options)},
    [UM_SCOPE_SOURCE] = {"source", source_rows, UM_COUNT(source_rows), sizeof(struct um_source_options)},
    [UM_SCOPE_RECEIVER] = {"receiver", receiver_rows, UM_COUNT(receiver_rows), sizeof(struct um_receiver_options)},
    [UM_SCOPE_WILDCARD_RECEIVER] = {"wildcard_receiver", wildcard_receiver_rows, UM_COUNT(wildcard_receiver_rows),
                                    sizeof(struct um_wildcard_receiver_options)},
    [UM_SCOPE_EVENT_QUEUE] = {"event_queue", event_queue_rows, UM_COUNT(event_queue_rows),
                              sizeof(struct um_event_queue_options)},
    [UM_SCOPE_HFX] = {"hfx", hfx_rows, UM_COUNT(hfx_rows), sizeof(struct um_hfx_options)},
    [UM_SCOPE_XSP] = {"xsp", xsp_rows, UM_COUNT(xsp_rows), sizeof(struct um_xsp_options)},
};

/* What options.def says about pairs of options. */
struct relation {
    enum um_option_scope scope;
    const char *name;
    const char *other;
};

static const struct relation successors[] = {
#define UM_SUCCESSOR(scope, name, text) {UM_SCOPE_##scope, #name, text},
#include "config/options.def"
};
static const struct relation written_through[] = {
#define UM_WRITES(scope, name, target) {UM_SCOPE_##scope, #name, #target},
#include "config/options.def"
};
static const struct relation original_ports[] = {
#define UM_ORIGINAL_PORT(scope, name, value) {UM_SCOPE_##scope, #name, value},
#include "config/options.def"
};

const char *um_scope_name(enum um_option_scope scope)
{
    return scopes[scope].name;
}

int um_scope_find(const char *name)
{
    for (int scope = 0; scope < UM_SCOPE_COUNT; scope++) {
        if (strcasecmp(name, scopes[scope].name) == 0) {
            return scope;
        }
    }
    return -1;
}

const struct um_option *um_option_table(enum um_option_scope scope, size_t *count)
{
    *count = scopes[scope].count;
    return scopes[scope].rows;
}

const struct um_option *um_option_find(enum um_option_scope scope, const char *name)
{
    const struct um_option *rows = scopes[scope].rows;
    size_t low = 0, high = scopes[scope].count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = strcasecmp(name, rows[middle].name);
        if (order == 0) {
            return &rows[middle];
        }
        if (order < 0) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    return NULL;
}

const struct um_option *um_option_storage(const struct um_option *option)
{
    return option->alias_of == NULL ? option : um_option_find(option->scope, option->alias_of);
}

size_t um_option_index(const struct um_option *option)
{
    return (size_t)(option - scopes[option->scope].rows);
}

/* The n-th relation of an option in a list, or NULL. */
static const char *related(const struct relation *list, size_t count, const struct um_option *option, size_t n)
{
    for (size_t i = 0; i < count; i++) {
        if (list[i].scope == option->scope && strcasecmp(list[i].name, option->name) == 0 && n-- == 0) {
            return list[i].other;
        }
    }
    return NULL;
}

const char *um_option_successor(const struct um_option *option)
{
    return related(successors, UM_COUNT(successors), option, 0);
}

const char *um_option_original_default(const struct um_option *option)
{
    return related(original_ports, UM_COUNT(original_ports), option, 0);
}

const struct um_option *um_option_writes(const struct um_option *option, size_t n)
{
    const char *name = related(written_through, UM_COUNT(written_through), option, n);
    return name == NULL ? NULL : um_option_find(option->scope, name);
}

size_t um_options_size(enum um_option_scope scope)
{
    return scopes[scope].size;
}
