// SPDX-License-Identifier: Apache-2.0
/*
 * start - finds the code that runs first, and puts the runtime before it (editor/runtime/).
 * Called by emit; optimize asks whether the file is a program.
 */
#include "editor/emit/start.h"

#include <errno.h>
#include <string.h>

#include "editor/base/runtime.h"
#include "libprof/note/polls.h"

struct dynamic {
	uint64_t init_off;  /* of DT_INIT in the file, 0: none */
	uint64_t spare_off; /* of a DT_NULL with another one behind it, 0: none */
	uint64_t init;
	bool named, pie, interpreted;
};

static void read_dynamic(const struct mp_elf *elf, const Elf64_Phdr *p, struct dynamic *out)
{
	if (p->p_offset > elf->size || p->p_filesz > elf->size - p->p_offset)
		return;
	for (uint64_t at = 0; at + sizeof(Elf64_Dyn) <= p->p_filesz; at += sizeof(Elf64_Dyn)) {
		Elf64_Dyn dyn;

		memcpy(&dyn, elf->data + p->p_offset + at, sizeof(dyn));
		if (dyn.d_tag == DT_NULL) {
			uint64_t behind = at + sizeof(dyn);
			bool ends = false;

			/* With a DT_INIT here, the loader would go on to that entry. */
			if (behind + sizeof(dyn) <= p->p_filesz) {
				memcpy(&dyn, elf->data + p->p_offset + behind, sizeof(dyn));
				ends = dyn.d_tag == DT_NULL;
			}
			out->spare_off = ends ? p->p_offset + at : 0;
			return;
		}
		if (dyn.d_tag == DT_INIT) {
			out->init_off = p->p_offset + at;
			out->init = dyn.d_un.d_ptr;
		}
		out->named |= dyn.d_tag == DT_SONAME;
		out->pie |= dyn.d_tag == DT_FLAGS_1 && dyn.d_un.d_val & DF_1_PIE;
	}
}

int me_start_find(const struct mp_elf *elf, struct me_start *out, struct mp_err *err)
{
	struct dynamic d = {0};

	for (uint32_t i = 0; i < elf->nr_phdrs; i++) {
		d.interpreted |= elf->phdrs[i].p_type == PT_INTERP;
		if (elf->phdrs[i].p_type == PT_DYNAMIC)
			read_dynamic(elf, &elf->phdrs[i], &d);
	}
	*out = (struct me_start){
		.program = !d.named && (elf->ehdr.e_type == ET_EXEC || d.pie || d.interpreted)};
	if (out->program) {
		out->off = offsetof(Elf64_Ehdr, e_entry);
		out->vaddr = elf->ehdr.e_entry;
		return out->vaddr ? 0 : mp_err_set(err, EPERM, "a program without an entry point");
	}
	out->off = d.init_off ? d.init_off : d.spare_off;
	out->vaddr = d.init;
	return out->off ? 0
			: mp_err_set(err, EPERM,
				     "has no DT_INIT and no room for one: nothing could map its "
				     "counters");
}

/* Does a page of the runtime follow the counters, since each thread has its own? */
static bool has_state(const struct me_instrumentation *added)
{
	return added->counters == ME_COUNTERS_THREADS || added->nr_audited;
}

uint64_t me_start_counters_size(const struct me_instrumentation *added)
{
	uint64_t size = 8 * (uint64_t)added->nr_counters;

	if (has_state(added))
		size = (size + ME_RUNTIME_PAGE - 1) / ME_RUNTIME_PAGE * ME_RUNTIME_PAGE +
		       ME_RUNTIME_PAGE;
	return size;
}

uint64_t me_start_size(void)
{
	return me_runtime_blob_size + sizeof(struct me_runtime_params);
}

int me_start_write(const struct me_start *start, const struct me_instrumentation *added,
		   uint64_t table_hash, uint64_t vaddr, uint64_t counters, uint64_t counters_bytes,
		   uint8_t *body, uint8_t *head, struct mp_err *err)
{
	uint64_t at = vaddr + me_runtime_blob_size;
	struct me_runtime_params params = {
		.magic = ME_RUNTIME_MAGIC,
		.counters = (int64_t)(counters - at),
		.counters_bytes = counters_bytes,
		.next = start->vaddr ? (int64_t)(start->vaddr - at) : 0,
		.table_hash = table_hash,
		.nr_audited = added->nr_audited,
		.has_clock = added->clocks,
	};

	if (added->polls) {
		params.counters_bytes = sizeof(struct mp_polls);
		params.base = params.counters + (int64_t)params.counters_bytes;
	}
	if (has_state(added)) {
		params.counters_bytes -= ME_RUNTIME_PAGE;
		params.state = params.counters + (int64_t)params.counters_bytes;
	}
	if (strlen(added->counts_path) >= sizeof(params.path))
		return mp_err_set(err, EINVAL, "%s: too long for the path of the counts",
				  added->counts_path);
	strcpy(params.path, added->counts_path);
	memcpy(body, me_runtime_blob, me_runtime_blob_size);
	memcpy(body + me_runtime_blob_size, &params, sizeof(params));
	if (start->program) {
		memcpy(head + start->off, &vaddr, sizeof(vaddr));
	} else {
		Elf64_Dyn dyn = {.d_tag = DT_INIT};

		dyn.d_un.d_ptr = vaddr + ME_RUNTIME_INIT;
		memcpy(head + start->off, &dyn, sizeof(dyn));
	}
	return 0;
}
