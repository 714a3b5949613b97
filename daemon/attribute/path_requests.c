// SPDX-License-Identifier: Apache-2.0
/* path_requests - a thread that makes requests and collects the answers; see path_requests.h. */
#include "daemon/attribute/path_requests.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "daemon/attribute/edges.h"
#include "libprof/base/clock.h"
#include "libprof/note/counts_file.h"
#include "libprof/note/polls.h"

#define HEADER MP_COUNTS_FILE_HEADER_BYTES

/*
 * A program that runs its own code answers within this time. A program that lives for
 * milliseconds answers a quarter of the requests in half of this time, and seven tenths in all
 * of it.
 */
#define PATIENCE_NS 10000

struct md_path_requests {
	struct md_path_requests_config config;
	pthread_t thread;
	pthread_mutex_t lock; /* protects the following members */
	bool ends;
	struct md_edges paths; /* from: block + 1; to: number */
	uint64_t hash;	       /* of the table that the paths belong to */
	uint64_t nr_paths, nr_lost;
	/* used by the thread only */
	int fd;		/* -1: there is no file yet */
	uint32_t asked; /* paths requested; 0: no request is open */
	uint32_t skip;	/* the first paths of a request that do not count */
	uint32_t turn;	/* position in the stride */
	uint32_t room;	/* most further paths that may be skipped */
	cpu_set_t cpus; /* CPUs where the thread may run */
	uint64_t seed;
	char remark[200];
};

static bool read_at(int fd, void *to, size_t size, off_t off)
{
	return pread(fd, to, size, off) == (ssize_t)size;
}

static bool write_at(int fd, const void *from, size_t size, off_t off)
{
	return pwrite(fd, from, size, off) == (ssize_t)size;
}

static bool set_left(int fd, int32_t left)
{
	return write_at(fd, &left, sizeof(left), HEADER + offsetof(struct mp_polls, left));
}

/* The program creates the file when it starts; it writes the header last. */
static void open_file(struct md_path_requests *p)
{
	static const struct mp_poll none[MP_POLLS_MAX + 1];
	struct mp_counts_file_header h;
	struct stat st;
	int fd = open(p->config.path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);

	if (fd < 0)
		return;
	if (!fstat(fd, &st) && S_ISREG(st.st_mode) &&
	    st.st_size == HEADER + (off_t)sizeof(struct mp_polls) &&
	    read_at(fd, &h, sizeof(h), 0) && !memcmp(h.magic, MP_COUNTS_FILE_MAGIC, 8) &&
	    h.version == MP_COUNTS_FILE_VERSION && h.counters_bytes == sizeof(struct mp_polls) &&
	    set_left(fd, 0) &&
	    write_at(fd, none, sizeof(none), HEADER + offsetof(struct mp_polls, polls))) {
		pthread_mutex_lock(&p->lock);
		p->hash = h.table_hash;
		pthread_mutex_unlock(&p->lock);
		p->fd = fd;
	} else {
		close(fd);
	}
}

/* Collects the polls above @left, as far as they are written; @left bytes are not answered yet. */
static void collect(struct md_path_requests *p, uint32_t left)
{
	struct mp_poll polls[MP_POLLS_MAX + 1] = {{0}};
	const off_t at = HEADER + offsetof(struct mp_polls, polls);
	const size_t size = (p->asked + 1) * sizeof(polls[0]);
	uint32_t i;

	if (!read_at(p->fd, polls, size, at))
		return;
	pthread_mutex_lock(&p->lock);
	for (i = left / sizeof(polls[0]) + 1; i + p->skip <= p->asked; i++) {
		if (!polls[i].block)
			continue;
		p->nr_paths++;
		if (md_edges_reserve(&p->paths, 1)) {
			p->nr_lost++;
			continue;
		}
		md_edges_add(&p->paths, polls[i].block, polls[i].number, 1);
	}
	pthread_mutex_unlock(&p->lock);
	memset(polls, 0, size);
	write_at(p->fd, polls, size, at);
	p->asked = 0;
}

/* Return: a random number below @end. */
static uint32_t draw(struct md_path_requests *p, uint64_t end)
{
	p->seed = p->seed * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)((p->seed >> 32) * end >> 32);
}

static bool answers_at_once(const struct md_path_requests *p, int32_t asked)
{
	uint64_t end_ns = mp_now_ns() + PATIENCE_NS;
	int32_t left = asked;

	do
		if (!read_at(p->fd, &left, sizeof(left), HEADER + offsetof(struct mp_polls, left)))
			return true; /* cannot be read: assume that it answered */
	while (left == asked && mp_now_ns() < end_ns);
	return left != asked;
}

/* Return: true if a program can be watched while it answers. */
static bool runs_beside(const struct md_path_requests *p)
{
	return CPU_COUNT(&p->cpus) > 1;
}

/* Moves the thread to the next CPU: a program cannot answer while the thread occupies its CPU. */
static void go_elsewhere(const struct md_path_requests *p)
{
	int cpu = sched_getcpu(), i;
	cpu_set_t next;

	if (cpu < 0)
		return;
	for (i = 1; i < CPU_SETSIZE && !CPU_ISSET((cpu + i) % CPU_SETSIZE, &p->cpus); i++)
		;
	CPU_ZERO(&next);
	CPU_SET((cpu + i) % CPU_SETSIZE, &next);
	sched_setaffinity(0, sizeof(next), &next);
}

/*
 * Makes a request. The first path to end is the one that control is in when the request comes,
 * often one with a system call or a library call. So a request that is not answered at once is
 * withdrawn, and a random number of paths is skipped. It is random, because the paths after a
 * system call are much the same each time.
 */
static void ask(struct md_path_requests *p)
{
	const struct md_path_requests_config *c = &p->config;
	uint32_t room = MP_POLLS_MAX + 1 - c->samples - c->stride;
	int32_t bytes;

	p->turn = (p->turn + 1) % c->stride;
	p->skip = p->turn + draw(p, (uint64_t)(room < p->room ? room : p->room) + 1);
	p->asked = c->samples + p->skip;
	bytes = (int32_t)(p->asked * sizeof(struct mp_poll));
	set_left(p->fd, bytes);
	if (!runs_beside(p) || answers_at_once(p, bytes))
		return;
	set_left(p->fd, 0);
	p->asked = 0;
	go_elsewhere(p);
}

static void tick(struct md_path_requests *p)
{
	int32_t left;

	if (p->fd < 0)
		open_file(p);
	if (p->fd < 0 ||
	    !read_at(p->fd, &left, sizeof(left), HEADER + offsetof(struct mp_polls, left)))
		return;
	if (left > 0 && !runs_beside(p))
		return;
	/*
	 * Withdraw an open request: when the program waits or has ended, the next paths to end
	 * would be biased. Where paths are rare, skip fewer.
	 */
	if (left > 0) {
		set_left(p->fd, 0);
		p->room /= 2;
	} else if (p->asked) {
		p->room = p->room < MP_POLLS_MAX / 2 ? 2 * p->room + 1 : MP_POLLS_MAX;
	}
	if (p->asked)
		collect(p, left > 0 ? (uint32_t)left : 0);
	ask(p);
}

/* The time is random, so that it does not stay in step with the program. */
static void sleep_a_while(struct md_path_requests *p)
{
	uint64_t mean_ns = 1000000000 / p->config.rate_hz, ns;
	struct timespec ts;

	ns = mean_ns / 2 + draw(p, mean_ns);
	ts.tv_sec = (time_t)(ns / 1000000000);
	ts.tv_nsec = (long)(ns % 1000000000);
	nanosleep(&ts, NULL);
}

static void *run(void *arg)
{
	struct md_path_requests *p = arg;
	bool ends = false;
	int32_t left;

	while (!ends) {
		tick(p);
		sleep_a_while(p);
		pthread_mutex_lock(&p->lock);
		ends = p->ends;
		pthread_mutex_unlock(&p->lock);
	}
	/* Collect the answers to the last request. */
	if (p->fd >= 0 && p->asked &&
	    read_at(p->fd, &left, sizeof(left), HEADER + offsetof(struct mp_polls, left))) {
		set_left(p->fd, 0);
		collect(p, left > 0 ? (uint32_t)left : 0);
	}
	return NULL;
}

int md_path_requests_start(const struct md_path_requests_config *config,
			   struct md_path_requests **out, struct mp_err *err)
{
	struct md_path_requests *p = calloc(1, sizeof(*p));
	sigset_t all, before;
	int ret;

	if (!p)
		return mp_err_set(err, ENOMEM, "out of memory");
	if (!config->samples || !config->stride || !config->rate_hz ||
	    (uint64_t)config->samples + config->stride - 1 > MP_POLLS_MAX) {
		free(p);
		return mp_err_set(err, EINVAL, "polls: from 1 to %d paths at a time", MP_POLLS_MAX);
	}
	p->config = *config;
	p->fd = -1;
	p->room = MP_POLLS_MAX;
	p->seed = (uint64_t)getpid();
	if (sched_getaffinity(0, sizeof(p->cpus), &p->cpus))
		CPU_ZERO(&p->cpus);
	pthread_mutex_init(&p->lock, NULL);
	/* The thread must not take signals that others wait for. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	ret = pthread_create(&p->thread, NULL, run, p);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (ret) {
		pthread_mutex_destroy(&p->lock);
		free(p);
		return mp_err_set(err, ret, "a thread for polls: %s", strerror(ret));
	}
	*out = p;
	return 0;
}

static const struct md_module *module_of(const struct md_path_requests *p,
					 const struct md_modcache *mc)
{
	const struct md_module *found = NULL;
	uint32_t i;

	for (i = 0; i < md_modcache_end(mc); i++) {
		const struct md_module *module = md_modcache_module(mc, i);

		if (!module || !module->paths || module->paths->hash != p->hash)
			continue;
		/*
		 * Any program may contain a copy of another one's table: prefer a confirmed
		 * output.
		 */
		if (md_module_map(module))
			return module;
		found = module;
	}
	return found;
}

static void end(struct md_path_requests *p)
{
	bool ended;

	pthread_mutex_lock(&p->lock);
	ended = p->ends;
	p->ends = true;
	pthread_mutex_unlock(&p->lock);
	if (!ended)
		pthread_join(p->thread, NULL);
}

int md_path_requests_take(struct md_path_requests *p, struct md_attribute *at, bool last)
{
	const struct md_module *module;
	int ret = 0;
	size_t i;

	if (last)
		end(p);
	pthread_mutex_lock(&p->lock);
	module = p->paths.nr_used ? module_of(p, at->modcache) : NULL;
	if (module)
		ret = md_paths_reserve(&at->paths, p->paths.nr_used);
	for (i = 0; module && !ret && i < p->paths.nr_slots; i++) {
		const struct md_edge *e = &p->paths.slots[i];

		if (e->from)
			at->ledger.paths[md_paths_add_reported(
				&at->paths, module, (uint32_t)e->from - 1, e->to, e->nr)] += e->nr;
	}
	if (module && !ret)
		md_edges_clear(&p->paths);
	pthread_mutex_unlock(&p->lock);
	return ret;
}

const char *md_path_requests_remark(struct md_path_requests *p)
{
	const char *path = p->config.path;

	end(p);
	if (p->fd < 0)
		snprintf(p->remark, sizeof(p->remark),
			 "%.100s: no program created this file: nothing was polled", path);
	else if (p->paths.nr_used)
		snprintf(p->remark, sizeof(p->remark),
			 "%.100s: its program is not one of those that were sampled: not counted",
			 path);
	else if (!p->nr_paths)
		snprintf(p->remark, sizeof(p->remark), "%.100s: no program answered", path);
	else if (p->nr_lost)
		snprintf(p->remark, sizeof(p->remark),
			 "%.100s: no room for %" PRIu64 " of %" PRIu64 " paths", path, p->nr_lost,
			 p->nr_paths);
	else
		return NULL;
	return p->remark;
}

void md_path_requests_stop(struct md_path_requests *p)
{
	if (!p)
		return;
	end(p);
	if (p->fd >= 0)
		close(p->fd);
	md_edges_fini(&p->paths);
	pthread_mutex_destroy(&p->lock);
	free(p);
}
