// SPDX-License-Identifier: Apache-2.0
/*
 * undo - takes a version back; see live.h. The original's bytes may return at any moment: a jump that a thread
 * stands before is a whole instruction in both. The copies go only if nothing leads to them any more.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/live/inject.h"
#include "daemon/live/live_private.h"
#include "daemon/live/lookup_place.h"
#include "daemon/live/stack.h"
#include "libprof/base/clock.h"

struct undo {
	const struct md_live_request *request;
	struct md_version *version;
	const struct md_versions *mapped;
	struct md_process *process;
	struct md_gadgets gadgets;
	struct md_lookup_place place;
	struct md_lookup lookup; /* without the version */
	bool may_unmap;
	uint64_t probes, probes_end; /* the kernel's mapping for uprobes */
	struct md_live_result *out;
	int mem;
};

/*
 * Addresses in the copies, and in the page that tells unwinders of them. Where the kernel is to be told that a function returns
 * (uretprobes), it keeps the return address for itself, and the stack has one in the mapping for uprobes.
 */
static bool is_copy(void *arg, uint64_t address)
{
	const struct undo *u = arg;

	return address - md_version_segment(u->version) < u->version->changes.segment_size ||
	       (u->place.page && address - u->place.page < MD_LOOKUP_PAGE) ||
	       address - u->probes < u->probes_end - u->probes;
}

/* Reads the mappings again. Return: as md_process_read_maps(). */
static int find_probes(struct undo *u, struct mp_err *err)
{
	int r = md_process_read_maps(u->process, err);

	u->probes = u->probes_end = 0;
	for (size_t i = 0; !r && i < u->process->nr_maps; i++)
		if (!strcmp(u->process->maps[i].path, "[uprobes]")) {
			u->probes = u->process->maps[i].start;
			u->probes_end = u->process->maps[i].end;
		}
	return r;
}

/* In registers, and where a signal has saved them, also what leads to a copy in the next instruction. */
static bool leads_to_copy(void *arg, uint64_t word)
{
	const struct undo *u = arg;

	return is_copy(arg, word) || md_changes_has_word(&u->version->changes, word);
}

static int unmap_range(struct undo *u, struct md_stop *stop, uint64_t address, uint64_t size,
		       struct mp_err *err)
{
	const struct md_injection what = {
		.kind = MD_INJECT_UNMAP, .address = address, .size = size};

	return md_inject(stop, u->process, u->mem, &u->gadgets, &what, err);
}

/*
 * Has the loader mapped the file of @m here? It maps the first page, and behind it, at the same distance as in the file or
 * without a gap (lld), the other ones.
 */
static bool is_loaded(const struct md_process *p, const struct md_mapping *m)
{
	const struct md_mapping *first =
		m->start >= m->off ? md_process_mapping(p, m->start - m->off) : NULL;

	if (first && !first->off && first->start == m->start - m->off &&
	    md_mapping_same_file(first, m))
		return true;
	while (m->off && m > p->maps && m[-1].end == m->start && md_mapping_same_file(&m[-1], m))
		m--;
	return !m->off;
}

/* Is no other code mapped that the loader has not mapped? Unwinders need the page no more then. */
static bool is_last(const struct undo *u)
{
	for (size_t i = 0; i < u->process->nr_maps; i++) {
		const struct md_mapping *m = &u->process->maps[i];

		if (m->exec && m->path[0] == '/' && m->start != md_version_segment(u->version) &&
		    !is_loaded(u->process, m))
			return false;
	}
	return true;
}

/* The C library gets its own bytes back, and the page goes; or this no longer knows the version. Return: as unmap(). */
static int take_lookup_back(struct undo *u, struct md_stop *stop, struct mp_err *err)
{
	const struct md_lookup *l = &u->lookup;
	const bool last = is_last(u);
	const ssize_t size = last ? MD_LOOKUP_PATCH : MD_LOOKUP_PAGE;

	if (pwrite(u->mem, last ? l->old : l->page, (size_t)size,
		   (off_t)(last ? l->at : u->place.page)) != size)
		return mp_err_set(err, EIO, "process %d: its memory cannot be written",
				  (int)stop->pid);
	return last ? unmap_range(u, stop, u->place.page, MD_LOOKUP_PAGE, err) : 0;
}

/*
 * Unwinders no longer know the copies; then these go, last, since the version is found by them. Return: 0; else -errno with
 * a message.
 */
static int unmap(struct undo *u, struct md_stop *stop, struct mp_err *err)
{
	const struct md_version *v = u->version;
	int r;

	if (!md_lookup_place_holds(&u->place, u->mem))
		return mp_err_set(err, EPERM,
				  "process %d: another command has changed its C library",
				  (int)stop->pid);
	r = u->place.page ? take_lookup_back(u, stop, err) : 0;
	if (!r && md_version_counters_mapping(v, u->process))
		r = unmap_range(u, stop, md_version_counters(v), v->counters_size, err);
	return r ? r : unmap_range(u, stop, md_version_segment(v), v->changes.segment_size, err);
}

/*
 * Unmaps the copies, or notes why not. An error here leaves them mapped, which is right, too. Return: 0; -EIO: a call that
 * unmaps them is still under way.
 */
static int remove_copies(struct undo *u, struct md_stop *stop, struct mp_err *failed)
{
	const uint64_t counters = u->version->counters_size ? md_version_counters(u->version) : 0;
	const struct md_stack_query stacks = {.wanted = leads_to_copy, .arg = u},
				    memory = {.wanted = is_copy,
					      .arg = u,
					      .skip = {counters, u->place.page}};
	char *why = u->out->why_mapped;
	struct mp_err err = {0};
	uint64_t found = 0;
	pid_t tid = 0;
	int r = find_probes(u, &err);

	if (!r)
		r = md_stacks_search(stop, u->process, &u->gadgets, &stacks, &found, &tid, &err);
	if (r == 1)
		snprintf(why, sizeof(u->out->why_mapped),
			 "thread %d is in them, or returns to them", (int)tid);
	if (!r) {
		r = md_memory_search(stop, u->process, u->request->max_searched, &memory, &found,
				     &err);
		if (r == 1)
			snprintf(why, sizeof(u->out->why_mapped),
				 "its memory has an address in them");
	}
	if (!r)
		r = unmap(u, stop, &err);
	if (r < 0)
		snprintf(why, sizeof(u->out->why_mapped), "%.255s", err.msg);
	if (!r)
		u->out->state = MD_LIVE_NONE;
	if (r == -EIO)
		*failed = err;
	return r == -EIO ? r : 0;
}

/* Writes the old bytes of pages that have the version's, all of these or some. Return: 0; -EPERM, -EIO, -ENOMEM, with a message. */
static int write_back(struct undo *u, struct mp_err *err)
{
	const struct md_changes *c = &u->version->changes;
	const size_t *nr = u->version->pages.nr;
	uint8_t *each = malloc(c->nr_pages + 1);
	bool *skip = malloc((c->nr_pages + 1) * sizeof(*skip));
	int r = each && skip ? 0 : mp_err_code(err, ENOMEM);

	if (!r)
		r = md_version_pages(u->version, u->mapped, each, err);
	if (!r && nr[MD_PAGE_OTHER] > nr[MD_PAGE_MIXED])
		r = mp_err_set(err, EPERM, "process %d: somebody else has changed its code",
			       (int)u->process->pid);
	for (size_t i = 0; !r && i < c->nr_pages; i++)
		skip[i] = each[i] != MD_PAGE_NEW && each[i] != MD_PAGE_MIXED;
	u->out->changed = !r && (nr[MD_PAGE_NEW] || nr[MD_PAGE_MIXED]);
	if (!r && md_live_write_old(u->version, u->mem, skip))
		r = mp_err_set(err, EIO, "process %d: its code cannot be written: %s",
			       (int)u->process->pid, strerror(errno));
	free(skip);
	free(each);
	return r;
}

static int change(struct undo *u, struct md_stop *stop, struct mp_err *err)
{
	int r = write_back(u, err);

	if (r)
		return r;
	u->out->state = MD_LIVE_MAPPED;
	if (u->may_unmap)
		r = remove_copies(u, stop, err);
	else
		snprintf(u->out->why_mapped, sizeof(u->out->why_mapped), "no way to unmap them");
	/* Threads that are in the copies call the original's functions from now on, and so leave the copies. */
	if (!r && u->out->state == MD_LIVE_MAPPED &&
	    md_live_write_copies(u->version, u->mem, u->version->copies.retired))
		r = mp_err_set(err, EIO, "process %d: its code cannot be written: %s",
			       (int)stop->pid, strerror(errno));
	return r;
}

static int run(struct undo *u, struct mp_err *err)
{
	uint64_t end_ns = mp_now_ns() + MD_LIVE_LIMIT_NS;
	struct md_stop stop;
	int r = md_process_read_maps(u->process, err);

	if (!r)
		r = md_process_check(u->process, err);
	if (!r) {
		u->mem = md_live_open_mem(u->process->pid, err);
		r = u->mem < 0 ? u->mem : 0;
	}
	if (!r)
		r = md_version_read_copies(u->version, err);
	if (!r)
		r = md_version_pages(u->version, u->mapped, NULL, err);
	if (r)
		return r;
	md_live_look(u->version, u->process, u->out);
	if (u->request->dry_run)
		return 0;
	u->may_unmap = !md_gadgets_find(u->process, &u->gadgets, err) &&
		       !md_lookup_place_find(u->process, u->mem, &u->place, err) &&
		       (!u->place.page || !md_lookup_place_make(u->process, &u->place, u->mapped,
								NULL, u->version, &u->lookup, err));
	r = md_live_stop(u->process, &stop, err);
	for (unsigned int i = 0; r == -EAGAIN && i < MD_LIVE_ROUNDS && mp_now_ns() < end_ns; i++) {
		md_live_wait(i);
		r = md_live_stop(u->process, &stop, err);
	}
	if (r)
		return r;
	r = change(u, &stop, err);
	md_live_go_on(&stop, u->out);
	return r ? r : md_version_check_text(u->version, u->mapped, true, err);
}

int md_live_undo(const struct md_live_request *request, struct md_version *version,
		 const struct md_versions *mapped, struct md_process *process,
		 struct md_live_result *out, struct mp_err *err)
{
	struct undo u = {.request = request,
			 .version = version,
			 .mapped = mapped,
			 .process = process,
			 .mem = -1,
			 .out = out};
	int r;

	*out = (struct md_live_result){0};
	r = run(&u, err);
	if (u.mem >= 0)
		close(u.mem);
	free(u.gadgets.sigreturns);
	return r;
}
