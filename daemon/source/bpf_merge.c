// SPDX-License-Identifier: Apache-2.0
/* bpf_merge - sorts samples and events of the BPF ring by time; see bpf_merge.h. */
#include "daemon/source/bpf_merge.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/source/bpf/wire.h"

int md_bpf_merge_init(struct md_bpf_merge *m, uint32_t nr_cpus, uint32_t rate_hz,
		      uint32_t registers)
{
	memset(m, 0, sizeof(*m));
	m->queues = calloc(nr_cpus, sizeof(m->queues[0]));
	if (!m->queues || md_perf_decoder_init(&m->decoder, nr_cpus, rate_hz, false) ||
	    (registers && md_perf_decoder_want_registers(&m->decoder, registers))) {
		md_bpf_merge_fini(m);
		return -ENOMEM;
	}
	m->decoder.mappings_only = true;
	return 0;
}

/* Registers may hold secrets of programs. */
static void free_more(struct morph_task *more)
{
	if (more)
		explicit_bzero(more, more->record.size);
	free(more);
}

void md_bpf_merge_fini(struct md_bpf_merge *m)
{
	uint32_t i;

	for (i = 0; m->queues && i < m->decoder.nr_stages; i++) {
		for (size_t k = m->queues[i].first; k < m->queues[i].nr; k++)
			free_more(m->queues[i].samples[k].more);
		free(m->queues[i].samples);
	}
	free(m->queues);
	free(m->events);
	md_last_stacks_free(m->last);
	md_perf_decoder_fini(&m->decoder);
	memset(m, 0, sizeof(*m));
}

/*
 * Makes room for @more elements of @size bytes at the end of *@array. Its first *@first
 * elements may be dropped. Return: false: no memory.
 */
static bool make_room(void **array, size_t size, size_t more, size_t *first, size_t *nr,
		      size_t *capacity)
{
	size_t wanted = *capacity ? *capacity : 256;
	void *grown;

	if (*capacity - *nr >= more)
		return true;
	if (*first > *capacity / 2) {
		memmove(*array, (char *)*array + *first * size, (*nr - *first) * size);
		*nr -= *first;
		*first = 0;
	}
	while (wanted - *nr < more)
		wanted *= 2;
	if (wanted == *capacity)
		return true;
	grown = reallocarray(*array, wanted, size);
	if (!grown)
		return false;
	*array = grown;
	*capacity = wanted;
	return true;
}

/*
 * Inserts a sample in order. It is out of place only if it came while a batch was being written, or if
 * others of the batch have no stack and its own went straight to the ring.
 */
static int take_sample(struct md_bpf_merge *m, uint32_t cpu, const struct md_bpf_sample *sample)
{
	struct md_bpf_queue *queue = &m->queues[cpu];
	void *array = queue->samples;
	size_t at;

	if (!make_room(&array, sizeof(*sample), 1, &queue->first, &queue->nr, &queue->capacity))
		return -ENOMEM;
	queue->samples = array;
	for (at = queue->nr++; at > queue->first; at--) {
		if (queue->samples[at - 1].time_ns <= sample->time_ns)
			break;
		queue->samples[at] = queue->samples[at - 1];
	}
	queue->samples[at] = *sample;
	m->nr_samples += !sample->is_again;
	return 0;
}

static int take_batch(struct md_bpf_merge *m, const struct md_wire_batch *batch, size_t size)
{
	size_t nr = (size - sizeof(batch->task)) / sizeof(batch->samples[0]), i;
	struct md_bpf_sample sample = {.tgid = batch->task.tgid, .tid = batch->task.tid};
	int ret = 0;

	for (i = 0; !ret && i < nr; i++) {
		sample.time_ns = batch->samples[i].time_ns;
		sample.ip = batch->samples[i].ip;
		ret = take_sample(m, batch->task.record.cpu, &sample);
	}
	return ret;
}

/* Return: flags that say how many of the callers look old. */
static uint32_t flags_of_age(struct md_bpf_merge *m, const struct md_wire_stack *wire, size_t nr)
{
	size_t first = wire->task.flags & MORPH_STACK_USER_IP && nr ? 1 : 0, nr_old, i;
	uint64_t slots[MD_WIRE_STACK_MAX], ips[MD_WIRE_STACK_MAX];
	const struct md_stack stack = {
		.slots = slots,
		.ips = ips,
		.nr = nr - first,
		.is_complete = (wire->task.flags & MORPH_STACK_STOP) == MORPH_STACK_BOTTOM,
	};

	for (i = first; i < nr; i++) {
		slots[i - first] = wire->frames[i].slot;
		ips[i - first] = wire->frames[i].ip;
	}
	/* The ring has a thread's samples in the order in which they were taken. */
	if (!md_last_stacks_compare(m->last, wire->task.tid, &stack, &nr_old))
		return 0;
	return MORPH_STACK_AGED | (uint32_t)nr_old << MORPH_STACK_OLD_SHIFT;
}

/* Return: a copy of @wire as a record of @type and @size, without what follows the task. */
static struct morph_task *copy_task(const struct morph_task *wire, uint16_t type, size_t size)
{
	struct morph_task *copy = malloc(size);

	if (!copy)
		return NULL;
	*copy = *wire;
	copy->record.type = type;
	copy->record.size = (uint16_t)size;
	return copy;
}

static int take_with(struct md_bpf_merge *m, const struct morph_task *wire, uint64_t ip,
		     struct morph_task *more, bool is_again)
{
	const struct md_bpf_sample sample = {
		.time_ns = wire->time_ns,
		.ip = ip,
		.tgid = wire->tgid,
		.tid = wire->tid,
		.more = more,
		.is_again = is_again,
	};
	int ret = more ? take_sample(m, wire->record.cpu, &sample) : -ENOMEM;

	if (ret)
		free_more(more);
	return ret;
}

static int take_stack(struct md_bpf_merge *m, const struct md_wire_stack *wire, size_t size)
{
	size_t nr = (size - offsetof(struct md_wire_stack, frames)) / sizeof(wire->frames[0]), i;
	struct morph_stack *stack;

	if (size < offsetof(struct md_wire_stack, frames) || size > sizeof(*wire))
		return -EBADMSG;
	if (!m->last)
		m->last = md_last_stacks_new();
	if (!m->last)
		return -ENOMEM;
	stack = (void *)copy_task(&wire->task, MORPH_REC_STACK,
				  sizeof(*stack) + nr * sizeof(stack->ips[0]));
	for (i = 0; stack && i < nr; i++)
		stack->ips[i] = wire->frames[i].ip;
	if (stack) {
		stack->task.flags &= ~MD_WIRE_AGAIN;
		stack->task.flags |= flags_of_age(m, wire, nr);
	}
	return take_with(m, &wire->task, wire->ip, (void *)stack, wire->task.flags & MD_WIRE_AGAIN);
}

static int take_copy(struct md_bpf_merge *m, const struct md_wire_copy *wire, size_t size)
{
	const size_t behind_ip = size - offsetof(struct md_wire_copy, user_ip);
	struct morph_task *copy;

	if (size < offsetof(struct md_wire_copy, bytes) || size > sizeof(*wire) ||
	    wire->nr > size - offsetof(struct md_wire_copy, bytes))
		return -EBADMSG;
	copy = copy_task(&wire->task, MORPH_REC_USER_STACK, sizeof(*copy) + behind_ip);
	if (copy) {
		copy->flags &= ~MD_WIRE_AGAIN;
		memcpy(copy + 1, &wire->user_ip, behind_ip);
	}
	return take_with(m, &wire->task, wire->ip, copy, wire->task.flags & MD_WIRE_AGAIN);
}

_Static_assert(__builtin_popcount(MORPH_REGS_BRANCHES) == MD_WIRE_NR_REGISTERS,
	       "the BPF programs send other registers");

/* Makes a REGISTERS record with one entry: the registers that are wanted. */
static int take_registers(struct md_bpf_merge *m, const struct md_wire_registers *wire, size_t size)
{
	const uint32_t wanted = m->decoder.registers, words = 1U + m->decoder.nr_registers;
	struct morph_registers *registers;
	uint32_t word = 0, value = 0;

	if (size != sizeof(*wire) || !wanted)
		return -EBADMSG;
	registers = (void *)copy_task(&wire->task, MORPH_REC_REGISTERS,
				      sizeof(*registers) + words * sizeof(registers->entries[0]));
	if (!registers)
		return -ENOMEM;
	registers->registers = wanted;
	registers->pad = 0;
	registers->entries[word++] = wire->ip;
	for (uint32_t reg = 0; reg <= MORPH_REG_FLAGS; reg++) {
		if (wanted >> reg & 1)
			registers->entries[word++] = wire->values[value];
		value += MORPH_REGS_BRANCHES >> reg & 1;
	}
	return take_with(m, &wire->task, wire->ip, (void *)registers, false);
}

static int take_samples(struct md_bpf_merge *m, const struct morph_task *task, size_t size)
{
	if (task->record.cpu >= m->decoder.nr_stages || size % MORPH_RECORD_ALIGN)
		return -EBADMSG;
	if (task->record.type == MD_WIRE_SAMPLES)
		return take_batch(m, (const void *)task, size);
	if (task->record.type == MD_WIRE_STACK)
		return take_stack(m, (const void *)task, size);
	if (task->record.type == MD_WIRE_REGISTERS)
		return take_registers(m, (const void *)task, size);
	return take_copy(m, (const void *)task, size);
}

static int take_event(struct md_bpf_merge *m, const struct morph_task *task, size_t size)
{
	union md_bpf_event event = {0};
	void *array = m->events;
	size_t at;

	if (task->time_ns < m->since_ns)
		return 0;
	if (!make_room(&array, sizeof(event), 1, &m->first_event, &m->nr_events,
		       &m->events_capacity))
		return -ENOMEM;
	m->events = array;
	memcpy(&event, task, size);
	for (at = m->nr_events++; at > m->first_event; at--) {
		if (m->events[at - 1].task.time_ns <= event.task.time_ns)
			break;
		m->events[at] = m->events[at - 1];
	}
	m->events[at] = event;
	return 0;
}

int md_bpf_merge_take(struct md_bpf_merge *m, const void *data, size_t size)
{
	static const size_t event_size[] = {
		[MORPH_REC_EXEC] = sizeof(struct morph_exec),
		[MORPH_REC_FORK] = sizeof(struct morph_fork),
		[MORPH_REC_EXIT] = sizeof(struct morph_exit),
		[MORPH_REC_COMM] = sizeof(struct morph_comm),
	};
	const struct morph_task *task = data;
	uint32_t type;

	if (size < sizeof(*task) || task->record.size != size)
		return -EBADMSG;
	type = task->record.type;
	if (type == MD_WIRE_SAMPLES || type == MD_WIRE_STACK || type == MD_WIRE_COPY ||
	    type == MD_WIRE_REGISTERS)
		return take_samples(m, task, size);
	if (type >= sizeof(event_size) / sizeof(event_size[0]) || !event_size[type] ||
	    size != event_size[type])
		return -EBADMSG;
	return take_event(m, task, size);
}

uint64_t md_bpf_merge_event_ns(const struct md_bpf_merge *m)
{
	return m->first_event < m->nr_events ? m->events[m->first_event].task.time_ns : UINT64_MAX;
}

/* Gives out what belongs to the sample @s, which was given out before. */
static void give_more(struct md_bpf_merge *m, uint32_t cpu, struct md_bpf_sample *s)
{
	if (!s->more)
		return;
	if (s->more->record.type == MORPH_REC_REGISTERS)
		md_perf_decoder_add_registers(&m->decoder, cpu, (const void *)s->more);
	else
		md_perf_decoder_add_stack(&m->decoder, cpu, s->more, s->is_again);
	free_more(s->more);
	s->more = NULL;
}

void md_bpf_merge_samples(struct md_bpf_merge *m, uint64_t until_ns)
{
	uint32_t cpu;

	for (cpu = 0; cpu < m->decoder.nr_stages; cpu++) {
		struct md_bpf_queue *queue = &m->queues[cpu];
		struct md_bpf_sample *s;

		for (; queue->first < queue->nr; queue->first++) {
			s = &queue->samples[queue->first];
			if (s->time_ns >= until_ns)
				break;
			if (!s->is_again)
				md_perf_decoder_add_sample(&m->decoder, cpu, cpu, s->tgid, s->tid,
							   s->time_ns, s->ip);
			give_more(m, cpu, s);
		}
		if (queue->first == queue->nr)
			queue->first = queue->nr = 0;
	}
}

void md_bpf_merge_event(struct md_bpf_merge *m)
{
	const struct morph_task *task;

	if (m->first_event == m->nr_events)
		return;
	task = &m->events[m->first_event].task;
	md_bpf_merge_samples(m, task->time_ns);
	md_perf_decoder_add_event(&m->decoder, task);
	if (++m->first_event == m->nr_events)
		m->first_event = m->nr_events = 0;
}
