// SPDX-License-Identifier: Apache-2.0
/* message - morphd's messages; see message.h. */
#include "daemon/morphd/message.h"

#include <stdio.h>

void md_message(const char *message)
{
	fprintf(stderr, "morphd: %s\n", message);
}

void md_message_warn(void *arg, const char *message)
{
	(void)arg;
	md_message(message);
}
