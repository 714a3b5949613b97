// SPDX-License-Identifier: GPL-2.0
/* A mapping's flags are changed by vm_flags_clear() and may not be written. */
#include <linux/mm.h>

void probe(struct vm_area_struct *vma);
void probe(struct vm_area_struct *vma)
{
	vm_flags_clear(vma, VM_MAYWRITE);
}
