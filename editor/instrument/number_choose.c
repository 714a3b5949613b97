// SPDX-License-Identifier: Apache-2.0
/*
 * number_choose - chooses the register that holds the number in each block of a function.
 * Called by number_paths.
 */
#include "editor/evidence/eligible.h"
#include "editor/instrument/number_private.h"
#include "libprof/insn/insn.h"

static bool ends_with_call(const struct mp_cfg *cfg, const struct mp_block *block)
{
	const uint8_t *bytes = mp_elf_bytes(cfg->elf, block->vaddr, block->size);
	struct mp_insn insn = {0};

	if (block->term != MP_TERM_FALL && block->term != MP_TERM_NORETURN)
		return false;
	for (uint32_t off = 0; bytes && off < block->size; off += insn.len)
		if (mp_insn_decode(bytes + off, block->size - off, block->vaddr + off, &insn))
			return true;
	return !bytes || insn.kind == MP_INSN_CALL || insn.kind == MP_INSN_ICALL;
}

/* Choose first the register that is free in most executed blocks; then, for the others, the
 * next. */
static void choose(struct me_number *n)
{
	double weight[MP_NR_REGISTERS] = {0};
	const uint16_t *is_free = &n->registers.free[n->flow.first_block];
	uint32_t nr = n->flow.nr_blocks;

	for (uint32_t v = 0; v < nr; v++) {
		n->vertices[v].reg = MP_NO_REGISTER;
		n->vertices[v].calls = ends_with_call(n->cfg, me_number_block(n, v));
		n->vertices[v].starts = n->arrives[n->flow.first_block + v];
		for (uint8_t r = 0; r < MP_NR_REGISTERS; r++)
			if (is_free[v] >> r & 1)
				weight[r] += n->vertices[v].weight + 1e-3;
	}
	for (;;) {
		uint8_t best = 0;

		for (uint8_t r = 1; r < MP_NR_REGISTERS; r++)
			if (weight[r] > weight[best])
				best = r;
		if (weight[best] == 0)
			return;
		weight[best] = 0;
		for (uint32_t v = 0; v < nr; v++)
			if (n->vertices[v].reg == MP_NO_REGISTER && is_free[v] >> best & 1 &&
			    !me_block_stays(me_number_block(n, v)))
				n->vertices[v].reg = best;
	}
}

/* Cost of the edges on which the register would change if @v had @reg; without the edge to
 * @but. */
static double price_of_changes(const struct me_number *n, uint32_t v, uint8_t reg, uint32_t but)
{
	const struct me_number_vertex *at = &n->vertices[v];
	double price = 0;

	for (uint32_t k = 0; k < at->nr_in + at->nr_out; k++) {
		bool in = k < at->nr_in;
		uint32_t e = in ? n->in[at->first_in + k] : at->first_out + k - at->nr_in;
		const struct me_flow_edge *edge = &n->flow.edges[e];
		uint32_t other = in ? edge->from : edge->to;

		if (other == n->flow.nr_blocks || other == v || other == but ||
		    n->vertices[edge->from].calls)
			continue;
		if (n->vertices[other].reg != MP_NO_REGISTER && n->vertices[other].reg != reg)
			price += n->edges[e].price;
	}
	return price;
}

/* Give both ends of @edge the one register that changes least often. Return: whether they got
 * another. */
static bool settle_register(struct me_number *n, const struct me_flow_edge *edge)
{
	const uint16_t *is_free = &n->registers.free[n->flow.first_block];
	struct me_number_vertex *from = &n->vertices[edge->from], *to = &n->vertices[edge->to];
	uint16_t both = is_free[edge->from] & is_free[edge->to];
	uint8_t best = MP_NO_REGISTER;
	double least = price_of_changes(n, edge->from, from->reg, MP_NONE) +
		       price_of_changes(n, edge->to, to->reg, edge->from);

	for (uint8_t r = 0; r < MP_NR_REGISTERS; r++) {
		double price;

		if (!(both >> r & 1))
			continue;
		price = price_of_changes(n, edge->from, r, edge->to) +
			price_of_changes(n, edge->to, r, edge->from);
		if (price < least) {
			least = price;
			best = r;
		}
	}
	if (best == MP_NO_REGISTER)
		return false;
	from->reg = to->reg = best;
	return true;
}

/* Limit on rounds over a function's edges; each round makes changes of the register rarer. */
#define MAX_ROUNDS 4

static void settle(struct me_number *n)
{
	bool changed = true;

	for (int i = 0; i < MAX_ROUNDS && changed; i++) {
		changed = false;
		for (uint32_t e = 0; e < n->flow.nr_edges; e++) {
			const struct me_flow_edge *edge = &n->flow.edges[e];

			if (me_number_may_carry(n, edge) && !me_number_passes(n, edge))
				changed |= settle_register(n, edge);
		}
	}
}

void me_number_choose_registers(struct me_number *n)
{
	choose(n);
	settle(n);
}
