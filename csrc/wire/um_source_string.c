/* Format and parse source strings. Pure functions on text, no state; called from any thread.
 * Addresses are in network order, everything else in host order, as in lbm_transport_source_info_t. */
#include "wire/um_source_string.h"

#include <arpa/inet.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/um_error.h"

/* What follows the first colon; written in the order in which the text has it. */
enum part {
    END,
    SOURCE_IP,
    SOURCE_PORT,
    SESSION_PADDED,
    SESSION_OPTIONAL,
    SESSION_PLAIN,
    GROUP,
    DEST_PORT,
    TRANSPORT_ID
};

#define MAX_PARTS 6

struct form {
    int type;
    const char *name;
    enum part parts[MAX_PARTS];
};

static const struct form forms[] = {
    {LBM_TRANSPORT_TYPE_TCP, "TCP", {SOURCE_IP, SOURCE_PORT, SESSION_OPTIONAL}},
    {LBM_TRANSPORT_TYPE_LBTRM, "LBTRM", {SOURCE_IP, SOURCE_PORT, SESSION_PADDED, GROUP, DEST_PORT}},
    {LBM_TRANSPORT_TYPE_LBTRU, "LBT-RU", {SOURCE_IP, SOURCE_PORT, SESSION_OPTIONAL}},
    {LBM_TRANSPORT_TYPE_LBTIPC, "LBT-IPC", {SESSION_PLAIN, TRANSPORT_ID}},
    {LBM_TRANSPORT_TYPE_LBTSMX, "LBT-SMX", {SESSION_PLAIN, TRANSPORT_ID}},
    {LBM_TRANSPORT_TYPE_BROKER, "BROKER", {END}},
};

#define FORM_COUNT (sizeof forms / sizeof forms[0])

/* Written digit by digit: receivers of many topics fill it in as they deliver. */
static char *put_number(char *at, uint32_t value, unsigned base, int digits_min)
{
    char digits[10];
    int count = 0;
    do {
        digits[count++] = "0123456789abcdef"[value % base];
        value /= base;
    } while (value != 0);
    while (count < digits_min) {
        digits[count++] = '0';
    }
    while (count > 0) {
        *at++ = digits[--count];
    }
    return at;
}

static char *put_address(char *at, lbm_uint32_t address)
{
    const uint8_t *bytes = (const uint8_t *)&address;
    for (int i = 0; i < 4; i++) {
        if (i > 0) {
            *at++ = '.';
        }
        at = put_number(at, bytes[i], 10, 1);
    }
    return at;
}

static char *put_part(char *at, enum part part, const lbm_transport_source_info_t *info)
{
    *at++ = ':';
    switch (part) {
    case SOURCE_IP:
        return put_address(at, info->src_ip);
    case SOURCE_PORT:
        return put_number(at, info->src_port, 10, 1);
    case SESSION_OPTIONAL:
        return info->session_id == 0 ? at - 1 : put_number(at, info->session_id, 16, 8);
    case SESSION_PADDED:
        return put_number(at, info->session_id, 16, 8);
    case SESSION_PLAIN:
        return put_number(at, info->session_id, 16, 1);
    case GROUP:
        return put_address(at, info->mc_group);
    case DEST_PORT:
        return put_number(at, info->dest_port, 10, 1);
    case TRANSPORT_ID:
        return put_number(at, info->transport_id, 10, 1);
    case END:
        break;
    }
    return at - 1;
}

/* UM_SOURCE_STRING_MAX has room for every form. */
int um_source_string_format(const lbm_transport_source_info_t *info, char *out, size_t size)
{
    const struct form *form = NULL;
    for (size_t i = 0; i < FORM_COUNT; i++) {
        if (forms[i].type == info->type) {
            form = &forms[i];
        }
    }
    if (form == NULL) {
        return um_error(UM_EINVAL, "CoreApi-9010-1", "transport type %d: has no source string", info->type);
    }
    char text[UM_SOURCE_STRING_MAX];
    size_t len = strlen(form->name);
    memcpy(text, form->name, len);
    char *at = text + len;
    for (const enum part *part = form->parts; *part != END; part++) {
        at = put_part(at, *part, info);
    }
    if (info->topic_idx != 0) {
        *at++ = '[';
        at = put_number(at, info->topic_idx, 10, 1);
        *at++ = ']';
    }
    *at = '\0';
    len = (size_t)(at - text);
    if (len >= size) {
        return um_error(UM_EINVAL, "CoreApi-9010-2", "source string %s: needs %zu bytes, the buffer has %zu", text,
                        len + 1, size);
    }
    memcpy(out, text, len + 1);
    return (int)len;
}

/* Digits of `base` up to a value of `max`; at least one. Advances *at. */
static bool take_number(const char **at, unsigned base, uint32_t max, uint32_t *out)
{
    uint64_t value = 0;
    const char *p = *at;
    for (;; p++) {
        unsigned digit;
        if (*p >= '0' && *p <= '9') {
            digit = (unsigned)(*p - '0');
        } else if (*p >= 'a' && *p <= 'f') {
            digit = (unsigned)(*p - 'a') + 10;
        } else if (*p >= 'A' && *p <= 'F') {
            digit = (unsigned)(*p - 'A') + 10;
        } else {
            break;
        }
        if (digit >= base) {
            break;
        }
        value = value * base + digit;
        if (value > max) {
            return false;
        }
    }
    if (p == *at) {
        return false;
    }
    *at = p;
    *out = (uint32_t)value;
    return true;
}

static bool take_address(const char **at, lbm_uint32_t *out)
{
    char text[INET_ADDRSTRLEN];
    size_t len = strspn(*at, "0123456789.");
    struct in_addr address;
    if (len == 0 || len >= sizeof text) {
        return false;
    }
    memcpy(text, *at, len);
    text[len] = '\0';
    if (inet_pton(AF_INET, text, &address) != 1) {
        return false;
    }
    *out = address.s_addr;
    *at += len;
    return true;
}

static bool take_part(enum part part, const char **at, lbm_transport_source_info_t *info)
{
    uint32_t number = 0;
    if (part == SESSION_OPTIONAL && **at != ':') {
        return true;
    }
    if (**at != ':') {
        return false;
    }
    (*at)++;
    switch (part) {
    case SOURCE_IP:
        return take_address(at, &info->src_ip);
    case GROUP:
        return take_address(at, &info->mc_group);
    case SOURCE_PORT:
    case DEST_PORT:
        if (!take_number(at, 10, UINT16_MAX, &number)) {
            return false;
        }
        *(part == SOURCE_PORT ? &info->src_port : &info->dest_port) = (lbm_ushort_t)number;
        return true;
    case SESSION_PADDED:
    case SESSION_OPTIONAL:
    case SESSION_PLAIN:
        return take_number(at, 16, UINT32_MAX, &info->session_id);
    case TRANSPORT_ID:
        return take_number(at, 10, UINT32_MAX, &info->transport_id);
    case END:
        break;
    }
    return false;
}

static bool parse_form(const struct form *form, const char *at, lbm_transport_source_info_t *info)
{
    info->type = form->type;
    for (const enum part *part = form->parts; *part != END; part++) {
        if (!take_part(*part, &at, info)) {
            return false;
        }
    }
    if (*at == '[') {
        at++;
        if (!take_number(&at, 10, UINT32_MAX, &info->topic_idx) || *at != ']') {
            return false;
        }
        at++;
    }
    return *at == '\0';
}

int um_source_string_parse(const char *text, lbm_transport_source_info_t *out)
{
    size_t name_len = strcspn(text, ":[");
    for (size_t i = 0; i < FORM_COUNT; i++) {
        if (strlen(forms[i].name) == name_len && memcmp(forms[i].name, text, name_len) == 0) {
            lbm_transport_source_info_t info;
            memset(&info, 0, sizeof info);
            if (!parse_form(&forms[i], text + name_len, &info)) {
                break;
            }
            *out = info;
            return 0;
        }
    }
    return um_error(UM_EINVAL, "CoreApi-9010-3",
                    "source string \"%.100s\": not of a known form, for example TCP:10.1.2.3:14371:5c03a9e2[7]", text);
}
