// SPDX-License-Identifier: Apache-2.0
/*
 * cfg - functions, basic blocks, edges and jump tables of one ELF file.
 *
 * Function bounds come from FDEs, and from symbols where there are any. A `.cold` part
 * (symbol foo.cold, or an FDE that is only reached by jumps from one function) belongs to
 * its function: one function, several ranges.
 *
 * A block starts at every address that control may reach, by the file's evidence: branch
 * targets of the whole text, relocation targets, symbols, FDE starts, jump-table entries,
 * landing pads, and words of data that hold a text address. A function that is not fully
 * understood has its reason in @problem; its blocks may still serve for statistics.
 *
 * Plain data: read the fields directly. After mp_cfg_build(), nothing but mp_cfg_cut() changes them.
 */
#ifndef MP_CFG_H
#define MP_CFG_H

#include <stdbool.h>
#include <stdint.h>

#include "libprof/elf/elf.h"
#include "libprof/base/err.h"
#include "libprof/insn/insn.h"

#define MP_NONE UINT32_MAX

/* Blocks that are never copied, even if their function is. */
#define MP_BLOCK_STAYS (MP_BLOCK_PADDING | MP_BLOCK_PROBE)

/* How a block ends. */
enum mp_term {
	MP_TERM_FALL,  /* no branch: the next address starts a block, or is another function */
	MP_TERM_COND,  /* jcc: taken edge and fall-through */
	MP_TERM_JUMP,  /* direct jump inside the function */
	MP_TERM_TAIL,  /* direct jump to another function (or unknown code): tail call */
	MP_TERM_TABLE, /* indirect jump through a recognised table or label table */
	MP_TERM_INDIRECT_TAIL, /* indirect jump that leaves the function (through memory/register) */
	/*
	 * indirect jump that no table resolves: not understood; with MP_FUNC_LABELS it goes
	 * to a label of the function or leaves it
	 */
	MP_TERM_UNRESOLVED,
	MP_TERM_RET,
	MP_TERM_TRAP,	  /* ud2, hlt */
	MP_TERM_NORETURN, /* the last instruction is a call that does not return */
};

enum mp_block_flag {
	MP_BLOCK_ENTRY = 1 << 0, /* the function's entry */
	MP_BLOCK_LANDING_PAD = 1 << 1,
	MP_BLOCK_TABLE_TARGET = 1 << 2,
	/* its address stands in data or in an operand, other than in a recognised jump table */
	MP_BLOCK_ADDRESS_TAKEN = 1 << 3,
	MP_BLOCK_OTHER_ENTRY = 1 << 4, /* jumped to or called from another function */
	MP_BLOCK_COLD_PART = 1 << 5,   /* lies in a .cold range */
	MP_BLOCK_NAMED = 1 << 6,       /* an operand in code holds its address */
	MP_BLOCK_PADDING = 1 << 7,     /* only nops/int3 between code, never reached */
	MP_BLOCK_SURE = 1 << 8,	       /* see mp_cfg_block_is_sure() */
	MP_BLOCK_PROBE = 1 << 9,       /* a note says that tracers may put a breakpoint in it */
	MP_BLOCK_CUT =
		1 << 10, /* mp_cfg_cut() began it: control only comes from the block before */
	/* with mp_cfg_options.entries: the block before is only the first instruction of the function */
	MP_BLOCK_BEHIND_ENTRY = 1 << 11,
};

/* Limits of the fields below. Longer code without a branch becomes several blocks. */
#define MP_MAX_BLOCK_SIZE  ((1u << 24) - 1)
#define MP_MAX_BLOCK_EDGES ((1u << 24) - 1)

struct mp_block {
	uint64_t vaddr;
	uint32_t size : 24;    /* bytes */
	uint32_t term : 4;     /* enum mp_term */
	uint32_t term_len : 4; /* bytes of the terminating branch; 0 for FALL and NORETURN */
	uint32_t func;
	uint32_t first_edge;	  /* successors: cfg->edges[first_edge .. + nr_edges) */
	union {			  /* depends on @term; 0 for other kinds */
		int32_t distance; /* COND/JUMP/TAIL: from the block's end to the target */
		uint32_t table;	  /* TABLE: index of the table, or MP_NONE */
	};
	uint64_t nr_insns : 24;
	uint64_t nr_edges : 24;
	uint64_t flags : 16; /* enum mp_block_flag */
};

/* Large programs have millions of blocks. */
_Static_assert(sizeof(struct mp_block) == 32, "blocks have grown");

/* Target of the branch at the block's end; 0 if the block has no branch or several targets. */
static inline uint64_t mp_block_target(const struct mp_block *block)
{
	switch (block->term) {
	case MP_TERM_COND:
	case MP_TERM_JUMP:
	case MP_TERM_TAIL: return block->vaddr + block->size + (uint64_t)(int64_t)block->distance;
	default: return 0;
	}
}

/* Call it when the block has its place and size. */
static inline void mp_block_set_target(struct mp_block *block, uint64_t target)
{
	block->distance = (int32_t)(target - (block->vaddr + block->size));
}

enum mp_edge_kind {
	MP_EDGE_FALL,  /* fall-through, also of COND */
	MP_EDGE_TAKEN, /* taken branch of COND */
	MP_EDGE_JUMP,
	MP_EDGE_TABLE,
};

/* An edge has 30 bits for a block's index. */
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
	uint64_t vaddr; /* address of entry 0 */
	uint64_t base;	/* REL32: the address that entries are relative to */
	uint32_t nr_entries;
	/* block whose terminator jumps through the table; of a shared table, the first one */
	uint32_t block;
	uint8_t kind;	   /* enum mp_table_kind */
	bool labels;	   /* a label table (computed goto): values may be compared or kept */
	bool exact;	   /* bound known (cmp, relocations, symbol size), not only a minimum */
	bool private_refs; /* every reference to the table is the base load of a jump in @func */
	uint32_t func;
	/*
	 * Instructions of the function that load the table's base: `lea table(%rip)`, or
	 * the absolute disp32 of `jmp *table(,%r,8)` or `mov table(,%r,8)`. They are
	 * cfg->table_refs[first_ref ..).
	 */
	uint32_t first_ref, nr_refs;
};

struct mp_table_ref {
	uint64_t insn_vaddr;
	uint8_t field_off; /* offset of the 4-byte field in the instruction */
	bool rip_relative; /* false: absolute 32-bit address */
};

enum mp_problem {
	MP_PROBLEM_NONE,
	MP_PROBLEM_UNDECODABLE,	    /* bytes Zydis cannot decode, or cut at the function's end */
	MP_PROBLEM_OFF_GRID,	    /* a target inside an instruction */
	MP_PROBLEM_UNRESOLVED_JUMP, /* indirect jump not understood, or with too much work */
	MP_PROBLEM_LOOP_INSN,	    /* loop, jrcxz, xbegin */
	MP_PROBLEM_FALLS_OUT,	    /* runs into the next function, not behind a call */
	MP_PROBLEM_NO_FDE,	    /* no unwind information: hand-written */
	MP_PROBLEM_OVERLAP,	    /* two functions claim the same bytes */
	MP_PROBLEM_SIGNAL_FRAME,    /* __restore_rt and similar code */
	MP_PROBLEM_BAD_LSDA,	    /* LSDA unreadable */
	/* other code may know an address in its middle, and no table explains that */
	MP_PROBLEM_MID_ESCAPE,
	MP_PROBLEM_SPECIAL, /* PLT, .init, .fini, entry stub: not a compiler's function */
	/* a call in it may return to another place than the next instruction */
	MP_PROBLEM_RETURNS_ELSEWHERE,
	MP_PROBLEM_UNREACHED,	/* holds code that no known way leads to */
	MP_PROBLEM_WRITABLE,	/* lies in memory that the program may write to */
	MP_PROBLEM_READ,	/* the program reads its bytes, or computes with its address */
	MP_PROBLEM_RETURN_WORD, /* data may hold a return address in it */
	MP_NR_PROBLEMS
};

enum mp_func_flag {
	MP_FUNC_SYSCALL = 1 << 0, /* holds syscall/int */
	MP_FUNC_ADDRESS_TAKEN = 1 << 1,
	MP_FUNC_EXPORTED = 1 << 2, /* in .dynsym */
	/* a relocation and the bytes disagree (linker relaxation): the bytes are believed */
	MP_FUNC_RELOCS_DISAGREE = 1 << 3,
	MP_FUNC_IFUNC = 1 << 4,
	MP_FUNC_NORETURN = 1 << 5, /* never returns */
	MP_FUNC_GET_PC = 1 << 6,   /* holds `call next; pop` */
	/* no relocations: a number in data equals its address, maybe by chance */
	MP_FUNC_POINTED = 1 << 7,
	/*
	 * no unwind information, known by a sized symbol; without a problem only if it is
	 * assembly that calls nothing
	 */
	MP_FUNC_BARE = 1 << 8,
	/* holds labels that are used as values (GNU C), and all of them are known */
	MP_FUNC_LABELS = 1 << 9,
	MP_FUNC_LABEL_SUMS =
		1 << 10, /* data may hold differences of labels, which code adds to a label */
	MP_FUNC_LABEL_USES = 1 << 12, /* may compute with labels, or others know its own */
	MP_FUNC_OFF_GRID = 1 << 11,   /* has MP_PROBLEM_OFF_GRID, perhaps besides its @problem */
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
	/* cfg->blocks, ascending vaddr; 0 if options.want declined the function */
	uint32_t first_block, nr_blocks;
	uint32_t nr_insns;
	uint8_t problem;	/* enum mp_problem */
	uint16_t flags;		/* enum mp_func_flag */
	uint64_t problem_vaddr; /* address where the problem was found */
};

/* A direct call (or tail call) between functions: the call graph's arcs. */
struct mp_call {
	uint32_t block : 30; /* call site */
	uint32_t tail : 1;
	uint32_t callee; /* function index, MP_NONE: PLT or unknown */
	/* mp_call_insn() and mp_call_target() give addresses. */
	uint64_t offset : 31;  /* of the instruction in the block */
	int64_t distance : 33; /* of the target from the instruction: 32 bits and its length */
};

/* Large programs have millions of calls. */
_Static_assert(sizeof(struct mp_call) == 16, "calls have grown");

/*
 * An operand of any function that holds the address of a label of a function with
 * MP_FUNC_LABELS.
 */
struct mp_label_ref {
	uint64_t insn_vaddr, target;
	uint8_t field_off; /* offset of the 4-byte field in the instruction */
	bool rip_relative; /* false: absolute 32-bit, maybe a number that is no address */
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
	/* counts: through recognised tables, tail calls, unresolved */
	uint64_t nr_indirect_jumps[3];
	void *private_data;
};

/* Address of the call's instruction. */
static inline uint64_t mp_call_insn(const struct mp_cfg *cfg, const struct mp_call *call)
{
	return cfg->blocks[call->block].vaddr + call->offset;
}

/* The address that is called. */
static inline uint64_t mp_call_target(const struct mp_cfg *cfg, const struct mp_call *call)
{
	return mp_call_insn(cfg, call) + (uint64_t)(int64_t)call->distance;
}

struct mp_cfg_options {
	/*
	 * True for functions that get blocks and edges; NULL: all functions. It is called
	 * once per function. The whole text is scanned for targets in any case.
	 */
	bool (*want)(void *ctx, const struct mp_func *func);
	void *ctx;
	/*
	 * Cuts more blocks: a call ends its block, and a backward branch is a block of its
	 * own, together with the instruction before it if the branch is conditional.
	 */
	bool fine;
	/* A return, and a jump that leaves the function, is a block of its own. */
	bool exits;
	/* The first instruction of each function, if it is no endbr64, is a block of its own. */
	bool entries;
	/* Addresses, ascending, where blocks begin as well if instructions begin there. */
	const uint64_t *cuts;
	uint32_t nr_cuts;
};

/*
 * mp_cfg_build - analyses the code of @elf (opened with MP_ELF_ALL).
 * Return: 0, -ENOMEM, -EBADMSG. A function that is not understood is no error.
 * Ownership: *@out is freed by mp_cfg_free(), which takes NULL; @elf must outlive it.
 */
int mp_cfg_build(const struct mp_elf *elf, const struct mp_cfg_options *options,
		 struct mp_cfg **out, struct mp_err *err);
void mp_cfg_free(struct mp_cfg *cfg);
/*
 * mp_cfg_cut - begins further blocks at @cuts: ascending addresses of instructions. Edges keep their
 * indexes; the new ones follow. Blocks get new indexes: old block b consists of blocks (*@first)[b]
 * to (*@first)[b + 1] - 1. Return: 0, -ENOMEM: nothing changed. Ownership: free(*@first).
 */
int mp_cfg_cut(struct mp_cfg *cfg, const uint64_t *cuts, uint32_t nr_cuts, uint32_t **first,
	       struct mp_err *err);

/*
 * A CFG with further cuts beside the one that it was made of. @cfg has blocks, edges and calls of its own,
 * and shares everything else: functions and look-ups by address name the blocks of the other CFG, of which
 * block b consists of blocks first[b] to first[b + 1] - 1 here.
 */
struct mp_cfg_view {
	struct mp_cfg cfg;
	uint32_t *first;
};

/*
 * mp_cfg_view_cut - a view of @cfg with further blocks, as mp_cfg_cut() makes them. Return: 0, -ENOMEM.
 * Ownership: mp_cfg_view_fini(@out), before @cfg is freed.
 */
int mp_cfg_view_cut(const struct mp_cfg *cfg, const uint64_t *cuts, uint32_t nr_cuts,
		    struct mp_cfg_view *out, struct mp_err *err);
void mp_cfg_view_fini(struct mp_cfg_view *view);

/* With mp_cfg_options.entries: is the block only the first instruction of its function, and the next one what follows? */
static inline bool mp_cfg_is_first_insn(const struct mp_cfg *cfg, uint32_t block)
{
	return block + 1 < cfg->nr_blocks && (cfg->blocks[block + 1].flags & MP_BLOCK_BEHIND_ENTRY);
}
/* Is the instruction at @vaddr endbr64? */
bool mp_cfg_is_endbr64(const struct mp_cfg *cfg, uint64_t vaddr);
/* The function or block that holds @vaddr, or MP_NONE. O(log n). */
uint32_t mp_cfg_func_at(const struct mp_cfg *cfg, uint64_t vaddr);
uint32_t mp_cfg_block_at(const struct mp_cfg *cfg, uint64_t vaddr);
/* The block that lies behind @block in the file, if control can fall into it; else MP_NONE. */
uint32_t mp_cfg_falls_to(const struct mp_cfg *cfg, uint32_t block);
/* Return: index of the first call in [@low, @high) that lies in @block or in a later block; @high: none. */
uint32_t mp_cfg_call_from(const struct mp_cfg *cfg, uint32_t low, uint32_t high, uint32_t block);
/* The block that starts exactly at @vaddr, or MP_NONE. */
uint32_t mp_cfg_block_starting(const struct mp_cfg *cfg, uint64_t vaddr);
/*
 * Number of parts: the ranges of all functions by ascending vaddr. The blocks of part 0, then those
 * of part 1, and so on, are all blocks by ascending vaddr.
 */
uint32_t mp_cfg_nr_parts(const struct mp_cfg *cfg);
/* The number of blocks of @part, which stand in cfg->blocks from *@first on. */
uint32_t mp_cfg_part_blocks(const struct mp_cfg *cfg, uint32_t part, uint32_t *first);
/* True if there is evidence that control may arrive at @vaddr. */
bool mp_cfg_is_target(const struct mp_cfg *cfg, uint64_t vaddr);
/*
 * As mp_cfg_is_target(); also true if @vaddr may be a target by chance only. Such an
 * address starts no block, but no other instruction may be put there.
 */
bool mp_cfg_may_be_target(const struct mp_cfg *cfg, uint64_t vaddr);
/* True if a number equals this address, maybe by chance, or if an offset may lead to it. */
bool mp_cfg_is_weak_target(const struct mp_cfg *cfg, uint64_t vaddr);
/* mp_cfg_note_target - from now on mp_cfg_may_be_target() is true of @vaddr, if code can lie there. */
void mp_cfg_note_target(struct mp_cfg *cfg, uint64_t vaddr);
/*
 * True if @block's instructions are certain, even in a function that cannot be moved. An
 * operand in it may be changed.
 */
bool mp_cfg_block_is_sure(const struct mp_cfg *cfg, uint32_t block);
/*
 * True if the compiler ordered the blocks by a profile. Such an order is better evidence of
 * likely ways than an order chosen without a profile.
 */
bool mp_cfg_is_profiled(const struct mp_cfg *cfg);
const char *mp_problem_name(enum mp_problem problem);

#endif
