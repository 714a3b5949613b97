// SPDX-License-Identifier: Apache-2.0
/*
 * perf_decode - converts the records of the perf subsystem, which come in time order, to
 * records of the ABI.
 *
 * Samples of one thread on one CPU form a batch. A batch is closed before any event of its
 * process, so that it never spans one. Idle samples are dropped. Called by source_perf, and by
 * bpf_merge for what comes through perf.
 */
#ifndef MD_PERF_DECODE_H
#define MD_PERF_DECODE_H

#include <linux/perf_event.h>
#include <stdbool.h>
#include <stdint.h>

#include "daemon/record/record.h"

#define MD_STAGE_IPS   512
#define MD_STAGE_WORDS 4096 /* words in a REGISTERS record */

/* The kind of records in a ring. A loss in the ring is a loss of this kind. */
enum md_perf_loss {
	MD_PERF_LOSS_ANY,     /* samples, or events of processes and mappings */
	MD_PERF_LOSS_SAMPLES, /* the events have a ring of their own */
	MD_PERF_LOSS_EVENTS,
};

/* Samples of one CPU that are not in a record yet. */
struct md_perf_stage {
	enum md_perf_loss loss;
	uint32_t tgid, tid, cpu, nr;
	uint64_t time_ns;
	uint64_t throttled_ns; /* time since which the event is throttled; 0: it is not */
	uint64_t lost;	       /* samples that LOST records reported so far */
	uint64_t ips[MD_STAGE_IPS];
	uint32_t nr_words; /* words of REGISTERS entries, for some of the samples */
	uint64_t *words;   /* MD_STAGE_WORDS, part of the decoder's; NULL: not requested */
};

struct md_perf_decoder {
	bool has_branches;
	bool has_extra;	    /* samples are followed by branches or registers */
	uint32_t registers; /* requested user registers, bit n: register n; 0: none */
	uint8_t nr_registers;
	uint32_t stack_words;		   /* behind them */
	uint64_t *words;		   /* for all stages */
	uint8_t from[MORPH_REG_FLAGS + 1]; /* index of perf's value for the n-th of them */
	bool stacks;			   /* samples carry all registers and a copy of the stack */
	uint64_t user_mask;		   /* registers in each sample, as perf numbers them */
	bool mappings_only;		   /* samples and process events come from elsewhere */
	uint32_t rate_hz;
	uint32_t nr_stages;
	struct md_perf_stage *stages; /* one per ring */
	struct md_buf out;
	bool lost_events; /* a LOST record came: mappings must be read from /proc again */
	/*
	 * While /proc is read, each process is read at another moment. Samples from before
	 * @start_ns are dropped. Samples from @scan_begin_ns to @scan_end_ns belong to an unknown
	 * process.
	 */
	uint64_t start_ns, scan_begin_ns, scan_end_ns;
	bool failed; /* no memory for a record */
};

int md_perf_decoder_init(struct md_perf_decoder *decoder, uint32_t nr_rings, uint32_t rate_hz,
			 bool has_branches);
/* Samples carry these registers. Return: 0 or -ENOMEM. */
int md_perf_decoder_want_registers(struct md_perf_decoder *decoder, uint32_t registers);
/* Samples carry copies of the stack. Call before md_perf_decoder_want_registers(). */
void md_perf_decoder_want_stacks(struct md_perf_decoder *decoder);
void md_perf_decoder_fini(struct md_perf_decoder *decoder);

/* Return: time at which the kernel wrote @record; 0: the record is too short. */
uint64_t md_perf_record_time(const struct perf_event_header *record);
/* Converts @record of ring @ring and adds the result to decoder->out. Ignores unknown records. */
void md_perf_decode(struct md_perf_decoder *decoder, uint32_t ring,
		    const struct perf_event_header *record);
/* Adds a sample that does not continue its stage's batch. */
void md_perf_decoder_begin(struct md_perf_decoder *decoder, uint32_t stage, uint32_t cpu,
			   uint32_t tgid, uint32_t tid, uint64_t time_ns, uint64_t ip);

/* Adds one sample of CPU @cpu to stage @stage_nr, in time order with the other records. */
static inline void md_perf_decoder_add_sample(struct md_perf_decoder *d, uint32_t stage_nr,
					      uint32_t cpu, uint32_t tgid, uint32_t tid,
					      uint64_t time_ns, uint64_t ip)
{
	struct md_perf_stage *stage = &d->stages[stage_nr];

	if (stage->nr && stage->nr < MD_STAGE_IPS && stage->tid == tid && stage->tgid == tgid &&
	    time_ns >= d->start_ns && time_ns >= d->scan_end_ns)
		stage->ips[stage->nr++] = ip;
	else
		md_perf_decoder_begin(d, stage_nr, cpu, tgid, tid, time_ns, ip);
}

/*
 * Adds STACK or USER_STACK, of the sample that was added to stage @stage_nr last, and ends its batch.
 * A stack whose sample was not counted for its process is dropped. @is_again: another one of the
 * same sample.
 */
void md_perf_decoder_add_stack(struct md_perf_decoder *decoder, uint32_t stage_nr,
			       const struct morph_task *stack, bool is_again);
/* Adds a record of the ABI: EXEC, COMM, FORK or EXIT. */
void md_perf_decoder_add_event(struct md_perf_decoder *decoder, const struct morph_task *task);
/* Closes every batch. */
void md_perf_decoder_flush(struct md_perf_decoder *decoder);

#endif
