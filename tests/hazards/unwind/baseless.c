// SPDX-License-Identifier: Apache-2.0
// A personality routine of C that skips the base of a table's landing pads, as LLVM's in compiler-rt does, and takes
// them for distances from the function's start. Threads are cancelled, and pads are far from the copies and before them.
// flags: -pthread -fexceptions
// link: -pthread
// moves: deep
#include <pthread.h>
#include <semaphore.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <unwind.h>

#include "../hazard.h"

static uint64_t uleb(const uint8_t **p)
{
	uint64_t value = 0;
	unsigned int shift = 0;

	do {
		value |= (uint64_t)(**p & 0x7f) << shift;
		shift += 7;
	} while (*(*p)++ & 0x80);
	return value;
}

static uint64_t number(const uint8_t **p, uint8_t encoding)
{
	int32_t word;

	if ((encoding & 15) == 1)
		return uleb(p);
	memcpy(&word, *p, sizeof(word));
	*p += sizeof(word);
	return (encoding & 15) == 3 ? (uint32_t)word : (uint64_t)(int64_t)word;
}

_Unwind_Reason_Code __gcc_personality_v0(int version, _Unwind_Action actions, uint64_t class,
					 struct _Unwind_Exception *e, struct _Unwind_Context *c)
{
	const uint8_t *p = (const uint8_t *)_Unwind_GetLanguageSpecificData(c), *end;
	uint64_t start = _Unwind_GetRegionStart(c), at = _Unwind_GetIP(c) - 1 - start, length;
	uint8_t encoding;

	(void)class;
	if (version != 1 || !(actions & _UA_CLEANUP_PHASE) || !p)
		return _URC_CONTINUE_UNWIND;
	if (*p++ != 0xff)
		number(&p, p[-1]); /* the base */
	if (*p++ != 0xff)
		uleb(&p);
	encoding = *p++;
	length = uleb(&p);
	for (end = p + length; p < end;) {
		uint64_t site = number(&p, encoding), size = number(&p, encoding);
		uint64_t pad = number(&p, encoding);

		uleb(&p);
		if (!pad || at < site || at >= site + size)
			continue;
		_Unwind_SetGR(c, __builtin_eh_return_data_regno(0), (uintptr_t)e);
		_Unwind_SetGR(c, __builtin_eh_return_data_regno(1), 0);
		_Unwind_SetIP(c, start + pad);
		return _URC_INSTALL_CONTEXT;
	}
	return _URC_CONTINUE_UNWIND;
}

static sem_t started;
static int left[8];

struct scope {
	int n;
};
static void leave(struct scope *s)
{
	left[s->n]++;
}

KEEP int deep(int depth)
{
	__attribute__((cleanup(leave))) struct scope s = {depth};

	if (depth)
		return deep(depth - 1) + 1;
	sem_post(&started);
	for (;;)
		usleep(100000);
}

static void *works(void *arg)
{
	(void)arg;
	return (void *)(intptr_t)deep(7);
}

int main(void)
{
	pthread_t thread;
	void *result;

	sem_init(&started, 0, 0);
	if (pthread_create(&thread, NULL, works, NULL))
		return 2;
	sem_wait(&started);
	pthread_cancel(thread);
	pthread_join(thread, &result);
	printf("%s:", result == PTHREAD_CANCELED ? "cancelled" : "left");
	for (int i = 0; i < 8; i++)
		printf(" %d", left[i]);
	printf("\n");
	return 0;
}
