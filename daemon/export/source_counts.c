// SPDX-License-Identifier: Apache-2.0
/*
 * source_counts - see source_counts.h. Decides which instructions of a line count.
 *
 * As LLVM's own tools do, takes the largest count of a line's instructions in one function of the file, and
 * multiplies by the duplication factor: a loop that was unrolled four times runs each copy of its line a quarter
 * as often. Several functions of the file that come from one function of the source are added up.
 */
/* A failed allocation must not end the program. Every function that adds to a table has a @c. */
#define HASH_NONFATAL_OOM	  1
#define uthash_nonfatal_oom(item) (c->failed = true)
#include "daemon/export/source_counts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/code/debuginfo.h"
#include "libprof/callgraph/call_sites.h"

/* No compiler nests deeper. */
#define INLINES_MAX 200

struct md_source_counts {
	enum md_compiler compiler;
	struct md_source_name *names;
	struct md_body *functions;
	uint64_t nr_functions; /* of the files, that were added */
	bool failed;	       /* no memory */
	/* of the module that is added */
	struct md_debuginfo *debug;
	const struct mp_cfg *cfg;
	const struct md_source_name **func_names; /* of those that ran, by number; NULL: not known */
	const char *bad_name;			  /* a name that no compiler writes; NULL: none */
};

/* ---- names --------------------------------------------------------------------------------- */

/* Cuts what a compiler appended to the name of a part or of a version of a function. */
static size_t original_length(const struct md_source_counts *c, const char *name)
{
	static const char *const suffixes[] = {".llvm.", ".part.", ".cold", ".constprop.",
					       ".isra."};
	size_t len = strlen(name);

	if (c->compiler == MD_COMPILER_GCC)
		return strcspn(name, ".");
	for (size_t i = 0; i < sizeof(suffixes) / sizeof(suffixes[0]); i++) {
		const char *at = strstr(name, suffixes[i]);

		if (at && at != name && (size_t)(at - name) < len)
			len = (size_t)(at - name);
	}
	return len;
}

/* LLVM's text takes a digit for a count, and cuts names at blanks and colons. */
static bool usable(struct md_source_counts *c, const char *name, size_t len)
{
	bool text = c->compiler == MD_COMPILER_LLVM;
	bool usable = len && !(text && strchr("0123456789[!#-", name[0]));

	for (size_t i = 0; i < len; i++) {
		unsigned char byte = (unsigned char)name[i];

		if (byte < ' ' || byte == 0x7f) {
			c->bad_name = name;
			return false;
		}
		usable = usable && !(text && (byte == ' ' || byte == ':'));
	}
	return usable;
}

/* Return: @name without suffixes, the same pointer for the same name; NULL: not usable, or no memory. */
static const struct md_source_name *intern(struct md_source_counts *c, const char *name)
{
	size_t len = name ? original_length(c, name) : 0;
	struct md_source_name *found;

	if (!name || !usable(c, name, len))
		return NULL;
	HASH_FIND(hh, c->names, name, len, found);
	if (found)
		return found;
	found = calloc(1, sizeof(*found) + len + 1);
	if (!found) {
		c->failed = true;
		return NULL;
	}
	memcpy(found->text, name, len);
	found->number = HASH_COUNT(c->names) + 1;
	HASH_ADD_KEYPTR(hh, c->names, found->text, len, found);
	if (found->hh.tbl)
		return found;
	free(found);
	return NULL;
}

/* ---- the tree ------------------------------------------------------------------------------ */

static uint64_t add(uint64_t a, uint64_t b)
{
	return a + b < a ? UINT64_MAX : a + b;
}

static struct md_body *body_at(struct md_source_counts *c, struct md_body **bodies,
			       const struct md_source_name *name, struct md_spot_key at)
{
	struct md_body want = {0}, *body;

	want.key.name = name;
	want.key.at = at;
	HASH_FIND(hh, *bodies, &want.key, sizeof(want.key), body);
	if (body)
		return body;
	body = malloc(sizeof(*body));
	if (!body) {
		c->failed = true;
		return NULL;
	}
	*body = want;
	HASH_ADD(hh, *bodies, key, sizeof(body->key), body);
	if (body->hh.tbl)
		return body;
	free(body);
	return NULL;
}

static struct md_spot *spot_at(struct md_source_counts *c, struct md_body *body,
			       struct md_spot_key at)
{
	struct md_spot *spot;

	HASH_FIND(hh, body->spots, &at, sizeof(at), spot);
	if (spot)
		return spot;
	spot = calloc(1, sizeof(*spot));
	if (!spot) {
		c->failed = true;
		return NULL;
	}
	spot->at = at;
	HASH_ADD(hh, body->spots, at, sizeof(spot->at), spot);
	if (spot->hh.tbl)
		return spot;
	free(spot);
	return NULL;
}

static void add_target(struct md_source_counts *c, struct md_spot *spot,
		       const struct md_source_name *name, uint64_t count)
{
	struct md_target *target;

	HASH_FIND(hh, spot->targets, &name, sizeof(name), target);
	if (!target) {
		target = calloc(1, sizeof(*target));
		if (!target) {
			c->failed = true;
			return;
		}
		target->name = name;
		HASH_ADD(hh, spot->targets, name, sizeof(target->name), target);
		if (!target->hh.tbl) {
			free(target);
			return;
		}
	}
	target->count = add(target->count, count);
}

static void free_body(struct md_body *body)
{
	struct md_spot *spot, *next_spot;
	struct md_target *target, *next_target;
	struct md_body *call, *next_call;

	HASH_ITER(hh, body->spots, spot, next_spot) {
		HASH_ITER(hh, spot->targets, target, next_target) {
			HASH_DEL(spot->targets, target);
			free(target);
		}
		HASH_DEL(body->spots, spot);
		free(spot);
	}
	HASH_ITER(hh, body->inlined, call, next_call) {
		HASH_DEL(body->inlined, call);
		free_body(call);
	}
	free(body);
}

int md_source_counts_begin(struct md_export *e, enum md_compiler compiler, struct mp_err *err)
{
	struct md_source_counts *c = calloc(1, sizeof(*c));

	if (!c)
		return mp_err_set(err, ENOMEM, "out of memory");
	c->compiler = compiler;
	e->state = c;
	return 0;
}

void md_source_counts_drop(struct md_export *e)
{
	struct md_source_counts *c = e->state;
	struct md_body *body, *next_body;
	struct md_source_name *name, *next_name;

	if (!c)
		return;
	HASH_ITER(hh, c->functions, body, next_body) {
		HASH_DEL(c->functions, body);
		free_body(body);
	}
	HASH_ITER(hh, c->names, name, next_name) {
		HASH_DEL(c->names, name);
		free(name);
	}
	free(c);
	e->state = NULL;
}

/* ---- from addresses to the tree ------------------------------------------------------------ */

/* A component takes 1 bit if it is empty, 7 bits below 32, else 14: 5 and 7 of the value, and 2 that say so. */
static uint32_t component(uint32_t *discriminator)
{
	uint32_t d = *discriminator, value = d >> 1 & 0x1f;

	if (d & 1) {
		*discriminator = d >> 1;
		return 0;
	}
	if (!(d & 0x40)) {
		*discriminator = d >> 7;
		return value;
	}
	*discriminator = d >> 14;
	return value | (d >> 2 & 0xfe0);
}

struct md_discriminator md_discriminator_decode(uint32_t discriminator)
{
	struct md_discriminator out;

	out.base = component(&discriminator);
	out.factor = component(&discriminator);
	out.copy = component(&discriminator);
	out.factor = out.factor ? out.factor : 1;
	return out;
}

/* GCC numbers the blocks of a line: its discriminators have no parts, and no number is one of LLVM's. */
static uint32_t discriminator_of(const struct md_source_counts *c,
				 const struct md_function *function, const struct md_line *line)
{
	bool other = function->producer && !strncmp(function->producer, "GNU ", 4);

	return c->compiler == MD_COMPILER_LLVM && !other ? line->discriminator : 0;
}

static struct md_spot_key key_of(uint32_t discriminator, const struct md_line *line, int first_line)
{
	return (struct md_spot_key){(uint32_t)(line->line - first_line) & 0xffff,
				    md_discriminator_decode(discriminator).base};
}

/* A name of C++ or Rust. */
static bool is_mangled(const char *name)
{
	return name[0] == '_' && (name[1] == 'Z' || name[1] == 'R');
}

/* Return: the name of the function that @vaddr belongs to, or NULL. */
static const struct md_source_name *function_name(struct md_source_counts *c, uint64_t vaddr,
						  struct md_function *function)
{
	const char *name;
	uint32_t f;

	if (!md_debuginfo_function(c->debug, vaddr, function))
		return NULL;
	if (function->linkage)
		return intern(c, function->linkage);
	/* Compilers leave the mangled names of local functions to the symbol table. Other names there may be aliases. */
	name = function->name;
	f = mp_cfg_func_at(c->cfg, vaddr);
	if (f != MP_NONE && (!name || is_mangled(c->cfg->funcs[f].name)))
		name = c->cfg->funcs[f].name;
	return intern(c, name);
}

/*
 * Finds the place of the instruction at @vaddr; *@factor: how many copies of it the compiler made. Return: NULL:
 * the debug information does not say, or no memory.
 */
static struct md_spot *locate(struct md_source_counts *c, uint64_t vaddr, uint32_t *factor)
{
	struct md_inline inlines[INLINES_MAX];
	const struct md_source_name *names[INLINES_MAX], *name;
	struct md_function function;
	struct md_body *body;
	struct md_line line;
	uint32_t discriminator;
	int first_line;
	size_t nr;

	if (!md_debuginfo_line(c->debug, vaddr, &line))
		return NULL;
	name = function_name(c, vaddr, &function);
	if (!name || !function.first_line)
		return NULL;
	nr = md_debuginfo_inlines(c->debug, vaddr, inlines, INLINES_MAX);
	for (size_t i = 0; i < nr; i++) {
		names[i] = intern(c, inlines[i].function);
		if (!names[i] || !inlines[i].first_line || !inlines[i].call.line)
			return NULL;
	}
	body = body_at(c, &c->functions, name, (struct md_spot_key){0, 0});
	first_line = function.first_line;
	for (size_t i = 0; i < nr && body; i++) {
		body = body_at(c, &body->inlined, names[i],
			       key_of(discriminator_of(c, &function, &inlines[i].call),
				      &inlines[i].call, first_line));
		first_line = inlines[i].first_line;
	}
	discriminator = discriminator_of(c, &function, &line);
	*factor = md_discriminator_decode(discriminator).factor;
	return body ? spot_at(c, body, key_of(discriminator, &line, first_line)) : NULL;
}

static bool add_insn(struct md_source_counts *c, uint64_t vaddr, uint64_t count)
{
	uint32_t factor;
	struct md_spot *spot = locate(c, vaddr, &factor);

	if (!spot)
		return false;
	count = count > UINT64_MAX / factor ? UINT64_MAX : count * factor;
	if (spot->function != c->nr_functions) {
		spot->count = add(spot->count, spot->most);
		spot->most = 0;
		spot->function = c->nr_functions;
	}
	spot->most = count > spot->most ? count : spot->most;
	return true;
}

/* Return: true if a line of the block is known. */
static bool add_block(struct md_source_counts *c, const struct mp_block *block, double count)
{
	const uint8_t *bytes = mp_elf_bytes(c->cfg->elf, block->vaddr, block->size);
	bool any = false;

	for (uint32_t at = 0; bytes && at < block->size && !c->failed;) {
		struct mp_insn insn;

		if (mp_insn_decode(bytes + at, block->size - at, block->vaddr + at, &insn))
			break;
		any |= add_insn(c, block->vaddr + at, md_export_scaled(count));
		at += insn.len;
	}
	return any;
}

/* GCC's part of a function is no function of the source that was called. */
static bool is_part(const struct mp_func *func)
{
	return strstr(func->name, ".part.") || strstr(func->name, ".cold");
}

static bool func_ran(const struct mp_cfg *cfg, const struct mp_counts *counts, uint32_t f)
{
	const struct mp_func *func = &cfg->funcs[f];

	for (uint32_t b = func->first_block; b < func->first_block + func->nr_blocks; b++)
		if (counts->block[b] > 0)
			return true;
	return false;
}

static void add_function(struct md_source_counts *c, struct md_export *e,
			 const struct mp_counts *counts, uint32_t f)
{
	const struct mp_func *func = &c->cfg->funcs[f];
	struct md_function function;
	struct md_body *body;
	bool known = false;

	c->nr_functions++;
	/* A line whose blocks did not run has count 0; of other lines the compiler knows nothing. */
	for (uint32_t b = func->first_block; b < func->first_block + func->nr_blocks; b++)
		if (!(c->cfg->blocks[b].flags & MP_BLOCK_PADDING))
			known |= add_block(c, &c->cfg->blocks[b], counts->block[b]);
	e->nr_lineless += !known;
	if (known)
		c->func_names[f] = function_name(c, func->vaddr, &function);
	if (!c->func_names[f] || is_part(func))
		return;
	body = body_at(c, &c->functions, c->func_names[f], (struct md_spot_key){0, 0});
	if (body)
		body->entered =
			add(body->entered, md_export_scaled(mp_call_entries(c->cfg, counts, f)));
}

static int add_calls(struct md_source_counts *c, const struct md_export_module *m)
{
	struct md_export_call *calls;
	struct md_function function;
	size_t nr;
	int r = md_export_calls(m, &calls, &nr);

	for (size_t i = 0; i < nr && !c->failed; i++) {
		const struct md_source_name *name;
		struct md_spot *spot;
		uint32_t factor;

		/* GCC takes every target for one of an indirect call. */
		if (c->compiler == MD_COMPILER_GCC &&
		    !md_export_insn_is(c->cfg->elf, calls[i].at,
				       1u << MP_INSN_ICALL | 1u << MP_INSN_IJUMP))
			continue;
		name = c->func_names[calls[i].callee];
		if (!name) {
			uint64_t vaddr = c->cfg->funcs[calls[i].callee].vaddr;

			name = function_name(c, vaddr, &function);
		}
		spot = name ? locate(c, calls[i].at, &factor) : NULL;
		if (spot)
			add_target(c, spot, name, md_export_scaled(calls[i].count));
	}
	if (!r)
		free(calls);
	return r;
}

/* LLVM's other discriminators (-enable-fs-discriminator) mark the file with this symbol. */
static bool has_other_discriminators(const struct mp_elf *elf)
{
	for (uint32_t i = 0; i < elf->nr_symbols; i++)
		if (!strcmp(elf->symbols[i].name, "__llvm_fs_discriminator__"))
			return true;
	return false;
}

static int failure(const struct md_source_counts *c, const char *path, int r, struct mp_err *err)
{
	struct mp_err why;

	if (r == -ENOMEM || c->failed)
		return mp_err_set(err, ENOMEM, "out of memory");
	if (c->bad_name)
		return mp_err_set(err, EBADMSG,
				  "%s: the debug information is damaged: the name '%s'", path,
				  c->bad_name);
	r = md_debuginfo_fault(c->debug, &why);
	return r ? mp_err_set(err, -r, "%s: %s", path, why.msg) : 0;
}

int md_source_counts_add(struct md_export *e, const struct md_export_module *m, struct mp_err *err)
{
	struct md_source_counts *c = e->state;
	const char *path;
	int r;

	if (!m->code)
		return 0;
	path = m->code->elf->path;
	if (c->compiler == MD_COMPILER_LLVM && has_other_discriminators(m->code->elf))
		return mp_err_set(err, EOPNOTSUPP, "%s: was compiled with -enable-fs-discriminator",
				  path);
	c->cfg = m->code->cfg;
	c->bad_name = NULL;
	r = md_debuginfo_open(path, &c->debug, err);
	if (r && r != -ENOENT)
		return r;
	if (r) {
		for (uint32_t f = 0; f < c->cfg->nr_funcs; f++)
			e->nr_lineless += func_ran(c->cfg, m->inferred, f);
		return 0;
	}
	c->func_names = calloc((size_t)c->cfg->nr_funcs + 1, sizeof(*c->func_names));
	c->failed |= !c->func_names;
	for (uint32_t f = 0; f < c->cfg->nr_funcs && !c->failed; f++)
		if (func_ran(c->cfg, m->inferred, f))
			add_function(c, e, m->inferred, f);
	r = failure(c, path, c->failed ? 0 : add_calls(c, m), err);
	free(c->func_names);
	c->func_names = NULL;
	md_debuginfo_close(c->debug);
	c->debug = NULL;
	return r;
}

/* ---- order --------------------------------------------------------------------------------- */

static int compare_keys(const struct md_spot_key *a, const struct md_spot_key *b)
{
	if (a->offset != b->offset)
		return a->offset < b->offset ? -1 : 1;
	return (a->discriminator > b->discriminator) - (a->discriminator < b->discriminator);
}

static int compare_spots(const struct md_spot *a, const struct md_spot *b)
{
	return compare_keys(&a->at, &b->at);
}

static int compare_targets(const struct md_target *a, const struct md_target *b)
{
	if (a->count != b->count)
		return a->count > b->count ? -1 : 1;
	return strcmp(a->name->text, b->name->text);
}

static int compare_inlined(const struct md_body *a, const struct md_body *b)
{
	int r = compare_keys(&a->key.at, &b->key.at);

	return r ? r : strcmp(a->key.name->text, b->key.name->text);
}

static int compare_functions(const struct md_body *a, const struct md_body *b)
{
	if (a->total != b->total)
		return a->total > b->total ? -1 : 1;
	return strcmp(a->key.name->text, b->key.name->text);
}

static void finish_body(struct md_body *body)
{
	for (struct md_spot *s = body->spots; s; s = s->hh.next) {
		s->count = add(s->count, s->most);
		s->most = 0;
		body->total = add(body->total, s->count);
		HASH_SORT(s->targets, compare_targets);
	}
	for (struct md_body *call = body->inlined; call; call = call->hh.next) {
		finish_body(call);
		body->total = add(body->total, call->total);
	}
	HASH_SORT(body->spots, compare_spots);
	HASH_SORT(body->inlined, compare_inlined);
}

struct md_body *md_source_counts_finish(struct md_source_counts *c)
{
	for (struct md_body *body = c->functions; body; body = body->hh.next)
		finish_body(body);
	HASH_SORT(c->functions, compare_functions);
	return c->functions;
}

const struct md_source_name *md_source_counts_names(const struct md_source_counts *c)
{
	return c->names;
}
