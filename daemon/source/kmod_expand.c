// SPDX-License-Identifier: Apache-2.0
/* kmod_expand - expands FILE and SPACE records; see kmod_expand.h. */
#include "daemon/source/kmod_expand.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define PAGE_BYTES UINT64_C(4096)

void md_kmod_files_fini(struct md_kmod_files *files)
{
	uint32_t i;

	for (i = 0; i < MORPH_NR_FILES; i++)
		free(files->files[i]);
	memset(files, 0, sizeof(*files));
}

int md_kmod_files_put(struct md_kmod_files *files, const struct morph_file *file)
{
	struct morph_file *copy = malloc(file->record.size);

	if (!copy)
		return -ENOMEM;
	memcpy(copy, file, file->record.size);
	free(files->files[file->number]);
	files->files[file->number] = copy;
	return 0;
}

static int add_exec(const struct morph_task *task, uint32_t nr_threads, struct md_buf *out)
{
	struct morph_exec *exec;

	exec = md_record_add_task(out, MORPH_REC_EXEC, sizeof(*exec), task->time_ns, task->tgid,
				  task->tid);
	if (!exec)
		return -ENOMEM;
	exec->task.record.cpu = task->record.cpu;
	exec->task.exec_id = task->exec_id;
	exec->nr_threads = nr_threads;
	return 0;
}

/* Return: NULL: the FILE record with this number was lost. */
static const struct morph_file *file_of(const struct md_kmod_files *files, uint32_t number)
{
	return number < MORPH_NR_FILES ? files->files[number] : NULL;
}

/* @file: NULL: no file; @name is then the mapping's name. */
static struct morph_mmap *add_mmap(const struct morph_task *task, const struct morph_file *file,
				   const char *name, struct md_buf *out)
{
	struct morph_mmap *mmap;

	mmap = md_record_add_mmap(out, task->time_ns, task->tgid, task->tid,
				  file ? file->path : name);
	if (!mmap)
		return NULL;
	mmap->task.record.cpu = task->record.cpu;
	mmap->task.exec_id = task->exec_id;
	if (!file)
		return mmap;
	mmap->task.flags = file->flags & (MORPH_MMAP_GENERATION | MORPH_MMAP_NAMESPACE);
	mmap->dev_major = file->dev_major;
	mmap->dev_minor = file->dev_minor;
	mmap->ino = file->ino;
	mmap->ino_generation = file->ino_generation;
	mmap->build_id_len = file->build_id_len;
	memcpy(mmap->build_id, file->build_id, sizeof(mmap->build_id));
	return mmap;
}

int md_kmod_expand_space(const struct md_kmod_files *files, const struct morph_space *space,
			 struct md_buf *out)
{
	const struct morph_task *task = &space->task;
	const struct morph_space_map *map = space->maps;
	uint32_t nr = (task->record.size - sizeof(*space)) / sizeof(*map);
	struct morph_mmap *mmap;

	if ((task->flags & MORPH_SPACE_NEW) && add_exec(task, space->nr_threads, out))
		return -ENOMEM;
	for (; nr--; map++) {
		if (map->start & MORPH_SPACE_VDSO)
			mmap = add_mmap(task, NULL, "[vdso]", out);
		else
			mmap = add_mmap(task, file_of(files, map->start & MORPH_SPACE_FILE), "",
					out);
		if (!mmap)
			return -ENOMEM;
		if (map->start & MORPH_SPACE_PROGRAM)
			mmap->task.flags |= MORPH_MMAP_PROGRAM;
		mmap->start = map->start & MORPH_SPACE_START;
		mmap->len = map->nr_pages * PAGE_BYTES;
		mmap->off = map->off_pages * PAGE_BYTES;
	}
	return 0;
}

int md_kmod_expand_program(const struct md_kmod_files *files, const struct morph_task *samples,
			   struct md_buf *out)
{
	struct morph_mmap *mmap;

	if (add_exec(samples, 1, out))
		return -ENOMEM;
	mmap = add_mmap(samples, file_of(files, samples->flags - 1), "", out);
	if (!mmap)
		return -ENOMEM;
	mmap->task.flags |= MORPH_MMAP_PROGRAM | MORPH_MMAP_NOWHERE;
	/* Every mapping needs a length; no sample lies in this one. */
	mmap->len = PAGE_BYTES;
	return 0;
}
