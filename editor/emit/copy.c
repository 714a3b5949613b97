// SPDX-License-Identifier: Apache-2.0
/*
 * copy - writes the bytes of copied blocks, stubs and padding. Addresses and branch
 * forms were decided by place; all other bytes are copied unchanged.
 */
#include "editor/emit/copy.h"

#include <errno.h>
#include <string.h>

#include "editor/base/nops.h"
#include "editor/rewrite/leaf.h"
#include "editor/evidence/plt_stub.h"
#include "editor/place/stub_code.h"
#include "libprof/note/audit_file.h"
#include "libprof/insn/insn.h"

enum {
	INT3 = 0xcc
};

static const uint8_t endbr64[] = {0xf3, 0x0f, 0x1e, 0xfa};

static void pad(uint8_t *bytes, uint64_t size, bool fallen_into)
{
	if (!fallen_into) {
		memset(bytes, INT3, size);
		return;
	}
	while (size > 0) {
		unsigned int n = me_nop_put(bytes, size);

		bytes += n;
		size -= n;
	}
}

bool me_put_rel32(uint8_t *field, uint64_t field_end, uint64_t target)
{
	int64_t disp = (int64_t)(target - field_end);
	int32_t rel = (int32_t)disp;

	if (rel != disp)
		return false;
	memcpy(field, &rel, sizeof(rel));
	return true;
}

static int put_branch(uint8_t *at, uint64_t end, bool is_long, uint64_t target)
{
	int64_t disp = (int64_t)(target - end);

	if (is_long)
		return me_put_rel32(at, end, target) ? 0 : -ERANGE;
	if (disp < INT8_MIN || disp > INT8_MAX)
		return -ERANGE;
	*at = (uint8_t)disp;
	return 0;
}

/* Code of the original, and the address of its copy. */
struct code {
	uint64_t vaddr, size, new_vaddr;
};

/* Adjust the copy's operands that hold addresses of functions. */
static int write_pointers(const struct mp_cfg *cfg, const struct me_placement *placement,
			  const struct me_redirects *redirects, const struct code *code,
			  uint8_t *out)
{
	uint64_t start = code->vaddr, end = start + code->size;
	uint32_t i = me_redirects_lower_bound(redirects, start);

	for (; i < redirects->nr_sites && redirects->sites[i].vaddr < end; i++) {
		const struct me_site *site = &redirects->sites[i];
		uint64_t off = site->vaddr - start,
			 now = me_place_value(cfg, placement, site->target);
		uint64_t relative_to = site->kind == ME_SITE_REL32 ? code->new_vaddr + off + 4 : 0;

		if (end - site->vaddr < 4)
			return -EBADMSG;
		if (!me_put_rel32(out + off, relative_to, now))
			return -ERANGE;
	}
	return 0;
}

static uint64_t address_in(const struct me_placement *placement, enum me_version version,
			   uint32_t block)
{
	return placement->copies[placement->of_version[version][block]].new_vaddr;
}

static int write_stub(const struct me_placement *placement, const struct me_copy *copy,
		      uint8_t *out)
{
	const struct me_stub *stub = &placement->stubs[copy->stub - 1];
	struct me_stub_places places = placement->places;
	uint64_t vaddr = copy->new_vaddr;

	if (copy->endbr64) {
		memcpy(out, endbr64, sizeof(endbr64));
		out += sizeof(endbr64);
		vaddr += sizeof(endbr64);
	}
	if (stub->polls || stub->does == ME_STUB_CLOCKS)
		places.notes = placement->copies[placement->notes[copy->block]].new_vaddr;
	if (stub->does == ME_STUB_ENTERS)
		places.other =
			placement->copies[placement->target_from_inside[copy->block]].new_vaddr;
	if (stub->does == ME_STUB_ENTERS || stub->does == ME_STUB_TIMES) {
		places.untimed[MP_AUDIT_A] =
			address_in(placement, ME_VERSION_ORIGINAL_UNTIMED, copy->block);
		places.untimed[MP_AUDIT_B] =
			address_in(placement, ME_VERSION_NEW_UNTIMED, copy->block);
	}
	if (stub->does == ME_STUB_TIMES) /* in version A, the block follows its stub */
		places.other = placement
				       ->copies[stub->version == MP_AUDIT_A
							? placement->copy_of_block[copy->block]
							: placement->of_version[ME_VERSION_ORIGINAL]
									       [copy->block] +
								  1]
				       .new_vaddr;
	return me_stub_code_write(stub, placement->counters, &places, vaddr, out);
}

static int write_insns(const struct mp_cfg *cfg, const struct me_placement *placement,
		       const struct code *code, uint8_t *out)
{
	const uint8_t *old = mp_elf_bytes(cfg->elf, code->vaddr, code->size);
	struct mp_insn insn;

	if (!old)
		return -EBADMSG;
	memcpy(out, old, code->size);
	for (uint64_t off = 0; off < code->size; off += insn.len) {
		uint64_t new_end, target;

		if (mp_insn_decode(old + off, code->size - off, code->vaddr + off, &insn))
			return -EBADMSG;
		if (insn.kind == MP_INSN_CALL)
			target = me_place_of(cfg, placement, insn.target);
		else if (insn.rip_relative)
			target = insn.target;
		else
			continue;
		if (insn.disp_size != 4)
			return -EBADMSG;
		new_end = code->new_vaddr + off + insn.len;
		if (!me_put_rel32(out + off + insn.disp_off, new_end, target))
			return -ERANGE;
	}
	return 0;
}

static int write_code(const struct mp_cfg *cfg, const struct me_placement *placement,
		      const struct me_redirects *redirects, const struct code *code, uint8_t *out)
{
	int rc = write_insns(cfg, placement, code, out);

	return rc ? rc : write_pointers(cfg, placement, redirects, code, out);
}

/* Writes the displacement of the call at the end of part @i, if a call stands there. @vaddr: the end's new address. */
static int write_call(const struct mp_cfg *cfg, const struct me_placement *placement,
		      const struct me_leaf *leaf, uint8_t i, uint64_t vaddr, uint8_t *out)
{
	const struct me_leaf_part *part = &leaf->parts[i];
	uint8_t field = me_leaf_call_field(leaf, i);
	uint64_t target = me_leaf_callee(part);

	if (!field)
		return 0;
	if (!part->via_slot)
		target = me_place_of(cfg, placement, target);
	return me_put_rel32(out + field, vaddr + field + 4, target) ? 0 : -ERANGE;
}

/* The instructions of the called function, in place of the call. */
static int write_inlined(const struct mp_cfg *cfg, const struct me_placement *placement,
			 const struct me_redirects *redirects, const struct me_copy *copy,
			 uint8_t *out)
{
	uint64_t vaddr = copy->new_vaddr + copy->body_size;
	uint8_t end[ME_LEAF_END_MAX];
	const struct me_leaf *leaf = &placement->leaves[copy->leaf];
	int64_t apart = me_place_apart(placement, copy);
	uint8_t i = copy->apart ? leaf->nr_near : 0;
	uint8_t end_part = copy->apart ? leaf->nr_parts : leaf->nr_near;
	int rc = 0;

	if (!apart && leaf->apart_size)
		return -EBADMSG;
	if (leaf->lowers && !copy->apart)
		out[0] = ME_LEAF_LOWER;
	for (; i < end_part && !rc; i++) {
		const struct me_leaf_part *part = &leaf->parts[i];
		uint32_t behind = part->off + part->size;

		rc = write_code(cfg, placement, redirects,
				&(struct code){part->vaddr, part->size, vaddr + part->off},
				out + part->off);
		memcpy(out + behind, end, me_leaf_end(leaf, i, apart, end));
		if (!rc)
			rc = write_call(cfg, placement, leaf, i, vaddr + behind, out + behind);
	}
	return rc;
}

/* `call *slot(%rip)`, or `jmp *slot(%rip)`, in place of the branch to the slot's stub. */
static int write_slot_branch(const struct mp_cfg *cfg, const struct me_copy *copy, uint8_t *out)
{
	const struct mp_block *block = &cfg->blocks[copy->block];
	bool jump = block->term == MP_TERM_TAIL;
	uint64_t slot = me_plt_branch_slot(cfg->elf, block->vaddr + copy->body_size, jump);
	uint64_t end = copy->new_vaddr + copy->body_size + ME_SLOT_BRANCH_SIZE;

	if (!slot)
		return -EBADMSG;
	out[0] = 0xff;
	out[1] = jump ? 0x25 : 0x15;
	return me_put_rel32(out + 2, end, slot) ? 0 : -ERANGE;
}

static int write_end(const struct mp_cfg *cfg, const struct me_placement *placement,
		     const struct me_redirects *redirects, const struct me_copy *copy, uint8_t *out)
{
	const struct mp_block *block = &cfg->blocks[copy->block];
	uint64_t vaddr = copy->new_vaddr + copy->body_size;
	int rc;

	out += copy->body_size;
	if (copy->end_size) {
		rc = copy->via_slot ? write_slot_branch(cfg, copy, out)
				    : write_inlined(cfg, placement, redirects, copy, out);
		if (rc)
			return rc;
		out += copy->end_size;
		vaddr += copy->end_size;
	}
	if (copy->branch) {
		const uint8_t *old =
			mp_elf_bytes(cfg->elf, block->vaddr + copy->body_size, block->term_len);
		struct mp_insn insn;
		uint8_t cc;

		if (!old || mp_insn_decode(old, block->term_len, block->vaddr, &insn) ||
		    insn.kind != MP_INSN_COND)
			return -EBADMSG;
		cc = insn.cc ^ (copy->invert ? 1 : 0);
		if (copy->long_branch) {
			*out++ = 0x0f;
			*out++ = 0x80 | cc;
			vaddr += 6;
		} else {
			*out++ = 0x70 | cc;
			vaddr += 2;
		}
		rc = put_branch(out, vaddr, copy->long_branch,
				me_place_branch(cfg, placement, copy));
		if (rc)
			return rc;
		out += copy->long_branch ? 4 : 1;
	}
	if (copy->jump) {
		*out++ = copy->long_jump ? 0xe9 : 0xeb;
		vaddr += copy->long_jump ? 5 : 2;
		return put_branch(out, vaddr, copy->long_jump, me_place_jump(cfg, placement, copy));
	}
	return 0;
}

int me_copy_write(const struct mp_cfg *cfg, const struct me_placement *placement,
		  const struct me_redirects *redirects, uint8_t *text, uint64_t *failed_at,
		  struct mp_err *err)
{
	uint64_t written = placement->base, dropped = written;
	bool falls = false;

	for (uint32_t i = 0; i < placement->nr_copies; i++) {
		const struct me_copy *copy = &placement->copies[i];
		uint8_t *out = text + (copy->new_vaddr - placement->base);
		int rc;

		pad(text + (written - placement->base), copy->new_vaddr - written, falls);
		rc = copy->stub ? write_stub(placement, copy, out)
				: write_code(cfg, placement, redirects,
					     &(struct code){cfg->blocks[copy->block].vaddr,
							    copy->body_size, copy->new_vaddr},
					     out);
		if (!rc)
			rc = write_end(cfg, placement, redirects, copy, out);
		if (rc)
			*failed_at = cfg->blocks[copy->block].vaddr;
		if (rc)
			return mp_err_set(err, -rc, "%#llx: %s", (unsigned long long)*failed_at,
					  rc == -ERANGE ? "a displacement cannot reach its "
							  "target from the new segment"
							: "cannot be copied");
		written = copy->new_vaddr + copy->new_size;
		falls = copy->falls;
		if (written - dropped >= MP_ELF_READ_AT_ONCE) {
			mp_elf_drop_pages(cfg->elf);
			dropped = written;
		}
	}
	pad(text + (written - placement->base), placement->text_end - written, falls);
	return 0;
}
