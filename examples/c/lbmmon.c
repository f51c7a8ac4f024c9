/* lbmmon: prints the monitoring records that arrive, in words or as lines of JSON. The
 * receive controller's thread prints; main() waits for a signal. */
#include <signal.h>

#include "ex_mon.h"
#include "ex_options.h"

static struct ex_mon_options receive;
static int json;

static const struct ex_option options[] = {
    {'c', "config", EX_CONFIG, NULL, "FILE", "load a configuration file; may be repeated"},
    {'f', "format", EX_TEXT, &receive.format, "NAME", "format module, csv or pb (csv); both are read in any case"},
    {0, "format-opts", EX_TEXT, &receive.format_opts, "TEXT", "options of the format module, NAME=VALUE;..."},
    {'h', "help", EX_HELP, NULL, NULL, "show this text"},
    {0, "json", EX_FLAG, &json, NULL, "one line of JSON for each record"},
    {'t', "transport", EX_TEXT, &receive.transport, "NAME", "transport module, lbm, udp or lbmsnmp (lbm)"},
    {0, "transport-opts", EX_TEXT, &receive.transport_opts, "TEXT", "options of the transport module"},
    EX_END,
};

static const struct ex_program program = {"Prints received monitoring records.", "", 0, options};

static void on_record(const struct ex_mon_record *record, void *clientd)
{
    if (json) {
        ex_mon_print_json(stdout, record);
    } else {
        ex_mon_print(stdout, record);
    }
}

int main(int argc, char **argv)
{
    ex_parse(argc, argv, &program);
    sigset_t ends = ex_mon_ends();
    lbmmon_rctl_t *controller = ex_mon_start(&receive, on_record, NULL);
    int signal;
    sigwait(&ends, &signal);
    if (lbmmon_rctl_destroy(controller) != 0) {
        ex_mon_fail("lbmmon_rctl_destroy");
    }
    return 0;
}
