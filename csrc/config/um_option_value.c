/* Scalar option values: numbers, names, ports, addresses, interfaces, strings and hash functions as text and binary,
 * with the bounds of the table. Called by um_options.c and the XML rules.
 * Any thread. */
#include "config/um_option_value.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <netdb.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>

#include "base/um_error.h"
#include "base/um_hash.h"
#include "base/um_map.h"
#include "base/um_mem.h"
#include "base/um_iface.h"

enum { SHOWN_TEXT = 80, LONGEST_HOST_NAME = 253 };

/* A number of any option: wide enough for every signed and unsigned type of the table. */
typedef __int128 wide_t;

int um_option_error(const struct um_option *option, const char *text, const char *reason)
{
    int errnum = option->kind == UM_KIND_CALLBACK ? UM_EOPNOTSUPP : UM_EINVAL;
    return um_error(errnum, "CoreApi-9020-1", "%s option %s '%.*s': %s", um_scope_name(option->scope), option->name,
                    SHOWN_TEXT, text, reason);
}

static int range_error(const struct um_option *option, const char *text, const char *relation, const char *limit)
{
    char reason[160];
    snprintf(reason, sizeof reason, "value must be %s than or equal to %s", relation, limit);
    return um_option_error(option, text, reason);
}

/* ---- numbers ---- */

static wide_t load_number(const struct um_option *option, const void *field)
{
    switch (option->size) {
    case 1:
        return *(const uint8_t *)field;
    case 2:
        return *(const uint16_t *)field;
    case 4:
        return option->is_signed ? (wide_t) * (const int32_t *)field : (wide_t) * (const uint32_t *)field;
    default:
        return *(const uint64_t *)field;
    }
}

static void store_number(const struct um_option *option, wide_t value, void *field)
{
    switch (option->size) {
    case 1:
        *(uint8_t *)field = (uint8_t)value;
        break;
    case 2:
        *(uint16_t *)field = (uint16_t)value;
        break;
    case 4:
        *(uint32_t *)field = (uint32_t)value;
        break;
    default:
        *(uint64_t *)field = (uint64_t)value;
        break;
    }
}

static void print_number(wide_t value, char *out, size_t room)
{
    if (value < 0) {
        snprintf(out, room, "%" PRId64, (int64_t)value);
    } else {
        snprintf(out, room, "%" PRIu64, (uint64_t)value);
    }
}

static wide_t type_minimum(const struct um_option *option)
{
    return option->is_signed ? INT32_MIN : 0;
}

static wide_t type_maximum(const struct um_option *option)
{
    if (option->is_signed) {
        return INT32_MAX;
    }
    return option->size == 8 ? (wide_t)UINT64_MAX : ((wide_t)1 << (8 * option->size)) - 1;
}

/* Digits with an optional minus sign, nothing else. */
static int parse_digits(const struct um_option *option, const char *text, wide_t *out)
{
    const char *digits = option->is_signed && *text == '-' ? text + 1 : text;
    if (*digits == '\0' || digits[strspn(digits, "0123456789")] != '\0') {
        return um_option_error(option, text, "optval not numeric");
    }
    errno = 0;
    uint64_t magnitude = strtoull(digits, NULL, 10);
    *out = digits == text ? (wide_t)magnitude : -(wide_t)magnitude;
    if (errno == ERANGE || *out < type_minimum(option) || *out > type_maximum(option)) {
        return um_option_error(option, text, "optval not a number its type can hold");
    }
    return 0;
}

/* Whether `values`, items separated by `;`, has an item that admits the number: `name=n`, `n`, `low..` or `low..high`.
 */
static bool values_admit(const char *values, wide_t value)
{
    for (const char *item = values; item != NULL; item = strchr(item, ';')) {
        item += *item == ';';
        const char *equals = strpbrk(item, "=;");
        const char *number = equals != NULL && *equals == '=' ? equals + 1 : item;
        char *end;
        wide_t low = strtoll(number, &end, 0);
        if (strncmp(end, "..", 2) == 0) {
            bool open = end[2] == ';' || end[2] == '\0';
            wide_t high = open ? (wide_t)UINT64_MAX : (wide_t)strtoll(end + 2, NULL, 0);
            if (value >= low && value <= high) {
                return true;
            }
        } else if (value == low) {
            return true;
        }
    }
    return false;
}

static int check_shape(const struct um_option *option, wide_t value, const char *text)
{
    const char *values = option->values;
    if (strcmp(values, "power of 2") == 0) {
        return value > 0 && (value & (value - 1)) == 0 ? 0
                                                       : um_option_error(option, text, "optval must be a power of 2");
    }
    if (strcmp(values, "multiple of 8") == 0) {
        return value % 8 == 0 ? 0 : um_option_error(option, text, "optval must be a multiple of 8");
    }
    if (*values == '\0' || values_admit(values, value)) {
        return 0;
    }
    char reason[320];
    snprintf(reason, sizeof reason, "optval not understood; it must be one of %s", values);
    return um_option_error(option, text, reason);
}

static bool is_smx_id_range(const struct um_option *option)
{
    return strncmp(option->name, "transport_lbtsmx_id_", 20) == 0;
}

static bool has_minimum(const struct um_option *option)
{
    return option->minimum[0] != '-' || option->minimum[1] != '\0';
}

/* Times below the documented minimum are in published configurations: they take the minimum. Where the minimum is 0 or
 * less, what lies below is no time. */
static bool take_minimum(const struct um_option *option, wide_t *value, enum um_option_note *note)
{
    static const char *const times[] = {"microseconds", "milliseconds", "seconds"};
    bool is_time = false;
    for (size_t i = 0; i < sizeof times / sizeof times[0]; i++) {
        is_time |= strcmp(option->units, times[i]) == 0;
    }
    wide_t minimum = is_time && has_minimum(option) ? strtoll(option->minimum, NULL, 10) : 0;
    if (*value < 0 || *value >= minimum) {
        return false;
    }
    *value = minimum;
    *note = UM_NOTE_RAISED;
    return true;
}

static int check_number(const struct um_option *option, wide_t value, const char *text)
{
    if (option->kind == UM_KIND_SWITCH) {
        return value == 0 || value == 1 ? 0 : um_option_error(option, text, "optval must be 0 or 1");
    }
    if (has_minimum(option)) {
        wide_t minimum = strtoll(option->minimum, NULL, 10);
        if (value < minimum) {
            return is_smx_id_range(option) ? um_option_error(option, text, "optval not a valid ID (1..65535)")
                                           : range_error(option, text, "greater", option->minimum);
        }
    }
    if (option->maximum[0] != '-' && value > (wide_t)strtoull(option->maximum, NULL, 10)) {
        return range_error(option, text, "less", option->maximum);
    }
    return check_shape(option, value, text);
}

static int parse_number(const struct um_option *option, const char *text, void *field, enum um_option_note *note)
{
    wide_t value = 0;
    long long named;
    if (option->kind == UM_KIND_ENUM && um_option_named_value(option->values, text, &named)) {
        value = named;
    } else if (option->kind == UM_KIND_ENUM && text[strspn(text, "0123456789")] != '\0') {
        char reason[320];
        snprintf(reason, sizeof reason, "optval not understood; it must be one of %s", option->values);
        return um_option_error(option, text, reason);
    } else if (parse_digits(option, text, &value) != 0) {
        return -1;
    }
    if (!take_minimum(option, &value, note) && check_number(option, value, text) != 0) {
        return -1;
    }
    if (option->kind == UM_KIND_PORT && option->order == UM_ORDER_NETWORK) {
        value = htons((uint16_t)value);
    }
    store_number(option, value, field);
    return 0;
}

static char *format_number(const struct um_option *option, const void *field)
{
    char text[64];
    wide_t value = load_number(option, field);
    if (option->kind == UM_KIND_PORT && option->order == UM_ORDER_NETWORK) {
        value = ntohs((uint16_t)value);
    }
    bool named =
        option->kind == UM_KIND_ENUM && um_option_value_name(option->values, (long long)value, text, sizeof text);
    if (!named) {
        print_number(value, text, sizeof text);
    }
    return um_strdup(text);
}

/* Binary numbers arrive in their own type, rates also in four bytes. */
static int store_binary_number(const struct um_option *option, const void *value, size_t len, void *field,
                               enum um_option_note *note)
{
    uint64_t copy = 0;
    memcpy(&copy, value, len); /* at most 8 bytes: the caller compared len */
    wide_t number = option->kind == UM_KIND_RATE ? (wide_t)copy : load_number(option, &copy);
    if (option->kind == UM_KIND_SWITCH && option->order == UM_ORDER_NETWORK && number == htons(1)) {
        number = 1;
    }
    wide_t checked =
        option->kind == UM_KIND_PORT && option->order == UM_ORDER_NETWORK ? (wide_t)ntohs((uint16_t)number) : number;
    char text[32];
    print_number(checked, text, sizeof text);
    if (!take_minimum(option, &number, note) && check_number(option, checked, text) != 0) {
        return -1;
    }
    store_number(option, number, field);
    return 0;
}

int um_option_parse_unsigned(const struct um_option *option, const char *text, lbm_uint64_t maximum, lbm_uint64_t *out)
{
    if (*text == '\0' || text[strspn(text, "0123456789")] != '\0') {
        return um_option_error(option, text, "optval not numeric");
    }
    errno = 0;
    unsigned long long value = strtoull(text, NULL, 10);
    if (errno == ERANGE || value > maximum) {
        char reason[80];
        snprintf(reason, sizeof reason, "optval too large; the largest is %llu", (unsigned long long)maximum);
        return um_option_error(option, text, reason);
    }
    *out = value;
    return 0;
}

/* ---- names of values ---- */

bool um_option_named_value(const char *values, const char *name, long long *out)
{
    size_t len = strlen(name);
    for (const char *item = values; item != NULL; item = strchr(item, ';')) {
        item += *item == ';';
        if (strncasecmp(item, name, len) == 0 && item[len] == '=') {
            *out = strtoll(item + len + 1, NULL, 0);
            return true;
        }
    }
    return false;
}

bool um_option_value_name(const char *values, long long value, char *out, size_t room)
{
    for (const char *item = values; item != NULL; item = strchr(item, ';')) {
        item += *item == ';';
        size_t len = strcspn(item, "=;");
        if (item[len] == '=' && len < room && strtoll(item + len + 1, NULL, 0) == value) {
            memcpy(out, item, len);
            out[len] = '\0';
            return true;
        }
    }
    return false;
}

int um_option_parse_mask(const struct um_option *option, const char *names, const char *text, lbm_ulong_t *out)
{
    static const char reason[] = "optval not understood; give a hexadecimal mask or event names joined by | or ,";
    lbm_ulong_t mask = 0;
    if (isxdigit((unsigned char)text[0]) && text[strspn(text, "0123456789abcdefABCDEFxX")] == '\0') {
        char *end;
        errno = 0;
        mask = strtoul(text, &end, 16);
        if (*end != '\0' || errno != 0) {
            return um_option_error(option, text, reason);
        }
        *out = mask;
        return 0;
    }
    for (const char *item = text; item != NULL; item = strpbrk(item, "|,")) {
        item += *item == '|' || *item == ',';
        char name[32];
        size_t len = strcspn(item, "|,");
        long long bit;
        snprintf(name, sizeof name, "%.*s", (int)(len < sizeof name ? len : sizeof name - 1), item);
        if (len >= sizeof name || !um_option_named_value(names, name, &bit)) {
            return um_option_error(option, text, reason);
        }
        mask |= (lbm_ulong_t)bit;
    }
    *out = mask;
    return 0;
}

static int parse_session_id(const struct um_option *option, const char *text, void *field)
{
    static const char reason[] = "session id not a number up to 0xFFFFFFFFFFFFFFFE";
    char *end;
    errno = 0;
    unsigned long long value = strtoull(text, &end, 0);
    if (!isdigit((unsigned char)text[0]) || *end != '\0' || errno != 0 || value > 0xFFFFFFFFFFFFFFFEull) {
        return um_option_error(option, text, reason);
    }
    *(lbm_uint64_t *)field = value;
    return 0;
}

static char *format_hexadecimal(uint64_t value)
{
    char text[24];
    snprintf(text, sizeof text, "0x%" PRIx64, value);
    return um_strdup(text);
}

/* ---- addresses and interfaces ---- */

static int system_resolver(const char *name, struct in_addr *out)
{
    struct addrinfo hints = {.ai_family = AF_INET, .ai_socktype = SOCK_DGRAM}, *found = NULL;
    if (getaddrinfo(name, NULL, &hints, &found) != 0 || found == NULL) {
        return -1;
    }
    *out = ((struct sockaddr_in *)(void *)found->ai_addr)->sin_addr;
    freeaddrinfo(found);
    return 0;
}

static um_host_resolver host_resolver = system_resolver;

void um_option_set_host_resolver(um_host_resolver resolver)
{
    host_resolver = resolver == NULL ? system_resolver : resolver;
}

#define LETTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"

static bool looks_like_host_name(const char *text)
{
    size_t len = strspn(text, LETTERS "0123456789.-_");
    return len > 0 && len <= LONGEST_HOST_NAME && text[len] == '\0' && strpbrk(text, LETTERS) != NULL;
}

int um_option_parse_address(const struct um_option *option, const char *text, struct in_addr *out)
{
    struct in_addr address;
    if (inet_pton(AF_INET, text, &address) != 1) {
        if (!looks_like_host_name(text)) {
            return um_option_error(option, text, "ip string is malformed; give a.b.c.d or a host name");
        }
        if (host_resolver(text, &address) != 0) {
            return um_option_error(option, text, "host name not found; give a.b.c.d or a name that resolves to IPv4");
        }
    }
    *out = address;
    return 0;
}

/* Host names are resolved here, so that um_iface_parse only sees addresses and device names. */
int um_option_parse_interface(const struct um_option *option, const char *text, lbm_ipv4_address_mask_t *out)
{
    if (strcmp(text, "0.0.0.0") == 0 || strcmp(text, "0.0.0.0/0") == 0) {
        *out = (lbm_ipv4_address_mask_t){0};
        return 0;
    }
    char plain[40];
    const char *form = text;
    size_t host = strcspn(text, "/");
    char name[LONGEST_HOST_NAME + 1];
    snprintf(name, sizeof name, "%.*s", (int)(host < sizeof name ? host : sizeof name - 1), text);
    if (text[0] != '"' && host < sizeof name && looks_like_host_name(name)) {
        struct in_addr address;
        char dotted[INET_ADDRSTRLEN];
        if (host_resolver(name, &address) != 0) {
            return um_option_error(option, text,
                                   "host name not found; give a.b.c.d, a.b.c.d/bits, a name that resolves to IPv4, or "
                                   "the name of a device in double quotes, such as \"eth0\"");
        }
        inet_ntop(AF_INET, &address, dotted, sizeof dotted);
        snprintf(plain, sizeof plain, "%s%.4s", dotted, text + host);
        form = plain;
    }
    uint32_t address;
    int bits;
    if (um_iface_parse(form, &address, &bits) != 0) {
        if (um_errnum() != UM_EINVAL) {
            return -1;
        }
        return um_option_error(
            option, text, "no interfaces matching criteria; give a.b.c.d, a.b.c.d/bits, \"device\" or a host name");
    }
    out->addr = address;
    out->bits = bits;
    return 0;
}

static int store_interface(const struct um_option *option, const void *value, void *field)
{
    lbm_ipv4_address_mask_t mask;
    struct um_iface iface;
    char text[40], dotted[INET_ADDRSTRLEN];
    memcpy(&mask, value, sizeof mask);
    inet_ntop(AF_INET, &mask.addr, dotted, sizeof dotted);
    snprintf(text, sizeof text, "%s/%d", dotted, mask.bits);
    if (mask.bits < 0 || mask.bits > 32) {
        return um_option_error(option, text, "the number of bits must be 0..32");
    }
    if (mask.addr != 0 && um_iface_match(mask.addr, mask.bits, &iface) != 0) {
        return um_errnum() != UM_EINVAL ? -1 : um_option_error(option, text, "no interfaces matching criteria");
    }
    memcpy(field, &mask, sizeof mask);
    return 0;
}

static char *format_address(const void *field)
{
    char text[INET_ADDRSTRLEN];
    inet_ntop(AF_INET, field, text, sizeof text);
    return um_strdup(text);
}

static char *format_interface(const lbm_ipv4_address_mask_t *mask)
{
    char text[INET_ADDRSTRLEN + 8], dotted[INET_ADDRSTRLEN];
    inet_ntop(AF_INET, &mask->addr, dotted, sizeof dotted);
    snprintf(text, sizeof text, "%s/%d", dotted, mask->bits);
    return um_strdup(text);
}

/* ---- strings ---- */

static int parse_string(const struct um_option *option, const char *text, size_t len, char **field)
{
    if (option->maximum[0] != '-' && len > strtoul(option->maximum, NULL, 10)) {
        char reason[80];
        snprintf(reason, sizeof reason, "optval too large; at most %s characters", option->maximum);
        return um_option_error(option, text, reason);
    }
    if (strcmp(option->values, "A-Za-z0-9_-") == 0) {
        for (size_t i = 0; i < len; i++) {
            if (!isascii((unsigned char)text[i]) ||
                (!isalnum((unsigned char)text[i]) && text[i] != '-' && text[i] != '_')) {
                return um_option_error(option, text, "a name holds only letters, digits, - and _");
            }
        }
    }
    if (strcmp(option->name, "monitor_format_opts") == 0 && len > 0 && text[0] == '"') {
        return um_option_error(option, text, "the text must not start with a double quote");
    }
    bool unset = len == 0 || strcmp(text, "NULL") == 0;
    char *copy = unset ? NULL : um_strndup(text, len);
    if (!unset && copy == NULL) {
        return um_error_nomem(option->name, (unsigned long)len + 1);
    }
    um_free(*field);
    *field = copy;
    return 0;
}

/* The count of a binary string may or may not include its terminator. */
static int store_string(const struct um_option *option, const void *value, size_t len, char **field)
{
    char *text = um_strndup(value, strnlen(value, len));
    if (text == NULL) {
        return um_error_nomem(option->name, (unsigned long)len + 1);
    }
    int result = parse_string(option, text, strlen(text), field);
    um_free(text);
    return result;
}

/* An unset string reads back as its default does in the table: "NULL" or empty. */
static const char *shown_string(const struct um_option *option, const char *text)
{
    if (text != NULL) {
        return text;
    }
    return strcmp(option->text_default, "NULL") == 0 ? "NULL" : "";
}

/* ---- topic hash functions ---- */

static lbm_ulong_t hash_murmur2(const char *text)
{
    return um_hash_murmur2(text, strlen(text));
}

static lbm_ulong_t hash_classic(const char *text)
{
    return um_hash_classic(text, strlen(text));
}

static lbm_ulong_t hash_djb2(const char *text)
{
    return um_hash_djb2(text, strlen(text));
}

static lbm_ulong_t hash_sdbm(const char *text)
{
    return um_hash_sdbm(text, strlen(text));
}

static const struct {
    const char *name;
    lbm_str_hash_function_cb function;
} hashes[] = {{"murmur2", hash_murmur2}, {"classic", hash_classic}, {"djb2", hash_djb2}, {"sdbm", hash_sdbm}};

enum { HASH_COUNT = sizeof hashes / sizeof hashes[0] };

static int parse_hash(const struct um_option *option, const char *text, lbm_str_hash_func_t *field)
{
    for (int i = 0; i < HASH_COUNT; i++) {
        if (strcasecmp(text, hashes[i].name) == 0) {
            field->hashfunc = hashes[i].function;
            return 0;
        }
    }
    return um_option_error(option, text, "optval not understood; it must be murmur2, classic, djb2 or sdbm");
}

static char *format_hash(const struct um_option *option, const lbm_str_hash_func_t *field)
{
    for (int i = 0; i < HASH_COUNT; i++) {
        if (field->hashfunc == hashes[i].function) {
            return um_strdup(hashes[i].name);
        }
    }
    um_error(UM_EOPNOTSUPP, "CoreApi-9020-2",
             "option %s: str_getopt not supported for option while an application's function is set", option->name);
    return NULL;
}

/* ---- all kinds ---- */

int um_option_parse(const struct um_option *option, const char *text, void *field, enum um_option_note *note)
{
    *note = UM_NOTE_NONE;
    switch (option->kind) {
    case UM_KIND_NUMBER:
    case UM_KIND_SWITCH:
    case UM_KIND_ENUM:
    case UM_KIND_RATE:
    case UM_KIND_PORT:
        return parse_number(option, text, field, note);
    case UM_KIND_ADDRESS:
        return um_option_parse_address(option, text, field);
    case UM_KIND_INTERFACE:
        return um_option_parse_interface(option, text, field);
    case UM_KIND_SESSION_ID:
        return parse_session_id(option, text, field);
    case UM_KIND_MASK:
        return um_option_parse_mask(option, option->values, text, field);
    case UM_KIND_HASH:
        return parse_hash(option, text, field);
    case UM_KIND_STRING:
        return parse_string(option, text, strlen(text), field);
    case UM_KIND_CALLBACK:
        return um_option_error(option, text, "str_setopt not supported for option; set it with the binary setopt call");
    default:
        return um_list_parse(option, text, field, note);
    }
}

static bool binary_length_fits(const struct um_option *option, size_t len)
{
    return len == option->item_size || (option->kind == UM_KIND_RATE && len == sizeof(uint32_t));
}

int um_option_store(const struct um_option *option, const void *value, size_t len, void *field,
                    enum um_option_note *note)
{
    *note = UM_NOTE_NONE;
    if (option->kind == UM_KIND_STRING) {
        return store_string(option, value, len, field);
    }
    if (um_option_is_list(option)) {
        return um_list_store(option, value, len, field, note);
    }
    if (!binary_length_fits(option, len)) {
        return um_error(UM_EINVAL, "CoreApi-9020-3", "option %s: optlen incorrect size (%zu, must be %zu)",
                        option->name, len, option->item_size);
    }
    switch (option->kind) {
    case UM_KIND_NUMBER:
    case UM_KIND_SWITCH:
    case UM_KIND_ENUM:
    case UM_KIND_RATE:
    case UM_KIND_PORT:
        return store_binary_number(option, value, len, field, note);
    case UM_KIND_INTERFACE:
        return store_interface(option, value, field);
    case UM_KIND_SESSION_ID: {
        lbm_uint64_t id;
        memcpy(&id, value, sizeof id);
        if (id == UINT64_MAX) {
            return um_option_error(option, "0xffffffffffffffff", "the largest session id is 0xFFFFFFFFFFFFFFFE");
        }
        break;
    }
    case UM_KIND_HASH: {
        lbm_str_hash_func_t function;
        memcpy(&function, value, sizeof function);
        if (function.hashfunc == NULL) {
            return parse_hash(option, option->text_default, field);
        }
        break;
    }
    default:
        break;
    }
    memcpy(field, value, len);
    return 0;
}

char *um_option_format(const struct um_option *option, const void *field)
{
    char *text = NULL;
    switch (option->kind) {
    case UM_KIND_NUMBER:
    case UM_KIND_SWITCH:
    case UM_KIND_ENUM:
    case UM_KIND_RATE:
    case UM_KIND_PORT:
        text = format_number(option, field);
        break;
    case UM_KIND_ADDRESS:
        text = format_address(field);
        break;
    case UM_KIND_INTERFACE:
        text = format_interface(field);
        break;
    case UM_KIND_SESSION_ID:
    case UM_KIND_MASK:
        text = format_hexadecimal(*(const uint64_t *)field);
        break;
    case UM_KIND_HASH:
        return format_hash(option, field);
    case UM_KIND_STRING:
        text = um_strdup(shown_string(option, *(char *const *)field));
        break;
    case UM_KIND_CALLBACK:
        um_error(UM_EOPNOTSUPP, "CoreApi-9020-4", "option %s: str_getopt not supported for option; use getopt",
                 option->name);
        return NULL;
    default:
        return um_list_format(option, field);
    }
    if (text == NULL) {
        um_error_nomem(option->name, 64);
    }
    return text;
}

int um_option_copy(const struct um_option *option, void *dst, const void *src)
{
    if (option->kind == UM_KIND_STRING) {
        const char *text = *(char *const *)src;
        char *copy = text == NULL ? NULL : um_strdup(text);
        if (text != NULL && copy == NULL) {
            return um_error_nomem(option->name, (unsigned long)strlen(text) + 1);
        }
        *(char **)dst = copy;
        return 0;
    }
    if (!um_option_is_list(option)) {
        memcpy(dst, src, option->size);
        return 0;
    }
    const struct um_option_list *from = src;
    struct um_option_list *to = dst;
    *to = (struct um_option_list){.item_size = option->item_size};
    if (from->count > 0) {
        to->items = um_malloc(from->count * option->item_size);
        if (to->items == NULL) {
            return um_error_nomem(option->name, (unsigned long)(from->count * option->item_size));
        }
        memcpy(to->items, from->items, from->count * option->item_size);
        to->count = from->count;
    }
    return 0;
}

void um_option_clear(const struct um_option *option, void *field)
{
    if (option->kind == UM_KIND_STRING) {
        um_free(*(char **)field);
    } else if (um_option_is_list(option)) {
        um_free(((struct um_option_list *)field)->items);
    }
    memset(field, 0, option->size);
}

uint32_t um_option_hash(const struct um_option *option, const void *field)
{
    if (option->kind == UM_KIND_STRING) {
        const char *text = *(char *const *)field;
        return text == NULL ? 0 : um_hash_bytes(text, strlen(text));
    }
    if (um_option_is_list(option)) {
        const struct um_option_list *list = field;
        return list->count == 0 ? 0 : um_hash_bytes(list->items, list->count * option->item_size);
    }
    return um_hash_bytes(field, option->size);
}

bool um_option_equal(const struct um_option *option, const void *a, const void *b)
{
    if (option->kind == UM_KIND_STRING) {
        const char *left = *(char *const *)a, *right = *(char *const *)b;
        return left == NULL || right == NULL ? left == right : strcmp(left, right) == 0;
    }
    if (um_option_is_list(option)) {
        const struct um_option_list *left = a, *right = b;
        return left->count == right->count &&
               (left->count == 0 || memcmp(left->items, right->items, left->count * option->item_size) == 0);
    }
    return memcmp(a, b, option->size) == 0;
}
