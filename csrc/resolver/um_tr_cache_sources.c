/* Sources in the cache of topic resolution: kept small, found by topic and
 * transport, filed as kept or ageing. Part of the cache; its thread. */
#include "resolver/um_tr_cache_private.h"

#include "wire/um_transport_place.h"

static bool in_memory(int type)
{
    return um_transport_place(type) == UM_PLACE_MEMORY;
}

static void source_info(const struct trc_source *source, lbm_transport_source_info_t *out)
{
    memset(out, 0, sizeof *out);
    out->type = source->type;
    out->src_ip = source->src_ip;
    out->src_port = source->src_port;
    out->dest_port = source->dest_port;
    *(in_memory(source->type) ? &out->transport_id : &out->mc_group) = source->group_or_id;
    out->session_id = source->session_id;
    out->topic_idx = source->topic_idx;
}

/* What a source is known by, without what its transport has no use for. */
static void keep_info(struct trc_source *source, const lbm_transport_source_info_t *info)
{
    source->type = (uint8_t)info->type;
    source->src_ip = info->src_ip;
    source->src_port = info->src_port;
    source->dest_port = info->dest_port;
    source->group_or_id = in_memory(info->type) ? info->transport_id : info->mc_group;
    source->session_id = info->session_id;
    source->topic_idx = info->topic_idx;
}

static bool same_info(const struct trc_source *a, const struct trc_source *b)
{
    return a->type == b->type && a->src_ip == b->src_ip && a->src_port == b->src_port && a->dest_port == b->dest_port &&
           a->group_or_id == b->group_or_id && a->session_id == b->session_id && a->topic_idx == b->topic_idx;
}

static uint32_t key_hash(const struct um_tr_entry *entry, const struct trc_source *source)
{
    uint32_t key[6] = {(uint32_t)source->type, source->src_ip,     (uint32_t)source->src_port << 16 | source->dest_port,
                       source->group_or_id,    source->session_id, source->topic_idx};
    return um_hash_bytes(key, sizeof key) ^ entry->link.hash;
}

struct trc_source *trc_source_find(const struct um_tr_cache *cache, const struct um_tr_entry *entry,
                                   const lbm_transport_source_info_t *info)
{
    struct trc_source key;
    keep_info(&key, info);
    struct um_table_link *link = um_table_find(&cache->source_keys, key_hash(entry, &key));
    for (; link != NULL; link = um_table_find_next(link)) {
        struct trc_source *source = UM_CONTAINER_OF(link, struct trc_source, link);
        if (source->entry == entry && same_info(source, &key)) {
            return source;
        }
    }
    return NULL;
}

/* The OTID is set once, with the context instance that it may be made of. */
void trc_source_update(struct trc_source *source, const struct um_tr_source *told)
{
    if (source->otid_form == UM_TR_OTID_NONE && told->has_otid) {
        lbm_transport_source_info_t info;
        source_info(source, &info);
        if (told->has_ctxinst) {
            source->has_ctxinst = true;
            memcpy(source->ctxinst, told->ctxinst, sizeof source->ctxinst);
        }
        source->otid_form = um_tr_otid_keep(&source->otid, &info, source->ctxinst, told->otid);
    }
    source->request_ip = told->request_ip;
    source->request_port = told->request_port;
    source->functionality = told->functionality;
    source->cost = told->cost;
    source->domain_id = told->domain_id;
}

/* The topic's text is the entry's, which lives until the outermost call returns. */
void trc_source_tell(const struct trc_source *source, struct um_tr_source *out)
{
    memset(out, 0, sizeof *out);
    out->topic = source->entry->name;
    source_info(source, &out->info);
    um_tr_otid_get(&source->otid, source->otid_form, &out->info, source->ctxinst, out->otid);
    memcpy(out->ctxinst, source->ctxinst, sizeof out->ctxinst);
    out->has_otid = source->otid_form != UM_TR_OTID_NONE;
    out->has_ctxinst = source->has_ctxinst;
    out->request_ip = source->request_ip;
    out->request_port = source->request_port;
    out->functionality = source->functionality;
    out->cost = source->cost;
    out->domain_id = source->domain_id;
    out->told_by = source->told_by;
}

struct trc_source *trc_source_new(struct um_tr_cache *cache, struct um_tr_entry *entry, const struct um_tr_source *told,
                                  uint8_t teller)
{
    struct trc_source *source = um_calloc(1, sizeof *source);
    if (source == NULL) {
        return NULL;
    }
    keep_info(source, &told->info);
    source->entry = entry;
    if (um_table_add(&cache->source_keys, &source->link, key_hash(entry, source)) != 0) {
        um_free(source);
        return NULL;
    }
    source->has_ctxinst = told->has_ctxinst;
    memcpy(source->ctxinst, told->ctxinst, sizeof source->ctxinst);
    source->told_by = told->told_by;
    source->tellers = teller;
    trc_source_update(source, told);
    um_list_init(&source->node);
    um_list_init(&source->heard);
    um_list_init(&source->heard_of_host);
    trc_source_file(cache, source);
    entry->source_count++;
    entry->link.word = 0;
    for (struct um_tr_topic *topic = entry->subscribers; topic != NULL; topic = topic->next) {
        topic->notified = topic->internal_notified = false;
    }
    trc_update_unresolved(cache, entry);
    return source;
}

void trc_source_file(struct um_tr_cache *cache, struct trc_source *source)
{
    bool kept = source->used || (source->tellers & cache->present) != 0;
    if (kept && source->ageing) {
        trc_age_remove(cache, source);
    } else if (source->ageing) {
        trc_age_heard(cache, source);
    } else if (!kept) {
        trc_age_add(cache, source);
    }
    um_list_remove(&source->node);
    um_list_push_front(kept ? &source->entry->kept : &source->entry->ageing, &source->node);
}

void trc_source_unlink(struct um_tr_cache *cache, struct trc_source *source)
{
    struct um_tr_entry *entry = source->entry;
    /* A walk over the sources may stand on this node: it leaves the list but keeps its successor. */
    source->node.prev->next = source->node.next;
    source->node.next->prev = source->node.prev;
    if (source->ageing) {
        trc_age_remove(cache, source);
    }
    um_table_remove(&cache->source_keys, &source->link);
    um_tr_otid_free(&source->otid, source->otid_form);
    source->otid_form = UM_TR_OTID_NONE;
    source->dead = true;
    entry->source_count--;
    trc_update_unresolved(cache, entry);
    trc_bury(cache, &source->grave);
}

void trc_source_forget(struct um_tr_cache *cache, struct trc_source *source)
{
    struct um_tr_entry *entry = source->entry;
    trc_source_unlink(cache, source);
    trc_source_lost(cache, entry);
    trc_entry_release_if_empty(cache, entry);
}
