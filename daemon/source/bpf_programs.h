// SPDX-License-Identifier: Apache-2.0
/*
 * bpf_programs - loads and attaches the BPF programs, and reads their ring. The only user of
 * libbpf.
 *
 * Decides up to which time the ring is complete. bpf_merge interprets the records. Called by
 * source_bpf.
 */
#ifndef MD_BPF_PROGRAMS_H
#define MD_BPF_PROGRAMS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "libprof/base/err.h"

struct md_bpf_programs;

struct md_bpf_request {
	pid_t command;	/* as in md_source_config, and @stack_copies */
	bool registers; /* of user code; 64-bit code only */
	bool stacks;
	bool stack_copies;
};

/*
 * md_bpf_programs_open - load the programs and attach the tracepoints. Return: 0, or -errno with a
 * message that names what is missing. -ENOTSUP: built without BPF, or the kernel is too old for
 * stacks.
 */
int md_bpf_programs_open(const struct md_bpf_request *request, struct md_bpf_programs **out,
			 struct mp_err *err);
void md_bpf_programs_close(struct md_bpf_programs *programs);

/* Return: descriptor of the program to attach to a perf event on each CPU. */
int md_bpf_programs_sampler(const struct md_bpf_programs *programs);
/*
 * Return: a descriptor, edge-triggered, that becomes readable when the ring fills up before the
 * usual poll.
 */
int md_bpf_programs_fd(const struct md_bpf_programs *programs);
/*
 * @on: the next exec makes the descriptor readable, whatever the ring holds. Applies to one
 * exec.
 */
void md_bpf_programs_sleep(struct md_bpf_programs *programs, bool on);
uint32_t md_bpf_programs_nr_cpus(const struct md_bpf_programs *programs);

/*
 * md_bpf_programs_complete_until_ns - the time up to which every CPU's events are in the ring. It never
 * goes back. @all: sampling has stopped; flush all stages.
 */
uint64_t md_bpf_programs_complete_until_ns(struct md_bpf_programs *programs, bool all);

struct md_source_rows;

/* Gives rows to the walks, if there are stacks. Return: as md_bpf_rows_give(). */
int md_bpf_programs_give_rows(struct md_bpf_programs *programs, const struct md_source_rows *rows);

struct md_bpf_totals {
	uint64_t nr_samples; /* samples taken, including lost ones */
	uint64_t nr_lost, nr_lost_events;
};
/* Totals since the start, with the losses up to the last limit. */
struct md_bpf_totals md_bpf_programs_totals(const struct md_bpf_programs *programs);

/* Calls @take for each record in the ring. Return: 0, or the first -errno of @take. */
int md_bpf_programs_read(struct md_bpf_programs *programs,
			 int (*take)(void *arg, void *record, size_t size), void *arg);

#endif
