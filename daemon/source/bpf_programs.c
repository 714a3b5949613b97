// SPDX-License-Identifier: Apache-2.0
/* bpf_programs - libbpf and the memory that is shared with the programs; see bpf_programs.h. */
#ifdef MORPH_BPF
#include "libprof/base/clock.h"
#include "daemon/source/bpf_programs.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "collector.skel.h"
#include "daemon/source/bpf/wire.h"
#include "daemon/source/bpf_rows.h"
#include "daemon/source/proc_scan.h"

#define KERNEL_TYPES   "/sys/kernel/btf/vmlinux"
#define RING_BYTES_CPU (256u << 10)
#define RING_BYTES_MAX (32u << 20)
/* A stage that waits longer than this belongs to a thread that left its CPU. */
#define STALE_NS INT64_C(100000000)

struct cpu {
	bool is_offline;   /* went offline with samples in its stage, which count as lost */
	uint64_t stale_ns; /* time of the oldest of these samples; ignored if it arrives after all */
};

struct md_bpf_programs {
	struct collector *skel;
	struct ring_buffer *ring;
	struct md_bpf_rows *rows; /* NULL: samples come without stacks */
	struct bpf_program *sampler;
	struct md_wire_stage *stages;
	size_t stages_size;
	uint32_t nr_cpus;
	uint64_t limit_ns;
	struct cpu *cpus;
	uint64_t nr_left; /* samples left in the stages of offline CPUs */
	int (*take)(void *arg, void *record, size_t size);
	void *arg;
};

static int quiet(enum libbpf_print_level level, const char *format, va_list args)
{
	(void)level;
	(void)format;
	(void)args;
	return 0;
}

static bool is_locked_down(void)
{
	char text[128] = "";
	FILE *f = fopen("/sys/kernel/security/lockdown", "re");
	bool found;

	if (!f)
		return false;
	found = fgets(text, sizeof(text), f) && strstr(text, "[confidentiality]");
	fclose(f);
	return found;
}

static int refuse(int code, bool stacks, struct mp_err *err)
{
	if (code == ENOSYS)
		return mp_err_set(err, code, "this kernel has no bpf()");
	if (is_locked_down())
		return mp_err_set(err, code, "the kernel is locked down");
	if (code == EPERM)
		return mp_err_set(err, code, "not allowed: needs root, or CAP_BPF and CAP_PERFMON");
	if (access(KERNEL_TYPES, R_OK))
		return mp_err_set(err, code, "this kernel has no type information (BTF)");
	return mp_err_set(err, code, "the kernel refuses the programs: %s%s", strerror(code),
			  stacks ? "; stacks need Linux 6.1 or later" : "");
}

/*
 * A type that this kernel lacks, such as backing_file before 6.8, makes libbpf look for the type in
 * the kernel's modules. Listing these needs CAP_SYS_ADMIN, which the service does not have. libbpf
 * does not look there if the caller names the file of types. A kernel may have no such file.
 */
static struct collector *open_skeleton(void)
{
	LIBBPF_OPTS(bpf_object_open_opts, opts, .btf_custom_path = KERNEL_TYPES);

	return access(KERNEL_TYPES, R_OK) ? collector__open() : collector__open_opts(&opts);
}

static int set_sizes(struct md_bpf_programs *p, const struct md_bpf_request *request)
{
	uint32_t bytes = 1u << 19;
	int ret;

	while (bytes < p->nr_cpus * (uint64_t)RING_BYTES_CPU && bytes < RING_BYTES_MAX)
		bytes *= 2;
	p->skel->rodata->only_tracked = request->command != 0;
	p->skel->rodata->copy_always = request->stack_copies;
	p->skel->rodata->with_registers = request->registers;
	p->skel->rodata->wakeup_bytes = bytes / 4;
	ret = bpf_map__set_max_entries(p->skel->maps.ring, bytes);
	if (!ret)
		ret = bpf_map__set_max_entries(p->skel->maps.stages, p->nr_cpus);
	if (!ret && !request->command)
		ret = bpf_map__set_max_entries(p->skel->maps.tracked, 1);
	return ret;
}

/*
 * Only one program for samples is loaded. Without stacks, nothing of them is loaded, so that the others
 * run on older kernels, too.
 */
static int choose_sampler(struct md_bpf_programs *p, bool stacks, bool registers)
{
	struct bpf_program *samplers[] = {p->skel->progs.on_sample,
					  p->skel->progs.on_sample_with_registers,
					  p->skel->progs.on_sample_with_stack};
	struct bpf_map *maps[] = {p->skel->maps.slabs, p->skel->maps.files, p->skel->maps.walks,
				  p->skel->maps.asked, p->skel->maps.copies};
	int ret = 0;

	p->sampler = samplers[stacks ? 2 : registers];
	for (size_t i = 0; !ret && i < sizeof(samplers) / sizeof(samplers[0]); i++)
		if (samplers[i] != p->sampler)
			ret = bpf_program__set_autoload(samplers[i], false);
	for (size_t i = 0; !stacks && !ret && i < sizeof(maps) / sizeof(maps[0]); i++)
		ret = bpf_map__set_autocreate(maps[i], false);
	return ret;
}

static int on_record(void *arg, void *record, size_t size)
{
	const struct md_wire_batch *batch = record;
	const struct morph_record *head = record;
	struct md_bpf_programs *p = arg;

	if (size >= sizeof(batch->task) && head->type == MD_WIRE_SAMPLES &&
	    head->cpu < p->nr_cpus && batch->task.time_ns == p->cpus[head->cpu].stale_ns)
		return 0;
	return p->take(p->arg, record, size);
}

static int map_rings(struct md_bpf_programs *p)
{
	size_t page = sysconf(_SC_PAGESIZE);
	void *map;

	p->stages_size = (p->nr_cpus * sizeof(*p->stages) + page - 1) / page * page;
	p->cpus = calloc(p->nr_cpus, sizeof(p->cpus[0]));
	if (!p->cpus)
		return -ENOMEM;
	map = mmap(NULL, p->stages_size, PROT_READ, MAP_SHARED, bpf_map__fd(p->skel->maps.stages),
		   0);
	if (map == MAP_FAILED)
		return -errno;
	p->stages = map;
	p->ring = ring_buffer__new(bpf_map__fd(p->skel->maps.ring), on_record, p, NULL);
	return p->ring ? 0 : -errno;
}

static int load(struct md_bpf_programs *p, const struct md_bpf_request *request)
{
	uint32_t tgid = request->command, one = 1;
	int ret = set_sizes(p, request);

	if (!ret)
		ret = choose_sampler(p, request->stacks, request->registers);
	if (!ret)
		ret = collector__load(p->skel);
	if (!ret && tgid)
		ret = bpf_map_update_elem(bpf_map__fd(p->skel->maps.tracked), &tgid, &one, BPF_ANY);
	if (ret || !request->stacks)
		return ret;
	p->rows =
		md_bpf_rows_new(bpf_map__fd(p->skel->maps.slabs), bpf_map__fd(p->skel->maps.files));
	return p->rows ? 0 : -ENOMEM;
}

int md_bpf_programs_open(const struct md_bpf_request *request, struct md_bpf_programs **out,
			 struct mp_err *err)
{
	struct md_bpf_programs *p;
	int ret;

	/*
	 * The programs see process ids of the initial namespace; perf's mappings carry those of
	 * ours.
	 */
	if (!md_proc_is_whole())
		return mp_err_set(err, ENOTSUP, "morphd runs in a PID namespace");
	ret = libbpf_num_possible_cpus();
	if (ret <= 0 || ret > MD_WIRE_MAX_CPUS)
		return mp_err_set(err, ENOTSUP, "cannot find the number of CPUs");
	p = calloc(1, sizeof(*p));
	if (!p)
		return mp_err_set(err, ENOMEM, "out of memory");
	p->nr_cpus = ret;
	libbpf_set_print(quiet);
	p->skel = open_skeleton();
	ret = p->skel ? load(p, request) : -errno;
	if (!ret)
		ret = map_rings(p);
	if (!ret)
		ret = collector__attach(p->skel);
	if (ret) {
		md_bpf_programs_close(p);
		return refuse(-ret, request->stacks, err);
	}
	*out = p;
	return 0;
}

void md_bpf_programs_close(struct md_bpf_programs *p)
{
	if (!p)
		return;
	ring_buffer__free(p->ring);
	md_bpf_rows_free(p->rows);
	if (p->stages)
		munmap(p->stages, p->stages_size);
	collector__destroy(p->skel);
	free(p->cpus);
	free(p);
}

int md_bpf_programs_sampler(const struct md_bpf_programs *p)
{
	return bpf_program__fd(p->sampler);
}

int md_bpf_programs_give_rows(struct md_bpf_programs *p, const struct md_source_rows *rows)
{
	int ret;

	if (!p->rows)
		return 0;
	ret = md_bpf_rows_give(p->rows, rows);
	/* Walks forget what they remember of mapped files. */
	__atomic_add_fetch(&p->skel->bss->files_version, 1, __ATOMIC_RELEASE);
	return ret;
}

int md_bpf_programs_fd(const struct md_bpf_programs *p)
{
	return bpf_map__fd(p->skel->maps.ring);
}

void md_bpf_programs_sleep(struct md_bpf_programs *p, bool on)
{
	__atomic_store_n(&p->skel->bss->reader_sleeps, on, __ATOMIC_RELAXED);
}

uint32_t md_bpf_programs_nr_cpus(const struct md_bpf_programs *p)
{
	return p->nr_cpus;
}

static void flush_stage(struct md_bpf_programs *p, uint32_t cpu)
{
	LIBBPF_OPTS(bpf_test_run_opts, opts, .flags = BPF_F_TEST_RUN_ON_CPU, .cpu = cpu);
	int fd = bpf_program__fd(p->skel->progs.flush_stage);
	const struct md_wire_stage *stage = &p->stages[cpu];

	p->cpus[cpu].is_offline = bpf_prog_test_run_opts(fd, &opts) == -ENXIO;
	if (p->cpus[cpu].is_offline && p->cpus[cpu].stale_ns != stage->first_ns) {
		p->cpus[cpu].stale_ns = stage->first_ns;
		p->nr_left += stage->nr;
	}
}

/* Return: time of the oldest sample that is still in a stage; 0: there is none. */
static uint64_t waits_since(const struct md_bpf_programs *p, uint32_t cpu)
{
	return p->cpus[cpu].is_offline
		       ? 0
		       : __atomic_load_n(&p->stages[cpu].first_ns, __ATOMIC_ACQUIRE);
}

/* Return: true if no handler is writing to @stage. Otherwise values read from it mean nothing. */
static bool is_quiet(const struct md_wire_stage *stage)
{
	uint64_t left = __atomic_load_n(&stage->left, __ATOMIC_SEQ_CST);

	return __atomic_load_n(&stage->entered, __ATOMIC_SEQ_CST) == left;
}

uint64_t md_bpf_programs_complete_until_ns(struct md_bpf_programs *p, bool all)
{
	uint64_t now = mp_now_ns(), limit, first;
	uint32_t cpu, tries;

	for (cpu = 0; cpu < p->nr_cpus; cpu++) {
		first = waits_since(p, cpu);
		if (p->cpus[cpu].is_offline ||
		    (first && (all || (int64_t)(now - first) > STALE_NS)))
			flush_stage(p, cpu);
	}
	/*
	 * A handler counts up @entered before it reads the clock, with a full barrier between.
	 * Therefore a handler that is not seen below reads a later time than this.
	 */
	limit = mp_now_ns() - 1;
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	for (cpu = 0; cpu < p->nr_cpus; cpu++) {
		for (tries = 0; !is_quiet(&p->stages[cpu]) && tries < 1000; tries++)
			__builtin_ia32_pause();
		if (tries == 1000)
			limit = p->limit_ns;
		first = waits_since(p, cpu);
		if (first && first <= limit)
			limit = first - 1;
	}
	if (limit > p->limit_ns)
		p->limit_ns = limit;
	return p->limit_ns;
}

struct md_bpf_totals md_bpf_programs_totals(const struct md_bpf_programs *p)
{
	struct md_bpf_totals totals = {.nr_lost = p->nr_left};
	uint32_t cpu;

	for (cpu = 0; cpu < p->nr_cpus; cpu++) {
		totals.nr_samples += __atomic_load_n(&p->stages[cpu].nr_samples, __ATOMIC_ACQUIRE);
		totals.nr_lost += __atomic_load_n(&p->stages[cpu].nr_lost, __ATOMIC_ACQUIRE);
		totals.nr_lost_events +=
			__atomic_load_n(&p->stages[cpu].nr_lost_events, __ATOMIC_ACQUIRE);
	}
	return totals;
}

int md_bpf_programs_read(struct md_bpf_programs *p,
			 int (*take)(void *arg, void *record, size_t size), void *arg)
{
	int ret;

	p->take = take;
	p->arg = arg;
	ret = ring_buffer__consume(p->ring);
	return ret < 0 ? ret : 0;
}

#endif
