// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>
#include <sys/types.h>
#include <unistd.h>

#include "daemon/live/targets.h"
#include "tests/unit/suite.h"

static const char unit[] = "db.service";

TEST(targets_finds_the_systems_unit)
{
	ck_assert(md_unit_holds(unit, "0::/system.slice/db.service\n"));
	ck_assert(md_unit_holds(unit, "0::/system.slice/system-x.slice/db.service/inner\n"));
	ck_assert(md_unit_holds(unit, "1:name=systemd:/db.service\n"));
	ck_assert(md_unit_holds("system.slice", "0::/system.slice/db.service\n"));
	ck_assert(!md_unit_holds(unit, "0::/system.slice/mydb.service\n"));
	ck_assert(!md_unit_holds(unit, "0::/system.slice/db.service.d\n"));
	ck_assert(!md_unit_holds(unit, "0::/\n"));
	ck_assert(!md_unit_holds(unit, ""));
}

/* A user, and root of a container, may give any name to units of their own. */
TEST(targets_leaves_units_of_others_alone)
{
	ck_assert(
		!md_unit_holds(unit, "0::/system.slice/docker-1.scope/system.slice/db.service\n"));
	ck_assert(!md_unit_holds(unit, "0::/machine.slice/box.service/db.service\n"));
	ck_assert(!md_unit_holds(
		unit, "0::/user.slice/user-12345.slice/user@12345.service/app.slice/db.service\n"));
}

/* A user's own units are below that user's manager. */
TEST(targets_finds_units_of_this_user)
{
	char line[160];

	snprintf(line, sizeof(line),
		 "0::/user.slice/user-%u.slice/user@%u.service/app.slice/db.service\n", geteuid(),
		 geteuid());
	ck_assert_int_eq(md_unit_holds(unit, line), geteuid() != 0);
}
