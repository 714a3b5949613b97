// SPDX-License-Identifier: Apache-2.0
/*
 * cfg - functions, basic blocks, edges and jump tables of one ELF file.
 *
 * Function bounds come from FDEs, and from symbols where there are any; a `.cold` part (symbol
 * foo.cold, or an FDE that is only reached by jumps from one function) belongs to its function:
 * one function, several ranges. Every address that anything may jump to, of which the file gives
 * evidence, starts a block: branch targets of the whole text, relocation targets, symbols, FDE
 * starts, jump-table entries, landing pads, words of data that hold a text address. A function
 * that is not fully understood says why in @problem; its blocks may still serve for statistics.
 * Plain data: read field by field, never changed after mp_cfg_build().
 */
#ifndef MP_CFG_H
#define MP_CFG_H

#include <stdbool.h>
#include <stdint.h>

#include "libprof/elf.h"
#include "libprof/err.h"
#include "libprof/insn.h"

#define MP_NONE UINT32_MAX

/* Blocks that are never copied, be the rest of their function. */
#define MP_BLOCK_STAYS (MP_BLOCK_PADDING | MP_BLOCK_PROBE)

/* How a block ends. */
enum mp_term {
	MP_TERM_FALL,  /* no branch: the next address starts a block, or is another function */
	MP_TERM_COND,  /* jcc: taken edge and fall-through */
	MP_TERM_JUMP,  /* direct jump inside the function */
	MP_TERM_TAIL,  /* direct jump to another function (or unknown code): tail call */
	MP_TERM_TABLE, /* indirect jump through a recognised table or label table */
	MP_TERM_INDIRECT_TAIL, /* indirect jump that leaves the function (through memory/register) */
	MP_TERM_UNRESOLVED,    /* indirect jump that no table resolves: not understood; or, with
				* MP_FUNC_LABELS, to any label of the function or out of it */
	MP_TERM_RET,
	MP_TERM_TRAP,	  /* ud2, hlt */
	MP_TERM_NORETURN, /* last instruction is a call that does not come back */
};

enum mp_block_flag {
	MP_BLOCK_ENTRY = 1 << 0, /* the function's entry */
	MP_BLOCK_LANDING_PAD = 1 << 1,
	MP_BLOCK_TABLE_TARGET = 1 << 2,
	MP_BLOCK_ADDRESS_TAKEN = 1 << 3, /* its address stands in data or in an operand elsewhere
						 * than in a recognised jump table (label, symbol, ...) */
	MP_BLOCK_OTHER_ENTRY = 1 << 4,	 /* jumped to or called from another function */
	MP_BLOCK_COLD_PART = 1 << 5,	 /* lies in a .cold range */
	MP_BLOCK_NAMED = 1 << 6,	 /* an operand in code is its address */
	MP_BLOCK_PADDING = 1 << 7,	 /* only nops/int3 between functions' code, never reached */
	MP_BLOCK_SURE = 1 << 8,		 /* see mp_cfg_block_is_sure() */
	MP_BLOCK_PROBE = 1 << 9,	 /* tracers put a breakpoint in it, by a note */
};

struct mp_block {
	uint64_t vaddr;
	uint32_t size; /* bytes */
	uint32_t nr_insns;
	uint32_t func;
	uint32_t first_edge; /* successors: cfg->edges[first_edge .. + nr_edges) */
	uint32_t nr_edges;
	uint8_t term;		      /* enum mp_term */
	uint8_t term_len;	      /* bytes of the terminating branch, 0: FALL and NORETURN */
	uint16_t flags;		      /* enum mp_block_flag */
	union {			      /* by @term; 0 where neither */
		uint64_t term_target; /* COND/JUMP/TAIL: branch target vaddr */
		uint64_t table;	      /* TABLE: index of the table, or MP_NONE */
	};
};

/* Large programs have millions of them. */
_Static_assert(sizeof(struct mp_block) == 40, "blocks have grown");

/* Where the branch at its end leads; 0: there is none, or not to one place. */
static inline uint64_t mp_block_target(const struct mp_block *block)
{
	return block->term == MP_TERM_TABLE ? 0 : block->term_target;
}

enum mp_edge_kind {
	MP_EDGE_FALL,  /* fall-through, of COND too */
	MP_EDGE_TAKEN, /* of COND */
	MP_EDGE_JUMP,
	MP_EDGE_TABLE,
};

/* More blocks than this no edge can name. */
#define MP_MAX_BLOCKS (1u << 30)

struct mp_edge {
	uint32_t from; /* block indexes, always of the same function */
	uint32_t to : 30;
	uint32_t kind : 2; /* enum mp_edge_kind */
};

_Static_assert(sizeof(struct mp_edge) == 8, "edges have grown");

enum mp_table_kind {
	MP_TABLE_ABS64, /* 8-byte addresses: non-PIC switch, label table */
	MP_TABLE_REL32, /* 4-byte offsets from @base (usually the table itself) */
};

struct mp_table {
	uint64_t vaddr; /* of entry 0 */
	uint64_t base;	/* REL32: what entries are relative to */
	uint32_t nr_entries;
	uint32_t block; /* the block whose terminator jumps through it; shared tables: the first */
	uint8_t kind;	/* enum mp_table_kind */
	bool labels;	/* a label table (computed goto): values may be compared or kept */
	bool exact;	/* bound known (cmp, relocations, symbol size), not only a minimum */
	bool private_refs; /* every reference to the table is the base load of a jump in @func */
	uint32_t func;
	/* Instructions in the function that load the table's base: `lea table(%rip)`, or the
	 * absolute disp32 of `jmp *table(,%r,8)` / `mov table(,%r,8)`: cfg->table_refs[first_ref ..) */
	uint32_t first_ref, nr_refs;
};

struct mp_table_ref {
	uint64_t insn_vaddr;
	uint8_t field_off; /* offset of the 4-byte field in the instruction */
	bool rip_relative; /* else: absolute 32-bit */
};

enum mp_problem {
	MP_PROBLEM_NONE,
	MP_PROBLEM_UNDECODABLE,	      /* bytes Zydis cannot decode, or cut at the function's end */
	MP_PROBLEM_OFF_GRID,	      /* a target inside an instruction */
	MP_PROBLEM_UNRESOLVED_JUMP,   /* indirect jump not understood */
	MP_PROBLEM_LOOP_INSN,	      /* loop, jrcxz, xbegin */
	MP_PROBLEM_FALLS_OUT,	      /* runs into the next function without a call before */
	MP_PROBLEM_NO_FDE,	      /* no unwind information: hand-written */
	MP_PROBLEM_OVERLAP,	      /* two functions claim the same bytes */
	MP_PROBLEM_SIGNAL_FRAME,      /* __restore_rt and the like */
	MP_PROBLEM_BAD_LSDA,	      /* LSDA unreadable */
	MP_PROBLEM_MID_ESCAPE,	      /* an address in its middle escapes and is no table entry */
	MP_PROBLEM_SPECIAL,	      /* PLT, .init, .fini, entry stub: not a compiler's function */
	MP_PROBLEM_RETURNS_ELSEWHERE, /* a call in it comes back elsewhere than behind itself */
	MP_PROBLEM_UNREACHED,	      /* holds code that nothing leads to */
	MP_PROBLEM_WRITABLE,	      /* in memory that the program may write to */
	MP_NR_PROBLEMS
};

enum mp_func_flag {
	MP_FUNC_SYSCALL = 1 << 0, /* holds syscall/int */
	MP_FUNC_ADDRESS_TAKEN = 1 << 1,
	MP_FUNC_EXPORTED = 1 << 2,	  /* in .dynsym */
	MP_FUNC_RELOCS_DISAGREE = 1 << 3, /* relocation and bytes disagree (relaxed): bytes win */
	MP_FUNC_IFUNC = 1 << 4,
	MP_FUNC_NORETURN = 1 << 5, /* never returns */
	MP_FUNC_GET_PC = 1 << 6,   /* call next; pop */
	MP_FUNC_POINTED = 1 << 7,  /* without relocations: a number in data, maybe by chance, is
				    * its address */
	MP_FUNC_BARE = 1 << 8,	   /* no unwind information: known by a symbol with a size. Has no
				    * problem only where it is assembly that calls nobody */
	MP_FUNC_LABELS = 1 << 9,   /* labels of it are values (GNU C), and all of them are known */
	MP_FUNC_LABEL_SUMS =
		1 << 10, /* data may hold differences of them, which are added to one */
};

struct mp_range {
	uint64_t start, size;
	uint32_t func;
	uint32_t fde; /* index in elf->fdes, or MP_NONE */
	bool cold;
};

struct mp_func {
	const char *name; /* symbol name or "" (stripped); points into the ELF file */
	uint64_t vaddr;	  /* entry */
	uint64_t size;	  /* bytes over all ranges */
	uint32_t symbol;  /* index in elf->symbols or MP_NONE */
	uint32_t first_range, nr_ranges; /* cfg->ranges; [0] holds the entry */
	uint32_t first_block, nr_blocks; /* cfg->blocks, ascending vaddr; 0 where not @want-ed */
	uint32_t nr_insns;
	uint8_t problem;	/* enum mp_problem */
	uint16_t flags;		/* enum mp_func_flag */
	uint64_t problem_vaddr; /* where it was met */
};

/* A direct call (or tail call) between functions: the call graph's arcs. */
struct mp_call {
	uint32_t block;	 /* call site */
	uint32_t callee; /* function index, MP_NONE: PLT or unknown */
	uint64_t insn_vaddr;
	uint64_t target;
	bool tail;
};

/* An operand, of any function, that is the address of a label of a function with MP_FUNC_LABELS. */
struct mp_label_ref {
	uint64_t insn_vaddr, target;
	uint8_t field_off; /* offset of the 4-byte field in the instruction */
	bool rip_relative; /* else: absolute 32-bit, maybe a number by chance */
};

struct mp_cfg {
	const struct mp_elf *elf;
	struct mp_func *funcs; /* ascending entry vaddr */
	uint32_t nr_funcs;
	struct mp_range *ranges;
	uint32_t nr_ranges;
	struct mp_block *blocks;
	uint32_t nr_blocks;
	struct mp_edge *edges;
	uint32_t nr_edges;
	struct mp_table *tables;
	uint32_t nr_tables;
	struct mp_table_ref *table_refs;
	uint32_t nr_table_refs;
	struct mp_label_ref *label_refs; /* ascending insn_vaddr */
	uint32_t nr_label_refs;
	struct mp_call *calls; /* ascending block */
	uint32_t nr_calls;
	uint64_t nr_indirect_jumps[3]; /* recognised tables, tail calls, unresolved */
	void *private_data;
};

struct mp_cfg_options {
	/* Which functions get blocks and edges; the whole text is scanned for targets either way.
	 * NULL: all. Called once per function. */
	bool (*want)(void *ctx, const struct mp_func *func);
	void *ctx;
	/* Blocks end behind calls, too; and a branch that leads backwards is a block of its own, with
	 * the instruction before it where it is conditional. */
	bool fine;
};

/*
 * mp_cfg_build - understand the code of @elf (opened with MP_ELF_ALL).
 * Return: 0, -ENOMEM, -EBADMSG. A function that is not understood is no error.
 * Ownership: *@out is freed by mp_cfg_free(), which takes NULL; @elf must outlive it.
 */
int mp_cfg_build(const struct mp_elf *elf, const struct mp_cfg_options *options,
		 struct mp_cfg **out, struct mp_err *err);
void mp_cfg_free(struct mp_cfg *cfg);

/* Function, block that holds @vaddr, or MP_NONE. O(log n). */
uint32_t mp_cfg_func_at(const struct mp_cfg *cfg, uint64_t vaddr);
uint32_t mp_cfg_block_at(const struct mp_cfg *cfg, uint64_t vaddr);
/* The block that starts exactly at @vaddr, or MP_NONE. */
uint32_t mp_cfg_block_starting(const struct mp_cfg *cfg, uint64_t vaddr);
/* All blocks by ascending vaddr: those of part 0, of part 1, ... */
uint32_t mp_cfg_nr_parts(const struct mp_cfg *cfg);
/* The number of blocks of @part, which stand in cfg->blocks from *@first on. */
uint32_t mp_cfg_part_blocks(const struct mp_cfg *cfg, uint32_t part, uint32_t *first);
/* True where some evidence says that control may arrive at @vaddr. */
bool mp_cfg_is_target(const struct mp_cfg *cfg, uint64_t vaddr);
/*
 * True also where a number happens to be an address between two instructions. It starts no block;
 * but nothing may be put there that was not there before.
 */
bool mp_cfg_may_be_target(const struct mp_cfg *cfg, uint64_t vaddr);
/* True where a number happens to be this address, or an offset may lead to it. */
bool mp_cfg_is_chance(const struct mp_cfg *cfg, uint64_t vaddr);
/*
 * True where @block's instructions are known for sure, be it in a function that cannot be moved: an
 * operand may be changed there.
 */
bool mp_cfg_block_is_sure(const struct mp_cfg *cfg, uint32_t block);
/*
 * True where the order of blocks is a compiler's that had a profile: better evidence of what is
 * likely than most orders are.
 */
bool mp_cfg_is_profiled(const struct mp_cfg *cfg);
const char *mp_problem_name(enum mp_problem problem);

#endif
