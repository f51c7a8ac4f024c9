/* Definitions as bytes: the payload of a definition segment. Written in the order of this host, read in both. */
#include "pdm/um_pdm.h"

#include "base/um_mem.h"

uint32_t um_pdm_defn_length(const lbmpdm_defn_t *defn)
{
    return UM_PDM_DEFN_HEADER_LEN + defn->info_len;
}

static uint8_t *write_field(uint8_t *at, const struct um_pdm_field *field, int32_t id)
{
    uint32_t name_len = field->name == NULL ? 0 : (uint32_t)strlen(field->name) + 1;
    if (field->name != NULL) {
        um_pdm_write32(at, UM_PDM_ENTRY_LEN + name_len);
        at += 4;
    }
    um_pdm_write32(at, (uint32_t)id);
    um_pdm_write32(at + 4, field->len);
    um_pdm_write32(at + 8, field->fixed_str_len);
    um_pdm_write32(at + 12, field->count);
    at[16] = field->required;
    at[17] = field->fixed;
    um_pdm_write32(at + 18, (uint32_t)field->int_name);
    um_pdm_write32(at + 22, name_len);
    if (name_len != 0) {
        memcpy(at + 26, field->name, name_len);
    }
    um_pdm_write16(at + 26 + name_len, (uint16_t)field->code);
    return at + UM_PDM_ENTRY_LEN + name_len;
}

void um_pdm_defn_write(const lbmpdm_defn_t *defn, uint8_t *out)
{
    um_pdm_write32(out, (uint32_t)defn->id);
    um_pdm_write32(out + 4, (uint32_t)defn->count);
    out[8] = defn->integer_names ? PDM_DEFN_INT_FIELD_NAMES : PDM_DEFN_STR_FIELD_NAMES;
    out[9] = 1;
    out[10] = (uint8_t)defn->major;
    out[11] = (uint8_t)defn->minor;
    um_pdm_write32(out + 12, defn->fixed_len);
    um_pdm_write32(out + 16, defn->info_len);
    uint8_t *at = out + UM_PDM_DEFN_HEADER_LEN;
    for (int32_t i = 0; i < defn->count; i++) {
        at = write_field(at, &defn->fields[i], i);
    }
}

/* ---- reading ---- */

struct entry {
    struct um_pdm_field field;
    uint32_t id;
    struct um_slice name; /* with its NUL */
};

/* The entry at the beginning of the bytes, or false. Takes it off them. */
static bool read_entry(struct um_slice *bytes, bool integer_names, bool swap, struct entry *out)
{
    const uint8_t *at = bytes->ptr;
    size_t len = UM_PDM_ENTRY_LEN, skip = integer_names ? 0 : 4;
    if (bytes->len < len + skip) {
        return false;
    }
    if (!integer_names) {
        len = um_pdm_read32(at, swap);
        at += 4;
        if (len < UM_PDM_ENTRY_LEN || len > bytes->len - 4) {
            return false;
        }
    }
    uint32_t name_len = um_pdm_read32(at + 22, swap);
    if (name_len != len - UM_PDM_ENTRY_LEN) {
        return false;
    }
    uint16_t code;
    memcpy(&code, at + 26 + name_len, sizeof code);
    code = swap ? __builtin_bswap16(code) : code;
    out->id = um_pdm_read32(at, swap);
    out->name = (struct um_slice){at + 26, name_len};
    struct um_pdm_field *field = &out->field;
    *field = (struct um_pdm_field){
        .type = um_pdm_type(code),
        .code = (int16_t)code,
        .fixed_str_len = um_pdm_read32(at + 8, swap),
        .count = um_pdm_read32(at + 12, swap),
        .required = at[16] == 1,
        .int_name = integer_names ? (int32_t)um_pdm_read32(at + 18, swap) : 0,
    };
    bytes->ptr = at + len;
    bytes->len -= len + skip;
    return field->type != NULL && at[16] <= 1 && at[17] <= 1 && um_pdm_field_measure(field) &&
           field->fixed == (at[17] == 1) && field->len == um_pdm_read32(at + 4, swap);
}

static bool good_name(struct um_slice name)
{
    return name.len >= 2 && memchr(name.ptr, '\0', name.len) == name.ptr + name.len - 1;
}

/* Entries may be in any order, ids are places. */
static int append_all(lbmpdm_defn_t *defn, struct entry *entries, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        struct um_pdm_field *field = &entries[i].field;
        if (!defn->integer_names && (field->name = um_strdup((const char *)entries[i].name.ptr)) == NULL) {
            return um_pdm_error(PDM_ERR_NOMEM, "definition: out of memory");
        }
        if (um_pdm_defn_append(defn, field) < 0) {
            return um_pdm_error_is(PDM_ERR_NOMEM) ? PDM_FAILURE
                                                  : um_pdm_error(PDM_ERR_DEFN_INVALID, "two fields have one name");
        }
    }
    return PDM_SUCCESS;
}

static int fill(lbmpdm_defn_t *defn, struct um_slice bytes, uint32_t count, bool swap)
{
    struct entry *entries = um_calloc(count, sizeof *entries), entry;
    int rc = PDM_SUCCESS;
    if (entries == NULL) {
        return um_pdm_error(PDM_ERR_NOMEM, "definition: out of memory");
    }
    for (uint32_t i = 0; i < count && rc == PDM_SUCCESS; i++) {
        if (!read_entry(&bytes, defn->integer_names, swap, &entry) || entry.id >= count ||
            entries[entry.id].field.type != NULL || (!defn->integer_names && !good_name(entry.name))) {
            rc = um_pdm_error(PDM_ERR_DEFN_INVALID, "field entry %u of the definition is not valid", (unsigned)i);
        } else {
            entries[entry.id] = entry;
        }
    }
    if (rc == PDM_SUCCESS && bytes.len != 0) {
        rc = um_pdm_error(PDM_ERR_DEFN_INVALID, "bytes are left behind the fields of the definition");
    }
    if (rc == PDM_SUCCESS) {
        rc = append_all(defn, entries, count);
    }
    um_free(entries);
    return rc;
}

lbmpdm_defn_t *um_pdm_defn_read(const uint8_t *bytes, size_t len, bool swap)
{
    if (len < UM_PDM_DEFN_HEADER_LEN + UM_PDM_ENTRY_LEN) {
        (void)um_pdm_error(PDM_ERR_DEFN_INVALID, "%zu bytes are too few for a definition", len);
        return NULL;
    }
    uint32_t count = um_pdm_read32(bytes + 4, swap), fixed_len = um_pdm_read32(bytes + 12, swap);
    size_t info_len = len - UM_PDM_DEFN_HEADER_LEN;
    if (count < 1 || count > info_len / UM_PDM_ENTRY_LEN || um_pdm_read32(bytes + 16, swap) != info_len ||
        bytes[8] > PDM_DEFN_INT_FIELD_NAMES) {
        (void)um_pdm_error(PDM_ERR_DEFN_INVALID, "the header of the definition is not valid");
        return NULL;
    }
    lbmpdm_defn_t *defn = um_pdm_defn_new((int32_t)um_pdm_read32(bytes, swap), (int8_t)bytes[10], (int8_t)bytes[11],
                                          bytes[8] == PDM_DEFN_INT_FIELD_NAMES);
    if (defn == NULL) {
        return NULL;
    }
    int rc = fill(defn, (struct um_slice){bytes + UM_PDM_DEFN_HEADER_LEN, info_len}, count, swap);
    if (rc == PDM_SUCCESS) {
        rc = um_pdm_defn_close(defn);
    }
    if (rc == PDM_SUCCESS && defn->fixed_len != fixed_len) {
        rc = um_pdm_error(PDM_ERR_DEFN_INVALID, "fixed_req_section_len %u is not the sum %u of the fields",
                          (unsigned)fixed_len, (unsigned)defn->fixed_len);
    }
    if (rc != PDM_SUCCESS) {
        um_pdm_defn_release(defn);
        return NULL;
    }
    return defn;
}

/* ---- the API ---- */

uint32_t lbmpdm_defn_get_length(lbmpdm_defn_t *defn)
{
    if (defn == NULL) {
        (void)um_pdm_error(PDM_ERR_EINVAL, "no definition was given");
        return 0;
    }
    return um_pdm_defn_length(defn);
}

int lbmpdm_defn_serialize(lbmpdm_defn_t *defn, char *buffer, uint32_t *defn_len)
{
    if (defn == NULL || buffer == NULL || defn_len == NULL) {
        return um_pdm_error(PDM_ERR_EINVAL, "a definition, a buffer and a place for the length are needed");
    }
    if (!defn->finalized) {
        return um_pdm_error(PDM_ERR_DEFN_INVALID, "the definition is not finalized");
    }
    um_pdm_defn_write(defn, (uint8_t *)buffer);
    *defn_len = um_pdm_defn_length(defn);
    return PDM_SUCCESS;
}

int lbmpdm_defn_deserialize(lbmpdm_defn_t *defn, const char *bufptr, uint32_t buflen, uint8_t swap_bytes)
{
    if (defn == NULL || bufptr == NULL) {
        return um_pdm_error(PDM_ERR_EINVAL, "a definition and its bytes are needed");
    }
    if (atomic_load(&defn->references) != 1 || atomic_load(&defn->in_cache)) {
        return um_pdm_error(PDM_ERR_DEFN_INVALID, "the definition is used by a message or the cache");
    }
    lbmpdm_defn_t *made = um_pdm_defn_read((const uint8_t *)bufptr, buflen, swap_bytes != PDM_FALSE);
    if (made == NULL) {
        return PDM_FAILURE;
    }
    um_pdm_defn_drop_fields(defn);
    *defn = *made;
    um_free(made);
    return PDM_SUCCESS;
}
