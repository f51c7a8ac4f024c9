/* What somebody may have meant who wrote a name that is no option: the nearest name of the scope, or the scope that has
 * it. Called by the error messages of setting, reading and loading.
 * Any thread; no state. */
#include <stdio.h>
#include <string.h>

#include "config/um_option_table.h"

enum { LONGEST_NAME = 96 };

static unsigned smallest(unsigned a, unsigned b, unsigned c)
{
    unsigned least = a < b ? a : b;
    return least < c ? least : c;
}

/* Letters to insert, remove or replace; `limit` where it takes so many or more, which is soon seen: a file of wrong
 * names must not take long to refuse. */
static unsigned distance(const char *a, const char *b, unsigned limit)
{
    unsigned row[LONGEST_NAME + 1];
    size_t height = strlen(a), width = strlen(b);
    if ((height < width ? width - height : height - width) >= limit) {
        return limit;
    }
    for (size_t i = 0; i <= width; i++) {
        row[i] = (unsigned)i;
    }
    for (size_t line = 0; line < height; line++) {
        unsigned diagonal = row[0], least = row[0] = (unsigned)line + 1;
        for (size_t i = 1; i <= width; i++) {
            unsigned above = row[i];
            row[i] = smallest(above + 1, row[i - 1] + 1, diagonal + (a[line] != b[i - 1]));
            diagonal = above;
            least = row[i] < least ? row[i] : least;
        }
        if (least >= limit) {
            return limit; // no later line has less
        }
    }
    return row[width] < limit ? row[width] : limit;
}

static const struct um_option *nearest(enum um_option_scope scope, const char *name)
{
    const struct um_option *found = NULL;
    size_t rows;
    const struct um_option *table = um_option_table(scope, &rows);
    unsigned best = (unsigned)(strlen(name) / 4 + 2);
    for (size_t i = 0; i < rows; i++) {
        bool offered = (table[i].flags & (UM_OPT_HIDDEN | UM_OPT_DEPRECATED)) == 0;
        if (offered && strlen(table[i].name) <= LONGEST_NAME) {
            unsigned far = distance(name, table[i].name, best);
            if (far < best) {
                best = far;
                found = &table[i];
            }
        }
    }
    return found;
}

void um_option_hint(enum um_option_scope scope, const char *name, char *text, size_t size)
{
    *text = '\0';
    for (int other = 0; other < UM_SCOPE_COUNT; other++) {
        if (other != (int)scope && um_option_find(other, name) != NULL) {
            snprintf(text, size, "it is an option of scope %s", um_scope_name(other));
            return;
        }
    }
    const struct um_option *option = *name != '\0' && strlen(name) <= LONGEST_NAME ? nearest(scope, name) : NULL;
    if (option != NULL) {
        snprintf(text, size, "did you mean %s?", option->name);
    }
}
