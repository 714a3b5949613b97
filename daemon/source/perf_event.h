// SPDX-License-Identifier: Apache-2.0
/*
 * perf_event - opens one perf event with its ring on every CPU. Called by source_perf and
 * source_bpf.
 *
 * Decides which event counts: hardware cycles with branch stacks, hardware cycles, or the CPU
 * clock, the first that the machine offers. Records stay in the rings; the sources read them in
 * time order.
 */
#ifndef MD_PERF_EVENT_H
#define MD_PERF_EVENT_H

#include <linux/perf_event.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "daemon/source/cpus.h"
#include "libprof/base/err.h"

struct md_perf_ring {
	int fd;
	uint32_t cpu;
	bool is_off;	      /* its CPU is offline; older records may still be in the ring */
	bool is_new;	      /* opened by md_perf_events_follow(); the caller clears it */
	uint64_t enabled_ns;  /* enabled time when it was last read */
	uint64_t lost_before; /* lost records of the event that this one replaced */
	struct perf_event_mmap_page *page; /* NULL: not mapped */
	size_t map_size;
	uint8_t *data;
	uint64_t mask;	  /* size of the data - 1 */
	uint64_t tail;	  /* first byte not consumed */
	uint64_t head;	  /* end of what may be read */
	uint8_t *wrapped; /* copy of a record that wraps around; grown as needed */
	size_t wrapped_size;
};

struct md_perf_events {
	struct md_perf_ring *rings;
	uint32_t nr_rings, max_rings; /* there may be more if CPUs come online later */
	uint32_t rate_hz;
	bool has_branches;
	bool has_kernel; /* samples the kernel too */
	char event[32];
	char why[160];
	/* how the events are opened */
	struct perf_event_attr attr;
	size_t ring_pages;
	pid_t command;
	int prog_fd; /* -1: none */
	bool is_on;
	/* CPUs that are online */
	int online_fd;
	struct md_cpu_list online;
	uint64_t probe_ns; /* time of the last check whether the events are alive */
};

enum md_perf_content {
	MD_PERF_ALL,
	MD_PERF_SAMPLES,
	MD_PERF_EVENTS,	  /* processes and mappings; nothing is sampled */
	MD_PERF_MAPPINGS, /* a BPF program takes the samples */
};

struct md_perf_request {
	uint32_t rate_hz; /* 0: the event's default */
	pid_t command;	/* 0: all processes; else this one, from its next exec, and its children */
	bool no_kernel; /* only samples of user code */
	enum md_perf_content content;
	uint32_t registers; /* user registers, bit n: register n as in morph_abi.h; 0: none */
	bool stacks;	    /* copy a piece of the user stack with each sample */
};

/* Return: 0, -EACCES with a message that says what to do, -errno. */
int md_perf_events_open(const struct md_perf_request *request, struct md_perf_events *out,
			struct mp_err *err);
void md_perf_events_close(struct md_perf_events *events);
/* Starts or stops counting. A command's events start by themselves at its exec. */
int md_perf_events_switch(struct md_perf_events *events, bool on, struct mp_err *err);
/*
 * md_perf_events_follow - open events on CPUs that came online, replacing older events there.
 * Only for events of the whole machine; a command's events survive. Call it each time after the
 * limit of completeness was determined: @missed says that mappings made since may have been
 * missed. Return: 0, -errno.
 */
int md_perf_events_follow(struct md_perf_events *events, bool *missed, struct mp_err *err);
/* Delivers the samples to the BPF program @prog_fd. */
int md_perf_events_attach(struct md_perf_events *events, int prog_fd, struct mp_err *err);
/* Return: true if this machine has branch stacks and the caller may use them. */
bool md_perf_has_branches(void);
/* Return: true if the kernel allows sampling the user code of the whole machine. */
bool md_perf_allows_all(void);

/* Reads how far the kernel has written. */
void md_perf_ring_refresh(struct md_perf_ring *ring);
/* Return: the next record, or NULL. Valid until md_perf_ring_advance(). */
const struct perf_event_header *md_perf_ring_peek(struct md_perf_ring *ring);
void md_perf_ring_advance(struct md_perf_ring *ring, const struct perf_event_header *record);
/* Returns the space of consumed records to the kernel. */
void md_perf_ring_release(struct md_perf_ring *ring);
/*
 * Gives the number of records that the kernel could not write. Return: false: this kernel does
 * not say.
 */
bool md_perf_ring_lost(const struct md_perf_ring *ring, uint64_t *nr);

#endif
