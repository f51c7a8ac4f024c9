/* Names of fields: what is a name, and where it is found. A to Z are folded. With the option name_tree, and beyond a
 * few fields, a table by hash finds it; otherwise the fields are looked at one by one. The hash is keyed, because names
 * come from the network. After a deletion the table is made anew by the next lookup, in place. */
#include <string.h>

#include "base/um_hash.h"
#include "base/um_mem.h"
#include "sdm/um_sdm.h"

#define LINEAR_MAX 8
#define INTEGER_NAME_MAX 1000000

static char fold(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

/* Decimal digits, no leading zero but in "0", at most INTEGER_NAME_MAX. */
static bool is_integer_name(const char *name, size_t len)
{
    uint32_t number = 0;
    if (len > 7 || (len > 1 && name[0] == '0')) {
        return false;
    }
    for (size_t i = 0; i < len; i++) {
        if (name[i] < '0' || name[i] > '9') {
            return false;
        }
        number = number * 10 + (uint32_t)(name[i] - '0');
    }
    return number <= INTEGER_NAME_MAX;
}

int um_sdm_name_check(const struct um_sdm_attr *attr, const char *name, size_t len)
{
    if (len == 0) {
        return um_sdm_error(LBMSDM_ERR_INVALID_FIELD_NAME, "the name of a field must not be empty");
    }
    if (len > LBMSDM_MAX_FIELD_NAME_LENGTH) {
        return um_sdm_error(LBMSDM_ERR_NAMETOOLONG, "%.32s...: the name of a field has at most %d bytes, not %zu", name,
                            LBMSDM_MAX_FIELD_NAME_LENGTH, len);
    }
    if (attr->integer_index != 0 && !is_integer_name(name, len)) {
        return um_sdm_error(LBMSDM_ERR_INVALID_FIELD_NAME,
                            "%.*s: with the option integer_index a name is an integer 0..%d without leading zeros",
                            (int)len, name, INTEGER_NAME_MAX);
    }
    return LBMSDM_SUCCESS;
}

uint32_t um_sdm_name_hash(const char *name, size_t len)
{
    char folded[LBMSDM_MAX_FIELD_NAME_LENGTH];
    for (size_t i = 0; i < len; i++) {
        folded[i] = fold(name[i]);
    }
    return um_hash_bytes(folded, len);
}

static bool has_name(const struct um_sdm_field *field, const char *name, size_t len, uint32_t hash)
{
    if (field->hash != hash || field->name_len != len) {
        return false;
    }
    for (size_t i = 0; i < len; i++) {
        if (fold(field->name[i]) != fold(name[i])) {
            return false;
        }
    }
    return true;
}

static void put(lbmsdm_msg_t *msg, uint32_t index)
{
    uint32_t mask = msg->slot_count - 1, slot = msg->fields[index].hash & mask;
    while (msg->slots[slot] != 0) {
        slot = (slot + 1) & mask;
    }
    msg->slots[slot] = (uint16_t)(index + 1);
}

static void renew(lbmsdm_msg_t *msg)
{
    memset(msg->slots, 0, msg->slot_count * sizeof *msg->slots);
    for (uint32_t i = 0; i < msg->count; i++) {
        put(msg, i);
    }
    msg->slots_stale = false;
}

static struct um_sdm_field *find_in_table(lbmsdm_msg_t *msg, const char *name, size_t len, uint32_t hash)
{
    if (msg->slots_stale) {
        renew(msg);
    }
    uint32_t mask = msg->slot_count - 1;
    for (uint32_t slot = hash & mask; msg->slots[slot] != 0; slot = (slot + 1) & mask) {
        struct um_sdm_field *field = &msg->fields[msg->slots[slot] - 1];
        if (has_name(field, name, len, hash)) {
            return field;
        }
    }
    return NULL;
}

struct um_sdm_field *um_sdm_names_find(lbmsdm_msg_t *msg, const char *name, size_t len, uint32_t hash)
{
    if (msg->attr.name_tree != 0 && msg->count > LINEAR_MAX) {
        return find_in_table(msg, name, len, hash);
    }
    for (uint32_t i = 0; i < msg->count; i++) {
        if (has_name(&msg->fields[i], name, len, hash)) {
            return &msg->fields[i];
        }
    }
    return NULL;
}

/* Room in the table for `count` fields; at most half of it is ever used. */
int um_sdm_names_reserve(lbmsdm_msg_t *msg, size_t count)
{
    if (msg->attr.name_tree == 0 || count <= LINEAR_MAX || count * 2 <= msg->slot_count) {
        return LBMSDM_SUCCESS;
    }
    uint32_t wanted = 64;
    while (wanted < count * 2) {
        wanted *= 2;
    }
    uint16_t *slots = um_malloc(wanted * sizeof *slots);
    if (slots == NULL) {
        return um_sdm_no_memory(wanted * sizeof *slots);
    }
    um_free(msg->slots);
    msg->slots = slots;
    msg->slot_count = wanted;
    msg->slots_stale = true;
    return LBMSDM_SUCCESS;
}

/* The last field is new. */
void um_sdm_names_added(lbmsdm_msg_t *msg)
{
    if (msg->slot_count != 0 && !msg->slots_stale) {
        put(msg, msg->count - 1);
    }
}
