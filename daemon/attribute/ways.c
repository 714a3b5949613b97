// SPDX-License-Identifier: Apache-2.0
/* ways - gathers samples with registers, and counts ways; see ways.h. */
#include "daemon/attribute/ways.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "daemon/module/sandbox.h"
#include "libprof/foresee/foresee.h"

#define PENDING_MAX (2U * MD_WAYS_SAMPLES_MAX)
/* A worker for fewer samples of a file would take more time than the samples are worth. */
#define SAMPLES_LEAST 16
/* For one file; the steps of a full batch take some milliseconds. */
#define DEADLINE_MS 10000
#define REPLY_MAX   (MD_WAYS_SAMPLES_MAX * MP_FORESEE_WAYS * sizeof(struct md_ways_reply))

int md_ways_new(struct md_ways **out, struct mp_err *err)
{
	const struct md_sandbox_config config = {DEADLINE_MS, REPLY_MAX, MD_SANDBOX_WAYS};
	struct md_ways *ways = calloc(1, sizeof(*ways));
	struct mp_err why = {{0}};
	int ret;

	if (ways)
		ways->pending = malloc(PENDING_MAX * sizeof(*ways->pending));
	if (!ways || !ways->pending) {
		free(ways);
		return mp_err_set(err, ENOMEM, "no memory");
	}
	ret = md_sandbox_open(&config, &ways->sandbox, &why);
	if (ret && md_sandbox_is_needed()) {
		md_ways_free(ways);
		return mp_err_set(err, -ret, "no sandbox for ways of branches: %s", why.msg);
	}
	*out = ways;
	return 0;
}

void md_ways_free(struct md_ways *ways)
{
	if (!ways)
		return;
	md_sandbox_close(ways->sandbox);
	md_edges_fini(&ways->counts);
	free(ways->pending);
	free(ways);
}

void md_ways_add(struct md_ways *ways, uint32_t module, uint64_t vaddr, uint64_t bias,
		 const struct morph_registers *record, uint32_t nr)
{
	const __u64 *words = record->entries + (size_t)nr * md_registers_words(record);
	uint32_t nr_registers = (uint32_t)__builtin_popcount(record->registers);
	struct md_ways_sample *one;

	ways->ledger.samples++;
	if (ways->nr_pending == PENDING_MAX) {
		ways->ledger.dropped++;
		return;
	}
	one = &ways->pending[ways->nr_pending++];
	one->vaddr = vaddr;
	one->bias = bias;
	one->known = record->registers;
	one->module = module;
	one->stack_words = record->stack_words < MD_WAYS_STACK_WORDS ? record->stack_words
								     : MD_WAYS_STACK_WORDS;
	memcpy(one->stack, words + 1 + nr_registers, one->stack_words * sizeof(*words));
	for (uint32_t reg = 0; reg <= MORPH_REG_FLAGS; reg++)
		if (record->registers >> reg & 1)
			one->registers[reg] = words[md_registers_word(record, reg)];
}

bool md_ways_is_due(const struct md_ways *ways)
{
	return ways->nr_pending >= MD_WAYS_SAMPLES_MAX;
}

/* ---- running ------------------------------------------------------------------------------ */

static int write_whole(int fd, const void *bytes, size_t size)
{
	size_t done = 0;

	while (done < size) {
		ssize_t n = write(fd, (const char *)bytes + done, size - done);

		if (n < 0 && errno != EINTR)
			return -errno;
		done += n > 0 ? (size_t)n : 0;
	}
	return 0;
}

/* Executes code of @file after @samples. Return: 0; else there is no reply. */
static int execute(struct md_ways *ways, int file, const struct md_ways_sample *samples,
		   uint32_t nr, struct md_buf *reply)
{
	const struct md_ways_batch head = {.magic = MD_WAYS_MAGIC, .nr_samples = nr};
	uint64_t size = sizeof(head) + nr * sizeof(*samples);
	int fd = memfd_create("morphd-ways", MFD_CLOEXEC), ret;
	struct mp_err err;

	if (fd < 0)
		return -errno;
	ret = write_whole(fd, &head, sizeof(head));
	if (!ret)
		ret = write_whole(fd, samples, nr * sizeof(*samples));
	if (!ret)
		ret = ways->sandbox
			      ? md_sandbox_read_both(ways->sandbox, fd, size, file, reply, &err)
			      : md_ways_work(fd, size, file, reply);
	close(fd);
	return ret;
}

static bool is_code(const struct md_file *file, uint64_t vaddr)
{
	for (uint32_t i = 0; i < file->nr_segments; i++)
		if (vaddr - file->segments[i].vaddr < file->segments[i].size)
			return true;
	return false;
}

/* A worker may say anything, but only of its own module. Return: false: it lied. */
static bool take_reply(struct md_ways *ways, uint32_t module, const struct md_file *file,
		       const struct md_buf *reply)
{
	const struct md_ways_reply *all = (const void *)reply->data;
	size_t nr = reply->size / sizeof(*all);

	if (reply->size % sizeof(*all))
		return false;
	for (size_t i = 0; i < nr; i++)
		if (all[i].taken > 1 || !is_code(file, all[i].vaddr))
			return false;
	if (md_edges_reserve(&ways->counts, nr))
		return true; /* the table is at its limit until the next flush */
	for (size_t i = 0; i < nr; i++)
		md_edges_add(&ways->counts, md_sample_table_key(module, all[i].vaddr), all[i].taken,
			     1);
	ways->ledger.ways += nr;
	return true;
}

/* Samples of one module, at most MD_WAYS_SAMPLES_MAX. */
static void run_module(struct md_ways *ways, struct md_modcache *mc,
		       const struct md_ways_sample *samples, uint32_t nr)
{
	const struct md_file *file;
	struct md_buf reply = {0};
	int fd = md_modcache_open_module(mc, samples[0].module, &file);

	if (fd < 0) {
		ways->ledger.dropped += nr;
		return;
	}
	if (execute(ways, fd, samples, nr, &reply) ||
	    !take_reply(ways, samples[0].module, file, &reply))
		ways->ledger.failed++;
	close(fd);
	md_buf_fini(&reply);
}

static int compare_pending(const void *a, const void *b)
{
	const struct md_ways_sample *x = a, *y = b;

	return (x->module > y->module) - (x->module < y->module);
}

void md_ways_run(struct md_ways *ways, struct md_modcache *mc, bool all)
{
	size_t from, to;

	if (ways->nr_pending)
		qsort(ways->pending, ways->nr_pending, sizeof(*ways->pending), compare_pending);
	for (from = 0; from < ways->nr_pending; from = to) {
		for (to = from + 1; to < ways->nr_pending && to - from < MD_WAYS_SAMPLES_MAX &&
				    ways->pending[to].module == ways->pending[from].module;)
			to++;
		if (!all && to - from < SAMPLES_LEAST)
			ways->ledger.dropped += to - from;
		else
			run_module(ways, mc, ways->pending + from, (uint32_t)(to - from));
	}
	/* Registers and stacks may hold secrets of programs. */
	explicit_bzero(ways->pending, ways->nr_pending * sizeof(*ways->pending));
	ways->nr_pending = 0;
}
