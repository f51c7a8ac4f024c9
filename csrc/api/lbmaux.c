/* lbmaux.h: attribute objects filled from a plain configuration file, and the text of monitoring options from a file.
 * No state; any thread that owns the attribute object. */
#include <lbm/lbmaux.h>

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/um_error.h"
#include "base/um_mem.h"
#include "config/um_config.h"

/* Attribute handles are struct um_attr, which knows its scope. */
static int apply_file(void *attributes, const char *file, const char *api)
{
    if (attributes == NULL || file == NULL) {
        return um_error(UM_EINVAL, "CoreApi-9013-1", "%s: %s must be valid", api,
                        attributes == NULL ? "Attributes" : "ConfigFile");
    }
    return um_config_file(file, attributes);
}

int lbmaux_context_attr_setopt_from_file(lbm_context_attr_t *Attributes, const char *ConfigFile)
{
    return apply_file(Attributes, ConfigFile, "lbmaux_context_attr_setopt_from_file");
}

int lbmaux_src_topic_attr_setopt_from_file(lbm_src_topic_attr_t *Attributes, const char *ConfigFile)
{
    return apply_file(Attributes, ConfigFile, "lbmaux_src_topic_attr_setopt_from_file");
}

int lbmaux_rcv_topic_attr_setopt_from_file(lbm_rcv_topic_attr_t *Attributes, const char *ConfigFile)
{
    return apply_file(Attributes, ConfigFile, "lbmaux_rcv_topic_attr_setopt_from_file");
}

int lbmaux_wildcard_rcv_attr_setopt_from_file(lbm_wildcard_rcv_attr_t *Attributes, const char *ConfigFile)
{
    return apply_file(Attributes, ConfigFile, "lbmaux_wildcard_rcv_attr_setopt_from_file");
}

int lbmaux_event_queue_attr_setopt_from_file(lbm_event_queue_attr_t *Attributes, const char *ConfigFile)
{
    return apply_file(Attributes, ConfigFile, "lbmaux_event_queue_attr_setopt_from_file");
}

int lbmaux_context_create_from_file(lbm_context_t **Context, const char *ConfigFile)
{
    if (Context == NULL) {
        return um_error(UM_EINVAL, "CoreApi-9013-2", "lbmaux_context_create_from_file: Context must be valid");
    }
    lbm_context_attr_t *attributes;
    if (lbm_context_attr_create(&attributes) != 0) {
        return -1;
    }
    int result = lbmaux_context_attr_setopt_from_file(attributes, ConfigFile);
    if (result == 0) {
        result = lbm_context_create(Context, attributes, NULL, NULL);
    }
    struct um_error_state error;
    um_error_save(&error);
    lbm_context_attr_delete(attributes);
    um_error_restore(&error);
    return result;
}

/* The caller's text buffer has no length in the interface; this many bytes are used at most. */
#define ERROR_STRING_SIZE 256

/* Option texts are short; a longer file is a mistake. */
#define OPTIONS_FILE_MAXIMUM 65536

static int options_error(char *error_string, int result)
{
    if (error_string != NULL) {
        snprintf(error_string, ERROR_STRING_SIZE, "%s", um_errmsg());
    }
    return result;
}

static int read_options(FILE *file, const char *name, char *out, size_t size)
{
    size_t len = fread(out, 1, size - 1, file);
    if (ferror(file)) {
        return um_error_os(errno, "CoreApi-9013-3", "monitoring options file %s", name);
    }
    if (len == size - 1) {
        return um_error(UM_EINVAL, "CoreApi-9013-4", "monitoring options file %s: longer than %d bytes", name,
                        OPTIONS_FILE_MAXIMUM - 2);
    }
    out[len] = '\0';
    return 0;
}

/* Drops blank lines and lines whose first visible character is '#', in place. */
static void strip_comments(char *text)
{
    char *to = text;
    for (char *line = text; *line != '\0';) {
        size_t len = strcspn(line, "\n");
        size_t whole = len + (line[len] == '\n');
        size_t blank = 0;
        while (blank < len && isspace((unsigned char)line[blank])) {
            blank++;
        }
        if (blank < len && line[blank] != '#') {
            memmove(to, line, whole);
            to += whole;
        }
        line += whole;
    }
    *to = '\0';
}

int lbmaux_lbmmon_format_options_from_file(char **FormatOptionsBuffer, const char *FormatOptionsFile, char *ErrorString)
{
    if (FormatOptionsBuffer == NULL || FormatOptionsFile == NULL) {
        return options_error(ErrorString,
                             um_error(UM_EINVAL, "CoreApi-9013-5",
                                      "lbmaux_lbmmon_format_options_from_file: %s must be valid",
                                      FormatOptionsBuffer == NULL ? "FormatOptionsBuffer" : "FormatOptionsFile"));
    }
    char *text = um_malloc(OPTIONS_FILE_MAXIMUM);
    if (text == NULL) {
        return options_error(ErrorString, um_error_nomem("monitoring options", OPTIONS_FILE_MAXIMUM));
    }
    FILE *file = fopen(FormatOptionsFile, "re");
    int result;
    if (file == NULL) {
        result = um_error_os(errno, "CoreApi-9013-6", "monitoring options file %s", FormatOptionsFile);
    } else {
        result = read_options(file, FormatOptionsFile, text, OPTIONS_FILE_MAXIMUM);
        fclose(file);
    }
    if (result != 0) {
        um_free(text);
        return options_error(ErrorString, result);
    }
    strip_comments(text);
    *FormatOptionsBuffer = text;
    return 0;
}
