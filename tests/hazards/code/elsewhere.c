// SPDX-License-Identifier: Apache-2.0
// Handlers of faults have tables of distances where compilers put none: among code, also behind a
// single byte, in a note, in a section with a type of its own, and behind a head of several fields, which is handed to
// another function.
// levels: -O2
// stays: reads_code reads_packed reads_note reads_type reads_head
// moves: main
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <ucontext.h>
#include <unistd.h>

#include "../hazard.h"

/* An instruction that may fault, and where to go on: distances from the words themselves. */
struct row {
	int32_t fault, next;
};

struct table {
	char magic[8];
	uint32_t version, nr;
	uint64_t size;
	struct row rows[1];
};

extern const struct row code_rows[1] __attribute__((visibility("hidden")));
extern const struct row packed_rows[1] __attribute__((visibility("hidden")));
extern const struct row note_rows[1] __attribute__((visibility("hidden")));
extern const struct row type_rows[1] __attribute__((visibility("hidden")));
extern const struct table head_rows __attribute__((visibility("hidden")));

#define READS(name, section, label, at, before)                                                    \
	KEEP int reads_##name(const int *p, int how)                                               \
	{                                                                                          \
		int value = 3;                                                                     \
                                                                                                   \
		if (how > 4)                                                                       \
			value = OPAQUE(how) * 7;                                                   \
		__asm__ volatile("1: addl (%1), %0\n"                                              \
				 "2:\n"                                                            \
				 ".pushsection " section "\n"                                      \
				 ".balign 8\n" at ".globl " label "\n"                             \
				 ".hidden " label "\n" label ":\n" before ".long 1b - ., 2b - .\n" \
				 ".popsection"                                                     \
				 : "+r"(value)                                                     \
				 : "r"(p));                                                        \
		return value * 2;                                                                  \
	}

READS(code, ".text.tables,\"ax\",@progbits", "code_rows", "", "")
READS(packed, ".text.packed,\"ax\",@progbits", "packed_rows", ".zero 77\n", "")
READS(note, ".note.places,\"a\",@note", "note_rows", "", "")
READS(type, ".places,\"a\",@0x60001234", "type_rows", "", "")
READS(head, ".rodata", "head_rows", "", ".ascii \"PLACES\\0\\0\"\n.long 1, 1\n.quad 32\n")

KEEP int goes_on(greg_t *rip, const struct row *row)
{
	if ((greg_t)((uintptr_t)&row->fault + (uintptr_t)(intptr_t)row->fault) != *rip)
		return 0;
	*rip = (greg_t)((uintptr_t)&row->next + (uintptr_t)(intptr_t)row->next);
	return 1;
}

KEEP int goes_on_by(greg_t *rip, const struct table *table)
{
	for (uint32_t i = 0; i < table->nr; i++)
		if (goes_on(rip, &table->rows[i]))
			return 1;
	return 0;
}

static void fault(int sig, siginfo_t *info, void *context)
{
	greg_t *rip = &((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP];

	(void)sig;
	(void)info;
	if (!goes_on(rip, code_rows) && !goes_on(rip, packed_rows) && !goes_on(rip, note_rows) &&
	    !goes_on(rip, type_rows) && !goes_on_by(rip, &head_rows))
		_exit(9);
}

int main(void)
{
	struct sigaction action = {.sa_sigaction = fault, .sa_flags = SA_SIGINFO};
	int number = 21;

	sigaction(SIGSEGV, &action, NULL);
	for (int i = 0; i < 9; i++) {
		const int *p = i % 3 ? &number : OPAQUE((int *)NULL);

		printf("%d %d %d %d %d\n", reads_code(p, OPAQUE(i)), reads_packed(p, OPAQUE(i)),
		       reads_note(p, OPAQUE(i)), reads_type(p, OPAQUE(i)),
		       reads_head(p, OPAQUE(i)));
	}
	return 0;
}
