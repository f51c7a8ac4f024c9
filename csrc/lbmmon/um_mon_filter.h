/* Filters of protobuf records: rules of the options `filter|PATH=OPERATOR VALUE`, which decide about fields, and
 * `select|PATH=OPERATOR VALUE`, which decide about records and the elements of their lists. A set of rules belongs to
 * the module `pb`; read and applied by the thread that writes records. */
#ifndef UM_LBMMON_FILTER_H
#define UM_LBMMON_FILTER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <protobuf-c/protobuf-c.h>

#include "base/um_pattern.h"

enum {
    UM_MON_RULES_MAX = 256, /* of a set */
    UM_MON_RULE_DEPTH = 8,  /* fields of a path: the schema has five within each other */
    UM_MON_RULE_LEN = 1024  /* bytes of one rule */
};

/* What a rule is about, and what it asks. */
struct um_mon_rule {
    const ProtobufCMessageDescriptor *record;                /* UMSMonMsg, UMPMonMsg or DROMonMsg */
    const ProtobufCFieldDescriptor *path[UM_MON_RULE_DEPTH]; /* from the record to the field */
    unsigned depth;                                          /* fields of the path; 0: the record itself */
    unsigned home;              /* of them, to the element that a selection decides about */
    int op;                     /* LBMMON_FORMAT_FILTER_* or LBMMON_FORMAT_SELECT_* */
    uint64_t number;            /* it compares with */
    char *text;                 /* or with this */
    struct um_pattern *pattern; /* or that */
};

struct um_mon_rules {
    unsigned count;
    bool given; /* there was a rule in the text, be it one that changes nothing */
    struct um_mon_rule list[UM_MON_RULES_MAX];
};

/* NULL: a wrong rule, or no memory; the error of the module `pb` says which. Other options are passed over. */
struct um_mon_rules *um_mon_rules_read(const char *text);
void um_mon_rules_free(struct um_mon_rules *rules); /* NULL is harmless */
/* Of the rules, those about one kind of record. */
unsigned um_mon_rules_about(const struct um_mon_rules *rules, const ProtobufCMessageDescriptor *record);

/* Rewrites a packed record in place, shorter or as long as before. False: it is not to be sent. Bytes that are no
 * record stay as they are. */
bool um_mon_rules_apply(const struct um_mon_rules *rules, const ProtobufCMessageDescriptor *record, void *bytes,
                        size_t *len);

/* Rules as text, which um_mon_rules_read() takes: all fields of a record, each with `on`; and the rules of a set about
 * one kind of record, or about all with NULL. The length without the NUL; what has no room is left out. */
size_t um_mon_rules_print_fields(const ProtobufCMessageDescriptor *record, char *out, size_t room);
size_t um_mon_rules_print(const struct um_mon_rules *rules, const ProtobufCMessageDescriptor *record, char *out,
                          size_t room);

#endif
