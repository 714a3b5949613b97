// SPDX-License-Identifier: Apache-2.0
/* call_samples - a thread that empties the ring of calls; see call_samples.h. */
#include "daemon/attribute/call_samples.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include <xxhash.h>

#include "libprof/note/call_file.h"

/* Time between two turns of the thread. */
#define TURN_NS 5000000

/* Distinct calls between two flushes; more are lost. */
#define CALLS_MAX (1u << 18)

/* A call in one process, and how often it was sampled. */
struct call {
	uint64_t caller, function, process;
	uint64_t nr; /* 0: a free slot */
};

struct md_call_samples {
	struct md_call_samples_config config;
	pthread_t thread;
	pthread_mutex_t lock; /* protects the following members */
	bool ends;
	struct call *slots;
	uint32_t nr_slots, nr_used;
	uint64_t salt;
	uint64_t nr_read;
	uint64_t nr_late;    /* overwritten, or not finished in time */
	uint64_t nr_unknown; /* of processes or code that are not known */
	uint64_t nr_no_room;
	/* used by the thread only */
	int fd;
	uint64_t next; /* number of the first record that was not read */
	char remark[320];
};

/* ---- table ----------------------------------------------------------------------------------- */

/* @salt: whoever writes the file must not choose where calls go. */
static struct call *find(struct call *slots, uint32_t nr_slots, uint64_t salt,
			 const struct call *call)
{
	uint64_t hash = XXH3_64bits_withSeed(call, offsetof(struct call, nr), salt);
	uint32_t i = (uint32_t)(hash >> 24) & (nr_slots - 1);

	while (slots[i].nr &&
	       (slots[i].caller != call->caller || slots[i].function != call->function ||
		slots[i].process != call->process))
		i = (i + 1) & (nr_slots - 1);
	return &slots[i];
}

static bool grow(struct md_call_samples *c)
{
	uint32_t nr = c->nr_slots ? 2 * c->nr_slots : 4096;
	struct call *slots = nr <= 2 * CALLS_MAX ? calloc(nr, sizeof(*slots)) : NULL;

	if (!slots)
		return false;
	for (uint32_t i = 0; i < c->nr_slots; i++)
		if (c->slots[i].nr)
			*find(slots, nr, c->salt, &c->slots[i]) = c->slots[i];
	free(c->slots);
	c->slots = slots;
	c->nr_slots = nr;
	return true;
}

static void add(struct md_call_samples *c, const struct call *call)
{
	struct call *slot;

	c->nr_read++;
	if (2 * c->nr_used >= c->nr_slots && !grow(c)) {
		c->nr_no_room++;
		return;
	}
	slot = find(c->slots, c->nr_slots, c->salt, call);
	c->nr_used += !slot->nr;
	*slot = (struct call){call->caller, call->function, call->process, slot->nr + 1};
}

/* ---- the file -------------------------------------------------------------------------------- */

static bool read_at(int fd, void *to, size_t size, uint64_t off)
{
	return pread(fd, to, size, (off_t)off) == (ssize_t)size;
}

static bool write_at(int fd, const void *from, size_t size, uint64_t off)
{
	return pwrite(fd, from, size, (off_t)off) == (ssize_t)size;
}

static bool set_period(const struct md_call_samples *c, uint64_t period)
{
	return write_at(c->fd, &period, sizeof(period),
			offsetof(struct mp_call_file_header, period));
}

static uint64_t new_seed(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000007 + (uint64_t)ts.tv_nsec + (uint64_t)getpid();
}

/* Programs write the words that say what the file is; an empty file is made here. */
static int open_file(struct md_call_samples *c, struct mp_err *err)
{
	const struct mp_call_file_header want = {MP_CALL_FILE_MAGIC,
						 MP_CALL_FILE_VERSION,
						 MP_CALL_FILE_HEADER_BYTES,
						 MP_CALL_NR_RECORDS,
						 0,
						 0,
						 0};
	const size_t described = offsetof(struct mp_call_file_header, next);
	uint64_t seed = new_seed();
	struct mp_call_file_header h = {0};
	const char *path = c->config.path;
	struct stat st;

	c->fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY, 0644);
	if (c->fd < 0 || fstat(c->fd, &st))
		return mp_err_set(err, errno, "%s: %s", path, strerror(errno));
	if (S_ISREG(st.st_mode) && !st.st_size && ftruncate(c->fd, (off_t)MP_CALL_FILE_BYTES))
		return mp_err_set(err, errno, "%s: %s", path, strerror(errno));
	if (!S_ISREG(st.st_mode) || (st.st_size && (!read_at(c->fd, &h, sizeof(h), 0) ||
						    st.st_size != (off_t)MP_CALL_FILE_BYTES ||
						    (memcmp(&h, &want, described) && h.magic[0]))))
		return mp_err_set(err, EINVAL, "%s: not a file of calls: remove it", path);
	c->next = h.next;
	if (!write_at(c->fd, &seed, sizeof(seed), offsetof(struct mp_call_file_header, seed)) ||
	    !set_period(c, c->config.period))
		return mp_err_set(err, errno ? errno : EIO, "%s: cannot be written", path);
	return 0;
}

/* Reads the records from @c->next up to @end, which the ring holds without a break. */
static void read_run(struct md_call_samples *c, uint64_t end)
{
	static const size_t size = sizeof(struct mp_call_record);
	struct mp_call_record records[256];
	uint64_t first = c->next % MP_CALL_NR_RECORDS;
	size_t nr = end - c->next < 256 ? (size_t)(end - c->next) : 256;

	if (nr > MP_CALL_NR_RECORDS - first)
		nr = (size_t)(MP_CALL_NR_RECORDS - first);
	if (!read_at(c->fd, records, nr * size, MP_CALL_FILE_HEADER_BYTES + first * size))
		nr = 0;
	pthread_mutex_lock(&c->lock);
	for (size_t i = 0; i < nr; i++) {
		const struct mp_call_record *r = &records[i];

		if (r->number == c->next + i + 1)
			add(c, &(struct call){r->caller, r->function, r->process, 0});
		else
			c->nr_late++;
	}
	pthread_mutex_unlock(&c->lock);
	c->next = nr ? c->next + nr : end;
}

static void turn(struct md_call_samples *c)
{
	uint64_t next;

	if (!read_at(c->fd, &next, sizeof(next), offsetof(struct mp_call_file_header, next)) ||
	    next <= c->next)
		return;
	if (next - c->next > MP_CALL_NR_RECORDS) {
		uint64_t late = next - c->next - MP_CALL_NR_RECORDS;

		pthread_mutex_lock(&c->lock);
		c->nr_late += late;
		pthread_mutex_unlock(&c->lock);
		c->next += late;
	}
	while (c->next < next)
		read_run(c, next);
}

static void *run(void *arg)
{
	const struct timespec pause = {0, TURN_NS};
	struct md_call_samples *c = arg;
	bool ends = false;

	while (!ends) {
		nanosleep(&pause, NULL);
		pthread_mutex_lock(&c->lock);
		ends = c->ends;
		pthread_mutex_unlock(&c->lock);
		turn(c);
	}
	return NULL;
}

int md_call_samples_start(const struct md_call_samples_config *config, struct md_call_samples **out,
			  struct mp_err *err)
{
	struct md_call_samples *c = calloc(1, sizeof(*c));
	sigset_t all, before;
	int ret;

	if (!c)
		return mp_err_set(err, ENOMEM, "out of memory");
	c->config = *config;
	c->salt = new_seed();
	ret = open_file(c, err);
	if (!ret) {
		pthread_mutex_init(&c->lock, NULL);
		/* The thread must not take signals that others wait for. */
		sigfillset(&all);
		pthread_sigmask(SIG_SETMASK, &all, &before);
		ret = pthread_create(&c->thread, NULL, run, c);
		pthread_sigmask(SIG_SETMASK, &before, NULL);
		if (!ret) {
			*out = c;
			return 0;
		}
		pthread_mutex_destroy(&c->lock);
		ret = mp_err_set(err, ret, "a thread for sampled calls: %s", strerror(ret));
	}
	if (c->fd >= 0)
		close(c->fd);
	free(c);
	return ret;
}

static void end(struct md_call_samples *c)
{
	bool ended;

	pthread_mutex_lock(&c->lock);
	ended = c->ends;
	c->ends = true;
	pthread_mutex_unlock(&c->lock);
	if (ended)
		return;
	set_period(c, 0);
	pthread_join(c->thread, NULL);
}

/* ---- attribution ----------------------------------------------------------------------------- */

/* Return: 0, -ENOMEM, -EAGAIN: the process is not known yet. */
static int take_call(struct md_call_samples *c, struct md_attribute *at, const struct call *call,
		     bool last)
{
	struct md_space *space = call->process <= UINT32_MAX
					 ? md_procmap_find_any(at->procmap, (uint32_t)call->process)
					 : NULL;
	int ret;

	if (!space || !md_space_program(space)) {
		if (!last)
			return -EAGAIN;
		c->nr_unknown += call->nr;
		return 0;
	}
	ret = md_contexts_add_call(at->calls, space, at->modcache, call->caller, call->function,
				   call->nr, c->config.period);
	if (ret == -ENOENT) {
		c->nr_unknown += call->nr;
		return 0;
	}
	if (!ret)
		at->ledger.calls += call->nr;
	return ret;
}

int md_call_samples_take(struct md_call_samples *c, struct md_attribute *at, bool last)
{
	struct call *slots;
	uint32_t nr_slots;
	int ret = 0;

	if (last)
		end(c);
	pthread_mutex_lock(&c->lock);
	slots = c->slots;
	nr_slots = c->nr_slots;
	c->slots = NULL;
	c->nr_slots = c->nr_used = 0;
	for (uint32_t i = 0; i < nr_slots; i++) {
		int r = !slots[i].nr ? 0 : ret == -ENOMEM ? ret : take_call(c, at, &slots[i], last);

		ret = r == -ENOMEM ? r : ret;
		if (!r)
			continue;
		/* A call that cannot be taken now waits for the next turn. */
		if (2 * c->nr_used >= c->nr_slots && !grow(c)) {
			c->nr_no_room += slots[i].nr;
			continue;
		}
		*find(c->slots, c->nr_slots, c->salt, &slots[i]) = slots[i];
		c->nr_used++;
	}
	pthread_mutex_unlock(&c->lock);
	free(slots);
	return ret;
}

const char *md_call_samples_remark(struct md_call_samples *c)
{
	uint64_t lost;

	end(c);
	lost = c->nr_late + c->nr_unknown + c->nr_no_room;
	if (!c->nr_read && !c->nr_late)
		snprintf(c->remark, sizeof(c->remark), "%.100s: no program sampled calls",
			 c->config.path);
	else if (lost)
		snprintf(c->remark, sizeof(c->remark),
			 "%.100s: of %" PRIu64 " sampled calls %" PRIu64 " came too late, %" PRIu64
			 " are of processes or code that are not known, for %" PRIu64
			 " there was no memory",
			 c->config.path, c->nr_read + c->nr_late, c->nr_late, c->nr_unknown,
			 c->nr_no_room);
	else
		return NULL;
	return c->remark;
}

void md_call_samples_stop(struct md_call_samples *c)
{
	if (!c)
		return;
	end(c);
	close(c->fd);
	pthread_mutex_destroy(&c->lock);
	free(c->slots);
	free(c);
}
