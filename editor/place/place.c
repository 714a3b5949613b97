// SPDX-License-Identifier: Apache-2.0
/*
 * place - decides branch forms, lengths and addresses of copied blocks. Does not choose order
 * (layout) nor write bytes (copy). Called by emit.
 */
#include "editor/place/place.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "editor/rewrite/leaf.h"
#include "editor/evidence/plt_stub.h"
#include "editor/place/place_private.h"
#include "editor/place/stub_code.h"
#include "libprof/base/assert.h"

uint64_t me_place_of(const struct mp_cfg *cfg, const struct me_placement *placement,
		     uint64_t target)
{
	uint32_t block = mp_cfg_block_starting(cfg, target);

	if (block == MP_NONE || placement->target_from_outside[block] == MP_NONE)
		return target;
	return placement->copies[placement->target_from_outside[block]].new_vaddr;
}

uint64_t me_place_value(const struct mp_cfg *cfg, const struct me_placement *placement,
			uint64_t target)
{
	uint32_t block = mp_cfg_block_starting(cfg, target);

	if (block == MP_NONE || placement->target_from_outside[block] == MP_NONE ||
	    !placement->copies[placement->target_from_outside[block]].new_size)
		return target;
	return placement->copies[placement->target_from_outside[block]].new_vaddr;
}

/* May @copy fall through to the next copy on its way to @target? */
static bool next_is(const struct mp_cfg *cfg, const struct me_placement *placement, uint32_t copy,
		    uint64_t target)
{
	uint32_t block = me_place_end(cfg, placement->copies[copy].block, target);

	if (block == MP_NONE || copy + 1 >= placement->nr_copies)
		return false;
	if (placement->copies[copy + 1].apart)
		return false;
	if (placement->nr_stubs)
		return me_place_arrival(cfg, placement, &placement->copies[copy], block) ==
		       copy + 1;
	return placement->copies[copy + 1].block == block;
}

static void shape_conditional(const struct mp_cfg *cfg, struct me_placement *placement,
			      uint32_t index, bool favour_fall)
{
	struct me_copy *copy = &placement->copies[index];
	const struct mp_block *block = &cfg->blocks[copy->block];
	uint64_t fall = block->vaddr + block->size;

	copy->branch = true;
	if (next_is(cfg, placement, index, fall)) {
		copy->falls = true;
		return;
	}
	if (next_is(cfg, placement, index, mp_block_target(block))) {
		copy->invert = true;
		copy->falls = true;
		return;
	}
	/* Neither successor follows: the likelier one gets the branch, the other one the jump. */
	copy->jump = true;
	copy->invert = favour_fall;
}

static bool begins_with_endbr64(const struct mp_cfg *cfg, const struct mp_block *block)
{
	const uint8_t *bytes = mp_elf_bytes(cfg->elf, block->vaddr, block->size);
	struct mp_insn insn;

	return bytes && !mp_insn_decode(bytes, block->size, block->vaddr, &insn) && insn.endbr64;
}

/* Instructions of the called function take the place of the call at the block's end. */
static void shape_inlined(const struct me_placement *placement, struct me_copy *copy, uint32_t leaf)
{
	copy->inlined = true;
	copy->end_size = copy->apart ? placement->leaves[leaf].apart_size
				     : placement->leaves[leaf].size;
	copy->leaf = leaf;
	copy->body_size = copy->apart ? 0 : copy->body_size - ME_LEAF_CALL_SIZE;
}

/* A label, of GNU C or of a switch, that is only a jump: without it, two labels have one address. */
static bool is_label_of_jump(const struct mp_block *block)
{
	return block->size == block->term_len &&
	       block->flags & (MP_BLOCK_ADDRESS_TAKEN | MP_BLOCK_TABLE_TARGET);
}

static void shape(const struct mp_cfg *cfg, struct me_placement *placement, uint32_t index,
		  const struct me_plan_block *planned)
{
	struct me_copy *copy = &placement->copies[index];
	const struct mp_block *block = &cfg->blocks[copy->block];
	uint64_t end = block->vaddr + block->size;

	if (copy->stub) {
		const struct me_stub *stub = &placement->stubs[copy->stub - 1];

		copy->endbr64 = stub->arrivals != ME_STUB_EDGE && stub->arrivals != ME_STUB_POLL &&
				begins_with_endbr64(cfg, block);
		copy->body_size = me_stub_code_size(stub, placement->counters) +
				  (copy->endbr64 ? ME_ENDBR64_SIZE : 0);
		copy->falls = next_is(cfg, placement, index, block->vaddr);
		copy->jump = !copy->falls;
		return;
	}
	if (copy->apart) {
		shape_inlined(placement, copy, planned->inlined - 1U);
		return;
	}
	switch (block->term) {
	case MP_TERM_COND:
		copy->body_size = block->size - block->term_len;
		shape_conditional(cfg, placement, index, planned->favour_fall);
		break;
	case MP_TERM_JUMP:
	case MP_TERM_TAIL:
		copy->body_size = block->size - block->term_len;
		/* The exit of an audited function keeps its code, and so an address of its own. */
		copy->falls = next_is(cfg, placement, index, mp_block_target(block)) &&
			      !is_label_of_jump(block) &&
			      !(placement->of_version[ME_VERSION_ORIGINAL] &&
				block->term == MP_TERM_TAIL);
		copy->jump = !copy->falls && !planned->via_slot;
		break;
	case MP_TERM_FALL:
	case MP_TERM_NORETURN:
		/* A call that seems not to return gets the jump, too, since this is not proved. */
		copy->body_size = block->size;
		copy->falls = next_is(cfg, placement, index, end);
		copy->jump = !copy->falls;
		if (planned->via_slot)
			copy->body_size -= ME_PLT_BRANCH_SIZE;
		else if (planned->inlined)
			shape_inlined(placement, copy, planned->inlined - 1U);
		break;
	default: copy->body_size = block->size; break;
	}
	copy->via_slot = planned->via_slot;
	if (copy->via_slot)
		copy->end_size = ME_SLOT_BRANCH_SIZE;
	copy->left_out = planned->left_out && block->term == MP_TERM_FALL;
	if (copy->left_out)
		copy->body_size = 0;
	placement->nr_inverted += copy->invert;
	placement->nr_jumps_added += copy->jump && block->term != MP_TERM_JUMP &&
				     block->term != MP_TERM_TAIL;
	placement->nr_jumps_dropped += !copy->jump && !copy->via_slot &&
				       (block->term == MP_TERM_JUMP || block->term == MP_TERM_TAIL);
}

static void assign_addresses(struct me_placement *placement, const struct me_plan *plan)
{
	struct me_taken_slots taken = {0};
	uint64_t vaddr = placement->base;

	for (uint32_t i = 0; i < placement->nr_copies; i++) {
		struct me_copy *copy = &placement->copies[i];

		vaddr = me_place_from(copy, vaddr);
		if (placement->line_log2)
			vaddr = me_place_in_lines(placement, plan->blocks, i, vaddr);
		if (placement->nr_loads && (i == 0 || !copy[-1].falls))
			vaddr = me_place_loads(placement, i, vaddr, &taken);
		copy->new_vaddr = vaddr;
		copy->new_size = me_copy_size(copy);
		if (copy->loads)
			me_place_take_loads(placement, i, &taken);
		vaddr += copy->new_size;
	}
	placement->end = vaddr;
}

static bool reaches_short(uint64_t from_end, uint64_t target)
{
	int64_t disp = (int64_t)(target - from_end);

	return disp >= INT8_MIN && disp <= INT8_MAX;
}

/* Lengthen every branch that does not reach. Return: whether any grew. */
static bool grow(const struct mp_cfg *cfg, struct me_placement *placement)
{
	bool grew = false;

	for (uint32_t i = 0; i < placement->nr_copies; i++) {
		struct me_copy *copy = &placement->copies[i];
		uint64_t branch_end = copy->new_vaddr + copy->body_size +
				      (copy->long_branch ? ME_LONG_BRANCH : ME_SHORT_BRANCH);

		if (copy->branch && !copy->long_branch &&
		    !reaches_short(branch_end, me_place_branch(cfg, placement, copy)))
			copy->long_branch = grew = true;
		if (copy->jump && !copy->long_jump &&
		    !reaches_short(copy->new_vaddr + copy->new_size,
				   me_place_jump(cfg, placement, copy)))
			copy->long_jump = grew = true;
	}
	return grew;
}

/* @outer: control from outside of the function arrives at this copy. */
static uint8_t alignment(const struct mp_cfg *cfg, const struct me_plan_block *planned,
			 const struct me_redirects *redirects, bool outer)
{
	const struct mp_block *block = &cfg->blocks[planned->block];
	uint8_t keep = 0;

	if (outer && block->flags & MP_BLOCK_ENTRY && redirects->functions &&
	    redirects->functions[block->func])
		keep = me_pointer_align_log2(cfg->elf, block->vaddr);
	return planned->align_log2 > keep ? planned->align_log2 : keep;
}

static uint32_t *new_index(const struct mp_cfg *cfg)
{
	uint32_t *index = malloc((cfg->nr_blocks + 1) * sizeof(*index));

	for (uint32_t b = 0; index && b < cfg->nr_blocks; b++)
		index[b] = MP_NONE;
	return index;
}

static bool allocate(const struct mp_cfg *cfg, const struct me_plan *plan,
		     const struct me_instrumentation *added, struct me_placement *out)
{
	out->copies = calloc(plan->nr_blocks + 1, sizeof(*out->copies));
	out->target_from_outside = out->target_from_inside = out->copy_of_block = new_index(cfg);
	if (added->nr_stubs) {
		out->target_from_inside = new_index(cfg);
		out->copy_of_block = new_index(cfg);
		out->edge_stubs = malloc(added->nr_stubs * sizeof(*out->edge_stubs));
		if (added->polls || added->clocks)
			out->notes = new_index(cfg);
		if (!out->edge_stubs || ((added->polls || added->clocks) && !out->notes))
			return false;
		for (int v = ME_VERSION_ORIGINAL; added->nr_audited && v < ME_NR_VERSIONS; v++) {
			out->of_version[v] = new_index(cfg);
			if (!out->of_version[v])
				return false;
		}
	}
	return out->copies && out->target_from_outside && out->target_from_inside &&
	       out->copy_of_block;
}

/* Index copies and stubs by block. A stub replaces the copy for the control flow that it
 * counts. */
static void index_copies(const struct mp_cfg *cfg, const struct me_plan *plan,
			 const struct me_instrumentation *added, struct me_placement *out)
{
	uint32_t stub = 0;

	for (uint32_t i = 0; i < plan->nr_blocks; i++) {
		const struct me_plan_block *planned = &plan->blocks[i];

		if (planned->version != ME_VERSION_NEW && !planned->stub)
			out->of_version[planned->version][planned->block] = i;
		else if (!planned->clone && !planned->stub)
			out->target_from_outside[planned->block] = i;
	}
	if (!added->nr_stubs)
		return;
	memcpy(out->target_from_inside, out->target_from_outside,
	       cfg->nr_blocks * sizeof(*out->target_from_inside));
	memcpy(out->copy_of_block, out->target_from_outside,
	       cfg->nr_blocks * sizeof(*out->copy_of_block));
	for (uint32_t i = 0; i < plan->nr_blocks; i++) {
		uint32_t block = plan->blocks[i].block;

		if (!plan->blocks[i].stub)
			continue;
		out->copies[i].stub = stub + 1;
		if (plan->blocks[i].version != ME_VERSION_NEW &&
		    added->stubs[stub].arrivals == ME_STUB_ALL) {
			out->of_version[plan->blocks[i].version][block] = i;
			stub++;
			continue;
		}
		switch (added->stubs[stub].arrivals) {
		case ME_STUB_ALL:
			if (out->target_from_outside[block] == out->target_from_inside[block])
				out->target_from_outside[block] = i;
			out->target_from_inside[block] = i;
			break;
		case ME_STUB_OUTSIDE: out->target_from_outside[block] = i; break;
		case ME_STUB_POLL: out->notes[block] = i; break;
		default:
			out->edge_stubs[out->nr_edge_stubs++] =
				(struct me_edge_stub){added->stubs[stub].from, block, i};
		}
		stub++;
	}
	qsort(out->edge_stubs, out->nr_edge_stubs, sizeof(*out->edge_stubs), me_edge_stub_compare);
}

static bool is_divided(const struct me_plan *plan, const struct me_plan_block *planned)
{
	return planned->inlined && !planned->apart && plan->leaves[planned->inlined - 1].apart_size;
}

/* The plan has what lies apart in the order of the copies that it belongs to. Return: false: out of memory. */
static bool find_divided(const struct me_plan *plan, struct me_placement *out)
{
	uint32_t nr_near = 0, nr_apart = 0;

	for (uint32_t i = 0; i < plan->nr_blocks; i++)
		nr_near += is_divided(plan, &plan->blocks[i]);
	out->divided = calloc((size_t)nr_near + 1, sizeof(*out->divided));
	for (uint32_t i = 0, n = 0; out->divided && i < plan->nr_blocks; i++) {
		if (is_divided(plan, &plan->blocks[i]))
			out->divided[n++].near = i;
		out->copies[i].apart = plan->blocks[i].apart;
		if (plan->blocks[i].apart && nr_apart < nr_near)
			out->divided[nr_apart++].apart = i;
	}
	out->nr_divided = nr_apart;
	return out->divided;
}

static int compare_near(const void *a, const void *b)
{
	const struct me_divided *x = a, *y = b;

	return x->near < y->near ? -1 : x->near > y->near;
}

static int compare_apart(const void *a, const void *b)
{
	const struct me_divided *x = a, *y = b;

	return x->apart < y->apart ? -1 : x->apart > y->apart;
}

int64_t me_place_apart(const struct me_placement *placement, const struct me_copy *copy)
{
	uint32_t at = (uint32_t)(copy - placement->copies);
	const struct me_divided key = {.near = at, .apart = at}, *found;
	const struct me_copy *near, *apart;

	found = bsearch(&key, placement->divided, placement->nr_divided, sizeof(key),
			copy->apart ? compare_apart : compare_near);
	if (!found)
		return 0;
	near = &placement->copies[found->near];
	apart = &placement->copies[found->apart];
	return (int64_t)(apart->new_vaddr - (near->new_vaddr + near->body_size));
}

int me_place(const struct mp_cfg *cfg, const struct me_plan *plan,
	     const struct me_instrumentation *added, uint64_t base, struct me_placement *out,
	     struct mp_err *err)
{
	/* Hot code first (plan.h). */
	mp_assert(mp_ascends(plan->blocks, plan->nr_blocks, zone));
	*out = (struct me_placement){.base = base,
				     .end = base,
				     .line_log2 = plan->line_log2,
				     .nr_copies = plan->nr_blocks,
				     .first_warm = plan->nr_blocks,
				     .stubs = added->stubs,
				     .nr_stubs = added->nr_stubs,
				     .leaves = plan->leaves,
				     .counters = added->counters};
	if (!allocate(cfg, plan, added, out) || !find_divided(plan, out)) {
		me_placement_fini(out);
		return mp_err_set(err, ENOMEM, "out of memory");
	}
	index_copies(cfg, plan, added, out);
	for (uint32_t i = 0; i < plan->nr_blocks; i++) {
		out->copies[i].block = plan->blocks[i].block;
		out->copies[i].align_log2 =
			alignment(cfg, &plan->blocks[i], &plan->redirects,
				  out->target_from_outside[plan->blocks[i].block] == i);
		out->copies[i].align_offset = plan->blocks[i].align_offset;
		out->copies[i].new_line = plan->blocks[i].new_line;
		out->copies[i].clone = plan->blocks[i].clone;
		out->copies[i].version = plan->blocks[i].version;
		if (plan->blocks[i].zone == ME_ZONE_WARM && out->first_warm == plan->nr_blocks)
			out->first_warm = i;
		if (plan->blocks[i].zone == ME_ZONE_HOT && !plan->blocks[i].stub &&
		    !out->copies[i].apart && me_place_add_loads(cfg, out, i)) {
			me_placement_fini(out);
			return mp_err_set(err, ENOMEM, "out of memory");
		}
	}
	for (uint32_t i = 0; i < plan->nr_blocks; i++)
		shape(cfg, out, i, &plan->blocks[i]);
	me_place_find_arrivals(cfg, out);
	do {
		assign_addresses(out, plan);
	} while (grow(cfg, out));
	mp_assert(mp_ascends(out->copies, out->nr_copies, new_vaddr));
	mp_assert(mp_ascends(out->edge_stubs, out->nr_edge_stubs, from));
	mp_assert(mp_ascends(out->divided, out->nr_divided, near));
	mp_assert(mp_ascends(out->divided, out->nr_divided, apart));
	out->text_end = plan->page_log2 ? me_round_up(out->end, plan->page_log2) : out->end;
	return 0;
}

void me_placement_fini(struct me_placement *placement)
{
	if (placement->target_from_inside != placement->target_from_outside) {
		free(placement->target_from_inside);
		free(placement->copy_of_block);
	}
	free(placement->notes);
	for (int v = 0; v < ME_NR_VERSIONS; v++) {
		free(placement->of_version[v]);
		placement->of_version[v] = NULL;
	}
	free(placement->copies);
	free(placement->target_from_outside);
	free(placement->edge_stubs);
	free(placement->loads);
	free(placement->divided);
	placement->copies = NULL;
	placement->target_from_outside = placement->target_from_inside = placement->copy_of_block =
		NULL;
	placement->notes = NULL;
	placement->edge_stubs = NULL;
	placement->loads = NULL;
	placement->divided = NULL;
	placement->nr_divided = 0;
	placement->nr_loads = placement->cap_loads = 0;
}
