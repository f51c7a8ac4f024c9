/* Intrusive hash table. See um_tr_table.h. */
#include "resolver/um_tr_table.h"

#include "base/um_mem.h"

static void grow(struct um_tr_table *table)
{
    size_t capacity = table->capacity == 0 ? 16 : table->capacity * 2;
    struct um_tr_link **buckets = um_calloc(capacity, sizeof *buckets);
    if (buckets == NULL) {
        return;
    }
    for (size_t i = 0; i < table->capacity; i++) {
        struct um_tr_link *link = table->buckets[i];
        while (link != NULL) {
            struct um_tr_link *next = link->next;
            struct um_tr_link **head = &buckets[link->hash & (capacity - 1)];
            link->next = *head;
            *head = link;
            link = next;
        }
    }
    um_free(table->buckets);
    table->buckets = buckets;
    table->capacity = capacity;
}

int um_tr_table_add(struct um_tr_table *table, struct um_tr_link *link, uint32_t hash)
{
    if (table->count >= table->capacity) {
        grow(table);
    }
    if (table->capacity == 0) {
        return -1;
    }
    struct um_tr_link **head = &table->buckets[hash & (table->capacity - 1)];
    link->hash = hash;
    link->next = *head;
    *head = link;
    table->count++;
    return 0;
}

void um_tr_table_remove(struct um_tr_table *table, struct um_tr_link *link)
{
    struct um_tr_link **at = &table->buckets[link->hash & (table->capacity - 1)];
    while (*at != link) {
        at = &(*at)->next;
    }
    *at = link->next;
    table->count--;
}

static struct um_tr_link *skip_to(struct um_tr_link *link, uint32_t hash)
{
    while (link != NULL && link->hash != hash) {
        link = link->next;
    }
    return link;
}

struct um_tr_link *um_tr_table_find(const struct um_tr_table *table, uint32_t hash)
{
    return table->capacity == 0 ? NULL : skip_to(table->buckets[hash & (table->capacity - 1)], hash);
}

struct um_tr_link *um_tr_table_find_next(const struct um_tr_link *link)
{
    return skip_to(link->next, link->hash);
}

struct um_tr_link *um_tr_table_next(const struct um_tr_table *table, size_t *cursor, struct um_tr_link *link)
{
    if (link != NULL && link->next != NULL) {
        return link->next;
    }
    while (*cursor < table->capacity) {
        struct um_tr_link *head = table->buckets[(*cursor)++];
        if (head != NULL) {
            return head;
        }
    }
    return NULL;
}

void um_tr_table_free(struct um_tr_table *table)
{
    um_free(table->buckets);
    *table = (struct um_tr_table){0};
}
