// SPDX-License-Identifier: Apache-2.0
// Pointers to functions that hold more than an address: pointers to members (the lowest bit means
// "virtual"), low bits used as tags. Also differences, sorted tables, consistent hashes of
// addresses, relative vtables, and pointers in a structure that is compared as a whole.
// levels: -O2
// flags: -std=c++17
// moves: main
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <functional>
#include <map>
#include <unordered_map>
#include <vector>

#include "../hazard.h"

struct shape {
	int n = 1;
	virtual ~shape() {}
	virtual int area(int k) { return n * k; }
	virtual int edge(int k) { return n + k; }
	NOINLINE int one(int k) { return n ^ k; }
	NOINLINE int two(int k) { return n - k; }
	NOINLINE int three(int k) { return k % 3 ? n : k; }
};
struct other {
	int m = 5;
	virtual int side(int k) { return m * k; }
};
struct square : shape, other {
	int area(int k) override { return k * k; }
	int side(int k) override { return k + m * 3; }
};

typedef int (shape::*method)(int);
static const method methods[] = {&shape::one, &shape::area, &shape::two, &shape::edge, &shape::three};

KEEP int call(shape &s, method m, int k) { return (s.*m)(k); }

KEEP int f0(int n) { return n + 1; }
KEEP int f1(int n) { return n * 2; }
KEEP int f2(int n) { return n ^ 3; }
KEEP int f3(int n) { return n % 5 ? n : 7; }
typedef int function(int);

/* The four low bits hold other data. */
KEEP uintptr_t tag(function *f, unsigned int bits) { return (uintptr_t)f | (bits & 15); }
KEEP int untag(uintptr_t v, int n) { return ((function *)(v & ~(uintptr_t)15))(n) + (int)(v & 15); }

struct entry {
	function *f;
	long cookie;
};
static const struct entry entries[] = {{f0, 1}, {f1, 2}, {f2, 3}, {f3, 4}};

int main()
{
	std::map<function *, int> by_address;
	std::unordered_map<void *, int> hashed;
	std::vector<function *> sorted = {f3, f1, f0, f2};
	function *const *found;
	square s;
	long sum = 0;

	for (int i = 0; i < 50; i++) {
		sum = sum * 31 + call(s, methods[i % 5], i);
		sum = sum * 31 + (methods[i % 5] == &shape::edge) + (methods[i % 5] == &shape::two) * 2;
	}
	for (int i = 0; i < 64; i++)
		sum = sum * 31 + untag(tag(entries[i % 4].f, i % 3 ? 5u : (unsigned int)i), i);
	for (int i = 0; i < 4; i++) {
		struct entry copy = entries[i];

		by_address[entries[i].f] = i;
		hashed[(void *)entries[i].f] = i * 3;
		sum = sum * 31 + (memcmp(&copy, &entries[i], sizeof(copy)) == 0);
	}
	sum += by_address[OPAQUE(f2)] * 100 + hashed[(void *)OPAQUE(f3)];
	std::sort(sorted.begin(), sorted.end(), std::less<>());
	found = &*std::lower_bound(sorted.begin(), sorted.end(), OPAQUE(f1), std::less<>());
	sum += *found == f1;
	sum += (uintptr_t)OPAQUE(f0) - (uintptr_t)entries[0].f;
	/* Check only the alignment that a program may rely on. */
	for (auto &e : entries)
		sum += (uintptr_t)e.f % 2;
	other *o = &s;
	sum = sum * 31 + o->side(4) + std::invoke(&other::side, *o, 5);
	printf("%ld\n", sum);
	return 0;
}
