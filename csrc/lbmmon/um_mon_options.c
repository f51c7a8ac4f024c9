/* Takes option strings of modules apart. Owns nothing. Any thread. */
#include "lbmmon/um_mon_options.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

#include <lbm/lbmmon.h>

#include "lbmmon/um_mon_error.h"

struct span {
    const char *from, *to;
};

static struct span trimmed(const char *from, const char *to)
{
    while (from < to && isspace((unsigned char)*from)) {
        from++;
    }
    while (to > from && isspace((unsigned char)to[-1])) {
        to--;
    }
    return (struct span){from, to};
}

/* False: it does not fit. */
static bool copy(struct span span, char *out, size_t room)
{
    size_t len = (size_t)(span.to - span.from);
    if (len >= room) {
        return false;
    }
    memcpy(out, span.from, len);
    out[len] = '\0';
    return true;
}

/* Lines are parts as well: options may come from a file. Parts without a name are passed over, and so is one that has
 * no room: it would be read as something else. */
const char *lbmmon_next_key_value_pair(const char *String, char *Key, size_t KeySize, char *Value, size_t ValueSize)
{
    if (Key == NULL || Value == NULL || KeySize == 0 || ValueSize == 0) {
        um_mon_error(LBMMON_EINVAL, "lbmmon_next_key_value_pair: Key and Value: must have room");
        return NULL;
    }
    Key[0] = Value[0] = '\0';
    while (String != NULL && *String != '\0') {
        const char *end = String + strcspn(String, ";\n");
        const char *equals = memchr(String, '=', (size_t)(end - String));
        struct span key = trimmed(String, equals != NULL ? equals : end);
        struct span value = equals != NULL ? trimmed(equals + 1, end) : (struct span){end, end};
        String = *end != '\0' ? end + 1 : end;
        if (key.from < key.to && copy(key, Key, KeySize) && copy(value, Value, ValueSize)) {
            return String;
        }
        Key[0] = Value[0] = '\0';
    }
    return NULL;
}

const char *um_mon_option_next(const char *text, struct um_mon_option *out)
{
    return lbmmon_next_key_value_pair(text, out->name, sizeof out->name, out->value, sizeof out->value);
}

int um_mon_passthrough(const char *value)
{
    static const char *const words[] = {"off", "on", "convert"};
    for (int i = 0; i < 3; i++) {
        if (strcasecmp(value, words[i]) == 0) {
            return i;
        }
    }
    return -1;
}

bool um_mon_switch(const char *value, bool *out)
{
    static const char *const words[][2] = {{"off", "on"}, {"0", "1"}, {"false", "true"}, {"no", "yes"}};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        for (int on = 0; on < 2; on++) {
            if (strcasecmp(value, words[i][on]) == 0) {
                *out = on != 0;
                return true;
            }
        }
    }
    return false;
}
