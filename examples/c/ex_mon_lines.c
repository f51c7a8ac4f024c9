/* Prints fields of protobuf messages by their description. */
#include "ex_mon_lines.h"

#include <arpa/inet.h>
#include <stdint.h>

#include "ex_mon.h"

/* Numbers of the schema have 32 bits, enumerations too, or 64. */
static unsigned long long number(const ProtobufCFieldDescriptor *field, const void *at)
{
    return field->type == PROTOBUF_C_TYPE_UINT64 ? *(const uint64_t *)at : *(const uint32_t *)at;
}

static void print_value(FILE *out, const struct line *line, const ProtobufCFieldDescriptor *field, const void *at)
{
    if (field->type == PROTOBUF_C_TYPE_STRING) {
        ex_mon_put(out, *(char *const *)at != NULL ? *(char *const *)at : "", SIZE_MAX);
        fputc('\n', out);
    } else if (line->how == 'i') {
        char text[INET_ADDRSTRLEN] = "";
        struct in_addr address = {(in_addr_t)number(field, at)}; /* network order */
        inet_ntop(AF_INET, &address, text, sizeof(text));
        fprintf(out, "%s\n", text);
    } else {
        fprintf(out, line->how == 'x' ? "0x%08llx\n" : "%llu\n", number(field, at));
    }
}

void ex_mon_lines(FILE *out, const char *indent, const struct line *table, const void *message)
{
    const ProtobufCMessage *of = message;
    for (const struct line *line = table; of != NULL && line->label != NULL; line++) {
        const ProtobufCFieldDescriptor *field =
            protobuf_c_message_descriptor_get_field_by_name(of->descriptor, line->field);
        if (field != NULL) {
            fprintf(out, "%s%s: %s", indent, line->label, line->how == 's' ? " " : "");
            print_value(out, line, field, (const char *)message + field->offset);
        }
    }
}
