// SPDX-License-Identifier: Apache-2.0
/* targets - finds processes in /proc; see targets.h. */
#include "daemon/live/targets.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/live/process.h"
#include "daemon/policy/policy.h"
#include "libprof/base/grow.h"
#include "libprof/note/map.h"

struct finder {
	const char *unit; /* or NULL */
	char *path;	  /* of the program or library, without symbolic links; or NULL */
	uint64_t dev;	  /* of its file system */
	struct stat program;
	bool any_program, has_program;
	bool library; /* processes that have loaded it */
	int why;      /* errno, if there is no file at the path */
	struct md_targets *out;
	size_t room;
	const struct finder *of; /* only processes of this program; NULL: any */
};

/*
 * Did the program of the process, the file @st, lie at the path, before another file got this name? A container may have
 * the same path on a file system of its own.
 */
static bool ran_there(const struct finder *f, const char *name, const struct stat *st)
{
	char exe[PATH_MAX + 16];
	size_t len = f->path ? strlen(f->path) : 0;
	ssize_t n = len ? readlink(name, exe, sizeof(exe) - 1) : 0;

	exe[n > 0 ? n : 0] = '\0';
	return len && st->st_dev == f->dev && !strncmp(exe, f->path, len) &&
	       !strcmp(exe + len, " (deleted)");
}

/* The file system of the directory of @path, or of the nearest one above it that is still there; 0: there is none. */
static uint64_t device_of(const char *path)
{
	char *dir = strdup(path), *slash;
	struct stat st = {0};
	bool found = false;

	while (!found && dir && (slash = strrchr(dir, '/')) && dir[1]) {
		slash[slash == dir] = '\0';
		found = !stat(dir, &st);
	}
	if (!found)
		st.st_dev = 0;
	free(dir);
	return st.st_dev;
}

static bool is_file(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

/* The kernel's link to the program of the process. */
struct exe {
	char name[64];
};

static struct exe exe_of(pid_t pid)
{
	struct exe exe;
	struct stat st;
	pid_t *threads = NULL;
	size_t nr = 0;

	snprintf(exe.name, sizeof(exe.name), "/proc/%d/exe", (int)pid);
	/* A first thread that has ended has none. */
	if (stat(exe.name, &st) && md_process_goes_on_alone(pid))
		md_process_threads(pid, &threads, &nr);
	for (size_t i = 0; i < nr && stat(exe.name, &st); i++)
		snprintf(exe.name, sizeof(exe.name), "/proc/%d/task/%d/exe", (int)pid,
			 (int)threads[i]);
	free(threads);
	return exe;
}

/* A thread whose /proc shows the mappings: not a first thread that has ended. */
static pid_t shown_by(pid_t pid)
{
	pid_t *threads = NULL, tid = pid;
	size_t nr = 0;

	if (md_process_goes_on_alone(pid))
		md_process_threads(pid, &threads, &nr);
	for (size_t i = 0; i < nr; i++)
		if (threads[i] != pid)
			tid = threads[i];
	free(threads);
	return tid;
}

/*
 * The code of a library in the process, whose mappings are read into @p. NULL: none. Ownership: md_process_close(), in
 * any case.
 */
static const struct md_mapping *loaded_by(const struct finder *f, pid_t pid, struct md_process *p)
{
	const struct md_mapping *m = NULL;
	struct mp_err quiet;

	if (!md_process_open(shown_by(pid), p, &quiet))
		m = md_process_find_file(p, &f->program, f->path);
	/* A container may have the same path on a file system of its own. */
	return m && (md_mapping_device(m) == f->dev || md_mapping_device(m) == f->program.st_dev)
		       ? m
		       : NULL;
}

static bool runs(const struct finder *f, pid_t pid)
{
	struct exe exe = exe_of(pid);
	struct stat st;

	if (f->library) {
		struct md_process p;
		bool is = loaded_by(f, pid, &p);

		md_process_close(&p);
		return is;
	}
	if (stat(exe.name, &st))
		return false;
	return f->any_program || (f->has_program && is_file(&st, &f->program)) ||
	       ran_there(f, exe.name, &st);
}

/* Is @group, a part of a control group's path, a slice, or the manager of this user's units? */
static bool may_be_above(const char *group, size_t len)
{
	char manager[32];
	int n = snprintf(manager, sizeof(manager), "user@%u.service", geteuid());

	return (len > 6 && !memcmp(group + len - 6, ".slice", 6)) ||
	       (geteuid() && len == (size_t)n && !memcmp(group, manager, len));
}

bool md_unit_holds(const char *unit, const char *line)
{
	const char *at = strchr(line, '/');
	size_t len;

	for (; at && *at == '/'; at += len) {
		at++;
		len = strcspn(at, "/\n");
		if (len == strlen(unit) && !memcmp(at, unit, len))
			return true;
		if (!may_be_above(at, len))
			return false;
	}
	return false;
}

static bool is_in_unit(const struct finder *f, pid_t pid)
{
	char name[64], *line = NULL;
	size_t room = 0;
	bool is = false;
	FILE *in;

	snprintf(name, sizeof(name), "/proc/%d/cgroup", (int)pid);
	in = fopen(name, "re");
	while (in && !is && getline(&line, &room, in) > 0)
		is = md_unit_holds(f->unit, line);
	free(line);
	if (in)
		fclose(in);
	return is;
}

static int add(struct finder *f, pid_t pid)
{
	if (mp_grow(f->out->list, f->room, f->out->nr + 1))
		return -ENOMEM;
	f->out->list[f->out->nr++] = (struct md_target){pid, md_process_start_time(pid)};
	return 0;
}

static int compare_start(const void *a, const void *b)
{
	const struct md_target *x = a, *y = b;

	return x->start_time != y->start_time ? (x->start_time < y->start_time ? -1 : 1)
					      : (x->pid > y->pid) - (x->pid < y->pid);
}

static int search(struct finder *f)
{
	struct dirent *e;
	DIR *dir = opendir("/proc");
	int r = dir ? 0 : -errno;

	while (!r && (e = readdir(dir))) {
		pid_t pid = (pid_t)atoi(e->d_name);

		/* Anybody may have loaded a library: whoever does not matter is not asked for mappings. */
		if (pid <= 0 || pid == getpid() || (f->of && !runs(f->of, pid)) || !runs(f, pid) ||
		    (f->unit && !is_in_unit(f, pid)))
			continue;
		r = add(f, pid);
	}
	if (dir)
		closedir(dir);
	/* A parent has begun before its children. */
	if (f->out->nr)
		qsort(f->out->list, f->out->nr, sizeof(*f->out->list), compare_start);
	return r;
}

/* Drops the processes of a unit that run another program than its first one, such as a script's. */
static void keep_first_program(struct finder *f)
{
	struct md_targets *out = f->out;
	size_t nr = 0;

	if (!out->nr || stat(exe_of(out->list[0].pid).name, &f->program))
		return;
	f->any_program = false;
	f->has_program = true;
	for (size_t i = 0; i < out->nr; i++)
		if (runs(f, out->list[i].pid))
			out->list[nr++] = out->list[i];
	out->nr = nr;
}

/* @name: the path of a program or a library. Return: 0; -ENOMEM with a message. Ownership: free(@f->path). */
static int look_for(struct finder *f, const char *name, struct mp_err *err)
{
	f->any_program = false;
	f->has_program = !stat(name, &f->program);
	if (!f->has_program) {
		f->why = errno;
		f->program = (struct stat){0};
	}
	f->path = realpath(name, NULL);
	/* Its package was removed, perhaps. */
	if (!f->path)
		f->path = strdup(name);
	if (!f->path)
		return mp_err_code(err, ENOMEM);
	f->dev = device_of(f->path);
	f->library = md_policy_is_library(f->path);
	return 0;
}

static int look_for_program(struct finder *f, const char *name, struct mp_err *err)
{
	int r;

	*f = (struct finder){0};
	r = look_for(f, name, err);
	f->library = false;
	return r;
}

/* The processes of a program, a library or a unit, or all. Return: as md_targets_find(). */
static int find(const char *name, struct finder *f, struct mp_err *err)
{
	const bool is_path = name && strchr(name, '/');
	int r = is_path ? look_for(f, name, err) : 0;

	if (r)
		return r;
	f->out->searched = true;
	f->out->library = f->library;
	f->unit = is_path ? NULL : name;
	r = search(f);
	if (r)
		return mp_err_set(err, -r, "/proc: %s", strerror(-r));
	if (f->unit)
		keep_first_program(f);
	if (!name || f->out->nr)
		return 0;
	return mp_err_set(err, f->why ? f->why : ESRCH, "%s: %s", name,
			  f->unit      ? "no process, and no unit of systemd with processes"
			  : f->why     ? strerror(f->why)
			  : f->of      ? "no process of this program has it"
			  : f->library ? "no process has loaded it"
				       : "no process runs it");
}

static int find_number(struct finder *f, const char *name, long pid, struct mp_err *err)
{
	if (pid <= 0 || pid > INT32_MAX)
		return mp_err_set(err, ESRCH, "process %s: there is none", name);
	return add(f, (pid_t)pid) ? mp_err_code(err, ENOMEM) : 0;
}

int md_targets_find(const char *name, const char *program, struct md_targets *out,
		    struct mp_err *err)
{
	struct finder f = {.out = out, .any_program = true}, of = {0};
	char *end;
	long pid;
	int r = 0;

	*out = (struct md_targets){0};
	/* A unit's program is that of its first process, whichever that is. */
	if (program && name && strchr(name, '/')) {
		r = look_for_program(&of, program, err);
		f.of = &of;
	}
	pid = name ? strtol(name, &end, 10) : 0;
	if (!r)
		r = name && *name && !*end ? find_number(&f, name, pid, err) : find(name, &f, err);
	free(f.path);
	free(of.path);
	return r || !program ? r : md_targets_keep_program(out, program, err);
}

/* ---- which of them ------------------------------------------------------------------------------ */

struct keeper {
	struct mp_id original; /* of the output */
	struct finder find;
	struct stat last; /* the file that was looked at last, and the answer */
	bool kept;
};

/* Is the version meant for processes that have the file @fd? Return: 0, 1, -errno. */
static int is_meant(const struct keeper *k, int fd, const struct stat *st, struct mp_err *err)
{
	struct mp_elf *elf = NULL;
	struct mp_id id;
	int r = mp_elf_open_fd(k->find.path, fd, MP_ELF_ID, &elf, err);

	if (r)
		return mp_err_is_failure(r) ? r : 0;
	if (!k->find.has_program || !is_file(st, &k->find.program)) {
		r = mp_id_equal(&elf->id, &k->original);
	} else {
		r = mp_map_read_original(elf, &id, err);
		if (!mp_err_is_failure(r))
			r = r || !mp_id_equal(&id, &k->original);
	}
	mp_elf_close(elf);
	return r;
}

/* Opens the program or the library that the process has. Return: a descriptor; -1: it has ended, or it has none. */
static int open_file(const struct finder *f, pid_t pid)
{
	const struct md_mapping *m;
	struct md_process p;
	struct mp_err quiet;
	int fd;

	if (!f->library)
		return open(exe_of(pid).name, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	m = loaded_by(f, pid, &p);
	fd = m ? md_process_open_file(&p, m, &quiet) : -1;
	md_process_close(&p);
	return fd < 0 ? -1 : fd;
}

static int keeps(struct keeper *k, pid_t pid, struct mp_err *err)
{
	struct stat st;
	int fd = open_file(&k->find, pid), r;

	if (fd < 0)
		return 0;
	if (fstat(fd, &st))
		r = mp_err_set(err, errno, "%s: %s", k->find.path, strerror(errno));
	else if (is_file(&st, &k->last))
		r = k->kept;
	else
		r = is_meant(k, fd, &st, err);
	close(fd);
	if (r >= 0) {
		k->kept = r;
		k->last = st;
	}
	return r;
}

int md_targets_keep(struct md_targets *targets, const char *path, const char *output,
		    struct mp_err *err)
{
	struct keeper k = {0};
	struct mp_elf *elf = NULL;
	size_t nr = 0;
	int r = mp_elf_open(output, MP_ELF_UNHASHED, &elf, err);

	if (!r)
		r = mp_map_read_original(elf, &k.original, err);
	mp_elf_close(elf);
	if (r == -ENOENT)
		return mp_err_set(err, EPERM, "%s: is no version that Morph wrote", output);
	if (r)
		return r;
	r = look_for(&k.find, path, err);
	for (size_t i = 0; r >= 0 && i < targets->nr; i++) {
		r = keeps(&k, targets->list[i].pid, err);
		if (r == 1)
			targets->list[nr++] = targets->list[i];
	}
	free(k.find.path);
	if (r < 0)
		return r;
	targets->nr = nr;
	return nr ? 0
		  : mp_err_set(err, ESRCH, "%s: no process runs the original of %s", path, output);
}

int md_targets_keep_program(struct md_targets *targets, const char *program, struct mp_err *err)
{
	struct finder f;
	size_t nr = 0;
	int r = look_for_program(&f, program, err);

	if (r)
		return r;
	for (size_t i = 0; i < targets->nr; i++)
		if (runs(&f, targets->list[i].pid))
			targets->list[nr++] = targets->list[i];
	free(f.path);
	targets->nr = nr;
	return nr ? 0 : mp_err_set(err, ESRCH, "%s: no process of these runs it", program);
}

struct md_target_program md_target_program(const struct md_target *target)
{
	struct md_target_program program;
	ssize_t n = readlink(exe_of(target->pid).name, program.path, sizeof(program.path) - 1);

	program.path[n > 0 ? n : 0] = '\0';
	return program;
}

bool md_target_has_ended(const struct md_target *target)
{
	char state = md_process_state(target->pid);

	return md_process_start_time(target->pid) != target->start_time || !state ||
	       (state == 'Z' && !md_process_goes_on_alone(target->pid));
}

void md_targets_free(struct md_targets *targets)
{
	free(targets->list);
	*targets = (struct md_targets){0};
}
