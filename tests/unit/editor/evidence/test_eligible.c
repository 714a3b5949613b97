// SPDX-License-Identifier: Apache-2.0
/* test_eligible - which functions are left alone, with the reasons. */
#include "tests/unit/suite.h"

#include "editor/evidence/eligible.h"
#include "tests/unit/edit_fixture.h"

/* A use of data makes the linker write .rela.text, which shows that relocations were kept. */
#define START                                                                                      \
	".globl start\nstart: .cfi_startproc\n mov d(%rip), %eax\n hlt\n .cfi_endproc\n"           \
	".data\nd: .quad 0\n.text\n"
#define FUNC(name, body)                                                                           \
	".type " name ", @function\n" name ": .cfi_startproc\n" body " .cfi_endproc\n"             \
	".size " name ", .-" name "\n"
#define ASM "-nostdlib -Wl,-e,start"

static struct me_eligible judge(struct fixture *f)
{
	struct me_eligible out;

	ck_assert_int_eq(me_eligible_functions(f->cfg, 1, &out, &err), 0);
	return out;
}

static void is(struct fixture *f, const struct me_eligible *e, const char *name,
	       enum me_refusal want, const char *reason)
{
	uint32_t func = fixture_func(f, name);

	ck_assert_msg(e->verdict[func] == want, "%s: %u (%s), not %u", name, e->verdict[func],
		      e->detail[func] ? e->detail[func] : "eligible", want);
	ck_assert_msg(!e->detail[func] == !reason, "%s: reason", name);
	if (reason)
		ck_assert_msg(strstr(e->detail[func], reason) != NULL, "%s: '%s' lacks '%s'", name,
			      e->detail[func], reason);
}

FIXTURE(NULL, fixture_done);

TEST(eligible_gives_each_function_its_reason)
{
	static const char source[] = START FUNC("plain", " mov %edi, %eax\n ret\n") FUNC(
		"sys", " mov $60, %eax\n syscall\n ret\n") FUNC("soft", " int $0x80\n ret\n")
		FUNC("pc", " call 1f\n1: pop %rax\n ret\n") FUNC("bnd", " bnd jmp plain\n") FUNC(
			"hint", " test %edi, %edi\n .byte 0x3e\n je 1f\n nop\n1: ret\n")
			FUNC("broken", " .byte 6\n ret\n") FUNC(
				"loops",
				" 1: loop 1b\n ret\n") ".type bare, @function\nbare: call plain\n ret\n.size bare, .-bare\n"
						       ".type leaf, @function\nleaf: mov %edi, %eax\n ret\n.size leaf, .-leaf\n";
	AUTO(me_eligible_fini) struct me_eligible e = {0};
	uint32_t nr = 0;

	fixture_build(&f, "assembler", ASM, source);
	e = judge(&f);
	is(&f, &e, "plain", ME_ELIGIBLE, NULL);
	is(&f, &e, "sys", ME_REFUSED_SYSCALL, "system call");
	is(&f, &e, "soft", ME_REFUSED_SYSCALL, "system call");
	is(&f, &e, "pc", ME_REFUSED_GET_PC, "own address");
	is(&f, &e, "bnd", ME_REFUSED_BRANCH_FORM, "prefix");
	is(&f, &e, "hint", ME_REFUSED_BRANCH_FORM, "prefix");
	is(&f, &e, "broken", ME_REFUSED_PROBLEM, "undecodable");
	is(&f, &e, "loops", ME_REFUSED_PROBLEM, "loop");
	is(&f, &e, "bare", ME_REFUSED_PROBLEM, "unwind");
	is(&f, &e, "leaf", ME_ELIGIBLE, NULL);
	is(&f, &e, "start", ME_REFUSED_PROBLEM, "compiler");
	for (uint32_t i = 0; i < e.nr_funcs; i++)
		nr += e.verdict[i] == ME_ELIGIBLE;
	ck_assert_uint_eq(e.nr_eligible, nr);
	ck_assert_uint_eq(nr, 2);
}

TEST(eligible_refuses_code_that_goes_on_behind_a_stop)
{
	static const char source[] = START FUNC("stop",
						" mov %edi, %eax\n int3\n add $1, %eax\n ret\n")
		FUNC("maybe", " test %edi, %edi\n je 1f\n int3\n1: ret\n")
			FUNC("filled", " test %edi, %edi\n je 1f\n ret\n int3\n1: nop\n ret\n");
	AUTO(me_eligible_fini) struct me_eligible e = {0};

	fixture_build(&f, "assembler", ASM, source);
	e = judge(&f);
	is(&f, &e, "stop", ME_REFUSED_PROBLEM, "jump or call reaches");
	is(&f, &e, "maybe", ME_REFUSED_STOP, "breakpoint");
	is(&f, &e, "filled", ME_ELIGIBLE, NULL);
}

TEST(eligible_refuses_ifunc_resolvers)
{
	struct me_eligible e;

	fixture_build(&f, "c", "-O1",
		      "static int one(void) { return 1; }\n"
		      "static void *pick(void) { return one; }\n"
		      "int f(void) __attribute__((ifunc(\"pick\")));\n"
		      "int main(void) { return f(); }\n");
	e = judge(&f);
	is(&f, &e, "pick", ME_REFUSED_IFUNC, "ifunc");
	is(&f, &e, "one", ME_ELIGIBLE, NULL);
	is(&f, &e, "main", ME_ELIGIBLE, NULL);
	me_eligible_fini(&e);
}

TEST(eligible_lets_a_probe_stay_behind)
{
	/* As <sys/sdt.h> and -fpatchable-function-entry create them. */
	static const char source[] = START FUNC(
		"probed",
		" nop\n.Lprobe: nop\n mov %edi, %eax\n ret\n") FUNC("patchable",
								    " nop\n mov %edi, %eax\n ret\n")
		FUNC("plain",
		     " mov %edi, %eax\n ret\n") ".section .note.stapsdt, \"\", \"note\"\n .balign 4\n"
						" .long 2f - 1f, 4f - 3f, 3\n1: .asciz \"stapsdt\"\n2: .balign 4\n"
						"3: .quad .Lprobe, 0, 0\n .asciz \"p\"\n .asciz \"n\"\n .asciz \"\"\n4: .balign 4\n"
						".section __patchable_function_entries, \"awo\", @progbits, .text\n .balign 8\n"
						" .quad patchable\n";
	const struct mp_func *probed;
	AUTO(me_eligible_fini) struct me_eligible e = {0};

	fixture_build(&f, "assembler", ASM, source);
	e = judge(&f);
	/* The second no-op and what follows form a block that is not copied. */
	is(&f, &e, "probed", ME_ELIGIBLE, NULL);
	probed = &f.cfg->funcs[fixture_func(&f, "probed")];
	ck_assert_uint_eq(probed->nr_blocks, 2);
	ck_assert(!(f.cfg->blocks[probed->first_block].flags & MP_BLOCK_PROBE));
	ck_assert(f.cfg->blocks[probed->first_block + 1].flags & MP_BLOCK_PROBE);
	is(&f, &e, "patchable", ME_REFUSED_PROBE, "patchable");
	is(&f, &e, "plain", ME_ELIGIBLE, NULL);
}

/* Addresses without relocation: the words contain them, or the loader fills them in. */
TEST_EACH(eligible_refuses_patchable_entries_without_relocations, 3)
{
	static const char *const flags[] = {"-O2 -no-pie", "-O2 -pie", "-O2 -no-pie -static"};
	struct me_eligible e;

	fixture_build(&f, "c", flags[_i],
		      "__attribute__((patchable_function_entry(8, 0), noinline))\n"
		      "int patched(int n) { return n % 7 + 3; }\n"
		      "__attribute__((noinline)) int plain(int n) { return n % 9 + 5; }\n"
		      "int main(int argc, char **argv) { return patched(argc) + plain(argc); }\n");
	e = judge(&f);
	is(&f, &e, "patched", ME_REFUSED_PROBE, "patchable");
	is(&f, &e, "plain", ME_ELIGIBLE, NULL);
	me_eligible_fini(&e);
}

TEST(eligible_refuses_a_real_probe)
{
	AUTO(me_eligible_fini) struct me_eligible e = {0};

	/* Only the location, where nothing but the note names it. */
	fixture_build(
		&f, "assembler", ASM,
		START FUNC(
			"probed",
			" mov %edi, %eax\n ret\n") ".section .note.stapsdt, \"\", \"note\"\n .balign 4\n"
						   " .long 8, 24 + 3, 3\n .asciz \"stapsdt\"\n"
						   " .quad probed, 0, 0\n .byte 0, 0, 0\n .balign 4\n");
	e = judge(&f);
	is(&f, &e, "probed", ME_REFUSED_PROBE, "probe");
}

/*
 * Functions that others know by the bounds of a section, by a table, or among the frames of the stack. A program that
 * only calls the unwinder gets answers for copies; one that has its address in data does not.
 */
TEST_EACH(eligible_refuses_code_known_by_its_place, 4)
{
	static const char *const flags[] = {"-O2 -no-pie", "-O2 -pie", "-O2 -no-pie -fno-plt",
					    "-O2 -pie -DBY_POINTER"};
	bool by_pointer = _i == 3;
	struct me_eligible e;

	fixture_build(
		&f, "c", flags[_i],
		"#include <stdio.h>\n#include <unwind.h>\n"
		"#define KEEP __attribute__((noinline))\n"
		"__attribute__((section(\"insides\"))) KEEP int inner(int n) { return n % 7 + 3; }\n"
		"KEEP int sled(int n) {\n"
		"	if (n == 77) goto on;\n"
		"	__asm__ goto(\"1: nopl 0(%%rax,%%rax,1)\\n.pushsection xray_instr_map,\\\"a\\\"\\n\"\n"
		"		     \".quad 1b - ., 0\\n.popsection\" : : : : on);\n"
		"	return n + 1;\non: return n * 9; }\n"
		"KEEP int looked_for(int n) { puts(\"\"); return n % 9 + 5; }\n"
		"#ifdef BY_POINTER\nvoid *(*volatile ask)(void *) = _Unwind_FindEnclosingFunction;\n"
		"#else\n#define ask _Unwind_FindEnclosingFunction\n#endif\n"
		"KEEP int asks(void *at) { return ask(at) == (void *)looked_for; }\n"
		"int main(int argc, char **argv) { return inner(argc) + sled(argc) + looked_for(argc)"
		" + asks(argv); }\n");
	e = judge(&f);
	is(&f, &e, "inner", ME_REFUSED_RANGE, "bounds");
	/* The linker's relocations tell of a place in its middle, too. */
	ck_assert(e.verdict[fixture_func(&f, "sled")] != ME_ELIGIBLE);
	is(&f, &e, by_pointer ? "looked_for" : "asks", ME_REFUSED_ASKED, "stack");
	is(&f, &e, by_pointer ? "asks" : "looked_for", ME_ELIGIBLE, NULL);
	me_eligible_fini(&e);
}

static void file_is(const char *flags, const char *source, int want, const char *reason)
{
	struct mp_err err = {""};
	struct fixture f;

	fixture_compile(&f, "assembler", flags, source);
	fixture_read(&f);
	ck_assert_msg(me_eligible_file(f.elf, &err) == want, "%s", err.msg);
	if (reason)
		ck_assert_msg(strstr(err.msg, reason) != NULL, "'%s' lacks '%s'", err.msg, reason);
	fixture_free(&f);
}

#define KEPT ASM " -Wl,--emit-relocs"

TEST(eligible_refuses_whole_files)
{
	static const char plain[] = START FUNC("f", " ret\n");

	file_is(KEPT, plain, 0, NULL);
	file_is(KEPT " -shared", plain, 0, NULL);
	file_is(ASM, plain, 0, NULL);
	file_is(KEPT, START FUNC("f", " ret\n") ".section .gopclntab, \"a\"\n.quad 0\n", -EPERM,
		"Go");
	file_is(KEPT, START FUNC("f", " ret\n") ".section .note.go.buildid, \"a\"\n.quad 0\n",
		-EPERM, "Go");
	file_is(KEPT, START FUNC("f", " ret\n") ".section __managedcode, \"ax\"\nret\n", -EPERM,
		".NET");
	file_is(KEPT, START FUNC("f", " ret\n") ".section .svm_heap, \"a\"\n.quad 0\n", -EPERM,
		"GraalVM");
	file_is(KEPT, START FUNC("f", " ret\n") ".section .llvm_stackmaps, \"a\"\n.quad 0\n",
		-EPERM, "stack maps");
	file_is(KEPT, START FUNC("_kDartVmSnapshotInstructions", " ret\n"), -EPERM, "Dart");
	file_is(KEPT, START FUNC("f", " ret\n") ".section .note.morph, \"a\"\n.quad 0\n", -EPERM,
		"already optimised");
	file_is(KEPT " -shared -Wl,-z,notext", START FUNC("f", " movabs $d, %rax\n ret\n"), -EPERM,
		"text relocations");
	file_is(ASM, START FUNC("f", " lea etext(%rip), %rax\n ret\n"), -EPERM, "etext");
	file_is(KEPT, ".globl start\nstart: mov d(%rip), %eax\n hlt\n.data\nd: .quad 0\n", -EPERM,
		"unwind");
}

#define FIXED	     ASM " -no-pie"
#define AND_CONSTANT " .byte 0x25\n .long etext - . - 4\n"
#define CONSTANT     " .byte 0x48, 0xb8, 0x68\n .long etext\n .byte 0, 0, 0\n"

/* Bytes that would name the end of the code as an operand, where instructions begin elsewhere. */
TEST(eligible_tells_operands_from_other_bytes)
{
	file_is(FIXED, START FUNC("f", AND_CONSTANT CONSTANT " ret\n"), 0, NULL);
	/* Without unwind information, it is not known where instructions begin. */
	file_is(FIXED, START "g:" AND_CONSTANT " ret\n" FUNC("f", " ret\n"), -EPERM, "etext");
	/* Behind a jump, data may stand, unless a branch leads there. */
	file_is(FIXED, START FUNC("f", " jmp 2f\n1:" AND_CONSTANT "2: ret\n"), -EPERM, "etext");
	file_is(FIXED, START FUNC("f", " je 1f\n jmp 2f\n1:" AND_CONSTANT "2: ret\n"), 0, NULL);
	file_is(FIXED, START FUNC("f", " .byte 0x8b, 0x05\n .long etext - . - 4\n ret\n"), -EPERM,
		"etext");
	file_is(FIXED, START FUNC("f", " mov $etext, %eax\n ret\n"), -EPERM, "etext");
	file_is(FIXED, START FUNC("f", " cmp etext, %ecx\n ret\n"), -EPERM, "etext");
	file_is(FIXED, START FUNC("f", " movq $etext, 8(%rsp)\n ret\n"), -EPERM, "etext");
	/* Only so many are looked at. */
	file_is(FIXED, START FUNC("f", " .rept 20\n" AND_CONSTANT " .endr\n ret\n"), -EPERM,
		"etext");
}
