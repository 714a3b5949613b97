/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reader - /dev/morphmon read as its header says, by other code than morphd's: what the guest's
 * programs stand on. Whatever fails that must not ends the program with a message.
 */
#ifndef MORPH_TESTS_GUEST_READER_H
#define MORPH_TESTS_GUEST_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "kmod/uapi/morph_abi.h"
#include "kmod/uapi/morph_dev.h"

#define READER_CPUS 64

struct reader_ring {
	struct morph_tail *tail;
	const struct morph_head *head;
	const uint8_t *records;
	uint64_t given; /* of the open record, bytes already taken */
};

struct reader {
	int fd;
	uint32_t flags; /* of START */
	struct morph_hello hello;
	struct reader_ring rings[READER_CPUS]; /* @head is NULL where there is none */
	/* All that was read, record after record; each ring's own are in order. */
	uint8_t *stream;
	size_t bytes, room;
	/* What was in it. @lost: the sum of LOST; the rest without PAD and LOST. */
	uint64_t nr_samples, nr_events, nr_by_cpu[READER_CPUS], lost;
	bool lost_state;
};

/* With LAZY in the environment, START asks for what is said once a sample needs it. */
void reader_open(struct reader *r);
void reader_close(struct reader *r);
/* rate 0: the module's; mode -1: the module's. */
void reader_start(struct reader *r, uint32_t rate_hz, int mode, uint32_t wake_bytes);
void reader_stop(struct reader *r);
/* Maps the rings there are that are not mapped yet. */
void reader_map(struct reader *r);
/* Takes all that is in the rings. Call reader_map() first, and again where CPUs may come. */
void reader_take(struct reader *r);
/* Adds one record, as read() gave it or the ring has it. */
void reader_add(struct reader *r, const struct morph_record *record, uint64_t bytes);
struct morph_counts reader_counts(struct reader *r);

/* Over the stream: NULL at its end. */
const struct morph_record *reader_next(const struct reader *r, const struct morph_record *record);

/* Samples of user code of process @tgid, of all that was read. */
uint64_t reader_user_samples(const struct reader *r, uint32_t tgid);

/* Samples in a SAMPLES record. */
static inline uint64_t reader_nr_ips(const struct morph_record *record)
{
	return (record->size - sizeof(struct morph_samples)) / sizeof(uint64_t);
}

/* A child that uses CPU time in user code on @cpu (-1: any) until it is killed. */
int spinner(int cpu);
void spinner_end(int pid);
void sleep_ms(long ms);

_Noreturn void die(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* What does not hold is said, and ends the program badly in finish(). */
extern int nr_failed;
#define EXPECT(cond, ...)                                                                          \
	do {                                                                                       \
		if (!(cond)) {                                                                     \
			printf("FAIL: %s:%d: ", __FILE__, __LINE__);                               \
			printf(__VA_ARGS__);                                                       \
			putchar('\n');                                                             \
			nr_failed++;                                                               \
		}                                                                                  \
	} while (0)
/* @call fails with @error. */
#define EXPECT_ERRNO(call, error)                                                                  \
	do {                                                                                       \
		long ret_ = (long)(call);                                                          \
		int errno_ = ret_ == -1 ? errno : 0;                                               \
		EXPECT(errno_ == (error), "%s: %s, not %s", #call, strerror(errno_), #error);      \
	} while (0)
int finish(void);

#endif
