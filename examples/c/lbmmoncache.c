/* lbmmoncache: keeps the last monitoring record of each source and receiver and shows those
 * that one asks for by a menu. The receive controller's thread fills the cache, main() reads
 * it; a lock is between them. */
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "ex_mon_cache.h"
#include "ex_options.h"

enum { KEPT_SECONDS = 600, TEXT_MAX = 256 };

static struct ex_mon_options receive;
static unsigned long most = 10000;

static const struct ex_option options[] = {
    {'C', "cache-size", EX_UNSIGNED, &most, "NUM", "keep the records of NUM sources and receivers (10000)"},
    {'c', "config", EX_CONFIG, NULL, "FILE", "load a configuration file; may be repeated"},
    {'f', "format", EX_TEXT, &receive.format, "NAME", "format module, csv or pb (csv); both are read in any case"},
    {0, "format-opts", EX_TEXT, &receive.format_opts, "TEXT", "options of the format module"},
    {'h', "help", EX_HELP, NULL, NULL, "show this text"},
    {'t', "transport", EX_TEXT, &receive.transport, "NAME", "transport module, lbm, udp or lbmsnmp (lbm)"},
    {0, "transport-opts", EX_TEXT, &receive.transport_opts, "TEXT", "options of the transport module"},
    EX_END,
};

static const struct ex_program program = {"Keeps the last monitoring record of each source and receiver.", "", 0,
                                          options};

static struct {
    pthread_mutex_t lock;
    struct ex_mon_cache *cache;
    bool show_statistics, show_new; /* all that arrives; each new object */
    char watched[TEXT_MAX];         /* records with this text are shown as they arrive */
    size_t added;
} state = {.lock = PTHREAD_MUTEX_INITIALIZER};

static bool has_text(const struct ex_mon_record *record, const char *text)
{
    return text[0] != '\0' &&
           (strstr(ex_mon_source(record), text) != NULL || strstr(record->about.application, text) != NULL ||
            strstr(record->about.address, text) != NULL);
}

static void print_short(const struct ex_mon_record *record)
{
    if (!ex_mon_has(&record->about, LBMMON_ATTR_SENDER_IPV4)) {
        printf(" Could not get sender address from statistics\n");
    }
    printf("%s: App %s @ %s for source: ", record->type == LBMMON_PACKET_TYPE_SOURCE ? "Source" : "Receiver",
           record->about.application, record->about.address);
    ex_mon_put(stdout, ex_mon_source(record), SIZE_MAX);
    printf("\n");
}

static void on_record(const struct ex_mon_record *record, void *clientd)
{
    double now = ex_now();
    pthread_mutex_lock(&state.lock);
    size_t expired = ex_mon_cache_expire(state.cache, now - KEPT_SECONDS);
    int added = ex_mon_cache_put(state.cache, record, now);
    if (expired > 0) {
        printf("%zu elements aged out\n", expired);
    }
    state.added += added == 1;
    if (state.show_new && added == 1) {
        print_short(record);
    }
    if (state.show_statistics || has_text(record, state.watched)) {
        ex_mon_print(stdout, record);
    }
    fflush(stdout);
    pthread_mutex_unlock(&state.lock);
}

/* ---- the menu ---- */

static bool read_line(const char *question, char *text)
{
    if (question != NULL) {
        printf("%s\n", question);
        fflush(stdout);
    }
    if (fgets(text, TEXT_MAX, stdin) == NULL) {
        return false;
    }
    text[strcspn(text, "\r\n")] = '\0';
    return true;
}

/* Which records are asked for: of sources, by what their line says. */
enum match { ANY, BY_SOURCE_STRING, BY_SOURCE_IP, BY_DESTINATION_IP, BY_RECEIVER_IP, BY_TEXT };

/* The parts of a source string are "LBTRM:source:port:session:group:port", fewer for other transports. */
static bool part_is(const char *source, int number, const char *text)
{
    for (int i = 0; i < number; i++) {
        source = strchr(source, ':');
        if (source == NULL) {
            return false;
        }
        source++;
    }
    size_t length = strcspn(source, ":");
    return length == strlen(text) && strncmp(source, text, length) == 0;
}

static bool matches(const struct ex_mon_record *record, enum match match, const char *text)
{
    const char *source = ex_mon_source(record);
    switch (match) {
    case BY_SOURCE_STRING:
        return strstr(source, text) != NULL;
    case BY_SOURCE_IP:
        return part_is(source, 1, text);
    case BY_DESTINATION_IP:
        return part_is(source, 4, text);
    case BY_RECEIVER_IP:
        return record->type == LBMMON_PACKET_TYPE_RECEIVER && strcmp(record->about.address, text) == 0;
    case BY_TEXT:
        return has_text(record, text);
    default:
        return true;
    }
}

static void dump(const char *heading, int type, enum match match, const char *text, bool in_full)
{
    pthread_mutex_lock(&state.lock);
    printf(heading, text);
    printf("\n");
    const struct ex_mon_cached *cached = NULL;
    while ((cached = ex_mon_cache_next(state.cache, cached)) != NULL) {
        const struct ex_mon_record record = ex_mon_cache_record(cached);
        if ((type < 0 || record.type == type) && matches(&record, match, text)) {
            if (in_full) {
                ex_mon_print(stdout, &record);
            } else {
                print_short(&record);
            }
        }
    }
    printf("Current cache size is %d, added %d\n", (int)ex_mon_cache_count(state.cache), (int)state.added);
    fflush(stdout);
    pthread_mutex_unlock(&state.lock);
}

static void toggle(bool *what)
{
    pthread_mutex_lock(&state.lock);
    *what = !*what;
    pthread_mutex_unlock(&state.lock);
}

static void print_menu(void)
{
    printf("Enter option\n"
           "1) Dump topics by searching source string\n"
           "2) Dump topics by searching source IP\n"
           "3) Dump topics by searching destination IP\n"
           "4) Dump sources by searching for receivers IP\n"
           "r) Dump all receiving transports\n"
           "t) Dump all topics and sources\n"
           "S) Search for source/receiver by string and dump stats\n"
           "V) Save Search for source/receiver by string and dump stats constantly\n"
           "Toggle Stats\n"
           "c) Toggle stats output\n"
           "v) Toggle dumping new data\n"
           "q) Quit\n");
    fflush(stdout);
}

/* False: the user is done. */
static bool run_choice(char choice)
{
    char text[TEXT_MAX] = "";
    const int source = LBMMON_PACKET_TYPE_SOURCE, receiver = LBMMON_PACKET_TYPE_RECEIVER;
    switch (choice) {
    case '1':
        if (read_line("Enter string to search", text)) {
            dump("Dumping sources matching %s", source, BY_SOURCE_STRING, text, false);
        }
        return true;
    case '2':
        if (read_line("Enter Source IP to search for", text)) {
            dump("Dumping sources matching source IP %s", source, BY_SOURCE_IP, text, false);
        }
        return true;
    case '3':
        if (read_line("Enter Destination IP to search for", text)) {
            dump("Dumping sources matching destination IP %s", source, BY_DESTINATION_IP, text, false);
        }
        return true;
    case '4':
        if (read_line("Enter Receiver IP to search for", text)) {
            dump("Dumping sources by receiver IP %s", receiver, BY_RECEIVER_IP, text, false);
        }
        return true;
    case 'r':
        dump("Dumping all receiver sources%s", receiver, ANY, text, false);
        return true;
    case 't':
        dump("Dumping known topics and sources%s", source, ANY, text, false);
        return true;
    case 'S':
        if (read_line("Enter string to search", text)) {
            dump("Dumping stats matching %s", -1, BY_TEXT, text, true);
        }
        return true;
    case 'V':
        if (read_line("Enter string to search (and save or just return to clear)", text)) {
            pthread_mutex_lock(&state.lock);
            memcpy(state.watched, text, sizeof(text));
            pthread_mutex_unlock(&state.lock);
        }
        return true;
    case 'c':
        toggle(&state.show_statistics);
        return true;
    case 'v':
        toggle(&state.show_new);
        return true;
    default:
        return choice != 'q';
    }
}

int main(int argc, char **argv)
{
    char line[TEXT_MAX];
    ex_parse(argc, argv, &program);
    state.cache = ex_mon_cache_create(most);
    if (most == 0 || most > 10000000 || state.cache == NULL) {
        fprintf(stderr, "-C %lu: must be between 1 and 10000000, with memory for it\n", most);
        return 1;
    }
    lbmmon_rctl_t *controller = ex_mon_start(&receive, on_record, NULL);
    do {
        print_menu();
    } while (read_line(NULL, line) && run_choice(line[0]));
    if (lbmmon_rctl_destroy(controller) != 0) {
        ex_mon_fail("lbmmon_rctl_destroy");
    }
    ex_mon_cache_delete(state.cache);
    return 0;
}
