/* Options as a whole structure: set, get, print, dump, copy and clear by name, with write-through, coupled and
 * aliased options. Used by attribute objects and, through um_options.h, by the live objects.
 * No state of its own; the owner of a structure serializes access to it. */
#include "config/um_options.h"

#include <stdio.h>
#include <stdint.h>
#include <string.h>

#include "base/um_error.h"
#include "base/um_log.h"
#include "base/um_mem.h"
#include "config/um_attr.h"
#include "config/um_option_checks.h"

/* The room that reading any scalar as text needs, whatever its length. */
enum { UM_SHORTEST_GET = 80 };

int um_option_unknown(enum um_option_scope scope, const char *name)
{
    char hint[160];
    um_option_hint(scope, name, hint, sizeof hint);
    return um_error(UM_EINVAL, "CoreApi-9020-8", "option %.120s unknown in scope %s%s%s", name, um_scope_name(scope),
                    hint[0] != '\0' ? ": " : "; ", hint[0] != '\0' ? hint : "docs/options.md lists all options");
}

void um_attr_log_note(const struct um_option *option, enum um_option_note note)
{
    static const struct {
        enum um_option_kind kind;
        const char *id;
    } ids[] = {{UM_KIND_LIST_DAEMON, "Core-9625-1"},
               {UM_KIND_LIST_SERVICE, "Core-10403-120"},
               {UM_KIND_LIST_BROKER, "Core-9640-1"},
               {UM_KIND_LIST_STORE, "Core-9626-1"},
               {UM_KIND_LIST_STORE_NAME, "Core-9626-2"}};
    if (note == UM_NOTE_EXCESS) {
        um_log(UM_LOG_WARNING, "Core-10779-01", "%s option %s: more than %s entries; the rest is ignored",
               um_scope_name(option->scope), option->name, option->maximum);
    }
    if (note == UM_NOTE_RAISED) {
        um_option_warn_raised(um_option_storage(option));
    }
    for (size_t i = 0; note == UM_NOTE_DUPLICATE && i < sizeof ids / sizeof ids[0]; i++) {
        if (ids[i].kind == option->kind) {
            um_log(UM_LOG_WARNING, ids[i].id, "%s option %s: an entry that is in the list already was skipped",
                   um_scope_name(option->scope), option->name);
        }
    }
}

/* ---- setting ---- */

static void tag(struct um_attr *attr, const struct um_option *option, enum um_attr_origin origin)
{
    if (attr->modified != NULL) {
        attr->modified[um_option_index(option)] = origin == UM_ORIGIN_APPLICATION ? UM_TAG_MODIFIED : UM_TAG_XML;
    }
}

/* XML does not reach an option that the application has set, not even through another one. */
static bool keeps_own_value(const struct um_attr *attr, const struct um_option *option, enum um_attr_origin origin)
{
    return origin == UM_ORIGIN_XML && attr->modified != NULL &&
           attr->modified[um_option_index(option)] == UM_TAG_MODIFIED;
}

static void set_int(struct um_attr *attr, const char *name, int value, enum um_attr_origin origin)
{
    const struct um_option *option = um_option_find(attr->scope, name);
    if (!keeps_own_value(attr, option, origin)) {
        *(int *)um_option_field(option, attr->options) = value;
        tag(attr, option, origin);
    }
}

/* Either the plain hash function or the extended one is in force: the last one set. */
static void couple_hashes(struct um_context_options *options, const struct um_option *option)
{
    static const lbm_str_hash_func_ex_t no_function;
    enum um_option_note note;
    if (strcmp(option->name, "resolver_string_hash_function") == 0) {
        options->resolver_string_hash_function_ex = no_function;
    } else if (strcmp(option->name, "resolver_string_hash_function_ex") == 0) {
        if (options->resolver_string_hash_function_ex.hashfunc != NULL) {
            options->resolver_string_hash_function.hashfunc = NULL;
        } else if (options->resolver_string_hash_function.hashfunc == NULL) {
            const struct um_option *plain = um_option_find(UM_SCOPE_CONTEXT, "resolver_string_hash_function");
            um_option_parse(plain, plain->text_default, &options->resolver_string_hash_function, &note);
        }
    }
}

/* The options that a new value of `option` changes besides itself. */
static void apply_couplings(struct um_attr *attr, const struct um_option *named, const struct um_option *option,
                            enum um_attr_origin origin)
{
    const struct um_option *other;
    for (size_t i = 0; (other = um_option_writes(named, i)) != NULL; i++) {
        if (!keeps_own_value(attr, other, origin)) {
            memcpy(um_option_field(other, attr->options), um_option_field(option, attr->options), option->size);
            tag(attr, other, origin);
        }
    }
    if (attr->scope == UM_SCOPE_CONTEXT) {
        couple_hashes(attr->options, option);
    }
    if (attr->scope == UM_SCOPE_RECEIVER && option->kind == UM_KIND_SWITCH &&
        *(int *)um_option_field(option, attr->options) == 1) {
        if (strcmp(option->name, "ume_use_ack_batching") == 0) {
            set_int(attr, "ume_explicit_ack_only", 0, origin);
        } else if (strcmp(option->name, "ume_explicit_ack_only") == 0) {
            set_int(attr, "ume_use_ack_batching", 0, origin);
        }
    }
}

/* The error names the storage; the caller knows the alias. */
static int name_alias_in_error(const struct um_option *named, const struct um_option *option)
{
    struct um_error_state state;
    um_error_save(&state);
    return um_error(state.errnum, "CoreApi-9020-20", "option %s, another name of %s: %.300s", named->name, option->name,
                    state.text);
}

int um_attr_assign(struct um_attr *attr, const struct um_option *named, const char *text, const void *value, size_t len,
                   enum um_attr_origin origin, enum um_option_note *note)
{
    const struct um_option *option = um_option_storage(named);
    void *field = um_option_field(option, attr->options);
    *note = UM_NOTE_NONE;
    int result =
        text != NULL ? um_option_parse(option, text, field, note) : um_option_store(option, value, len, field, note);
    if (result != 0) {
        return named == option ? -1 : name_alias_in_error(named, option);
    }
    tag(attr, option, origin);
    apply_couplings(attr, named, option, origin);
    return 0;
}

bool um_attr_is_modified(const struct um_attr *attr, const struct um_option *named)
{
    return attr->modified[um_option_index(um_option_storage(named))] == UM_TAG_MODIFIED;
}

bool um_attr_is_given(const struct um_attr *attr, const struct um_option *named)
{
    return attr->modified[um_option_index(um_option_storage(named))] != UM_TAG_NONE;
}

/* Switched off once, these two cannot be switched on again during operation. */
static bool stays_off(const struct um_option *option, const void *before, const void *after)
{
    bool one_way = strcmp(option->name, "resolver_active_source_interval") == 0 ||
                   strcmp(option->name, "resolver_query_interval") == 0;
    return one_way && *(const unsigned long *)before == 0 && *(const unsigned long *)after != 0;
}

static int assign_live(struct um_attr *attr, const struct um_option *named, const char *text, const void *value,
                       size_t len, enum um_option_note *note)
{
    const struct um_option *option = um_option_storage(named);
    if (option->when != UM_WHEN_LIVE) {
        return um_error(UM_EINVAL, "CoreApi-9020-9",
                        "option %s may not be set during operation; set it in a file or an attribute object first",
                        named->name);
    }
    uint64_t before = 0; /* live options are scalars of at most 8 bytes */
    void *field = um_option_field(option, attr->options);
    memcpy(&before, field, option->size);
    if (um_attr_assign(attr, named, text, value, len, UM_ORIGIN_APPLICATION, note) != 0) {
        return -1;
    }
    if (stays_off(option, &before, field)) {
        memcpy(field, &before, option->size);
        return um_error(UM_EINVAL, "CoreApi-9020-10", "option %s was set to 0 and cannot be switched on again",
                        named->name);
    }
    return 0;
}

static int set_named(struct um_attr *attr, const char *name, const char *text, const void *value, size_t len, bool live)
{
    if (name == NULL || (text == NULL && value == NULL)) {
        return um_error(UM_EINVAL, "CoreApi-9020-11", "attr, optname, and optval must not be NULL");
    }
    const struct um_option *named = um_option_find(attr->scope, name);
    enum um_option_note note;
    if (named == NULL) {
        return um_option_unknown(attr->scope, name);
    }
    int result = live ? assign_live(attr, named, text, value, len, &note)
                      : um_attr_assign(attr, named, text, value, len, UM_ORIGIN_APPLICATION, &note);
    if (result == 0) {
        um_attr_log_note(named, note);
        if (text != NULL && (named->flags & UM_OPT_HIDDEN) != 0) {
            um_option_warn_no_effect(named);
        }
    }
    return result;
}

int um_attr_set(struct um_attr *attr, const char *name, const void *value, size_t len)
{
    return set_named(attr, name, NULL, value, len, false);
}

int um_attr_str_set(struct um_attr *attr, const char *name, const char *text)
{
    return set_named(attr, name, text, NULL, 0, false);
}

int um_options_set(enum um_option_scope scope, void *options, const char *name, const void *value, size_t len,
                   bool live_set)
{
    struct um_attr attr = {.scope = scope, .options = options};
    return set_named(&attr, name, NULL, value, len, live_set);
}

int um_options_str_set(enum um_option_scope scope, void *options, const char *name, const char *text, bool live_set)
{
    struct um_attr attr = {.scope = scope, .options = options};
    return set_named(&attr, name, text, NULL, 0, live_set);
}

/* ---- getting ---- */

static const struct um_option *find_for_get(enum um_option_scope scope, const char *name, const void *value,
                                            const size_t *len)
{
    if (name == NULL || value == NULL || len == NULL) {
        um_error(UM_EINVAL, "CoreApi-9020-12", "attr, optname, optval, and optlen must not be NULL");
        return NULL;
    }
    const struct um_option *named = um_option_find(scope, name);
    if (named == NULL) {
        um_option_unknown(scope, name);
        return NULL;
    }
    return um_option_storage(named);
}

/* Stores `size` bytes when there is room, otherwise tells the need. */
static int give(const struct um_option *option, const void *bytes, size_t size, void *value, size_t *len)
{
    size_t room = *len;
    if (room < size) {
        *len = size;
        return um_error(UM_EINVAL, "CoreApi-9020-13", "option %s: optlen incorrect size (%zu, the value needs %zu)",
                        option->name, room, size);
    }
    if (size > 0) {
        memcpy(value, bytes, size);
    }
    *len = size;
    return 0;
}

int um_options_get(enum um_option_scope scope, const void *options, const char *name, void *value, size_t *len)
{
    const struct um_option *option = find_for_get(scope, name, value, len);
    if (option == NULL) {
        return -1;
    }
    const void *field = um_option_const_field(option, options);
    if (um_option_is_list(option)) {
        const struct um_option_list *list = field;
        return give(option, list->items, list->count * option->item_size, value, len);
    }
    if (option->kind != UM_KIND_STRING) {
        return give(option, field, option->size, value, len);
    }
    const char *text = *(char *const *)field == NULL ? "" : *(char *const *)field;
    if (give(option, text, strlen(text) + 1, value, len) != 0) {
        return -1;
    }
    *len = strlen(text);
    return 0;
}

int um_options_str_get(enum um_option_scope scope, const void *options, const char *name, char *text, size_t *len)
{
    const struct um_option *option = find_for_get(scope, name, text, len);
    if (option == NULL) {
        return -1;
    }
    bool any_length = option->kind == UM_KIND_STRING || um_option_is_list(option);
    if (!any_length && *len < UM_SHORTEST_GET) {
        return um_error(UM_EINVAL, "CoreApi-9020-14", "option %s: optlen too small (%zu, must be at least %d)",
                        option->name, *len, UM_SHORTEST_GET);
    }
    char *copy = um_option_format(option, um_option_const_field(option, options));
    if (copy == NULL) {
        return -1;
    }
    int result = give(option, copy, strlen(copy) + 1, text, len);
    if (result == 0) {
        *len = strlen(copy);
    }
    um_free(copy);
    return result;
}

/* ---- the whole structure ---- */

static bool is_dumped(const struct um_option *named)
{
    return um_option_storage(named)->kind != UM_KIND_CALLBACK && (named->flags & UM_OPT_HIDDEN) == 0;
}

int um_options_count(enum um_option_scope scope)
{
    size_t rows;
    const struct um_option *table = um_option_table(scope, &rows);
    int count = 0;
    for (size_t i = 0; i < rows; i++) {
        count += is_dumped(&table[i]);
    }
    return count;
}

static int dump_one(const struct um_option *named, const void *options, lbm_config_option_t *out)
{
    const struct um_option *option = um_option_storage(named);
    char *text = um_option_format(option, um_option_const_field(option, options));
    if (text == NULL && um_errnum() != UM_EOPNOTSUPP) {
        return -1;
    }
    snprintf(out->type, sizeof out->type, "%s", um_scope_name(named->scope));
    snprintf(out->oname, sizeof out->oname, "%s", named->name);
    snprintf(out->val, sizeof out->val, "%s", text == NULL ? "(application function)" : text);
    um_free(text);
    return 0;
}

int um_options_dump(enum um_option_scope scope, const void *options, int *count, lbm_config_option_t *out)
{
    size_t rows;
    const struct um_option *table = um_option_table(scope, &rows);
    int filled = 0;
    if (count == NULL || out == NULL || *count < 0) {
        return um_error(UM_EINVAL, "CoreApi-9020-15", "dump: size and opts must not be NULL and size not negative");
    }
    for (size_t i = 0; i < rows && filled < *count; i++) {
        if (!is_dumped(&table[i])) {
            continue;
        }
        if (dump_one(&table[i], options, &out[filled]) != 0) {
            return -1;
        }
        filled++;
    }
    *count = filled;
    return 0;
}

int um_options_copy(enum um_option_scope scope, void *dst, const void *src)
{
    size_t rows;
    const struct um_option *table = um_option_table(scope, &rows);
    memset(dst, 0, um_options_size(scope));
    for (size_t i = 0; i < rows; i++) {
        if (table[i].alias_of == NULL &&
            um_option_copy(&table[i], um_option_field(&table[i], dst), um_option_const_field(&table[i], src)) != 0) {
            um_options_clear(scope, dst);
            return -1;
        }
    }
    return 0;
}

void um_options_clear(enum um_option_scope scope, void *options)
{
    size_t rows;
    const struct um_option *table = um_option_table(scope, &rows);
    for (size_t i = 0; i < rows; i++) {
        if (table[i].alias_of == NULL) {
            um_option_clear(&table[i], um_option_field(&table[i], options));
        }
    }
}

uint32_t um_options_hash(enum um_option_scope scope, const void *options)
{
    size_t rows;
    const struct um_option *table = um_option_table(scope, &rows);
    uint32_t hash = 0;
    for (size_t i = 0; i < rows; i++) {
        if (table[i].alias_of == NULL) {
            hash = (hash ^ um_option_hash(&table[i], um_option_const_field(&table[i], options))) * 0x9e3779b1u;
        }
    }
    return hash;
}

bool um_options_equal(enum um_option_scope scope, const void *a, const void *b)
{
    size_t rows;
    const struct um_option *table = um_option_table(scope, &rows);
    for (size_t i = 0; i < rows; i++) {
        if (table[i].alias_of == NULL &&
            !um_option_equal(&table[i], um_option_const_field(&table[i], a), um_option_const_field(&table[i], b))) {
            return false;
        }
    }
    return true;
}
