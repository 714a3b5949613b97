// SPDX-License-Identifier: Apache-2.0
/* who - name, unit and user of processes; see who.h. */
#include "daemon/attribute/who.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/source/pidmap.h"
#include "daemon/source/proc_scan.h"

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

struct md_who {
	bool is_live;
	const struct md_who_selection *selection;
	md_who_program *program;
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

bool md_who_is_unit(const char *path, const char *name)
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

void md_who_unit_of(const char *path, char *unit, size_t size)
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

static bool is_selected(const struct md_who *who, const struct process *process, const char *cgroup)
{
	const struct md_who_selection *s = who->selection;

	if (!s || process->by_pid)
		return true;
	for (size_t i = 0; i < s->nr_units; i++)
		if (md_who_is_unit(cgroup, s->units[i]))
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
static void put_in_group(struct md_who *who, struct process *process)
{
	struct mp_process *group;

	for (size_t i = 0; i < who->nr_groups; i++) {
		if (is_of(&who->groups[i], process)) {
			process->group = (uint32_t)i + 1;
			return;
		}
	}
	if (who->nr_groups == who->max_groups && who->max_groups < GROUPS_MAX) {
		size_t max = who->max_groups ? 2 * who->max_groups : 64;
		void *bigger = reallocarray(who->groups, max, sizeof(*who->groups));

		if (bigger) {
			who->groups = bigger;
			who->max_groups = max;
		}
	}
	if (who->nr_groups == who->max_groups) {
		process->group = 0;
		return;
	}
	group = &who->groups[who->nr_groups++];
	*group = (struct mp_process){.uid = process->uid};
	memcpy(group->name, process->name, sizeof(group->name));
	memcpy(group->unit, process->unit, sizeof(group->unit));
	process->group = (uint32_t)who->nr_groups;
}

/* Finds names at the first samples of a program. */
static void look_up(struct md_who *who, struct process *process, const struct morph_task *task)
{
	const char *program;
	char cgroup[4096] = "";

	if (!process->tgid) {
		snprintf(process->name, sizeof(process->name), "(idle)");
		process->wanted = !who->selection;
	} else if (who->is_live && read_status(process->tgid, process)) {
		if (read_cgroup(process->tgid, cgroup, sizeof(cgroup)))
			md_who_unit_of(cgroup, process->unit, sizeof(process->unit));
		process->wanted = is_selected(who, process, cgroup);
	} else {
		/* Gone: unit, user and selection were copied from the parent. */
		program = who->program ? who->program(who->arg, task) : NULL;
		if (program)
			snprintf(process->name, sizeof(process->name), "%.15s", program);
		process->wanted |= is_selected(who, process, "");
	}
	put_in_group(who, process);
}

/* ---- processes ------------------------------------------------------------------------------ */

static struct process *find(const struct md_who *who, uint32_t tgid)
{
	uint64_t at;

	return tgid != UINT32_MAX && md_pidmap_get(&who->index, tgid + 1, &at) ? &who->processes[at]
									       : NULL;
}

/* Return: NULL: no memory, or too many. */
static struct process *find_or_add(struct md_who *who, uint32_t tgid)
{
	struct process *process = find(who, tgid);

	if (process)
		return process;
	if (who->nr_processes == who->max_processes) {
		size_t max = who->max_processes ? 2 * who->max_processes : 256;
		void *bigger;

		if (max > PROCESSES_MAX)
			return NULL;
		bigger = reallocarray(who->processes, max, sizeof(*who->processes));
		if (!bigger)
			return NULL;
		who->processes = bigger;
		who->max_processes = max;
		who->last = NULL;
	}
	if (md_pidmap_put(&who->index, tgid + 1, who->nr_processes))
		return NULL;
	process = &who->processes[who->nr_processes++];
	*process = (struct process){.tgid = tgid, .uid = MP_UID_UNKNOWN};
	return process;
}

static void take_exec(struct md_who *who, uint32_t tgid)
{
	struct process *process = find(who, tgid);

	if (process)
		process->group = 0;
}

static void take_fork(struct md_who *who, const struct morph_fork *fork)
{
	struct process *child, *parent;

	if (fork->task.tgid == fork->parent_tgid || fork->task.tgid == UINT32_MAX)
		return; /* a thread */
	child = find_or_add(who, fork->task.tgid);
	parent = find(who, fork->parent_tgid);
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

static void drop(struct md_who *who, struct process *process)
{
	struct process *last = &who->processes[--who->nr_processes];

	md_pidmap_remove(&who->index, process->tgid + 1);
	who->last = NULL;
	if (process == last)
		return;
	md_pidmap_remove(&who->index, last->tgid + 1);
	*process = *last;
	/* Cannot fail: two slots have just become free. */
	md_pidmap_put(&who->index, process->tgid + 1, (uint64_t)(process - who->processes));
}

/* Most remembered processes have exited long ago. */
static void drop_ended(struct md_who *who)
{
	size_t i = who->nr_processes;

	while (i--)
		if (kill((pid_t)who->processes[i].tgid, 0) && errno == ESRCH)
			drop(who, &who->processes[i]);
}

static bool take_samples(struct md_who *who, const struct morph_task *task, uint32_t nr)
{
	struct process *process = who->last;
	uint32_t tgid = task->tgid;

	if (tgid == UINT32_MAX)
		return !who->selection; /* perf's id of an exited process */
	if (!process || who->last_tgid != tgid) {
		process = find_or_add(who, tgid);
		if (!process) {
			drop_ended(who);
			process = find_or_add(who, tgid);
		}
		if (!process)
			return !who->selection;
		who->last = process;
		who->last_tgid = tgid;
	}
	if (!process->group)
		look_up(who, process, task);
	if (process->group && process->wanted)
		who->groups[process->group - 1].nr += nr;
	return process->wanted;
}

bool md_who_record(struct md_who *who, const struct morph_record *record)
{
	const struct morph_task *task = (const void *)record;
	const struct process *process;

	switch (record->type) {
	case MORPH_REC_SAMPLES: return take_samples(who, task, md_samples_nr((const void *)record));
	case MORPH_REC_BRANCHES:
	case MORPH_REC_STACK:
	case MORPH_REC_REGISTERS:
		process = who->selection ? find(who, task->tgid) : NULL;
		return !who->selection || (process && process->wanted);
	/* a new program belongs to another group */
	case MORPH_REC_EXEC: take_exec(who, task->tgid); return true;
	case MORPH_REC_FORK: take_fork(who, (const void *)record); return true;
	default: return true;
	}
}

/* ---- results -------------------------------------------------------------------------------- */

size_t md_who_list(struct md_who *who, const struct mp_process **out)
{
	*out = who->groups;
	return who->nr_groups;
}

void md_who_clear(struct md_who *who)
{
	size_t i;

	for (i = 0; i < who->nr_groups; i++)
		who->groups[i].nr = 0;
	if (who->nr_groups < GROUPS_MAX / 2)
		return;
	/* Forget old groups. Processes that still run are looked up again. */
	who->nr_groups = 0;
	for (i = 0; i < who->nr_processes; i++)
		who->processes[i].group = 0;
}

bool md_who_any_alive(const struct md_who *who)
{
	size_t i;

	for (i = 0; i < who->nr_processes; i++)
		if (who->processes[i].by_pid &&
		    (!kill((pid_t)who->processes[i].tgid, 0) || errno == EPERM))
			return true;
	return false;
}

static int select_pids(struct md_who *who)
{
	const struct md_who_selection *s = who->selection;
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
		process = find_or_add(who, (uint32_t)pid);
		if (process)
			process->by_pid = process->wanted = true;
		else
			ret = -ENOMEM;
	}
	closedir(dir);
	return ret;
}

struct md_who *md_who_new(bool is_live, const struct md_who_selection *selection,
			  md_who_program *program, void *arg)
{
	struct md_who *who = calloc(1, sizeof(*who));

	if (!who)
		return NULL;
	who->is_live = is_live;
	who->selection = selection;
	who->program = program;
	who->arg = arg;
	if (selection && selection->nr_pids && select_pids(who)) {
		md_who_free(who);
		return NULL;
	}
	return who;
}

void md_who_free(struct md_who *who)
{
	if (!who)
		return;
	md_pidmap_fini(&who->index);
	free(who->processes);
	free(who->groups);
	free(who);
}
