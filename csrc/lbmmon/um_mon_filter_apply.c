/* Applies the rules of filters to a record as it is packed: the same bytes, without what the rules leave out, so that
 * nothing is copied and no message of a caller is changed. Owns nothing. The thread that writes records. */
#include <stdbool.h>
#include <string.h>

#include <lbm/lbmmon.h>

#include "lbmmon/um_mon_filter.h"

/* ---- bytes ---- */

enum { VARINT = 0, FIXED64 = 1, LENGTH = 2, FIXED32 = 5, VARINT_MAX = 10 };

struct span {
    const uint8_t *at, *end;
};

/* A field as it is in the bytes: from its key to its end. */
struct item {
    const uint8_t *from;
    uint32_t number;
    unsigned wire;
    uint64_t value;   /* of a varint */
    struct span body; /* of what has a length */
};

static bool read_varint(struct span *span, uint64_t *out)
{
    uint64_t value = 0;
    for (unsigned i = 0; i < VARINT_MAX && span->at < span->end; i++) {
        uint8_t byte = *span->at++;
        value |= (uint64_t)(byte & 0x7f) << (7 * i);
        if (byte < 0x80) {
            *out = value;
            return true;
        }
    }
    return false;
}

static uint8_t *write_varint(uint8_t *to, uint64_t value)
{
    for (; value >= 0x80; value >>= 7) {
        *to++ = (uint8_t)(value | 0x80);
    }
    *to++ = (uint8_t)value;
    return to;
}

static bool skip(struct span *span, uint64_t len)
{
    if (len > (uint64_t)(span->end - span->at)) {
        return false;
    }
    span->at += len;
    return true;
}

/* False: the end, or bytes that are no field; `span` tells which. */
static bool next_item(struct span *span, struct item *item)
{
    struct span ahead = *span;
    uint64_t key, len;
    bool good = ahead.at < ahead.end && read_varint(&ahead, &key) && key <= UINT32_MAX;
    if (!good) {
        return false;
    }
    *item = (struct item){.from = span->at, .number = (uint32_t)(key >> 3), .wire = (unsigned)(key & 7)};
    switch (item->wire) {
    case VARINT:
        good = read_varint(&ahead, &item->value);
        break;
    case FIXED64:
        good = skip(&ahead, 8);
        break;
    case FIXED32:
        good = skip(&ahead, 4);
        break;
    case LENGTH:
        good = read_varint(&ahead, &len);
        item->body.at = ahead.at;
        good = good && skip(&ahead, len);
        item->body.end = ahead.at;
        break;
    default:
        good = false;
        break;
    }
    if (good) {
        span->at = ahead.at;
    }
    return good;
}

/* ---- what a rule asks ---- */

/* The last one of a number is the one that holds. */
static bool find(struct span message, const ProtobufCFieldDescriptor *field, struct item *out)
{
    struct item item;
    bool found = false;
    while (next_item(&message, &item)) {
        if (item.number == field->id) {
            *out = item;
            found = true;
        }
    }
    return found;
}

static bool compares(int op, uint64_t value, uint64_t with)
{
    switch (op) {
    case LBMMON_FORMAT_FILTER_EQ:
    case LBMMON_FORMAT_SELECT_EQ:
        return value == with;
    case LBMMON_FORMAT_FILTER_NE:
    case LBMMON_FORMAT_SELECT_NE:
        return value != with;
    case LBMMON_FORMAT_FILTER_LT:
    case LBMMON_FORMAT_SELECT_LT:
        return value < with;
    case LBMMON_FORMAT_FILTER_GT:
    case LBMMON_FORMAT_SELECT_GT:
        return value > with;
    default:
        return op == LBMMON_FORMAT_FILTER_ON;
    }
}

/* Where a limit of the pattern was reached the rule holds: rather too much is told than too little. */
static bool text_matches(const struct um_mon_rule *rule, const char *text, size_t len)
{
    if (rule->pattern != NULL) {
        return um_pattern_match(rule->pattern, text, len, NULL) != UM_PATTERN_NO;
    }
    return strlen(rule->text) == len && memcmp(rule->text, text, len) == 0;
}

/* A selection holds for an element without the message that the field would be in: it is not about it. Fields that are
 * not there are 0 or empty. */
static bool selects(const struct um_mon_rule *rule, struct span element)
{
    struct item item = {0};
    for (unsigned i = rule->home; i + 1 < rule->depth; i++) {
        if (!find(element, rule->path[i], &item) || item.wire != LENGTH) {
            return true;
        }
        element = item.body;
    }
    bool there = find(element, rule->path[rule->depth - 1], &item);
    if (rule->text == NULL) {
        return compares(rule->op, there && item.wire == VARINT ? item.value : 0, rule->number);
    }
    bool has_text = there && item.wire == LENGTH;
    return text_matches(rule, has_text ? (const char *)item.body.at : "",
                        has_text ? (size_t)(item.body.end - item.body.at) : 0);
}

/* ---- rewriting ---- */

/* Rules that are about a message at some depth, or something within it. */
struct active {
    unsigned depth, count;
    const struct um_mon_rule *list[UM_MON_RULES_MAX];
};

struct output {
    uint8_t *to;
    bool kept;   /* a field other than the attributes of a record */
    bool parted; /* a message was left out */
    bool gone;   /* the message is to be left out itself */
};

static bool rewrite(const struct active *rules, const ProtobufCMessageDescriptor *kind, struct span from, uint8_t **to);

/* Whether the element of a list, or the record, is wanted. */
static bool wanted(const struct active *rules, struct span message)
{
    for (unsigned i = 0; i < rules->count; i++) {
        const struct um_mon_rule *rule = rules->list[i];
        if (rule->op >= LBMMON_FORMAT_SELECT_EQ ? rule->home == rules->depth && !selects(rule, message)
                                                : rule->depth == 0) {
            return false;
        }
    }
    return true;
}

/* Whether filters of the field itself keep it; *within has those about what is in it. */
static bool kept(const struct active *rules, const ProtobufCFieldDescriptor *field, const struct item *item,
                 struct active *within)
{
    within->depth = rules->depth + 1;
    within->count = 0;
    for (unsigned i = 0; i < rules->count; i++) {
        const struct um_mon_rule *rule = rules->list[i];
        if (rule->depth <= rules->depth || rule->path[rules->depth] != field) {
            continue;
        }
        if (rule->depth > rules->depth + 1) {
            within->list[within->count++] = rule;
        } else if (rule->op < LBMMON_FORMAT_SELECT_EQ && !compares(rule->op, item->value, rule->number)) {
            return false;
        }
    }
    return true;
}

static void copy(struct output *out, const uint8_t *from, const uint8_t *end)
{
    memmove(out->to, from, (size_t)(end - from));
    out->to += end - from;
}

/* A message within a message: its key, a length that is not longer than before, and what is left of it. */
static bool put_message(struct output *out, const struct active *within, const ProtobufCFieldDescriptor *field,
                        const struct item *item)
{
    uint8_t *start = out->to;
    uint64_t key = (uint64_t)item->number << 3 | LENGTH;
    size_t head = (size_t)(item->body.at - item->from);
    uint8_t *body = start + head, *end = body;
    if (!rewrite(within, field->descriptor, item->body, &end)) {
        return false;
    }
    size_t len = (size_t)(end - body);
    out->to = write_varint(write_varint(start, key), len); /* at most `head` bytes: these are the shortest forms */
    memmove(out->to, body, len);
    out->to += len;
    return true;
}

static void put_field(struct output *out, const struct active *rules, const ProtobufCFieldDescriptor *field,
                      const struct item *item, const uint8_t *end)
{
    struct active within;
    bool is_message = field->type == PROTOBUF_C_TYPE_MESSAGE && item->wire == LENGTH, is_kept;
    if (!kept(rules, field, item, &within)) {
        is_kept = false;
    } else if (is_message && within.count > 0) {
        is_kept = put_message(out, &within, field, item);
    } else {
        copy(out, item->from, end);
        is_kept = true;
    }
    out->kept |= is_kept && (rules->depth > 0 || strcmp(field->name, "attributes") != 0);
    if (!is_kept && is_message) {
        out->parted = true;
        out->gone |= (field->flags & PROTOBUF_C_FIELD_FLAG_ONEOF) != 0; /* without it the element says nothing */
    }
}

/* Writes what is left of the message to *to, which is not behind it. False: nothing is. */
static bool rewrite(const struct active *rules, const ProtobufCMessageDescriptor *kind, struct span from, uint8_t **to)
{
    struct output out = {.to = *to};
    struct item item;
    if (!wanted(rules, from)) {
        return false;
    }
    while (next_item(&from, &item)) {
        const ProtobufCFieldDescriptor *field = protobuf_c_message_descriptor_get_field(kind, item.number);
        if (field != NULL) {
            put_field(&out, rules, field, &item, from.at);
        } else {
            copy(&out, item.from, from.at);
            out.kept = true;
        }
    }
    copy(&out, from.at, from.end); /* what is no field */
    *to = out.to;
    return !out.gone && (out.kept || !out.parted);
}

bool um_mon_rules_apply(const struct um_mon_rules *rules, const ProtobufCMessageDescriptor *record, void *bytes,
                        size_t *len)
{
    struct active about;
    about.depth = about.count = 0;
    for (unsigned i = 0; rules != NULL && i < rules->count; i++) {
        if (rules->list[i].record == record) {
            about.list[about.count++] = &rules->list[i];
        }
    }
    if (about.count == 0) {
        return true;
    }
    uint8_t *to = bytes;
    bool left = rewrite(&about, record, (struct span){bytes, (const uint8_t *)bytes + *len}, &to);
    *len = (size_t)(to - (uint8_t *)bytes);
    return left;
}
