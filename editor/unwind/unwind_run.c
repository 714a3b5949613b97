// SPDX-License-Identifier: Apache-2.0
/*
 * unwind_run - makes new FDEs and LSDAs: groups the copies, and gives each instruction of a
 * copy the row and the call site of its original. Called by unwind.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "editor/base/runtime.h"
#include "editor/unwind/unwind_private.h"
#include "libprof/base/grow.h"
#include "libprof/base/search.h"

/* Padding up to this size does not split a run; it has the row before it. */
#define MAX_GAP	   63
#define CALL	   5 /* bytes of one in a stub */
#define NR_SOURCES 4 /* a function's main and cold part, and those of a neighbour */

struct builder {
	const struct mp_cfg *cfg;
	struct mp_cfi_rules *rules;
	struct me_source sources[NR_SOURCES];
	unsigned int next_source;
	struct me_source *last; /* of the current run; not replaced */
	/* By version and block: index in @placed or MP_NONE. NULL: no copy has this version. */
	uint32_t *placed_of[ME_PLACED_VERSIONS];
	const struct me_placed *placed;
	struct me_runs *out;
	uint64_t lsda_vaddr;	    /* of out->lsdas */
	struct me_call_site *sites; /* of the current run */
	uint32_t nr_sites, cap_sites;
	struct mp_cfi_row row;	   /* at @row_off of the current run */
	struct mp_cfi_row lowered; /* of the call in the current stub */
	uint64_t row_off;
	struct mp_err *err;
};

/* Bytes of the block that the copy begins with. */
static uint64_t body_of(const struct me_placed *placed, const struct mp_block *block)
{
	return placed->left_out || placed->apart ? 0 : block->size - block->term_len;
}

/* The block of @func that starts at @vaddr, or MP_NONE. */
static uint32_t block_at(const struct mp_cfg *cfg, uint32_t func, uint64_t vaddr)
{
	const struct mp_func *f = &cfg->funcs[func];
	uint32_t end = f->first_block + f->nr_blocks;
	uint32_t lo = mp_search(i, f->first_block, end, cfg->blocks[i].vaddr < vaddr);

	return lo < end && cfg->blocks[lo].vaddr == vaddr ? lo : MP_NONE;
}

/* Reads the FDE @fde of @func. Landing pads must start blocks of the function. */
static int load_source(struct me_source *source, const struct mp_cfg *cfg, uint32_t func,
		       struct mp_cfi_rules *rules, const struct mp_fde *fde, const char **why)
{
	const struct me_lsda *lsda = &source->lsda;
	int rc = me_source_load(source, cfg->elf, rules, fde, why);

	for (uint32_t i = 0; !rc && source->fde.lsda && i < lsda->nr_sites; i++)
		if (lsda->sites[i].pad && block_at(cfg, func, lsda->sites[i].pad) == MP_NONE) {
			*why = "landing pad that starts no block";
			rc = -EPERM;
		}
	return rc;
}

int me_unwind_check(const struct mp_cfg *cfg, uint32_t func, const char **why)
{
	const struct mp_func *f = &cfg->funcs[func];
	const struct mp_fde *last = NULL;
	struct me_source source = {0};
	struct mp_cfi_rules rules;
	int rc = 0;

	if (f->flags & MP_FUNC_BARE) /* its copy has no unwind information either */
		return 0;
	if (mp_cfi_rules_init(&rules))
		return -ENOMEM;
	for (uint32_t i = 0; i < f->nr_blocks && !rc; i++) {
		const struct mp_block *block = &cfg->blocks[f->first_block + i];
		const struct mp_fde *fde;

		if (block->flags & MP_BLOCK_PADDING)
			continue;
		fde = me_fde_of_block(cfg->elf, block, last);
		if (!fde) {
			*why = "code without unwind information";
			rc = -EPERM;
		} else if (fde != last) {
			rc = load_source(&source, cfg, func, &rules, fde, why);
			last = fde;
		}
	}
	me_source_fini(&source);
	mp_cfi_rules_fini(&rules);
	return rc;
}

/* Gives the source of @block in *@out. Return: 0, -EBADMSG, -ENOMEM. */
static int source_of(struct builder *b, const struct mp_block *block, struct me_source **out)
{
	const struct mp_fde *fde =
		me_fde_of_block(b->cfg->elf, block, b->last ? b->last->listed : NULL);
	struct me_source *source;
	const char *why = "out of memory";
	int rc;

	if (!fde)
		return mp_err_set(b->err, EBADMSG, "0x%" PRIx64 ": code without unwind information",
				  block->vaddr);
	for (unsigned int i = 0; i < NR_SOURCES; i++)
		if (b->sources[i].listed == fde) {
			*out = &b->sources[i];
			return 0;
		}
	do
		source = &b->sources[b->next_source++ % NR_SOURCES];
	while (source == b->last);
	*out = source;
	rc = load_source(source, b->cfg, block->func, b->rules, fde, &why);
	if (!rc)
		return 0;
	source->listed = NULL;
	return mp_err_set(b->err, rc == -ENOMEM ? ENOMEM : EBADMSG, "0x%" PRIx64 ": %s",
			  block->vaddr, why);
}

static void put_row(struct builder *b, uint64_t off, const struct mp_eh_cie *cie,
		    const struct mp_cfi_row *row)
{
	struct me_bytes *out = &b->out->programs;

	if (!memcmp(&b->row, row, sizeof(*row)))
		return;
	me_cfi_put_advance(out, off - b->row_off);
	me_cfi_put_change(out, b->rules, cie, &b->row, row);
	b->row = *row;
	b->row_off = off;
}

/* Puts the composed rows of [@from, @to) of a called function, which lie at @new_off, if they are any. */
static int put_composed(struct builder *b, const struct me_source *source,
			const struct mp_cfi_row *call, const struct me_source *callee,
			uint8_t raised, uint64_t from, uint64_t to, uint64_t new_off)
{
	const struct mp_cfi_table *table = &callee->table;
	uint64_t off = from - callee->fde.start, end = off + (to - from);
	struct mp_cfi_row row;

	for (uint32_t line = mp_cfi_line_at(table, off); off < end; line++) {
		int rc = me_row_compose(b->rules, &source->cie, call, &table->lines[line].row,
					raised, &row);

		if (rc)
			return mp_err_set(b->err, rc == -ENOMEM ? ENOMEM : EBADMSG,
					  "0x%" PRIx64 ": no row in place of a call", from);
		put_row(b, new_off, &source->cie, &row);
		if (line + 1 == table->nr || table->lines[line + 1].off >= end)
			return 0;
		new_off += table->lines[line + 1].off - off;
		off = table->lines[line + 1].off;
	}
	return 0;
}

/*
 * The rows of the parts of a called function with a frame, whose code lies at @new_off. @call: the row of the call
 * that they replace. What stands behind a part has the row of the branch, or of the instruction, behind it in the
 * original, and the call's row where the function's frame has ended.
 */
static int put_frame(struct builder *b, const struct me_placed *placed,
		     const struct me_source *source, uint64_t new_off,
		     const struct mp_cfi_row *call)
{
	const struct me_placed_frame *frame = placed->frame;
	int rc = 0;

	for (uint8_t i = 0; i < frame->nr_parts && !rc; i++) {
		const struct me_placed_part *part = &frame->parts[i];
		uint64_t end = i + 1 < frame->nr_parts ? part[1].off : frame->size;
		uint64_t behind = part->vaddr + part->size;
		struct me_source *callee;

		rc = source_of(b, &b->cfg->blocks[mp_cfg_block_at(b->cfg, part->vaddr)], &callee);
		if (rc)
			return rc;
		rc = put_composed(b, source, call, callee, frame->raised, part->vaddr, behind,
				  new_off + part->off);
		if (!rc && part->frame_end && end > (uint64_t)part->off + part->size)
			rc = put_composed(b, source, call, callee, frame->raised, behind,
					  behind + 1, new_off + part->off + part->size);
		if (!rc && part->frame_end != ME_PLACED_NEVER &&
		    end > (uint64_t)part->off + part->size + part->frame_end)
			put_row(b, new_off + part->off + part->size + part->frame_end, &source->cie,
				call);
	}
	return rc;
}

/*
 * Up to the terminator the copy has its original's rows at the same offsets. A branch changes
 * no row: a re-encoded one, and a jump added behind it, have the terminator's. A jump added
 * behind a block without branch has the row that the block falls into, as has padding. A call at
 * the end that grew, or the code that replaces it, has the call's row, unless it has a frame; what lies behind the
 * call begins so many bytes later.
 */
static int put_rows(struct builder *b, const struct me_run *run, const struct me_placed *placed,
		    const struct me_source *source)
{
	const struct mp_block *block = &b->cfg->blocks[placed->block];
	const struct mp_cfi_table *table = &source->table;
	uint64_t off = block->vaddr - source->fde.start;
	uint64_t end = off + body_of(placed, block);
	uint64_t call = off + block->size - ME_PLACED_CALL;
	uint64_t new_off = placed->new_vaddr - run->start;
	uint32_t line = mp_cfi_line_at(table, off);
	int rc = 0;

	if (!placed->new_size && !placed->padding)
		return 0;
	if (placed->apart) {
		const struct mp_cfi_row *row = &table->lines[mp_cfi_line_at(table, call)].row;

		if (placed->frame)
			return put_frame(b, placed, source, new_off, row);
		put_row(b, new_off, &source->cie, row);
		return 0;
	}
	/* A copy may begin with the instructions of a called function. */
	if (!placed->frame || placed->frame->parts[0].off || call > off)
		put_row(b, new_off, &source->cie, &table->lines[line].row);
	if (placed->call_off) {
		put_row(b, new_off + placed->call_off, &source->cie, &b->lowered);
		put_row(b, new_off + placed->call_off + CALL, &source->cie,
			&table->lines[line].row);
	}
	if (placed->stub)
		return 0;
	if (placed->frame) {
		/* Without @raised, an instruction that lowers the stack pointer stands where the call did. */
		for (; line + 1 < table->nr &&
		       table->lines[line + 1].off < call + !placed->frame->raised;
		     line++)
			put_row(b, new_off + table->lines[line + 1].off - off, &source->cie,
				&table->lines[line + 1].row);
		rc = put_frame(b, placed, source, new_off + (call - off),
			       &table->lines[mp_cfi_line_at(table, call)].row);
		line = mp_cfi_line_at(table, call);
		if (!rc && placed->new_size + placed->padding >
				   block->size + (uint64_t)(int64_t)placed->grown)
			put_row(b, new_off + block->size + (uint64_t)placed->grown, &source->cie,
				&table->lines[mp_cfi_line_at(table, end)].row);
		return rc;
	}
	/* At @end itself lies a branch, an added jump or padding, if anything. */
	if (placed->new_size == body_of(placed, block) + (uint64_t)placed->grown &&
	    !placed->padding)
		end--;
	for (line++; line < table->nr && table->lines[line].off <= end; line++) {
		uint64_t k = table->lines[line].off - off;

		if (k == block->size)
			k += (uint64_t)placed->grown;
		/* The row of a call that nothing replaces */
		if (k >= (uint64_t)placed->new_size + placed->padding)
			break;
		put_row(b, new_off + k, &source->cie, &table->lines[line].row);
	}
	return 0;
}

/* The row of the call in the stub @placed. Return: 0, -EBADMSG, -ENOMEM. */
static int find_lowered(struct builder *b, const struct me_placed *placed,
			const struct me_source *source)
{
	uint64_t vaddr = b->cfg->blocks[placed->block].vaddr;
	uint32_t line = mp_cfi_line_at(&source->table, vaddr - source->fde.start);
	int rc;

	if (!placed->call_off)
		return 0;
	rc = mp_cfi_row_lower(b->rules, &source->table.lines[line].row, ME_RED_ZONE, &b->lowered);
	return rc ? mp_err_set(b->err, rc == -ENOMEM ? ENOMEM : EBADMSG,
			       "0x%" PRIx64 ": no row for a call before it", vaddr)
		  : 0;
}

static bool add_site(struct builder *b, const struct me_call_site *site)
{
	struct me_call_site *last = b->nr_sites ? &b->sites[b->nr_sites - 1] : NULL;

	if (last && last->start + last->size == site->start && last->pad == site->pad &&
	    last->action == site->action) {
		last->size += site->size;
		return true;
	}
	if (mp_grow(b->sites, b->cap_sites, b->nr_sites + 1))
		return false;
	b->sites[b->nr_sites++] = *site;
	return true;
}

static uint64_t copy_of_pad(const struct builder *b, const struct me_lsda *lsda, uint32_t func,
			    uint64_t pad, uint8_t version)
{
	uint32_t block = pad ? block_at(b->cfg, func, pad) : MP_NONE;
	const uint32_t *placed_of = b->placed_of[version];

	if (block == MP_NONE || placed_of[block] == MP_NONE)
		return pad;
	/* Without a base, a pad at the run's start would be none. */
	if (lsda->baseless &&
	    b->placed[placed_of[block]].new_vaddr == b->out->runs[b->out->nr - 1].start)
		return pad;
	return b->placed[placed_of[block]].new_vaddr;
}

/* Add the old call sites that cover the block; uncovered ranges stay uncovered. */
static bool put_sites(struct builder *b, const struct me_placed *placed, const struct me_lsda *lsda)
{
	const struct mp_block *block = &b->cfg->blocks[placed->block];
	uint64_t start = block->vaddr, end = start + block->size;
	uint64_t body = body_of(placed, block);

	if (placed->stub) /* throws nothing */
		return true;
	for (uint32_t i = me_lsda_site_at(lsda, start); i < lsda->nr_sites; i++) {
		const struct me_call_site *old = &lsda->sites[i];
		uint64_t from, to;
		struct me_call_site site;

		if (old->start >= end)
			break;
		if (placed->apart && (old->start > end - ME_PLACED_CALL ||
				      old->start + old->size <= end - ME_PLACED_CALL))
			continue;
		from = old->start > start ? old->start - start : 0;
		to = old->start + old->size < end ? old->start + old->size - start : block->size;
		if (from > body)
			from = body;
		/* A site that ends in or behind the terminator covers all code that replaces
		 * it. */
		if (to > body || to == block->size)
			to = placed->new_size;
		if (from >= to)
			continue;
		site = (struct me_call_site){
			.start = placed->new_vaddr + from,
			.size = to - from,
			.pad = copy_of_pad(b, lsda, block->func, old->pad, placed->version),
			.action = old->action,
		};
		if (!add_site(b, &site))
			return false;
	}
	return true;
}

static bool continues(const struct builder *b, uint32_t i, const struct me_run *run,
		      const struct me_source *source)
{
	const struct me_placed *before = &b->placed[i - 1], *placed = &b->placed[i];
	uint64_t end = before->new_vaddr + before->new_size;

	return placed->new_vaddr - end <= MAX_GAP &&
	       b->cfg->blocks[before->block].func == b->cfg->blocks[placed->block].func &&
	       source->cie.vaddr == run->cie_vaddr && source->fde.lsda == b->last->fde.lsda;
}

static int finish_run(struct builder *b)
{
	struct me_run *run = &b->out->runs[b->out->nr - 1];
	const struct me_source *source = b->last;

	if (!run->size) { /* a block that was only a dropped jump */
		b->out->nr--;
		return 0;
	}
	run->program_size = b->out->programs.size - run->program_off;
	if (source->fde.lsda) {
		me_bytes_align(&b->out->lsdas, 4);
		run->lsda = b->lsda_vaddr + b->out->lsdas.size;
		if (!me_lsda_put(&b->out->lsdas, b->lsda_vaddr, &source->lsda, b->sites,
				 b->nr_sites, run->start))
			return mp_err_set(b->err, EBADMSG,
					  "0x%" PRIx64 ": exception table out of reach",
					  source->fde.start);
	}
	if (b->out->programs.failed || b->out->lsdas.failed)
		return mp_err_set(b->err, ENOMEM, "out of memory");
	return 0;
}

static int start_run(struct builder *b, const struct me_placed *placed,
		     const struct me_source *source)
{
	struct me_runs *out = b->out;

	if (mp_grow(out->runs, out->cap, out->nr + 1))
		return mp_err_set(b->err, ENOMEM, "out of memory");
	out->runs[out->nr++] = (struct me_run){
		.start = placed->new_vaddr,
		.cie_vaddr = source->cie.vaddr,
		.program_off = out->programs.size,
	};
	b->nr_sites = 0;
	b->row = source->table.initial;
	b->row_off = 0;
	return 0;
}

/* Bytes by which the code for the call at the block's end is shorter in the copy. */
static uint64_t placed_shrunk(const struct me_placed *placed)
{
	return placed->grown < 0 ? (uint64_t)-placed->grown : 0;
}

static int check_placed(const struct builder *b, uint32_t i)
{
	const struct me_placed *placed = &b->placed[i];
	const struct mp_block *block;

	if (placed->block >= b->cfg->nr_blocks)
		return mp_err_set(b->err, EBADMSG, "no block %u", placed->block);
	block = &b->cfg->blocks[placed->block];
	if (!placed->stub && (block->term_len > block->size ||
			      placed->new_size + placed_shrunk(placed) < body_of(placed, block)))
		return mp_err_set(b->err, EBADMSG, "0x%" PRIx64 ": copy is too short",
				  block->vaddr);
	if (i && placed->new_vaddr < placed[-1].new_vaddr + placed[-1].new_size)
		return mp_err_set(b->err, EBADMSG, "0x%" PRIx64 ": copies overlap",
				  placed->new_vaddr);
	return 0;
}

static int build(struct builder *b, uint32_t nr_placed)
{
	struct me_run *run = NULL;
	int rc;

	for (uint32_t i = 0; i < nr_placed; i++) {
		const struct me_placed *placed = &b->placed[i];
		const struct mp_block *block = &b->cfg->blocks[placed->block];
		struct me_source *source;

		b->out->failed_at = block->vaddr;
		if (b->cfg->funcs[block->func].flags & MP_FUNC_BARE) {
			rc = run ? finish_run(b) : 0;
			if (rc)
				return rc;
			run = NULL;
			continue;
		}
		rc = source_of(b, block, &source);
		if (rc)
			return rc;
		if (!run || !continues(b, i, run, source)) {
			rc = run ? finish_run(b) : 0;
			if (!rc)
				rc = start_run(b, placed, source);
			if (rc)
				return rc;
			run = &b->out->runs[b->out->nr - 1];
		}
		rc = find_lowered(b, placed, source);
		if (rc)
			return rc;
		b->last = source; /* so that reading a called function does not replace it */
		rc = put_rows(b, run, placed, source);
		if (rc)
			return rc;
		if (source->fde.lsda && !put_sites(b, placed, &source->lsda))
			return mp_err_set(b->err, ENOMEM, "out of memory");
		run->size = placed->new_vaddr + placed->new_size + placed->padding - run->start;
	}
	rc = run ? finish_run(b) : 0;
	if (!rc)
		b->out->failed_at = 0;
	return rc;
}

static uint32_t *new_index(uint32_t nr)
{
	uint32_t *index = malloc(((size_t)nr + 1) * sizeof(*index));

	for (uint32_t i = 0; index && i < nr; i++)
		index[i] = MP_NONE;
	return index;
}

static bool allocate(struct builder *b, uint32_t nr_placed)
{
	bool has[ME_PLACED_VERSIONS] = {true};

	for (uint32_t i = 0; i < nr_placed; i++)
		has[b->placed[i].version] = true;
	for (int v = 0; v < ME_PLACED_VERSIONS; v++) {
		b->placed_of[v] = has[v] ? new_index(b->cfg->nr_blocks) : NULL;
		if (has[v] && !b->placed_of[v])
			return false;
	}
	return true;
}

int me_runs_build(const struct mp_cfg *cfg, const struct me_placed *placed, uint32_t nr_placed,
		  uint64_t lsda_vaddr, struct mp_cfi_rules *rules, struct me_runs *runs,
		  struct mp_err *err)
{
	struct builder b = {
		.cfg = cfg,
		.rules = rules,
		.placed = placed,
		.out = runs,
		.lsda_vaddr = lsda_vaddr,
		.err = err,
	};
	int rc = 0;

	if (!allocate(&b, nr_placed))
		rc = mp_err_set(err, ENOMEM, "out of memory");
	for (uint32_t i = 0; i < nr_placed && !rc; i++) {
		rc = check_placed(&b, i);
		if (!rc && !placed[i].passed_by && !placed[i].apart)
			b.placed_of[placed[i].version][placed[i].block] = i;
	}
	if (!rc)
		rc = build(&b, nr_placed);
	for (unsigned int i = 0; i < NR_SOURCES; i++)
		me_source_fini(&b.sources[i]);
	for (int v = 0; v < ME_PLACED_VERSIONS; v++)
		free(b.placed_of[v]);
	free(b.sites);
	return rc;
}

void me_runs_fini(struct me_runs *runs)
{
	me_bytes_fini(&runs->programs);
	me_bytes_fini(&runs->lsdas);
	free(runs->runs);
	*runs = (struct me_runs){0};
}
