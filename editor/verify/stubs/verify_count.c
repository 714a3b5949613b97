// SPDX-License-Identifier: Apache-2.0
/*
 * verify_count - checks what an instrumented output has in addition: counters in memory of
 * their own, stubs that count and continue, and the runtime that maps a file over the counters.
 * Called by verify, verify_headers, verify_pieces and verify_rest.
 */
#include <errno.h>
#include <string.h>

#include "editor/base/runtime.h"
#include "editor/verify/base/verify_context.h"
#include "editor/verify/base/verify_decode.h"
#include "editor/verify/base/verify_own.h"
#include "editor/verify/base/verify_refuse.h"
#include "editor/verify/read/verify_piece_index.h"
#include "editor/verify/stubs/verify_audit.h"
#include "editor/verify/stubs/verify_calls.h"
#include "editor/verify/stubs/verify_count.h"
#include "editor/verify/stubs/verify_flags.h"
#include "editor/verify/stubs/verify_paths.h"
#include "editor/verify/stubs/verify_threads.h"
#include "editor/verify/stubs/verify_wait.h"
#include "libprof/note/call_table.h"
#include "libprof/note/edge_table.h"
#include "libprof/note/path_table.h"
#include "libprof/note/polls.h"

#define PAGE ME_RUNTIME_PAGE

static uint64_t page_up(uint64_t v)
{
	return (v + PAGE - 1) & ~(uint64_t)(PAGE - 1);
}

/* Runs before the headers are checked, so it looks at section names alone. */
void vf_find_counters(struct vf *vf)
{
	const struct mp_section *counters = mp_elf_section(vf->n, ".morph.counters");
	const struct mp_section *runtime = mp_elf_section(vf->n, ".morph.runtime");

	if (!counters || !runtime || mp_elf_section(vf->o, ".morph.counters") ||
	    mp_elf_section(vf->o, ".morph.runtime"))
		return;
	vf->stubs.counters = counters;
	vf->stubs.runtime = runtime;
	if (!mp_elf_section(vf->o, MP_METER_TABLE_SECTION))
		vf->stubs.meter_section = mp_elf_section(vf->n, MP_METER_TABLE_SECTION);
	vf_find_audit(vf);
}

bool vf_is_phdr_with_counters(const struct vf *vf, const Elf64_Phdr *a, const Elf64_Phdr *b)
{
	const struct mp_section *c = vf->stubs.counters;
	Elf64_Phdr was = *b;

	if (!c || a->p_type != PT_LOAD || !(a->p_flags & PF_W) || !c->size || c->size % PAGE ||
	    c->size > INT32_MAX || c->vaddr % PAGE || c->vaddr < a->p_vaddr + a->p_memsz ||
	    (!vf->now.live && c->vaddr != page_up(a->p_vaddr + a->p_memsz)) ||
	    b->p_memsz != c->vaddr + c->size - b->p_vaddr)
		return false;
	was.p_memsz = a->p_memsz;
	return !memcmp(&was, a, sizeof(was));
}

/* The section that says what the counters mean. */
static const char *table_name(const struct vf *vf)
{
	return vf->stubs.path_section	 ? MP_PATH_TABLE_SECTION
	       : vf->stubs.audit_section ? MP_AUDIT_TABLE_SECTION
	       : vf->stubs.call_section	 ? MP_CALL_TABLE_SECTION
	       : vf->stubs.meter_section ? MP_METER_TABLE_SECTION
					 : MP_EDGE_TABLE_SECTION;
}

bool vf_is_counter_section(const struct vf *vf, const struct mp_section *sec)
{
	if (!vf->stubs.counters)
		return false;
	if (sec == vf->stubs.runtime)
		return sec->type == SHT_PROGBITS && sec->flags == (SHF_ALLOC | SHF_EXECINSTR) &&
		       sec->align == 16 && !sec->link && !sec->info && !sec->entsize;
	if (sec == vf->stubs.counters)
		return sec->type == SHT_NOBITS && sec->flags == (SHF_ALLOC | SHF_WRITE) &&
		       sec->off == vf->old.alloc_end && sec->align == PAGE && !sec->link &&
		       !sec->info && !sec->entsize;
	return vf_counts_edges(vf) && !strcmp(sec->name, table_name(vf)) &&
	       sec->type == SHT_PROGBITS && !sec->flags && !sec->vaddr && sec->align == 1 &&
	       !sec->link && !sec->info && !sec->entsize;
}

static bool is_zero(const char *p, const char *end)
{
	while (p < end)
		if (*p++)
			return false;
	return true;
}

/* Read how many counters the table describes; vf_all_are_counted() wants a stub for each. */
static int read_table(struct vf *vf, const struct me_runtime_params *p)
{
	struct mp_edge_table *table;
	int ret;

	if (vf->stubs.audit_section) {
		ret = mp_audit_table_read(vf->n, &vf->stubs.audited, vf->err);
		if (!ret && (p->nr_audited != vf->stubs.audited->nr_funcs ||
			     p->counters_bytes < p->nr_audited * sizeof(struct me_audit_slot)))
			return vf_refuse(vf, vf->stubs.counters->vaddr,
					 "there is no room for the slots of all audited functions");
		return ret;
	}
	if (vf->stubs.call_section)
		return vf_read_calls(vf);
	ret = vf->stubs.meter_section ? mp_meter_table_read(vf->n, &table, vf->err)
				      : mp_edge_table_read(vf->n, &table, vf->err);
	if (ret == -ENOMEM)
		return ret;
	if (ret)
		return vf_refuse(vf, vf->stubs.counters->vaddr,
				 "the table that says what the counters count is unreadable");
	vf->stubs.nr_counters = table->nr_counters;
	if (vf->stubs.meter_section)
		vf->stubs.meter = table;
	else
		mp_edge_table_free(table);
	if (vf->stubs.meter && table->nr_edges > MP_METER_PLACES_MAX)
		return vf_refuse(vf, vf->stubs.counters->vaddr, "a meter with too many places");
	if (vf->stubs.nr_counters >
	    (vf->stubs.counters->size - (vf->stubs.thread_state ? PAGE : 0)) / 8)
		return vf_refuse(vf, vf->stubs.counters->vaddr,
				 "the table describes more counters than there is room for");
	vf->marks->counted = calloc(vf->stubs.nr_counters / 64 + 1, sizeof(*vf->marks->counted));
	return vf->marks->counted ? 0 : -ENOMEM;
}

/*
 * Does the runtime map all counters, or the polls without the page behind them? With counters
 * per thread it must not map the page behind the counters, where the runtime keeps its state.
 */
static bool is_mapped(const struct vf *vf, uint64_t at, const struct me_runtime_params *p)
{
	uint64_t counters = vf->stubs.counters->vaddr, bytes = vf->stubs.counters->size;

	if (at + (uint64_t)p->counters != counters)
		return false;
	if (vf->stubs.call_section || p->has_clock)
		return vf->stubs.call_section && p->has_clock == 1 && bytes == PAGE &&
		       p->counters_bytes == bytes && !p->state && !p->base && !p->nr_audited;
	/* The functions' slots are private to each thread, so the state is needed. */
	if ((vf->stubs.audit_section && !p->state) || (!vf->stubs.audit_section && p->nr_audited))
		return false;
	if (!vf->stubs.path_section && p->state)
		return !vf->stubs.meter_section && bytes > PAGE &&
		       p->counters_bytes == bytes - PAGE && !p->base &&
		       at + (uint64_t)p->state == counters + p->counters_bytes;
	if (p->state)
		return false;
	if (!vf->stubs.path_section)
		return p->counters_bytes == bytes && !p->base;
	return bytes == sizeof(struct mp_polls) + PAGE && p->counters_bytes == bytes - PAGE &&
	       at + (uint64_t)p->base == counters + p->counters_bytes;
}

/* The runtime must be Morph's, with parameters that fit this output. */
static int check_runtime(struct vf *vf, uint64_t *next)
{
	const struct mp_section *sec = vf->stubs.runtime, *table;
	uint64_t at = sec->vaddr + me_runtime_blob_size, path;
	struct me_runtime_params p;
	const uint8_t *bytes;

	bytes = sec->size == me_runtime_blob_size + sizeof(p)
			? mp_elf_bytes(vf->n, sec->vaddr, sec->size)
			: NULL;
	table = mp_elf_section(vf->n, table_name(vf));
	if (!bytes || !table || memcmp(bytes, me_runtime_blob, me_runtime_blob_size))
		return vf_refuse(vf, sec->vaddr, "the runtime is not Morph's");
	memcpy(&p, bytes + me_runtime_blob_size, sizeof(p));
	if (p.magic != ME_RUNTIME_MAGIC || !is_mapped(vf, at, &p) ||
	    p.table_hash != mp_edge_table_hash(vf->n->data + table->off, table->size) ||
	    !memchr(p.path, 0, sizeof(p.path)) ||
	    !is_zero(p.path + strlen(p.path), p.path + sizeof(p.path)))
		return vf_refuse(vf, at, "the runtime's parameters do not match this output");
	vf_own(vf, sec->off, me_runtime_blob_size + offsetof(struct me_runtime_params, path),
	       ME_OWNER_RUNTIME);
	/* With another byte in place of its end, it is a longer path. */
	path = sec->off + sec->size - sizeof(p.path);
	vf_own(vf, path, strlen(p.path) + 1, ME_OWNER_COUNTS_PATH);
	vf_own(vf, path + strlen(p.path) + 1, sizeof(p.path) - strlen(p.path) - 1,
	       ME_OWNER_RUNTIME);
	vf->stubs.thread_state = p.state ? at + (uint64_t)p.state : 0;
	*next = p.next ? at + (uint64_t)p.next : 0;
	return vf->stubs.path_section ? 0 : read_table(vf, &p);
}

/* File offset of the original's DT_INIT, or of the first DT_NULL if another one follows, at which the loader stops then;
 * or 0. */
static uint64_t init_entry(const struct mp_elf *o, uint64_t *init)
{
	uint64_t off = 0;

	*init = 0;
	for (uint32_t i = 0; i < o->nr_phdrs; i++) {
		const Elf64_Phdr *ph = &o->phdrs[i];
		bool ended = false;

		if (ph->p_type != PT_DYNAMIC || ph->p_offset > o->size ||
		    ph->p_filesz > o->size - ph->p_offset)
			continue;
		for (uint64_t k = 0; !ended && k + sizeof(Elf64_Dyn) <= ph->p_filesz;
		     k += sizeof(Elf64_Dyn)) {
			Elf64_Dyn d;

			memcpy(&d, o->data + ph->p_offset + k, sizeof(d));
			if (d.d_tag == DT_INIT) {
				*init = d.d_un.d_ptr;
				return ph->p_offset + k;
			}
			ended = d.d_tag == DT_NULL;
			if (!ended || k + 2 * sizeof(d) > ph->p_filesz)
				continue;
			memcpy(&d, o->data + ph->p_offset + k + sizeof(d), sizeof(d));
			if (d.d_tag == DT_NULL)
				off = ph->p_offset + k;
		}
	}
	return off;
}

int vf_read_start(struct vf *vf)
{
	uint64_t next, init, off;
	Elf64_Dyn d;
	int ret;

	if (!vf->stubs.counters)
		return 0;
	ret = check_runtime(vf, &next);
	if (ret)
		return ret;
	if (vf->n->ehdr.e_entry != vf->o->ehdr.e_entry) {
		if (vf->n->ehdr.e_entry != vf->stubs.runtime->vaddr || next != vf->o->ehdr.e_entry)
			return vf_refuse(vf, vf->n->ehdr.e_entry,
					 "the entry is neither the original's nor the runtime's");
		return 0;
	}
	off = init_entry(vf->o, &init);
	if (!off || off > vf->n->size - sizeof(d))
		return vf_refuse(vf, vf->stubs.runtime->vaddr,
				 "neither the entry point nor DT_INIT starts the runtime");
	memcpy(&d, vf->n->data + off, sizeof(d));
	if (d.d_tag != DT_INIT || d.d_un.d_ptr != vf->stubs.runtime->vaddr + ME_RUNTIME_INIT ||
	    next != init)
		return vf_refuse(vf, vf->stubs.runtime->vaddr,
				 "DT_INIT does not start the runtime");
	vf->stubs.init_entry = off;
	return 0;
}

/* Does the table of a meter say that @counter counts what comes to the block at @old? Else any place will do. */
static bool is_metered_at(const struct vf *vf, uint64_t counter, uint64_t old)
{
	const struct mp_edge_table *t = vf->stubs.meter;

	for (uint32_t e = 0; t && e < t->nr_edges; e++) {
		const struct mp_counted_edge *edge = &t->edges[e];

		if (edge->counter == counter)
			return t->blocks[edge->to == MP_NONE ? edge->from : edge->to].vaddr == old;
	}
	return !t;
}

/* lock incq counter(%rip), or incq %gs:counter(%rip), at @at, with a counter of its own. */
static int check_counting(const struct vf *vf, const struct mp_map_piece *p, const uint8_t *b,
			  uint64_t at, uint64_t *next)
{
	static const uint8_t inc[] = {0x48, 0xff, 0x05};
	uint64_t counter, bit;

	if (at < p->new_vaddr + p->new_size && *b == (vf->stubs.thread_state ? 0x65 : 0xf0)) {
		b++;
		at++;
	} else if (vf->stubs.thread_state) {
		return vf_refuse(vf, at, "a stub does not count in its thread's counters");
	}
	if (at + 7 > p->new_vaddr + p->new_size || memcmp(b, inc, sizeof(inc)))
		return vf_refuse(vf, at, "a stub does not count");
	at += 7;
	counter = vf_displacement_target(b + sizeof(inc), at) - vf->stubs.counters->vaddr;
	if (counter % 8 || counter / 8 >= vf->stubs.nr_counters)
		return vf_refuse(vf, p->new_vaddr, "a stub counts outside the counters");
	if (!is_metered_at(vf, counter / 8, p->old_vaddr))
		return vf_refuse(vf, p->new_vaddr, "a stub counts in the counter of another place");
	bit = 1ULL << (counter / 8 % 64);
	if (__atomic_fetch_or(&vf->marks->counted[counter / 512], bit, __ATOMIC_RELAXED) & bit)
		return vf_refuse(vf, p->new_vaddr, "a stub counts in another stub's counter");
	*next = at;
	return vf_check_flags(vf, p, false);
}

/* A stub checks the thread's counters, counts, or does both. */
static int check_counter_stub(const struct vf *vf, const struct mp_map_piece *p, const uint8_t *b,
			      uint64_t at, uint64_t *next)
{
	uint64_t end = p->new_vaddr + p->new_size;
	int len = vf_check_thread(vf, p, b, at);

	if (len < 0)
		return len;
	*next = at + (uint64_t)len;
	/* A stub that only checks ends after the check, or jumps. */
	if (len && (*next == end || b[len] == 0xe9 || b[len] == 0xeb))
		return 0;
	return check_counting(vf, p, b + len, *next, next);
}

bool vf_all_are_counted(const struct vf *vf)
{
	uint64_t nr = 0;

	for (uint64_t i = 0; i < vf->stubs.nr_counters; i++)
		nr += vf->marks->counted[i / 64] >> i % 64 & 1;
	return nr == vf->stubs.nr_counters;
}

/* Number of stubs of one block that may follow one another, and bytes of each. */
#define STUBS_IN_A_ROW 8
#define STUB_MAX       128

/*
 * *@now: where control goes from the end of the stub @p. Return: false if it is undecodable, longer than any stub (many
 * others may lead to it), or may go back to the stub @from.
 */
static bool leave_stub(const struct vf *vf, const struct mp_map_piece *p,
		       const struct mp_map_piece *from, uint64_t *now)
{
	uint64_t at = p->new_vaddr, end = at + p->new_size;
	const uint8_t *b = p->new_size <= STUB_MAX ? mp_elf_bytes(vf->n, at, p->new_size) : NULL;
	struct vf_insn insn = {0};

	for (; b && at < end; at += insn.len, b += insn.len)
		if (!vf_decode(b, end - at, at, &insn) ||
		    (insn.kind == VF_JCC && insn.target == from->new_vaddr))
			return false;
	*now = insn.kind == VF_JMP ? insn.target : vf_falls_to(vf, p);
	return b && at == end;
}

/* A patch may stand at the block's old place @old. *@now: where it leads. */
static bool is_patched(const struct vf *vf, uint64_t old, uint64_t *now)
{
	const uint8_t *a = mp_elf_bytes(vf->o, old, 4), *b;

	if (a && !memcmp(a, "\xf3\x0f\x1e\xfa", 4))
		old += 4;
	a = mp_elf_bytes(vf->o, old, 5);
	b = mp_elf_bytes(vf->n, old, 5);
	if (!a || !b || !memcmp(a, b, 5) || b[0] != 0xe9)
		return false;
	*now = vf_displacement_target(b + 1, old + 5);
	return true;
}

/* The stub @from goes on at @now. Does control come to its block then, and not round and round by stubs alone? */
static bool comes_to_block(const struct vf *vf, const struct mp_map_piece *from, uint64_t now)
{
	for (unsigned int n = 0; n < STUBS_IN_A_ROW; n++) {
		const struct mp_map_piece *p;
		uint32_t i;

		if (now == from->old_vaddr && !is_patched(vf, now, &now))
			return true;
		i = vf_whole_piece(vf, now);
		p = &vf->map->pieces[i];
		/* A copy without code leads on to other code. */
		if (i == vf->map->nr_pieces || p->old_size || p->old_vaddr != from->old_vaddr)
			return true;
		if (p == from || !leave_stub(vf, p, from, &now))
			return false;
	}
	return false;
}

/* [endbr64], the stub's work, then on to the start of @p's original: a copy of it, or the next
 * stub before it. */
int vf_check_stub(const struct vf *vf, const struct mp_map_piece *p)
{
	static const uint8_t endbr64[] = {0xf3, 0x0f, 0x1e, 0xfa};
	uint64_t at = p->new_vaddr, end = p->new_vaddr + p->new_size;
	const uint8_t *b = mp_elf_bytes(vf->n, at, p->new_size);
	const struct mp_map_piece *to = p + 1;
	struct vf_insn insn;
	int ret;

	if (vf->stubs.waits)
		return vf_check_wait(vf, p);
	if (!vf_has_stubs(vf) || !b || p->new_size < sizeof(endbr64))
		return vf_refuse(vf, at, "code that is neither a copy nor a stub");
	if (!memcmp(b, endbr64, sizeof(endbr64)))
		at += sizeof(endbr64);
	if (vf->stubs.path_section)
		ret = vf_check_path_stub(vf, p, b + (at - p->new_vaddr), at, &at);
	else if (vf->stubs.call_section)
		ret = vf_check_call_stub(vf, p, b + (at - p->new_vaddr), at, &at);
	else if (vf->stubs.audit_section)
		ret = vf_check_audit_stub(vf, p, b + (at - p->new_vaddr), at, &at);
	else
		ret = check_counter_stub(vf, p, b + (at - p->new_vaddr), at, &at);
	if (ret)
		return ret;
	if (at < end) {
		if (!vf_decode(b + (at - p->new_vaddr), end - at, at, &insn) ||
		    insn.kind != VF_JMP || at + insn.len != end ||
		    !vf_same_place(vf, p->old_vaddr, insn.target) ||
		    !comes_to_block(vf, p, insn.target))
			return vf_refuse(vf, at, "a stub does not continue at %#llx",
					 (unsigned long long)p->old_vaddr);
	} else if (to == vf->map->pieces + vf->map->nr_pieces ||
		   vf_falls_to(vf, p) != to->new_vaddr || to->old_vaddr != p->old_vaddr ||
		   !comes_to_block(vf, p, to->new_vaddr)) {
		return vf_refuse(vf, at, "a stub does not run on into the copy of %#llx",
				 (unsigned long long)p->old_vaddr);
	}
	return 0;
}
