// SPDX-License-Identifier: Apache-2.0
/* kmod_merge - merges the module's rings by time; see kmod_merge.h. */
#include "daemon/source/kmod_merge.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "libprof/base/grow.h"

#define NO_PID UINT32_MAX

int md_kmod_merge_init(struct md_kmod_merge *m, uint32_t command, uint32_t exec_id)
{
	memset(m, 0, sizeof(*m));
	m->command = command;
	m->waiting_exec_id = exec_id;
	m->is_waiting = command != 0;
	return command ? md_pidmap_put(&m->command_processes, command, 0) : 0;
}

void md_kmod_merge_fini(struct md_kmod_merge *m)
{
	uint32_t i;

	for (i = 0; i < m->nr_rings; i++)
		md_kmod_files_fini(&m->files[i]);
	free(m->files);
	free(m->rings);
	md_buf_fini(&m->out);
	md_buf_fini(&m->taken);
	md_buf_fini(&m->scan);
	md_pidmap_fini(&m->known_programs);
	md_pidmap_fini(&m->seen_at);
	md_pidmap_fini(&m->command_processes);
	memset(m, 0, sizeof(*m));
}

int md_kmod_merge_add_ring(struct md_kmod_merge *m, const struct md_kmod_ring *ring)
{
	uint32_t more = m->rings_capacity ? m->rings_capacity * 2 : 16;

	if (m->nr_rings == m->rings_capacity) {
		if (mp_resize(m->rings, more) || mp_resize(m->files, more))
			return -ENOMEM;
		m->rings_capacity = more;
	}
	m->files[m->nr_rings] = (struct md_kmod_files){0};
	m->rings[m->nr_rings++] = *ring;
	return 0;
}

/* ---- what was looked up in /proc ----------------------------------------------------------- */

void md_kmod_merge_begin_scan(struct md_kmod_merge *m, uint64_t now_ns, uint64_t nr_lost_events)
{
	struct md_kmod_ring *ring;
	uint32_t i;

	for (i = 0; i < m->nr_rings; i++) {
		ring = &m->rings[i];
		/* If samples hidden by the last scan are still unread, extend the hidden range. */
		if (!now_ns)
			ring->hide_from = 0;
		else if (ring->done >= ring->hide_to)
			ring->hide_from = md_kmod_ring_head(ring);
		ring->hide_to = UINT64_MAX;
	}
	m->scan_ns = now_ns;
	m->scan.size = 0;
	m->nr_lost_events_at_scan = nr_lost_events;
	m->wants_scan = false;
}

int md_kmod_merge_end_scan(struct md_kmod_merge *m, uint64_t now_ns)
{
	struct morph_record *record;
	struct morph_task *task;
	size_t pos = 0;
	uint32_t i;
	int ret = 0;

	for (i = 0; i < m->nr_rings; i++)
		m->rings[i].hide_to = md_kmod_ring_head(&m->rings[i]);
	m->seen_ns = now_ns;
	md_pidmap_clear(&m->seen_at);
	if (m->command)
		md_pidmap_clear(&m->command_processes);
	while (!ret && !md_record_next(m->scan.data, m->scan.size, &pos, &record)) {
		task = (struct morph_task *)record;
		if (record->type != MORPH_REC_EXEC)
			continue;
		ret = md_pidmap_put(&m->seen_at, task->tgid, task->time_ns);
		if (!ret && m->command)
			ret = md_pidmap_put(&m->command_processes, task->tgid, 0);
	}
	return ret;
}

static int give_scan(struct md_kmod_merge *m)
{
	void *room;

	/* An event that was lost since may have been a mapping: discard the scan. */
	if (m->nr_lost_events != m->nr_lost_events_at_scan) {
		m->wants_scan = true;
	} else {
		room = md_buf_add(&m->out, m->scan.size);
		if (!room)
			return -ENOMEM;
		memcpy(room, m->scan.data, m->scan.size);
	}
	m->scan.size = 0;
	return 0;
}

/* Return: true if the process was read in /proc after the record was written. */
static bool is_in_scan(const struct md_kmod_merge *m, const struct morph_task *task)
{
	uint64_t seen_ns;

	return task->time_ns < m->seen_ns && md_pidmap_get(&m->seen_at, task->tgid, &seen_ns) &&
	       task->time_ns < seen_ns;
}

/* ---- whose records these are ---------------------------------------------------------------- */

static bool is_ours(const struct md_kmod_merge *m, const struct morph_task *task)
{
	if (!m->command)
		return true;
	/* Before its exec, the command's process is a copy of morphd. */
	if (m->is_waiting && task->tgid == m->command && task->exec_id == m->waiting_exec_id)
		return false;
	return md_pidmap_get(&m->command_processes, task->tgid, NULL);
}

/* Keep exited processes: they may still run in the kernel. A FORK resets a reused pid. */
static int follow_fork(struct md_kmod_merge *m, const struct morph_fork *fork)
{
	uint32_t child = fork->task.tgid;

	if (!m->command || child == fork->parent_tgid)
		return 0;
	if (md_pidmap_get(&m->command_processes, fork->parent_tgid, NULL))
		return md_pidmap_put(&m->command_processes, child, 0);
	md_pidmap_remove(&m->command_processes, child);
	return 0;
}

/* Decides what becomes of @record. Return: false: it is dropped. */
static bool judge(struct md_kmod_merge *m, struct morph_record *record, bool is_hidden)
{
	struct morph_task *task = (struct morph_task *)record;
	struct morph_lost *lost = (struct morph_lost *)record;

	switch (record->type) {
	case MORPH_REC_LOST:
		m->nr_lost += lost->nr;
		/* set_lost() already reported the loss, at its time. */
		if (m->nr_lost_events)
			lost->flags &= ~MORPH_LOST_STATE;
		m->wants_scan |= lost->flags & MORPH_LOST_STATE;
		return lost->nr || lost->flags;
	case MORPH_REC_SAMPLES:
		m->nr_samples += md_record_emitted(record);
		/* fall through */
	case MORPH_REC_STACK:
	case MORPH_REC_REGISTERS:
	case MORPH_REC_BRANCHES:
		if (!is_ours(m, task) || (is_hidden && m->drop_hidden_samples))
			return false;
		if (is_hidden) {
			task->tgid = task->tid = NO_PID;
			task->exec_id = task->flags = 0;
		}
		return true;
	case MORPH_REC_FILE: return false;
	default: return is_ours(m, task) && !is_in_scan(m, task);
	}
}

/*
 * Gives @record out. Adds, before it or in its place, the records that the module abbreviated.
 * Return: 0 or -ENOMEM.
 */
static int give_record(struct md_kmod_merge *m, const struct md_kmod_files *files,
		       struct morph_record *record)
{
	struct morph_task *task = (struct morph_task *)record;
	bool is_samples = record->type == MORPH_REC_SAMPLES;
	uint64_t exec_id;
	void *room;
	int ret = 0;

	if (record->type == MORPH_REC_EXIT) {
		md_pidmap_remove(&m->known_programs, task->tgid);
	} else if (record->type == MORPH_REC_SPACE) {
		ret = md_pidmap_put(&m->known_programs, task->tgid, task->exec_id);
		return ret ? ret
			   : md_kmod_expand_space(files, (struct morph_space *)record, &m->out);
	} else if (is_samples && task->flags) {
		if (!md_pidmap_get(&m->known_programs, task->tgid, &exec_id) ||
		    exec_id != task->exec_id) {
			ret = md_kmod_expand_program(files, task, &m->out);
			if (!ret)
				ret = md_pidmap_put(&m->known_programs, task->tgid, task->exec_id);
		}
		task->flags = 0;
	}
	room = ret ? NULL : md_buf_add(&m->out, record->size);
	if (room)
		memcpy(room, record, record->size);
	return room ? 0 : -ENOMEM;
}

/* ---- the order of time ---------------------------------------------------------------------- */

int md_kmod_merge_refresh(struct md_kmod_merge *m, struct mp_err *err)
{
	uint32_t i;
	int ret = 0;

	for (i = 0; i < m->nr_rings && !ret; i++)
		ret = md_kmod_ring_refresh(&m->rings[i], err);
	return ret;
}

bool md_kmod_merge_is_pending(const struct md_kmod_merge *m)
{
	uint32_t i;

	for (i = 0; i < m->nr_rings; i++)
		if (m->rings[i].next.time_ns != UINT64_MAX)
			return true;
	return m->scan.size;
}

int md_kmod_merge_set_lost(struct md_kmod_merge *m, uint64_t nr_lost_events, uint64_t time_ns)
{
	if (nr_lost_events == m->nr_lost_events)
		return 0;
	m->nr_lost_events = nr_lost_events;
	md_pidmap_clear(&m->known_programs);
	/* A pending scan is now useless; give_scan() will notice. */
	m->wants_scan |= !m->scan.size;
	return md_record_add_lost(&m->out, time_ns, 0, MORPH_LOST_RING_FULL, MORPH_LOST_STATE)
		       ? 0
		       : -ENOMEM;
}

/* At equal times, events come before samples. */
static bool is_before(const struct md_kmod_next *a, const struct md_kmod_next *b)
{
	if (a->time_ns != b->time_ns)
		return a->time_ns < b->time_ns;
	return a->type != MORPH_REC_SAMPLES && b->type == MORPH_REC_SAMPLES;
}

static struct md_kmod_ring *oldest_ring(const struct md_kmod_merge *m)
{
	struct md_kmod_ring *oldest = NULL;
	uint32_t i;

	for (i = 0; i < m->nr_rings; i++)
		if (m->rings[i].next.time_ns != UINT64_MAX &&
		    (!oldest || is_before(&m->rings[i].next, &oldest->next)))
			oldest = &m->rings[i];
	return oldest;
}

static bool is_of_sample(uint16_t type)
{
	return type == MORPH_REC_STACK || type == MORPH_REC_REGISTERS;
}

static int take(struct md_kmod_merge *m, struct md_kmod_ring *ring, struct mp_err *err)
{
	struct md_kmod_files *files = &m->files[ring - m->rings];
	bool is_hidden = ring->next.is_hidden;
	struct morph_record *record;
	int ret;

	m->is_quiet &= ring->next.type == MORPH_REC_SAMPLES || is_of_sample(ring->next.type);
	m->taken.size = 0;
	ret = md_kmod_ring_take(ring, &m->taken, err);
	if (ret || !m->taken.size)
		return ret;
	record = (struct morph_record *)m->taken.data;
	if (record->type == MORPH_REC_FILE)
		ret = md_kmod_files_put(files, (struct morph_file *)record);
	else if (record->type == MORPH_REC_FORK && !is_in_scan(m, (struct morph_task *)record))
		ret = follow_fork(m, (struct morph_fork *)record);
	if (!ret && judge(m, record, is_hidden))
		ret = give_record(m, files, record);
	return ret ? mp_err_set(err, -ret, "no memory for records") : 0;
}

int md_kmod_merge_run(struct md_kmod_merge *m, uint64_t limit_ns, struct mp_err *err)
{
	struct md_kmod_ring *ring;
	int ret;

	for (;;) {
		ring = oldest_ring(m);
		if (m->scan.size && m->scan_ns <= limit_ns &&
		    (!ring || m->scan_ns <= ring->next.time_ns) && give_scan(m))
			return mp_err_set(err, ENOMEM, "no memory for records");
		if (!ring || ring->next.time_ns > limit_ns)
			return 0;
		/* Records that belong to a sample stay directly behind it. */
		do {
			ret = take(m, ring, err);
			if (ret)
				return ret;
		} while (is_of_sample(ring->next.type) && ring->next.time_ns != UINT64_MAX);
		if (m->out.size >= MD_KMOD_BATCH_BYTES)
			return 1;
	}
}

void md_kmod_merge_release(struct md_kmod_merge *m)
{
	uint32_t i;

	for (i = 0; i < m->nr_rings; i++)
		md_kmod_ring_release(&m->rings[i]);
}
