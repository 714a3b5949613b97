// SPDX-License-Identifier: Apache-2.0
/* attribute - turns records into counts; see attribute.h. */
#include "daemon/attribute/attribute.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "kmod/uapi/morph_dev.h"
#include "libprof/base/grow.h"

#define KERNEL_BIT	  (UINT64_C(1) << 63)
#define MAX_PIECES_MMAP	  16 /* most mappings that one MMAP record creates */
#define DAY_NS		  (UINT64_C(86400) * 1000000000)
#define WAYS_PLENTY_SHARE 8 /* of samples of a file that has plenty of ways */

int md_attribute_init(struct md_attribute *at)
{
	memset(at, 0, sizeof(*at));
	at->procmap = md_procmap_new();
	at->modcache = md_modcache_new();
	at->contexts = md_contexts_new(MD_CONTEXTS_NODES_MAX);
	at->calls = md_contexts_new(MD_CALLS_NODES_MAX);
	if (!at->procmap || !at->modcache || !at->contexts || !at->calls ||
	    md_sample_table_init(&at->samples)) {
		md_attribute_fini(at);
		return -ENOMEM;
	}
	return 0;
}

void md_attribute_fini(struct md_attribute *at)
{
	md_procmap_free(at->procmap);
	md_modcache_free(at->modcache);
	md_sample_table_fini(&at->samples);
	md_edges_fini(&at->taken_branches);
	md_edges_fini(&at->straight_runs);
	md_paths_fini(&at->paths);
	md_ways_free(at->ways);
	md_contexts_free(at->contexts);
	md_contexts_free(at->calls);
	free(at->activity);
	memset(at, 0, sizeof(*at));
}

/* The activity counters of the program @module. Return: NULL: no memory. */
static struct mp_activity *activity_of(struct md_attribute *at, uint32_t module)
{
	if (mp_grow_zeroed(at->activity, at->nr_activity, (uint64_t)module + 1))
		return NULL;
	return &at->activity[module];
}

/*
 * Makes the key of kernel address @ip. An address outside the image (modules, BPF) is kept as
 * it is. If addresses are offsets from the start of the image, an offset outside it has no
 * meaning. Return: false: @ip has no key.
 */
static bool kernel_key(const struct md_file *kernel, uint64_t ip, uint64_t *key)
{
	const struct morph_segment *text = kernel->segments;

	if (ip - text->off < text->size)
		ip = ip - text->off + text->vaddr;
	else if (text->off == MORPH_KERNEL_BASE)
		return false;
	*key = md_sample_table_key(kernel->module, ip);
	return true;
}

static void add_activity(struct md_attribute *at, uint32_t program, const struct mp_activity *seen)
{
	struct mp_activity *activity = program ? activity_of(at, program) : NULL;

	if (!activity)
		return;
	activity->app += seen->app;
	activity->lib += seen->lib;
	activity->kernel += seen->kernel;
	activity->other += seen->other;
}

static int attribute_samples(struct md_attribute *at, const struct morph_samples *record)
{
	const struct md_file *kernel = md_modcache_kernel(at->modcache);
	struct md_space *space =
		md_procmap_find(at->procmap, record->task.tgid, record->task.exec_id);
	struct mp_ledger *ledger = &at->ledger;
	struct mp_activity seen = {0};
	uint32_t nr = md_samples_nr(record), i, program = space ? md_space_program(space) : 0;
	const struct md_mapping none = {.why = space ? MP_UNATTR_NO_MAPPING : MP_UNATTR_NO_PROCESS};
	/* the last mapping hit; the next sample usually hits it again */
	const struct md_mapping *m = &none;

	/* Make room for all samples first: a refused record is passed in again after a flush. */
	while (md_sample_table_is_full(&at->samples, nr))
		if (md_sample_table_grow(&at->samples))
			return -ENOMEM;
	ledger->emitted += nr;
	if (nr)
		md_contexts_note_sample(at->contexts, &record->task, record->ips[nr - 1]);
	if (space && md_space_is_new(space))
		at->nr_processes++;
	for (i = 0; i < nr; i++) {
		uint64_t ip = record->ips[i], key;

		if (ip & KERNEL_BIT) {
			seen.kernel++;
			if (kernel && kernel_key(kernel, ip, &key)) {
				md_sample_table_add(&at->samples, key, 1);
				ledger->attributed++;
			} else {
				ledger->unattributed[MP_UNATTR_NO_MAPPING]++;
			}
			continue;
		}
		if (ip - m->start >= m->end - m->start) {
			m = space ? md_space_find(space, ip) : NULL;
			if (!m)
				m = &none;
		}
		if (m->why != MD_MAPPED) {
			seen.other++;
			ledger->unattributed[m->why]++;
			continue;
		}
		if (m->module == program)
			seen.app++;
		else
			seen.lib++;
		md_sample_table_add(&at->samples, md_sample_table_key(m->module, ip + m->bias), 1);
		ledger->attributed++;
	}
	/* Kernel threads have no program of their own: charge them to the kernel. */
	if (!space && kernel && seen.kernel)
		program = kernel->module;
	add_activity(at, program, &seen);
	return 0;
}

/* Return: the mapping that holds user address @ip, or NULL. @last: the last hit, tried first. */
static const struct md_mapping *find_mapping(const struct md_space *space,
					     const struct md_mapping *last, uint64_t ip)
{
	if (last && ip - last->start < last->end - last->start)
		return last;
	return space ? md_space_find(space, ip) : NULL;
}

/*
 * Entries come newest first. Control left the straight run that began at entry i's target
 * by the branch of entry i - 1, the next newer one. These runs are only needed for
 * optimised modules.
 */
static int attribute_branches(struct md_attribute *at, const struct morph_branches *record)
{
	struct md_space *space =
		md_procmap_find(at->procmap, record->task.tgid, record->task.exec_id);
	uint32_t nr = md_branches_nr(record), i;
	const struct md_mapping *from, *to = NULL, *left_from = NULL;
	struct md_branch_ledger *ledger = &at->branches;
	const struct md_module *module;
	uint64_t left = 0;

	if (md_edges_reserve(&at->taken_branches, nr) || md_edges_reserve(&at->straight_runs, nr))
		return -ENOMEM;
	ledger->seen += nr;
	for (i = 0; i < nr; left = record->branches[i].from, left_from = from, i++) {
		const struct morph_branch *b = &record->branches[i];

		from = NULL;
		if ((b->from | b->to) & KERNEL_BIT) {
			ledger->kernel++;
			if (b->from & KERNEL_BIT)
				continue;
		}
		from = find_mapping(space, to, b->from);
		if (b->to & KERNEL_BIT)
			continue;
		to = find_mapping(space, from, b->to);
		if (to && to->why == MD_MAPPED && to == left_from && left >= b->to) {
			module = md_modcache_module(at->modcache, to->module);
			if (module && module->map)
				md_edges_add(&at->straight_runs,
					     md_sample_table_key(to->module, b->to + to->bias),
					     left + to->bias, 1);
		}
		if (!from || !to || from->why != MD_MAPPED || to->why != MD_MAPPED) {
			ledger->unmapped++;
		} else if (from->module != to->module) {
			ledger->cross_module++;
		} else {
			ledger->counted++;
			md_edges_add(&at->taken_branches,
				     md_sample_table_key(from->module, b->from + from->bias),
				     b->to + to->bias, 1);
		}
	}
	return 0;
}

/*
 * Return: true if a sample of @module is wanted for ways of branches. The code of outputs has other
 * branches than the original.
 */
static bool wants_ways(struct md_attribute *at, struct md_module *module)
{
	uint32_t day = (uint32_t)(at->last_time_ns / DAY_NS);

	if (!at->ways || module->map || module->kind != MP_MODULE_FILE)
		return false;
	if (at->ways_share) {
		at->ways_credit += at->ways_share;
		if (at->ways_credit < MD_WAYS_SHARE_ALL)
			return false;
		at->ways_credit -= MD_WAYS_SHARE_ALL;
	}
	if (module->day_for_ways != day) {
		module->day_for_ways = day;
		module->nr_for_ways = 0;
	}
	module->nr_for_ways++;
	return !at->ways_a_day || module->nr_for_ways <= at->ways_a_day ||
	       module->nr_for_ways % WAYS_PLENTY_SHARE == 0;
}

/*
 * Decodes paths, and takes registers for ways of branches. The samples themselves were counted before,
 * from another record.
 */
static int attribute_registers(struct md_attribute *at, const struct morph_registers *record)
{
	struct md_space *space =
		md_procmap_find(at->procmap, record->task.tgid, record->task.exec_id);
	uint32_t nr = md_registers_nr(record), words = md_registers_words(record), i;
	const struct md_mapping *m = NULL;
	struct md_module *module;
	uint64_t ip;

	if (md_paths_reserve(&at->paths, nr))
		return -ENOMEM;
	for (i = 0; i < nr; i++) {
		ip = record->entries[(size_t)i * words];
		if (ip & KERNEL_BIT)
			continue;
		m = find_mapping(space, m, ip);
		if (!m || m->why != MD_MAPPED)
			continue;
		module = md_modcache_module(at->modcache, m->module);
		if (module && module->paths && !at->no_paths)
			at->ledger
				.paths[md_paths_add(&at->paths, module, ip + m->bias, record, i)]++;
		if (module && wants_ways(at, module))
			md_ways_add(at->ways, module->index, ip + m->bias, record, i);
	}
	return 0;
}

/* Counts why the walk ended, and the sample's calling context. */
static void attribute_stack(struct md_attribute *at, const struct morph_stack *record)
{
	uint32_t stop = record->task.flags & MORPH_STACK_STOP;

	at->ledger.stacks[stop < MP_NR_WALK_STOP ? stop : MP_WALK_UNSAID]++;
	if (md_contexts_add(at->contexts, at->procmap, at->modcache, record))
		at->ledger.contexts++;
	at->nr_frames += (record->task.record.size - sizeof(*record)) / sizeof(record->ips[0]);
}

static int attribute_mmap(struct md_attribute *at, const struct morph_mmap *record)
{
	struct md_mapping mappings[MAX_PIECES_MMAP];
	const struct morph_task *task = &record->task;
	const struct md_file unknown = {.why = MP_UNATTR_UNREADABLE};
	const struct md_file *file = md_modcache_file(at->modcache, record->module);
	struct md_space *space;
	size_t nr = 0;
	int ret;

	if (!file)
		file = &unknown;
	if (!(task->flags & MORPH_MMAP_NOWHERE))
		nr = md_file_mappings(file, record, mappings, MAX_PIECES_MMAP);
	ret = md_procmap_map(at->procmap, task->tgid, task->exec_id, mappings, nr);
	if (ret)
		return 0; /* too many mappings: their samples count as unmapped */
	space = md_procmap_find(at->procmap, task->tgid, task->exec_id);
	if (!space || file->why == MP_UNATTR_VDSO || file->why == MP_UNATTR_ANONYMOUS)
		return 0;
	if ((task->flags & MORPH_MMAP_PROGRAM) || md_space_wants_program(space))
		md_space_set_program(space, file->module);
	return 0;
}

static void attribute_lost(struct md_attribute *at, const struct morph_lost *record)
{
	static const uint8_t lost_of[] = {
		[MORPH_LOST_RING_FULL] = MP_LOST_RING_FULL,
		[MORPH_LOST_THROTTLED] = MP_LOST_THROTTLED,
		[MORPH_LOST_TORN] = MP_LOST_TORN,
		[MORPH_LOST_NO_MEMORY] = MP_LOST_NO_MEMORY,
	};
	/* A reason unknown to this version counts as a full ring. */
	uint8_t why = record->why < sizeof(lost_of) ? lost_of[record->why] : MP_LOST_RING_FULL;

	at->ledger.emitted += record->nr;
	at->ledger.lost[why] += record->nr;
	if (record->flags & MORPH_LOST_STATE)
		md_procmap_forget(at->procmap);
}

/* Signals that the program's own code causes. Others, such as SIGKILL, come from outside. */
static bool is_fault(uint32_t signal)
{
	return signal == SIGSEGV || signal == SIGBUS || signal == SIGILL || signal == SIGFPE ||
	       signal == SIGABRT || signal == SIGTRAP || signal == SIGSYS;
}

/* Each thread of a process that crashes ends with its signal: the first thread counts. */
static void note_crash(struct md_attribute *at, const struct morph_task *task)
{
	uint32_t signal = MORPH_EXIT_SIGNAL(task->flags), module;
	const struct md_space *space;

	if (!is_fault(signal) || at->nr_crashes == MD_MAX_CRASHES ||
	    (task->tid != task->tgid && !(task->flags & MORPH_EXIT_PROCESS)))
		return;
	space = md_procmap_find(at->procmap, task->tgid, task->exec_id);
	module = space ? md_space_program(space) : 0;
	if (module)
		at->crashes[at->nr_crashes++] = (struct md_crash){module, (uint8_t)signal};
}

static int add_module(struct md_modcache *mc, const struct morph_record *record)
{
	const void *r = record;

	switch (record->type) {
	case MORPH_REC_MODULE: return md_modcache_add_record(mc, r);
	case MORPH_REC_MODULE_MAP: return md_modcache_add_map_record(mc, r);
	case MORPH_REC_MODULE_PIECES: return md_modcache_add_pieces_record(mc, r);
	case MORPH_REC_MODULE_ENDS: return md_modcache_add_ends_record(mc, r);
	case MORPH_REC_MODULE_CALLS: return md_modcache_add_calls_record(mc, r);
	case MORPH_REC_MODULE_PATHS: return md_modcache_add_paths_record(mc, r);
	case MORPH_REC_MODULE_OUTPUT: return md_modcache_add_output_record(mc, r);
	default: return 0;
	}
}

int md_attribute_record(struct md_attribute *at, const struct morph_record *record)
{
	const struct morph_task *task = (const void *)record;
	const struct morph_munmap *munmap;

	if (md_record_has_task(record->type) && task->time_ns > at->last_time_ns)
		at->last_time_ns = task->time_ns;
	switch (record->type) {
	case MORPH_REC_SAMPLES: return attribute_samples(at, (const void *)record);
	case MORPH_REC_MMAP: return attribute_mmap(at, (const void *)record);
	case MORPH_REC_MUNMAP:
		munmap = (const void *)record;
		md_procmap_unmap(at->procmap, task->tgid, task->exec_id, munmap->start,
				 munmap->start + munmap->len);
		return 0;
	case MORPH_REC_EXEC:
		md_procmap_exec(at->procmap, task->tgid, task->exec_id,
				((const struct morph_exec *)record)->nr_threads);
		return 0;
	case MORPH_REC_FORK:
		md_procmap_fork(at->procmap, task->tgid,
				((const struct morph_fork *)record)->parent_tgid);
		return 0;
	case MORPH_REC_EXIT:
		note_crash(at, task);
		if (task->flags & MORPH_EXIT_PROCESS)
			md_procmap_end(at->procmap, task->tgid);
		else
			md_procmap_exit(at->procmap, task->tgid);
		return 0;
	case MORPH_REC_LOST: attribute_lost(at, (const void *)record); return 0;
	case MORPH_REC_MODULE:
	case MORPH_REC_MODULE_MAP:
	case MORPH_REC_MODULE_PIECES:
	case MORPH_REC_MODULE_ENDS:
	case MORPH_REC_MODULE_CALLS:
	case MORPH_REC_MODULE_PATHS:
	case MORPH_REC_MODULE_OUTPUT:
		at->lacks_module |= add_module(at->modcache, record) == -ENOMEM;
		return 0;
	case MORPH_REC_STACK: attribute_stack(at, (const void *)record); return 0;
	case MORPH_REC_BRANCHES: return attribute_branches(at, (const void *)record);
	case MORPH_REC_REGISTERS: return attribute_registers(at, (const void *)record);
	default: return 0;
	}
}

bool md_attribute_is_conserved(const struct md_attribute *at)
{
	const struct mp_ledger *ledger = &at->ledger;
	uint64_t sum = ledger->attributed, counted = 0;
	size_t i;

	for (i = 0; i < MP_NR_UNATTR; i++)
		sum += ledger->unattributed[i];
	for (i = 0; i < MP_NR_LOST; i++)
		sum += ledger->lost[i];
	for (i = 0; i < at->samples.nr_slots; i++)
		counted += at->samples.slots[i].nr;
	return sum == ledger->emitted && counted == ledger->attributed &&
	       md_paths_sum(&at->paths) == ledger->paths[MP_PATH_DECODED] &&
	       md_contexts_nr(at->contexts) == ledger->contexts &&
	       md_contexts_nr(at->calls) == ledger->calls;
}

void md_attribute_clear(struct md_attribute *at)
{
	md_sample_table_clear(&at->samples);
	md_edges_clear(&at->taken_branches);
	md_edges_clear(&at->straight_runs);
	md_paths_clear(&at->paths);
	if (at->ways)
		md_edges_clear(&at->ways->counts);
	md_contexts_clear(at->contexts);
	md_contexts_clear(at->calls);
	memset(&at->ledger, 0, sizeof(at->ledger));
	at->nr_crashes = 0;
	if (at->activity)
		memset(at->activity, 0, at->nr_activity * sizeof(at->activity[0]));
}
