/* Plain-text configuration files: `scope option value` lines with # comments. Every bad line is reported with file,
 * line, option and remedy, every good one is applied. Called by lbm_config, the start-up and the lbmaux file calls. Any
 * thread. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdint.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/um_error.h"
#include "base/um_log.h"
#include "base/um_mem.h"
#include "config/um_config.h"
#include "config/um_config_load.h"
#include "config/um_option_checks.h"

#define BLANKS " \t\v\f\r"

enum { LONGEST_LINE = 8192, READ_STEP = 65536, LARGEST_FILE = 64 * 1024 * 1024, SHOWN_LINE = 120 };

/* ---- files ---- */

static int refuse_url(const char *name)
{
    static const char *const schemes[] = {"http://", "https://", "ftp://", "sftp://", "tftp://"};
    for (size_t i = 0; i < sizeof schemes / sizeof schemes[0]; i++) {
        if (strncasecmp(name, schemes[i], strlen(schemes[i])) == 0) {
            return um_error(UM_EOPNOTSUPP, "CoreApi-9021-1",
                            "config file: %.200s: configuration is not read from URLs; copy it to a local file", name);
        }
    }
    return 0;
}

static int read_all(int fd, const char *name, char **data, size_t *len)
{
    size_t room = READ_STEP, used = 0;
    char *bytes = um_malloc(room + 1);
    for (;;) {
        if (bytes == NULL) {
            return um_error_nomem(name, (unsigned long)room);
        }
        ssize_t count = read(fd, bytes + used, room - used);
        if (count < 0 && errno == EINTR) {
            continue;
        }
        if (count < 0) {
            int saved = errno;
            um_free(bytes);
            return um_error_os(saved, "CoreApi-9021-2", "config file: %.200s: read failed", name);
        }
        if (count == 0) {
            break;
        }
        used += (size_t)count;
        if (used > LARGEST_FILE) {
            um_free(bytes);
            return um_error(UM_EINVAL, "CoreApi-9021-3", "config file: %.200s: larger than 64 MiB", name);
        }
        if (used == room) {
            char *larger = um_realloc(bytes, room * 2 + 1);
            if (larger == NULL) {
                um_free(bytes);
                return um_error_nomem(name, (unsigned long)room * 2);
            }
            bytes = larger;
            room *= 2;
        }
    }
    bytes[used] = '\0';
    *data = bytes;
    *len = used;
    return 0;
}

int um_config_read_file(const char *name, char **data, size_t *len)
{
    if (refuse_url(name) != 0) {
        return -1;
    }
    int fd = open(name, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return um_error_os(errno, "CoreApi-9021-4", "config file: %.200s: cannot be opened", name);
    }
    int result = read_all(fd, name, data, len);
    close(fd);
    return result;
}

/* ---- lines ---- */

struct statement {
    char *scope;
    char *option;
    char *value;
};

/* The next word of a line, terminated in place; NULL at its end. */
static char *take_word(char **rest)
{
    char *word = *rest + strspn(*rest, BLANKS);
    if (*word == '\0') {
        return NULL;
    }
    char *end = word + strcspn(word, BLANKS);
    *rest = *end == '\0' ? end : end + 1;
    *end = '\0';
    return word;
}

/* Comment and blanks at both ends go; inner blanks of the value stay. */
static void split(char *line, struct statement *out)
{
    line[strcspn(line, "#")] = '\0';
    for (size_t len = strlen(line); len > 0 && strchr(BLANKS, line[len - 1]) != NULL; len--) {
        line[len - 1] = '\0';
    }
    char *rest = line;
    out->scope = take_word(&rest);
    out->option = out->scope == NULL ? NULL : take_word(&rest);
    out->value = out->option == NULL ? NULL : rest + strspn(rest, BLANKS);
}

/* What went wrong with a line; the identifiers of the log tell them apart. */
enum line_result { LINE_OK, LINE_BAD_SCOPE, LINE_BAD_OPTION, LINE_BAD_VALUE };

static enum line_result apply_statement(const struct statement *statement, struct um_attr *only)
{
    int scope = um_scope_find(statement->scope);
    if (scope < 0) {
        um_error(
            UM_EINVAL, "CoreApi-9021-5",
            "scope %.60s unknown; it must be context, source, receiver, wildcard_receiver, event_queue, hfx or xsp",
            statement->scope);
        return LINE_BAD_SCOPE;
    }
    if (only != NULL && only->scope != (enum um_option_scope)scope) {
        return LINE_OK;
    }
    if (statement->option == NULL || *statement->value == '\0') {
        um_error(UM_EINVAL, "CoreApi-9021-6", "%s is missing; write: scope option value",
                 statement->option == NULL ? "the option" : "the value");
        return LINE_BAD_VALUE;
    }
    const struct um_option *option = um_option_find(scope, statement->option);
    if (option == NULL) {
        um_option_unknown(scope, statement->option);
        return LINE_BAD_OPTION;
    }
    enum um_option_note note;
    int result = only == NULL ? um_config_assign(option, statement->value, &note)
                              : um_attr_assign(only, option, statement->value, NULL, 0, UM_ORIGIN_APPLICATION, &note);
    if (result != 0) {
        return LINE_BAD_VALUE;
    }
    um_attr_log_note(option, note);
    um_option_warn_deprecated(option);
    if ((option->flags & UM_OPT_HIDDEN) != 0) {
        um_option_warn_no_effect(option);
    }
    return LINE_OK;
}

/* The error text without its identifier. */
static const char *plain_error(void)
{
    const char *text = um_errmsg();
    const char *after = strncmp(text, "Core", 4) == 0 ? strstr(text, ": ") : NULL;
    return after == NULL ? text : after + 2;
}

static void report(const char *name, size_t number, const char *line, enum line_result result)
{
    static const char *const ids[] = {
        [LINE_BAD_SCOPE] = "Core-10686-1", [LINE_BAD_OPTION] = "Core-10686-2", [LINE_BAD_VALUE] = "Core-10686-3"};
    char text[360];
    int errnum = um_errnum();
    snprintf(text, sizeof text, "%s", plain_error());
    um_log(UM_LOG_ERR, ids[result], "problem detected in config file: %.200s at line %zu (%.*s) error is %s", name,
           number, SHOWN_LINE, line, text);
    um_error(errnum, "CoreApi-5688-64", "config file: %.200s line %zu: %s", name, number, text);
}

static enum line_result apply_line(const char *start, size_t len, char *buffer, struct um_attr *only)
{
    if (len > LONGEST_LINE) {
        um_error(UM_EINVAL, "CoreApi-9021-7", "the line has %zu bytes, more than %d", len, LONGEST_LINE);
        return LINE_BAD_VALUE;
    }
    if (memchr(start, '\0', len) != NULL) {
        um_error(UM_EINVAL, "CoreApi-9021-8", "the line contains a zero byte: this is not a text file");
        return LINE_BAD_VALUE;
    }
    struct statement statement;
    memcpy(buffer, start, len);
    buffer[len] = '\0';
    split(buffer, &statement);
    return statement.scope == NULL ? LINE_OK : apply_statement(&statement, only);
}

int um_config_text(const char *name, const char *data, size_t len, struct um_attr *only)
{
    static const char bom[] = "\xEF\xBB\xBF";
    const char *end = data + len;
    int outcome = 0;
    char *buffer = um_malloc(LONGEST_LINE + 1);
    if (um_config_ready() != 0 || buffer == NULL) {
        um_free(buffer);
        return um_error_nomem(name, LONGEST_LINE);
    }
    if (len >= 3 && memcmp(data, bom, 3) == 0) {
        data += 3;
    }
    struct um_error_state last;
    for (size_t number = 1; data < end; number++) {
        const char *newline = memchr(data, '\n', (size_t)(end - data));
        const char *stop = newline == NULL ? end : newline;
        enum line_result result = apply_line(data, (size_t)(stop - data), buffer, only);
        if (result != LINE_OK) {
            snprintf(buffer, SHOWN_LINE + 1, "%.*s", (int)(stop - data < SHOWN_LINE ? stop - data : SHOWN_LINE), data);
            buffer[strcspn(buffer, "\r")] = '\0';
            report(name, number, buffer, result);
            um_error_save(&last);
            outcome = -1;
        }
        data = newline == NULL ? end : newline + 1;
    }
    um_free(buffer);
    if (outcome != 0) {
        um_error_restore(&last);
    }
    return outcome;
}

int um_config_file(const char *name, struct um_attr *only)
{
    char *data;
    size_t len;
    if (um_config_ready() != 0 || um_config_read_file(name, &data, &len) != 0) {
        return -1;
    }
    int result = um_config_text(name, data, len, only);
    um_free(data);
    return result;
}

/* ---- which kind of file ---- */

static bool is_xml_name(const char *name)
{
    size_t len = strlen(name);
    return len >= 4 && strcasecmp(name + len - 4, ".xml") == 0;
}

int um_config_load_file(const char *name)
{
    if (is_xml_name(name)) {
        return um_config_load_xml_file(name, NULL) == UM_XML_LOADED ? 0 : -1;
    }
    return um_config_file(name, NULL);
}
