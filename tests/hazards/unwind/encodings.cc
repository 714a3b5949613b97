// SPDX-License-Identifier: Apache-2.0
// Exception tables in forms that compilers rarely choose: encodings of call sites, types and bases, empty and
// overlapping call sites, chains of actions that share their ends, lists of allowed types. See encodings.S.
// asm: encodings.S
// moves: main
// levels: -O2
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <stdexcept>
#include <unwind.h>

#include "../hazard.h"

struct base {
	virtual ~base() {}
	int n = 7;
};
struct derived : base {
	int more = 9;
};

extern "C" KEEP void raise_kind(int kind)
{
	switch (kind) {
	case 0: return;
	case 1: throw kind;
	case 2: throw 2.5;
	case 3: throw base();
	case 4: throw derived();
	case 5: throw std::out_of_range("five");
	case 6: throw static_cast<const char *>("six");
	default: throw static_cast<short>(kind);
	}
}

static unsigned int unwound;
extern "C" KEEP void note_cleanup(int n) { unwound = unwound * 31 + n; }

extern "C" int uleb_sites(int), udata2_sites(int), udata4_sites(int), udata8_sites(int), sleb_sites(int), sdata2_sites(int),
	sdata4_sites(int), sdata8_sites(int), types_9b(int), types_1b(int), types_1c(int), types_9c(int), types_00(int),
	types_80(int), base_1b(int), base_00(int), empty_sites(int), many_sites(int), chained(int), allowed(int), no_type(int),
	lsda_1c(int), with_cleanup(int);
#ifndef __PIC__
extern "C" int person_1b(int), types_03(int), types_0b(int), base_03(int), lsda_03(int), person_03(int), lsda_00(int);
#endif

static const struct {
	const char *name;
	int (*function)(int);
} functions[] = {
#define F(f) {#f, f}
	F(uleb_sites), F(udata2_sites), F(udata4_sites), F(udata8_sites), F(sleb_sites), F(sdata2_sites), F(sdata4_sites),
	F(sdata8_sites), F(types_9b), F(types_1b), F(types_1c), F(types_9c), F(types_00), F(types_80), F(base_1b), F(base_00),
	F(empty_sites), F(many_sites), F(chained), F(allowed), F(no_type), F(lsda_1c), F(with_cleanup),
#ifndef __PIC__
	F(person_1b), F(types_03), F(types_0b), F(base_03), F(lsda_03), F(person_03), F(lsda_00),
#endif
};

KEEP static int outer(int (*f)(int), int kind)
{
	try {
		return f(kind);
	} catch (int i) {
		return 100 + i;
	} catch (double) {
		return 200;
	} catch (base &b) {
		return 300 + b.n;
	} catch (std::exception &e) {
		return 400 + e.what()[0];
	} catch (...) {
		return 500;
	}
}

int main(void)
{
	for (const auto &f : functions) {
		printf("%s:", f.name);
		for (int kind = 0; kind < 8; kind++)
			printf(" %d", outer(f.function, kind));
		printf(" %u\n", unwound);
		fflush(stdout);
	}
	return 0;
}
