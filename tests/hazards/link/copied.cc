// SPDX-License-Identifier: Apache-2.0
// A program has copies of a library's tables: of pointers to functions, of types and virtual functions. Protected
// functions, whose addresses differ or are equal as before; symbols that are unique in a process.
// flags: -pthread -fgnu-unique
// only: gcc
// link: -lcopied -ldl
// modes: pie nopie
// library: libcopied.so -DLIBRARY
// library: libunique.so -DUNIQUE
#include <cstdio>
#include <dlfcn.h>
#include <typeinfo>

#include "../hazard.h"

template <int n> struct counter {
	static int &value()
	{
		static int count = n;

		return count;
	}
};

typedef int function(int);
struct shape {
	virtual ~shape();
	virtual int area(int n) const;
	virtual function *pointer() const;
	int side = 3;
};

#if defined(LIBRARY)
extern "C" KEEP __attribute__((visibility("protected"))) int guarded(int n) { return n % 4 ? n * 3 : n - 9; }
extern "C" KEEP int open_one(int n) { return n % 5 ? n + 11 : guarded(n); }
KEEP static int hidden_one(int n) { return n % 3 ? n - 2 : n * 7; }
extern "C" {
extern function *const entries[3];
function *const entries[3] = {hidden_one, open_one, hidden_one};
}
shape::~shape() {}
int shape::area(int n) const { return side * n + counter<5>::value(); }
function *shape::pointer() const { return open_one; }
extern "C" int counts(void) { return ++counter<5>::value(); }
extern "C" function *open_pointer(void) { return open_one; }
#elif defined(UNIQUE)
extern "C" int counts_too(void) { return counter<5>::value() += 2; }
struct round : shape {
	int area(int n) const override { return shape::area(n) * 2 + side; }
};
extern "C" shape *make_round(void) { return new round; }
#else
extern "C" int guarded(int), open_one(int), counts(void);
extern "C" function *open_pointer(void);
extern "C" function *const entries[3];

struct square : shape {
	int area(int n) const override { return shape::area(n) + n * n; }
};

KEEP static int use(const shape &s, int n) { return s.area(n) + s.pointer()(n); }

int main(void)
{
	void *library = dlopen("libunique.so", RTLD_NOW);
	int (*counts_too)(void) = library ? (int (*)(void))dlsym(library, "counts_too") : nullptr;
	shape *(*make_round)(void) = library ? (shape * (*)(void)) dlsym(library, "make_round") : nullptr;
	long sum = 0;

	if (!counts_too || !make_round)
		return 2;
	for (int i = 0; i < 60; i++) {
		shape *r = make_round();
		square s;

		sum = sum * 31 + use(s, i) + use(*r, i) + entries[i % 3](i) + guarded(i) + open_one(i);
		sum = sum * 31 + counts() + counts_too() + counter<5>::value();
		delete r;
	}
	printf("%ld %d %d %d %d %d\n", sum, entries[0] == entries[2], entries[1] == OPAQUE(&open_one),
	       open_pointer() == OPAQUE(&open_one), typeid(shape) == typeid(square),
	       dlsym(RTLD_DEFAULT, "open_one") == (void *)OPAQUE(&open_one));
	return 0;
}
#endif
