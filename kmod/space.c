// SPDX-License-Identifier: GPL-2.0
/* space - keeps the mappings of each process; see space.h. */
#include <linux/atomic.h>
#include <linux/kernel.h>
#include <linux/sched/signal.h>
#include <linux/spinlock.h>
#include <linux/string.h>

#include <asm/vdso.h>

#include "kmod/file.h"
#include "kmod/morphmon.h"
#include "kmod/space.h"
#include "kmod/space_private.h"

#define NR_BUCKETS MORPH_NR_EPOCHS
/*
 * Spaces of some processes. The lock is also taken in interrupts; no other lock is taken
 * while it is held.
 */
struct bucket {
	raw_spinlock_t lock;
	struct hlist_head spaces;
};

static struct bucket buckets[NR_BUCKETS];
static bool is_on;
/* A space with an earlier generation is invalid. */
static atomic_t generation = ATOMIC_INIT(0);

static struct bucket *bucket_of(u32 tgid)
{
	return &buckets[tgid % NR_BUCKETS];
}

static void space_free(struct space *space)
{
	if (!space)
		return;
	morph_maps_put(space->maps);
	morph_mapped_put(space->program);
	morph_space_put_back(space);
}

void morph_spaces_init(void)
{
	u32 i;

	for (i = 0; i < NR_BUCKETS; i++)
		raw_spin_lock_init(&buckets[i].lock);
}

void morph_spaces_start(void)
{
	WRITE_ONCE(is_on, true);
}

bool morph_spaces_are_on(void)
{
	return READ_ONCE(is_on);
}

void morph_spaces_stop(void)
{
	struct hlist_node *next;
	struct space *space;
	u32 i;

	WRITE_ONCE(is_on, false);
	for (i = 0; i < NR_BUCKETS; i++) {
		hlist_for_each_entry_safe(space, next, &buckets[i].spaces, node)
			space_free(space);
		INIT_HLIST_HEAD(&buckets[i].spaces);
	}
	morph_space_pools_free();
	morph_mapped_free_all();
}

void morph_spaces_invalidate(void)
{
	atomic_inc(&generation);
}

/* Context: under the bucket's lock. */
static struct space *find(struct bucket *bucket, u32 tgid)
{
	struct space *space;

	hlist_for_each_entry(space, &bucket->spaces, node)
		if (space->tgid == tgid)
			return space;
	return NULL;
}

/*
 * True if @space belongs to the program that @task runs now, and no event was lost since.
 * Such a process is reported as a whole, without its threads: the reader does not count
 * them.
 */
static bool is_current(const struct space *space, const struct task_struct *task)
{
	return space && space->exec_id == (u32)task->self_exec_id &&
	       space->generation == (u32)atomic_read(&generation);
}

/* True if @space has all mappings of @task. */
static bool is_known(const struct space *space, const struct task_struct *task)
{
	return is_current(space, task) && !space->is_overfull;
}

/* ---- writing records ---- */

static u32 number_of(const struct morph_mapped *file)
{
	return file->serial % MORPH_NR_FILES;
}

static bool is_file_reported(const struct morph_cpu *cpu, const struct morph_mapped *file)
{
	return cpu->files[number_of(file)] == file->serial;
}

/* Return: false if there was no room. */
static bool write_file(struct morph_cpu *cpu, const struct morph_mapped *file)
{
	u32 size = file->file.record.size;
	struct morph_file *record;

	if (is_file_reported(cpu, file))
		return true;
	record = morph_ring_reserve(&cpu->ring, size);
	if (!record)
		return false;
	memcpy(record, &file->file, size);
	record->record.cpu = smp_processor_id();
	record->time_ns = ktime_get_ns();
	record->number = number_of(file);
	morph_ring_commit(&cpu->ring, size);
	cpu->files[number_of(file)] = file->serial;
	return true;
}

/* Writes the next @nr mappings, whose files were reported. */
static bool write_maps(struct morph_cpu *cpu, struct space *space, u32 nr)
{
	const struct map *map = &space->maps->map[space->nr_reported];
	u64 vdso = space->is_begun ? 0 : (unsigned long)current->mm->context.vdso;
	struct morph_space *record;
	u32 i, size = struct_size(record, maps, nr + (vdso != 0));

	record = morph_record_begin(cpu, MORPH_REC_SPACE, size, current);
	if (!record)
		return false;
	if (!space->is_begun)
		record->task.flags = MORPH_SPACE_NEW;
	record->nr_threads = get_nr_threads(current);
	record->pad = 0;
	for (i = 0; i < nr; i++, map++)
		record->maps[i] = (struct morph_space_map){
			.start = map->start | number_of(map->file) |
				 (map->file == space->program ? MORPH_SPACE_PROGRAM : 0),
			.nr_pages = (map->end - map->start) >> PAGE_SHIFT,
			.off_pages = map->off >> PAGE_SHIFT,
		};
	if (vdso)
		record->maps[nr] = (struct morph_space_map){
			.start = vdso | MORPH_SPACE_VDSO,
			.nr_pages = current->mm->context.vdso_image->size >> PAGE_SHIFT,
		};
	morph_ring_commit(&cpu->ring, size);
	space->nr_reported += nr;
	space->is_begun = true;
	space->is_reported = true;
	return true;
}

/*
 * Writes all mappings that were not reported yet. Two files of a process may get the same
 * number. So mappings with the old meaning are written before a FILE record changes the
 * number.
 */
static bool write_new_maps(struct morph_cpu *cpu, struct space *space)
{
	const struct maps *maps = space->maps;
	u32 end;

	while (maps && space->nr_reported < maps->nr) {
		if (!write_file(cpu, maps->map[space->nr_reported].file))
			return false;
		for (end = space->nr_reported + 1; end < maps->nr; end++)
			if (!is_file_reported(cpu, maps->map[end].file))
				break;
		if (!write_maps(cpu, space, end - space->nr_reported))
			return false;
	}
	return true;
}

bool morph_space_open(struct morph_cpu *cpu, bool is_user, u32 *flags)
{
	struct bucket *bucket = bucket_of(current->tgid);
	struct space *space;
	bool ret = true;

	*flags = 0;
	cpu->has_unreported_maps = false;
	if (!READ_ONCE(is_on))
		return true;
	raw_spin_lock(&bucket->lock);
	space = find(bucket, current->tgid);
	if (is_known(space, current)) {
		if (is_user)
			ret = write_new_maps(cpu, space);
		cpu->has_unreported_maps = space->maps && space->nr_reported < space->maps->nr;
		if (ret && !space->is_begun && space->program) {
			ret = write_file(cpu, space->program);
			*flags = number_of(space->program) + 1;
			space->is_reported |= ret;
		}
	}
	raw_spin_unlock(&bucket->lock);
	return ret;
}

/* ---- events ---- */

/* True if @added changes nothing: the newest mapping that it overlaps is the same. */
static bool is_there(const struct maps *maps, const struct map *added)
{
	const struct map *map;
	u32 i;

	for (i = maps->nr; i--;) {
		map = &maps->map[i];
		if (map->start < added->end && added->start < map->end)
			return map->start == added->start && map->end == added->end &&
			       map->off == added->off && map->file == added->file;
	}
	return false;
}

/* @space->maps must be its own and have room. */
static void add(struct space *space, const struct map *added)
{
	struct maps *maps = space->maps;
	u32 i, nr = 0, nr_reported = space->nr_reported;

	for (i = 0; i < maps->nr; i++) {
		if (maps->map[i].start < added->start || maps->map[i].end > added->end) {
			maps->map[nr++] = maps->map[i];
			continue;
		}
		/* hidden completely by the new mapping */
		morph_mapped_put(maps->map[i].file);
		space->nr_reported -= i < nr_reported;
	}
	maps->map[nr++] = *added;
	maps->nr = nr;
}

/* Larger mappings do not fit into struct morph_space_map; no program's code needs one. */
static bool fits_record(const struct map *map)
{
	return (map->end - map->start) >> PAGE_SHIFT <= U32_MAX &&
	       map->off >> PAGE_SHIFT <= U32_MAX;
}

/* Objects that are allocated before the lock is taken, or freed after it is released. */
struct spare {
	struct space *space;
	struct maps *maps;
	struct morph_mapped *program;
};

static void spare_free(struct spare *spare)
{
	if (spare->space)
		morph_space_put_back(spare->space);
	morph_maps_put(spare->maps);
	morph_mapped_put(spare->program);
	*spare = (struct spare){};
}

static bool spare_alloc(struct spare *spare, bool with_space, u32 nr)
{
	u32 room = clamp_t(u32, nr + nr / 2 + 1, NR_MAPS_MIN, NR_MAPS_MAX);

	spare_free(spare);
	if (with_space)
		spare->space = morph_space_alloc();
	spare->maps = morph_maps_alloc(room);
	return spare->maps && (!with_space || spare->space);
}

/* The space of a new program, which replaces the old space. */
static struct space *begin(struct bucket *bucket, struct space *space, struct spare *spare)
{
	if (!space) {
		space = spare->space;
		spare->space = NULL;
		/* Told: the reader may know the process from earlier records or from /proc. */
		*space = (struct space){.tgid = current->tgid, .is_reported = true};
		hlist_add_head(&space->node, &bucket->spaces);
	}
	swap(space->maps, spare->maps);
	swap(space->program, spare->program);
	space->exec_id = current->self_exec_id;
	space->generation = atomic_read(&generation);
	space->nr_reported = 0;
	space->is_begun = false;
	space->is_overfull = false;
	return space;
}

/*
 * Context: under the bucket's lock. Return: -EAGAIN: the caller must allocate @spare for
 * *@nr mappings, and with *@is_new a space, too; else enum morph_event_action.
 */
static int take_map(struct morph_cpu *cpu, struct bucket *bucket, struct map *map, bool is_program,
		    struct spare *spare, bool *is_new, u32 *nr)
{
	struct space *space = find(bucket, current->tgid);
	bool is_exec, is_changed;
	struct maps *maps;

	is_exec = current->in_execve && (!space || space->exec_id != (u32)current->self_exec_id);
	if (is_exec ? !fits_record(map) : !is_known(space, current))
		return MORPH_EVENT_WRITE;
	maps = is_exec ? NULL : space->maps;
	*is_new = is_exec && !space;
	*nr = maps ? maps->nr : 0;
	if (maps && is_there(maps, map))
		return MORPH_EVENT_SKIP;
	if (*nr == NR_MAPS_MAX || !fits_record(map)) {
		space->is_overfull = true;
		space->is_reported = true;
		return cpu->on && write_new_maps(cpu, space) ? MORPH_EVENT_WRITE
							     : MORPH_EVENT_COUNT_LOST;
	}
	if (!maps || *nr == maps->room || atomic_read(&maps->nr_users) > 1) {
		if (!spare->maps || spare->maps->room <= *nr || (*is_new && !spare->space))
			return -EAGAIN;
		if (is_exec) {
			space = begin(bucket, space, spare);
		} else {
			if (maps)
				morph_maps_copy(spare->maps, maps);
			swap(space->maps, spare->maps);
		}
	}
	is_changed = is_exec || space->is_begun;
	if (is_program && !space->program) {
		space->program = map->file;
		atomic_inc(&map->file->nr_users);
		is_changed = true;
	}
	add(space, map);
	map->file = NULL;
	/* Open batches refer to the state before this change. */
	if (is_changed)
		atomic_inc(morph_epoch(current->tgid));
	return MORPH_EVENT_SKIP;
}

enum morph_event_action morph_space_map(struct morph_cpu *cpu, const struct morph_mmap *mmap,
					const char *path, u32 len)
{
	struct bucket *bucket = bucket_of(current->tgid);
	struct spare spare = {};
	unsigned long flags;
	struct map map = {
		.start = mmap->start,
		.end = mmap->start + mmap->len,
		.off = mmap->off,
	};
	bool is_program = mmap->task.flags & MORPH_MMAP_PROGRAM;
	bool is_new;
	u32 nr;
	int ret;

	if (!READ_ONCE(is_on))
		return MORPH_EVENT_WRITE;
	map.file = morph_mapped_get(mmap, path, len);
	if (!map.file)
		return MORPH_EVENT_COUNT_LOST;
	if (current->in_execve)
		spare_alloc(&spare, true, 0);
	for (;;) {
		raw_spin_lock_irqsave(&bucket->lock, flags);
		ret = take_map(cpu, bucket, &map, is_program, &spare, &is_new, &nr);
		raw_spin_unlock_irqrestore(&bucket->lock, flags);
		if (ret != -EAGAIN)
			break;
		if (!spare_alloc(&spare, is_new, nr)) {
			ret = MORPH_EVENT_COUNT_LOST;
			break;
		}
	}
	spare_free(&spare);
	morph_mapped_put(map.file);
	return ret;
}

/* Copies the parent's space for its child; later changes of one do not affect the other. */
enum morph_event_action morph_space_fork(const struct task_struct *parent,
					 const struct task_struct *child)
{
	struct bucket *bucket = bucket_of(parent->tgid);
	struct space *space, *added, *old, copy;
	bool known, is_silent;
	unsigned long flags;

	if (!READ_ONCE(is_on))
		return MORPH_EVENT_WRITE;
	raw_spin_lock_irqsave(&bucket->lock, flags);
	space = find(bucket, parent->tgid);
	known = is_known(space, parent);
	is_silent = child->tgid == parent->tgid && is_current(space, parent);
	if (known && !is_silent) {
		copy = (struct space){
			.tgid = child->tgid,
			.exec_id = child->self_exec_id,
			.generation = space->generation,
			.maps = space->maps,
			.program = space->program,
		};
		if (copy.maps)
			atomic_inc(&copy.maps->nr_users);
		if (copy.program)
			atomic_inc(&copy.program->nr_users);
	}
	raw_spin_unlock_irqrestore(&bucket->lock, flags);
	if (is_silent)
		return MORPH_EVENT_SKIP;
	if (!known)
		return MORPH_EVENT_WRITE;
	added = morph_space_alloc();
	if (!added) {
		morph_maps_put(copy.maps);
		morph_mapped_put(copy.program);
		return MORPH_EVENT_COUNT_LOST;
	}
	*added = copy;
	bucket = bucket_of(added->tgid);
	raw_spin_lock_irqsave(&bucket->lock, flags);
	/* Should be empty: exiting processes are removed. */
	old = find(bucket, added->tgid);
	if (old)
		hlist_del(&old->node);
	hlist_add_head(&added->node, &bucket->spaces);
	raw_spin_unlock_irqrestore(&bucket->lock, flags);
	space_free(old);
	return MORPH_EVENT_SKIP;
}

enum morph_event_action morph_space_exit(const struct task_struct *task)
{
	struct bucket *bucket = bucket_of(task->tgid);
	enum morph_event_action ret = MORPH_EVENT_WRITE;
	struct space *space;
	unsigned long flags;
	bool is_last;

	if (!READ_ONCE(is_on))
		return MORPH_EVENT_WRITE;
	is_last = !atomic_read(&task->signal->live);
	raw_spin_lock_irqsave(&bucket->lock, flags);
	space = find(bucket, task->tgid);
	if (is_current(space, task))
		ret = is_last && space->is_reported ? MORPH_EVENT_WRITE_PROCESS_EXIT
						    : MORPH_EVENT_SKIP;
	if (space && is_last)
		hlist_del(&space->node);
	raw_spin_unlock_irqrestore(&bucket->lock, flags);
	if (is_last)
		space_free(space);
	return ret;
}
