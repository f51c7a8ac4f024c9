/* Intrusive hash table. See um_table.h. */
#include "base/um_table.h"

#include "base/um_mem.h"

static void grow(struct um_table *table)
{
    size_t capacity = table->capacity == 0 ? 16 : table->capacity * 2;
    struct um_table_link **buckets = um_calloc(capacity, sizeof *buckets);
    if (buckets == NULL) {
        return;
    }
    for (size_t i = 0; i < table->capacity; i++) {
        struct um_table_link *link = table->buckets[i];
        while (link != NULL) {
            struct um_table_link *next = link->next;
            struct um_table_link **head = &buckets[link->hash & (capacity - 1)];
            link->next = *head;
            *head = link;
            link = next;
        }
    }
    um_free(table->buckets);
    table->buckets = buckets;
    table->capacity = capacity;
}

int um_table_add(struct um_table *table, struct um_table_link *link, uint32_t hash)
{
    if (table->count >= 2 * table->capacity) { /* an empty bucket costs as much as a longer chain saves */
        grow(table);
    }
    if (table->capacity == 0) {
        return -1;
    }
    struct um_table_link **head = &table->buckets[hash & (table->capacity - 1)];
    link->hash = hash;
    link->next = *head;
    *head = link;
    table->count++;
    return 0;
}

void um_table_remove(struct um_table *table, struct um_table_link *link)
{
    struct um_table_link **at = &table->buckets[link->hash & (table->capacity - 1)];
    while (*at != link) {
        at = &(*at)->next;
    }
    *at = link->next;
    table->count--;
}

static struct um_table_link *skip_to(struct um_table_link *link, uint32_t hash)
{
    while (link != NULL && link->hash != hash) {
        link = link->next;
    }
    return link;
}

struct um_table_link *um_table_find(const struct um_table *table, uint32_t hash)
{
    return table->capacity == 0 ? NULL : skip_to(table->buckets[hash & (table->capacity - 1)], hash);
}

struct um_table_link *um_table_find_next(const struct um_table_link *link)
{
    return skip_to(link->next, link->hash);
}

struct um_table_link *um_table_next(const struct um_table *table, size_t *cursor, struct um_table_link *link)
{
    if (link != NULL && link->next != NULL) {
        return link->next;
    }
    while (*cursor < table->capacity) {
        struct um_table_link *head = table->buckets[(*cursor)++];
        if (head != NULL) {
            return head;
        }
    }
    return NULL;
}

#define EMPTY_PER_LINK 8 /* buckets looked at for each link that a step has room for */

static size_t reversed(size_t bits)
{
    size_t out = 0;
    for (unsigned i = 0; i < 8 * sizeof bits; i++, bits >>= 1) {
        out = out << 1 | (bits & 1);
    }
    return out;
}

/* Counts in the highest bits first. A bucket that a growth parts becomes buckets that agree in the lower bits: they lie
 * side by side in this order, and are all behind the cursor or all before it. */
static size_t next_bucket(size_t bucket, size_t mask)
{
    return reversed(reversed(bucket | ~mask) + 1);
}

static size_t take_chain(struct um_table_link *link, struct um_table_link **out, size_t room)
{
    size_t count = 0;
    for (; link != NULL && count < room; link = link->next) {
        out[count++] = link;
    }
    return link == NULL ? count : room + 1;
}

size_t um_table_scan(const struct um_table *table, struct um_table_scan *scan, struct um_table_link **out, size_t room)
{
    size_t count = 0;
    scan->done = scan->done || table->capacity == 0;
    for (size_t looked = 0; !scan->done && looked < EMPTY_PER_LINK * room; looked++) {
        size_t mask = table->capacity - 1;
        size_t taken = take_chain(table->buckets[scan->bucket & mask], out + count, room - count);
        if (taken > room - count && count > 0) {
            break; /* whole in the next step */
        }
        scan->cut = scan->cut || taken > room;
        count += taken > room ? room : taken;
        scan->bucket = next_bucket(scan->bucket & mask, mask);
        scan->done = scan->bucket == 0;
    }
    return count;
}

void um_table_free(struct um_table *table)
{
    um_free(table->buckets);
    *table = (struct um_table){0};
}
