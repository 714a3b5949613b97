// SPDX-License-Identifier: Apache-2.0
/* module_key - see module_key.h. */
#include "daemon/fleet/module_key.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/code/originals.h"
#include "daemon/fleet/command.h"
#include "daemon/fleet/pg.h"
#include "daemon/cli/cli.h"

size_t md_module_key(const struct mp_id *id, uint8_t key[MD_MODULE_KEY_MAX])
{
	for (int i = 0; i < 8; i++)
		key[i] = (uint8_t)(id->text_hash >> (56 - 8 * i));
	memcpy(key + 8, id->build_id, id->build_id_len);
	return 8 + (size_t)id->build_id_len;
}

int md_module_of_key(const uint8_t *key, size_t size, struct mp_id *id)
{
	memset(id, 0, sizeof(*id));
	if (size < 8 || size > MD_MODULE_KEY_MAX)
		return -EINVAL;
	for (int i = 0; i < 8; i++)
		id->text_hash = id->text_hash << 8 | key[i];
	id->build_id_len = (uint8_t)(size - 8);
	memcpy(id->build_id, key + 8, size - 8);
	return 0;
}

int md_module_of_text(const char *text, struct mp_id *id)
{
	uint8_t key[MD_MODULE_KEY_MAX];

	return md_module_of_key(key, md_hex_read(text, key, sizeof(key)), id);
}

size_t md_hex_read(const char *text, uint8_t *out, size_t max)
{
	size_t len;

	text += strncmp(text, "\\x", 2) ? 0 : 2;
	len = strlen(text);
	if (len % 2 || len > 2 * max || strspn(text, "0123456789abcdefABCDEF") != len)
		return 0;
	for (size_t i = 0; i < len / 2; i++) {
		char digits[3] = {text[2 * i], text[2 * i + 1], '\0'};

		out[i] = (uint8_t)strtoul(digits, NULL, 16);
	}
	return len / 2;
}

void md_hex_write(const uint8_t *bytes, size_t size, char *out)
{
	for (size_t i = 0; i < size; i++)
		sprintf(out + 2 * i, "%02x", bytes[i]);
	out[2 * size] = '\0';
}

size_t md_build_id_parse(const char *text, uint8_t out[MP_BUILD_ID_MAX])
{
	return strlen(text) < 4 ? 0 : md_hex_read(text, out, MP_BUILD_ID_MAX);
}

int md_modules_named(PGconn *conn, const char *name, char **list)
{
	uint8_t key[MD_MODULE_KEY_MAX];
	char hex[2 * MD_MODULE_KEY_MAX + 1];
	struct mp_err err = {""};
	PGresult *result;
	struct mp_id id;
	int r;

	if (!access(name, F_OK) || !md_build_id_parse(name, key)) {
		if (md_original_id(name, &id, &err))
			return md_cli_fail("%s", err.msg);
		md_hex_write(key, md_module_key(&id, key), hex);
		return asprintf(list, "{\\\\x%s}", hex) < 0 ? md_cli_fail("out of memory") : 0;
	}
	r = md_pg_run(conn, "find the module", &result, &err,
		      "SELECT array_agg(module)::text FROM fleet.find_modules(decode($1, 'hex'))",
		      "t", name);
	if (r)
		return md_fleet_failed(r, &err);
	*list = PQgetisnull(result, 0, 0) ? NULL : strdup(md_pg_text(result, 0));
	PQclear(result);
	if (*list)
		return 0;
	md_cli_fail("%s: the fleet has no such module", name);
	return MP_EXIT_NO_PROFILE;
}
