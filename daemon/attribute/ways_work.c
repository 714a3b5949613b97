// SPDX-License-Identifier: Apache-2.0
/* ways_work - executes code after samples; see ways_work.h. */
#include "daemon/attribute/ways_work.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "libprof/base/search.h"
#include "libprof/foresee/foresee.h"

#define SIZE_MAX_OF_BATCH                                                                          \
	(sizeof(struct md_ways_batch) + MD_WAYS_SAMPLES_MAX * sizeof(struct md_ways_sample) +      \
	 MD_WAYS_PAGES_MAX * (sizeof(struct md_ways_page) + MD_WAYS_PAGE))
#define INSN_MAX 15

struct batch {
	const struct md_ways_sample *samples;
	const struct md_ways_page *pages;
	const uint8_t **bytes; /* of each page */
	uint32_t nr_samples, nr_pages;
	uint8_t across[2 *
		       INSN_MAX]; /* an instruction that begins in one page and ends in the next */
};

static int read_whole(int fd, uint8_t *bytes, size_t size)
{
	size_t done = 0;

	while (done < size) {
		ssize_t n = pread(fd, bytes + done, size - done, (off_t)done);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return -EIO;
		done += (size_t)n;
	}
	return 0;
}

static bool is_batch(int fd)
{
	char magic[sizeof(MD_WAYS_MAGIC)];

	return pread(fd, magic, sizeof(magic), 0) == sizeof(magic) &&
	       !memcmp(magic, MD_WAYS_MAGIC, sizeof(magic));
}

static int open_batch(const uint8_t *data, size_t size, struct batch *b)
{
	const struct md_ways_batch *head = (const void *)data;
	size_t at = sizeof(*head);

	if (size < at || head->nr_samples > MD_WAYS_SAMPLES_MAX ||
	    head->nr_pages > MD_WAYS_PAGES_MAX)
		return -EBADMSG;
	b->nr_samples = head->nr_samples;
	b->nr_pages = head->nr_pages;
	b->samples = (const void *)(data + at);
	at += b->nr_samples * sizeof(*b->samples);
	b->pages = (const void *)(data + at);
	at += b->nr_pages * sizeof(*b->pages);
	if (at > size)
		return -EBADMSG;
	b->bytes = calloc(b->nr_pages + 1U, sizeof(*b->bytes));
	if (!b->bytes)
		return -ENOMEM;
	for (uint32_t i = 0; i < b->nr_pages; i++) {
		b->bytes[i] = data + at;
		if (b->pages[i].size > MD_WAYS_PAGE || b->pages[i].size > size - at ||
		    (i && b->pages[i].vaddr - b->pages[i - 1].vaddr < b->pages[i - 1].size) ||
		    (i && b->pages[i].vaddr < b->pages[i - 1].vaddr))
			return -EBADMSG;
		at += b->pages[i].size;
	}
	return at == size ? 0 : -EBADMSG;
}

/* Return: index of the last page that begins at @vaddr or before; @nr_pages: none. */
static uint32_t page_before(const struct batch *b, uint64_t vaddr)
{
	uint32_t low = mp_search(i, 0, b->nr_pages, b->pages[i].vaddr <= vaddr);

	return low ? low - 1 : b->nr_pages;
}

static const uint8_t *bytes_at(void *data, uint64_t vaddr, size_t *avail)
{
	struct batch *b = data;
	uint32_t i = page_before(b, vaddr), next = i + 1;
	size_t nr = 0;

	if (i == b->nr_pages || vaddr - b->pages[i].vaddr >= b->pages[i].size)
		return NULL;
	*avail = b->pages[i].size - (size_t)(vaddr - b->pages[i].vaddr);
	if (*avail >= INSN_MAX || next == b->nr_pages ||
	    b->pages[next].vaddr != b->pages[i].vaddr + b->pages[i].size)
		return b->bytes[i] + (vaddr - b->pages[i].vaddr);
	while (nr < *avail) {
		b->across[nr] = b->bytes[i][vaddr - b->pages[i].vaddr + nr];
		nr++;
	}
	for (uint32_t k = 0; k < INSN_MAX && k < b->pages[next].size; k++)
		b->across[nr++] = b->bytes[next][k];
	*avail = nr;
	return b->across;
}

static int execute(struct batch *b, struct md_buf *reply)
{
	const struct mp_foresee_code code = {bytes_at, b};
	struct mp_foreseen_way ways[MP_FORESEE_WAYS];

	for (uint32_t i = 0; i < b->nr_samples; i++) {
		const struct md_ways_sample *s = &b->samples[i];
		uint32_t nr = mp_foresee(&code, s->vaddr, s->registers, (uint32_t)s->known, ways);

		for (uint32_t k = 0; k < nr; k++) {
			struct md_ways_reply *one = md_buf_add(reply, sizeof(*one));

			if (!one)
				return -ENOMEM;
			*one = (struct md_ways_reply){ways[k].vaddr, ways[k].taken};
		}
	}
	return 0;
}

int md_ways_work(int fd, uint64_t size, struct md_buf *reply)
{
	struct batch b = {.samples = NULL};
	uint8_t *data;
	int ret;

	if (!is_batch(fd))
		return 0;
	if (size > SIZE_MAX_OF_BATCH)
		return -EBADMSG;
	data = malloc((size_t)size + 1);
	if (!data)
		return -ENOMEM;
	ret = read_whole(fd, data, (size_t)size);
	if (!ret)
		ret = open_batch(data, (size_t)size, &b);
	if (!ret)
		ret = execute(&b, reply);
	free(b.bytes);
	free(data);
	return ret;
}
