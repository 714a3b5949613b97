// SPDX-License-Identifier: Apache-2.0
/* audit_tree - finds the processes below another one in /proc. */
#include "editor/audit/server/audit_tree.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <time.h>
#include <unistd.h>

#include "libprof/base/grow.h"
#include "libprof/elf/mappings.h"

struct tree_process {
	pid_t pid, parent;
	char state;
	bool below; /* the root is an ancestor */
	/* clock ticks: of itself (user only), and of its children that ended */
	uint64_t user, children_user, children_system;
};

struct tree {
	struct tree_process *list;
	uint32_t nr, nr_alloc;
};

static void tree_fini(struct tree *tree)
{
	free(tree->list);
}

/* The fields behind the name, which may itself hold spaces and parentheses. */
static bool tree_read_stat(pid_t pid, struct tree_process *p)
{
	char path[64], text[1024], *name_end;
	FILE *in;
	size_t got;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	in = fopen(path, "re");
	if (!in)
		return false;
	got = fread(text, 1, sizeof(text) - 1, in);
	fclose(in);
	text[got] = 0;
	name_end = strrchr(text, ')');
	p->pid = pid;
	p->below = false;
	return name_end &&
	       sscanf(name_end + 1,
		      " %c %d %*s %*s %*s %*s %*s %*s %*s %*s %*s %" SCNu64 " %*s %" SCNu64
		      " %" SCNu64,
		      &p->state, &p->parent, &p->user, &p->children_user, &p->children_system) == 5;
}

static struct tree_process *tree_find(const struct tree *tree, pid_t pid)
{
	for (uint32_t i = 0; i < tree->nr; i++)
		if (tree->list[i].pid == pid)
			return &tree->list[i];
	return NULL;
}

/* Mark what lies below @root, and drop all other processes but @root itself. */
static void tree_prune(struct tree *tree, pid_t root)
{
	bool more = true;
	uint32_t kept = 0;

	while (more) {
		more = false;
		for (uint32_t i = 0; i < tree->nr; i++) {
			struct tree_process *p = &tree->list[i], *parent;

			if (p->below || p->pid == root)
				continue;
			parent = tree_find(tree, p->parent);
			p->below = p->parent == root || (parent && parent->below);
			more |= p->below;
		}
	}
	for (uint32_t i = 0; i < tree->nr; i++)
		if (tree->list[i].below || tree->list[i].pid == root)
			tree->list[kept++] = tree->list[i];
	tree->nr = kept;
}

static int tree_read(struct tree *tree, pid_t root)
{
	DIR *proc = opendir("/proc");
	struct dirent *entry;

	tree->nr = 0;
	if (!proc)
		return -errno;
	while ((entry = readdir(proc))) {
		if (!isdigit((unsigned char)entry->d_name[0]))
			continue;
		if (mp_grow(tree->list, tree->nr_alloc, tree->nr + 1)) {
			closedir(proc);
			return -ENOMEM;
		}
		tree->nr += tree_read_stat((pid_t)strtol(entry->d_name, NULL, 10),
					   &tree->list[tree->nr]);
	}
	closedir(proc);
	tree_prune(tree, root);
	return 0;
}

/* Did no process below the root begin or end between the two readings? */
static bool tree_same(const struct tree *a, const struct tree *b)
{
	if (a->nr != b->nr)
		return false;
	for (uint32_t i = 0; i < a->nr; i++) {
		const struct tree_process *x = &a->list[i], *y = tree_find(b, x->pid);

		if (!y || x->children_user != y->children_user ||
		    x->children_system != y->children_system)
			return false;
	}
	return true;
}

/* Does the process ignore SIGCHLD? Then the kernel adds the times of its children to nobody. */
static bool tree_ignores_children(pid_t pid)
{
	uint64_t ignored = 0;
	char path[64], line[256];
	FILE *in;

	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	in = fopen(path, "re");
	if (!in)
		return false;
	while (fgets(line, sizeof(line), in))
		if (sscanf(line, "SigIgn: %" SCNx64, &ignored) == 1)
			break;
	fclose(in);
	return ignored >> (SIGCHLD - 1) & 1;
}

/* CPU time of a whole process to the nanosecond, including its threads that ended. */
static uint64_t tree_clock_ns(pid_t pid)
{
	struct timespec ts;
	clockid_t clock;

	if (clock_getcpuclockid(pid, &clock) || clock_gettime(clock, &ts))
		return 0;
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

static void tree_sum(const struct tree *tree, struct me_cpu_time *time)
{
	uint64_t tick_ns = 1000000000 / (uint64_t)sysconf(_SC_CLK_TCK);

	memset(time, 0, sizeof(*time));
	for (uint32_t i = 0; i < tree->nr; i++) {
		const struct tree_process *p = &tree->list[i];

		time->cpu_ns += (p->children_user + p->children_system) * tick_ns;
		time->user_ns += p->children_user * tick_ns;
		if (p->below) { /* leaves out the root, which is the audit's supervisor */
			time->cpu_ns += tree_clock_ns(p->pid);
			time->user_ns += p->user * tick_ns;
		}
	}
}

int me_tree_cpu(pid_t root, struct me_cpu_time *time, struct mp_err *err)
{
	struct tree before = {0}, after = {0};
	int ret = 0;

	for (int tries = 0; tries < 1000; tries++) {
		ret = tree_read(&before, root);
		if (ret)
			break;
		tree_sum(&before, time);
		ret = tree_read(&after, root);
		if (ret || tree_same(&before, &after))
			break;
		ret = -EBUSY;
		usleep(1000);
	}
	for (uint32_t i = 0; !ret && i < before.nr; i++)
		if (before.list[i].below && tree_ignores_children(before.list[i].pid))
			ret = mp_err_set(
				err, ENOTSUP,
				"process %d of the server ignores SIGCHLD, so the kernel does "
				"not count its children: run the audit as root, in a cgroup, "
				"or use --metric=wall",
				before.list[i].pid);
	if (ret == -EBUSY)
		mp_err_set(err, EBUSY, "the server's processes end too fast to read their times");
	else if (ret && ret != -ENOTSUP)
		mp_err_set(err, -ret, "/proc: %s", strerror(-ret));
	tree_fini(&before);
	tree_fini(&after);
	return ret;
}

size_t me_tree_signal(pid_t root, int sig, bool all)
{
	struct tree tree = {0};
	size_t nr = 0;

	if (!tree_read(&tree, root))
		for (uint32_t i = 0; i < tree.nr; i++) {
			const struct tree_process *p = &tree.list[i];

			if (!p->below || p->state == 'Z' || (!all && p->parent != root))
				continue;
			nr += !kill(p->pid, sig);
		}
	tree_fini(&tree);
	return nr;
}

static bool tree_process_maps(pid_t pid, const struct stat *file)
{
	struct mp_mappings maps;
	struct mp_mapping map;
	bool found = false;

	if (!mp_mappings_open(&maps, pid))
		while (!found && mp_mappings_next(&maps, &map) > 0)
			found = map.ino == file->st_ino &&
				makedev(map.dev_major, map.dev_minor) == file->st_dev;
	mp_mappings_close(&maps);
	return found;
}

bool me_tree_maps(pid_t root, const struct stat *file)
{
	struct tree tree = {0};
	bool found = false;

	if (!tree_read(&tree, root))
		for (uint32_t i = 0; !found && i < tree.nr; i++)
			found = tree.list[i].below && tree_process_maps(tree.list[i].pid, file);
	tree_fini(&tree);
	return found;
}
