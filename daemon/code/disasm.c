// SPDX-License-Identifier: Apache-2.0
/*
 * disasm - instructions as text through Zydis; see disasm.h. Decides to write mnemonics as
 * objdump and gdb do if Zydis differs.
 */
#include "daemon/code/disasm.h"

#include <Zycore/Format.h>
#include <Zydis/Zydis.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct md_disasm {
	ZydisDecoder decoder;
	ZydisFormatter formatter;
};

/* Return: true for vector instructions, whose registers already give the operand size. */
static bool has_wide_register(const ZydisDecodedInstruction *insn, const ZydisDecodedOperand *ops)
{
	for (int i = 0; i < insn->operand_count_visible; i++) {
		if (ops[i].type != ZYDIS_OPERAND_TYPE_REGISTER)
			continue;
		switch (ZydisRegisterGetClass(ops[i].reg.value)) {
		case ZYDIS_REGCLASS_XMM:
		case ZYDIS_REGCLASS_YMM:
		case ZYDIS_REGCLASS_ZMM:
		case ZYDIS_REGCLASS_MMX:
		case ZYDIS_REGCLASS_MASK: return true;
		default: break;
		}
	}
	return false;
}

static char suffix_of(uint16_t bits)
{
	return bits == 8 ? 'b' : bits == 16 ? 'w' : bits == 32 ? 'l' : 'q';
}

/*
 * Writes "jne" for Zydis' "jnz", as objdump and gdb do. Return: false: the instruction has no
 * condition.
 */
static bool print_condition(const ZydisDecodedInstruction *insn, char *text, size_t size)
{
	static const char *const names[][2] = {{"z", "e"},   {"nz", "ne"}, {"nb", "ae"},
					       {"nbe", "a"}, {"nl", "ge"}, {"nle", "g"}};
	const char *name = ZydisMnemonicGetString(insn->mnemonic);
	int len = insn->meta.category == ZYDIS_CATEGORY_COND_BR ? 1
		  : insn->meta.category == ZYDIS_CATEGORY_SETCC ? 3
		  : insn->meta.category == ZYDIS_CATEGORY_CMOV	? 4
								: 0;

	for (size_t i = 0; len && i < sizeof(names) / sizeof(names[0]); i++) {
		if (strcmp(name + len, names[i][0]))
			continue;
		snprintf(text, size, "%.*s%s", len, name, names[i][1]);
		return true;
	}
	return false;
}

static ZydisFormatterFunc default_mnemonic;

/* Prints the mnemonic as assemblers write it. */
static ZyanStatus print_mnemonic(const ZydisFormatter *formatter, ZydisFormatterBuffer *buffer,
				 ZydisFormatterContext *context)
{
	const ZydisDecodedInstruction *insn = context->instruction;
	const ZydisDecodedOperand *ops = context->operands;
	const char *name = ZydisMnemonicGetString(insn->mnemonic);
	char text[32];
	ZyanString *out;

	bool att = formatter->style == ZYDIS_FORMATTER_STYLE_ATT;

	if (print_condition(insn, text, sizeof(text)))
		;
	else if (att && (insn->mnemonic == ZYDIS_MNEMONIC_MOVSX ||
			 insn->mnemonic == ZYDIS_MNEMONIC_MOVSXD ||
			 insn->mnemonic == ZYDIS_MNEMONIC_MOVZX))
		snprintf(text, sizeof(text), "%.4s%c%c", name, suffix_of(ops[1].size),
			 suffix_of(ops[0].size));
	else if (att && has_wide_register(insn, ops))
		snprintf(text, sizeof(text), "%s", name);
	else
		return default_mnemonic(formatter, buffer, context);
	ZYAN_CHECK(ZydisFormatterBufferAppend(buffer, ZYDIS_TOKEN_MNEMONIC));
	ZYAN_CHECK(ZydisFormatterBufferGetString(buffer, &out));
	return ZyanStringAppendFormat(out, "%s", text);
}

static int setup(struct md_disasm *d, bool intel)
{
	ZydisFormatterStyle style = intel ? ZYDIS_FORMATTER_STYLE_INTEL : ZYDIS_FORMATTER_STYLE_ATT;
	const void *hook = (const void *)&print_mnemonic;
	ZydisFormatter *f = &d->formatter;

	if (ZYAN_FAILED(ZydisDecoderInit(&d->decoder, ZYDIS_MACHINE_MODE_LONG_64,
					 ZYDIS_STACK_WIDTH_64)) ||
	    ZYAN_FAILED(ZydisFormatterInit(f, style)))
		return -EINVAL;
	if (ZYAN_FAILED(ZydisFormatterSetHook(f, ZYDIS_FORMATTER_FUNC_PRINT_MNEMONIC, &hook)))
		return -EINVAL;
	default_mnemonic = (ZydisFormatterFunc)hook;
	ZydisFormatterSetProperty(f, ZYDIS_FORMATTER_PROP_HEX_UPPERCASE, ZYAN_FALSE);
	ZydisFormatterSetProperty(f, ZYDIS_FORMATTER_PROP_ADDR_PADDING_ABSOLUTE,
				  ZYDIS_PADDING_DISABLED);
	ZydisFormatterSetProperty(f, ZYDIS_FORMATTER_PROP_DISP_PADDING, ZYDIS_PADDING_DISABLED);
	ZydisFormatterSetProperty(f, ZYDIS_FORMATTER_PROP_IMM_PADDING, ZYDIS_PADDING_DISABLED);
	ZydisFormatterSetProperty(f, ZYDIS_FORMATTER_PROP_FORCE_RELATIVE_RIPREL, ZYAN_TRUE);
	return 0;
}

int md_disasm_new(bool intel, struct md_disasm **out)
{
	struct md_disasm *d = calloc(1, sizeof(*d));
	int r;

	if (!d)
		return -ENOMEM;
	r = setup(d, intel);
	if (r)
		free(d);
	else
		*out = d;
	return r;
}

void md_disasm_free(struct md_disasm *disasm)
{
	free(disasm);
}

char *md_disasm_text(struct md_disasm *d, const uint8_t *bytes, size_t avail, uint64_t vaddr,
		     uint8_t *len)
{
	ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];
	ZydisDecodedInstruction insn;
	char text[256];

	*len = 1;
	if (ZYAN_FAILED(ZydisDecoderDecodeFull(&d->decoder, bytes, avail, &insn, operands)))
		return strdup("(bad)");
	/* Do not show the register of a long no-op. */
	if (insn.mnemonic == ZYDIS_MNEMONIC_NOP && insn.operand_count_visible > 1)
		insn.operand_count_visible = 1;
	if (ZYAN_FAILED(ZydisFormatterFormatInstruction(&d->formatter, &insn, operands,
							insn.operand_count_visible, text,
							sizeof(text), vaddr, NULL)))
		return strdup("(bad)");
	*len = insn.length;
	return strdup(text);
}
