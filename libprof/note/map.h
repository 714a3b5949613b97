// SPDX-License-Identifier: Apache-2.0
/*
 * map - the note of an optimised module that tells the origin of each byte of moved code.
 * The editor writes it; attribution reads it. A sample in moved code counts for the
 * original's block, so a module can be optimised any number of times from the same
 * original. The note (owner "Morph", type 1) lies in the allocated section .note.morph. A second note (type 2)
 * names the calls that pieces replace. The formats are in Documentation/abi.md.
 */
#ifndef MP_MAP_H
#define MP_MAP_H

#include <stddef.h>
#include <stdint.h>

#include "libprof/elf/elf.h"
#include "libprof/base/err.h"
#include "libprof/elf/id.h"

#define MP_MAP_NOTE_NAME       "Morph"
#define MP_MAP_NOTE_TYPE       1
#define MP_MAP_CALLS_NOTE_TYPE 2
/* Largest number of pieces; larger maps are neither written nor read. */
#define MP_MAP_PIECES_MAX (1u << 24)
/* mp_map_read_compact() packs maps of more pieces than this. */
#define MP_MAP_FLAT_MAX (1u << 20)

/*
 * One run of moved code. Instruction k of the run came from instruction k of the original
 * run. Lengths differ only at the end of a run: a branch has another encoding, or a call of a PLT stub
 * goes through the stub's slot, or is missing, and the next piece is the called function without its return.
 * Hence there is one piece per block, or per part of it up to such a call.
 */
struct mp_map_piece {
	uint64_t new_vaddr;
	uint32_t new_size;
	uint32_t old_size; /* 0: added code (a jump) without an original */
	uint64_t old_vaddr;
};

/*
 * A call that is replaced by the called function's code: pieces [first, first + nr). Code that lies apart has an entry
 * of its own. The addresses are the original's.
 */
struct mp_map_call {
	uint32_t first, nr;
	uint64_t back;	 /* behind the call */
	uint64_t callee; /* the called function */
};

/* Bytes of the call. */
#define MP_MAP_CALL_SIZE 5

struct mp_map {
	struct mp_id original;	     /* build-id and text hash of the original file */
	struct mp_map_piece *pieces; /* ascending new_vaddr; NULL if @packed holds them */
	uint32_t nr_pieces;
	uint32_t nr_calls;
	struct mp_map_packed *packed; /* NULL: none; see map_packed.h */
	struct mp_map_call
		*calls; /* ascending, no piece is in two; NULL: none, or they are not known */
};

/*
 * mp_map_encode - the whole section as bytes: the note, and that of the calls if there are any. Ownership:
 * free(*@out).
 */
int mp_map_encode(const struct mp_map *map, uint8_t **out, size_t *size, struct mp_err *err);
/*
 * mp_map_read - the map of @elf. Return: 0, -ENOENT (not an optimised module), -EBADMSG
 * (damaged).
 */
int mp_map_read(const struct mp_elf *elf, struct mp_map **out, struct mp_err *err);
/* The identity of the original alone, which takes less time. Return: as mp_map_read(). */
int mp_map_read_original(const struct mp_elf *elf, struct mp_id *original, struct mp_err *err);
/* Like mp_map_read(), but a large map is packed: its pieces take a fifth of the memory. */
int mp_map_read_compact(const struct mp_elf *elf, struct mp_map **out, struct mp_err *err);
/*
 * mp_map_each - calls @take for each piece, in order, and stores none. Return: 0; what @take returned, if not 0, which ends
 * it; as mp_map_read().
 */
typedef int mp_map_take(void *arg, const struct mp_map_piece *piece);
int mp_map_each(const struct mp_elf *elf, mp_map_take *take, void *arg, struct mp_err *err);
void mp_map_free(struct mp_map *map);
/* Piece @i of a map in either form. */
struct mp_map_piece mp_map_piece(const struct mp_map *map, uint32_t i);
/* Memory of pieces and calls in bytes. */
uint64_t mp_map_bytes(const struct mp_map *map);
/* Index of the piece whose copy holds @vaddr; nr_pieces if there is none. */
uint32_t mp_map_piece_at(const struct mp_map *map, uint64_t vaddr);
/*
 * mp_map_original - the original address for @vaddr of the optimised module. Addresses that
 * were not moved are returned unchanged. An offset in a piece is kept, but at most the
 * original's last byte.
 */
uint64_t mp_map_original(const struct mp_map *map, uint64_t vaddr);
/*
 * mp_map_call_at - the call that the code at @vaddr of the optimised module replaces: in the original, the function
 * that has this code was called, and would have returned to @back. NULL: the code replaces no call.
 */
const struct mp_map_call *mp_map_call_at(const struct mp_map *map, uint64_t vaddr);

#endif
