// SPDX-License-Identifier: Apache-2.0
/* sample_owner - name, unit and user of processes; see sample_owner.h. */
#include "daemon/attribute/sample_owner.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/source/pidmap.h"
#include "daemon/source/proc_scan.h"
#include "libprof/base/grow.h"

/* Limits of what is remembered: processes, and combinations of name, unit and user. */
#define PROCESSES_MAX 65536
#define GROUPS_MAX    4096
#define CONTAINER_ID  12 /* enough digits of a container's id */

struct process {
	uint32_t tgid;
	uint32_t group; /* index + 1; 0: not looked up for this program yet */
	uint32_t uid;
	bool by_pid; /* named by --pid, or a descendant of such a process */
	bool wanted;
	char name[16];
	char unit[64];
};

struct md_sample_owner {
	bool is_live;
	const struct md_sample_selection *selection;
	md_sample_owner_program *program;
	void *arg;
	struct md_pidmap index; /* maps tgid + 1 to the index in @processes */
	struct process *processes;
	size_t nr_processes, max_processes;
	struct mp_process *groups;
	size_t nr_groups, max_groups;
	uint32_t last_tgid; /* cache: the process of the last samples */
	struct process *last;
};

/* ---- units ---------------------------------------------------------------------------------- */

static bool ends_in(const char *text, size_t len, const char *end)
{
	size_t n = strlen(end);

	return len > n && !memcmp(text + len - n, end, n);
}

static bool is_hex(const char *text)
{
	size_t len = strspn(text, "0123456789abcdef");

	return len >= CONTAINER_ID && !text[len];
}

/*
 * Matches "NAME", "NAME.service" and so on. A container's id may be any part of
 * "docker-ID.scope".
 */
static bool is_component(const char *part, size_t len, const char *name)
{
	static const char *const ends[] = {"", ".service", ".scope", ".slice"};
	size_t n = strlen(name);

	for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++)
		if (len == n + strlen(ends[i]) && !memcmp(part, name, n) &&
		    !memcmp(part + n, ends[i], strlen(ends[i])))
			return true;
	return is_hex(name) && memmem(part, len, name, n);
}

bool md_sample_owner_is_unit(const char *path, const char *name)
{
	size_t len = strlen(name);

	if (name[0] == '/') {
		while (len > 1 && name[len - 1] == '/')
			len--;
		return !strncmp(path, name, len) && (len == 1 || !path[len] || path[len] == '/');
	}
	while (*path) {
		path += *path == '/';
		len = strcspn(path, "/");
		if (len && is_component(path, len, name))
			return true;
		path += len;
	}
	return false;
}

void md_sample_owner_unit_of(const char *path, char *unit, size_t size)
{
	const char *end = path + strlen(path), *part = end;
	size_t len;

	while (part > path) {
		const char *stop = part;

		while (part > path && part[-1] != '/')
			part--;
		len = (size_t)(stop - part);
		if (ends_in(part, len, ".service") || ends_in(part, len, ".scope")) {
			snprintf(unit, size, "%.*s", (int)len, part);
			return;
		}
		part -= part > path;
	}
	/* Keep the end of a path that is too long: it is more specific. */
	len = (size_t)(end - path);
	snprintf(unit, size, "%s", len < size ? path : end - (size - 1));
}

/* ---- /proc ---------------------------------------------------------------------------------- */

/*
 * Reads the cgroup of the unified hierarchy, or systemd's of version 1 if that is "/". Return:
 * false: the process is gone.
 */
static bool read_cgroup(uint32_t tgid, char *path, size_t size)
{
	char name[64], *line = NULL;
	size_t room = 0;
	FILE *f;

	snprintf(name, sizeof(name), "/proc/%u/cgroup", tgid);
	f = fopen(name, "re");
	if (!f)
		return false;
	path[0] = 0;
	while (getline(&line, &room, f) > 0) {
		char *first = strchr(line, ':'), *second = first ? strchr(first + 1, ':') : NULL;
		bool unified = !strncmp(line, "0::", 3);

		if (!second)
			continue;
		second[1 + strcspn(second + 1, "\n")] = 0;
		if (unified || !strncmp(first, ":name=systemd:", 14))
			if (!path[0] || !strcmp(path, "/"))
				snprintf(path, size, "%s", second + 1);
	}
	free(line);
	fclose(f);
	return true;
}

/* Reads name and user. Return: false: the process is gone. */
static bool read_status(uint32_t tgid, struct process *process)
{
	char path[64], line[256];
	uint32_t uid;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%u/status", tgid);
	f = fopen(path, "re");
	if (!f)
		return false;
	while (fgets(line, sizeof(line), f)) {
		if (!strncmp(line, "Name:\t", 6)) {
			line[strcspn(line, "\n")] = 0;
			/* The kernel changes the names of worker threads all the time: cut them. */
			line[strncmp(line, "Name:\tkworker/", 14) ? strlen(line) : 13] = 0;
			snprintf(process->name, sizeof(process->name), "%.15s", line + 6);
		} else if (sscanf(line, "Uid:\t%*u\t%u", &uid) == 1) {
			process->uid = uid; /* the effective user */
			break;
		}
	}
	fclose(f);
	return true;
}

static bool is_selected(const struct md_sample_owner *owner, const struct process *process,
			const char *cgroup)
{
	const struct md_sample_selection *s = owner->selection;

	if (!s || process->by_pid)
		return true;
	for (size_t i = 0; i < s->nr_units; i++)
		if (md_sample_owner_is_unit(cgroup, s->units[i]))
			return true;
	for (size_t i = 0; i < s->nr_uids; i++)
		if (process->uid == s->uids[i])
			return true;
	return false;
}

/* ---- groups --------------------------------------------------------------------------------- */

static bool is_of(const struct mp_process *group, const struct process *process)
{
	return group->uid == process->uid && !strcmp(group->name, process->name) &&
	       !strcmp(group->unit, process->unit);
}

/* A linear search is enough: it runs once per program of a process. */
static void put_in_group(struct md_sample_owner *owner, struct process *process)
{
	struct mp_process *group;

	for (size_t i = 0; i < owner->nr_groups; i++) {
		if (is_of(&owner->groups[i], process)) {
			process->group = (uint32_t)i + 1;
			return;
		}
	}
	if (owner->nr_groups == owner->max_groups && owner->max_groups < GROUPS_MAX) {
		size_t max = owner->max_groups ? 2 * owner->max_groups : 64;

		if (!mp_resize(owner->groups, max))
			owner->max_groups = max;
	}
	if (owner->nr_groups == owner->max_groups) {
		process->group = 0;
		return;
	}
	group = &owner->groups[owner->nr_groups++];
	*group = (struct mp_process){.uid = process->uid};
	memcpy(group->name, process->name, sizeof(group->name));
	memcpy(group->unit, process->unit, sizeof(group->unit));
	process->group = (uint32_t)owner->nr_groups;
}

/* Finds names at the first samples of a program. */
static void look_up(struct md_sample_owner *owner, struct process *process,
		    const struct morph_task *task)
{
	const char *program;
	char cgroup[PATH_MAX] = "";

	if (!process->tgid) {
		snprintf(process->name, sizeof(process->name), "(idle)");
		process->wanted = !owner->selection;
	} else if (owner->is_live && read_status(process->tgid, process)) {
		if (read_cgroup(process->tgid, cgroup, sizeof(cgroup)))
			md_sample_owner_unit_of(cgroup, process->unit, sizeof(process->unit));
		process->wanted = is_selected(owner, process, cgroup);
	} else {
		/* Gone: unit, user and selection were copied from the parent. */
		program = owner->program ? owner->program(owner->arg, task) : NULL;
		if (program)
			snprintf(process->name, sizeof(process->name), "%.15s", program);
		process->wanted |= is_selected(owner, process, "");
	}
	put_in_group(owner, process);
}

/* ---- processes ------------------------------------------------------------------------------ */

static struct process *find(const struct md_sample_owner *owner, uint32_t tgid)
{
	uint64_t at;

	return tgid != UINT32_MAX && md_pidmap_get(&owner->index, tgid + 1, &at)
		       ? &owner->processes[at]
		       : NULL;
}

/* Return: NULL: no memory, or too many. */
static struct process *find_or_add(struct md_sample_owner *owner, uint32_t tgid)
{
	struct process *process = find(owner, tgid);

	if (process)
		return process;
	if (owner->nr_processes == owner->max_processes) {
		size_t max = owner->max_processes ? 2 * owner->max_processes : 256;

		if (max > PROCESSES_MAX || mp_resize(owner->processes, max))
			return NULL;
		owner->max_processes = max;
		owner->last = NULL;
	}
	if (md_pidmap_put(&owner->index, tgid + 1, owner->nr_processes))
		return NULL;
	process = &owner->processes[owner->nr_processes++];
	*process = (struct process){.tgid = tgid, .uid = MP_UID_UNKNOWN};
	return process;
}

static void take_exec(struct md_sample_owner *owner, uint32_t tgid)
{
	struct process *process = find(owner, tgid);

	if (process)
		process->group = 0;
}

static void take_fork(struct md_sample_owner *owner, const struct morph_fork *fork)
{
	struct process *child, *parent;

	if (fork->task.tgid == fork->parent_tgid || fork->task.tgid == UINT32_MAX)
		return; /* a thread */
	child = find_or_add(owner, fork->task.tgid);
	parent = find(owner, fork->parent_tgid);
	if (!child)
		return;
	*child = (struct process){.tgid = fork->task.tgid, .uid = MP_UID_UNKNOWN};
	if (!parent)
		return;
	child->uid = parent->uid;
	child->by_pid = parent->by_pid;
	child->wanted = parent->wanted;
	memcpy(child->name, parent->name, sizeof(child->name));
	memcpy(child->unit, parent->unit, sizeof(child->unit));
}

static void drop(struct md_sample_owner *owner, struct process *process)
{
	struct process *last = &owner->processes[--owner->nr_processes];

	md_pidmap_remove(&owner->index, process->tgid + 1);
	owner->last = NULL;
	if (process == last)
		return;
	md_pidmap_remove(&owner->index, last->tgid + 1);
	*process = *last;
	/* Cannot fail: two slots have just become free. */
	md_pidmap_put(&owner->index, process->tgid + 1, (uint64_t)(process - owner->processes));
}

/* Most remembered processes have exited long ago. */
static void drop_ended(struct md_sample_owner *owner)
{
	size_t i = owner->nr_processes;

	while (i--)
		if (kill((pid_t)owner->processes[i].tgid, 0) && errno == ESRCH)
			drop(owner, &owner->processes[i]);
}

static bool take_samples(struct md_sample_owner *owner, const struct morph_task *task, uint32_t nr)
{
	struct process *process = owner->last;
	uint32_t tgid = task->tgid;

	if (tgid == UINT32_MAX)
		return !owner->selection; /* perf's id of an exited process */
	if (!process || owner->last_tgid != tgid) {
		process = find_or_add(owner, tgid);
		if (!process) {
			drop_ended(owner);
			process = find_or_add(owner, tgid);
		}
		if (!process)
			return !owner->selection;
		owner->last = process;
		owner->last_tgid = tgid;
	}
	if (!process->group)
		look_up(owner, process, task);
	if (process->group && process->wanted)
		owner->groups[process->group - 1].nr += nr;
	return process->wanted;
}

bool md_sample_owner_record(struct md_sample_owner *owner, const struct morph_record *record)
{
	const struct morph_task *task = (const void *)record;
	const struct process *process;

	switch (record->type) {
	case MORPH_REC_SAMPLES:
		return take_samples(owner, task, md_samples_nr((const void *)record));
	case MORPH_REC_BRANCHES:
	case MORPH_REC_STACK:
	case MORPH_REC_REGISTERS:
		process = owner->selection ? find(owner, task->tgid) : NULL;
		return !owner->selection || (process && process->wanted);
	/* a new program belongs to another group */
	case MORPH_REC_EXEC: take_exec(owner, task->tgid); return true;
	case MORPH_REC_FORK: take_fork(owner, (const void *)record); return true;
	default: return true;
	}
}

/* ---- results -------------------------------------------------------------------------------- */

size_t md_sample_owner_list(struct md_sample_owner *owner, const struct mp_process **out)
{
	*out = owner->groups;
	return owner->nr_groups;
}

void md_sample_owner_clear(struct md_sample_owner *owner)
{
	size_t i;

	for (i = 0; i < owner->nr_groups; i++)
		owner->groups[i].nr = 0;
	if (owner->nr_groups < GROUPS_MAX / 2)
		return;
	/* Forget old groups. Processes that still run are looked up again. */
	owner->nr_groups = 0;
	for (i = 0; i < owner->nr_processes; i++)
		owner->processes[i].group = 0;
}

bool md_sample_owner_any_alive(const struct md_sample_owner *owner)
{
	size_t i;

	for (i = 0; i < owner->nr_processes; i++)
		if (owner->processes[i].by_pid &&
		    (!kill((pid_t)owner->processes[i].tgid, 0) || errno == EPERM))
			return true;
	return false;
}

static int select_pids(struct md_sample_owner *owner)
{
	const struct md_sample_selection *s = owner->selection;
	struct dirent *entry;
	DIR *dir;
	int ret = 0;

	dir = opendir("/proc");
	if (!dir)
		return -errno;
	while (!ret && (entry = readdir(dir))) {
		pid_t pid = isdigit((unsigned char)entry->d_name[0]) ? atoi(entry->d_name) : 0;
		struct process *process;
		size_t i;

		for (i = 0; pid && i < s->nr_pids; i++)
			if (md_proc_descends_from(pid, s->pids[i]))
				break;
		if (!pid || i == s->nr_pids)
			continue;
		process = find_or_add(owner, (uint32_t)pid);
		if (process)
			process->by_pid = process->wanted = true;
		else
			ret = -ENOMEM;
	}
	closedir(dir);
	return ret;
}

struct md_sample_owner *md_sample_owner_new(bool is_live,
					    const struct md_sample_selection *selection,
					    md_sample_owner_program *program, void *arg)
{
	struct md_sample_owner *owner = calloc(1, sizeof(*owner));

	if (!owner)
		return NULL;
	owner->is_live = is_live;
	owner->selection = selection;
	owner->program = program;
	owner->arg = arg;
	if (selection && selection->nr_pids && select_pids(owner)) {
		md_sample_owner_free(owner);
		return NULL;
	}
	return owner;
}

void md_sample_owner_free(struct md_sample_owner *owner)
{
	if (!owner)
		return;
	md_pidmap_fini(&owner->index);
	free(owner->processes);
	free(owner->groups);
	free(owner);
}
