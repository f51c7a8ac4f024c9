/* Command lines of the example programs: one table of options gives the getopt
 * strings, the parsing and the usage text. Called from main() only; wrong input
 * ends the program with the usage on stderr and status 1. */
#ifndef EX_OPTIONS_H
#define EX_OPTIONS_H

#include <lbm/lbm.h>
#include <stdbool.h>

#include "ex_monitor.h"

enum ex_kind {
    EX_HELP,     /* usage, status 0 */
    EX_FLAG,     /* int: set to 1 */
    EX_COUNTER,  /* int: one more each time it is given */
    EX_INT,      /* int, may be negative */
    EX_UNSIGNED, /* unsigned long */
    EX_NUMBER,   /* unsigned long long, in C notation: 0x1f, 017 */
    EX_PROPERTY, /* struct ex_properties: VALUE,NAME, one more each time it is given */
    EX_CHANNEL,  /* long: a channel, 0..4294967295 */
    EX_TEXT,     /* const char * */
    EX_LIST,     /* struct ex_list: one more each time it is given */
    EX_CONFIG,   /* configuration file, loaded at once in the order given */
    EX_RATE,     /* struct ex_rate: [U|M]DATA/RETR */
    EX_DATAGRAM, /* struct ex_datagram: U|M|S + number */
    EX_LATER,    /* flag of a feature this version does not have: says so and goes on */
    EX_LATER_ARG /* the same, with an argument */
};

struct ex_option {
    char letter;      /* 0: long form only */
    const char *name; /* NULL: short form only */
    enum ex_kind kind;
    void *target;         /* by kind; for EX_LATER the name of the feature */
    const char *argument; /* as shown in the usage; NULL: takes none */
    const char *help;
};

/* The table ends with an entry whose letter is 0 and whose name is NULL. */
#define EX_END                                                                                                         \
    {                                                                                                                  \
        0, NULL, EX_FLAG, NULL, NULL, NULL                                                                             \
    }

#define EX_COMMON_MONITOR                                                                                              \
    {                                                                                                                  \
        0,       "monitor-transport",                                                                                  \
        EX_TEXT, &ex_monitor.transport,                                                                                \
        "NAME",  "monitoring transport, lbm, udp or lbmsnmp (lbm)"},                                                   \
        {0, "monitor-transport-opts", EX_TEXT, &ex_monitor.transport_opts, "TEXT", "its options, NAME=VALUE;..."},     \
        {0, "monitor-format", EX_TEXT, &ex_monitor.format, "NAME", "monitoring format, csv or pb (csv)"},              \
        {0, "monitor-format-opts", EX_TEXT, &ex_monitor.format_opts, "TEXT", "its options, NAME=VALUE;..."},           \
    {                                                                                                                  \
        0, "monitor-appid", EX_TEXT, &ex_monitor.application, "TEXT", "application id shown by the monitor"            \
    }
/* `which`: context, object or queue of struct ex_monitor. */
#define EX_MONITOR(name, what, which)                                                                                  \
    {                                                                                                                  \
        0, name, EX_UNSIGNED, &ex_monitor.which, "SEC", "monitor the " what " every SEC seconds"                       \
    }

#define EX_LIST_MAX 10

struct ex_list {
    int count;
    const char *texts[EX_LIST_MAX];
};

struct ex_rate {
    char protocol;                       /* 'M', 'U', or 0 when not given */
    unsigned long long data, retransmit; /* bits per second */
};

struct ex_datagram {
    char which; /* 'M', 'U', 'S', or 0 */
    unsigned size;
};

#define EX_MAX_PROPERTIES 16

struct ex_properties {
    int count;
    char *keys[EX_MAX_PROPERTIES];
    lbm_int32_t values[EX_MAX_PROPERTIES];
};

struct ex_program {
    const char *purpose;    /* one sentence */
    const char *positional; /* shown in the usage; "" when there is none */
    int required;           /* number of positional arguments that must be there */
    const struct ex_option *options;
};

/* Index of the first positional argument in argv. Ignores SIGPIPE and installs the log printer. To be called
 * before there are threads: SIGALRM is blocked from then on, for ex_sleep_ms(). */
int ex_parse(int argc, char **argv, const struct ex_program *program);
_Noreturn void ex_usage(const char *path, const struct ex_program *program, int status);

/* "<function>: <lbm_errmsg()>" on stderr, status 1. */
_Noreturn void ex_fail(const char *function);
#define EX_TRY(function, ...)                                                                                          \
    do {                                                                                                               \
        if (function(__VA_ARGS__) == LBM_FAILURE) {                                                                    \
            ex_fail(#function);                                                                                        \
        }                                                                                                              \
    } while (0)

/* Put -R and -G into attribute objects and print what was chosen. */
void ex_apply_rate(const struct ex_rate *rate, lbm_context_attr_t *cattr, lbm_src_topic_attr_t *sattr);
/* Of programs that send multicast immediate messages, which is by LBT-RM. */
void ex_apply_immediate_rate(const struct ex_rate *rate, lbm_context_attr_t *cattr);
/* 0: nothing. */
void ex_apply_late_join(unsigned long bytes, lbm_src_topic_attr_t *sattr);
void ex_apply_source_datagram(const struct ex_datagram *datagram, lbm_context_attr_t *cattr,
                              lbm_src_topic_attr_t *sattr);
void ex_apply_receiver_datagram(const struct ex_datagram *datagram, lbm_context_attr_t *cattr);

double ex_now(void); /* seconds, monotonic */
/* SIGALRM ends it early: a delay, a pause or the lingering of a program is over when somebody says so. */
void ex_sleep_ms(unsigned long ms);
/* Sleeps up to `seconds` in short steps; returns early when *stop becomes non-zero (stop may be NULL). */
void ex_sleep_until(double seconds, volatile const int *stop);

#endif
