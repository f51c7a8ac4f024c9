/* lbmmon_cmd: sends one command to a process that is being monitored, by a unicast immediate
 * request, and prints its answer, which comes on the context's thread. */
#include <semaphore.h>
#include <stdlib.h>
#include <string.h>

#include "ex_mon.h"
#include "ex_options.h"

enum { PACKET_MAX = 65536, HEADER_LENGTH = 12, COMMAND_MAX = 255 };

static struct {
    int defaults, linger, pause;
    const char *command, *data, *file, *id, *node, *target;
} opt = {.linger = 1, .pause = 5};

static const struct ex_option options[] = {
    {'c', "config", EX_CONFIG, NULL, "FILE", "load a configuration file; may be repeated"},
    {'C', "command", EX_TEXT, &opt.command, "COMMAND", "command, as in SNAP or SET_INTERVAL"},
    {'d', NULL, EX_FLAG, &opt.defaults, NULL, "print the default filter options and exit"},
    {'D', "data", EX_TEXT, &opt.data, "TEXT", "data of the command, as in 30"},
    {'F', "filename", EX_TEXT, &opt.file, "FILE", "take the data of the command from this file"},
    {'h', "help", EX_HELP, NULL, NULL, "show this text"},
    {'I', "id", EX_TEXT, &opt.id, "ID", "only objects of this application id"},
    {'L', "linger", EX_INT, &opt.linger, "SEC", "wait before the context is deleted (1)"},
    {'N', "node", EX_TEXT, &opt.node, "NODE", "only objects of this kind, as in CONTEXT or UMESTORE"},
    {'P', "pause", EX_INT, &opt.pause, "SEC", "wait for the answer for so long (5)"},
    {'T', "target", EX_TEXT, &opt.target, "TARGET", "process to ask, as in TCP:10.1.2.3:14391"},
    EX_END,
};

static const struct ex_program program = {"Controls a process that is being monitored.", "", 0, options};

static sem_t answered;

static int on_response(lbm_request_t *request, lbm_msg_t *msg, void *clientd)
{
    if (msg->type == LBM_MSG_RESPONSE) {
        printf("Response received [%.*s] from [%s][%u], %lu bytes\n\n", (int)msg->len, msg->data, msg->source,
               (unsigned)msg->sequence_number, (unsigned long)msg->len);
        fflush(stdout);
        sem_post(&answered);
    }
    return 0;
}

_Noreturn static void refuse(const char *path, const char *why)
{
    fprintf(stderr, "%s\n", why);
    ex_usage(path, &program, 1);
}

_Noreturn static void control_fail(const char *function)
{
    fprintf(stderr, "%s: %s\n", function, lbmmon_control_errmsg());
    exit(1);
}

static void check_arguments(int argc, char **argv, int first)
{
    if (first < argc) {
        refuse(argv[0], "arguments other than options are not taken");
    }
    if (opt.command == NULL || opt.target == NULL || strlen(opt.command) > COMMAND_MAX) {
        refuse(argv[0], "-C with a command of at most 255 bytes and -T are needed");
    }
    if (opt.data != NULL && opt.file != NULL) {
        refuse(argv[0], "-D and -F cannot be given together");
    }
    if (opt.pause <= 0 || opt.linger < 0) {
        refuse(argv[0], "-P must be more than 0, -L 0 or more");
    }
}

/* The index in a list of names; ends the program when it is not one of them. */
static int index_of(const char *name, int index, const char *valid)
{
    if (index < 0) {
        fprintf(stderr, "%s: must be one of %s\n", name, valid);
        exit(1);
    }
    return index;
}

/* Length of the packet. */
static size_t make_packet(char *packet)
{
    static char message[PACKET_MAX - HEADER_LENGTH];
    size_t size = sizeof(message);
    char *data = (char *)opt.data, *loaded = NULL; /* the interface has no const; it only reads */
    int command =
        index_of(opt.command, lbmmon_control_index_for_command((char *)opt.command), lbmmon_control_valid_commands());
    int node = opt.node == NULL ? 0
                                : index_of(opt.node, lbmmon_control_index_for_node_type((char *)opt.node),
                                           lbmmon_control_valid_node_types());
    if (opt.file != NULL && lbmmon_control_load_data_from_filename((char *)opt.file, &loaded) != 0) {
        control_fail("lbmmon_control_load_data_from_filename");
    }
    if (lbmmon_control_serialize(message, &size, command, loaded != NULL ? loaded : data, node, (char *)opt.id) != 0) {
        control_fail("lbmmon_control_serialize");
    }
    free(loaded);
    lbmmon_add_header(packet, message, size, LBMMON_PACKET_TYPE_CONTROL_MESSAGE);
    return HEADER_LENGTH + size;
}

static bool wait_for_answer(void)
{
    double until = ex_now() + opt.pause;
    bool came = false;
    while (!(came = sem_trywait(&answered) == 0) && ex_now() < until) {
        ex_sleep_ms(5);
    }
    return came;
}

int main(int argc, char **argv)
{
    static char packet[PACKET_MAX];
    int first = ex_parse(argc, argv, &program);
    lbm_context_t *ctx;
    lbm_request_t *request;
    char target[128];
    if (opt.defaults) {
        return lbmmon_control_dump_default_filter_options() == 0 ? 0 : 1;
    }
    check_arguments(argc, argv, first);
    size_t length = make_packet(packet);
    snprintf(target, sizeof(target), "%s%s", strchr(opt.target, ':') == strrchr(opt.target, ':') ? "TCP:" : "",
             opt.target);
    sem_init(&answered, 0, 0);
    EX_TRY(lbm_context_create, &ctx, NULL, NULL, NULL);
    printf("Sending command [%s] to %s\n\n", opt.command, target);
    EX_TRY(lbm_unicast_immediate_request, &request, ctx, target, NULL, packet, length, on_response, NULL, NULL,
           LBM_SRC_BLOCK);
    printf("Waiting for response...\n\n");
    fflush(stdout);
    bool came = wait_for_answer();
    EX_TRY(lbm_request_delete, request);
    if (!came) {
        fprintf(stderr, "no response within %d s\n", opt.pause);
    }
    if (opt.linger > 0) {
        printf("Lingering for %d second(s)...\n", opt.linger);
        fflush(stdout);
        ex_sleep_ms((unsigned long)opt.linger * 1000);
    }
    EX_TRY(lbm_context_delete, ctx);
    return came ? 0 : 1;
}
