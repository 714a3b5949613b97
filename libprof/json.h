// SPDX-License-Identifier: Apache-2.0
/*
 * json - what every JSON object that a program prints has in common: it says its schema and its
 * command, and is UTF-8 whatever names hold. Documentation/json.md lists the fields.
 */
#ifndef MP_JSON_H
#define MP_JSON_H

#include <jansson.h>

/* A new object with "schema" and "command"; NULL without memory. */
json_t *mp_json_new(int schema, const char *command);
/* Of @text, which may hold any bytes: each that is not part of UTF-8 becomes U+FFFD. NULL is null. */
json_t *mp_json_string(const char *text);

#endif
