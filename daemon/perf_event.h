// SPDX-License-Identifier: Apache-2.0
/*
 * perf_event - one perf event and its ring on every CPU.
 *
 * Decides which event counts: hardware cycles with branch stacks, hardware cycles,
 * or the CPU clock, the first that the machine has, and says why. Records are left
 * in the rings, to be looked at in time order by source_perf.
 */
#ifndef MD_PERF_EVENT_H
#define MD_PERF_EVENT_H

#include <linux/perf_event.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "daemon/cpus.h"
#include "libprof/err.h"

struct md_perf_ring {
	int fd;
	uint32_t cpu;
	bool is_off;	     /* its CPU is; what it had written is still there */
	bool is_new;	     /* opened by md_perf_events_follow(); for the caller to take note of */
	uint64_t enabled_ns; /* that it was switched on, when that was looked at last */
	uint64_t lost_before;		   /* records of events that this one took the place of */
	struct perf_event_mmap_page *page; /* NULL: not mapped */
	size_t map_size;
	uint8_t *data;
	uint64_t mask;	  /* data bytes - 1 */
	uint64_t tail;	  /* first byte not consumed */
	uint64_t head;	  /* end of what may be read */
	uint8_t *wrapped; /* copy of a record that wraps around; grown as needed */
	size_t wrapped_size;
};

struct md_perf_events {
	struct md_perf_ring *rings;
	uint32_t nr_rings, max_rings; /* more where CPUs come online later */
	uint32_t rate_hz;
	bool has_branches;
	bool has_kernel; /* kernel samples too */
	char event[32];
	char why[160];
	/* As the events are opened. */
	struct perf_event_attr attr;
	size_t ring_pages;
	pid_t command;
	int prog_fd; /* -1: none */
	bool is_on;
	/* Which CPUs are. */
	int online_fd;
	struct md_cpu_list online;
	uint64_t probe_ns; /* when it was looked at last whether the events are alive */
};

struct md_perf_request {
	uint32_t rate_hz; /* 0: what suits the event */
	pid_t command;	/* 0: all processes; else this one, from its next exec, and its children */
	bool no_kernel; /* user samples only */
	bool mappings_only; /* in the rings; a BPF program takes the samples */
	uint16_t registers; /* of user code, bit n: register n as in morph_abi.h; 0: none */
};

/* The registers as perf numbers them: register n is bit md_perf_reg(n). */
uint32_t md_perf_reg(uint32_t reg);

/* Return: 0, -EACCES with a message that says what to do, -errno. */
int md_perf_events_open(const struct md_perf_request *request, struct md_perf_events *out,
			struct mp_err *err);
void md_perf_events_close(struct md_perf_events *events);
/* Starts or stops counting (a command's events start by themselves, at its exec). */
int md_perf_events_switch(struct md_perf_events *events, bool on, struct mp_err *err);
/*
 * md_perf_events_follow - opens events on CPUs that came online, in place of those they had before.
 * Of the whole machine: a command's events go on by themselves. To be called each time that what
 * is complete was settled: then @missed says that what was mapped since may not have been seen.
 * Return: 0, -errno.
 */
int md_perf_events_follow(struct md_perf_events *events, bool *missed, struct mp_err *err);
/* Lets the BPF program @prog_fd have the samples. */
int md_perf_events_attach(struct md_perf_events *events, int prog_fd, struct mp_err *err);
/* True where this machine's processor says which branches were taken, and we may ask. */
bool md_perf_has_branches(void);
/* True where the kernel lets us sample the user code of the whole machine. */
bool md_perf_allows_all(void);

/* Sees what the kernel has written by now. */
void md_perf_ring_refresh(struct md_perf_ring *ring);
/* The next record, or NULL. Valid until md_perf_ring_advance(). */
const struct perf_event_header *md_perf_ring_peek(struct md_perf_ring *ring);
void md_perf_ring_advance(struct md_perf_ring *ring, const struct perf_event_header *record);
/* Gives what was consumed back to the kernel. */
void md_perf_ring_release(struct md_perf_ring *ring);
/* Records that the kernel could not write in all; false: this kernel does not say. */
bool md_perf_ring_lost(const struct md_perf_ring *ring, uint64_t *nr);

#endif
