/* List options: the entries of resolver daemons, resolver services, brokers, stores, queues and load balancing, as text
 * and binary. Accumulating lists append one entry per set, the others are replaced. Called by um_option_value.c.
 * Any thread. */
#include "config/um_option_value.h"

#include <arpa/inet.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/um_error.h"
#include "base/um_mem.h"

enum { LONGEST_ENTRY_TEXT = 400, LARGEST_LIST = 4096 };

/* One entry of any list, zeroed before it is filled, so that padding compares equal. */
union entry {
    lbm_ucast_resolver_entry_t daemon;
    lbm_resolver_service_entry_t service;
    lbm_transport_broker_entry_t broker;
    lbm_ume_store_entry_t store;
    lbm_ume_store_name_entry_t store_name;
    lbm_ume_store_group_entry_t store_group;
    lbm_umq_queue_entry_t queue;
    lbm_umq_ulb_receiver_type_entry_t ulb_set;
    lbm_umq_ulb_application_set_attr_t ulb_set_value;
    lbm_umq_ulb_receiver_type_attr_t ulb_type_value;
};

/* ---- memory ---- */

static void *item_at(const struct um_option_list *list, size_t index)
{
    return (char *)list->items + index * list->item_size;
}

static int append(const struct um_option *option, struct um_option_list *list, const union entry *entry)
{
    if (list->count >= LARGEST_LIST) {
        return um_error(UM_EINVAL, "CoreApi-9020-5", "option %s: more than %d entries", option->name, LARGEST_LIST);
    }
    void *items = um_realloc(list->items, (list->count + 1) * option->item_size);
    if (items == NULL) {
        return um_error_nomem(option->name, (unsigned long)((list->count + 1) * option->item_size));
    }
    list->items = items;
    list->item_size = option->item_size;
    memcpy((char *)items + list->count * option->item_size, entry, option->item_size);
    list->count++;
    return 0;
}

static void empty(struct um_option_list *list)
{
    um_free(list->items);
    list->items = NULL;
    list->count = 0;
}

/* ---- text pieces ---- */

/* Cut *text at the first of the separators; returns the piece trimmed of blanks, NULL after the last one. */
static char *next_piece(char **text, const char *separators)
{
    char *start = *text;
    if (start == NULL) {
        return NULL;
    }
    char *end = strpbrk(start, separators);
    *text = end == NULL ? NULL : end + 1;
    if (end != NULL) {
        *end = '\0';
    }
    start += strspn(start, " \t");
    for (size_t len = strlen(start); len > 0 && strchr(" \t", start[len - 1]) != NULL; len--) {
        start[len - 1] = '\0';
    }
    return start;
}

static int parse_port(const struct um_option *option, const char *text, lbm_ushort_t *out)
{
    lbm_uint64_t port;
    if (um_option_parse_unsigned(option, text, UINT16_MAX, &port) != 0) {
        return -1;
    }
    *out = htons((uint16_t)port);
    return 0;
}

/* IP:Port */
static int parse_peer(const struct um_option *option, char *text, lbm_uint_t *address, lbm_ushort_t *port)
{
    struct in_addr found;
    char *colon = strrchr(text, ':');
    if (colon == NULL) {
        return um_option_error(option, text, "must be address:port");
    }
    *colon = '\0';
    if (um_option_parse_address(option, text, &found) != 0 || parse_port(option, colon + 1, port) != 0) {
        return -1;
    }
    *address = found.s_addr;
    return 0;
}

/* [Iface[:SrcPort]->]IP:Port */
static int parse_agent(const struct um_option *option, char *text, lbm_ipv4_address_mask_t *iface,
                       lbm_ushort_t *source_port, lbm_uint_t *address, lbm_ushort_t *port)
{
    char *arrow = strstr(text, "->");
    if (arrow == NULL) {
        return parse_peer(option, text, address, port);
    }
    *arrow = '\0';
    char *colon = strrchr(text, ':');
    if (colon != NULL) {
        *colon = '\0';
        if (parse_port(option, colon + 1, source_port) != 0) {
            return -1;
        }
    }
    return um_option_parse_interface(option, text, iface) != 0 ? -1 : parse_peer(option, arrow + 2, address, port);
}

/* ---- one entry from text; the text is a private copy that may be cut ---- */

static int parse_store(const struct um_option *option, char *text, lbm_ume_store_entry_t *store)
{
    char *fields[5];
    int count = 0;
    while (count < 5 && (fields[count] = next_piece(&text, ":")) != NULL) {
        count++;
    }
    int first = count > 0 && strchr(fields[0], '.') == NULL ? 1 : 0; /* starts with a domain */
    struct in_addr address;
    lbm_uint64_t number;
    if (text != NULL || count < first + 2 || count > first + 4) {
        return um_option_error(option, count > 0 ? fields[0] : "", "must be [DomainID:]IP:port[:RegID[:GroupIDX]]");
    }
    if (inet_pton(AF_INET, fields[first], &address) != 1) {
        return um_option_error(option, fields[first], "ip string is malformed; give a.b.c.d");
    }
    if (first == 1 && um_option_parse_unsigned(option, fields[0], UINT32_MAX, &number) == 0) {
        store->domain_id = (lbm_uint32_t)number;
    } else if (first == 1) {
        return -1;
    }
    store->ip_address = address.s_addr;
    if (parse_port(option, fields[first + 1], &store->tcp_port) != 0) {
        return -1;
    }
    if (count > first + 2) {
        if (um_option_parse_unsigned(option, fields[first + 2], UINT32_MAX, &number) != 0) {
            return -1;
        }
        store->registration_id = (lbm_uint_t)number;
    }
    if (count > first + 3) {
        if (um_option_parse_unsigned(option, fields[first + 3], UINT16_MAX, &number) != 0) {
            return -1;
        }
        store->group_index = (lbm_ushort_t)number;
    }
    return 0;
}

static int parse_name(const struct um_option *option, const char *text, char *out, size_t room)
{
    size_t len = strlen(text);
    if (len >= room) {
        char reason[80];
        snprintf(reason, sizeof reason, "optval too large; a name has at most %zu characters", room - 1);
        return um_option_error(option, text, reason);
    }
    memcpy(out, text, len + 1);
    return 0;
}

static int parse_store_name(const struct um_option *option, char *text, lbm_ume_store_name_entry_t *store)
{
    lbm_uint64_t number;
    char *name = next_piece(&text, ":"), *regid = next_piece(&text, ":"), *group = next_piece(&text, ":");
    if (text != NULL) {
        return um_option_error(option, name, "must be name[:RegID[:GroupIDX]]");
    }
    if (parse_name(option, name, store->name, 128) != 0) {
        return -1;
    }
    if (regid != NULL) {
        if (um_option_parse_unsigned(option, regid, UINT32_MAX, &number) != 0) {
            return -1;
        }
        store->registration_id = (lbm_uint_t)number;
    }
    if (group != NULL) {
        if (um_option_parse_unsigned(option, group, UINT16_MAX, &number) != 0) {
            return -1;
        }
        store->group_index = (lbm_ushort_t)number;
    }
    return 0;
}

static int parse_store_group(const struct um_option *option, char *text, lbm_ume_store_group_entry_t *group)
{
    lbm_uint64_t index, size;
    char *first = next_piece(&text, ":"), *second = next_piece(&text, ":");
    if (second == NULL || text != NULL) {
        return um_option_error(option, first, "must be GroupIDX:GroupSZ");
    }
    if (um_option_parse_unsigned(option, first, UINT16_MAX, &index) != 0 ||
        um_option_parse_unsigned(option, second, UINT16_MAX, &size) != 0) {
        return -1;
    }
    group->index = (lbm_ushort_t)index;
    group->group_size = (lbm_ushort_t)size;
    return 0;
}

static int parse_queue(const struct um_option *option, char *text, lbm_umq_queue_entry_t *queue)
{
    lbm_uint64_t regid = 0;
    char *colon = strrchr(text, ':');
    if (colon == NULL && *text != '\0') {
        return um_option_error(option, text, "must be BrokerName:RegID");
    }
    if (colon != NULL) {
        *colon = '\0';
        if (um_option_parse_unsigned(option, colon + 1, UINT64_MAX, &regid) != 0) {
            return -1;
        }
    }
    queue->regid = regid;
    return parse_name(option, text, queue->name, sizeof queue->name);
}

static int parse_entry(const struct um_option *option, char *text, union entry *entry)
{
    switch (option->kind) {
    case UM_KIND_LIST_DAEMON:
        return parse_agent(option, text, &entry->daemon.iface, &entry->daemon.source_port, &entry->daemon.resolver_ip,
                           &entry->daemon.destination_port);
    case UM_KIND_LIST_SERVICE:
        return parse_agent(option, text, &entry->service.iface, &entry->service.source_port, &entry->service.service_ip,
                           &entry->service.service_port);
    case UM_KIND_LIST_BROKER:
        return parse_peer(option, text, &entry->broker.broker_ip, &entry->broker.broker_port);
    case UM_KIND_LIST_STORE:
        return parse_store(option, text, &entry->store);
    case UM_KIND_LIST_STORE_NAME:
        return parse_store_name(option, text, &entry->store_name);
    case UM_KIND_LIST_STORE_GROUP:
        return parse_store_group(option, text, &entry->store_group);
    default:
        return parse_queue(option, text, &entry->queue);
    }
}

/* ---- what a new entry does to its list ---- */

/* The entry that empties the list. */
static bool entry_clears(const struct um_option *option, const union entry *entry)
{
    switch (option->kind) {
    case UM_KIND_LIST_DAEMON:
        return entry->daemon.resolver_ip == 0 && entry->daemon.destination_port == 0;
    case UM_KIND_LIST_SERVICE:
        return entry->service.service_ip == 0 && entry->service.service_port == 0;
    case UM_KIND_LIST_BROKER:
        return entry->broker.broker_ip == 0 && entry->broker.broker_port == 0;
    case UM_KIND_LIST_STORE:
        return entry->store.ip_address == 0 && entry->store.tcp_port == 0;
    case UM_KIND_LIST_STORE_NAME:
        return entry->store_name.name[0] == '\0';
    case UM_KIND_LIST_STORE_GROUP:
        return entry->store_group.index == 0 && entry->store_group.group_size == 0;
    default:
        return entry->queue.name[0] == '\0';
    }
}

/* An entry that names no peer although it does not clear the list. */
static int check_entry(const struct um_option *option, const union entry *entry)
{
    lbm_uint_t address = 1;
    lbm_ushort_t port = 1;
    switch (option->kind) {
    case UM_KIND_LIST_DAEMON:
        address = entry->daemon.resolver_ip;
        port = entry->daemon.destination_port;
        break;
    case UM_KIND_LIST_SERVICE:
        address = entry->service.service_ip;
        port = entry->service.service_port;
        break;
    case UM_KIND_LIST_BROKER:
        address = entry->broker.broker_ip;
        port = entry->broker.broker_port;
        break;
    case UM_KIND_LIST_STORE:
        address = entry->store.ip_address;
        port = entry->store.tcp_port;
        break;
    default:
        break;
    }
    if (address == 0 || port == 0) {
        return um_error(UM_EINVAL, option->kind == UM_KIND_LIST_STORE ? "CoreApi-5688-3140" : "CoreApi-9020-6",
                        "option %s: neither the address nor the port of an entry may be 0 (0.0.0.0:0 empties the list)",
                        option->name);
    }
    return 0;
}

/* Lists keyed by name or index replace the entry with the same key; groups come in ascending order. */
static int add_keyed(const struct um_option *option, struct um_option_list *list, const union entry *entry)
{
    bool queue = option->kind == UM_KIND_LIST_QUEUE;
    for (size_t i = 0; i < list->count; i++) {
        union entry old;
        memcpy(&old, item_at(list, i), option->item_size);
        bool same =
            queue ? strcmp(old.queue.name, entry->queue.name) == 0 : old.store_group.index == entry->store_group.index;
        if (same) {
            memcpy(item_at(list, i), entry, option->item_size);
            return 0;
        }
        if (!queue && old.store_group.index > entry->store_group.index) {
            return um_error(UM_EINVAL, "CoreApi-9020-7", "option %s: group %d after group %d; give ascending indexes",
                            option->name, entry->store_group.index, old.store_group.index);
        }
    }
    return append(option, list, entry);
}

static int add_entry(const struct um_option *option, struct um_option_list *list, const union entry *entry,
                     enum um_option_note *note)
{
    if (entry_clears(option, entry)) {
        empty(list);
        return 0;
    }
    if (check_entry(option, entry) != 0) {
        return -1;
    }
    if (option->kind == UM_KIND_LIST_QUEUE || option->kind == UM_KIND_LIST_STORE_GROUP) {
        return add_keyed(option, list, entry);
    }
    for (size_t i = 0; i < list->count; i++) {
        if (memcmp(item_at(list, i), entry, option->item_size) == 0) {
            *note = UM_NOTE_DUPLICATE;
            return 0;
        }
    }
    if (option->maximum[0] != '-' && list->count >= strtoul(option->maximum, NULL, 10)) {
        *note = UM_NOTE_EXCESS;
        return 0;
    }
    return append(option, list, entry);
}

static int parse_accumulating(const struct um_option *option, char *text, struct um_option_list *list,
                              enum um_option_note *note)
{
    bool several = option->kind == UM_KIND_LIST_DAEMON || option->kind == UM_KIND_LIST_SERVICE ||
                   option->kind == UM_KIND_LIST_BROKER;
    char *piece;
    if (*text == '\0') {
        empty(list);
        return 0;
    }
    while ((piece = next_piece(&text, several ? ",;" : "")) != NULL) {
        union entry entry;
        memset(&entry, 0, sizeof entry);
        if (parse_entry(option, piece, &entry) != 0 || add_entry(option, list, &entry, note) != 0) {
            return -1;
        }
    }
    return 0;
}

/* ---- load-balancing lists ---- */

/* idx:id,id;idx:id with indexes 0, 1, 2 ... */
static int parse_ulb_sets(const struct um_option *option, char *text, struct um_option_list *list)
{
    char *set;
    for (lbm_uint64_t expected = 0; (set = next_piece(&text, ";")) != NULL; expected++) {
        char *index = next_piece(&set, ":"), *id;
        lbm_uint64_t number;
        if (set == NULL) {
            return um_option_error(option, index, "must be index:id,id;index:id");
        }
        if (um_option_parse_unsigned(option, index, UINT16_MAX, &number) != 0) {
            return -1;
        }
        if (number != expected) {
            return um_option_error(option, index, "the indexes must be 0, 1, 2 and so on");
        }
        while ((id = next_piece(&set, ",")) != NULL) {
            union entry entry;
            memset(&entry, 0, sizeof entry);
            entry.ulb_set.application_set_index = (lbm_ushort_t)number;
            if (um_option_parse_unsigned(option, id, UINT64_MAX, &number) != 0) {
                return -1;
            }
            entry.ulb_set.id = number;
            if (append(option, list, &entry) != 0) {
                return -1;
            }
            number = expected;
        }
    }
    return 0;
}

static bool value_is_mask(const struct um_option *option)
{
    size_t len = strlen(option->name);
    return len > 7 && strcmp(option->name + len - 7, "_events") == 0;
}

static const char *event_names(void)
{
    return um_option_find(UM_SCOPE_SOURCE, "umq_ulb_events")->values;
}

static int parse_ulb_value(const struct um_option *option, const char *text, lbm_ulong_t *out)
{
    lbm_uint64_t number;
    long long named;
    if (value_is_mask(option)) {
        return um_option_parse_mask(option, event_names(), text, out);
    }
    if (option->values[0] != '\0' && um_option_named_value(option->values, text, &named)) {
        *out = (lbm_ulong_t)named;
        return 0;
    }
    char name[32];
    if (um_option_parse_unsigned(option, text, UINT64_MAX, &number) != 0) {
        return -1;
    }
    if (option->values[0] != '\0' && !um_option_value_name(option->values, (long long)number, name, sizeof name)) {
        return um_option_error(option, text, "optval not understood");
    }
    *out = number;
    return 0;
}

/* idx:value;... or id:value;... */
static int parse_ulb_values(const struct um_option *option, char *text, struct um_option_list *list)
{
    bool by_type = option->kind == UM_KIND_LIST_ULB_TYPE_VALUE;
    char *item;
    while ((item = next_piece(&text, ";")) != NULL) {
        char *key = next_piece(&item, ":");
        lbm_uint64_t number;
        lbm_ulong_t value;
        union entry entry;
        if (item == NULL) {
            return um_option_error(option, key,
                                   by_type ? "must be id:value;id:value" : "must be index:value;index:value");
        }
        if (um_option_parse_unsigned(option, key, by_type ? UINT64_MAX : UINT16_MAX, &number) != 0 ||
            parse_ulb_value(option, next_piece(&item, ""), &value) != 0) {
            return -1;
        }
        memset(&entry, 0, sizeof entry);
        if (by_type) {
            entry.ulb_type_value.id = number;
            entry.ulb_type_value.value.lu = value;
        } else {
            entry.ulb_set_value.index = (lbm_ushort_t)number;
            entry.ulb_set_value.value.lu = value;
        }
        if (append(option, list, &entry) != 0) {
            return -1;
        }
    }
    return 0;
}

/* ---- the interface of um_option_value.c ---- */

static int copy_list(const struct um_option *option, const struct um_option_list *list, struct um_option_list *out)
{
    *out = (struct um_option_list){.item_size = option->item_size};
    return um_option_copy(option, out, list);
}

/* Works on a copy, so that a bad entry leaves the list as it was. */
int um_list_parse(const struct um_option *option, const char *text, struct um_option_list *list,
                  enum um_option_note *note)
{
    struct um_option_list work = {.item_size = option->item_size};
    char *copy = um_strdup(text);
    if (copy == NULL) {
        return um_error_nomem(option->name, (unsigned long)strlen(text) + 1);
    }
    int result;
    if (um_option_accumulates(option)) {
        result = copy_list(option, list, &work);
        if (result == 0) {
            result = parse_accumulating(option, copy, &work, note);
        }
    } else if (*text == '\0' || strcmp(text, option->text_default) == 0) {
        result = 0;
    } else if (option->kind == UM_KIND_LIST_ULB_SET) {
        result = parse_ulb_sets(option, copy, &work);
    } else {
        result = parse_ulb_values(option, copy, &work);
    }
    um_free(copy);
    if (result != 0) {
        empty(&work);
        return -1;
    }
    um_free(list->items);
    *list = work;
    return 0;
}

/* The members of an application's entry without its padding. */
static int normalize(const struct um_option *option, const void *value, union entry *entry)
{
    union entry given;
    memset(entry, 0, sizeof *entry);
    memcpy(&given, value, option->item_size);
    switch (option->kind) {
    case UM_KIND_LIST_SERVICE:
        entry->service.service_ip = given.service.service_ip;
        entry->service.service_port = given.service.service_port;
        entry->service.iface = given.service.iface;
        entry->service.source_port = given.service.source_port;
        return 0;
    case UM_KIND_LIST_BROKER: /* interface and source port of a broker are unused */
        entry->broker.broker_ip = given.broker.broker_ip;
        entry->broker.broker_port = given.broker.broker_port;
        return 0;
    case UM_KIND_LIST_STORE_NAME:
        given.store_name.name[sizeof given.store_name.name - 1] = '\0';
        entry->store_name.group_index = given.store_name.group_index;
        entry->store_name.registration_id = given.store_name.registration_id;
        return parse_name(option, given.store_name.name, entry->store_name.name, 128);
    case UM_KIND_LIST_QUEUE:
        given.queue.name[sizeof given.queue.name - 1] = '\0';
        entry->queue.regid = given.queue.regid;
        return parse_name(option, given.queue.name, entry->queue.name, sizeof entry->queue.name);
    case UM_KIND_LIST_ULB_SET:
        entry->ulb_set.id = given.ulb_set.id;
        entry->ulb_set.application_set_index = given.ulb_set.application_set_index;
        return 0;
    case UM_KIND_LIST_ULB_SET_VALUE:
        entry->ulb_set_value.index = given.ulb_set_value.index;
        entry->ulb_set_value.value = given.ulb_set_value.value;
        return 0;
    default: /* no padding */
        memcpy(entry, value, option->item_size);
        return 0;
    }
}

static int store_replacing(const struct um_option *option, const void *value, size_t len, struct um_option_list *list)
{
    struct um_option_list work = {.item_size = option->item_size};
    if (len % option->item_size != 0) {
        return um_error(UM_EINVAL, "CoreApi-9020-3",
                        "option %s: optlen incorrect size (%zu, must be a multiple of %zu)", option->name, len,
                        option->item_size);
    }
    for (size_t i = 0; i < len / option->item_size; i++) {
        union entry entry;
        if (normalize(option, (const char *)value + i * option->item_size, &entry) != 0 ||
            append(option, &work, &entry) != 0) {
            empty(&work);
            return -1;
        }
    }
    empty(list);
    *list = work;
    return 0;
}

int um_list_store(const struct um_option *option, const void *value, size_t len, struct um_option_list *list,
                  enum um_option_note *note)
{
    union entry entry;
    if (!um_option_accumulates(option)) {
        return store_replacing(option, value, len, list);
    }
    if (len != option->item_size) {
        return um_error(UM_EINVAL, "CoreApi-9020-3", "option %s: optlen incorrect size (%zu, must be %zu: one entry)",
                        option->name, len, option->item_size);
    }
    return normalize(option, value, &entry) != 0 ? -1 : add_entry(option, list, &entry, note);
}

/* ---- printing ---- */

/* A growing text; `failed` after a failed allocation. */
struct text {
    char *bytes;
    size_t len;
    bool failed;
};

static void __attribute__((format(printf, 2, 3))) add_text(struct text *text, const char *format, ...)
{
    char piece[LONGEST_ENTRY_TEXT];
    va_list arguments;
    va_start(arguments, format);
    int len = vsnprintf(piece, sizeof piece, format, arguments);
    va_end(arguments);
    char *bytes = text->failed ? NULL : um_realloc(text->bytes, text->len + (size_t)len + 1);
    if (bytes == NULL) {
        text->failed = true;
        return;
    }
    memcpy(bytes + text->len, piece, (size_t)len + 1);
    text->bytes = bytes;
    text->len += (size_t)len;
}

static const char *dotted(lbm_uint_t address, char out[INET_ADDRSTRLEN])
{
    return inet_ntop(AF_INET, &address, out, INET_ADDRSTRLEN);
}

static void add_agent(struct text *text, const lbm_ipv4_address_mask_t *iface, lbm_ushort_t source_port,
                      lbm_uint_t address, lbm_ushort_t port)
{
    char name[INET_ADDRSTRLEN];
    if (iface->addr != 0 || source_port != 0) {
        add_text(text, "%s/%d", dotted(iface->addr, name), iface->bits);
        if (source_port != 0) {
            add_text(text, ":%d", ntohs(source_port));
        }
        add_text(text, "->");
    }
    add_text(text, "%s:%d", dotted(address, name), ntohs(port));
}

static void add_store(struct text *text, const lbm_ume_store_entry_t *store)
{
    char name[INET_ADDRSTRLEN];
    if (store->domain_id != 0) {
        add_text(text, "%u:", store->domain_id);
    }
    add_text(text, "%s:%d:%u:%d", dotted(store->ip_address, name), ntohs(store->tcp_port), store->registration_id,
             store->group_index);
}

static void add_ulb_value(const struct um_option *option, struct text *text, lbm_ulong_t key, lbm_ulong_t value)
{
    char name[32];
    if (value_is_mask(option)) {
        add_text(text, "%lu:0x%lx", key, value);
    } else if (um_option_value_name(option->values, (long long)value, name, sizeof name)) {
        add_text(text, "%lu:%s", key, name);
    } else {
        add_text(text, "%lu:%lu", key, value);
    }
}

/* Options with named values and masks use the int of the union, the others the long. */
static lbm_ulong_t union_value(const struct um_option *option, int d, lbm_ulong_t lu)
{
    return option->values[0] != '\0' || value_is_mask(option) ? (lbm_ulong_t)(unsigned)d : lu;
}

static void add_item(const struct um_option *option, struct text *text, const struct um_option_list *list, size_t i)
{
    union entry entry;
    memset(&entry, 0, sizeof entry);
    memcpy(&entry, item_at(list, i), option->item_size);
    switch (option->kind) {
    case UM_KIND_LIST_DAEMON:
        add_agent(text, &entry.daemon.iface, entry.daemon.source_port, entry.daemon.resolver_ip,
                  entry.daemon.destination_port);
        break;
    case UM_KIND_LIST_SERVICE:
        add_agent(text, &entry.service.iface, entry.service.source_port, entry.service.service_ip,
                  entry.service.service_port);
        break;
    case UM_KIND_LIST_BROKER:
        add_agent(text, &entry.broker.iface, 0, entry.broker.broker_ip, entry.broker.broker_port);
        break;
    case UM_KIND_LIST_STORE:
        add_store(text, &entry.store);
        break;
    case UM_KIND_LIST_STORE_NAME:
        add_text(text, "%s:%u:%d", entry.store_name.name, entry.store_name.registration_id,
                 entry.store_name.group_index);
        break;
    case UM_KIND_LIST_STORE_GROUP:
        add_text(text, "%d:%d", entry.store_group.index, entry.store_group.group_size);
        break;
    case UM_KIND_LIST_QUEUE:
        add_text(text, "%s:%lu", entry.queue.name, (unsigned long)entry.queue.regid);
        break;
    case UM_KIND_LIST_ULB_SET_VALUE:
        add_ulb_value(option, text, entry.ulb_set_value.index,
                      union_value(option, entry.ulb_set_value.value.d, entry.ulb_set_value.value.lu));
        break;
    default:
        add_ulb_value(option, text, entry.ulb_type_value.id,
                      union_value(option, entry.ulb_type_value.value.d, entry.ulb_type_value.value.lu));
        break;
    }
}

/* idx:id,id;idx:id */
static void add_ulb_sets(struct text *text, const struct um_option_list *list)
{
    const lbm_umq_ulb_receiver_type_entry_t *entries = list->items;
    for (size_t i = 0; i < list->count; i++) {
        bool same_set = i > 0 && entries[i].application_set_index == entries[i - 1].application_set_index;
        if (same_set) {
            add_text(text, ",%lu", entries[i].id);
        } else {
            add_text(text, "%s%d:%lu", i == 0 ? "" : ";", entries[i].application_set_index, entries[i].id);
        }
    }
}

char *um_list_format(const struct um_option *option, const struct um_option_list *list)
{
    struct text text = {NULL, 0, false};
    if (list->count == 0) {
        add_text(&text, "%s", option->text_default);
    } else if (option->kind == UM_KIND_LIST_ULB_SET) {
        add_ulb_sets(&text, list);
    } else {
        for (size_t i = 0; i < list->count; i++) {
            add_text(&text, "%s", i == 0 ? "" : um_option_accumulates(option) ? "," : ";");
            add_item(option, &text, list, i);
        }
    }
    if (text.failed) {
        um_free(text.bytes);
        um_error_nomem(option->name, (unsigned long)text.len);
        return NULL;
    }
    return text.bytes;
}
