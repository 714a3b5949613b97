// SPDX-License-Identifier: Apache-2.0
/*
 * json - common parts of every JSON object that a program prints: it names its schema and
 * its command, and is valid UTF-8 for any names. Documentation/json.md lists the fields.
 */
#ifndef MP_JSON_H
#define MP_JSON_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "libprof/base/err.h"

/* A new object with "schema" and "command"; NULL if out of memory. */
json_t *mp_json_new(int schema, const char *command);
/*
 * Is @root all that was put into it? False if @root is NULL, or once memory ran out for any JSON of this process:
 * objects may lack fields then. To be asked before an object is written.
 */
bool mp_json_is_whole(const json_t *root);
/*
 * Converts @text, which may hold any bytes: each byte that is no UTF-8 becomes U+FFFD. NULL
 * gives null.
 */
json_t *mp_json_string(const char *text);
/* A number; null if it is no finite one. */
json_t *mp_json_number(double value);
/*
 * mp_json_save - writes @root, which is consumed, to the file @path, completely or not at all: a new file, @path.new with
 * mode 0600, is on the disk before it gets the name. Return: 0; -ENOMEM: @root is not whole; -errno.
 */
int mp_json_save(json_t *root, const char *path, struct mp_err *err);
/* "0x401000" */
json_t *mp_json_address(uint64_t vaddr);

#endif
