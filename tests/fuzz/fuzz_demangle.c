// SPDX-License-Identifier: Apache-2.0
/*
 * fuzz_demangle - any text as a symbol and as a user's name: parsed within its bounds. The
 * input is both, separated by a newline.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/code/demangle.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void take_apart(const char *name)
{
	char *brief = md_name_brief(name);

	if (md_name_base_len(name) > strlen(name) || !brief || strlen(brief) > strlen(name))
		abort();
	free(brief);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *symbol = malloc(size + 1), *wanted;

	if (!symbol)
		return 0;
	/* Allocate the second string separately, so that a read before it is detected. */
	memcpy(symbol, data, size);
	symbol[size] = 0;
	wanted = strchr(symbol, '\n');
	wanted = strdup(wanted ? wanted + 1 : "f");
	symbol[strcspn(symbol, "\n")] = 0;
	if (wanted) {
		take_apart(symbol);
		take_apart(wanted);
		if (!strcmp(symbol, wanted) != (md_name_match(symbol, wanted) == MD_NAME_EXACT) &&
		    !strcmp(symbol, wanted))
			abort();
	}
	free(symbol);
	free(wanted);
	return 0;
}
