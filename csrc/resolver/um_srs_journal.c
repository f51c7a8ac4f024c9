/* See um_srs_journal.h. */
#include "resolver/um_srs_journal.h"

#include <stddef.h>
#include <string.h>

#include "base/um_error.h"
#include "base/um_mem.h"

struct um_srs_journal {
    struct um_list items;                       /* um_srs_item.node, the change longest ago first */
    struct um_list unpublished;                 /* added, to be freed with the journal */
    struct um_list *places[UM_SRS_READERS_MAX]; /* what the reader is to be told next; the head of items: nothing */
    uint8_t reading;                            /* readers */
    uint64_t changes;
    size_t count;
};

#define EACH_READER(reader, journal)                                                                                   \
    for (unsigned reader = 0; reader < UM_SRS_READERS_MAX; reader++)                                                   \
        if (((journal)->reading >> reader & 1) != 0)

static struct um_srs_item *item_of(struct um_list *node)
{
    return UM_CONTAINER_OF(node, struct um_srs_item, node);
}

struct um_srs_journal *um_srs_journal_create(void)
{
    struct um_srs_journal *journal = um_calloc(1, sizeof *journal);
    if (journal == NULL) {
        um_error_nomem("list of what resolution servers are told", sizeof *journal);
        return NULL;
    }
    um_list_init(&journal->items);
    um_list_init(&journal->unpublished);
    return journal;
}

static void free_items(struct um_list *list)
{
    struct um_list *it, *next;
    UM_LIST_FOREACH_SAFE(it, next, list)
    {
        um_free(item_of(it));
    }
}

void um_srs_journal_destroy(struct um_srs_journal *journal)
{
    if (journal == NULL) {
        return;
    }
    free_items(&journal->items);
    free_items(&journal->unpublished);
    um_free(journal);
}

size_t um_srs_journal_count(const struct um_srs_journal *journal)
{
    return journal->count;
}

/* ---- the list ---- */

/* Readers that stood at the end, stand before it now. */
static void append(struct um_srs_journal *journal, struct um_srs_item *item)
{
    item->change = ++journal->changes;
    um_list_remove(&item->node);
    um_list_push_back(&journal->items, &item->node);
    journal->count++;
    EACH_READER(reader, journal)
    {
        if (journal->places[reader] == &journal->items) {
            journal->places[reader] = &item->node;
        }
    }
}

static void unlink_item(struct um_srs_journal *journal, struct um_srs_item *item)
{
    EACH_READER(reader, journal)
    {
        if (journal->places[reader] == &item->node) {
            journal->places[reader] = item->node.next;
        }
    }
    um_list_remove(&item->node);
    journal->count--;
}

/* Everybody who was to be told has been. */
static void let_go(struct um_srs_journal *journal, struct um_srs_item *item)
{
    unlink_item(journal, item);
    um_free(item);
}

/* Readers that are past the item. */
static uint8_t told(const struct um_srs_journal *journal, const struct um_srs_item *item)
{
    uint8_t readers = 0;
    EACH_READER(reader, journal)
    {
        struct um_list *place = journal->places[reader];
        if (place == &journal->items || item_of(place)->change > item->change) {
            readers |= (uint8_t)(1u << reader);
        }
    }
    return readers;
}

/* ---- what there is to tell ---- */

struct um_srs_item *um_srs_journal_add(struct um_srs_journal *journal, enum um_srs_kind kind, const char *text,
                                       size_t len, const struct um_tr_source *source)
{
    size_t size = source != NULL ? sizeof(struct um_srs_item) : offsetof(struct um_srs_item, at);
    struct um_srs_item *item = um_malloc(size + len + 1);
    if (item == NULL) {
        return NULL;
    }
    memset(item, 0, size);
    char *copy = (char *)item + size;
    memcpy(copy, text, len);
    copy[len] = '\0';
    item->kind = kind;
    item->text = copy;
    item->len = len;
    if (source != NULL) {
        item->at = *source;
        item->at.topic = copy;
    }
    um_list_init(&item->node);
    um_list_push_back(&journal->unpublished, &item->node);
    return item;
}

void um_srs_journal_publish(struct um_srs_journal *journal, struct um_srs_item *item)
{
    if (!item->published) {
        item->published = true;
        append(journal, item);
    }
}

void um_srs_journal_end(struct um_srs_journal *journal, struct um_srs_item *item)
{
    if (!item->published) {
        um_list_remove(&item->node);
        um_free(item);
        return;
    }
    item->owed = told(journal, item);
    if (item->owed == 0) {
        let_go(journal, item);
        return;
    }
    item->ended = true;
    unlink_item(journal, item);
    append(journal, item);
}

int um_srs_journal_leave(struct um_srs_journal *journal, const struct um_tr_source *source, uint8_t readers)
{
    if ((readers & journal->reading) == 0) {
        return 0;
    }
    struct um_srs_item *item = um_srs_journal_add(journal, UM_SRS_LEAVE, source->topic, strlen(source->topic), source);
    if (item == NULL) {
        return -1;
    }
    item->owed = readers & journal->reading;
    um_srs_journal_publish(journal, item);
    return 0;
}

/* ---- readers ---- */

/* Ends and leaves are told to some readers only. */
static bool is_owed(const struct um_srs_item *item, unsigned reader)
{
    bool lasting = !item->ended && item->kind != UM_SRS_LEAVE;
    return lasting || (item->owed >> reader & 1) != 0;
}

/* The item may be freed. */
static void settle(struct um_srs_journal *journal, struct um_srs_item *item, unsigned reader)
{
    bool lasting = !item->ended && item->kind != UM_SRS_LEAVE;
    item->owed &= (uint8_t) ~(1u << reader);
    if (!lasting && item->owed == 0) {
        let_go(journal, item);
    }
}

void um_srs_journal_begin(struct um_srs_journal *journal, unsigned reader)
{
    um_srs_journal_stop(journal, reader);
    journal->reading |= (uint8_t)(1u << reader);
    journal->places[reader] = journal->items.next;
}

void um_srs_journal_stop(struct um_srs_journal *journal, unsigned reader)
{
    if ((journal->reading >> reader & 1) == 0) {
        return;
    }
    struct um_list *it = journal->places[reader], *next; /* what it is owed comes after what it has read */
    journal->reading &= (uint8_t) ~(1u << reader);
    for (; it != &journal->items; it = next) {
        next = it->next;
        settle(journal, item_of(it), reader);
    }
}

const struct um_srs_item *um_srs_journal_next(struct um_srs_journal *journal, unsigned reader)
{
    if ((journal->reading >> reader & 1) == 0) {
        return NULL;
    }
    struct um_list *it = journal->places[reader];
    while (it != &journal->items && !is_owed(item_of(it), reader)) {
        it = it->next;
    }
    journal->places[reader] = it;
    return it == &journal->items ? NULL : item_of(it);
}

void um_srs_journal_take(struct um_srs_journal *journal, unsigned reader)
{
    struct um_list *it = journal->places[reader];
    journal->places[reader] = it->next;
    settle(journal, item_of(it), reader);
}
