// SPDX-License-Identifier: Apache-2.0
/*
 * perf_decode - records of the perf subsystem, in time order, as records of ours.
 *
 * Samples of one thread on one CPU are gathered into batches; a batch is closed
 * before any event of its process, so that it never straddles one. Idle is dropped
 * and not counted. Called by source_perf, and by bpf_merge for what perf adds there.
 */
#ifndef MD_PERF_DECODE_H
#define MD_PERF_DECODE_H

#include <linux/perf_event.h>
#include <stdbool.h>
#include <stdint.h>

#include "daemon/record.h"

#define MD_STAGE_IPS   512
#define MD_STAGE_WORDS 4096 /* of a REGISTERS record */

/* The samples of one CPU that are not in a record yet. */
struct md_perf_stage {
	uint32_t tgid, tid, cpu, nr;
	uint64_t time_ns;
	uint64_t throttled_ns; /* since when; 0: not */
	uint64_t lost;	       /* said by LOST records so far */
	uint64_t ips[MD_STAGE_IPS];
	uint32_t nr_words; /* of entries of REGISTERS, for some of the samples */
	uint64_t *words;   /* MD_STAGE_WORDS, of the decoder's; NULL: they are not asked for */
};

struct md_perf_decoder {
	bool has_branches;
	bool has_rest; /* something stands behind what every sample has: branches or registers */
	uint16_t registers; /* of user code are asked for, bit n: register n; 0: none */
	uint8_t nr_registers;
	uint64_t *words;	     /* of all stages */
	uint8_t from[MORPH_NR_REGS]; /* where perf has the value of the n-th of them */
	bool mappings_only;	     /* samples and what processes do comes otherwise */
	uint32_t rate_hz;
	uint32_t nr_stages;
	struct md_perf_stage *stages; /* one for each ring */
	struct md_buf out;
	bool lost_events; /* a LOST was seen: mappings must be looked up anew */
	/*
	 * While /proc is looked through, each process is seen at another moment. Samples from
	 * before @start_ns are none; those from @blind_ns on, to @seen_ns, are of no process.
	 */
	uint64_t start_ns, blind_ns, seen_ns;
	bool failed; /* no memory for a record */
};

int md_perf_decoder_init(struct md_perf_decoder *decoder, uint32_t nr_rings, uint32_t rate_hz,
			 bool has_branches);
/* Samples come with these. Return: 0 or -ENOMEM. */
int md_perf_decoder_want_registers(struct md_perf_decoder *decoder, uint16_t registers);
void md_perf_decoder_fini(struct md_perf_decoder *decoder);

/* When the kernel wrote @record; 0 where it is too short to say. */
uint64_t md_perf_record_time(const struct perf_event_header *record);
/* Adds what @record of ring @ring says to decoder->out. Unknown records are passed over. */
void md_perf_decode(struct md_perf_decoder *decoder, uint32_t ring,
		    const struct perf_event_header *record);
/* A sample that does not simply go on with its stage's batch. */
void md_perf_decoder_begin(struct md_perf_decoder *decoder, uint32_t stage, uint32_t cpu,
			   uint32_t tgid, uint32_t tid, uint64_t time_ns, uint64_t ip);

/* One sample, in time order with what else is decoded, of CPU @cpu and in stage @stage. */
static inline void md_perf_decoder_add_sample(struct md_perf_decoder *d, uint32_t stage_nr,
					      uint32_t cpu, uint32_t tgid, uint32_t tid,
					      uint64_t time_ns, uint64_t ip)
{
	struct md_perf_stage *stage = &d->stages[stage_nr];

	if (stage->nr && stage->nr < MD_STAGE_IPS && stage->tid == tid && stage->tgid == tgid &&
	    time_ns >= d->start_ns && time_ns >= d->seen_ns)
		stage->ips[stage->nr++] = ip;
	else
		md_perf_decoder_begin(d, stage_nr, cpu, tgid, tid, time_ns, ip);
}

/* A record of ours: EXEC, COMM, FORK or EXIT. */
void md_perf_decoder_add_event(struct md_perf_decoder *decoder, const struct morph_task *task);
/* Closes every batch. */
void md_perf_decoder_flush(struct md_perf_decoder *decoder);

#endif
