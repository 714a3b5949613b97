// SPDX-License-Identifier: Apache-2.0
/* policy - finds, checks and reads the files of a policy, and looks rules up; see policy.h. */
#include "daemon/policy/policy.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include "daemon/policy/defaults.h"
#include "daemon/policy/package.h"
#include "daemon/policy/policy_private.h"
#include "daemon/policy/words.h"
#include "libprof/base/grow.h"

#define RULES_MAX 1000

const char *md_policy_mode_name(enum md_policy_mode mode)
{
	return mode == MD_POLICY_ADOPT ? "adopt" : "advise";
}

const char *md_policy_audit_name(enum md_policy_audit audit)
{
	static const char *const names[] = {[MD_AUDIT_NONE] = "none",
					    [MD_AUDIT_COMMAND] = "command",
					    [MD_AUDIT_IN_PROCESS] = "in-process"};

	return names[audit];
}

int md_policy_default_dir(char *buf, size_t size, struct mp_err *err)
{
	const char *config = getenv("XDG_CONFIG_HOME"), *home = getenv("HOME");
	int n;

	if (!geteuid())
		n = snprintf(buf, size, MD_POLICY_DIR);
	else if (config && config[0] == '/')
		n = snprintf(buf, size, "%s/morph", config);
	else if (home && home[0] == '/')
		n = snprintf(buf, size, "%s/.config/morph", home);
	else
		return mp_err_set(err, ENOENT, "HOME is not set: give --config");
	if (n < 0 || (size_t)n >= size)
		return mp_err_set(err, ENAMETOOLONG, "the path of the policy is too long");
	return 0;
}

/* ---- files -------------------------------------------------------------------------------- */

/*
 * A policy names commands to execute and files to replace. So only its owner may write it.
 * Return: 0, -EPERM.
 */
static int check_trust(int fd, const char *path, struct mp_err *err)
{
	struct stat st;

	if (fstat(fd, &st))
		return mp_err_set(err, errno, "%s: %s", path, strerror(errno));
	if (st.st_uid && st.st_uid != geteuid())
		return mp_err_set(err, EPERM, "%s: belongs to another user: not read", path);
	if (st.st_mode & 022)
		return mp_err_set(err, EPERM, "%s: other users can write it: not read", path);
	return 0;
}

/* Return: 1: read; 0: there is no such file; -errno. */
static int read_file(int dir, const char *name, const char *path, mp_setting_take *take,
		     struct md_policy_file *file, struct mp_err *err)
{
	struct stat st;
	FILE *stream;
	/* O_NONBLOCK: opening a FIFO must not wait for its other end. */
	int ret, fd = openat(dir, name, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);

	if (fd < 0 && errno == ENOENT)
		return 0;
	if (fd < 0)
		return mp_err_set(err, errno, "%s: cannot open: %s", path, strerror(errno));
	ret = check_trust(fd, path, err);
	if (!ret && (fstat(fd, &st) || !S_ISREG(st.st_mode)))
		ret = mp_err_set(err, EINVAL, "%s: not a regular file", path);
	stream = ret ? NULL : fdopen(fd, "r");
	if (!ret && !stream)
		ret = mp_err_set(err, errno, "%s: %s", path, strerror(errno));
	if (!ret)
		ret = mp_settings_read(stream, path, take, file, err);
	if (stream)
		fclose(stream);
	else
		close(fd);
	return ret ? ret : 1;
}

static int open_dir(int at, const char *name, const char *path, int *fd, struct mp_err *err)
{
	*fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (*fd < 0 && errno == ENOENT)
		return 0;
	if (*fd < 0)
		return mp_err_set(err, errno, "%s: cannot open: %s", path, strerror(errno));
	return check_trust(*fd, path, err);
}

/* ---- rules -------------------------------------------------------------------------------- */

static void rule_fini(struct md_rule *rule)
{
	char *texts[] = {rule->file, rule->name, rule->user, rule->unit};

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		free(texts[i]);
	md_words_free(rule->programs);
	md_words_free(rule->packages);
	md_words_free(rule->train);
	md_words_free(rule->command);
	*rule = (struct md_rule){0};
}

static int read_rule(struct md_policy *policy, int dir, const char *name, struct mp_err *err)
{
	struct md_rule *rule;
	struct md_policy_file file = {0};
	int ret;

	if (policy->nr_rules == RULES_MAX)
		return mp_err_set(err, EINVAL, "%s/watch.d: more than %d rules", policy->dir,
				  RULES_MAX);
	if (mp_resize(policy->rules, policy->nr_rules + 1))
		return mp_err_set(err, ENOMEM, "out of memory");
	rule = file.into = &policy->rules[policy->nr_rules++];
	*rule = (struct md_rule){.name = strndup(name, strlen(name) - strlen(".conf"))};
	if (asprintf(&rule->file, "%s/watch.d/%s", policy->dir, name) < 0)
		rule->file = NULL;
	if (!rule->file || !rule->name)
		return mp_err_set(err, ENOMEM, "out of memory");
	ret = read_file(dir, name, rule->file, md_policy_take_rule, &file, err);
	if (!ret) { /* removed just now */
		rule_fini(rule);
		policy->nr_rules--;
		return 0;
	}
	return ret < 0 ? ret : md_policy_check_rule(rule, &file, err);
}

static int is_rule(const struct dirent *entry)
{
	size_t len = strlen(entry->d_name);

	return entry->d_name[0] != '.' && len > 5 && !strcmp(entry->d_name + len - 5, ".conf");
}

static int by_name(const struct dirent **a, const struct dirent **b)
{
	return strcmp((*a)->d_name, (*b)->d_name);
}

static int read_rules(struct md_policy *policy, int at, struct mp_err *err)
{
	struct dirent **entries = NULL;
	char path[PATH_MAX];
	int nr = 0, dir, ret;

	snprintf(path, sizeof(path), "%s/watch.d", policy->dir);
	ret = open_dir(at, "watch.d", path, &dir, err);
	if (!ret && dir >= 0) {
		nr = scandirat(dir, ".", &entries, is_rule, by_name);
		if (nr < 0)
			ret = mp_err_set(err, errno, "%s: %s", path, strerror(errno));
	}
	for (int i = 0; i < nr; i++) {
		if (!ret)
			ret = read_rule(policy, dir, entries[i]->d_name, err);
		free(entries[i]);
	}
	free(entries);
	if (dir >= 0)
		close(dir);
	return ret;
}

/* ---- changes ------------------------------------------------------------------------------ */

/* A change of a file sets its time of change, which nobody can set back; a file that is not there is all zero. */
static uint64_t look_at(uint64_t hash, int dir, const char *name)
{
	struct stat st;

	if (fstatat(dir, name, &st, 0))
		st = (struct stat){0};
	return XXH3_64bits((const uint64_t[]){hash, st.st_dev, st.st_ino, (uint64_t)st.st_size,
					      (uint64_t)st.st_ctim.tv_sec,
					      (uint64_t)st.st_ctim.tv_nsec},
			   6 * sizeof(uint64_t));
}

static uint64_t look_at_files(const char *path)
{
	int dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct dirent **entries = NULL;
	int nr, rules = -1;
	uint64_t hash;

	if (dir < 0)
		return 0;
	hash = look_at(0, dir, "morph.conf");
	hash = look_at(hash, dir, MD_POLICY_ON);
	hash = look_at(hash, dir, "watch.d");
	rules = openat(dir, "watch.d", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	nr = rules < 0 ? 0 : scandirat(rules, ".", &entries, is_rule, by_name);
	for (int i = 0; i < nr; i++) {
		hash = look_at(hash, rules, entries[i]->d_name);
		free(entries[i]);
	}
	free(entries);
	if (rules >= 0)
		close(rules);
	close(dir);
	return hash;
}

bool md_policy_has_changed(const struct md_policy *policy)
{
	return look_at_files(policy->dir) != policy->files;
}

/* ---- the policy --------------------------------------------------------------------------- */

static int set_defaults(struct md_policy *policy, const char *dir, struct mp_err *err)
{
	*policy = (struct md_policy){
		.dir = strdup(dir),
		.share = MD_POLICY_SHARE,
		.min_samples = MD_POLICY_MIN_SAMPLES,
		.cost = MD_POLICY_COST,
		.disk_bytes = MD_POLICY_DISK_BYTES,
		.audit_s = MD_POLICY_AUDIT_S,
		.max_load = MD_POLICY_LOAD,
		.busy_share = MD_POLICY_BUSY,
		.probation_s = MD_POLICY_PROBATION_S,
		.retry_s = MD_POLICY_RETRY_S,
		.retention_s = MD_POLICY_RETENTION_S,
		.worse_by = MD_POLICY_WORSE,
		.age_by = MD_POLICY_AGE,
	};
	return policy->dir ? 0 : mp_err_set(err, ENOMEM, "out of memory");
}

/* Settings win over those that were read before, and lists grow. */
static int read_main(struct md_policy *policy, int dir, const char *name, struct mp_err *err)
{
	struct md_policy_file file = {.into = policy};
	char path[PATH_MAX];
	int ret;

	if (!name[0])
		return 0;
	snprintf(path, sizeof(path), "%s%s%s", name[0] == '/' ? "" : policy->dir,
		 name[0] == '/' ? "" : "/", name);
	ret = read_file(dir, name, path, md_policy_take_main, &file, err);
	return ret < 0 ? ret : 0;
}

int md_policy_read_on(const char *dir, const char *on, struct md_policy *out, struct mp_err *err)
{
	int fd = -1, ret = set_defaults(out, dir, err);

	/* First: what changes while it is read has changed. */
	out->files = look_at_files(dir);
	if (!ret && strlen(dir) >= PATH_MAX - sizeof("/morph.conf"))
		ret = mp_err_set(err, ENAMETOOLONG, "%s: too long", dir);
	if (!ret)
		ret = open_dir(AT_FDCWD, dir, dir, &fd, err);
	if (!ret && fd >= 0)
		ret = read_main(out, fd, "morph.conf", err);
	if (!ret && (fd >= 0 || on[0] == '/'))
		ret = read_main(out, fd, on, err);
	if (!ret && fd >= 0)
		ret = read_rules(out, fd, err);
	if (fd >= 0)
		close(fd);
	return ret;
}

int md_policy_read(const char *dir, struct md_policy *out, struct mp_err *err)
{
	return md_policy_read_on(dir, MD_POLICY_ON, out, err);
}

void md_policy_fini(struct md_policy *policy)
{
	for (size_t i = 0; i < policy->nr_rules; i++)
		rule_fini(&policy->rules[i]);
	free(policy->rules);
	free(policy->dir);
	free(policy->dpkg_admin);
	md_words_free(policy->only);
	md_words_free(policy->excludes);
	*policy = (struct md_policy){0};
}

/* ---- which rule --------------------------------------------------------------------------- */

/* /lib and /usr/lib are one directory today, and dpkg may know either. Return: 1, 0, -errno: not known. */
static int package_has(const struct md_policy *policy, const char *package, const char *path)
{
	const char *merged = !strncmp(path, "/usr/", 5) ? path + 4 : path;
	char *list, *rest, *line;
	int found = md_package_list(policy->dpkg_admin, package, &list);

	if (found)
		return found == -ENOENT ? 0 : found;
	rest = list;
	while (!found && (line = md_package_next(&rest)))
		found = !strcmp(line, path) || !strcmp(line, merged);
	free(list);
	return found;
}

const struct md_rule *md_policy_rule(const struct md_policy *policy, const char *path)
{
	for (size_t i = 0; i < policy->nr_rules; i++) {
		const struct md_rule *rule = &policy->rules[i];

		for (char **p = rule->programs; p && *p; p++)
			if (!fnmatch(*p, path, 0))
				return rule;
		for (char **p = rule->packages; p && *p; p++) {
			int has = package_has(policy, *p, path);

			/* A later rule may allow more than one that is not known to match. */
			if (has)
				return has > 0 ? rule : NULL;
		}
	}
	return NULL;
}

bool md_policy_may_instrument(const struct md_policy *policy, const struct md_rule *rule)
{
	return rule && rule->instrument && rule->audit == MD_AUDIT_IN_PROCESS &&
	       md_policy_mode_of(policy, rule) == MD_POLICY_ADOPT;
}

enum md_policy_mode md_policy_mode_of(const struct md_policy *policy, const struct md_rule *rule)
{
	return rule && rule->has_mode ? rule->mode : policy->mode;
}

bool md_policy_is_library(const char *path)
{
	const char *at = strrchr(path, '/');

	at = at ? at : path;
	/* libz.so, libz.so.1, and not a name such as x.socket. */
	while ((at = strstr(at, ".so"))) {
		at += strlen(".so");
		if (!*at || *at == '.')
			return true;
	}
	return false;
}

bool md_policy_may_count(const struct md_policy *policy, const struct md_rule *rule,
			 const char *path)
{
	return policy->counting && policy->cost > 0 &&
	       md_policy_mode_of(policy, rule) == MD_POLICY_ADOPT &&
	       !(rule && (rule->train || rule->command || rule->instrument)) &&
	       (!md_policy_is_library(path) || md_policy_may_live(policy, rule));
}

bool md_policy_may_live(const struct md_policy *policy, const struct md_rule *rule)
{
	return rule && rule->has_live ? rule->live : policy->live;
}

double md_policy_day_s(const struct md_policy *policy)
{
	return policy->cost * MP_SECONDS_PER_DAY * (double)sysconf(_SC_NPROCESSORS_ONLN);
}
