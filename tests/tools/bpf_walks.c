// SPDX-License-Identifier: Apache-2.0
/*
 * bpf_walks - runs a command under the source bpf and checks the stacks that its BPF program walks.
 * Prints figures as JSON.
 *
 *	bpf-walks RATE RECORDING COMMAND [ARGUMENT...]
 *	bpf-walks --plain RATE RECORDING COMMAND [ARGUMENT...]
 *	bpf-walks --noted RATE RECORDING WALKED
 *
 * Each sample also brings its registers and a copy of its stack, which the reference walks
 * (libprof/unwind/walk.c). The two are compared as far as the copy reaches. With --plain, there are no
 * copies, and nothing is compared: to measure. With --noted, WALKED is
 * tests/guest/programs/walked.c, which notes its return addresses: each stack of a sample of its loops
 * must be exactly that, also behind a signal handler's own stack and below the copy.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "daemon/attribute/pipeline.h"
#include "libprof/base/clock.h"
#include "daemon/record/recfile.h"
#include "daemon/source/source.h"
#include "libprof/base/err.h"
#include "libprof/unwind/walk.h"
#include "tests/guest/programs/walk.h"

#define PHASE_NS UINT64_C(600000000)
#define SETTLE_NS                                                                                  \
	UINT64_C(20000000) /* from the change of a phase to its first sample that counts */
#define BPF_DEPTH 255

/* ---- phases of a program that notes its return addresses ---------------------------------- */

struct phase {
	uint64_t from_ns, to_ns;
	uint32_t nr;
	uint64_t ips[WALKED_MAX];
};

static bool has_copies = true;
static struct walked *noted; /* NULL: the command is another program */
static struct phase phases[NR_PHASES];
static uint32_t current = PHASE_NONE;

static void start_phase(uint32_t phase)
{
	noted->want = current = phase;
	phases[phase].from_ns = 0;
}

/* Goes to the next phase, when the time of this one is over. */
static void change_phase(void)
{
	uint64_t now = mp_now_ns();
	struct phase *p;

	if (current == PHASE_NONE || noted->phase != current)
		return;
	p = &phases[current];
	if (!p->from_ns) {
		p->from_ns = now + SETTLE_NS;
		p->nr = noted->nr;
		for (uint32_t i = 0; i < p->nr && i < WALKED_MAX; i++)
			p->ips[i] = noted->ips[i];
	} else if (now > p->from_ns + PHASE_NS) {
		p->to_ns = now - SETTLE_NS;
		/* The last phase makes calls all the time. */
		if (current + 1 < PHASE_CALLS)
			start_phase(current + 1);
		else
			noted->want = NR_PHASES;
	}
}

/* ---- the run ------------------------------------------------------------------------------ */

static pid_t child;

static pid_t start(char **argv, int *go)
{
	int fds[2], null;
	pid_t pid;
	char c;

	if (pipe2(fds, O_CLOEXEC))
		return -1;
	pid = fork();
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		null = open("/dev/null", O_RDWR | O_CLOEXEC);
		dup2(null, 0);
		dup2(null, 1);
		while (read(fds[0], &c, 1) != 1)
			;
		execvp(argv[0], argv);
		_exit(127);
	}
	*go = fds[1];
	return pid;
}

static bool should_stop(void *arg)
{
	siginfo_t info = {0};

	(void)arg;
	if (noted)
		change_phase();
	return !waitid(P_PID, (id_t)child, &info, WEXITED | WNOHANG | WNOWAIT) && info.si_pid;
}

static void warn(void *arg, const char *message)
{
	(void)arg;
	fprintf(stderr, "bpf-walks: %s\n", message);
}

static void die(const struct mp_err *err)
{
	fprintf(stderr, "bpf-walks: %s\n", err->msg);
	exit(77);
}

static void collect(uint32_t rate_hz, const char *recording, char **argv)
{
	static struct md_pipeline pl;
	struct md_source_config config = {.rate_hz = rate_hz,
					  .no_kernel = false,
					  .stacks = MD_STACKS_YES,
					  .stack_copies = has_copies};
	struct md_recfile_info info;
	struct mp_err err;
	int go, status;

	child = start(argv, &go);
	config.command = child;
	if (child < 0 || md_source_bpf.open(&config, &pl.source, &err))
		die(&err);
	pl.interval_s = 1;
	pl.should_stop = should_stop;
	pl.warn = warn;
	md_source_describe(pl.source, &info);
	if (md_recwriter_open(recording, &info, &pl.writer, &err) || md_pipeline_init(&pl, &err))
		die(&err);
	if (noted)
		start_phase(PHASE_CHAIN);
	if (write(go, "g", 1) != 1 || md_pipeline_run(&pl, &err) ||
	    md_recwriter_close(pl.writer, &err))
		die(&err);
	pl.writer = NULL;
	pl.source->ops->close(pl.source);
	pl.source = NULL;
	md_pipeline_fini(&pl);
	waitpid(child, &status, 0);
	if (status) {
		fprintf(stderr, "bpf-walks: %s: status %#x\n", argv[0], status);
		exit(1);
	}
}

/* ---- the comparison ----------------------------------------------------------------------- */

struct figures {
	uint64_t nr, frames, complete;
	uint64_t same;			   /* the same addresses, and the same reason */
	uint64_t further;		   /* the copy ended before */
	uint64_t shorter[MP_NR_WALK_STOP]; /* than the reference's, by reason */
	uint64_t wrong;
	uint64_t stops[MP_NR_WALK_STOP], stops_reference[MP_NR_WALK_STOP];
	uint64_t noted[NR_PHASES];
};

static uint32_t nr_of(const struct morph_stack *s)
{
	return (uint32_t)((s->task.record.size - sizeof(*s)) / sizeof(s->ips[0]));
}

static uint32_t stop_of(const struct morph_stack *s)
{
	uint32_t stop = s->task.flags & MORPH_STACK_STOP;

	return stop < MP_NR_WALK_STOP ? stop : MP_WALK_UNSAID;
}

static void show(const struct morph_stack *s, const char *name)
{
	fprintf(stderr, "%s: %s\n", name, mp_walk_stop_name(stop_of(s)));
	for (uint32_t i = 0; i < nr_of(s); i++)
		fprintf(stderr, "  %#llx\n", (unsigned long long)s->ips[i]);
}

static void count_wrong(struct figures *f, const struct morph_stack *bpf,
			const struct morph_stack *reference)
{
	if (f->wrong++ >= 5)
		return;
	show(bpf, "bpf");
	if (reference)
		show(reference, "reference");
}

static void compare(struct figures *f, const struct morph_stack *bpf,
		    const struct morph_stack *reference)
{
	uint32_t nr = nr_of(bpf), other = nr_of(reference), both = nr < other ? nr : other;
	uint32_t stop = stop_of(bpf), stop_reference = stop_of(reference);

	f->stops_reference[stop_reference]++;
	if (memcmp(bpf->ips, reference->ips, both * sizeof(bpf->ips[0])))
		count_wrong(f, bpf, reference);
	else if (nr == other && stop == stop_reference)
		f->same++;
	else if (nr >= other && stop_reference == MP_WALK_COPY)
		f->further++;
	else if (nr <= other && stop != MP_WALK_BOTTOM)
		f->shorter[stop]++;
	else
		count_wrong(f, bpf, reference);
}

/* Compares a stack, innermost first, with what the program noted, outermost first. */
static bool is_as_noted(const struct phase *p, uint32_t phase, const struct morph_stack *s)
{
	uint32_t nr = nr_of(s), stop = stop_of(s), i = 0, k;

	for (k = p->nr; k-- > (phase == PHASE_ALTSTACK ? 2 : 0) && i < nr; i++) {
		if (s->ips[i] != p->ips[k])
			return false;
		/* Code that was made at run time notes nothing. */
		i += phase == PHASE_JIT && k + 1 == p->nr;
	}
	if (phase == PHASE_DEEP)
		return nr == BPF_DEPTH && stop == MP_WALK_DEPTH;
	if (phase == PHASE_ALTSTACK) {
		while (i < nr && s->ips[i] != p->ips[1])
			i++;
		if (i + 1 >= nr || s->ips[i + 1] != p->ips[0])
			return false;
		i += 2;
	}
	/* main() was called by libc, and this by _start, which was called by nobody. */
	return stop == MP_WALK_BOTTOM && nr == i + 2;
}

static void check_noted(struct figures *f, const struct morph_stack *s, uint64_t ip)
{
	for (uint32_t i = 0; i < PHASE_CALLS; i++) {
		const struct phase *p = &phases[i];

		if (s->task.time_ns < p->from_ns || s->task.time_ns >= p->to_ns ||
		    ip < noted->spin_from || ip >= noted->spin_to)
			continue;
		f->noted[i]++;
		if (!is_as_noted(p, i, s))
			count_wrong(f, s, NULL);
	}
}

static void take(struct figures *f, const struct morph_record *record)
{
	static union {
		struct morph_stack stack;
		uint8_t bytes[sizeof(struct morph_stack) + 8 * (BPF_DEPTH + 1)];
	} last; /* size 0: none */
	static uint64_t ip;
	const struct morph_stack *s = (const void *)record;
	const struct morph_samples *samples = (const void *)record;

	if (record->type == MORPH_REC_SAMPLES) {
		ip = samples->ips[(record->size - sizeof(*samples)) / 8 - 1];
		last.stack.task.record.size = 0;
	}
	if (record->type != MORPH_REC_STACK)
		return;
	if (has_copies && last.stack.task.record.size && last.stack.task.tid == s->task.tid &&
	    last.stack.task.time_ns == s->task.time_ns) {
		compare(f, &last.stack, s);
		last.stack.task.record.size = 0;
		return;
	}
	f->nr++;
	f->frames += nr_of(s);
	f->stops[stop_of(s)]++;
	f->complete += stop_of(s) == MP_WALK_BOTTOM;
	if (noted)
		check_noted(f, s, ip);
	else if (has_copies && record->size <= sizeof(last))
		memcpy(&last, record, record->size);
}

static void read_back(const char *recording, struct figures *f)
{
	struct md_source_config config = {.input = recording};
	struct morph_record *record;
	struct md_source *source;
	struct md_batch batch;
	struct mp_err err;
	size_t pos;
	int ret;

	if (md_source_replay.open(&config, &source, &err))
		die(&err);
	while (!(ret = source->ops->next(source, 0, false, &batch, &err)))
		for (pos = 0; !md_record_next(batch.data, batch.size, &pos, &record);)
			take(f, record);
	if (ret != -ENODATA)
		die(&err);
	source->ops->close(source);
}

/* ---- the result --------------------------------------------------------------------------- */

static void print_stops(const char *name, const uint64_t *stops)
{
	printf(", \"%s\": {", name);
	for (int i = 0; i < MP_NR_WALK_STOP; i++)
		printf("%s\"%s\": %" PRIu64, i ? ", " : "", mp_walk_stop_name(i), stops[i]);
	printf("}");
}

static void print(const struct figures *f)
{
	printf("{\"samples\": %" PRIu64 ", \"frames\": %" PRIu64 ", \"complete\": %" PRIu64
	       ", \"wrong\": %" PRIu64,
	       f->nr, f->frames, f->complete, f->wrong);
	print_stops("stops", f->stops);
	if (noted) {
		printf(", \"noted\": [");
		for (int i = 0; i < PHASE_CALLS; i++)
			printf("%s%" PRIu64, i ? ", " : "", f->noted[i]);
		printf("]}\n");
		return;
	}
	printf(", \"same\": %" PRIu64 ", \"further\": %" PRIu64, f->same, f->further);
	print_stops("shorter", f->shorter);
	print_stops("reference", f->stops_reference);
	printf("}\n");
}

static struct walked *share(const char *name)
{
	int fd = open(name, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	struct walked *w;

	if (fd < 0 || ftruncate(fd, sizeof(*w)))
		return NULL;
	w = mmap(NULL, sizeof(*w), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	if (w == MAP_FAILED)
		return NULL;
	w->phase = PHASE_NONE;
	return w;
}

int main(int argc, char **argv)
{
	bool is_noted = argc > 1 && !strcmp(argv[1], "--noted");
	static struct figures f;
	char shared[] = "bpf-walks.shared";
	char *command[3] = {NULL, shared, NULL};

	has_copies = argc < 2 || argv[1][0] != '-';
	argv += !has_copies;
	argc -= !has_copies;
	if (argc < 4) {
		fprintf(stderr,
			"usage: bpf-walks [--plain|--noted] RATE RECORDING COMMAND [ARGUMENT...]\n");
		return 2;
	}
	command[0] = argv[3];
	if (is_noted)
		noted = share(shared);
	if (is_noted && !noted) {
		fprintf(stderr, "bpf-walks: %s: %s\n", shared, strerror(errno));
		return 1;
	}
	collect((uint32_t)strtoul(argv[1], NULL, 10), argv[2], is_noted ? command : argv + 3);
	read_back(argv[2], &f);
	print(&f);
	return f.wrong != 0;
}
