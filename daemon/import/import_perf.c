// SPDX-License-Identifier: Apache-2.0
/*
 * import_perf - reads the output of
 *	perf script -G -F comm,pid,tid,time,event,ip,sym,dso --show-mmap-events \
 *		--show-task-events --show-lost-events
 * with the field brstack in addition to ip, or instead of it. Decides which mapping of which
 * process holds a sample: the MMAP lines, in order of time, give the address of each file.
 * Called by stats_import.
 */
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "daemon/import/import.h"
#include "daemon/import/import_brstack.h"
#include "daemon/module/kernel.h"
#include "daemon/module/modfind.h"
#include "daemon/module/procmap.h"

#define HOW_TO		 "use perf script -G -F comm,pid,tid,time,event,ip,sym,dso --show-mmap-events"
#define KERNEL_SPACE	 UINT64_C(0xffff800000000000)
#define KERNEL_LINK_TEXT UINT64_C(0xffffffff81000000)
#define NR_THREAD_SLOTS	 4096

struct reader {
	struct md_import *import;
	struct md_lines *lines;
	const char *event; /* NULL: accept the first event seen, and no other */
	char seen_event[32];
	struct mp_err unread; /* why the first of the lines that were not understood was not */
	struct mp_err *err;
	struct md_procmap *pm;
	bool have_mmaps, have_branches;
	/*
	 * With perf's default fields, a line has only the thread's number. Lines that have both
	 * numbers are remembered here, by thread. A thread that is not here, since another thread
	 * has its slot, is assumed to be a process of its own.
	 */
	struct {
		uint32_t tid, pid;
	} threads[NR_THREAD_SLOTS];
	/* the kernel's text and its module; size 0: not known */
	uint64_t kernel_start, kernel_size;
	uint32_t kernel;
};

/* The parts of a line: "comm pid/tid [cpu] time: rest". */
struct header {
	uint32_t pid, tid;
	bool have_pid;
	const char *rest;
};

/* A name with a line break in it is two lines, so lines that say nothing are counted. Return: 0. */
static int skip_line(struct reader *r, const char *why)
{
	if (!r->import->nr_unread_lines++)
		md_lines_fail(r->lines, &r->unread, "%s", why);
	return 0;
}

/* ---- pieces of a line ---------------------------------------------------------------------- */

static const char *skip_space(const char *p)
{
	while (*p == ' ' || *p == '\t')
		p++;
	return p;
}

/* Reads a decimal number that fits, or -1 (perf's "no process"). */
static bool get_id(const char **pos, uint32_t *value)
{
	unsigned long number;
	char *end;

	if (!strncmp(*pos, "-1", 2)) {
		*value = UINT32_MAX;
		*pos += 2;
		return true;
	}
	if (!isdigit((unsigned char)**pos))
		return false;
	errno = 0;
	number = strtoul(*pos, &end, 10);
	if (errno || number > INT32_MAX)
		return false;
	*value = (uint32_t)number;
	*pos = end;
	return true;
}

static bool get_hex(const char **pos, uint64_t *value)
{
	const char *p = *pos;
	char *end;

	if (p[0] == '0' && p[1] == 'x')
		p += 2;
	if (!isxdigit((unsigned char)*p))
		return false;
	errno = 0;
	*value = strtoull(p, &end, 16);
	*pos = end;
	return !errno;
}

/* Return: the text after "1234.567890:" at @p, or NULL. */
static const char *after_time(const char *p)
{
	if (!isdigit((unsigned char)*p))
		return NULL;
	p += strspn(p, "0123456789");
	if (*p != '.' || !isdigit((unsigned char)p[1]))
		return NULL;
	p += 1 + strspn(p + 1, "0123456789");
	return *p == ':' ? p + 1 : NULL;
}

/*
 * A command name may contain blanks, digits and colons. So find the first word that is a time and has
 * "pid/tid" or "tid" (and perhaps "[cpu]") before it.
 */
static bool read_ids(const char *p, struct header *out)
{
	if (!get_id(&p, &out->pid))
		return false;
	out->tid = out->pid;
	out->have_pid = *p == '/';
	if (out->have_pid)
		p++;
	return (!out->have_pid || get_id(&p, &out->tid)) && (*p == ' ' || *p == '\t');
}

static bool read_header(const char *line, struct header *out)
{
	const char *word, *ids = NULL;

	for (word = skip_space(line); *word; word = skip_space(word)) {
		const char *rest = ids ? after_time(word) : NULL;

		if (rest && read_ids(ids, out)) {
			out->rest = skip_space(rest);
			return true;
		}
		if (*word != '[')
			ids = word;
		word += strcspn(word, " \t");
	}
	return false;
}

/* ---- threads ------------------------------------------------------------------------------- */

static void learn_thread(struct reader *r, uint32_t pid, uint32_t tid)
{
	r->threads[tid % NR_THREAD_SLOTS].tid = tid;
	r->threads[tid % NR_THREAD_SLOTS].pid = pid;
}

static uint32_t process_of(const struct reader *r, const struct header *h)
{
	uint32_t slot = h->tid % NR_THREAD_SLOTS;

	if (h->have_pid || r->threads[slot].tid != h->tid)
		return h->pid;
	return r->threads[slot].pid;
}

/* ---- side-band lines ----------------------------------------------------------------------- */

struct mmap_line {
	uint32_t pid;
	uint64_t start, size, off;
	bool have_inode, have_build_id;
	unsigned int major, minor;
	uint64_t ino;
	struct mp_id id; /* only the build-id is set */
	bool executable;
	const char *path;
};

/* Reads a build-id in angle brackets. */
static bool get_build_id(const char **pos, struct mp_id *id)
{
	const char *p = *pos + 1;

	for (id->build_id_len = 0; isxdigit((unsigned char)p[0]) && isxdigit((unsigned char)p[1]);
	     p += 2) {
		char byte[3] = {p[0], p[1], '\0'};

		if (id->build_id_len < MP_BUILD_ID_MAX)
			id->build_id[id->build_id_len++] = (uint8_t)strtoul(byte, NULL, 16);
	}
	*pos = p + 1;
	return *p == '>';
}

/* Reads "pid/tid: [0xstart(0xsize) @ off MAJ:MIN INO GEN]: r-xp PATH" of an MMAP or MMAP2 line. */
static bool read_mmap(const char *p, struct mmap_line *m)
{
	uint32_t tid;
	char *end;

	memset(m, 0, sizeof(*m));
	p = skip_space(p);
	if (!get_id(&p, &m->pid) || *p++ != '/' || !get_id(&p, &tid))
		return false;
	if (strncmp(p, ": [", 3))
		return false;
	p += 3;
	if (!get_hex(&p, &m->start) || *p++ != '(' || !get_hex(&p, &m->size) ||
	    strncmp(p, ") @ ", 4))
		return false;
	p += 4;
	if (!get_hex(&p, &m->off))
		return false;
	p = skip_space(p);
	if (*p == '<') {
		if (!get_build_id(&p, &m->id))
			return false;
		m->have_build_id = m->id.build_id_len > 0;
	} else if (*p != ']') {
		m->major = (unsigned int)strtoul(p, &end, 16);
		if (*end != ':')
			return false;
		m->minor = (unsigned int)strtoul(end + 1, &end, 16);
		m->ino = strtoull(end, &end, 10);
		m->have_inode = m->ino > 0;
		p = end + strcspn(end, "]");
	}
	if (strncmp(p, "]: ", 3))
		return false;
	p += 3;
	/* MMAP2 has "r-xp", MMAP has "x" or "r". */
	m->executable = !strncmp(p, "x ", 2) || (strlen(p) > 4 && p[2] == 'x' && p[4] == ' ');
	p += strcspn(p, " ");
	m->path = skip_space(p);
	return true;
}

static int map_kernel(struct reader *r, const struct mmap_line *m)
{
	struct md_kernel now;
	struct mp_id id = m->id;

	if (strncmp(m->path, "[kernel.kallsyms]", 17))
		return 0; /* a kernel module: its samples stay unattributed */
	md_kernel_read(0, &now);
	if (!m->have_build_id) {
		/*
		 * The profiled kernel is the running one if both have their text at the same
		 * address.
		 */
		if (!now.text.size || now.text.off != m->start)
			return 0;
		id = now.id;
	} else if (!mp_id_equal(&id, &now.id)) {
		strcpy(now.name, "[kernel]"); /* not the running kernel */
	}
	r->kernel_start = m->start;
	r->kernel_size = m->size;
	return md_import_find_kernel(r->import, &id, now.name, m->size, &r->kernel, r->err);
}

/* Checks that the file is still the one that was mapped, as far as perf described it. */
static bool is_same_file(const struct md_import_module *module, const struct mmap_line *m)
{
	struct stat st;

	if (m->have_build_id)
		return module->elf->id.build_id_len == m->id.build_id_len &&
		       !memcmp(module->elf->id.build_id, m->id.build_id, m->id.build_id_len);
	if (!m->have_inode)
		return true;
	/*
	 * Compare no device numbers: for overlay and btrfs, stat() and perf report different
	 * ones.
	 */
	return !stat(module->path, &st) && st.st_ino == m->ino;
}

static int map_reason(struct reader *r, const struct mmap_line *m, int why)
{
	struct md_mapping mapping = {
		.start = m->start, .end = m->start + m->size, .why = (uint8_t)why};

	if (md_procmap_map(r->pm, m->pid, 0, &mapping, 1))
		return mp_err_set(r->err, ENOMEM, "out of memory");
	return 0;
}

/* Each executable segment in the mapping has its own bias. */
static int map_segments(struct reader *r, const struct mmap_line *m, uint32_t index)
{
	const struct mp_elf *elf = r->import->modules[index].elf;

	for (uint32_t i = 0; i < elf->nr_phdrs; i++) {
		const Elf64_Phdr *p = &elf->phdrs[i];
		uint64_t from = p->p_offset, to = p->p_offset + p->p_filesz;
		struct md_mapping mapping = {.module = index + 1, .why = MD_MAPPED};

		if (p->p_type != PT_LOAD || !(p->p_flags & PF_X))
			continue;
		if (from < m->off)
			from = m->off;
		if (to > m->off + m->size)
			to = m->off + m->size;
		if (from >= to)
			continue;
		mapping.start = m->start + (from - m->off);
		mapping.end = m->start + (to - m->off);
		mapping.bias = p->p_vaddr + (from - p->p_offset) - mapping.start;
		if (md_procmap_map(r->pm, m->pid, 0, &mapping, 1))
			return mp_err_set(r->err, ENOMEM, "out of memory");
	}
	return 0;
}

static int map_file(struct reader *r, const struct mmap_line *m)
{
	const struct md_import_module *module;
	struct md_space *space;
	uint32_t index;
	int ret, why = -1;

	switch (md_modfind_classify(m->path, m->ino)) {
	case MORPH_MODULE_KNOWN: break;
	case MORPH_MODULE_VDSO: return map_reason(r, m, MP_UNATTR_VDSO);
	case MORPH_MODULE_UNREADABLE: return map_reason(r, m, MP_UNATTR_UNREADABLE);
	default: return map_reason(r, m, MP_UNATTR_ANONYMOUS);
	}
	ret = md_import_find_file(r->import, m->path, &index, r->err);
	if (ret)
		return ret;
	module = &r->import->modules[index];
	if (module->why >= 0)
		why = module->why;
	else if (!is_same_file(module, m))
		why = MP_UNATTR_REPLACED;
	ret = why >= 0 ? map_reason(r, m, why) : map_segments(r, m, index);
	space = ret ? NULL : md_procmap_find(r->pm, m->pid, 0);
	if (space && md_space_wants_program(space))
		md_space_set_program(space, why >= 0 ? 0 : index + 1);
	return ret;
}

static int read_mmap_line(struct reader *r, const char *rest)
{
	struct mmap_line m;

	if (!read_mmap(rest, &m) || m.start + m.size < m.start || m.off + m.size < m.off)
		return md_lines_fail(r->lines, r->err, "not a mapping as perf script prints it");
	if (m.pid == UINT32_MAX)
		return map_kernel(r, &m);
	if (!m.executable || !m.size)
		return 0;
	r->have_mmaps = true;
	return map_file(r, &m);
}

/* Reads "FORK(pid:tid):(ppid:ptid)". */
static int read_fork_line(struct reader *r, const char *rest)
{
	unsigned int pid, tid, ppid, ptid;

	if (sscanf(rest, "(%u:%u):(%u:%u)", &pid, &tid, &ppid, &ptid) != 4)
		return md_lines_fail(r->lines, r->err, "not a fork as perf script prints it");
	learn_thread(r, pid, tid);
	if (pid != ppid && md_procmap_fork(r->pm, pid, ppid))
		return mp_err_set(r->err, ENOMEM, "out of memory");
	return 0;
}

/* Reads "COMM exec: name:pid/tid". Without "exec", only the name changed. A name may hide the numbers. */
static int read_comm_line(struct reader *r, const struct header *h, const char *rest)
{
	const char *p = strrchr(rest, ':');
	uint32_t pid, tid;

	if (!p || (p++, !get_id(&p, &pid)) || *p++ != '/' || !get_id(&p, &tid)) {
		pid = process_of(r, h);
		tid = h->tid;
	}
	learn_thread(r, pid, tid);
	if (!strncmp(rest, " exec:", 6) && md_procmap_exec(r->pm, pid, 0, 1))
		return mp_err_set(r->err, ENOMEM, "out of memory");
	return 0;
}

static bool starts(const char *line, const char *with, const char **rest)
{
	size_t len = strlen(with);

	if (strncmp(line, with, len))
		return false;
	*rest = line + len;
	return true;
}

static int read_record(struct reader *r, const struct header *h)
{
	const char *p = h->rest, *rest;
	unsigned long long nr;

	if (starts(p, "PERF_RECORD_MMAP2 ", &rest) || starts(p, "PERF_RECORD_MMAP ", &rest))
		return read_mmap_line(r, rest);
	if (starts(p, "PERF_RECORD_FORK", &rest))
		return read_fork_line(r, rest);
	if (starts(p, "PERF_RECORD_COMM", &rest))
		return read_comm_line(r, h, rest);
	if (starts(p, "PERF_RECORD_LOST", &rest)) {
		rest += strcspn(rest, "0123456789");
		if (sscanf(rest, "%llu", &nr) == 1)
			return md_import_add_lost(r->import, MP_LOST_RING_FULL, nr, r->err);
	}
	return 0; /* EXIT, SWITCH, NAMESPACES, ... do not change mappings */
}

/* ---- samples ------------------------------------------------------------------------------- */

static int add_sample(struct reader *r, uint32_t pid, uint64_t ip)
{
	struct md_space *space = md_procmap_find(r->pm, pid, 0);
	const struct md_mapping *mapping = space ? md_space_find(space, ip) : NULL;
	uint32_t program = space ? md_space_program(space) : 0;
	struct mp_activity *activity = program ? &r->import->modules[program - 1].activity : NULL;
	int why;

	if (ip >= KERNEL_SPACE) {
		if (activity)
			activity->kernel++;
		if (ip - r->kernel_start >= r->kernel_size)
			return md_import_add_unattributed(r->import, MP_UNATTR_NO_MAPPING, 1,
							  r->err);
		return md_import_add(r->import, r->kernel, ip - r->kernel_start + KERNEL_LINK_TEXT,
				     1, r->err);
	}
	if (mapping && mapping->why == MD_MAPPED) {
		if (activity && mapping->module == program)
			activity->app++;
		else if (activity)
			activity->lib++;
		return md_import_add(r->import, mapping->module - 1, ip + mapping->bias, 1, r->err);
	}
	why = mapping ? mapping->why : space ? MP_UNATTR_NO_MAPPING : MP_UNATTR_NO_PROCESS;
	if (activity)
		activity->other++;
	return md_import_add_unattributed(r->import, (enum mp_unattributed)why, 1, r->err);
}

static bool is_known(const struct md_mapping *mapping)
{
	return mapping && mapping->why == MD_MAPPED;
}

/*
 * Entries come newest first: the entry before entry i says where control left the run that
 * began at the target of entry i. Successive samples may contain the same branch; count it each
 * time.
 */
static int add_branches(struct reader *r, uint32_t pid, const char *p)
{
	struct md_import_transfers *t = &r->import->transfers;
	struct md_space *space = md_procmap_find(r->pm, pid, 0);
	const struct md_mapping *from, *to, *left_from = NULL;
	struct md_brstack_entry e;
	uint64_t left = 0;
	int ret = 0;

	while (!ret && (p = md_brstack_next(p, &e))) {
		from = space && e.from < KERNEL_SPACE ? md_space_find(space, e.from) : NULL;
		to = space && e.to < KERNEL_SPACE ? md_space_find(space, e.to) : NULL;
		if (is_known(to) && to == left_from && left >= e.to)
			ret = md_import_add_straight(r->import, to->module - 1, e.to + to->bias,
						     left + to->bias, 1, r->err);
		if (ret)
			return ret;
		if (is_known(from) && is_known(to) && from->module == to->module)
			ret = md_import_add_transfer(r->import, from->module - 1,
						     e.from + from->bias, e.to + to->bias, 1,
						     e.mispredicted, r->err);
		else
			ret = md_import_count_transfer(r->import, &t->outside, 1, r->err);
		left = e.from;
		left_from = from;
	}
	return ret;
}

/* Compares names without modifiers: "cycles:u:" is "cycles". */
static bool same_event(const char *a, const char *b)
{
	size_t len = strcspn(a, ":");

	return len == strcspn(b, ":") && !strncmp(a, b, len);
}

/* Reads "[period] event: ip ...". */
static int read_sample(struct reader *r, const struct header *h)
{
	struct md_brstack_entry entry;
	const char *p = h->rest;
	size_t len;
	uint64_t ip;
	int ret;

	len = strspn(p, "0123456789");
	if (len && (p[len] == ' ' || p[len] == '\t'))
		p = skip_space(p + len);
	len = strcspn(p, " \t");
	if (!len || p[len - 1] != ':')
		return skip_line(r, "no event: " HOW_TO);
	if (!r->seen_event[0]) {
		const char *name = r->event ? r->event : p;

		snprintf(r->seen_event, sizeof(r->seen_event), "%.*s", (int)strcspn(name, ":"),
			 name);
	}
	if (!same_event(r->seen_event, p)) {
		if (r->event)
			return 0;
		return md_lines_fail(r->lines, r->err,
				     "a second event, %.*s besides %s: choose one with --event",
				     (int)(len - 1), p, r->seen_event);
	}
	p = skip_space(p + len);
	/* The branch stack may be empty, or come without the sample's ip. */
	if (!*p && r->have_branches)
		return 0;
	if (md_brstack_next(p, &entry) && p[0] == '0' && p[1] == 'x') {
		r->have_branches = true;
		return add_branches(r, process_of(r, h), p);
	}
	if (!get_hex(&p, &ip) || (*p && *p != ' ' && *p != '\t'))
		return skip_line(r, "no ip after the event: " HOW_TO);
	ret = add_sample(r, process_of(r, h), ip);
	return ret ? ret : add_branches(r, process_of(r, h), p);
}

static int read_line(struct reader *r)
{
	const char *line = r->lines->line;
	struct header h;

	if (!*skip_space(line) || *line == '#')
		return 0;
	if (!read_header(line, &h))
		return skip_line(r, "neither a sample nor a record: " HOW_TO);
	if (!strncmp(h.rest, "PERF_RECORD_", 12))
		return read_record(r, &h);
	return read_sample(r, &h);
}

int md_import_perf(struct md_import *import, struct md_lines *lines, const char *event,
		   struct mp_err *err)
{
	struct reader *r = calloc(1, sizeof(*r));
	int ret;

	if (r)
		r->pm = md_procmap_new();
	if (!r || !r->pm) {
		free(r);
		return mp_err_set(err, ENOMEM, "out of memory");
	}
	r->import = import;
	r->lines = lines;
	r->event = event;
	r->err = err;
	while ((ret = md_lines_next(lines, err)) > 0) {
		ret = read_line(r);
		if (ret)
			break;
	}
	if (!ret && import->nr_unread_lines && !import->ledger.emitted && !import->transfers.seen)
		ret = mp_err_set(err, EBADMSG, "%s", r->unread.msg);
	if (!ret && (import->ledger.emitted || import->transfers.seen) && !r->have_mmaps)
		ret = mp_err_set(err, EBADMSG, "%s: has no records of mappings: " HOW_TO,
				 lines->name);
	snprintf(import->session.event, sizeof(import->session.event), "%s", r->seen_event);
	md_procmap_free(r->pm);
	free(r);
	return ret;
}
