/* One option value: text to field, field to text, binary checks, copy, compare. Scalars live in um_option_value.c,
 * lists in um_option_list.c. Nothing here knows about tags, files or objects.
 * Any thread; no shared state but the host resolver, which only tests and fuzz targets replace. */
#ifndef UM_CONFIG_OPTION_VALUE_H
#define UM_CONFIG_OPTION_VALUE_H

#include "config/um_option_table.h"

/* What a set did beyond storing the value; the caller logs it when it holds no lock. */
enum um_option_note {
    UM_NOTE_NONE,
    UM_NOTE_DUPLICATE, /* an entry that the list has already was skipped */
    UM_NOTE_EXCESS,    /* entries beyond the largest number were cut */
    UM_NOTE_RAISED     /* a time below the documented minimum: the minimum was stored */
};

/* Text into a field of the option's storage type. Strings and lists own memory: the field must hold a valid value
 * before. An accumulating list appends. 0, or -1 + error and the field unchanged. */
int um_option_parse(const struct um_option *option, const char *text, void *field, enum um_option_note *note);
/* Binary value into a field; the same rules. */
int um_option_store(const struct um_option *option, const void *value, size_t len, void *field,
                    enum um_option_note *note);
/* The field as text in a new string (um_free), or NULL + error. */
char *um_option_format(const struct um_option *option, const void *field);

/* dst holds no value before (all zero). 0, or -1 + error. */
int um_option_copy(const struct um_option *option, void *dst, const void *src);
void um_option_clear(const struct um_option *option, void *field);
bool um_option_equal(const struct um_option *option, const void *a, const void *b);
uint32_t um_option_hash(const struct um_option *option, const void *field); /* equal ones alike; keyed */

/* The lists, called by the functions above. */
int um_list_parse(const struct um_option *option, const char *text, struct um_option_list *list,
                  enum um_option_note *note);
int um_list_store(const struct um_option *option, const void *value, size_t len, struct um_option_list *list,
                  enum um_option_note *note);
char *um_list_format(const struct um_option *option, const struct um_option_list *list);

/* Parts shared with the lists. All return 0 or -1 + error naming the option and the text. */
int um_option_parse_address(const struct um_option *option, const char *text, struct in_addr *out);
int um_option_parse_interface(const struct um_option *option, const char *text, lbm_ipv4_address_mask_t *out);
int um_option_parse_mask(const struct um_option *option, const char *names, const char *text, lbm_ulong_t *out);
int um_option_parse_unsigned(const struct um_option *option, const char *text, lbm_uint64_t maximum, lbm_uint64_t *out);
/* Value of a name in a `name=number;...` list in any case. */
bool um_option_named_value(const char *values, const char *name, long long *out);
/* First name of a value, copied into out; false when it has none. */
bool um_option_value_name(const char *values, long long value, char *out, size_t room);

/* An error that names option, value and reason; always -1. */
int um_option_error(const struct um_option *option, const char *text, const char *reason);

/* How host names become addresses. NULL restores the system's resolver. */
typedef int (*um_host_resolver)(const char *name, struct in_addr *out);
void um_option_set_host_resolver(um_host_resolver resolver);

#endif
