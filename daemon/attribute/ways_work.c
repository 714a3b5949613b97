// SPDX-License-Identifier: Apache-2.0
/* ways_work - executes code after samples; see ways_work.h. */
#include "daemon/attribute/ways_work.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/attribute/ways_file.h"
#include "libprof/foresee/foresee.h"

#define SIZE_MAX_OF_BATCH                                                                          \
	(sizeof(struct md_ways_batch) + MD_WAYS_SAMPLES_MAX * sizeof(struct md_ways_sample))

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

/* Return: the samples of a batch, *@nr of them; NULL: it is malformed. */
static const struct md_ways_sample *samples_of(const uint8_t *data, size_t size, uint32_t *nr)
{
	const struct md_ways_batch *head = (const void *)data;
	const struct md_ways_sample *samples = (const void *)(data + sizeof(*head));

	if (size < sizeof(*head) || head->nr_samples > MD_WAYS_SAMPLES_MAX ||
	    size != sizeof(*head) + head->nr_samples * sizeof(*samples))
		return NULL;
	*nr = head->nr_samples;
	for (uint32_t i = 0; i < *nr; i++)
		if (samples[i].stack_words > MD_WAYS_STACK_WORDS)
			return NULL;
	return samples;
}

/* Return: 0, -ENOMEM. */
static int execute(const struct mp_foresee_code *code, const struct md_ways_sample *s,
		   struct md_buf *reply)
{
	const struct mp_foresee_sample sample = {
		.vaddr = s->vaddr,
		.bias = s->bias,
		.registers = s->registers,
		.known = s->known,
		.stack = s->stack,
		.nr_stack = s->stack_words,
	};
	struct mp_foreseen_way ways[MP_FORESEE_WAYS];
	uint32_t nr = mp_foresee(code, &sample, ways);

	for (uint32_t i = 0; i < nr; i++) {
		struct md_ways_reply *one = md_buf_add(reply, sizeof(*one));

		if (!one)
			return -ENOMEM;
		*one = (struct md_ways_reply){ways[i].vaddr, ways[i].taken};
	}
	return 0;
}

static int execute_all(int beside, const uint8_t *data, size_t size, struct md_buf *reply)
{
	struct mp_foresee_code code = {md_ways_file_bytes, md_ways_file_constant, NULL};
	struct md_ways_file *file;
	uint32_t nr;
	const struct md_ways_sample *samples = samples_of(data, size, &nr);
	int ret = samples ? md_ways_file_open(beside, &file) : -EBADMSG;

	if (ret)
		return ret;
	code.data = file;
	for (uint32_t i = 0; i < nr && !ret; i++)
		ret = execute(&code, &samples[i], reply);
	md_ways_file_close(file);
	return ret;
}

int md_ways_work(int fd, uint64_t size, int beside, struct md_buf *reply)
{
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
		ret = execute_all(beside, data, (size_t)size, reply);
	free(data);
	return ret;
}
