// SPDX-License-Identifier: Apache-2.0
/* units - asks systemctl; see units.h. */
#include "daemon/morph/units.h"

#include <stddef.h>
#include <unistd.h>

#include "daemon/morph/run_tool.h"

/* Present while systemd is the first process. */
#define SYSTEMD_RUNS "/run/systemd/system"

#define TIMER	  "morph-optimize.timer"
#define PATH_UNIT "morph-optimize.path"

/* Return: 0, if systemctl succeeded. Its output is not shown, its messages are. */
static int systemctl(const char *verb, const char *option, const char *unit, const char *other)
{
	char *argv[] = {(char *)"systemctl", (char *)"--quiet", (char *)verb, (char *)option,
			(char *)unit,	     (char *)other,	NULL};

	return md_run_tool(argv, NULL, NULL);
}

enum md_units md_units_enable(void)
{
	if (geteuid() || access(SYSTEMD_RUNS, F_OK))
		return MD_UNITS_NONE;
	/* Without units, "list-unit-files" fails and prints nothing. */
	if (systemctl("list-unit-files", "--no-legend", TIMER, NULL))
		return MD_UNITS_NONE;
	if (!systemctl("is-active", TIMER, NULL, NULL))
		return MD_UNITS_ENABLED;
	return systemctl("enable", "--now", TIMER, PATH_UNIT) ? MD_UNITS_FAILED : MD_UNITS_CHANGED;
}
