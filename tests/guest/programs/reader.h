/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reader - reads /dev/morphmon as its header describes, independently of morphd. All programs
 * of the guest use it. An unexpected failure ends the program with a message.
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
	uint64_t given; /* bytes of the open record that were already taken */
};

struct reader {
	int fd;
	uint32_t flags; /* for START */
	struct morph_hello hello;
	struct reader_ring rings[READER_CPUS]; /* @head is NULL: no ring */
	/* All records read so far; those of one ring are in order. */
	uint8_t *stream;
	size_t bytes, room;
	/* Counts of the stream. @lost: sum of the LOST records; the others exclude PAD and LOST. */
	uint64_t nr_samples, nr_events, nr_by_cpu[READER_CPUS], lost;
	bool lost_state;
};

/* If LAZY is in the environment, START uses MORPH_START_LAZY. */
void reader_open(struct reader *r);
void reader_close(struct reader *r);
/* @rate_hz 0, @mode -1: the module's default. */
void reader_start(struct reader *r, uint32_t rate_hz, int mode, uint32_t wake_bytes);
void reader_stop(struct reader *r);
/* Maps rings that are not mapped yet. */
void reader_map(struct reader *r);
/* Takes all records. Call reader_map() first, and again when CPUs may come online. */
void reader_take(struct reader *r);
/* Adds one record, from read() or from a ring. */
void reader_add(struct reader *r, const struct morph_record *record, uint64_t bytes);
struct morph_counts reader_counts(struct reader *r);

/* Iterates over the stream. Return: NULL at its end. */
const struct morph_record *reader_next(const struct reader *r, const struct morph_record *record);

/* Return: samples of process @tgid in user code, in all that was read. */
uint64_t reader_user_samples(const struct reader *r, uint32_t tgid);

/* Return: number of samples in a SAMPLES record. */
static inline uint64_t reader_nr_ips(const struct morph_record *record)
{
	return (record->size - sizeof(struct morph_samples)) / sizeof(uint64_t);
}

/* Starts a child that uses CPU time in user code on @cpu (-1: any) until it is killed. */
int spinner(int cpu);
void spinner_end(int pid);
void sleep_ms(long ms);

_Noreturn void die(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Prints a message if @cond is false; finish() then returns failure. */
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
/* Expects @call to fail with @error; 0: to succeed. */
#define EXPECT_ERRNO(call, error)                                                                  \
	do {                                                                                       \
		long ret_ = (long)(call);                                                          \
		int errno_ = ret_ == -1 ? errno : 0;                                               \
		EXPECT(errno_ == (error), "%s: %s, not %s", #call, strerror(errno_), #error);      \
	} while (0)
int finish(void);

#endif
