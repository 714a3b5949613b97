// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <sys/wait.h>
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

/* The path of a library that is mapped here; "": there is none. */
static const char *a_library(char *path, size_t size)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	char line[4096], found[4096];

	path[0] = '\0';
	while (maps && !path[0] && fgets(line, sizeof(line), maps))
		if (sscanf(line, "%*s r-xp %*s %*s %*s %4095s", found) == 1 &&
		    strstr(found, "/libc.so"))
			snprintf(path, size, "%s", found);
	if (maps)
		fclose(maps);
	return path;
}

static bool has(const struct md_targets *targets, pid_t pid, struct md_target_program *program)
{
	for (size_t i = 0; i < targets->nr; i++)
		if (targets->list[i].pid == pid) {
			*program = md_target_program(&targets->list[i]);
			return true;
		}
	return false;
}

TEST(targets_finds_processes_that_have_loaded_a_library)
{
	struct md_target_program program;
	struct md_targets targets;
	char path[4096], exe[4096] = "";
	pid_t child = fork();

	if (!child)
		for (;;)
			pause();
	ck_assert_int_gt(child, 0);
	ck_assert_int_gt(readlink("/proc/self/exe", exe, sizeof(exe) - 1), 0);
	if (a_library(path, sizeof(path))[0]) {
		ck_assert_int_eq(md_targets_find(path, NULL, &targets, &err), 0);
		ck_assert(targets.searched && targets.library);
		ck_assert(has(&targets, child, &program));
		ck_assert_str_eq(program.path, exe);
		md_targets_free(&targets);
		ck_assert_int_eq(md_targets_find(path, exe, &targets, &err), 0);
		ck_assert(has(&targets, child, &program));
		md_targets_free(&targets);
		ck_assert_int_eq(md_targets_find(path, "/nowhere/prog", &targets, &err), -ESRCH);
		ck_assert_uint_eq(targets.nr, 0);
		md_targets_free(&targets);
	}
	ck_assert_int_eq(md_targets_find(exe, NULL, &targets, &err), 0);
	ck_assert(!targets.library && has(&targets, child, &program));
	md_targets_free(&targets);
	kill(child, SIGKILL);
	ck_assert_int_eq(waitpid(child, NULL, 0), child);
}

TEST(targets_says_that_nobody_has_loaded_a_library)
{
	struct md_targets targets;

	ck_assert_int_eq(md_targets_find("/nowhere/libnone.so.1", NULL, &targets, &err), -ENOENT);
	md_targets_free(&targets);
}

/* A package that is removed takes its directories with it, and processes go on. */
TEST(targets_finds_processes_whose_directory_is_gone)
{
	char dir[] = "/tmp/morph-targets-XXXXXX", path[64], copy[128];
	struct md_target_program program;
	struct md_targets targets;
	pid_t child;

	ck_assert_ptr_nonnull(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/prog", dir);
	snprintf(copy, sizeof(copy), "cp /bin/sleep %s", path);
	ck_assert_int_eq(system(copy), 0);
	child = fork();
	if (!child) {
		execl(path, "prog", "60", (char *)NULL);
		_exit(1);
	}
	ck_assert_int_gt(child, 0);
	for (int i = 0; i < 500; i++) {
		ck_assert_int_eq(md_targets_find(NULL, NULL, &targets, &err), 0);
		if (has(&targets, child, &program) && !strcmp(program.path, path))
			break;
		md_targets_free(&targets);
		usleep(10000);
	}
	md_targets_free(&targets);
	ck_assert_int_eq(unlink(path), 0);
	ck_assert_int_eq(rmdir(dir), 0);
	ck_assert_int_eq(md_targets_find(path, NULL, &targets, &err), 0);
	ck_assert(has(&targets, child, &program));
	md_targets_free(&targets);
	kill(child, SIGKILL);
	ck_assert_int_eq(waitpid(child, NULL, 0), child);
}
