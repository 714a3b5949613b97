// SPDX-License-Identifier: Apache-2.0
/* verify_phdr_extend - checks a program header table with one entry more. */
#ifndef ME_VERIFY_PHDR_EXTEND_H
#define ME_VERIFY_PHDR_EXTEND_H

#include <stdbool.h>
#include <stdint.h>

#include "editor/verify/base/verify_context.h"

/*
 * The output has one program header more; @slot is the index of the new
 * one. First find the bytes that moved; check them when the segment is known; after the scan,
 * check all references to them.
 */
int vf_find_moved(struct vf *vf, uint32_t slot);
int vf_check_phdr_extend(const struct vf *vf);
int vf_check_moved(const struct vf *vf);
/* Is header @b header @a, which moved with its bytes? Is @b PT_PHDR @a of the larger table? */
bool vf_is_moved_phdr(const struct vf *vf, const Elf64_Phdr *a, const Elf64_Phdr *b);
bool vf_is_extended_table(const struct vf *vf, const Elf64_Phdr *a, const Elf64_Phdr *b);
/* Did this whole range of the original's file move? The others return the present address or
 * offset. */
bool vf_is_moved(const struct vf *vf, uint64_t off, uint64_t size);
uint64_t vf_vaddr_now(const struct vf *vf, uint64_t vaddr);
uint64_t vf_off_now(const struct vf *vf, uint64_t off);

#endif
