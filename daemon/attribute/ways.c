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
/* At a time, while morphd goes on: those with the most samples. */
#define FILES_MOST 32
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
		return mp_err_set(err, ENOMEM, "out of memory");
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

void md_ways_add(struct md_ways *ways, uint32_t module, uint64_t vaddr,
		 const struct morph_registers *record, uint32_t nr)
{
	const __u64 *words = record->entries + (size_t)nr * md_registers_words(record);
	struct md_ways_pending *one;

	ways->ledger.samples++;
	if (ways->nr_pending == PENDING_MAX) {
		ways->ledger.dropped++;
		return;
	}
	one = &ways->pending[ways->nr_pending++];
	*one = (struct md_ways_pending){module, {.vaddr = vaddr, .known = record->registers}};
	for (uint32_t reg = 0; reg <= MORPH_REG_FLAGS; reg++)
		if (record->registers >> reg & 1)
			one->sample.registers[reg] = words[md_registers_word(record, reg)];
}

bool md_ways_is_due(const struct md_ways *ways)
{
	return ways->nr_pending >= MD_WAYS_SAMPLES_MAX;
}

/* ---- the batch ---------------------------------------------------------------------------- */

static int compare_pages(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

/* The pages of the samples, and those behind them, ascending. Return: their number. */
static uint32_t list_pages(const struct md_ways_pending *samples, uint32_t nr, uint64_t *pages)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < nr; i++) {
		pages[2 * i] = samples[i].sample.vaddr / MD_WAYS_PAGE * MD_WAYS_PAGE;
		pages[2 * i + 1] = pages[2 * i] + MD_WAYS_PAGE;
	}
	qsort(pages, 2U * nr, sizeof(*pages), compare_pages);
	for (uint32_t i = 0; i < 2 * nr; i++)
		if (!kept || pages[kept - 1] != pages[i])
			pages[kept++] = pages[i];
	return kept < MD_WAYS_PAGES_MAX ? kept : MD_WAYS_PAGES_MAX;
}

/* Cuts the page at @vaddr to what the file has of it. *@off: its place in the file. */
static struct md_ways_page page_in(const struct md_file *file, uint64_t vaddr, uint64_t *off)
{
	for (uint32_t i = 0; i < file->nr_segments; i++) {
		const struct morph_segment *s = &file->segments[i];
		uint64_t from = vaddr > s->vaddr ? vaddr : s->vaddr, to = vaddr + MD_WAYS_PAGE;

		if (to > s->vaddr + s->size)
			to = s->vaddr + s->size;
		if (from >= to)
			continue;
		*off = s->off + (from - s->vaddr);
		return (struct md_ways_page){.vaddr = from, .size = (uint32_t)(to - from)};
	}
	return (struct md_ways_page){.size = 0};
}

static int add_bytes(struct md_buf *buf, const void *bytes, size_t size)
{
	void *to = md_buf_add(buf, size);

	if (!to)
		return -ENOMEM;
	memcpy(to, bytes, size);
	return 0;
}

/* Adds the pages, and the bytes of all of them, which @fd gives. */
static int add_pages(struct md_buf *buf, const struct md_file *file, int fd, const uint64_t *vaddrs,
		     uint32_t nr)
{
	uint8_t bytes[MD_WAYS_PAGE];
	struct md_ways_page page;
	uint64_t off = 0;
	int ret = 0;

	for (uint32_t i = 0; i < nr && !ret; i++) {
		page = page_in(file, vaddrs[i], &off);
		if (!page.size)
			page.vaddr = vaddrs[i];
		ret = add_bytes(buf, &page, sizeof(page));
	}
	for (uint32_t i = 0; i < nr && !ret; i++) {
		page = page_in(file, vaddrs[i], &off);
		if (pread(fd, bytes, page.size, (off_t)off) != (ssize_t)page.size)
			return -EIO;
		ret = add_bytes(buf, bytes, page.size);
	}
	return ret;
}

/* Return: 0, -ENOMEM, -EIO. */
static int make_batch(const struct md_ways_pending *samples, uint32_t nr,
		      const struct md_file *file, int fd, struct md_buf *buf)
{
	uint64_t *pages = malloc(2 * (size_t)nr * sizeof(*pages));
	struct md_ways_batch head = {.magic = MD_WAYS_MAGIC, .nr_samples = nr};
	int ret = pages ? 0 : -ENOMEM;

	if (!ret) {
		head.nr_pages = list_pages(samples, nr, pages);
		ret = add_bytes(buf, &head, sizeof(head));
	}
	for (uint32_t i = 0; i < nr && !ret; i++)
		ret = add_bytes(buf, &samples[i].sample, sizeof(samples[i].sample));
	if (!ret)
		ret = add_pages(buf, file, fd, pages, head.nr_pages);
	free(pages);
	return ret;
}

/* ---- running ------------------------------------------------------------------------------ */

/* Return: 0; else there is no reply. */
static int execute(struct md_ways *ways, const struct md_buf *batch, struct md_buf *reply,
		   struct mp_err *err)
{
	int fd = memfd_create("morphd-ways", MFD_CLOEXEC), ret = 0;

	if (fd < 0)
		return mp_err_code(err, errno);
	for (size_t done = 0; done < batch->size && !ret;) {
		ssize_t n = write(fd, batch->data + done, batch->size - done);

		if (n < 0 && errno != EINTR)
			ret = -errno;
		done += n > 0 ? (size_t)n : 0;
	}
	if (!ret && ways->sandbox) {
		ret = md_sandbox_read(ways->sandbox, fd, batch->size, reply, err);
	} else {
		if (!ret)
			ret = md_ways_work(fd, batch->size, reply);
		if (ret)
			mp_err_code(err, -ret);
	}
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

static void count_failed(struct md_ways *ways, const struct md_file *file, uint32_t nr,
			 const struct mp_err *why, struct mp_err *said)
{
	ways->ledger.failed += nr;
	if (!ways->has_said)
		mp_err_set(said, EPROTO, "%s: no ways of branches: %s", file->path, why->msg);
	ways->has_said = true;
}

/* Samples of one module, at most MD_WAYS_SAMPLES_MAX. */
static void run_module(struct md_ways *ways, struct md_modcache *mc,
		       const struct md_ways_pending *samples, uint32_t nr, struct mp_err *said)
{
	struct md_buf batch = {0}, reply = {0};
	const struct md_file *file;
	struct mp_err why;
	int fd = md_modcache_open_module(mc, samples[0].module, &file);

	if (fd < 0) {
		ways->ledger.dropped += nr;
		return;
	}
	if (make_batch(samples, nr, file, fd, &batch)) {
		ways->ledger.dropped += nr;
	} else if (execute(ways, &batch, &reply, &why)) {
		count_failed(ways, file, nr, &why, said);
	} else if (!take_reply(ways, samples[0].module, file, &reply)) {
		mp_err_set(&why, EPROTO, "the reader's reply is wrong");
		count_failed(ways, file, nr, &why, said);
	}
	close(fd);
	/* Registers may hold secrets of programs. */
	if (batch.data)
		explicit_bzero(batch.data, batch.size);
	md_buf_fini(&batch);
	md_buf_fini(&reply);
}

static int compare_pending(const void *a, const void *b)
{
	const struct md_ways_pending *x = a, *y = b;

	return (x->module > y->module) - (x->module < y->module);
}

/* Return: end of the batch that begins with sample @from; the samples are sorted. */
static size_t batch_end(const struct md_ways *ways, size_t from)
{
	size_t to = from + 1;

	while (to < ways->nr_pending && to - from < MD_WAYS_SAMPLES_MAX &&
	       ways->pending[to].module == ways->pending[from].module)
		to++;
	return to;
}

/* Return: how many samples a batch needs, so that there are at most FILES_MOST. */
static size_t samples_least(const struct md_ways *ways)
{
	size_t least = SAMPLES_LEAST / 2, nr_batches, from, to;

	do {
		least *= 2;
		nr_batches = 0;
		for (from = 0; from < ways->nr_pending; from = to) {
			to = batch_end(ways, from);
			nr_batches += to - from >= least;
		}
	} while (nr_batches > FILES_MOST);
	return least;
}

void md_ways_run(struct md_ways *ways, struct md_modcache *mc, bool all, struct mp_err *said)
{
	size_t from, to, least;

	said->msg[0] = '\0';
	if (ways->nr_pending)
		qsort(ways->pending, ways->nr_pending, sizeof(*ways->pending), compare_pending);
	least = all ? 1 : samples_least(ways);
	for (from = 0; from < ways->nr_pending; from = to) {
		to = batch_end(ways, from);
		if (to - from < least)
			ways->ledger.dropped += to - from;
		else
			run_module(ways, mc, ways->pending + from, (uint32_t)(to - from), said);
	}
	/* Registers may hold secrets of programs. */
	explicit_bzero(ways->pending, ways->nr_pending * sizeof(*ways->pending));
	ways->nr_pending = 0;
}
