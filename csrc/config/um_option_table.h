/* The option table: one constant row per (scope, option), made by the preprocessor from options.def, and the look-up
 * by name. Everything that parses, prints, dumps or checks options works from these rows.
 * Read-only; any thread. */
#ifndef UM_CONFIG_OPTION_TABLE_H
#define UM_CONFIG_OPTION_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "config/um_options.h"

enum um_option_kind {
    UM_KIND_NUMBER,
    UM_KIND_SWITCH,
    UM_KIND_ENUM,
    UM_KIND_RATE, /* a number whose binary form may have 4 or 8 bytes */
    UM_KIND_PORT,
    UM_KIND_ADDRESS,
    UM_KIND_INTERFACE,
    UM_KIND_SESSION_ID,
    UM_KIND_MASK,
    UM_KIND_HASH,
    UM_KIND_CALLBACK,
    UM_KIND_STRING,
    UM_KIND_LIST_DAEMON, /* the lists that accumulate: one entry per set ... */
    UM_KIND_LIST_SERVICE,
    UM_KIND_LIST_BROKER,
    UM_KIND_LIST_STORE,
    UM_KIND_LIST_STORE_NAME,
    UM_KIND_LIST_STORE_GROUP,
    UM_KIND_LIST_QUEUE,
    UM_KIND_LIST_ULB_SET, /* ... and those that a set replaces */
    UM_KIND_LIST_ULB_SET_VALUE,
    UM_KIND_LIST_ULB_TYPE_VALUE
};

enum um_option_when { UM_WHEN_INIT, UM_WHEN_LIVE };
enum um_option_order { UM_ORDER_NA, UM_ORDER_NETWORK, UM_ORDER_HOST };
enum um_option_status { UM_STATUS_ACTS, UM_STATUS_NOT_YET, UM_STATUS_NO_EFFECT };

enum { UM_OPT_DEPRECATED = 1, UM_OPT_SESSION = 2, UM_OPT_EXTENSION = 4, UM_OPT_HIDDEN = 8 };

struct um_option {
    const char *name;
    const char *alias_of; /* NULL, or the option whose storage this name shares; only name, status and flags are set */
    enum um_option_scope scope;
    enum um_option_kind kind;
    enum um_option_when when;
    enum um_option_order order;
    enum um_option_status status;
    unsigned flags;
    size_t offset;    /* of the field in the structure of the scope */
    size_t size;      /* of the field */
    size_t item_size; /* of the binary value, or of one entry of a list */
    bool is_signed;
    const char *units;
    const char *text_default;
    const char *minimum;
    const char *maximum;
    const char *values;
};

/* The name of a scope as files write it ("wildcard_receiver"); the scope of a name in any case, or -1. */
const char *um_scope_name(enum um_option_scope scope);
int um_scope_find(const char *name);

const struct um_option *um_option_table(enum um_option_scope scope, size_t *count);
/* Row of a name in any case; NULL when unknown. An alias gives its own row: see um_option_storage. */
const struct um_option *um_option_find(enum um_option_scope scope, const char *name);
/* What may be meant by a name that is no option of the scope, as the end of a sentence; empty: no idea. */
void um_option_hint(enum um_option_scope scope, const char *name, char *text, size_t size);
/* The row that owns the storage: the target of an alias, otherwise the row itself. */
const struct um_option *um_option_storage(const struct um_option *option);
/* Position of a row in the table of its scope; the index of its modified tag. */
size_t um_option_index(const struct um_option *option);

/* What to use instead of a deprecated option, or NULL. */
const char *um_option_successor(const struct um_option *option);
/* Default when the original ports are asked for, or NULL. */
const char *um_option_original_default(const struct um_option *option);
/* The n-th option (from 0) that setting `option` sets too, or NULL. */
const struct um_option *um_option_writes(const struct um_option *option, size_t n);

size_t um_options_size(enum um_option_scope scope);

static inline void *um_option_field(const struct um_option *option, void *options)
{
    return (char *)options + option->offset;
}

static inline const void *um_option_const_field(const struct um_option *option, const void *options)
{
    return (const char *)options + option->offset;
}

static inline bool um_option_is_list(const struct um_option *option)
{
    return option->kind >= UM_KIND_LIST_DAEMON;
}

/* Lists to which every set appends one entry. */
static inline bool um_option_accumulates(const struct um_option *option)
{
    return option->kind >= UM_KIND_LIST_DAEMON && option->kind <= UM_KIND_LIST_QUEUE;
}

#endif
