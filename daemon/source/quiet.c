// SPDX-License-Identifier: Apache-2.0
/* quiet - waits that grow; see quiet.h. */
#include "daemon/source/quiet.h"

int md_quiet_wait(int *quiet_ms, bool quiet, int timeout_ms)
{
	if (!quiet || timeout_ms <= 0) {
		*quiet_ms = 0;
		return timeout_ms;
	}
	*quiet_ms = *quiet_ms ? 2 * *quiet_ms : MD_QUIET_MS;
	if (*quiet_ms > MD_QUIET_LONGEST_MS)
		*quiet_ms = MD_QUIET_LONGEST_MS;
	return timeout_ms > *quiet_ms ? timeout_ms : *quiet_ms;
}
