/* lbm_apphdr_chain_*: chains of application headers and their iterators, which are
 * copies: neither chain nor message has to stay. Any thread, one at a time for an
 * object. */
#include <string.h>

#include <lbm/lbm.h>

#include "base/um_error.h"
#include "base/um_mem.h"
#include "core/um_apphdr.h"
#include "core/um_msg_extras.h"

#define ITER_MAGIC 0x554d4149u /* "UMAI" */

struct lbm_apphdr_chain_iter_t_stct {
    uint32_t magic;
    struct um_chain_iter next;       /* behind the current element */
    lbm_apphdr_chain_elem_t current; /* points into `chain` */
    uint8_t chain_len;
    uint8_t chain[UM_CHAIN_MAX];
};

int lbm_apphdr_chain_create(lbm_apphdr_chain_t **chain)
{
    if (chain == NULL) {
        return um_error(UM_EINVAL, "CoreApi-6021-2", "lbm_apphdr_chain_create: chain must be valid");
    }
    lbm_apphdr_chain_t *made = um_calloc(1, sizeof *made);
    if (made == NULL) {
        return um_error_nomem("application headers", sizeof *made);
    }
    made->magic = UM_APPHDR_MAGIC;
    um_chain_start(&made->writer);
    *chain = made;
    return 0;
}

int lbm_apphdr_chain_delete(lbm_apphdr_chain_t *chain)
{
    if (um_apphdr_check(chain, "lbm_apphdr_chain_delete") != 0) {
        return -1;
    }
    chain->magic = 0;
    um_free(chain);
    return 0;
}

int lbm_apphdr_chain_append_elem(lbm_apphdr_chain_t *chain, lbm_apphdr_chain_elem_t *elem)
{
    static const char api[] = "lbm_apphdr_chain_append_elem";
    if (um_apphdr_check(chain, api) != 0) {
        return -1;
    }
    if (elem == NULL || (elem->data == NULL && elem->len > 0)) {
        return um_error(UM_EINVAL, "CoreApi-6021-3", "%s: elem and its data must be valid", api);
    }
    if (elem->type != LBM_CHAIN_ELEM_USER_DATA) {
        return um_error(UM_EINVAL, "CoreApi-6021-4", "%s: type %u: must be LBM_CHAIN_ELEM_USER_DATA (%d)", api,
                        elem->type, LBM_CHAIN_ELEM_USER_DATA);
    }
    uint8_t *data = um_chain_add(&chain->writer, UM_CHAIN_USER_DATA, elem->subtype, elem->len);
    if (data == NULL) {
        return um_error(UM_EINVAL, "CoreApi-6021-5",
                        "%s: len %zu: the elements of a chain have at most %u bytes, %u for each beside its data; %u "
                        "are in use",
                        api, elem->len, UM_CHAIN_MAX - UM_CHAIN_HDR_LEN, UM_CHAIN_ELEM_LEN,
                        chain->writer.len - UM_CHAIN_HDR_LEN);
    }
    if (elem->len > 0) {
        memcpy(data, elem->data, elem->len);
    }
    return 0;
}

/* ---- iterators ---- */

/* To the next header of an application. False: there is none, and nothing has changed. */
static bool advance(lbm_apphdr_chain_iter_t *it)
{
    struct um_chain_iter next = it->next;
    struct um_chain_elem elem;
    while (um_chain_next(&next, &elem)) {
        if (elem.type == UM_CHAIN_USER_DATA) {
            it->next = next;
            it->current = (lbm_apphdr_chain_elem_t){.type = LBM_CHAIN_ELEM_USER_DATA,
                                                    .subtype = elem.res,
                                                    .len = elem.data.len,
                                                    .data = (void *)elem.data.ptr};
            return true;
        }
    }
    return false;
}

static void rewind_iter(lbm_apphdr_chain_iter_t *it)
{
    um_chain_begin(&it->next, (struct um_slice){it->chain, it->chain_len});
    advance(it);
}

static int create_iter(lbm_apphdr_chain_iter_t **chain_iter, struct um_slice chain, const char *api)
{
    struct um_chain_elem elem;
    *chain_iter = NULL;
    if (!um_chain_find(chain, UM_CHAIN_USER_DATA, 0, &elem)) {
        return um_error(UM_EINVAL, "CoreApi-6021-6", "%s: there are no application headers", api);
    }
    lbm_apphdr_chain_iter_t *it = um_calloc(1, sizeof *it);
    if (it == NULL) {
        return um_error_nomem("iterator of application headers", sizeof *it);
    }
    it->magic = ITER_MAGIC;
    it->chain_len = (uint8_t)chain.len;
    memcpy(it->chain, chain.ptr, chain.len);
    rewind_iter(it);
    *chain_iter = it;
    return 0;
}

int lbm_apphdr_chain_iter_create(lbm_apphdr_chain_iter_t **chain_iter, lbm_apphdr_chain_t *chain)
{
    static const char api[] = "lbm_apphdr_chain_iter_create";
    if (chain_iter == NULL) {
        return um_error(UM_EINVAL, "CoreApi-6021-7", "%s: chain_iter must be valid", api);
    }
    return um_apphdr_check(chain, api) == 0 ? create_iter(chain_iter, um_apphdr_elements(chain), api) : -1;
}

int lbm_apphdr_chain_iter_create_from_msg(lbm_apphdr_chain_iter_t **chain_iter, lbm_msg_t *msg)
{
    static const char api[] = "lbm_apphdr_chain_iter_create_from_msg";
    const struct um_msg *m = (const struct um_msg *)msg;
    if (chain_iter == NULL || m == NULL || m->magic != UM_MSG_MAGIC) {
        return um_error(UM_EINVAL, "CoreApi-6021-7", "%s: chain_iter and msg must be valid", api);
    }
    struct um_slice chain = {0};
    if (m->extras != NULL) {
        chain = (struct um_slice){m->extras->chain, m->extras->chain_len};
    }
    return create_iter(chain_iter, chain, api);
}

/* NULL + error. */
static lbm_apphdr_chain_iter_t *check_iter(lbm_apphdr_chain_iter_t **chain_iter, const char *api)
{
    if (chain_iter == NULL || *chain_iter == NULL || (*chain_iter)->magic != ITER_MAGIC) {
        um_error(UM_EINVAL, "CoreApi-6021-7", "%s: chain_iter must be valid", api);
        return NULL;
    }
    return *chain_iter;
}

int lbm_apphdr_chain_iter_delete(lbm_apphdr_chain_iter_t *chain_iter)
{
    if (check_iter(&chain_iter, "lbm_apphdr_chain_iter_delete") == NULL) {
        return -1;
    }
    chain_iter->magic = 0;
    um_free(chain_iter);
    return 0;
}

int lbm_apphdr_chain_iter_first(lbm_apphdr_chain_iter_t **chain_iter)
{
    lbm_apphdr_chain_iter_t *it = check_iter(chain_iter, "lbm_apphdr_chain_iter_first");
    if (it == NULL) {
        return -1;
    }
    rewind_iter(it);
    return 0;
}

int lbm_apphdr_chain_iter_done(lbm_apphdr_chain_iter_t **chain_iter)
{
    lbm_apphdr_chain_iter_t *it = check_iter(chain_iter, "lbm_apphdr_chain_iter_done");
    if (it == NULL) {
        return 0;
    }
    lbm_apphdr_chain_iter_t ahead = *it;
    return advance(&ahead);
}

int lbm_apphdr_chain_iter_next(lbm_apphdr_chain_iter_t **chain_iter)
{
    static const char api[] = "lbm_apphdr_chain_iter_next";
    lbm_apphdr_chain_iter_t *it = check_iter(chain_iter, api);
    if (it == NULL) {
        return -1;
    }
    return advance(it) ? 0 : um_error(UM_EINVAL, "CoreApi-6021-8", "%s: there are no more application headers", api);
}

lbm_apphdr_chain_elem_t *lbm_apphdr_chain_iter_current(lbm_apphdr_chain_iter_t **chain_iter)
{
    lbm_apphdr_chain_iter_t *it = check_iter(chain_iter, "lbm_apphdr_chain_iter_current");
    return it != NULL ? &it->current : NULL;
}
