// SPDX-License-Identifier: Apache-2.0
/* units - asks systemctl; see units.h. */
#include "daemon/morph/units.h"

#include <limits.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "daemon/morph/run_tool.h"

#define TIMER	  "morph-optimize.timer"
#define PATH_UNIT "morph-optimize.path"
#define SOCKET	  "morph-optimize.socket" /* else what it hears starts the service again */
#define SERVICE	  "morph-optimize.service"
#define COLLECTOR "morphd.service"
/* The one timer of a fleet that replaces files: it installs the fleet's builds again. */
#define BUILDS_TIMER "morph-fleet-builds.timer"
#define BUILDS	     "morph-fleet-builds.service"

/* These directories exist while systemd is the first process, or serves this user. */
static bool has_manager(void)
{
	const char *runtime = getenv("XDG_RUNTIME_DIR");
	char path[PATH_MAX];

	if (!geteuid())
		return !access("/run/systemd/system", F_OK);
	return runtime &&
	       snprintf(path, sizeof(path), "%s/systemd/private", runtime) < (int)sizeof(path) &&
	       !access(path, F_OK);
}

/*
 * @words: at most three, then NULL. Return: 0, if systemctl succeeded. Its output is not shown, its messages are.
 */
static int systemctl(const char *verb, const char *const *words)
{
	char *argv[8] = {(char *)"systemctl", (char *)"--quiet"};
	size_t nr = 2;

	if (geteuid())
		argv[nr++] = (char *)"--user";
	argv[nr++] = (char *)verb;
	for (; *words; words++)
		argv[nr++] = (char *)*words;
	return md_run_tool(argv, NULL, NULL);
}

#define SYSTEMCTL(verb, ...) systemctl(verb, (const char *const[]){__VA_ARGS__, NULL})

static bool has_units(void)
{
	/* Without units, "list-unit-files" fails and prints nothing. */
	return has_manager() && !SYSTEMCTL("list-unit-files", "--no-legend", TIMER);
}

enum md_units md_units_enable(bool collector)
{
	bool root = !geteuid();
	int failed;

	if ((!root && !collector) || !has_units())
		return MD_UNITS_NONE;
	if (!SYSTEMCTL("is-active", TIMER) &&
	    (!root || !collector || !SYSTEMCTL("is-active", COLLECTOR)))
		return MD_UNITS_ENABLED;
	/* A user has no collector, and no path unit. */
	failed = !root	     ? SYSTEMCTL("enable", "--now", TIMER)
		 : collector ? SYSTEMCTL("enable", "--now", TIMER, PATH_UNIT, COLLECTOR)
			     : SYSTEMCTL("enable", "--now", TIMER, PATH_UNIT);
	return failed ? MD_UNITS_FAILED : MD_UNITS_CHANGED;
}

enum md_units md_units_stop(void)
{
	if (!has_units())
		return MD_UNITS_NONE;
	return (geteuid() ? SYSTEMCTL("stop", TIMER, SERVICE)
			  : SYSTEMCTL("stop", TIMER, PATH_UNIT, SOCKET, SERVICE))
		       ? MD_UNITS_FAILED
		       : MD_UNITS_CHANGED;
}

enum md_units md_units_leave_fleet(void)
{
	if (geteuid() || !has_manager() || SYSTEMCTL("is-active", BUILDS_TIMER))
		return MD_UNITS_NONE;
	return SYSTEMCTL("disable", "--now", BUILDS_TIMER) || SYSTEMCTL("stop", BUILDS)
		       ? MD_UNITS_FAILED
		       : MD_UNITS_CHANGED;
}

enum md_units md_units_settle(bool again)
{
	const char *verb = again ? "start" : "disable";

	if (!has_units())
		return MD_UNITS_NONE;
	/* Somebody may have disabled a timer that rules would need. */
	if (again && SYSTEMCTL("is-enabled", TIMER))
		return MD_UNITS_NONE;
	return (geteuid() ? SYSTEMCTL(verb, TIMER) : SYSTEMCTL(verb, TIMER, PATH_UNIT))
		       ? MD_UNITS_FAILED
		       : MD_UNITS_CHANGED;
}
