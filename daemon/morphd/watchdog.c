// SPDX-License-Identifier: Apache-2.0
/* watchdog - sends messages to systemd's watchdog; see watchdog.h. */
#include "daemon/morphd/watchdog.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "libprof/base/clock.h"
#include "daemon/morphd/notify.h"

/* Return: 0: the variable is missing or not a number above 0. */
static uint64_t read_number(const char *name)
{
	const char *text = getenv(name);
	char *end;
	uint64_t value;

	if (!text || text[0] < '0' || text[0] > '9')
		return 0;
	errno = 0;
	value = strtoull(text, &end, 10);
	return errno || *end ? 0 : value;
}

void md_watchdog_init(struct md_watchdog *watchdog)
{
	uint64_t usec = read_number("WATCHDOG_USEC");

	*watchdog = (struct md_watchdog){0};
	if (getenv("WATCHDOG_PID") && read_number("WATCHDOG_PID") != (uint64_t)getpid())
		return;
	if (usec < UINT64_MAX / 1000)
		watchdog->pause_ns = usec * 1000 / 2;
}

bool md_watchdog_is_due(struct md_watchdog *watchdog, uint64_t now_ns)
{
	if (!watchdog->pause_ns || now_ns < watchdog->next_ns)
		return false;
	watchdog->next_ns = now_ns + watchdog->pause_ns;
	return true;
}

void md_watchdog_step(struct md_watchdog *watchdog)
{
	if (watchdog->pause_ns && md_watchdog_is_due(watchdog, mp_now_ns()))
		md_notify("WATCHDOG=1");
}
