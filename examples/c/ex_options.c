/* Option tables of the example programs: builds the getopt strings from the
 * table, converts arguments, prints the usage. main() is the only caller. */
#include "ex_options.h"

#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define EX_MAX_OPTIONS 64
#define EX_LONG_BASE 256 /* getopt_long value of the option at table index 0 */

static int ex_log_line(int level, const char *message, void *clientd)
{
    printf("LOG Level %d: %s\n", level, message);
    fflush(stdout);
    return 0;
}

static bool ex_takes_argument(const struct ex_option *option)
{
    return option->kind != EX_HELP && option->kind != EX_FLAG && option->kind != EX_COUNTER && option->kind != EX_LATER;
}

static bool ex_is_end(const struct ex_option *option)
{
    return option->letter == 0 && option->name == NULL;
}

void ex_usage(const char *path, const struct ex_program *program, int status)
{
    fprintf(stderr, "%s\n%s\n%s\nUsage: %s [options]%s%s\n", path, lbm_version(), program->purpose, path,
            program->positional[0] ? " " : "", program->positional);
    for (const struct ex_option *option = program->options; !ex_is_end(option); option++) {
        char forms[64] = "";
        if (option->letter != 0) {
            snprintf(forms, sizeof(forms), "-%c%s", option->letter, option->name ? ", " : "");
        }
        size_t used = strlen(forms);
        if (option->name != NULL) {
            snprintf(forms + used, sizeof(forms) - used, "--%s%s%s", option->name, option->argument ? "=" : "",
                     option->argument ? option->argument : "");
        } else if (option->argument != NULL) {
            snprintf(forms + used, sizeof(forms) - used, " %s", option->argument);
        }
        fprintf(stderr, "  %-34s %s%s\n", forms, strlen(forms) > 33 ? " " : "", option->help);
    }
    exit(status);
}

void ex_fail(const char *function)
{
    fflush(stdout);
    fprintf(stderr, "%s: %s\n", function, lbm_errmsg());
    exit(1);
}

static bool ex_read_number(const char *text, const char **end, unsigned long long *out)
{
    char *stop;
    if (!isdigit((unsigned char)text[0])) {
        return false;
    }
    errno = 0;
    *out = strtoull(text, &stop, 10);
    *end = stop;
    return errno == 0;
}

static bool ex_scale(const char **text, unsigned long long *value)
{
    unsigned long long factor = 1;
    switch (tolower((unsigned char)**text)) {
    case 'k':
        factor = 1000;
        break;
    case 'm':
        factor = 1000000;
        break;
    case 'g':
        factor = 1000000000;
        break;
    case '%':
        fprintf(stderr, "a rate in %% of another is not supported; give bits per second\n");
        return false;
    default:
        return true;
    }
    (*text)++;
    return !__builtin_mul_overflow(*value, factor, value);
}

static bool ex_read_rate(const char *text, struct ex_rate *rate)
{
    rate->protocol = 'M';
    if (isalpha((unsigned char)text[0])) {
        rate->protocol = (char)toupper((unsigned char)text[0]);
        text++;
        if (rate->protocol != 'M' && rate->protocol != 'U') {
            return false;
        }
    }
    if (!ex_read_number(text, &text, &rate->data) || !ex_scale(&text, &rate->data) || *text++ != '/') {
        return false;
    }
    return ex_read_number(text, &text, &rate->retransmit) && ex_scale(&text, &rate->retransmit) && *text == '\0';
}

static bool ex_read_datagram(const char *text, struct ex_datagram *datagram)
{
    unsigned long long size;
    if (text[0] == '\0' || strchr("MUS", text[0]) == NULL) {
        return false;
    }
    datagram->which = text[0];
    if (!ex_read_number(text + 1, &text, &size) || *text != '\0' || size > UINT32_MAX) {
        return false;
    }
    datagram->size = (unsigned)size;
    return true;
}

static bool ex_store_number(const struct ex_option *option, const char *text)
{
    char *end;
    errno = 0;
    if (option->kind == EX_INT) {
        long value = strtol(text, &end, 10);
        *(int *)option->target = (int)value;
        return end != text && *end == '\0' && errno == 0 && value >= INT32_MIN && value <= INT32_MAX;
    }
    unsigned long value = strtoul(text, &end, 10);
    *(unsigned long *)option->target = value;
    return end != text && *end == '\0' && errno == 0 && text[0] != '-';
}

static bool ex_store_wide(const struct ex_option *option, const char *text)
{
    char *end;
    errno = 0;
    unsigned long long value = strtoull(text, &end, option->kind == EX_NUMBER ? 0 : 10);
    if (!isdigit((unsigned char)text[0]) || *end != '\0' || errno != 0) {
        return false;
    }
    if (option->kind == EX_NUMBER) {
        *(unsigned long long *)option->target = value;
        return true;
    }
    *(long *)option->target = (long)value;
    return value <= UINT32_MAX;
}

static bool ex_add_property(struct ex_properties *properties, const char *text)
{
    char *end;
    errno = 0;
    long value = strtol(text, &end, 10);
    if (end == text || end[0] != ',' || end[1] == '\0' || errno != 0 || value < INT32_MIN || value > INT32_MAX ||
        properties->count == EX_MAX_PROPERTIES) {
        return false;
    }
    properties->keys[properties->count] = end + 1;
    properties->values[properties->count++] = (lbm_int32_t)value;
    return true;
}

static bool ex_add_to_list(struct ex_list *list, const char *text)
{
    if (list->count == EX_LIST_MAX) {
        return false;
    }
    list->texts[list->count++] = text;
    return true;
}

static bool ex_store(const struct ex_option *option, const char *text)
{
    switch (option->kind) {
    case EX_FLAG:
        *(int *)option->target = 1;
        return true;
    case EX_COUNTER:
        (*(int *)option->target)++;
        return true;
    case EX_INT:
    case EX_UNSIGNED:
        return ex_store_number(option, text);
    case EX_NUMBER:
    case EX_CHANNEL:
        return ex_store_wide(option, text);
    case EX_PROPERTY:
        return ex_add_property(option->target, text);
    case EX_TEXT:
        *(const char **)option->target = text;
        return true;
    case EX_LIST:
        return ex_add_to_list(option->target, text);
    case EX_CONFIG:
        EX_TRY(lbm_config, text);
        return true;
    case EX_RATE:
        return ex_read_rate(text, option->target);
    case EX_DATAGRAM:
        return ex_read_datagram(text, option->target);
    case EX_LATER:
    case EX_LATER_ARG:
        fprintf(stderr, "%s%s%c: %s is not supported by this version; going on without it\n", option->name ? "--" : "",
                option->name ? option->name : "-", option->name ? ' ' : option->letter, (const char *)option->target);
        return true;
    case EX_HELP:
        break;
    }
    return false;
}

static void ex_alarm_set(sigset_t *set)
{
    sigemptyset(set);
    sigaddset(set, SIGALRM);
}

/* Blocked, the signal stays pending until somebody waits: it is neither lost nor does it end the program. */
static void ex_block_alarm(void)
{
    sigset_t set;
    ex_alarm_set(&set);
    sigprocmask(SIG_BLOCK, &set, NULL);
}

int ex_parse(int argc, char **argv, const struct ex_program *program)
{
    struct option longs[EX_MAX_OPTIONS + 1];
    char letters[2 * EX_MAX_OPTIONS + 1];
    size_t count = 0, long_count = 0, letter_count = 0;
    memset(longs, 0, sizeof(longs));
    for (; !ex_is_end(&program->options[count]) && count < EX_MAX_OPTIONS; count++) {
        const struct ex_option *option = &program->options[count];
        if (option->letter != 0) {
            letters[letter_count++] = option->letter;
            if (ex_takes_argument(option)) {
                letters[letter_count++] = ':';
            }
        }
        if (option->name != NULL) {
            longs[long_count].name = option->name;
            longs[long_count].has_arg = ex_takes_argument(option) ? required_argument : no_argument;
            longs[long_count++].val = EX_LONG_BASE + (int)count;
        } else if (option->kind == EX_HELP) {
            longs[long_count].name = "help"; /* where the original has only -h */
            longs[long_count++].val = EX_LONG_BASE + (int)count;
        }
    }
    letters[letter_count] = '\0';
    signal(SIGPIPE, SIG_IGN);
    ex_block_alarm();
    EX_TRY(lbm_log, ex_log_line, NULL);
    int got;
    while ((got = getopt_long(argc, argv, letters, longs, NULL)) != -1) {
        const struct ex_option *option = got >= EX_LONG_BASE ? &program->options[got - EX_LONG_BASE] : NULL;
        for (size_t i = 0; option == NULL && i < count; i++) {
            option = program->options[i].letter == got ? &program->options[i] : NULL;
        }
        if (option == NULL) {
            ex_usage(argv[0], program, 1);
        }
        if (option->kind == EX_HELP) {
            ex_usage(argv[0], program, 0);
        }
        if (!ex_store(option, optarg)) {
            fprintf(stderr, "%s: cannot use \"%s\" for option %s%c%s\n", argv[0], optarg, option->name ? "--" : "-",
                    option->name ? option->name[0] : option->letter, option->name ? option->name + 1 : "");
            ex_usage(argv[0], program, 1);
        }
    }
    if (argc - optind < program->required) {
        ex_usage(argv[0], program, 1);
    }
    return optind;
}

void ex_apply_rate(const struct ex_rate *rate, lbm_context_attr_t *cattr, lbm_src_topic_attr_t *sattr)
{
    if (rate->protocol == 0) {
        return;
    }
    bool multicast = rate->protocol == 'M';
    char number[32];
    EX_TRY(lbm_src_topic_attr_str_setopt, sattr, "transport", multicast ? "LBTRM" : "LBTRU");
    snprintf(number, sizeof(number), "%llu", rate->data);
    EX_TRY(lbm_context_attr_str_setopt, cattr,
           multicast ? "transport_lbtrm_data_rate_limit" : "transport_lbtru_data_rate_limit", number);
    snprintf(number, sizeof(number), "%llu", rate->retransmit);
    EX_TRY(lbm_context_attr_str_setopt, cattr,
           multicast ? "transport_lbtrm_retransmit_rate_limit" : "transport_lbtru_retransmit_rate_limit", number);
    printf("Sending with LBT-R%c data rate limit %llu, retransmission rate limit %llu\n", rate->protocol, rate->data,
           rate->retransmit);
}

void ex_apply_immediate_rate(const struct ex_rate *rate, lbm_context_attr_t *cattr)
{
    char number[32];
    if (rate->protocol == 0) {
        return;
    }
    snprintf(number, sizeof(number), "%llu", rate->data);
    EX_TRY(lbm_context_attr_str_setopt, cattr, "transport_lbtrm_data_rate_limit", number);
    snprintf(number, sizeof(number), "%llu", rate->retransmit);
    EX_TRY(lbm_context_attr_str_setopt, cattr, "transport_lbtrm_retransmit_rate_limit", number);
    printf("Sending with LBT-RM data rate limit %llu, retransmission rate limit %llu\n", rate->data, rate->retransmit);
}

static void ex_set_datagram(lbm_context_attr_t *cattr, const char *option, unsigned size)
{
    char number[32];
    snprintf(number, sizeof(number), "%u", size);
    EX_TRY(lbm_context_attr_str_setopt, cattr, option, number);
}

void ex_apply_late_join(unsigned long bytes, lbm_src_topic_attr_t *sattr)
{
    char text[32];
    if (bytes == 0) {
        return;
    }
    snprintf(text, sizeof text, "%lu", bytes);
    EX_TRY(lbm_src_topic_attr_str_setopt, sattr, "late_join", "1");
    EX_TRY(lbm_src_topic_attr_str_setopt, sattr, "retransmit_retention_size_threshold", text);
    printf("Enabled Late Join with message retention threshold set to %lu bytes.\n", bytes);
}

void ex_apply_source_datagram(const struct ex_datagram *datagram, lbm_context_attr_t *cattr,
                              lbm_src_topic_attr_t *sattr)
{
    switch (datagram->which) {
    case 'M':
        EX_TRY(lbm_src_topic_attr_str_setopt, sattr, "transport", "LBTRM");
        ex_set_datagram(cattr, "transport_lbtrm_datagram_max_size", datagram->size);
        break;
    case 'U':
        EX_TRY(lbm_src_topic_attr_str_setopt, sattr, "transport", "LBTRU");
        ex_set_datagram(cattr, "transport_lbtru_datagram_max_size", datagram->size);
        break;
    case 'S':
        ex_set_datagram(cattr, "resolver_datagram_max_size", datagram->size);
        printf("Sending with Resolver source datagram max size %u\n", datagram->size);
        return;
    default:
        return;
    }
    printf("Sending with LBT-R%c source datagram max size %u\n", datagram->which, datagram->size);
}

void ex_apply_receiver_datagram(const struct ex_datagram *datagram, lbm_context_attr_t *cattr)
{
    switch (datagram->which) {
    case 'M':
        ex_set_datagram(cattr, "transport_lbtrm_datagram_max_size", datagram->size);
        break;
    case 'U':
        ex_set_datagram(cattr, "transport_lbtru_datagram_max_size", datagram->size);
        break;
    case 'S':
        ex_set_datagram(cattr, "resolver_datagram_max_size", datagram->size);
        printf("Receiving with resolver receiver datagram max size %u\n", datagram->size);
        return;
    default:
        return;
    }
    printf("Receiving with LBT-R%c receiver datagram max size %u\n", datagram->which, datagram->size);
}

double ex_now(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

void ex_sleep_ms(unsigned long ms)
{
    sigset_t set;
    double end = ex_now() + (double)ms / 1000;
    ex_alarm_set(&set);
    for (double left = (double)ms / 1000; left > 0; left = end - ex_now()) {
        struct timespec ts = {(time_t)left, (long)((left - (double)(time_t)left) * 1e9)};
        if (sigtimedwait(&set, NULL, &ts) == SIGALRM) {
            return;
        }
    }
}

void ex_sleep_until(double seconds, volatile const int *stop)
{
    double end = ex_now() + seconds;
    for (double left = seconds; left > 0 && (stop == NULL || !*stop); left = end - ex_now()) {
        ex_sleep_ms(left > 0.05 ? 50 : (unsigned long)(left * 1000) + 1);
    }
}
