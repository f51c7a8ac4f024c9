/* Numbers of hot-failover messages from a file: words between white space or commas,
 * each a number in C notation with "o" or "r" behind it or nothing; "#" begins a
 * comment. main() is the only caller. */
#include "ex_numbers.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void ex_numbers_open(struct ex_numbers *numbers, const char *file, uint64_t first, int bits)
{
    *numbers = (struct ex_numbers){first, file, NULL, bits};
    if (file == NULL) {
        return;
    }
    numbers->file = strcmp(file, "-") == 0 ? stdin : fopen(file, "r");
    if (numbers->file == NULL) {
        fprintf(stderr, "%s: %s\n", file, strerror(errno));
        exit(1);
    }
}

static bool is_between(int c)
{
    return isspace(c) || c == ',';
}

/* The next word, cut to `size`; false at the end. */
static bool read_word(FILE *file, char *word, size_t size)
{
    size_t length = 0;
    int c = getc(file);
    while (c != EOF && (is_between(c) || c == '#')) {
        while (c == '#' && (c = getc(file)) != EOF && c != '\n') {
            c = '#';
        }
        c = c == EOF ? EOF : getc(file);
    }
    for (; c != EOF && !is_between(c); c = getc(file)) {
        if (length + 1 < size) {
            word[length++] = (char)c;
        }
    }
    word[length] = '\0';
    return length > 0;
}

static bool read_number(const char *word, int bits, struct ex_number *out)
{
    char *end;
    errno = 0;
    out->value = strtoull(word, &end, 0);
    out->optional = strcmp(end, "o") == 0;
    out->reset = strcmp(end, "r") == 0;
    return isdigit((unsigned char)word[0]) && errno == 0 && (*end == '\0' || out->optional || out->reset) &&
           (bits == 64 || out->value <= UINT32_MAX);
}

bool ex_numbers_next(struct ex_numbers *numbers, struct ex_number *out)
{
    char word[32];
    if (numbers->name == NULL) {
        *out = (struct ex_number){.value = numbers->bits == 64 ? numbers->next : (uint32_t)numbers->next};
        numbers->next++;
        return true;
    }
    if (!read_word(numbers->file, word, sizeof(word))) {
        return false;
    }
    if (!read_number(word, numbers->bits, out)) {
        fflush(stdout);
        fprintf(stderr,
                "%s: cannot use \"%s\": a number of %d bits is wanted, with o behind it where the message is "
                "optional, with r where receivers are to begin anew\n",
                numbers->name, word, numbers->bits);
        exit(1);
    }
    return true;
}

void ex_numbers_close(struct ex_numbers *numbers)
{
    if (numbers->file != NULL && numbers->file != stdin) {
        fclose(numbers->file);
    }
}
