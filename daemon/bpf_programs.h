// SPDX-License-Identifier: Apache-2.0
/*
 * bpf_programs - the BPF programs in the kernel: loaded, attached, read from.
 *
 * The only user of libbpf. Knows when everything up to some moment has come; what the
 * records say is bpf_merge's business. Called by source_bpf.
 */
#ifndef MD_BPF_PROGRAMS_H
#define MD_BPF_PROGRAMS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "libprof/err.h"

struct md_bpf_programs;

/*
 * md_bpf_programs_open - load them and attach the tracepoints; @command as in md_source_config.
 * Return: 0, or -errno with a reason that names what is missing. -ENOTSUP: not in this build.
 */
int md_bpf_programs_open(pid_t command, struct md_bpf_programs **out, struct mp_err *err);
void md_bpf_programs_close(struct md_bpf_programs *programs);

/* To be attached to a perf event on each CPU. */
int md_bpf_programs_sampler(const struct md_bpf_programs *programs);
/* Ready for reading, seen by edge, when the ring fills up before the usual look at it. */
int md_bpf_programs_fd(const struct md_bpf_programs *programs);
/* Whether the next exec makes it ready, whatever the ring holds; for one exec. */
void md_bpf_programs_sleep(struct md_bpf_programs *programs, bool on);
uint32_t md_bpf_programs_nr_cpus(const struct md_bpf_programs *programs);

/*
 * md_bpf_programs_limit - what happened up to the returned time is in the ring, on each CPU. Never
 * less than the last one. @all: sampling has stopped, and everything is to be in the ring.
 */
uint64_t md_bpf_programs_limit(struct md_bpf_programs *programs, bool all);

struct md_bpf_totals {
	uint64_t nr_samples; /* taken, lost ones included */
	uint64_t nr_lost, nr_lost_events;
};
/* Since the start; what was lost up to the last limit is in. */
struct md_bpf_totals md_bpf_programs_totals(const struct md_bpf_programs *programs);

/* Calls @take for each record in the ring. Return: 0, or the first -errno of @take. */
int md_bpf_programs_read(struct md_bpf_programs *programs,
			 int (*take)(void *arg, void *record, size_t size), void *arg);

#endif
