// SPDX-License-Identifier: Apache-2.0
/*
 * thread - gives each thread its own counters: a set in the file of counts, mapped when
 * the thread first needs it. Called by attach.c for the first thread, and by stubs of
 * functions through start.S.
 *
 *	file:    header | set 0 | set 1 | set 2 | ...
 *	memory:  counters (set 0), state
 *		 ...
 *		 region: set 1, window | set 2, window | ... | set 0 once more, window
 *
 * The base of %gs is the distance from the counters to the thread's set; 0: the thread
 * has none yet. Threads that find no free set share set 0, at the region's end. Sets
 * are not given back: a thread takes over the set of an ended thread, of any process.
 */
#include "editor/runtime/thread.h"

#include <errno.h>
#include <stdbool.h>
#include <sys/mman.h>

#include "editor/runtime/system.h"
#include "libprof/note/counts_file.h"

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23 /* since Linux 5.14 */
#endif

/* A thread's frames seldom reach further, and no other thread's stack begins this close. */
#define STACK_REACH 32768

static char *set_of(const struct me_thread_state *state, uint64_t set)
{
	return (char *)state->region + (set - 1) * state->stride;
}

static struct me_stack_range *stack_range_of(const struct me_thread_state *state, uint64_t set)
{
	return (struct me_stack_range *)(set_of(state, set) + state->stride - ME_RUNTIME_PAGE);
}

static void set_stack_range(struct me_stack_range *stack_range, uint64_t rsp)
{
	stack_range->high = rsp < UINT64_MAX - STACK_REACH ? rsp + STACK_REACH : UINT64_MAX;
	stack_range->low = rsp > STACK_REACH ? rsp - STACK_REACH : 0;
}

/* Has the claim's thread ended? For a live thread of another user, the answer is EPERM. */
static bool has_ended(uint64_t claim)
{
	return call4(SYS_tgkill, (long)(claim >> 32), (long)(uint32_t)claim, 0, 0) == -ESRCH;
}

static bool exchange(uint64_t *word, uint64_t was, uint64_t now)
{
	return __atomic_compare_exchange_n(word, &was, now, false, __ATOMIC_SEQ_CST,
					   __ATOMIC_SEQ_CST);
}

/*
 * Move the set from the mapping of the whole file to its place in the region, once;
 * children inherit that. First reserve space on disk for all its pages: a write without
 * space would end the program.
 */
static bool map_set(struct me_thread_state *state, uint64_t set)
{
	uint64_t bytes = state->stride - ME_RUNTIME_PAGE;
	char *file = (char *)state->file + MP_COUNTS_FILE_HEADER_BYTES + set % state->sets * bytes;

	if (state->mapped[set / 64] >> set % 64 & 1)
		return true;
	if (call4(SYS_madvise, (long)file, (long)bytes, MADV_POPULATE_WRITE, 0))
		return false;
	if (failed(call6(SYS_mremap, (long)file, (long)bytes, (long)bytes,
			 MREMAP_MAYMOVE | MREMAP_FIXED, (long)set_of(state, set), 0)))
		return false;
	__atomic_fetch_or(&state->mapped[set / 64], 1ull << set % 64, __ATOMIC_SEQ_CST);
	return true;
}

/*
 * A thread that reuses an ended thread's stack also has its %fs base: it takes over
 * that thread's set. Return: 0 if there is no such set.
 */
static uint64_t reuse_set_of_stack(const struct me_thread_state *state, uint64_t *claims,
				   uint64_t tp, uint64_t claim)
{
	for (uint64_t set = 1; set < state->sets; set++) {
		struct me_stack_range *stack_range = stack_range_of(state, set);
		/*
		 * Read before tp, which another thread that takes over the set writes first. A
		 * claim that is read later may be that thread's.
		 */
		uint64_t was = __atomic_load_n(&stack_range->claim, __ATOMIC_ACQUIRE);

		if (was && was >> 32 == claim >> 32 && stack_range->tp == tp &&
		    exchange(&claims[set], was, claim))
			return set;
	}
	return 0;
}

static uint64_t take_over(const struct me_thread_state *state, uint64_t *claims, uint64_t claim)
{
	for (uint64_t set = 1; set < state->sets; set++) {
		uint64_t was = claims[set];

		/* a claim of this thread itself: at program start its %fs base was another */
		if (was == claim ||
		    ((!was || has_ended(was)) && exchange(&claims[set], was, claim)))
			return set;
	}
	return 0;
}

static void go_to(const struct me_thread_state *state, uint64_t set, uint64_t counters)
{
	write_gs(state, (uint64_t)set_of(state, set) - counters);
}

/* Threads in the shared set need not look for other counters, whatever their stack pointer. */
static void share(const struct me_thread_state *state, uint64_t counters)
{
	struct me_stack_range *stack_range = stack_range_of(state, state->sets);

	stack_range->low = 0;
	stack_range->high = UINT64_MAX;
	go_to(state, state->sets, counters);
}

static void find_set(struct me_thread_state *state, uint64_t rsp, uint64_t tp, uint64_t counters)
{
	uint64_t *claims = (uint64_t *)(state->file + MP_COUNTS_FILE_CLAIMS), set;
	uint64_t claim = (uint64_t)call1(SYS_getpid, 0) << 32 | (uint32_t)call1(SYS_gettid, 0);
	struct me_stack_range *stack_range;

	set = reuse_set_of_stack(state, claims, tp, claim);
	if (!set)
		set = take_over(state, claims, claim);
	if (!set) {
		share(state, counters);
		return;
	}
	stack_range = stack_range_of(state, set);
	if (!map_set(state, set)) {
		__atomic_store_n(&claims[set], 0, __ATOMIC_SEQ_CST);
		share(state, counters);
		return;
	}
	stack_range->tp = tp;
	__atomic_store_n(&stack_range->claim, claim, __ATOMIC_RELEASE);
	set_stack_range(stack_range, rsp);
	go_to(state, set, counters);
}

/* Going on would count in memory that is not ours. */
static void refuse(void)
{
	static const char text[] = "morph: something else in this process uses %gs: count with "
				   "--kind=edges,atomic\n";

	call4(SYS_write, 2, (long)text, sizeof(text) - 1, 0);
	call1(SYS_exit_group, 127);
}

void me_runtime_thread(const struct me_runtime_params *params, uint64_t rsp)
{
	struct me_thread_state *state = (struct me_thread_state *)((char *)params + params->state);
	uint64_t counters = (uint64_t)params + (uint64_t)params->counters, base, tp;
	struct me_stack_range *stack_range;

	if (!state->sets) {
		state->first.high = UINT64_MAX;
		return;
	}
	base = read_gs(state);
	tp = read_fs(state);
	if (base) {
		uint64_t off = counters + base - state->region;

		if (off % state->stride || off / state->stride >= state->sets)
			refuse();
		stack_range = stack_range_of(state, off / state->stride + 1);
		/* The same thread, on another stack or far away on its own. */
		if (stack_range->claim && stack_range->tp == tp) {
			set_stack_range(stack_range, rsp);
			return;
		}
	}
	find_set(state, rsp, tp, counters);
}

void me_runtime_threads_start(const struct me_runtime_params *params, uint64_t file, uint64_t sets,
			      bool fsgsbase, uint64_t rsp)
{
	struct me_thread_state *state = (struct me_thread_state *)((char *)params + params->state);
	uint64_t stride = params->counters_bytes + ME_RUNTIME_PAGE, bytes = sets * stride;
	long ret;

	state->fsgsbase = fsgsbase;
	if (read_gs(state))
		refuse();
	ret = call6(SYS_mmap, 0, (long)bytes, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (failed(ret))
		return;
	if (call4(SYS_madvise, ret, (long)bytes, MADV_WIPEONFORK, 0)) {
		call4(SYS_munmap, ret, (long)bytes, 0, 0);
		return;
	}
	state->region = (uint64_t)ret;
	state->stride = stride;
	state->file = file;
	state->sets = sets;
	if (!map_set(state, sets)) {
		state->sets = 0;
		return;
	}
	/* From now on, threads that were started earlier look for their own counters, too. */
	state->first.high = 0;
	find_set(state, rsp, read_fs(state), (uint64_t)params + (uint64_t)params->counters);
}
