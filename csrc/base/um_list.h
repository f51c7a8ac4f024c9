/* Intrusive doubly linked list. The owner of the list locks; a node is in at
 * most one list. An unlinked node points to itself. */
#ifndef UM_BASE_LIST_H
#define UM_BASE_LIST_H

#include <stdbool.h>

struct um_list {
    struct um_list *next;
    struct um_list *prev;
};

static inline void um_list_init(struct um_list *list)
{
    list->next = list;
    list->prev = list;
}

static inline bool um_list_empty(const struct um_list *list)
{
    return list->next == list;
}

static inline void um_list_insert_before(struct um_list *where, struct um_list *node)
{
    node->prev = where->prev;
    node->next = where;
    where->prev->next = node;
    where->prev = node;
}

static inline void um_list_push_back(struct um_list *list, struct um_list *node)
{
    um_list_insert_before(list, node);
}

static inline void um_list_push_front(struct um_list *list, struct um_list *node)
{
    um_list_insert_before(list->next, node);
}

/* Harmless on a node that is not linked. */
static inline void um_list_remove(struct um_list *node)
{
    node->prev->next = node->next;
    node->next->prev = node->prev;
    um_list_init(node);
}

/* First node, or NULL. */
static inline struct um_list *um_list_first(const struct um_list *list)
{
    return list->next == list ? (struct um_list *)0 : list->next;
}

/* Walk; the body may remove `it`. */
#define UM_LIST_FOREACH_SAFE(it, tmp, list)                                                                            \
    for ((it) = (list)->next, (tmp) = (it)->next; (it) != (list); (it) = (tmp), (tmp) = (it)->next)

#define UM_LIST_FOREACH(it, list) for ((it) = (list)->next; (it) != (list); (it) = (it)->next)

#endif
