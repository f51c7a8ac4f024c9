/* Attribute objects: made with defaults or as copies, read, and let go. How a value is set is in um_options.c.
 * Called by the attribute calls of the API, by the configuration and by objects that keep one.
 * Any thread; an object belongs to the thread that uses it. */
#include "config/um_attr.h"

#include <string.h>

#include "base/um_error.h"
#include "base/um_mem.h"
#include "config/um_config.h"
#include "config/um_options.h"

/* ---- contents ---- */

int um_attr_init(struct um_attr *attr, enum um_option_scope scope)
{
    size_t rows;
    um_option_table(scope, &rows);
    attr->scope = scope;
    attr->options = um_calloc(1, um_options_size(scope));
    attr->modified = um_calloc(rows, 1);
    if (attr->options == NULL || attr->modified == NULL) {
        um_free(attr->options);
        um_free(attr->modified);
        attr->options = NULL;
        attr->modified = NULL;
        return um_error_nomem("attribute object", (unsigned long)um_options_size(scope));
    }
    return 0;
}

int um_attr_check_scope(const struct um_attr *attr, enum um_option_scope scope)
{
    return attr->scope == scope ? 0
                                : um_error(UM_EINVAL, "CoreApi-9020-21",
                                           "attribute object %p: has options of scope %s: must be of scope %s",
                                           (const void *)attr, um_scope_name(attr->scope), um_scope_name(scope));
}

int um_attr_init_copy(struct um_attr *attr, const struct um_attr *from)
{
    size_t rows;
    um_option_table(from->scope, &rows);
    if (um_attr_init(attr, from->scope) != 0) {
        return -1;
    }
    if (um_options_copy(from->scope, attr->options, from->options) != 0) {
        um_attr_clear(attr);
        return -1;
    }
    memcpy(attr->modified, from->modified, rows);
    return 0;
}

/* Callbacks, strings and lists whose default is nothing stay zero. */
static bool has_default_value(const struct um_option *option)
{
    return option->alias_of == NULL && option->kind != UM_KIND_CALLBACK && !um_option_is_list(option) &&
           option->text_default[0] != '\0' && strcmp(option->text_default, "NULL") != 0;
}

int um_attr_init_defaults(struct um_attr *attr, enum um_option_scope scope, bool original_ports)
{
    size_t rows;
    const struct um_option *table = um_option_table(scope, &rows);
    if (um_attr_init(attr, scope) != 0) {
        return -1;
    }
    for (size_t i = 0; i < rows; i++) {
        enum um_option_note note;
        const char *original = original_ports ? um_option_original_default(&table[i]) : NULL;
        const char *text = original != NULL ? original : table[i].text_default;
        if (um_option_is_list(&table[i]) && table[i].alias_of == NULL) {
            ((struct um_option_list *)um_option_field(&table[i], attr->options))->item_size = table[i].item_size;
        }
        if (has_default_value(&table[i]) &&
            um_option_parse(&table[i], text, um_option_field(&table[i], attr->options), &note) != 0) {
            um_attr_clear(attr);
            return -1;
        }
    }
    return 0;
}

void um_attr_clear(struct um_attr *attr)
{
    if (attr->options != NULL) {
        um_options_clear(attr->scope, attr->options);
    }
    um_free(attr->options);
    um_free(attr->modified);
    attr->options = NULL;
    attr->modified = NULL;
}

/* ---- objects ---- */

static struct um_attr *new_object(void)
{
    struct um_attr *attr = um_calloc(1, sizeof *attr);
    if (attr == NULL) {
        um_error_nomem("attribute object", sizeof *attr);
    }
    return attr;
}

/* The object, or NULL when its contents could not be made. */
static struct um_attr *made(struct um_attr *attr, int result)
{
    if (result != 0) {
        um_free(attr);
        return NULL;
    }
    return attr;
}

struct um_attr *um_attr_create(enum um_option_scope scope, enum um_attr_start start)
{
    struct um_attr *attr = new_object();
    if (attr == NULL) {
        return NULL;
    }
    return made(attr,
                start == UM_ATTR_CURRENT ? um_config_attr_current(attr, scope) : um_config_attr_initial(attr, scope));
}

struct um_attr *um_attr_dup(const struct um_attr *original)
{
    struct um_attr *attr = new_object();
    return attr == NULL ? NULL : made(attr, um_attr_init_copy(attr, original));
}

void um_attr_destroy(struct um_attr *attr)
{
    if (attr != NULL) {
        um_attr_clear(attr);
        um_free(attr);
    }
}

int um_attr_get(const struct um_attr *attr, const char *name, void *value, size_t *len)
{
    return um_options_get(attr->scope, attr->options, name, value, len);
}

int um_attr_str_get(const struct um_attr *attr, const char *name, char *text, size_t *len)
{
    return um_options_str_get(attr->scope, attr->options, name, text, len);
}

int um_attr_dump(const struct um_attr *attr, int *size, lbm_config_option_t *opts)
{
    return um_options_dump(attr->scope, attr->options, size, opts);
}
