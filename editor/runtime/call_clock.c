// SPDX-License-Identifier: Apache-2.0
/*
 * call_clock - writes each call at which the count of calls ends into a file (libprof/note/call_file.h),
 * and draws the next count. Several processes and files of a process may use one file. Uses no library,
 * no data and no relocation. If anything fails, the program runs as usual.
 */
#include "editor/runtime/call_clock.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/mman.h>

#include "editor/runtime/shared_file.h"
#include "editor/runtime/system.h"
#include "libprof/note/call_file.h"

/* Calls until a program looks again whether somebody reads. */
#define UNREAD_CALLS (1 << 20)

/* Words of the header that describe the file. */
#define NR_WORDS 3

_Static_assert(offsetof(struct mp_call_file_header, next) == 8 * NR_WORDS,
	       "the words before it describe the file");

/* Fill in the header, perhaps while other processes write the same. */
static bool claim(uint64_t *header)
{
	uint64_t want[NR_WORDS];

	want[0] = 0x4c41434850524f4dull; /* MP_CALL_FILE_MAGIC */
	want[1] = MP_CALL_FILE_VERSION | (uint64_t)MP_CALL_FILE_HEADER_BYTES << 32;
	want[2] = MP_CALL_NR_RECORDS;
	for (int i = NR_WORDS - 1; i >= 0; i--)
		if (!claim_word(&header[i], want[i]))
			return false;
	return true;
}

static struct me_call_clock *clock_of(const struct me_runtime_params *params)
{
	return (struct me_call_clock *)((uint64_t)params + (uint64_t)params->counters);
}

/* Return: the next count, from 0 on. */
static int32_t draw(struct me_call_clock *clock, const struct mp_call_file_header *header,
		    uint64_t number)
{
	uint64_t period = __atomic_load_n(&header->period, __ATOMIC_RELAXED);
	uint64_t x = __atomic_add_fetch(&clock->draws, 1, __ATOMIC_RELAXED);

	if (!period || period > MP_CALL_PERIOD_MAX)
		return UNREAD_CALLS;
	/* splitmix64 (Steele, Lea and Flood, 2014) */
	x = (header->seed ^ number << 32 ^ clock->process << 16) + x * 0x9e3779b97f4a7c15ull;
	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull;
	x = (x ^ x >> 27) * 0x94d049bb133111ebull;
	x ^= x >> 31;
	return (int32_t)((x >> 32) * (2 * period - 1) >> 32);
}

void me_call_clock_start(const struct me_runtime_params *params, int fd)
{
	struct me_call_clock *clock = clock_of(params);
	long ret;

	clock->process = (uint64_t)call1(SYS_getpid, 0);
	if (fd < 0 || !has_size(fd, MP_CALL_FILE_BYTES))
		return;
	ret = call6(SYS_mmap, 0, (long)MP_CALL_FILE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd,
		    0);
	if (failed(ret))
		return;
	if (!claim((uint64_t *)ret)) {
		call4(SYS_munmap, ret, (long)MP_CALL_FILE_BYTES, 0, 0);
		return;
	}
	__atomic_store_n(&clock->left, draw(clock, (struct mp_call_file_header *)ret, 0),
			 __ATOMIC_RELAXED);
	__atomic_store_n(&clock->file, (uint64_t)ret, __ATOMIC_RELEASE);
}

void me_runtime_call(const struct me_runtime_params *params, const uint64_t *ret)
{
	struct me_call_clock *clock = clock_of(params);
	uint64_t file = __atomic_load_n(&clock->file, __ATOMIC_ACQUIRE), number;
	struct mp_call_file_header *header = (struct mp_call_file_header *)file;
	struct mp_call_record *to;
	int32_t left = INT32_MAX;

	if (file)
		left = draw(clock, header, __atomic_load_n(&header->next, __ATOMIC_RELAXED));
	/* Another thread was here since this one counted: its call was too late for a sample. */
	if (__atomic_exchange_n(&clock->left, left, __ATOMIC_RELAXED) >= 0 || !file ||
	    !__atomic_load_n(&header->period, __ATOMIC_RELAXED))
		return;
	number = __atomic_fetch_add(&header->next, 1, __ATOMIC_SEQ_CST);
	to = (struct mp_call_record *)(file + MP_CALL_FILE_HEADER_BYTES) +
	     number % MP_CALL_NR_RECORDS;
	__atomic_store_n(&to->number, 0, __ATOMIC_SEQ_CST);
	to->function = ret[0];
	to->caller = ret[1 + ME_RED_ZONE / 8];
	to->process = clock->process;
	__atomic_store_n(&to->number, number + 1, __ATOMIC_RELEASE);
}
