/* Client table of an LBT-RU source. See um_lbtru_clients.h. */
#include "transport/lbtr/um_lbtru_clients.h"

#include <string.h>

#include "base/um_hash.h"
#include "base/um_mem.h"

#define NUMBERS_INITIAL 64u

bool um_lbtru_clients_init(struct um_lbtru_clients *clients, size_t buckets, size_t max, uint32_t numbers)
{
    memset(clients, 0, sizeof *clients);
    clients->bucket_count = buckets > 0 ? buckets : 1;
    clients->max = max;
    clients->numbers_initial = numbers != 0 ? numbers : NUMBERS_INITIAL;
    um_list_init(&clients->all);
    um_list_init(&clients->by_activity);
    clients->buckets = um_calloc(clients->bucket_count, sizeof(struct um_lbtru_client *));
    return clients->buckets != NULL;
}

static struct um_lbtru_client **bucket_of(const struct um_lbtru_clients *clients,
                                          const struct um_lbtru_address *address)
{
    uint32_t hash = um_hash_u32(address->ip ^ um_hash_u32(address->port));
    return &clients->buckets[hash % clients->bucket_count];
}

struct um_lbtru_client *um_lbtru_clients_find(const struct um_lbtru_clients *clients,
                                              const struct um_lbtru_address *address)
{
    for (struct um_lbtru_client *c = *bucket_of(clients, address); c != NULL; c = c->next_in_bucket) {
        if (c->address.ip == address->ip && c->address.port == address->port) {
            return c;
        }
    }
    return NULL;
}

struct um_lbtru_client *um_lbtru_clients_add(struct um_lbtru_clients *clients, const struct um_lbtru_address *address,
                                             uint32_t first_sqn)
{
    if (clients->count >= clients->max) {
        return NULL;
    }
    struct um_lbtru_client *client = um_calloc(1, sizeof *client);
    if (client == NULL) {
        return NULL;
    }
    if (!um_lbtr_numbers_init(&client->numbers, clients->numbers_initial, first_sqn)) {
        um_free(client);
        return NULL;
    }
    if (clients->numbers_initial != NUMBERS_INITIAL) {
        um_lbtr_numbers_touch(&client->numbers); /* of a smart source, whose sends wait for no page */
    }
    struct um_lbtru_client **bucket = bucket_of(clients, address);
    client->address = *address;
    client->next_in_bucket = *bucket;
    *bucket = client;
    um_list_push_back(&clients->all, &client->node);
    um_list_push_back(&clients->by_activity, &client->activity);
    clients->count++;
    return client;
}

void um_lbtru_clients_remove(struct um_lbtru_clients *clients, struct um_lbtru_client *client)
{
    struct um_lbtru_client **at = bucket_of(clients, &client->address);
    while (*at != client) {
        at = &(*at)->next_in_bucket;
    }
    *at = client->next_in_bucket;
    um_list_remove(&client->node);
    um_list_remove(&client->activity);
    um_lbtr_numbers_free(&client->numbers);
    um_free(client);
    clients->count--;
}

void um_lbtru_clients_free(struct um_lbtru_clients *clients)
{
    while (clients->count > 0) {
        um_lbtru_clients_remove(clients, um_lbtru_clients_quietest(clients));
    }
    um_free(clients->buckets);
}

void um_lbtru_clients_heard(struct um_lbtru_clients *clients, struct um_lbtru_client *client, uint64_t now_ns)
{
    client->last_heard_ns = now_ns;
    um_list_remove(&client->activity);
    um_list_push_back(&clients->by_activity, &client->activity);
}

struct um_lbtru_client *um_lbtru_clients_quietest(const struct um_lbtru_clients *clients)
{
    struct um_list *node = um_list_first(&clients->by_activity);
    return node != NULL ? UM_CONTAINER_OF(node, struct um_lbtru_client, activity) : NULL;
}
