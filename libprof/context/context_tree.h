// SPDX-License-Identifier: Apache-2.0
/*
 * context_tree - a partial calling context tree: samples of one program by who called. Called by the
 * daemon, which adds samples, and by the store, which adds trees.
 *
 *	root (the program)			an activation is an execution of a function
 *	  call libc 0x2724a			call site in the outermost frame
 *	    call perl 0x401f3b			call site in main
 *	      function perl 0x44d3c0		samples that hit the function called from there
 *	      call perl 0x44d7e2		call site in that function, or in another one called there
 *	        (other)				folded nodes
 *	  (truncated: copy)			stacks whose outermost frames are not known
 *
 * Only functions and "(other)" have samples of their own. A node's total is the sum of its part of
 * the tree. Each sample counts in the totals of its whole path: in some of them the activation that
 * stands at the node's address was certainly new, in the others it looked old.
 * Method: Whaley, A portable sampling-based profiler for Java virtual machines (2000), section 5.
 */
#ifndef MP_CONTEXT_TREE_H
#define MP_CONTEXT_TREE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libprof/elf/id.h"

enum mp_context_kind {
	MP_CONTEXT_CALL,     /* @vaddr: the return address of a call */
	MP_CONTEXT_AT,	     /* @vaddr: an instruction that was interrupted or entered the kernel */
	MP_CONTEXT_FUNCTION, /* @vaddr: the start of the code that a sample hit */
	MP_CONTEXT_OTHER,    /* nodes that were folded */
	MP_CONTEXT_TRUNCATED, /* @vaddr: enum mp_walk_stop */
	MP_NR_CONTEXT_KIND
};

/* Code outside of all modules: @module 0, and @vaddr is the place. */
#define MP_CONTEXT_KERNEL   UINT64_C(64)
#define MP_CONTEXT_UNMAPPED UINT64_C(65) /* below: enum mp_unattributed */

struct mp_context_key {
	uint64_t module; /* mp_context_module_of(); 0: none */
	uint64_t vaddr;	 /* link-time address */
	enum mp_context_kind kind;
};

/* One step of a path, from its parent. */
struct mp_context_step {
	struct mp_context_key key;
	bool is_new; /* the activation that stands here is certainly new since the last sample */
};

/* Indices of nodes; 0 is the root, and no node where a link is meant. */
struct mp_context_node {
	uint64_t vaddr;
	uint64_t self, self_ns;	  /* samples of this node alone, and their time */
	uint64_t total, total_ns; /* with all below */
	uint64_t nr_new;	  /* samples whose activation here was certainly new */
	uint32_t module;	  /* index in the tree's modules */
	uint32_t parent, first, last, next, prev;
	uint8_t kind; /* enum mp_context_kind */
};

struct mp_context_tree {
	struct mp_context_node *nodes; /* [0] is the root */
	uint64_t *modules;	       /* [0] is 0 */
	uint32_t *slots;	       /* hash table of indices; 0: free */
	uint32_t nr_nodes, max_nodes, nr_modules, max_modules, nr_slots;
};

/* Return: the number by which trees name a module: a hash of its identity, never 0. */
uint64_t mp_context_module_of(const struct mp_id *id);

/* Return: 0, -ENOMEM. A tree of zeros may be passed to fini. */
int mp_context_tree_init(struct mp_context_tree *tree);
void mp_context_tree_fini(struct mp_context_tree *tree);
/* Removes all nodes but the root. */
void mp_context_tree_clear(struct mp_context_tree *tree);

/* Finds or adds a child. Return: 0, -ENOMEM. */
int mp_context_child(struct mp_context_tree *tree, uint32_t parent,
		     const struct mp_context_key *key, uint32_t *child);
/* Return: the child of @parent with this key; 0: there is none. */
uint32_t mp_context_find(const struct mp_context_tree *tree, uint32_t parent,
			 const struct mp_context_key *key);
struct mp_context_key mp_context_key_of(const struct mp_context_tree *tree, uint32_t node);

/*
 * Adds @nr samples of @time_ns at the end of a path, which begins below the root. The last step is a
 * function. Children stay sorted by their totals.
 * Return: 0, -ENOMEM (nothing is counted), -EINVAL, -EOVERFLOW.
 */
int mp_context_add(struct mp_context_tree *tree, const struct mp_context_step *steps,
		   size_t nr_steps, uint64_t nr, uint64_t time_ns);
/*
 * Changes a node's key. Return: does the node become two? *@above: the key of the other one, between the node and its
 * parent.
 */
typedef bool mp_context_translate(void *arg, struct mp_context_key *key,
				  struct mp_context_key *above);
/*
 * mp_context_add_tree - adds all of @from, whose totals are right, to @to, below the node @below; 0: the root.
 * @translate: NULL: keys stay. Return: 0; -ENOMEM, -EOVERFLOW: @to is half done.
 */
int mp_context_add_tree(struct mp_context_tree *to, uint32_t below,
			const struct mp_context_tree *from, mp_context_translate *translate,
			void *arg);

/*
 * mp_context_merge - the same at the root, for the sum of many trees: children are not sorted, until mp_context_settle()
 * or mp_context_fold() makes the tree anew. @from may be of mp_context_decode_raw().
 */
int mp_context_merge(struct mp_context_tree *to, const struct mp_context_tree *from);

/*
 * mp_context_tree_index - makes a tree that was made node by node whole: nodes are found by their keys, and children
 * are sorted by their totals, which are right. Return: 0, -ENOMEM.
 */
int mp_context_tree_index(struct mp_context_tree *tree);
/*
 * mp_context_tree_compact - removes the nodes that are @gone, by their numbers, with all below them, and modules that
 * no node names; then as mp_context_tree_index(). @work: zeros, one for each node and each module.
 */
void mp_context_tree_compact(struct mp_context_tree *tree, const bool *gone, uint32_t *work);

/*
 * mp_context_fold - folds the smallest leaves until at most @max nodes are left, but never the root.
 * The samples, time and new activations of a folded node count for "(other)" below its parent; all
 * totals stay what they were. Return: 0, -ENOMEM (nothing is changed).
 */
int mp_context_fold(struct mp_context_tree *tree, uint32_t max);

/*
 * mp_context_subtract - takes @what out of @from, to which it was added before, and which may have been
 * folded since. The number of samples that is left is exact, of the root and of each node that was never
 * folded; the samples of a folded node are taken from the nearest "(other)". Their time is exact if all
 * have the same. Return: 0; -EINVAL: @from does not have @what; -ENOMEM. @from is half done after an error.
 */
int mp_context_subtract(struct mp_context_tree *from, const struct mp_context_tree *what);
/*
 * mp_context_settle - makes the totals right after the caller has changed the samples of nodes, and
 * removes nodes without samples. Return: 0; -ENOMEM: @tree is to be given up.
 */
int mp_context_settle(struct mp_context_tree *tree);

#endif
