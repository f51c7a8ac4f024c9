/* Calls of lbm.h that need no object: version, licence, random ids, source strings, capability questions, and what only
 * other platforms need. No state; any thread. */
#include <lbm/lbm.h>
#include <lbm/um.h>

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/um_error.h"
#include "base/um_mem.h"
#include "base/um_random.h"
#include "wire/um_source_string.h"

const char *um_version(void)
{
    return UM_VERSION;
}

const char *lbm_version(void)
{
    return "UM 6.17 (libum " UM_VERSION ")";
}

/* There is no licence to check: the files and texts of existing installations are accepted and ignored. */
int lbm_license_file(const char *licfile)
{
    return 0;
}

int lbm_license_str(const char *licstr)
{
    return 0;
}

int lbm_license_ummnm_valid(void)
{
    return 0;
}

int lbm_license_vds_valid(void)
{
    return 0;
}

/* Persistence and queuing are not built in yet. */
int lbm_is_ume_capable(void)
{
    return 0;
}

int lbm_is_umq_capable(void)
{
    return 0;
}

/* Inert by definition: credentials were checked by daemons that no longer exist. */
int lbm_auth_set_credentials(lbm_context_t *ctx, const char *name, size_t name_len, const char *passwd,
                             size_t passwd_len, lbm_cred_callback_fn cbfn, void *clientd, int auth_required)
{
    return 0;
}

/* Windows only. */
void lbm_sock_init(void)
{
}

int lbm_win32_static_thread_attach(void)
{
    return 0;
}

int lbm_win32_static_thread_detach(void)
{
    return 0;
}

lbm_uint64_t lbm_create_random_id(void)
{
    lbm_uint64_t id;
    um_random_bytes(&id, sizeof id);
    return id;
}

char *lbm_get_jms_msg_id(lbm_uint64_t source_id, lbm_uint64_t seqno_id, char *topic)
{
    if (topic == NULL) {
        um_error(UM_EINVAL, "CoreApi-9011-1", "lbm_get_jms_msg_id: topic must be valid");
        return NULL;
    }
    size_t size = strlen(topic) + sizeof "ID:0123456789abcdef:0123456789abcdef:";
    char *text = um_malloc(size);
    if (text == NULL) {
        um_error_nomem("lbm_get_jms_msg_id", size);
        return NULL;
    }
    snprintf(text, size, "ID:%" PRIx64 ":%" PRIx64 ":%s", source_id, seqno_id, topic);
    return text;
}

/* Programs may know a structure without its last, unused member. */
#define SOURCE_INFO_MINIMUM offsetof(lbm_transport_source_info_t, transport_idx)

int lbm_transport_source_parse(const char *source, lbm_transport_source_info_t *info, size_t infosize)
{
    if (source == NULL || info == NULL) {
        return um_error(UM_EINVAL, "CoreApi-9011-2", "lbm_transport_source_parse: %s must be valid",
                        source == NULL ? "source" : "info");
    }
    if (infosize < SOURCE_INFO_MINIMUM) {
        return um_error(UM_EINVAL, "CoreApi-9011-3", "lbm_transport_source_parse: infosize %zu: must be %zu", infosize,
                        sizeof *info);
    }
    lbm_transport_source_info_t parsed;
    if (um_source_string_parse(source, &parsed) != 0) {
        return -1;
    }
    memcpy(info, &parsed, infosize < sizeof parsed ? infosize : sizeof parsed);
    return 0;
}

int lbm_transport_source_format(const lbm_transport_source_info_t *info, size_t infosize, char *source, size_t *size)
{
    if (info == NULL || source == NULL || size == NULL) {
        return um_error(UM_EINVAL, "CoreApi-9011-4", "lbm_transport_source_format: %s must be valid",
                        info == NULL ? "info" : (source == NULL ? "source" : "size"));
    }
    if (infosize < SOURCE_INFO_MINIMUM) {
        return um_error(UM_EINVAL, "CoreApi-9011-5", "lbm_transport_source_format: infosize %zu: must be %zu", infosize,
                        sizeof *info);
    }
    lbm_transport_source_info_t copy;
    memset(&copy, 0, sizeof copy);
    memcpy(&copy, info, infosize < sizeof copy ? infosize : sizeof copy);
    int len = um_source_string_format(&copy, source, *size);
    if (len < 0) {
        return -1;
    }
    *size = (size_t)len;
    return 0;
}
