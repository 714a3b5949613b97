// SPDX-License-Identifier: Apache-2.0
/*
 * morph_marker - a GCC plugin that marks loops: it adds `X += 1` on a variable of its own to the
 * header of each loop (Lau, Arnold, Hind, Calder: Performance Auditing, CGO 2008, section 4).
 *
 * The pass runs right behind "cfg", the pass that builds blocks and edges. All functions go
 * through that pass at all levels of optimisation, -O0 included, and before anything optimises
 * them. So a loop has the same number in every compilation of one source, and every optimisation
 * (inlining, unrolling, vectorising) sees the marker as code of the program.
 *
 * In the paper, markers are removed before registers are allocated. Here they are removed from
 * the finished program, so a marker must not change what registers hold. The increment is one
 * instruction of inline assembly, `addq $1, X(%rip)`: it needs no register and names no memory
 * that the optimiser knows of, and copies of the code around it have copies of it. No instruction
 * reads a total, so each increment can be left out.
 *
 * Simple loops have one exit, no call and no inner loop, and store to memory. GCC may vectorise
 * such a loop or replace it by memset, so the loop counts its rounds in a local variable, and
 * `addq N, X(%rip)` stands on its exit: the optimiser computes N from the loop's bounds.
 */
#include "gcc-plugin.h"
#include "plugin-version.h"
#include "tree.h"
#include "gimple.h"
#include "gimple-iterator.h"
#include "tree-pass.h"
#include "context.h"
#include "function.h"
#include "basic-block.h"
#include "cfgloop.h"
#include "cgraph.h"
#include "stringpool.h"
#include "attribs.h"
#include "diagnostic-core.h"
#include "opts.h"
#include "options.h"
#include "toplev.h"

int plugin_is_GPL_compatible; /* GCC loads no other plugin; Apache-2.0 is compatible */

static const char MARKER_PREFIX[] = "__morph_marker_";
static const char TABLE_SECTION[] = ".morph.markers";

static bool marks_blocks; /* one marker per block, not per loop */

/* The lines of this unit for TABLE_SECTION. */
static char *table_text;
static size_t table_size, table_room;

static void append(const char *line)
{
	size_t len = strlen(line);

	if (table_size + len + 1 > table_room) {
		table_room = 2 * (table_size + len + 1) + 4096;
		table_text = (char *)xrealloc(table_text, table_room);
	}
	memcpy(table_text + table_size, line, len + 1);
	table_size += len;
}

/* FNV-1a. */
static unsigned long long hash_add(unsigned long long hash, const char *text)
{
	for (; *text; text++)
		hash = (hash ^ (unsigned char)*text) * 0x100000001b3ULL;
	return (hash ^ 0xff) * 0x100000001b3ULL;
}

static const char *function_name(tree function)
{
	return IDENTIFIER_POINTER(DECL_ASSEMBLER_NAME(function));
}

static const char *file_name(tree function)
{
	const char *file = DECL_SOURCE_FILE(function);

	return file ? file : "?";
}

/*
 * A static variable of 8 bytes, initially 0. It is artificial, so there is no debug information
 * of it and no warning.
 */
static tree make_variable(const char *name)
{
	tree type = build_qualified_type(long_long_unsigned_type_node, TYPE_QUAL_VOLATILE);
	tree var = build_decl(UNKNOWN_LOCATION, VAR_DECL, get_identifier(name), type);

	TREE_THIS_VOLATILE(var) = 1;
	TREE_SIDE_EFFECTS(var) = 1;
	TREE_STATIC(var) = 1;
	TREE_USED(var) = 1;
	TREE_ADDRESSABLE(var) = 1;
	DECL_ARTIFICIAL(var) = 1;
	DECL_IGNORED_P(var) = 1;
	DECL_INITIAL(var) = build_zero_cst(long_long_unsigned_type_node);
	SET_DECL_ASSEMBLER_NAME(var, get_identifier(name));
	varpool_node::finalize_decl(var);
	return var;
}

/* The first line that a statement of @bb has; a header may have none, then its successors'. */
static int line_of(basic_block bb, int otherwise)
{
	for (int depth = 0; depth < 4 && bb; depth++) {
		for (gimple_stmt_iterator i = gsi_start_bb(bb); !gsi_end_p(i); gsi_next(&i)) {
			location_t at = gimple_location(gsi_stmt(i));

			if (!is_gimple_debug(gsi_stmt(i)) && at != UNKNOWN_LOCATION)
				return LOCATION_LINE(at);
		}
		bb = single_succ_p(bb) ? single_succ(bb) : NULL;
	}
	return otherwise;
}

static tree operand(const char *constraint, tree value)
{
	tree text = build_string(strlen(constraint) + 1, constraint);

	return build_tree_list(build_tree_list(NULL_TREE, text), value);
}

/* `addq $1, X(%rip)`, or `addq N, X(%rip)` with @rounds. The flags change with every assembly. */
static gimple *make_increment(tree var, tree rounds)
{
	vec<tree, va_gc> *inputs = NULL;
	gasm *stmt;

	vec_safe_push(inputs, operand("i", build_fold_addr_expr(var)));
	if (rounds)
		vec_safe_push(inputs, operand("er", rounds));
	stmt = gimple_build_asm_vec(rounds ? "addq %1, %c0(%%rip)" : "addq $1, %c0(%%rip)", inputs,
				    NULL, NULL, NULL);
	gimple_asm_set_volatile(stmt, true);
	gimple_asm_set_inline(stmt, true);
	return stmt;
}

/* Add the increment behind the labels of @bb. There is no SSA form yet. */
static void insert_marker(basic_block bb, tree var)
{
	gimple_stmt_iterator at = gsi_after_labels(bb);

	gsi_insert_before(&at, make_increment(var, NULL_TREE), GSI_SAME_STMT);
}

/* The edges into the loop at @header, and the one out of it, count rounds and add them up. */
static void insert_counter(basic_block header, const vec<edge> &entries, edge exit, tree var)
{
	tree type = long_long_unsigned_type_node;
	tree rounds = create_tmp_reg(type, NULL);
	gimple_stmt_iterator at = gsi_after_labels(header);

	for (unsigned int i = 0; i < entries.length(); i++)
		gsi_insert_on_edge(entries[i], gimple_build_assign(rounds, build_zero_cst(type)));
	gsi_insert_before(&at,
			  gimple_build_assign(rounds, PLUS_EXPR, rounds, build_one_cst(type)),
			  GSI_SAME_STMT);
	gsi_insert_on_edge(exit, make_increment(var, rounds));
}

/* Has @bb no statement but labels, and one way out? -O0 keeps such blocks, -O2 drops most. */
static bool is_empty(basic_block bb)
{
	if (bb->index < NUM_FIXED_BLOCKS || !single_succ_p(bb) ||
	    single_succ_edge(bb)->flags & (EDGE_ABNORMAL | EDGE_EH))
		return false;
	for (gimple_stmt_iterator i = gsi_start_bb(bb); !gsi_end_p(i); gsi_next(&i)) {
		enum gimple_code code = gimple_code(gsi_stmt(i));

		if (code != GIMPLE_LABEL && code != GIMPLE_NOP && code != GIMPLE_PREDICT &&
		    code != GIMPLE_DEBUG)
			return false;
	}
	return true;
}

/* The first block from @bb on that is not empty. Two loops may have the same one: they count as
 * one loop, as they do where the empty blocks are dropped. */
static basic_block behind_empty(basic_block bb)
{
	basic_block start = bb;

	for (int i = 0; i < n_basic_blocks_for_fn(cfun); i++) {
		if (!is_empty(bb))
			return bb;
		bb = single_succ(bb);
	}
	return start; /* an empty loop without end */
}

/* Would a compiler that merges blocks append @bb to the block before it? */
static bool continues(basic_block bb)
{
	basic_block before = bb;

	do {
		if (!single_pred_p(before))
			return false;
		before = single_pred(before);
	} while (is_empty(before));
	return before->index >= NUM_FIXED_BLOCKS && single_succ_p(before);
}

static bool may_mark(basic_block bb)
{
	if (bb->index < NUM_FIXED_BLOCKS || bb_has_abnormal_pred(bb))
		return false;
	/* A landing pad begins with statements that must stay first. */
	return !bb_has_eh_pred(bb);
}

/* A place for a marker. */
struct place {
	basic_block bb;
	/* Of a simple loop; else NULL. */
	basic_block header;
	vec<edge> entries;
	edge exit;
};

static void mark(const struct place *place, unsigned int number, unsigned long long hash)
{
	const char *function = function_name(current_function_decl);
	const char *file = file_name(current_function_decl);
	int line = line_of(place->bb, DECL_SOURCE_LINE(current_function_decl));
	char name[64], *text;
	tree var;

	snprintf(name, sizeof(name), "%s%016llx_%u", MARKER_PREFIX, hash, number);
	var = make_variable(name);
	if (place->header)
		insert_counter(place->header, place->entries, place->exit, var);
	else
		insert_marker(place->bb, var);
	text = xasprintf("%016llx_%u\t%s\t%d\t%s\t%s\n", hash, number, file, line, function,
			 marks_blocks ? "block" : "loop");
	append(text);
	free(text);
}

static bool has_call(basic_block bb)
{
	for (gimple_stmt_iterator i = gsi_start_bb(bb); !gsi_end_p(i); gsi_next(&i))
		if (is_gimple_call(gsi_stmt(i)) || gimple_code(gsi_stmt(i)) == GIMPLE_ASM)
			return true;
	return false;
}

static bool has_store(basic_block bb)
{
	for (gimple_stmt_iterator i = gsi_start_bb(bb); !gsi_end_p(i); gsi_next(&i))
		if (gimple_store_p(gsi_stmt(i)))
			return true;
	return false;
}

static bool is_odd(edge e)
{
	return e->flags & (EDGE_ABNORMAL | EDGE_EH);
}

/* The edges that leave @loop from @bb: their number, and one of them. */
static unsigned int count_exits(class loop *loop, basic_block bb, edge *exit)
{
	unsigned int nr = 0;
	edge_iterator i;
	edge e;

	FOR_EACH_EDGE(e, i, bb->succs)
		if (!flow_bb_inside_loop_p(loop, e->dest)) {
			nr++;
			*exit = e;
		}
	return nr;
}

/* A loop's body, and whether an expression reads a variable that the body changes. */
struct changes {
	class loop *loop;
	basic_block *body;
	bool found;
};

static bool is_changed(const struct changes *c, tree var)
{
	for (unsigned int i = 0; i < c->loop->num_nodes; i++)
		for (gimple_stmt_iterator k = gsi_start_bb(c->body[i]); !gsi_end_p(k); gsi_next(&k))
			if (gimple_has_lhs(gsi_stmt(k)) && gimple_get_lhs(gsi_stmt(k)) == var)
				return true;
	return false;
}

static tree find_changed(tree *at, int *, void *arg)
{
	struct changes *c = (struct changes *)arg;

	if (DECL_P(*at) && is_changed(c, *at))
		c->found = true;
	return NULL_TREE;
}

/* Does a round load @value from an address that changes with each round? */
static bool is_loaded_anew(struct changes *c, tree value, int depth)
{
	for (unsigned int i = 0; depth && i < c->loop->num_nodes; i++)
		for (gimple_stmt_iterator k = gsi_start_bb(c->body[i]); !gsi_end_p(k);
		     gsi_next(&k)) {
			gimple *stmt = gsi_stmt(k);

			if (!is_gimple_assign(stmt) || gimple_assign_lhs(stmt) != value)
				continue;
			if (gimple_assign_load_p(stmt))
				walk_tree(gimple_assign_rhs1_ptr(stmt), find_changed, c, NULL);
			else if (gimple_assign_cast_p(stmt) || gimple_assign_single_p(stmt))
				c->found = is_loaded_anew(c, gimple_assign_rhs1(stmt), depth - 1);
			if (c->found)
				return true;
		}
	return false;
}

/* Could the number of rounds be known when the loop begins? Not if each round loads what ends it. */
static bool may_be_counted(class loop *loop, basic_block *body, edge exit)
{
	struct changes c = {loop, body, false};
	gimple *last = gsi_stmt(gsi_last_bb(exit->src));

	return last && gimple_code(last) == GIMPLE_COND &&
	       !is_loaded_anew(&c, gimple_cond_lhs(last), 3) &&
	       !is_loaded_anew(&c, gimple_cond_rhs(last), 3);
}

/*
 * Does the loop store, has it no inner loop, no call and one exit, and may the number of its
 * rounds be known when it begins?
 */
static bool is_simple(class loop *loop, edge *exit)
{
	basic_block *body;
	unsigned int nr_exits = 0;
	bool call = false, store = false;

	if (loop->inner)
		return false;
	body = get_loop_body(loop);
	for (unsigned int i = 0; i < loop->num_nodes; i++) {
		nr_exits += count_exits(loop, body[i], exit);
		call = call || has_call(body[i]);
		store = store || has_store(body[i]);
	}
	store = nr_exits == 1 && !call && store && !is_odd(*exit) &&
		may_be_counted(loop, body, *exit);
	free(body);
	return store;
}

/* Where the rounds of a simple loop are counted. Nothing, if a strange edge enters it. */
static void find_counter(class loop *loop, struct place *place)
{
	edge_iterator i;
	edge e, exit = NULL;

	if (!is_simple(loop, &exit))
		return;
	FOR_EACH_EDGE(e, i, loop->header->preds)
		if (!flow_bb_inside_loop_p(loop, e->src)) {
			if (is_odd(e)) {
				place->entries.release();
				return;
			}
			place->entries.safe_push(e);
		}
	place->header = loop->header;
	place->exit = exit;
}

/* The place of a marker for @bb; @place->bb NULL: there is none. */
static void find_place(basic_block bb, struct place *place)
{
	bool header = bb->loop_father && loop_depth(bb->loop_father) > 0 &&
		      bb->loop_father->header == bb;

	place->bb = place->header = NULL;
	place->entries = vNULL;
	place->exit = NULL;
	if (!header) {
		place->bb = marks_blocks && !is_empty(bb) && !continues(bb) ? bb : NULL;
		return;
	}
	place->bb = behind_empty(bb);
	if (flow_bb_inside_loop_p(bb->loop_father, place->bb))
		find_counter(bb->loop_father, place);
}

/* Loops get numbers in the order of their headers, which is that of the source. */
static void mark_function(void)
{
	unsigned long long hash = 0xcbf29ce484222325ULL;
	auto_vec<struct place> places;
	auto_bitmap chosen;
	basic_block bb;

	hash = hash_add(hash, file_name(current_function_decl));
	hash = hash_add(hash, function_name(current_function_decl));
	loop_optimizer_init(AVOID_CFG_MODIFICATIONS);
	FOR_EACH_BB_FN(bb, cfun) {
		struct place place;

		find_place(bb, &place);
		if (place.bb && bitmap_set_bit(chosen, place.bb->index))
			places.safe_push(place);
	}
	loop_optimizer_finalize();
	for (unsigned int i = 0; i < places.length(); i++) {
		if (may_mark(places[i].bb))
			mark(&places[i], i + 1, hash);
		places[i].entries.release();
	}
	gsi_commit_edge_inserts();
}

/*
 * A function that is only there to be inlined (GNU inline functions of a header) has its code in
 * another file, and only optimising compilations see its body.
 */
static bool wants_markers(void)
{
	tree function = current_function_decl;

	return !in_lto_p && !DECL_EXTERNAL(function) &&
	       !lookup_attribute("no_instrument_function", DECL_ATTRIBUTES(function)) &&
	       !lookup_attribute("naked", DECL_ATTRIBUTES(function)) &&
	       !lookup_attribute("ifunc", DECL_ATTRIBUTES(function));
}

static const pass_data marker_pass_data = {
	GIMPLE_PASS, "morph_marker", OPTGROUP_NONE, TV_NONE, PROP_cfg, 0, 0, 0, 0,
};

class marker_pass : public gimple_opt_pass
{
public:
	marker_pass(gcc::context *context) : gimple_opt_pass(marker_pass_data, context) {}
	unsigned int execute(function *) final override
	{
		if (wants_markers())
			mark_function();
		return 0;
	}
};

/*
 * When all functions of the unit were read: the table, a text of a line per marker, as a static
 * array that neither the compiler nor the linker drops. It names no address.
 */
static void write_table(void *, void *)
{
	tree type, var;

	if (!table_size)
		return;
	type = build_array_type_nelts(
		build_qualified_type(char_type_node, TYPE_QUAL_CONST), table_size);
	var = build_decl(UNKNOWN_LOCATION, VAR_DECL, get_identifier("__morph_markers"), type);
	TREE_STATIC(var) = 1;
	TREE_READONLY(var) = 1;
	TREE_USED(var) = 1;
	DECL_ARTIFICIAL(var) = 1;
	DECL_IGNORED_P(var) = 1;
	DECL_PRESERVE_P(var) = 1;
	DECL_INITIAL(var) = build_string(table_size, table_text);
	TREE_TYPE(DECL_INITIAL(var)) = type;
	SET_DECL_ALIGN(var, BITS_PER_UNIT);
	DECL_USER_ALIGN(var) = 1;
	set_decl_section_name(var, TABLE_SECTION);
	DECL_ATTRIBUTES(var) = tree_cons(get_identifier("used"), NULL_TREE, DECL_ATTRIBUTES(var));
	DECL_ATTRIBUTES(var) =
		tree_cons(get_identifier("retain"), NULL_TREE, DECL_ATTRIBUTES(var));
	varpool_node::finalize_decl(var);
	varpool_node::get(var)->force_output = 1;
	varpool_node::get(var)->analyze();
	table_size = 0;
}

int plugin_init(struct plugin_name_args *args, struct plugin_gcc_version *version)
{
	struct register_pass_info info;

	if (!plugin_default_version_check(version, &gcc_version)) {
		error("%s was built for GCC %s, this is GCC %s", args->base_name,
		      gcc_version.basever, version->basever);
		return 1;
	}
	for (int i = 0; i < args->argc; i++) {
		if (strcmp(args->argv[i].key, "blocks") || args->argv[i].value) {
			error("%s: unknown argument %qs", args->base_name, args->argv[i].key);
			return 1;
		}
		marks_blocks = true;
	}
	if (in_lto_p)
		return 0;
	info.pass = new marker_pass(g);
	info.reference_pass_name = "cfg";
	info.ref_pass_instance_number = 1;
	info.pos_op = PASS_POS_INSERT_AFTER;
	register_callback(args->base_name, PLUGIN_PASS_MANAGER_SETUP, NULL, &info);
	register_callback(args->base_name, PLUGIN_ALL_IPA_PASSES_START, write_table, NULL);
	return 0;
}
