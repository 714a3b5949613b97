// SPDX-License-Identifier: Apache-2.0
/*
 * morph_off - the command "off": nothing begins by itself any more, and every file is as it was. In this order,
 * so that a call that is killed leaves work for the next one and never a worker that replaces files again:
 * the settings go, the worker ends, versions leave running processes, originals are put back, counts go, and the
 * bytes are compared.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "daemon/code/originals.h"
#include "daemon/machine/backups.h"
#include "daemon/machine/program.h"
#include "daemon/morph/morph.h"
#include "daemon/morph/take_back.h"
#include "daemon/morph/units.h"
#include "daemon/policy/policy.h"
#include "daemon/worker/file_state.h"
#include "daemon/worker/work_dir.h"
#include "libprof/base/defaults.h"
#include "libprof/base/newfile.h"
#include "libprof/base/remove_tree.h"
#include "libprof/cli/progress.h"

#define MP_OPTIONS struct off

#define LOCK_TRIES 6  /* of ten seconds */
#define WORK_DEPTH 16 /* as the worker removes a job's directory */

struct off {
	struct md_cli *cli;
	const char *policy_dir;
	char dir[PATH_MAX], file[MP_PATH_ROOM], state_dir[PATH_MAX];
	enum md_units units, fleet;
	size_t nr_rules;     /* that replace files */
	size_t nr_originals; /* places that hold their original */
	size_t nr_outputs;   /* places that do not */
	size_t nr_processes; /* from which versions were taken */
	json_t *rows;
};

static const struct mp_option options[] = {
	MP_VALUE(TEXT, "policy", 0, policy_dir, "DIR",
		 "The directory with on.conf; no unit is stopped then"),
	MP_OPTIONS_END};

static const struct mp_usage usage = {
	.options = options,
	.doc = "End what `morph on' began: the worker ends, every original is put back in its place and in running "
	       "processes, and its bytes are compared. Rules of morph watch stay.\v"
	       "Exit status 0 only if no version of Morph is in place any more. A call that was killed is "
	       "repeated.",
	.shared = &md_cli_common_argp};

/* ---- nothing begins ------------------------------------------------------------------------- */

static int remove_settings(const struct off *off)
{
	int dir;

	if (unlink(off->file) && errno != ENOENT)
		return errno == EACCES
			       ? md_cli_fail("%s: you may not remove it; `sudo morph off' does",
					     off->file)
			       : md_cli_fail("%s: %s", off->file, strerror(errno));
	dir = open(off->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dir >= 0) {
		fsync(dir);
		close(dir);
	}
	return 0;
}

/* Which process has the lock? systemd may not have started it. 0: not known. */
static pid_t find_worker(const struct off *off)
{
	FILE *locks = fopen("/proc/locks", "re");
	char path[PATH_MAX + 16], line[256], name[32] = "";
	unsigned int major_nr, minor_nr;
	uint64_t inode;
	struct stat st;
	int pid = 0, of;

	snprintf(path, sizeof(path), "%s/lock", off->state_dir);
	if (!locks || stat(path, &st)) {
		if (locks)
			fclose(locks);
		return 0;
	}
	while (!pid && fgets(line, sizeof(line), locks))
		if (sscanf(line, "%*d: FLOCK %*s WRITE %d %x:%x:%" SCNu64, &of, &major_nr,
			   &minor_nr, &inode) == 4 &&
		    of > 0 && inode == st.st_ino && makedev(major_nr, minor_nr) == st.st_dev)
			pid = of;
	fclose(locks);
	/* The number may be that of a process which ended, whose child has the lock. */
	snprintf(path, sizeof(path), "/proc/%d/comm", pid);
	locks = pid ? fopen(path, "re") : NULL;
	if (locks && !fgets(name, sizeof(name), locks))
		name[0] = '\0';
	if (locks)
		fclose(locks);
	return strcmp(name, "morph-worker\n") ? 0 : pid;
}

/* Ends the worker, and keeps others from beginning. Return: 0; the status of the command. @lock: -1: none works here. */
static int end_worker(struct off *off, int *lock)
{
	struct mp_err err = {0};
	struct stat st;
	pid_t pid;
	int r = md_state_default_dir(off->state_dir, sizeof(off->state_dir), &err);

	*lock = -1;
	if (r)
		return md_cli_fail("%s", err.msg);
	off->units = off->policy_dir ? MD_UNITS_NONE : md_units_stop();
	if (!off->policy_dir)
		off->fleet = md_units_leave_fleet();
	if (off->units == MD_UNITS_FAILED || off->fleet == MD_UNITS_FAILED)
		return MP_EXIT_FAILED;
	if (stat(off->state_dir, &st) && errno == ENOENT)
		return 0;
	mp_progress_start("morph", false);
	mp_progress_say("waiting until morph-worker has ended");
	for (int i = 0; i < LOCK_TRIES; i++) {
		pid = find_worker(off);
		if (pid)
			kill(pid, SIGTERM);
		r = md_state_lock(off->state_dir, &err);
		if (r != -EBUSY)
			break;
	}
	mp_progress_stop();
	if (r < 0)
		return md_cli_fail("%s; end it, and say morph off again", err.msg);
	*lock = r;
	return 0;
}

/* ---- the bytes ------------------------------------------------------------------------------- */

static bool is_first(const struct md_backup_place *places, size_t i)
{
	for (size_t k = 0; k < i; k++)
		if (!strcmp(places[k].path, places[i].path))
			return false;
	return true;
}

/* Does the file have the bytes of an original that was replaced there? */
static bool is_original(const struct md_backup_place *places, size_t nr, size_t i)
{
	char hash[33];

	if (md_file_hash(places[i].path, hash))
		return false;
	for (size_t k = i; k < nr; k++)
		if (!strcmp(places[k].path, places[i].path) && !strcmp(places[k].digest, hash))
			return true;
	return false;
}

/* Removes the files beside @path that a process left which was killed in the middle of a swap, or of turns. */
static void remove_left(const char *path)
{
	void (*const names[])(const char *, char *) = {mp_new_name, mp_kept_name};
	const char *base = basename(path);

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		char name[MP_NEW_NAME_MAX], beside[PATH_MAX + MP_NEW_NAME_MAX];

		names[i](base, name);
		snprintf(beside, sizeof(beside), "%.*s%s", (int)(base - path), path, name);
		unlink(beside);
	}
}

/* A file that is neither was upgraded, and belongs to nobody here. */
static int compare_bytes(struct off *off)
{
	struct md_backup_place *places;
	struct mp_err err = {0};
	size_t nr;
	int r = 0;

	if (md_backups_places(md_originals_backup_dir(), &places, &nr, &err))
		return md_cli_fail("%s", err.msg);
	for (size_t i = 0; i < nr; i++) {
		struct md_program file;

		if (!places[i].digest[0] || !is_first(places, i))
			continue;
		remove_left(places[i].path);
		if (is_original(places, nr, i)) {
			off->nr_originals++;
		} else if (!md_program_read(places[i].path, &file, NULL)) {
			if (file.is_output) {
				off->nr_outputs++;
				r = md_cli_fail("%s: is still a version of Morph", places[i].path);
			}
			md_program_fini(&file);
		}
	}
	md_backups_free_places(places, nr);
	return r;
}

/* ---- all together --------------------------------------------------------------------------- */

/* Rules that still say adopt. A policy with a mistake allows nothing. */
static void count_rules(struct off *off)
{
	struct md_policy policy;
	struct mp_err err = {0};

	if (md_policy_read(off->dir, &policy, &err))
		md_cli_note("%s", err.msg);
	else
		for (size_t i = 0; i < policy.nr_rules; i++)
			off->nr_rules += md_policy_mode_of(&policy, &policy.rules[i]) ==
					 MD_POLICY_ADOPT;
	md_policy_fini(&policy);
}

static int print_json(struct off *off, int status)
{
	json_t *root = md_cli_json_new("off");

	json_object_set_new(root, "file", mp_json_string(off->file));
	json_object_set_new(root, "programs", off->rows);
	json_object_set_new(root, "originals", json_integer((json_int_t)off->nr_originals));
	json_object_set_new(root, "remaining", json_integer((json_int_t)off->nr_outputs));
	json_object_set_new(root, "processes", json_integer((json_int_t)off->nr_processes));
	json_object_set_new(root, "rules", json_integer((json_int_t)off->nr_rules));
	off->rows = NULL;
	return md_cli_json_print(root) ? MP_EXIT_FAILED : status;
}

static int print(const struct off *off, int status)
{
	if (!status && off->nr_originals)
		printf("%zu file%s that Morph replaced %s original bytes; none is a version of "
		       "Morph.\n",
		       off->nr_originals, off->nr_originals == 1 ? "" : "s",
		       off->nr_originals == 1 ? "has its" : "have their");
	if (off->nr_processes)
		printf("%zu running process%s the original's code again.\n", off->nr_processes,
		       off->nr_processes == 1 ? " has" : "es have");
	if (off->nr_rules)
		printf("%zu rule%s in %s/watch.d still say%s adopt, so the worker's timer is as "
		       "it was: morph watch list.\n",
		       off->nr_rules, off->nr_rules == 1 ? "" : "s", off->dir,
		       off->nr_rules == 1 ? "s" : "");
	else if (off->units == MD_UNITS_CHANGED)
		puts("The worker's timer is disabled.");
	if (off->fleet == MD_UNITS_CHANGED)
		puts("morph-fleet-builds.timer, which installs the builds of this machine's fleet, is "
		     "disabled, too:\n"
		     "systemctl enable --now morph-fleet-builds.timer takes part in them again.");
	return md_cli_finish(status);
}

/* Versions, and what processes counted, in the directories of the worker's jobs. */
static void remove_work(const struct off *off)
{
	DIR *d = opendir(off->state_dir);
	char path[PATH_MAX + 256];
	struct dirent *entry;

	while (d && (entry = readdir(d)))
		if (strlen(entry->d_name) == 16 &&
		    strspn(entry->d_name, "0123456789abcdef") == 16) {
			snprintf(path, sizeof(path), "%s/%s", off->state_dir, entry->d_name);
			mp_remove_tree(path, WORK_DEPTH);
		}
	if (d)
		closedir(d);
}

/* Takes only the worker's versions out of running processes: somebody may have put in others by hand. */
static int take_back(struct off *off)
{
	struct mp_err err = {0};
	int r = md_take_back(off->state_dir, &off->nr_processes, &err);

	return r < 0 ? md_cli_fail("%s", err.msg) : r ? MP_EXIT_FAILED : 0;
}

static int turn_off(struct off *off)
{
	int lock, live, r = remove_settings(off);

	if (!r)
		r = end_worker(off, &lock);
	if (r)
		return r;
	live = take_back(off);
	r = md_morph_undo_all(off->cli, off->rows);
	remove_work(off);
	if (compare_bytes(off) || live)
		r = MP_EXIT_FAILED;
	count_rules(off);
	if (!off->policy_dir)
		off->units = md_units_settle(off->nr_rules);
	if (off->units == MD_UNITS_FAILED)
		r = MP_EXIT_FAILED;
	if (lock >= 0)
		close(lock);
	return off->rows ? print_json(off, r) : print(off, r);
}

int md_morph_off(struct md_cli *cli, int argc, char **argv)
{
	struct off off = {.cli = cli};
	int r;

	md_cli_parse(&usage, argc, argv, &off, cli);
	r = md_morph_policy_dir(off.policy_dir, off.dir, sizeof(off.dir));
	snprintf(off.file, sizeof(off.file), "%s/%s", off.dir, MD_POLICY_ON);
	if (cli->json)
		off.rows = json_array();
	if (!r)
		r = turn_off(&off);
	json_decref(off.rows);
	return r;
}
