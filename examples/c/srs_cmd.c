/* srs_cmd: sends commands to the monitor of a resolution service and prints what it
 * answers. The command is the argument, or each line of the input. Main thread;
 * answers come on the context's. */
#include <lbm/lbm.h>
#include <ctype.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ex_options.h"

#define ANSWER_SECONDS 5
#define COMMAND_LEN 1024

static struct {
    int linger;
    const char *target;
} opt = {.linger = 1};

static const struct ex_option options[] = {
    {'c', "config", EX_CONFIG, NULL, "FILE", "load a configuration file; may be repeated"},
    {'h', "help", EX_HELP, NULL, NULL, "show this text"},
    {'L', "linger", EX_INT, &opt.linger, "SEC", "wait before the context is deleted (1)"},
    {'T', "target", EX_TEXT, &opt.target, "TARGET",
     "where the service listens for commands, as its log says: TCP:10.1.2.3:14391"},
    EX_END,
};

static const struct ex_program program = {
    "Sends a command to a resolution service: \"version\", \"snap CATEGORY\", \"CATEGORY MILLISECONDS\", or JSON. "
    "Without one, each line of the input is a command.",
    "[command]", 0, options};

/* ---- the text of commands ------------------------------------------------------------------ */

static void to_upper(char *word)
{
    for (; *word != '\0'; word++) {
        *word = (char)toupper((unsigned char)*word);
    }
}

/* Words become JSON; JSON stays as it is. */
static void write_command(const char *text, char *out, size_t len)
{
    char first[64] = "", second[64] = "", rest[2] = "";
    int words = sscanf(text, "%63s %63s %1s", first, second, rest);
    if (words == 1 && strcmp(first, "version") == 0) {
        snprintf(out, len, "{\"commandMessageType\":\"REPORT_SRS_VERSION\"}");
    } else if (words == 2 && strcmp(first, "snap") == 0 && strpbrk(second, "\"\\") == NULL) {
        to_upper(second);
        snprintf(out, len, "{\"commandMessageType\":\"REPORT_MONITOR_INFO\",\"monitorInfoCategory\":\"%s\"}", second);
    } else if (words == 2 && strspn(second, "0123456789") == strlen(second) && strpbrk(first, "\"\\{") == NULL) {
        to_upper(first);
        snprintf(out, len,
                 "{\"commandMessageType\":\"SET_PUBLISHING_INTERVAL\",\"monitorInfoCategory\":\"%s\","
                 "\"publishingInterval\":%s}",
                 first, second);
    } else {
        snprintf(out, len, "%s", text);
    }
}

/* ---- one command ------------------------------------------------------------------------------ */

static atomic_int answered;

static int on_answer(lbm_request_t *req, lbm_msg_t *msg, void *clientd)
{
    (void)req;
    (void)clientd;
    if (msg->type == LBM_MSG_RESPONSE) {
        printf("Response received [%s] from [%s][%u], %lu bytes\n", msg->topic_name, msg->source, msg->sequence_number,
               (unsigned long)msg->len);
        printf("%.*s\n", (int)strnlen(msg->data, msg->len), msg->data);
        fflush(stdout);
        atomic_store(&answered, 1);
    }
    return 0;
}

/* Status 1: no answer. */
static int ask(lbm_context_t *ctx, const char *text)
{
    lbm_request_t *req;
    char command[COMMAND_LEN];
    write_command(text, command, sizeof(command));
    atomic_store(&answered, 0);
    EX_TRY(lbm_unicast_immediate_request, &req, ctx, opt.target, NULL, command, strlen(command) + 1, on_answer, NULL,
           NULL, LBM_SRC_BLOCK);
    for (double end = ex_now() + ANSWER_SECONDS; !atomic_load(&answered) && ex_now() < end;) {
        ex_sleep_ms(10);
    }
    EX_TRY(lbm_request_delete, req);
    if (!atomic_load(&answered)) {
        fprintf(stderr, "Command timed out: no answer from %s within %d seconds\n", opt.target, ANSWER_SECONDS);
        return 1;
    }
    return 0;
}

static int ask_all(lbm_context_t *ctx)
{
    char line[COMMAND_LEN];
    int status = 0;
    while (fgets(line, sizeof(line), stdin) != NULL) {
        line[strcspn(line, "\r\n")] = '\0';
        if (line[strspn(line, " \t")] != '\0' && ask(ctx, line) != 0) {
            status = 1;
        }
    }
    return status;
}

int main(int argc, char **argv)
{
    int first = ex_parse(argc, argv, &program), status;
    lbm_context_t *ctx;
    if (opt.target == NULL || opt.linger < 0) {
        ex_usage(argv[0], &program, 1);
    }
    EX_TRY(lbm_context_create, &ctx, NULL, NULL, NULL);
    printf("Sending unicast immediate messages to target: <%s>\n", opt.target);
    fflush(stdout);
    status = first < argc ? ask(ctx, argv[first]) : ask_all(ctx);
    if (opt.linger > 0) {
        printf("Lingering for %d second(s)...\n", opt.linger);
        fflush(stdout);
        ex_sleep_ms((unsigned long)opt.linger * 1000);
    }
    EX_TRY(lbm_context_delete, ctx);
    return status;
}
