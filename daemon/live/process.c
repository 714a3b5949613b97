// SPDX-License-Identifier: Apache-2.0
/* process - reads /proc; see process.h. */
#include "daemon/live/process.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "libprof/base/grow.h"
#include "libprof/base/search.h"
#include "libprof/elf/mappings.h"

/* ---- mappings ----------------------------------------------------------------------------------- */

dev_t md_mapping_device(const struct md_mapping *m)
{
	return makedev(m->dev_major, m->dev_minor);
}

static int add_mapping(struct md_process *p, size_t *room, const struct mp_mapping *map)
{
	struct md_mapping m = {
		.start = map->start,
		.end = map->end,
		.off = map->off,
		.ino = map->ino,
		.dev_major = map->dev_major,
		.dev_minor = map->dev_minor,
		.read = map->rights[0] == 'r',
		.write = map->rights[1] == 'w',
		.exec = map->rights[2] == 'x',
		.shared = map->rights[3] == 's',
		.path = strdup(map->path),
	};

	if (!m.path || mp_grow(p->maps, *room, p->nr_maps + 1)) {
		free(m.path);
		return -ENOMEM;
	}
	p->maps[p->nr_maps++] = m;
	return 0;
}

static void free_maps(struct md_process *p)
{
	for (size_t i = 0; i < p->nr_maps; i++)
		free(p->maps[i].path);
	free(p->maps);
	p->maps = NULL;
	p->nr_maps = 0;
}

static int compare_file(const void *a, const void *b)
{
	const struct md_mapping *x = *(const struct md_mapping *const *)a,
				*y = *(const struct md_mapping *const *)b;

	if (x->ino != y->ino)
		return x->ino < y->ino ? -1 : 1;
	if (x->dev_major != y->dev_major)
		return x->dev_major < y->dev_major ? -1 : 1;
	if (x->dev_minor != y->dev_minor)
		return x->dev_minor < y->dev_minor ? -1 : 1;
	return (x > y) - (x < y);
}

bool md_mapping_same_file(const struct md_mapping *a, const struct md_mapping *b)
{
	return a->ino == b->ino && a->dev_major == b->dev_major && a->dev_minor == b->dev_minor;
}

/* Finds the mappings of the same files. */
static int join_files(struct md_process *p)
{
	struct md_mapping **list = malloc((p->nr_maps + 1) * sizeof(struct md_mapping *));

	if (!list)
		return -ENOMEM;
	for (size_t i = 0; i < p->nr_maps; i++)
		list[i] = &p->maps[i];
	qsort(list, p->nr_maps, sizeof(*list), compare_file);
	for (size_t i = 0, end; i < p->nr_maps; i = end) {
		bool begun = false, code = false;

		for (end = i; end < p->nr_maps && md_mapping_same_file(list[i], list[end]); end++)
			begun |= !list[end]->off;
		for (size_t k = i; k < end; k++) {
			list[k]->begun = begun;
			list[k]->again = code;
			code |= list[k]->exec;
		}
	}
	free(list);
	return 0;
}

int md_process_read_maps(struct md_process *p, struct mp_err *err)
{
	struct mp_mappings maps;
	struct mp_mapping map;
	size_t room = 0;
	int r, added = 0;

	free_maps(p);
	r = mp_mappings_open(&maps, p->pid);
	if (r)
		return mp_err_set(err, r == -ENOENT ? ESRCH : -r, "process %d: %s", (int)p->pid,
				  r == -ENOENT ? "there is none" : strerror(-r));
	do {
		r = mp_mappings_next(&maps, &map);
		if (r > 0)
			added = add_mapping(p, &room, &map);
	} while (r > 0 && !added);
	mp_mappings_close(&maps);
	if (r >= 0)
		r = added ? added : join_files(p);
	if (r)
		return mp_err_set(err, -r, "process %d: its mappings: %s", (int)p->pid,
				  strerror(-r));
	if (!p->nr_maps)
		return mp_err_set(err, ESRCH, "process %d: has no memory of its own", (int)p->pid);
	return 0;
}

int md_process_open(pid_t pid, struct md_process *out, struct mp_err *err)
{
	*out = (struct md_process){.pid = pid, .start_time = md_process_start_time(pid)};
	if (md_process_goes_on_alone(pid))
		return mp_err_set(err, EPERM, "process %d: its first thread has ended", (int)pid);
	return md_process_read_maps(out, err);
}

void md_process_close(struct md_process *p)
{
	free_maps(p);
}

bool md_mapping_is_libc(const struct md_mapping *m)
{
	const char *slash = strrchr(m->path, '/');

	return m->exec && slash && !strcmp(slash, "/libc.so.6");
}

const struct md_mapping *md_process_mapping(const struct md_process *p, uint64_t address)
{
	size_t at = mp_search(i, 0, p->nr_maps, p->maps[i].end <= address);

	return at < p->nr_maps && p->maps[at].start <= address ? &p->maps[at] : NULL;
}

static bool is_code_of(const struct md_mapping *m, const struct stat *st, const char *full)
{
	size_t len = full ? strlen(full) : 0;

	if (!m->exec)
		return false;
	if (st->st_ino && m->ino == st->st_ino && md_mapping_device(m) == st->st_dev)
		return true;
	return len && !strncmp(m->path, full, len) && !strcmp(m->path + len, " (deleted)");
}

const struct md_mapping *md_process_find_file(const struct md_process *p, const struct stat *st,
					      const char *full)
{
	for (size_t i = 0; i < p->nr_maps; i++)
		if (is_code_of(&p->maps[i], st, full))
			return &p->maps[i];
	return NULL;
}

static bool is_file_of(int fd, const struct md_mapping *m)
{
	struct stat st;

	return !fstat(fd, &st) && S_ISREG(st.st_mode) && st.st_ino == m->ino &&
	       major(st.st_dev) == m->dev_major && minor(st.st_dev) == m->dev_minor;
}

int md_process_open_file(const struct md_process *p, const struct md_mapping *m, struct mp_err *err)
{
	char names[2][96];
	int fd;

	/* The kernel's own link to the mapped file; only root may use it. Its owner may hold a lease, for which others wait. */
	snprintf(names[0], sizeof(names[0]), "/proc/%d/map_files/%" PRIx64 "-%" PRIx64, (int)p->pid,
		 m->start, m->end);
	fd = open(names[0], O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd >= 0)
		return fd;
	snprintf(names[1], sizeof(names[1]), "/proc/%d/exe", (int)p->pid);
	for (int i = 0; i < 2; i++) {
		fd = open(i ? names[1] : m->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
		if (fd < 0)
			continue;
		if (is_file_of(fd, m))
			return fd;
		close(fd);
	}
	return mp_err_set(err, EPERM,
			  "process %d: the file that it runs is no longer at %s, or another one is",
			  (int)p->pid, m->path);
}

/* ---- /proc/PID/stat and status ------------------------------------------------------------------ */

static bool read_text(pid_t pid, const char *file, char *buf, size_t size)
{
	char name[96];
	ssize_t n;
	int fd;

	snprintf(name, sizeof(name), "/proc/%d/%s", (int)pid, file);
	fd = open(name, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	n = read(fd, buf, size - 1);
	close(fd);
	if (n < 0)
		return false;
	buf[n] = '\0';
	return true;
}

/* Returns the text behind the name of the process. The name may hold any character, also ')' and spaces. */
static const char *behind_name(const char *stat)
{
	const char *p = strrchr(stat, ')');

	return p && p[1] == ' ' ? p + 2 : NULL;
}

uint64_t md_process_start_time(pid_t pid)
{
	char buf[2048];
	const char *p = read_text(pid, "stat", buf, sizeof(buf)) ? behind_name(buf) : NULL;
	uint64_t time = 0;

	/* Field 22; p is at field 3. */
	for (int i = 3; p && i < 22; i++) {
		p = strchr(p, ' ');
		p = p ? p + 1 : NULL;
	}
	if (p && sscanf(p, "%" SCNu64, &time) != 1)
		return 0;
	return time;
}

bool md_process_status(pid_t pid, const char *key, char *buf, size_t size)
{
	char text[8192], *line, *next;
	size_t len = strlen(key);

	if (!read_text(pid, "status", text, sizeof(text)))
		return false;
	for (line = text; line; line = next) {
		next = strchr(line, '\n');
		if (next)
			*next++ = '\0';
		if (!strncmp(line, key, len) && line[len] == ':') {
			snprintf(buf, size, "%s", line + len + 1 + strspn(line + len + 1, " \t"));
			return true;
		}
	}
	return false;
}

char md_process_state(pid_t tid)
{
	char state[64];

	return md_process_status(tid, "State", state, sizeof(state)) ? *state : '\0';
}

bool md_process_goes_on_alone(pid_t pid)
{
	char threads[64];

	return md_process_state(pid) == 'Z' &&
	       md_process_status(pid, "Threads", threads, sizeof(threads)) && atoi(threads) > 1;
}

int md_process_threads(pid_t pid, pid_t **out, size_t *nr)
{
	size_t room = 0;
	struct dirent *e;
	char name[64];
	DIR *dir;

	*out = NULL;
	*nr = 0;
	snprintf(name, sizeof(name), "/proc/%d/task", (int)pid);
	dir = opendir(name);
	if (!dir)
		return -ESRCH;
	while ((e = readdir(dir))) {
		if (e->d_name[0] < '1' || e->d_name[0] > '9')
			continue;
		if (mp_grow(*out, room, *nr + 1)) {
			closedir(dir);
			free(*out);
			*out = NULL;
			return -ENOMEM;
		}
		(*out)[(*nr)++] = atoi(e->d_name);
	}
	closedir(dir);
	return *nr ? 0 : -ESRCH;
}
