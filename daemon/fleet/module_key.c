// SPDX-License-Identifier: Apache-2.0
/* module_key - see module_key.h. */
#include "daemon/fleet/module_key.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

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

size_t md_build_id_parse(const char *text, uint8_t out[MP_BUILD_ID_MAX])
{
	size_t len = strlen(text);

	if (len < 4 || len % 2 || len > 2 * MP_BUILD_ID_MAX ||
	    strspn(text, "0123456789abcdefABCDEF") != len)
		return 0;
	for (size_t i = 0; i < len / 2; i++) {
		char digits[3] = {text[2 * i], text[2 * i + 1], '\0'};

		out[i] = (uint8_t)strtoul(digits, NULL, 16);
	}
	return len / 2;
}
