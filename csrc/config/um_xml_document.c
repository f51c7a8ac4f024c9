/* Parsing and validation of XML documents. See um_xml_document.h. */
#include "config/um_xml_document.h"

#include <libxml/parser.h>
#include <libxml/valid.h>
#include <stdio.h>
#include <string.h>

#include "base/um_error.h"

/* ---- parsing ---- */

static void refuse_entity(void *context, const xmlChar *name, int type, const xmlChar *public_id,
                          const xmlChar *system_id, xmlChar *content)
{
    xmlParserCtxtPtr parser = context;
    parser->_private = parser; /* remembered: the document declares entities */
    xmlStopParser(parser);
}

static int parse_error(const char *origin, xmlParserCtxtPtr parser)
{
    const xmlError *error = xmlCtxtGetLastError(parser);
    if (parser->_private != NULL) {
        return um_error(UM_EINVAL, "CoreApi-9022-1",
                        "%.200s: entity declarations are not accepted; write the text itself", origin);
    }
    if (error == NULL || error->message == NULL) {
        return um_error(UM_EINVAL, "CoreApi-9022-2", "%.200s: not well-formed XML", origin);
    }
    int length = (int)strcspn(error->message, "\n");
    return um_error(UM_EINVAL, "CoreApi-9022-2", "%.200s line %d: not well-formed XML: %.*s", origin, error->line,
                    length, error->message);
}

xmlDocPtr um_xml_document_parse(const char *origin, const char *data, size_t len)
{
    xmlParserCtxtPtr parser = xmlNewParserCtxt();
    if (parser == NULL) {
        um_error_nomem("XML parser", sizeof *parser);
        return NULL;
    }
    parser->sax->entityDecl = refuse_entity;
    parser->_private = NULL;
    xmlDocPtr doc = xmlCtxtReadMemory(parser, data, (int)len, origin, NULL,
                                      XML_PARSE_NONET | XML_PARSE_NOENT | XML_PARSE_NOCDATA | XML_PARSE_NOERROR |
                                          XML_PARSE_NOWARNING);
    if (doc != NULL && (parser->_private != NULL || xmlDocGetRootElement(doc) == NULL)) {
        xmlFreeDoc(doc);
        doc = NULL;
    }
    if (doc == NULL) {
        parse_error(origin, parser);
    }
    xmlFreeParserCtxt(parser);
    return doc;
}

/* ---- validation ---- */

static void note_complaint(void *context, xmlErrorPtr error)
{
    struct um_xml_quiet *quiet = context;
    if (quiet->validating && quiet->text[0] == '\0' && error->message != NULL) {
        snprintf(quiet->text, sizeof quiet->text, "%.*s", (int)strcspn(error->message, "\n"), error->message);
        quiet->line = error->line;
    }
}

void um_xml_quiet_begin(struct um_xml_quiet *quiet)
{
    *quiet = (struct um_xml_quiet){.validating = false};
    xmlInitParser();
    quiet->handler = xmlStructuredError;
    quiet->context = xmlStructuredErrorContext;
    xmlSetStructuredErrorFunc(quiet, note_complaint);
}

void um_xml_quiet_end(struct um_xml_quiet *quiet)
{
    xmlSetStructuredErrorFunc(quiet->context, quiet->handler);
}

static xmlDtdPtr parse_dtd(const char *text)
{
    xmlParserInputBufferPtr input = xmlParserInputBufferCreateMem(text, (int)strlen(text), XML_CHAR_ENCODING_UTF8);
    return input == NULL ? NULL : xmlIOParseDTD(NULL, input, XML_CHAR_ENCODING_UTF8); /* consumes the input */
}

int um_xml_document_validate(const char *origin, xmlDocPtr doc, const char *dtd, const char *root,
                             struct um_xml_quiet *quiet)
{
    xmlDtdPtr grammar = parse_dtd(dtd);
    xmlValidCtxtPtr context = xmlNewValidCtxt();
    if (grammar == NULL || context == NULL) {
        xmlFreeDtd(grammar);
        xmlFreeValidCtxt(context);
        return um_error_nomem("XML validation", 0);
    }
    quiet->validating = true;
    int valid = xmlValidateDtd(context, doc, grammar);
    quiet->validating = false;
    xmlFreeValidCtxt(context);
    xmlFreeDtd(grammar);
    if (valid != 1) {
        return um_error(UM_EINVAL, "CoreApi-9022-5", "%.200s line %d: invalid: %s", origin, quiet->line,
                        quiet->text[0] == '\0' ? "the document does not follow the grammar" : quiet->text);
    }
    if (strcmp((const char *)xmlDocGetRootElement(doc)->name, root) != 0) {
        return um_error(UM_EINVAL, "CoreApi-9022-6", "%.200s: the root element must be %s", origin, root);
    }
    return 0;
}
