// SPDX-License-Identifier: Apache-2.0
/*
 * adopt - puts a version into a process; see live.h. If another version of the same original is in use, its pages become
 * the new one's in the same stop, and its copies stay mapped: threads may be in them.
 */
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/live/counters.h"
#include "daemon/live/filter.h"
#include "daemon/live/inject.h"
#include "daemon/live/live_private.h"
#include "daemon/live/lookup_place.h"
#include "daemon/live/stack.h"
#include "libprof/base/clock.h"
#include "libprof/note/counts_file.h"

struct adopt {
	const struct md_live_request *request;
	struct md_version *version; /* perhaps one of @mapped */
	struct md_process process;
	struct md_versions mapped;
	struct md_gadgets gadgets;
	struct md_lookup_place place;
	struct md_lookup lookup;
	bool lookup_changes; /* the page that is there has another table */
	bool was_mapped;     /* the copies were, so they may be retired */
	struct md_counters_file counters;
	struct md_live_result *out;
	uint64_t end_ns; /* no other try begins then */
	/* A thread that was in the way, and where. */
	pid_t in_way;
	uint64_t in_way_at;
	int mem;
};

/* The addresses strictly inside patches, and in the page if its table changes. */
static bool is_inside(void *arg, uint64_t address)
{
	const struct adopt *a = arg;

	if (address >= a->version->low && address < a->version->high)
		return md_changes_inside(&a->version->changes, address - a->version->bias);
	return a->place.jumps && a->lookup_changes && address - a->place.page < MD_LOOKUP_PAGE;
}

/* Is [@start, @start + @size) free? */
static int check_free(const struct adopt *a, uint64_t start, uint64_t size, struct mp_err *err)
{
	for (uint64_t at = start; at < start + size; at += MD_LIVE_PAGE) {
		const struct md_mapping *m = md_process_mapping(&a->process, at);

		if (m)
			return mp_err_set(err, EPERM,
					  "process %d: the place of the copies, 0x%" PRIx64
					  ", is taken by %s; write a version with --live-at",
					  (int)a->process.pid, at, m->path);
	}
	return 0;
}

/*
 * Does the process find this file at @path? It may have another root directory, or other file systems. What it opens is
 * compared again; here, nothing has changed yet.
 */
static int check_sees(const struct adopt *a, const char *path, uint64_t dev, uint64_t ino,
		      struct mp_err *err)
{
	char name[PATH_MAX + 32];
	struct stat st;

	snprintf(name, sizeof(name), "/proc/%d/root%s", (int)a->process.pid, path);
	if (!stat(name, &st) && st.st_dev == dev && st.st_ino == ino)
		return 0;
	return mp_err_set(
		err, EPERM,
		"process %d: sees another file at %s, or none (a container, PrivateTmp= or "
		"another root directory)",
		(int)a->process.pid, path);
}

static int check_place(const struct adopt *a, struct mp_err *err)
{
	const struct md_version *v = a->version;
	int r = 0;

	if (!md_version_is_mapped(v, &a->process)) {
		r = check_sees(a, v->path, v->output_dev, v->output_ino, err);
		if (!r)
			r = check_free(a, md_version_segment(v), v->changes.segment_size, err);
	}
	if (!r && !md_version_counters_mapping(v, &a->process))
		r = check_free(a, md_version_counters(v), v->counters_size, err);
	return r;
}

/* The file of counts, and whether the counters that are mapped are there. */
static int prepare_counters(struct adopt *a, struct mp_err *err)
{
	const struct md_version *v = a->version;
	const struct md_mapping *m = md_version_counters_mapping(v, &a->process);

	if (!v->counters_size)
		return 0;
	if (!m) {
		int r = md_counters_file_make(a->request->counts, &a->process, v->counters_size,
					      v->table_hash, &a->counters, err);

		return r ? r
			 : check_sees(a, a->counters.path, a->counters.dev, a->counters.ino, err);
	}
	if (md_counters_are_in(a->request->counts, m))
		return 0;
	return mp_err_set(err, EPERM,
			  "process %d: counts into %s already; take this version back first",
			  (int)a->process.pid, m->path);
}

static bool has_counters(const struct adopt *a)
{
	return !a->version->counters_size || md_version_counters_mapping(a->version, &a->process);
}

static int refuse_cut(const struct adopt *a, const struct md_version *from,
		      const struct md_version *to, uint64_t cut, struct mp_err *err)
{
	return mp_err_set(err, EPERM,
			  "process %d: %s leads to 0x%" PRIx64 ", inside of a change of %s; "
			  "take it back first",
			  (int)a->process.pid, from->path, cut, to->path);
}

/* Threads may be in the copies of a version while the code of another is in use. */
static int check_leads(const struct adopt *a, const struct md_version *from,
		       const struct md_version *to, struct mp_err *err)
{
	uint64_t cut = md_copies_find_cut(&from->copies, &to->changes);

	return cut ? refuse_cut(a, from, to, cut, err) : 0;
}

/*
 * For a version whose changes are not known. No page has its bytes, so nothing can lead into its changes until it is adopted
 * again, and that adoption checks it. But threads may still be in its copies.
 */
static int check_unused(const struct adopt *a, const struct md_version *rival, struct mp_err *err)
{
	uint64_t cut;
	int r = md_copies_search_cut(rival->original, rival->output, &rival->changes,
				     &a->version->changes, &cut, err);

	return r || !cut ? r : refuse_cut(a, rival, a->version, cut, err);
}

/* Also adds to the memory that becomes the process's own: that of copies that get other calls. */
static int check_known(const struct adopt *a, struct md_version *rival, struct mp_err *err)
{
	int r = md_version_read_copies(rival, err);

	if (!r)
		r = check_leads(a, rival, a->version, err);
	if (!r)
		r = check_leads(a, a->version, rival, err);
	/* Calls of copies that nobody enters any more have been changed before. */
	if (rival->pages.nr[MD_PAGE_NEW])
		a->out->private_bytes += (uint64_t)rival->copies.nr_pages * MD_LIVE_PAGE;
	return r;
}

/* @late: only those that were found to be in use after the first call. */
static int check_rivals(const struct adopt *a, bool late, struct mp_err *err)
{
	int r = 0;

	for (size_t i = 0; !r && i < a->mapped.nr; i++) {
		struct md_version *rival = &a->mapped.list[i];

		if (!md_version_is_rival(a->version, rival) ||
		    (late && (!rival->changes_known || rival->copies_known)))
			continue;
		r = rival->changes_known ? check_known(a, rival, err) : check_unused(a, rival, err);
	}
	return r;
}

static int check_memory(const struct adopt *a, struct mp_err *err)
{
	if (a->out->private_bytes <= a->request->max_private)
		return 0;
	return mp_err_set(err, EPERM,
			  "process %d: %" PRIu64 " bytes would become its own memory, and "
			  "--limit permits %" PRIu64,
			  (int)a->process.pid, a->out->private_bytes, a->request->max_private);
}

/* Does any page have the bytes of another version? */
static bool has_rival_pages(const struct adopt *a)
{
	for (size_t i = 0; i < a->mapped.nr; i++)
		if (md_version_is_rival(a->version, &a->mapped.list[i]) &&
		    a->mapped.list[i].pages.nr[MD_PAGE_NEW])
			return true;
	return false;
}

/*
 * A probe of somebody else must stand in no change: the kernel executes what the file has there, and goes on
 * behind it.
 */
static int check_guarded(const struct adopt *a, struct mp_err *err)
{
	return a->version->pages.nr[MD_PAGE_GUARDED]
		       ? mp_err_set(err, EPERM,
				    "process %d: somebody else has a breakpoint in code that would "
				    "change (a probe that is not at a function's beginning); take "
				    "it away first",
				    (int)a->process.pid)
		       : 0;
}

static int prepare(struct adopt *a, struct mp_err *err)
{
	struct md_version *v = a->version;
	int r = md_process_check(&a->process, err);

	/* Not earlier: a child between vfork() and exec still has the memory of its parent. */
	if (!r) {
		a->mem = md_live_open_mem(a->process.pid, err);
		r = a->mem < 0 ? a->mem : md_version_check_proof(v, err);
	}
	if (!r)
		r = md_version_check_text(v, &a->mapped, false, err);
	if (!r)
		r = check_guarded(a, err);
	if (!r) {
		md_live_look(v, &a->process, a->out);
		r = md_version_read_copies(v, err);
	}
	if (!r)
		r = check_rivals(a, false, err);
	if (!r)
		r = check_place(a, err);
	if (!r)
		r = md_lookup_place_find(&a->process, a->mem, &a->place, err);
	if (r)
		return r;
	/* Two more pages become private: the one of _dl_find_object(), and the unwinders' page. */
	a->out->private_bytes +=
		(a->place.jumps ? 0 : MD_LIVE_PAGE) + (a->place.page ? 0 : MD_LOOKUP_PAGE);
	r = check_memory(a, err);
	if (!r && a->place.ip >= v->low && a->place.ip < v->high)
		r = mp_err_set(err, EPERM, "%s: is the C library, which answers unwinders",
			       v->original_path);
	if (!r)
		r = md_gadgets_find(&a->process, &a->gadgets, err);
	return r || a->request->dry_run ? r : prepare_counters(a, err);
}

/* ---- the copies --------------------------------------------------------------------------------- */

/* The same while all stand still: another thread could give the serving one another filter. */
static int inject_filtered(struct adopt *a, const struct md_injection *what, struct mp_err *err)
{
	struct md_stop stop;
	int r = md_live_stop(&a->process, &stop, err);

	if (r)
		return r;
	r = md_inject(&stop, &a->process, a->mem, &a->gadgets, what, err);
	md_stop_end(&stop);
	return r ? r : md_process_read_maps(&a->process, err);
}

/*
 * Does @what by a thread that alone stands still: nothing leads there yet. Return: 0; -EAGAIN: no thread can do it now;
 * else as md_live_adopt().
 */
static int inject(struct adopt *a, const struct md_injection *what, struct mp_err *err)
{
	struct md_stop stop;
	pid_t *tids;
	size_t nr;
	int r;

	if (md_filter_is_there(a->process.pid))
		return inject_filtered(a, what, err);
	r = md_process_threads(a->process.pid, &tids, &nr);
	if (r)
		return mp_err_set(err, -r, "process %d: %s", (int)a->process.pid, strerror(-r));
	r = -EAGAIN;
	for (size_t i = 0; i < nr && r == -EAGAIN && (!i || mp_now_ns() < a->end_ns); i++) {
		r = md_stop_thread(a->process.pid, tids[i], &stop, err);
		if (!r) {
			r = md_process_start_time(a->process.pid) != a->process.start_time
				    ? -ESRCH
				    : md_inject(&stop, &a->process, a->mem, &a->gadgets, what, err);
			md_stop_end(&stop);
		}
		if (r == -ESRCH && i + 1 < nr)
			r = -EAGAIN;
	}
	free(tids);
	return r ? r : md_process_read_maps(&a->process, err);
}

static int map_copies(struct adopt *a, struct mp_err *err)
{
	const struct md_version *v = a->version;
	const struct md_injection what = {.kind = MD_INJECT_MAP,
					  .path = v->path,
					  .address = md_version_segment(v),
					  .size = v->changes.segment_size,
					  .off = v->changes.segment_off,
					  .dev = v->output_dev,
					  .ino = v->output_ino};
	int r = inject(a, &what, err);

	if (!r && !md_version_is_mapped(v, &a->process))
		r = mp_err_set(err, EPERM, "process %d: the copies are not where they were mapped",
			       (int)a->process.pid);
	return r;
}

static int map_counters(struct adopt *a, struct mp_err *err)
{
	const struct md_version *v = a->version;
	const struct md_injection what = {.kind = MD_INJECT_SHARE,
					  .path = a->counters.path,
					  .address = md_version_counters(v),
					  .size = v->counters_size,
					  .off = MP_COUNTS_FILE_HEADER_BYTES,
					  .dev = a->counters.dev,
					  .ino = a->counters.ino};
	int r = inject(a, &what, err);

	if (!r && !md_version_counters_mapping(v, &a->process))
		r = mp_err_set(err, EPERM,
			       "process %d: its counters are not where they were mapped",
			       (int)a->process.pid);
	return r;
}

/* Nothing leads to the counters and to the copies yet. */
static int unmap(struct adopt *a, struct mp_err *err)
{
	const struct md_version *v = a->version;
	const struct md_injection what[] = {{.kind = MD_INJECT_UNMAP,
					     .address = md_version_counters(v),
					     .size = v->counters_size},
					    {.kind = MD_INJECT_UNMAP,
					     .address = md_version_segment(v),
					     .size = v->changes.segment_size}};
	int r = md_version_counters_mapping(v, &a->process) ? inject(a, &what[0], err) : 0;

	/* A version is found by its copies: they go last. */
	return r ? r : inject(a, &what[1], err);
}

/* The page that tells unwinders of the copies; nothing jumps there yet. */
static int map_page(struct adopt *a, struct mp_err *err)
{
	const struct md_injection what = {.kind = MD_INJECT_PAGE,
					  .address = md_lookup_place_choose(&a->process, &a->place),
					  .size = MD_LOOKUP_PAGE};
	int r = what.address ? inject(a, &what, err)
			     : mp_err_set(err, EPERM, "process %d: no free page near its C library",
					  (int)a->process.pid);

	if (!r)
		a->place.page = what.address;
	return r;
}

/* Calls @step until it is done, or another thread has been waited for long enough. */
static int repeat(struct adopt *a, int (*step)(struct adopt *a, struct mp_err *err),
		  struct mp_err *err)
{
	int r = step(a, err);

	for (unsigned int i = 0; r == -EAGAIN && i < MD_LIVE_ROUNDS && mp_now_ns() < a->end_ns;
	     i++) {
		md_live_wait(i);
		r = md_process_read_maps(&a->process, err);
		if (!r)
			r = step(a, err);
	}
	return r;
}

/* Makes the unwinders' page as it must be once the copies are in use. */
static int prepare_lookup(struct adopt *a, struct mp_err *err)
{
	int r = 0;

	if (!a->place.page)
		r = repeat(a, map_page, err);
	if (!r)
		r = md_lookup_place_make(&a->process, &a->place, &a->mapped, a->version, NULL,
					 &a->lookup, err);
	if (r)
		return r;
	a->lookup_changes = memcmp(a->place.page_now, a->lookup.page, MD_LOOKUP_PAGE) != 0;
	if (a->place.jumps)
		return 0;
	if (pwrite(a->mem, a->lookup.page, MD_LOOKUP_PAGE, (off_t)a->place.page) != MD_LOOKUP_PAGE)
		return mp_err_set(err, EIO, "process %d: its memory cannot be written",
				  (int)a->process.pid);
	memcpy(a->place.page_now, a->lookup.page, MD_LOOKUP_PAGE);
	return 0;
}

/* The copies go of versions that are not in use, if nothing leads there: as many stay as are switched between. */
static int remove_unused(struct adopt *a, struct mp_err *err)
{
	for (size_t i = 0; i < a->mapped.nr;) {
		struct md_version *rival = &a->mapped.list[i++], gone;
		struct md_live_result result;
		struct mp_err quiet;
		int r;

		if (!md_version_is_rival(a->version, rival))
			continue;
		r = md_version_read_changes(rival, err);
		if (r && mp_err_is_failure(r))
			return r;
		if (r)
			continue;
		r = md_version_pages(rival, &a->mapped, NULL, err);
		if (r)
			return r;
		if (rival->pages.nr[MD_PAGE_NEW])
			continue;
		/* They may be gone also after an error; so may the page, which goes with the last of them. */
		md_live_undo(a->request, rival, &a->mapped, &a->process, &result, &quiet);
		r = md_process_read_maps(&a->process, err);
		if (!r)
			r = md_lookup_place_find(&a->process, a->mem, &a->place, err);
		if (r)
			return r;
		if (result.state != MD_LIVE_NONE)
			continue;
		md_versions_take(&a->mapped, rival, &gone);
		md_version_close(&gone);
		i--;
	}
	return 0;
}

/* Maps what is not there yet: the copies first, by which the version is found if this program is killed. */
static int map_all(struct adopt *a, struct mp_err *err)
{
	int r = 0;

	a->was_mapped = md_version_is_mapped(a->version, &a->process);
	if (!a->was_mapped) {
		r = remove_unused(a, err);
		if (!r)
			r = repeat(a, map_copies, err);
	}
	if (r)
		return r;
	if (!has_counters(a))
		r = repeat(a, map_counters, err);
	if (!r)
		r = prepare_lookup(a, err);
	if (!r || a->was_mapped)
		return r;
	repeat(a, unmap, NULL);
	return r;
}

/* ---- the patches -------------------------------------------------------------------------------- */

/* Before anything leads to the copies, unwinders know them. */
static int write_lookup(const struct adopt *a)
{
	const struct md_lookup *l = &a->lookup;

	if (a->place.jumps)
		return a->lookup_changes && pwrite(a->mem, l->page, MD_LOOKUP_PAGE,
						   (off_t)a->place.page) != MD_LOOKUP_PAGE;
	return pwrite(a->mem, l->patch, MD_LOOKUP_PATCH, (off_t)l->at) != MD_LOOKUP_PATCH;
}

static int not_written(const struct adopt *a, struct mp_err *err)
{
	return mp_err_set(err, EIO, "process %d: its code cannot be written: %s",
			  (int)a->process.pid, strerror(errno));
}

/*
 * Another version that is in use, or partly, is retired, and pages that only it changed get the original's bytes. Return: 0;
 * -EIO, -ENOMEM, with a message.
 */
static int take_rival_back(const struct adopt *a, struct md_version *rival, struct mp_err *err)
{
	const struct md_changes *c = &rival->changes;
	uint8_t *each = malloc(c->nr_pages + 1);
	bool *skip = malloc((c->nr_pages + 1) * sizeof(*skip));
	int r = each && skip ? 0 : mp_err_code(err, ENOMEM);

	if (!r)
		r = md_version_pages(rival, &a->mapped, each, err);
	for (size_t i = 0; !r && i < c->nr_pages; i++)
		skip[i] = (each[i] != MD_PAGE_NEW && each[i] != MD_PAGE_MIXED) ||
			  md_version_has_page(a->version, c->pages[i].vaddr);
	if (!r && (rival->pages.nr[MD_PAGE_NEW] || rival->pages.nr[MD_PAGE_MIXED]) &&
	    (md_live_write_copies(rival, a->mem, rival->copies.retired) ||
	     md_live_write_old(rival, a->mem, skip)))
		r = not_written(a, err);
	free(skip);
	free(each);
	return r;
}

static size_t nr_unknown(const struct adopt *a)
{
	size_t nr = 0;

	for (size_t i = 0; i < a->mapped.nr; i++)
		nr += md_version_is_rival(a->version, &a->mapped.list[i]) &&
		      !a->mapped.list[i].changes_known;
	return nr;
}

/*
 * Are versions whose changes are not known still not in use? Another run of this program may have changed the process after all:
 * with another /proc, as in a container, it has another lock. Return: 0; -EAGAIN: one is in use; else as md_live_adopt().
 */
static int check_still_unused(struct adopt *a, struct mp_err *err)
{
	size_t before = nr_unknown(a);
	int r = before ? md_version_check_text(a->version, &a->mapped, false, err) : 0;

	return r || nr_unknown(a) == before
		       ? r
		       : mp_err_set(err, EAGAIN, "process %d: another command changes it",
				    (int)a->process.pid);
}

/* In a stopped process. Return: 0; -EAGAIN: a thread is in the way, or another version is in use; else as md_live_adopt(). */
static int change(struct adopt *a, const struct md_stop *stop, struct mp_err *err)
{
	struct md_version *v = a->version;
	const struct md_stack_query query = {.wanted = is_inside, .arg = a};
	int r = md_stacks_search(stop, &a->process, &a->gadgets, &query, &a->in_way_at, &a->in_way,
				 err);

	if (r != 1)
		a->in_way = 0;
	if (r == 1 || r == -EFBIG || r == -EIO)
		return -EAGAIN;
	if (!r)
		r = check_still_unused(a, err);
	if (r)
		return r;
	if (!md_lookup_place_holds(&a->place, a->mem))
		return mp_err_set(err, EPERM,
				  "process %d: another command has changed its C library",
				  (int)stop->pid);
	r = md_version_pages(v, &a->mapped, NULL, err);
	if (r)
		return r;
	if (v->pages.nr[MD_PAGE_OTHER])
		return mp_err_set(err, EPERM, "process %d: somebody else has changed its code",
				  (int)stop->pid);
	r = check_guarded(a, err);
	if (r)
		return r;
	if (write_lookup(a))
		return mp_err_set(err, EIO, "process %d: its memory cannot be written",
				  (int)stop->pid);
	for (size_t i = 0; !r && i < a->mapped.nr; i++)
		if (md_version_is_rival(v, &a->mapped.list[i]) && a->mapped.list[i].changes_known)
			r = take_rival_back(a, &a->mapped.list[i], err);
	if (r)
		return r;
	if (a->was_mapped && md_live_write_copies(v, a->mem, v->copies.own))
		return not_written(a, err);
	/* Last: once all pages are the version's, nothing is left to be done. */
	return md_live_write(v, a->mem) ? not_written(a, err) : 0;
}

static int say_in_way(const struct adopt *a, struct mp_err *err)
{
	char name[256];

	return mp_err_set(err, EAGAIN, "process %d: thread %d is always in %s", (int)a->process.pid,
			  (int)a->in_way,
			  md_version_function(a->version, a->in_way_at, name, sizeof(name)));
}

static int one_round(struct adopt *a, struct mp_err *err)
{
	struct md_stop stop;
	int r = md_process_read_maps(&a->process, err);

	if (!r)
		r = check_rivals(a, true, err);
	if (!r)
		r = check_memory(a, err);
	if (!r)
		r = md_live_stop(&a->process, &stop, err);
	if (r)
		return r;
	r = change(a, &stop, err);
	md_live_go_on(&stop, a->out);
	/*
	 * Only now: whoever may write the original can make it shorter, and this program ends when it reads what is
	 * gone.
	 */
	return r == -EAGAIN && a->in_way ? say_in_way(a, err) : r;
}

static int run(struct adopt *a, struct mp_err *err)
{
	int r = prepare(a, err);

	a->end_ns = mp_now_ns() + MD_LIVE_LIMIT_NS;
	a->out->rounds = 0;
	if (r || a->request->dry_run)
		return r;
	if (a->out->state == MD_LIVE_IN_USE && has_counters(a) && !has_rival_pages(a))
		return 0;
	r = map_all(a, err);
	if (r)
		return r;
	r = repeat(a, one_round, err);
	if (r)
		return r;
	a->out->changed = true;
	a->out->state = MD_LIVE_IN_USE;
	return 0;
}

int md_live_adopt(const struct md_live_request *request, struct md_version *version,
		  struct md_live_result *out, struct mp_err *err)
{
	struct adopt a = {.request = request, .version = version, .out = out, .mem = -1};
	struct md_version *known = NULL;
	int r;

	*out = (struct md_live_result){0};
	r = md_process_open(request->pid, &a.process, err);
	if (!r)
		r = md_versions_find(&a.process, false, &a.mapped, err);
	if (!r)
		known = md_versions_of(&a.mapped, request->output);
	if (known && !md_version_is_mapped(known, &a.process))
		known = NULL;
	if (known) {
		a.version = known;
		r = md_version_read_changes(known, err);
	} else if (!r) {
		r = md_version_open(&a.process, request->output, &a.mapped, version, err);
	}
	if (!r)
		r = run(&a, err);
	free(a.gadgets.sigreturns);
	if (a.mem >= 0)
		close(a.mem);
	/* remove_unused() did not run, because this version was mapped; so the pointer is still right. */
	if (known)
		md_versions_take(&a.mapped, known, version);
	md_versions_close(&a.mapped);
	md_process_close(&a.process);
	return r;
}
