/* Reads and writes the rules of filters. Owns a set of rules and its patterns. Any thread; a set is one thread's. */
#include "lbmmon/um_mon_filter.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <lbm/lbmmon.h>

#include "base/um_mem.h"
#include "lbmmon/um_mon_error.h"
#include "lbmmon/um_mon_options.h"

enum { PATTERN_MAX = 255 };

/* ---- names ---- */

static const struct {
    const char *name;
    const ProtobufCMessageDescriptor *descriptor;
} records[] = {
    {"ums", &lbmmon__umsmon_msg__descriptor},
    {"ump", &lbmmon__umpmon_msg__descriptor},
    {"dro", &lbmmon__dromon_msg__descriptor},
};
enum { RECORDS = sizeof records / sizeof records[0] };

/* In the order of LBMMON_FORMAT_FILTER_OFF and what follows it; the words of selections are those of filters, too. */
static const char *const operators[] = {"off", "on", "eq", "ne", "lt",    "gt",
                                        "eq",  "ne", "lt", "gt", "match", "match_regx"};

static int operator_named(const char *word, bool selects)
{
    int from = selects ? LBMMON_FORMAT_SELECT_EQ : LBMMON_FORMAT_FILTER_OFF;
    int to = selects ? LBMMON_FORMAT_SELECT_MATCH_REGX : LBMMON_FORMAT_FILTER_GT;
    for (int op = from; op <= to; op++) {
        if (strcasecmp(operators[op], word) == 0) {
            return op;
        }
    }
    return -1;
}

static bool is_selection(const struct um_mon_rule *rule)
{
    return rule->op >= LBMMON_FORMAT_SELECT_EQ;
}

/* ---- one rule ---- */

/* The path's last field; NULL: it is the record. */
static const ProtobufCFieldDescriptor *last(const struct um_mon_rule *rule)
{
    return rule->depth > 0 ? rule->path[rule->depth - 1] : NULL;
}

static int read_path(struct um_mon_rule *rule, const char *path)
{
    char copy[UM_MON_OPTION_NAME_MAX], *rest = copy, *word;
    snprintf(copy, sizeof copy, "%s", path);
    word = strsep(&rest, ".");
    for (size_t i = 0; i < RECORDS && rule->record == NULL; i++) {
        rule->record = strcmp(records[i].name, word) == 0 ? records[i].descriptor : NULL;
    }
    if (rule->record == NULL) {
        return um_mon_module_error(UM_MON_PB, "%.200s: must begin with ums, ump or dro", path);
    }
    const ProtobufCMessageDescriptor *message = rule->record;
    while ((word = strsep(&rest, ".")) != NULL) {
        const ProtobufCFieldDescriptor *field = message != NULL && rule->depth < UM_MON_RULE_DEPTH
                                                    ? protobuf_c_message_descriptor_get_field_by_name(message, word)
                                                    : NULL;
        if (field == NULL) {
            return um_mon_module_error(UM_MON_PB, "%.200s: there is no field \"%.60s\"", path, word);
        }
        rule->path[rule->depth++] = field;
        message = field->type == PROTOBUF_C_TYPE_MESSAGE ? field->descriptor : NULL;
        if (message != NULL && field->label == PROTOBUF_C_LABEL_REPEATED) {
            rule->home = rule->depth;
        }
    }
    return 0;
}

static bool is_number(const ProtobufCFieldDescriptor *field)
{
    return field != NULL && (field->type == PROTOBUF_C_TYPE_UINT64 || field->type == PROTOBUF_C_TYPE_UINT32 ||
                             field->type == PROTOBUF_C_TYPE_INT32 || field->type == PROTOBUF_C_TYPE_ENUM);
}

static int read_number(struct um_mon_rule *rule, const char *path, const char *value)
{
    const ProtobufCFieldDescriptor *field = last(rule);
    if (!is_number(field)) {
        return um_mon_module_error(UM_MON_PB, "%.200s: eq, ne, lt and gt are for numbers", path);
    }
    if (field->type == PROTOBUF_C_TYPE_ENUM) {
        const ProtobufCEnumValue *named = protobuf_c_enum_descriptor_get_value_by_name(field->descriptor, value);
        if (named != NULL) {
            rule->number = (uint64_t)named->value;
            return 0;
        }
    }
    char *end;
    errno = 0;
    rule->number = strtoull(value, &end, 10);
    if (!isdigit((unsigned char)value[0]) || *end != '\0' || errno != 0) {
        return um_mon_module_error(UM_MON_PB, "%.200s: \"%.60s\" must be a number from 0 to 2^64-1", path, value);
    }
    return 0;
}

static int read_text(struct um_mon_rule *rule, const char *path, const char *value)
{
    if (last(rule) == NULL || last(rule)->type != PROTOBUF_C_TYPE_STRING) {
        return um_mon_module_error(UM_MON_PB, "%.200s: match and match_regx are for texts", path);
    }
    rule->text = um_strdup(value);
    if (rule->text == NULL) {
        return um_mon_module_error(UM_MON_PB, "filters: out of memory");
    }
    if (rule->op == LBMMON_FORMAT_SELECT_MATCH_REGX) {
        struct um_pattern_error error = {.text = "it is too long"};
        size_t len = strlen(value);
        rule->pattern = len <= PATTERN_MAX ? um_pattern_compile(value, len, &error) : NULL;
        if (rule->pattern == NULL) {
            return um_mon_module_error(UM_MON_PB, "%.200s: pattern \"%.60s\": %s", path, value, error.text);
        }
    }
    return 0;
}

static int read_value(struct um_mon_rule *rule, const char *path, const char *value)
{
    switch (rule->op) {
    case LBMMON_FORMAT_FILTER_OFF:
    case LBMMON_FORMAT_FILTER_ON:
        return value[0] == '\0' ? 0 : um_mon_module_error(UM_MON_PB, "%.200s: off and on take no value", path);
    case LBMMON_FORMAT_SELECT_MATCH:
    case LBMMON_FORMAT_SELECT_MATCH_REGX:
        return read_text(rule, path, value);
    default:
        return read_number(rule, path, value);
    }
}

/* `words`: an operator, and what it compares with. */
static int read_rule(struct um_mon_rule *rule, const char *path, bool selects, char *words)
{
    char *value = words + strcspn(words, " \t");
    if (*value != '\0') {
        *value++ = '\0';
        value += strspn(value, " \t");
    }
    rule->op = operator_named(words, selects);
    if (rule->op < 0) {
        return um_mon_module_error(UM_MON_PB, "%.200s: \"%.60s\" must be %s", path, words,
                                   selects ? "eq, ne, lt, gt, match or match_regx" : "off, on, eq, ne, lt or gt");
    }
    return read_path(rule, path) != 0 ? -1 : read_value(rule, path, value);
}

static void clear_rule(struct um_mon_rule *rule)
{
    um_free(rule->text);
    um_pattern_free(rule->pattern);
    *rule = (struct um_mon_rule){0};
}

/* ---- a set ---- */

static bool same_field(const struct um_mon_rule *a, const struct um_mon_rule *b)
{
    return a->record == b->record && a->depth == b->depth &&
           memcmp(a->path, b->path, a->depth * sizeof a->path[0]) == 0;
}

/* Of filters of one field the last one holds, and one that is `on` need not be kept; selections all hold. */
static int add(struct um_mon_rules *rules, struct um_mon_rule *rule)
{
    rules->given = true;
    for (unsigned i = 0; i < rules->count && !is_selection(rule); i++) {
        if (!is_selection(&rules->list[i]) && same_field(rule, &rules->list[i])) {
            clear_rule(&rules->list[i]);
            memmove(&rules->list[i], &rules->list[i + 1], (rules->count - i - 1) * sizeof rules->list[0]);
            rules->count--;
            break;
        }
    }
    if (rule->op == LBMMON_FORMAT_FILTER_ON) {
        return 0;
    }
    if (rules->count == UM_MON_RULES_MAX) {
        clear_rule(rule);
        return um_mon_module_error(UM_MON_PB, "filters: there must be %d rules at most", UM_MON_RULES_MAX);
    }
    rules->list[rules->count++] = *rule;
    return 0;
}

static int add_option(struct um_mon_rules *rules, struct um_mon_option *option)
{
    bool selects = strncasecmp(option->name, "select", 6) == 0;
    if (!selects && strncasecmp(option->name, "filter", 6) != 0) {
        return 0; /* no rule */
    }
    struct um_mon_rule rule = {0};
    if (option->name[6] != '|') {
        return um_mon_module_error(UM_MON_PB, "%.60s: must be filter|FIELD=OPERATOR or select|FIELD=OPERATOR VALUE",
                                   option->name);
    }
    if (read_rule(&rule, option->name + 7, selects, option->value) != 0) {
        clear_rule(&rule);
        return -1;
    }
    return add(rules, &rule);
}

/* The next line, or part of one before a `;`, without lines that are comments. NULL: there is none. */
static const char *next_part(const char *text, size_t *len)
{
    for (;;) {
        text += strspn(text, " \t\r\n;");
        if (*text != '#') {
            *len = strcspn(text, "\n;");
            return *len > 0 ? text : NULL;
        }
        text += strcspn(text, "\n");
    }
}

static int read_all(struct um_mon_rules *rules, const char *text)
{
    struct um_mon_option *option = um_malloc(sizeof *option);
    char part[UM_MON_RULE_LEN + 1];
    int rc = option != NULL ? 0 : um_mon_module_error(UM_MON_PB, "filters: out of memory");
    size_t len;
    for (; rc == 0 && (text = next_part(text, &len)) != NULL; text += len) {
        bool fits = len < sizeof part;
        snprintf(part, sizeof part, "%.*s", (int)len, text);
        if (um_mon_option_next(part, option) != NULL) {
            rc = add_option(rules, option);
        } else if (strncasecmp(part, "filter|", 7) == 0 || strncasecmp(part, "select|", 7) == 0) {
            rc = um_mon_module_error(UM_MON_PB, "%.60s: there is no field of so long a name", part);
        }
        if (rc == 0 && !fits && (strncasecmp(part, "filter", 6) == 0 || strncasecmp(part, "select", 6) == 0)) {
            rc = um_mon_module_error(UM_MON_PB, "%.60s: must be %d bytes at most", part, UM_MON_RULE_LEN);
        }
    }
    um_free(option);
    return rc;
}

struct um_mon_rules *um_mon_rules_read(const char *text)
{
    struct um_mon_rules *rules = um_malloc(sizeof *rules);
    if (rules == NULL) {
        um_mon_module_error(UM_MON_PB, "filters: out of memory");
        return NULL;
    }
    rules->count = 0;
    rules->given = false;
    if (read_all(rules, text != NULL ? text : "") != 0) {
        um_mon_rules_free(rules);
        return NULL;
    }
    return rules;
}

void um_mon_rules_free(struct um_mon_rules *rules)
{
    for (unsigned i = 0; rules != NULL && i < rules->count; i++) {
        clear_rule(&rules->list[i]);
    }
    um_free(rules);
}

unsigned um_mon_rules_about(const struct um_mon_rules *rules, const ProtobufCMessageDescriptor *record)
{
    unsigned found = 0;
    for (unsigned i = 0; rules != NULL && i < rules->count; i++) {
        found += rules->list[i].record == record;
    }
    return found;
}

/* ---- text ---- */

struct text {
    char *out;
    size_t room, len;
};

static void append(struct text *text, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void append(struct text *text, const char *fmt, ...)
{
    size_t left = text->len < text->room ? text->room - text->len : 0;
    va_list args;
    va_start(args, fmt);
    int len = vsnprintf(left > 0 ? text->out + text->len : NULL, left, fmt, args);
    va_end(args);
    text->len += (size_t)len;
}

static const char *name_of(const ProtobufCMessageDescriptor *record)
{
    size_t i = 0;
    while (i < RECORDS - 1 && records[i].descriptor != record) {
        i++;
    }
    return records[i].name;
}

static void append_path(struct text *text, const ProtobufCMessageDescriptor *record,
                        const ProtobufCFieldDescriptor *const *path, unsigned depth)
{
    append(text, "%s", name_of(record));
    for (unsigned i = 0; i < depth; i++) {
        append(text, ".%s", path[i]->name);
    }
}

/* The schema has no message within itself. */
static void append_fields(struct text *text, const ProtobufCMessageDescriptor *record,
                          const ProtobufCMessageDescriptor *message, const ProtobufCFieldDescriptor **path,
                          unsigned depth)
{
    for (unsigned i = 0; i < message->n_fields && depth < UM_MON_RULE_DEPTH; i++) {
        path[depth] = &message->fields[i];
        if (path[depth]->type == PROTOBUF_C_TYPE_MESSAGE) {
            append_fields(text, record, path[depth]->descriptor, path, depth + 1);
        } else {
            append(text, "filter|");
            append_path(text, record, path, depth + 1);
            append(text, "=on;\n");
        }
    }
}

size_t um_mon_rules_print_fields(const ProtobufCMessageDescriptor *record, char *out, size_t room)
{
    const ProtobufCFieldDescriptor *path[UM_MON_RULE_DEPTH];
    struct text text = {out, room, 0};
    append_fields(&text, record, record, path, 0);
    return text.len;
}

size_t um_mon_rules_print(const struct um_mon_rules *rules, const ProtobufCMessageDescriptor *record, char *out,
                          size_t room)
{
    struct text text = {out, room, 0};
    append(&text, "%s", "");
    for (unsigned i = 0; rules != NULL && i < rules->count; i++) {
        const struct um_mon_rule *rule = &rules->list[i];
        if (record != NULL && rule->record != record) {
            continue;
        }
        append(&text, "%s|", is_selection(rule) ? "select" : "filter");
        append_path(&text, rule->record, rule->path, rule->depth);
        append(&text, "=%s", operators[rule->op]);
        if (rule->text != NULL) {
            append(&text, " %s", rule->text);
        } else if (rule->op != LBMMON_FORMAT_FILTER_OFF) {
            append(&text, " %" PRIu64, rule->number);
        }
        append(&text, ";\n");
    }
    return text.len;
}
