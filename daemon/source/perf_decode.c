// SPDX-License-Identifier: Apache-2.0
/* perf_decode - converts perf's records; see perf_decode.h. */
#include "daemon/source/perf_decode.h"

#include <errno.h>
#include <limits.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/source/perf_stack.h"

/* Layout behind the header, for the sample_type that perf_event sets. */
struct sample_body {
	uint64_t ip;
	uint32_t pid, tid;
	uint64_t time;
	uint32_t cpu, reserved;
};

/* At the end of every other record (sample_id_all). */
struct sample_id {
	uint32_t pid, tid;
	uint64_t time;
	uint32_t cpu, reserved;
};

struct comm_body {
	uint32_t pid, tid;
	char comm[];
};

struct mmap2_body {
	uint32_t pid, tid;
	uint64_t addr, len, pgoff;
	uint32_t major, minor;
	uint64_t ino, ino_generation;
	uint32_t prot, flags;
	char path[];
};

struct fork_body {
	uint32_t pid, ppid, tid, ptid;
	uint64_t time;
};

struct lost_body {
	uint64_t id, lost;
};

#define NO_PID UINT32_MAX /* perf's pid of a task that has exited */

int md_perf_decoder_init(struct md_perf_decoder *d, uint32_t nr_rings, uint32_t rate_hz,
			 bool has_branches)
{
	memset(d, 0, sizeof(*d));
	d->stages = calloc(nr_rings ? nr_rings : 1, sizeof(d->stages[0]));
	if (!d->stages)
		return -ENOMEM;
	d->nr_stages = nr_rings;
	d->rate_hz = rate_hz;
	d->has_branches = d->has_extra = has_branches;
	return 0;
}

int md_perf_decoder_want_registers(struct md_perf_decoder *d, uint32_t registers)
{
	uint32_t reg, i;

	d->registers = registers;
	d->user_mask = md_perf_user_mask(registers, d->stacks);
	d->has_extra |= registers != 0;
	d->nr_registers = 0;
	for (reg = 0; reg <= MORPH_REG_FLAGS; reg++)
		if (registers >> reg & 1)
			d->from[d->nr_registers++] = (uint8_t)md_perf_reg_index(d->user_mask, reg);
	d->words = calloc(d->nr_stages, MD_STAGE_WORDS * sizeof(d->words[0]));
	if (!d->words)
		return -ENOMEM;
	for (i = 0; i < d->nr_stages; i++)
		d->stages[i].words = d->words + (size_t)i * MD_STAGE_WORDS;
	return 0;
}

void md_perf_decoder_want_stacks(struct md_perf_decoder *d)
{
	d->stacks = d->has_extra = true;
	d->user_mask = md_perf_user_mask(0, true);
}

void md_perf_decoder_fini(struct md_perf_decoder *d)
{
	free(d->words);
	free(d->stages);
	md_buf_fini(&d->out);
	memset(d, 0, sizeof(*d));
}

uint64_t md_perf_record_time(const struct perf_event_header *record)
{
	const char *bytes = (const char *)record;
	uint64_t time;

	if (record->type == PERF_RECORD_SAMPLE) {
		if (record->size < sizeof(*record) + sizeof(struct sample_body))
			return 0;
		memcpy(&time, bytes + sizeof(*record) + offsetof(struct sample_body, time),
		       sizeof(time));
		return time;
	}
	if (record->size < sizeof(*record) + sizeof(struct sample_id))
		return 0;
	memcpy(&time,
	       bytes + record->size - sizeof(struct sample_id) + offsetof(struct sample_id, time),
	       sizeof(time));
	return time;
}

static void close_registers(struct md_perf_decoder *d, struct md_perf_stage *stage)
{
	struct morph_registers *r;

	r = md_record_add_task(&d->out, MORPH_REC_REGISTERS,
			       sizeof(*r) + stage->nr_words * sizeof(stage->words[0]),
			       stage->time_ns, stage->tgid, stage->tid);
	if (r) {
		r->task.record.cpu = stage->cpu;
		r->registers = d->registers;
		memcpy(r->entries, stage->words, stage->nr_words * sizeof(stage->words[0]));
	} else {
		d->failed = true;
	}
	stage->nr_words = 0;
}

static void close_stage(struct md_perf_decoder *d, struct md_perf_stage *stage)
{
	struct morph_samples *samples;

	if (!stage->nr)
		return;
	samples = md_record_add_task(&d->out, MORPH_REC_SAMPLES,
				     sizeof(*samples) + stage->nr * sizeof(stage->ips[0]),
				     stage->time_ns, stage->tgid, stage->tid);
	if (samples) {
		samples->task.record.cpu = stage->cpu;
		memcpy(samples->ips, stage->ips, stage->nr * sizeof(stage->ips[0]));
	} else {
		d->failed = true;
	}
	stage->nr = 0;
	if (stage->nr_words)
		close_registers(d, stage);
}

void md_perf_decoder_flush(struct md_perf_decoder *d)
{
	uint32_t i;

	for (i = 0; i < d->nr_stages; i++)
		close_stage(d, &d->stages[i]);
}

/* Closes batches of @tgid, whose samples came before the next event. */
static void close_process(struct md_perf_decoder *d, uint32_t tgid)
{
	uint32_t i;

	for (i = 0; i < d->nr_stages; i++)
		if (d->stages[i].tgid == tgid)
			close_stage(d, &d->stages[i]);
}

/* Return: size of the branch stack; @room if it is malformed. */
static size_t decode_branches(struct md_perf_decoder *d, const struct sample_body *body,
			      const uint8_t *data, size_t room)
{
	struct morph_branches *branches;
	uint64_t nr, entry[3], i;

	if (room < sizeof(nr))
		return room;
	memcpy(&nr, data, sizeof(nr));
	data += sizeof(nr);
	room -= sizeof(nr);
	if (!nr)
		return sizeof(nr);
	if (nr > room / sizeof(entry) || nr > 1024)
		return room + sizeof(nr);
	branches = md_record_add_task(&d->out, MORPH_REC_BRANCHES,
				      sizeof(*branches) + nr * sizeof(branches->branches[0]),
				      body->time, body->pid, body->tid);
	if (!branches) {
		d->failed = true;
		return room + sizeof(nr);
	}
	branches->task.record.cpu = body->cpu;
	for (i = 0; i < nr; i++) {
		memcpy(entry, data + i * sizeof(entry), sizeof(entry));
		branches->branches[i].from = entry[0];
		branches->branches[i].to = entry[1];
	}
	return sizeof(nr) + nr * sizeof(entry);
}

/* An entry was written: makes room for the next one. */
static void end_entry(struct md_perf_decoder *d, struct md_perf_stage *stage)
{
	stage->nr_words += 1 + d->nr_registers;
	if (MD_STAGE_WORDS - stage->nr_words < 2u + MORPH_REG_FLAGS)
		close_stage(d, stage);
}

/*
 * Adds registers of the sample that was added last. For a sample in the kernel, perf gives the
 * registers that user code had on entry; these do not belong to the sampled address.
 */
static void decode_registers(struct md_perf_decoder *d, struct md_perf_stage *stage, uint64_t ip,
			     const uint8_t *data, size_t room)
{
	uint64_t abi, *word;
	uint32_t i;

	if (room < sizeof(abi) || ip >> 63 || !stage->nr)
		return;
	memcpy(&abi, data, sizeof(abi));
	if (abi != PERF_SAMPLE_REGS_ABI_64 ||
	    (room - sizeof(abi)) / sizeof(*word) < (size_t)__builtin_popcountll(d->user_mask))
		return;
	data += sizeof(abi);
	word = &stage->words[stage->nr_words];
	*word++ = ip;
	for (i = 0; i < d->nr_registers; i++)
		memcpy(word++, data + d->from[i] * sizeof(*word), sizeof(*word));
	end_entry(d, stage);
}

void md_perf_decoder_begin(struct md_perf_decoder *d, uint32_t stage_nr, uint32_t cpu,
			   uint32_t tgid, uint32_t tid, uint64_t time_ns, uint64_t ip)
{
	struct md_perf_stage *stage = &d->stages[stage_nr];

	if (time_ns < d->start_ns)
		return;
	if (time_ns >= d->scan_begin_ns && time_ns < d->scan_end_ns)
		tgid = tid = NO_PID;
	if (stage->nr && (stage->tid != tid || stage->tgid != tgid || stage->nr == MD_STAGE_IPS))
		close_stage(d, stage);
	if (!stage->nr) {
		stage->tgid = tgid;
		stage->tid = tid;
		stage->cpu = cpu;
		stage->time_ns = time_ns;
	}
	stage->ips[stage->nr++] = ip;
}

/* Adds the stack of the sample that was added last, and ends its batch. */
static void decode_stack(struct md_perf_decoder *d, struct md_perf_stage *stage,
			 const struct sample_body *body, const uint8_t *data, size_t room)
{
	struct morph_user_stack *record;
	struct md_perf_user user;

	if (!md_perf_read_user(data, room, d->user_mask, &user))
		return;
	close_stage(d, stage);
	record = md_record_add_task(&d->out, MORPH_REC_USER_STACK, sizeof(*record) + user.size,
				    body->time, body->pid, body->tid);
	if (!record) {
		d->failed = true;
		return;
	}
	record->task.record.cpu = body->cpu;
	record->task.flags = body->ip >> 63 ? MORPH_USER_STACK_KERNEL : 0;
	record->ip = user.ip;
	memcpy(record->registers, user.registers, sizeof(record->registers));
	record->nr = (uint32_t)user.size;
	record->below = 0;
	memcpy(record->bytes, user.stack, user.size);
}

static void decode_rest(struct md_perf_decoder *d, struct md_perf_stage *stage,
			const struct sample_body *body, const uint8_t *rest, size_t room)
{
	size_t size = d->has_branches ? decode_branches(d, body, rest, room) : 0;
	bool is_known = stage->nr && stage->tgid != NO_PID; /* registers may end the batch */

	if (d->registers && body->time >= d->start_ns)
		decode_registers(d, stage, body->ip, rest + size, room - size);
	if (d->stacks && is_known && body->time >= d->start_ns)
		decode_stack(d, stage, body, rest + size, room - size);
}

static void decode_sample(struct md_perf_decoder *d, uint32_t ring, const struct sample_body *body,
			  const uint8_t *rest, size_t room)
{
	if (!body->pid)
		return; /* the idle task */
	md_perf_decoder_add_sample(d, ring, body->cpu, body->pid, body->tid, body->time, body->ip);
	if (d->has_extra)
		decode_rest(d, &d->stages[ring], body, rest, room);
}

/* Return: length of the string at the end of a record, before its sample_id. */
static size_t text_len(const char *text, size_t room)
{
	return room < sizeof(struct sample_id) ? 0 : strnlen(text, room - sizeof(struct sample_id));
}

static void decode_comm(struct md_perf_decoder *d, const struct comm_body *body, size_t room,
			bool is_exec, uint64_t time)
{
	size_t len = text_len(body->comm, room - sizeof(*body));
	struct morph_exec *exec;
	struct morph_comm *comm;

	if (body->pid == NO_PID)
		return;
	close_process(d, body->pid);
	if (is_exec) {
		exec = md_record_add_task(&d->out, MORPH_REC_EXEC, sizeof(*exec), time, body->pid,
					  body->tid);
		if (exec)
			exec->nr_threads = 1;
		else
			d->failed = true;
	}
	comm = md_record_add_task(&d->out, MORPH_REC_COMM, sizeof(*comm), time, body->pid,
				  body->tid);
	if (comm)
		memcpy(comm->comm, body->comm, len < MORPH_COMM_LEN ? len : MORPH_COMM_LEN - 1);
	else
		d->failed = true;
}

static void decode_mmap(struct md_perf_decoder *d, const struct mmap2_body *body, size_t room,
			uint64_t time)
{
	size_t len = text_len(body->path, room - sizeof(*body));
	struct morph_mmap *mmap;
	char path[PATH_MAX];

	/* A record's mapping must not wrap around, nor its part of the file. */
	if (body->pid == NO_PID || !body->len || body->addr >> 63 || body->len >> 63 ||
	    body->pgoff + body->len <= body->pgoff)
		return;
	if (len >= sizeof(path))
		len = sizeof(path) - 1;
	memcpy(path, body->path, len);
	path[len] = 0;
	close_process(d, body->pid);
	mmap = md_record_add_mmap(&d->out, time, body->pid, body->tid, path);
	if (!mmap) {
		d->failed = true;
		return;
	}
	mmap->start = body->addr;
	mmap->len = body->len;
	mmap->off = body->pgoff;
	mmap->dev_major = body->major;
	mmap->dev_minor = body->minor;
	mmap->ino = body->ino;
	mmap->ino_generation = body->ino_generation;
	mmap->task.flags = MORPH_MMAP_GENERATION;
}

static void decode_fork(struct md_perf_decoder *d, const struct fork_body *body)
{
	struct morph_fork *fork;

	if (body->pid == NO_PID || !body->pid)
		return;
	close_process(d, body->pid);
	close_process(d, body->ppid);
	fork = md_record_add_task(&d->out, MORPH_REC_FORK, sizeof(*fork), body->time, body->pid,
				  body->tid);
	if (!fork) {
		d->failed = true;
		return;
	}
	fork->parent_tgid = body->ppid;
	fork->parent_tid = body->ptid;
}

static void decode_exit(struct md_perf_decoder *d, const struct fork_body *body)
{
	if (body->pid == NO_PID || !body->pid)
		return;
	close_process(d, body->pid);
	if (!md_record_add_task(&d->out, MORPH_REC_EXIT, sizeof(struct morph_exit), body->time,
				body->pid, body->tid))
		d->failed = true;
}

void md_perf_decoder_add_event(struct md_perf_decoder *d, const struct morph_task *task)
{
	void *copy;

	close_process(d, task->tgid);
	if (task->record.type == MORPH_REC_FORK)
		close_process(d, ((const struct morph_fork *)task)->parent_tgid);
	copy = md_buf_add(&d->out, task->record.size);
	if (copy)
		memcpy(copy, task, task->record.size);
	else
		d->failed = true;
}

void md_perf_decoder_add_registers(struct md_perf_decoder *d, uint32_t stage_nr,
				   const struct morph_registers *registers)
{
	struct md_perf_stage *stage = &d->stages[stage_nr];

	if (!stage->nr || registers->task.time_ns < d->start_ns)
		return;
	memcpy(&stage->words[stage->nr_words], registers->entries,
	       (1 + d->nr_registers) * sizeof(stage->words[0]));
	end_entry(d, stage);
}

void md_perf_decoder_add_stack(struct md_perf_decoder *d, uint32_t stage_nr,
			       const struct morph_task *stack, bool is_again)
{
	struct md_perf_stage *stage = &d->stages[stage_nr];
	void *copy;

	if ((!stage->nr && !is_again) || stage->tgid == NO_PID || stack->time_ns < d->start_ns)
		return;
	close_stage(d, stage);
	copy = md_buf_add(&d->out, stack->record.size);
	if (copy)
		memcpy(copy, stack, stack->record.size);
	else
		d->failed = true;
}

static void decode_lost(struct md_perf_decoder *d, struct md_perf_stage *stage, uint64_t nr,
			uint64_t time)
{
	uint32_t flags = 0;

	if (!nr)
		return;
	md_perf_decoder_flush(d);
	stage->lost += nr;
	if (stage->loss != MD_PERF_LOSS_SAMPLES) {
		d->lost_events = true;
		flags = MORPH_LOST_STATE;
	}
	if (d->mappings_only || stage->loss == MD_PERF_LOSS_EVENTS)
		nr = 0;
	if (!md_record_add_lost(&d->out, time, nr, MORPH_LOST_RING_FULL, flags))
		d->failed = true;
}

/* Computes the missing samples from the time for which the event was off. */
static void decode_throttle(struct md_perf_decoder *d, struct md_perf_stage *stage, bool off,
			    uint64_t time)
{
	uint64_t nr;

	if (off) {
		stage->throttled_ns = time;
		return;
	}
	if (!stage->throttled_ns || time <= stage->throttled_ns)
		return;
	nr = (time - stage->throttled_ns) * d->rate_hz / UINT64_C(1000000000);
	stage->throttled_ns = 0;
	if (nr && !md_record_add_lost(&d->out, time, nr, MORPH_LOST_THROTTLED, 0))
		d->failed = true;
}

void md_perf_decode(struct md_perf_decoder *d, uint32_t ring,
		    const struct perf_event_header *record)
{
	static const size_t min_room[] = {
		[PERF_RECORD_LOST] = sizeof(struct lost_body),
		[PERF_RECORD_COMM] = sizeof(struct comm_body) + sizeof(struct sample_id),
		[PERF_RECORD_EXIT] = sizeof(struct fork_body),
		[PERF_RECORD_THROTTLE] = 24,
		[PERF_RECORD_UNTHROTTLE] = 24,
		[PERF_RECORD_FORK] = sizeof(struct fork_body),
		[PERF_RECORD_MMAP2] = sizeof(struct mmap2_body) + sizeof(struct sample_id),
	};
	const uint8_t *body = (const uint8_t *)(record + 1);
	struct md_perf_stage *stage = &d->stages[ring];
	size_t room = record->size - sizeof(*record);
	uint64_t time;

	/* Samples are by far the most frequent, so handle them first. */
	if (record->type == PERF_RECORD_SAMPLE && room >= sizeof(struct sample_body)) {
		decode_sample(d, ring, (const void *)body, body + sizeof(struct sample_body),
			      room - sizeof(struct sample_body));
		return;
	}
	if (record->type >= sizeof(min_room) / sizeof(min_room[0]) || room < min_room[record->type])
		return;
	/* A request for mappings also delivers FORK and EXIT; ignore these. */
	if (d->mappings_only &&
	    (record->type == PERF_RECORD_FORK || record->type == PERF_RECORD_EXIT))
		return;
	time = md_perf_record_time(record);
	switch (record->type) {
	case PERF_RECORD_COMM:
		decode_comm(d, (const void *)body, room, record->misc & PERF_RECORD_MISC_COMM_EXEC,
			    time);
		break;
	case PERF_RECORD_MMAP2: decode_mmap(d, (const void *)body, room, time); break;
	case PERF_RECORD_FORK: decode_fork(d, (const void *)body); break;
	case PERF_RECORD_EXIT: decode_exit(d, (const void *)body); break;
	case PERF_RECORD_LOST:
		decode_lost(d, stage, ((const struct lost_body *)body)->lost, time);
		break;
	case PERF_RECORD_THROTTLE:
	case PERF_RECORD_UNTHROTTLE:
		decode_throttle(d, stage, record->type == PERF_RECORD_THROTTLE, time);
		break;
	}
}
