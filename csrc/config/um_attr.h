/* An attribute object: the options of one scope with a tag for each that tells who has set it: files and setopt calls,
 * XML, or nobody (built-in defaults). The application's attribute handles and the process's current defaults are
 * of this type. Not locked: an attribute object belongs to the thread that uses it. */
#ifndef UM_CONFIG_ATTR_H
#define UM_CONFIG_ATTR_H

#include <stdbool.h>

#include "config/um_option_table.h"
#include "config/um_option_value.h"

enum um_attr_tag { UM_TAG_NONE, UM_TAG_MODIFIED, UM_TAG_XML };

struct um_attr {
    enum um_option_scope scope;
    void *options;           /* the structure of the scope */
    unsigned char *modified; /* one enum um_attr_tag per row of the table */
};

/* 0, or -1 + UM_EINVAL: an object of another scope, which a program has cast. */
int um_attr_check_scope(const struct um_attr *attr, enum um_option_scope scope);
/* All three: 0, or -1 + error and nothing allocated. */
int um_attr_init(struct um_attr *attr, enum um_option_scope scope); /* every field zero */
int um_attr_init_copy(struct um_attr *attr, const struct um_attr *from);
int um_attr_init_defaults(struct um_attr *attr, enum um_option_scope scope, bool original_ports);
void um_attr_clear(struct um_attr *attr);

/* Objects of their own: the application's handles, and what a wildcard receiver keeps. NULL + error. */
enum um_attr_start { UM_ATTR_CURRENT, UM_ATTR_INITIAL }; /* the current defaults, or the built-in ones */
struct um_attr *um_attr_create(enum um_option_scope scope, enum um_attr_start start);
struct um_attr *um_attr_dup(const struct um_attr *original);
void um_attr_destroy(struct um_attr *attr); /* NULL: nothing */

/* What a new value comes from. Calls and files tag the option, XML does not; plain XML leaves tagged options alone
 * where setting one option sets another, overwriting XML does not. */
enum um_attr_origin { UM_ORIGIN_APPLICATION, UM_ORIGIN_XML, UM_ORIGIN_XML_OVERWRITE };

/* Set by text or by value (text NULL). `named` may be an alias. 0, or -1 + error and nothing changed. Logs nothing:
 * the caller gives `note` to um_attr_log_note when it holds no lock. */
int um_attr_assign(struct um_attr *attr, const struct um_option *named, const char *text, const void *value, size_t len,
                   enum um_attr_origin origin, enum um_option_note *note);
void um_attr_log_note(const struct um_option *option, enum um_option_note note);

bool um_attr_is_modified(const struct um_attr *attr, const struct um_option *named); /* by the application or a file */
bool um_attr_is_given(const struct um_attr *attr, const struct um_option *named);    /* by anybody, XML included */

/* What the attribute calls of every scope are made of: look the name up, set, log. */
int um_attr_set(struct um_attr *attr, const char *name, const void *value, size_t len);
int um_attr_str_set(struct um_attr *attr, const char *name, const char *text);

/* Reading, as um_options_get and its siblings. */
int um_attr_get(const struct um_attr *attr, const char *name, void *value, size_t *len);
int um_attr_str_get(const struct um_attr *attr, const char *name, char *text, size_t *len);
int um_attr_dump(const struct um_attr *attr, int *size, lbm_config_option_t *opts);

/* -1 + error "option NAME unknown". */
int um_option_unknown(enum um_option_scope scope, const char *name);

#endif
