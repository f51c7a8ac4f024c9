/* Loading configuration into the process: what lbm_config, lbm_config_xml_file and lbm_config_xml_string do, and what
 * the start-up does for the environment variables. Any thread. */
#ifndef UM_CONFIG_LOAD_H
#define UM_CONFIG_LOAD_H

#include <stdbool.h>

#include "config/um_attr.h"
#include "config/um_xml.h"

enum um_xml_outcome {
    UM_XML_LOADED,
    UM_XML_IMPERFECT, /* in force, but parts were ignored; error set */
    UM_XML_REJECTED   /* nothing loaded; error set */
};

/* A plain-text file, or XML for the unnamed application when the name ends in .xml. 0, or -1 + error. */
int um_config_load_file(const char *name);
enum um_xml_outcome um_config_load_xml_file(const char *name, const char *application);
enum um_xml_outcome um_config_load_xml_string(const char *data, const char *application);

/* Implemented in um_config.c. */
bool um_config_has_xml(void);
/* 0, or -1 when a document is installed already; then the caller still owns `loaded`. */
int um_config_install_xml(struct um_xml *loaded);
/* The XML values for the key into an attribute object: 0, or -1 + error and the object unchanged. */
int um_config_attr_set_from_xml(struct um_attr *attr, const struct um_xml_key *key);

#endif
