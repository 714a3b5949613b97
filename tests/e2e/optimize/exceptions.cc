// SPDX-License-Identifier: Apache-2.0
// Exceptions of every kind: the output must not depend on the place of the code.
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <vector>

struct guard {
	int *p;
	guard(int *q) : p(q) { ++*p; }
	~guard() { --*p; }
};
struct base_error { virtual ~base_error() {} };
struct my_error : base_error { int v; my_error(int x) : v(x) {} };
struct other { int a[4]; };

static int live;
static volatile int sink;
#define NOINLINE __attribute__((noinline))

NOINLINE void thrower(int k)
{
	guard g(&live);
	std::string s(k + 20, 'y');

	if (k == 1) throw my_error(k);
	if (k == 2) throw std::runtime_error(std::string(40, 'x'));
	if (k == 3) throw 7;
	if (__builtin_expect(k == 4, 0)) throw std::string("text");
	if (k == 5) throw other();
	if (k == 6) throw &live;
	sink += k + s.size();
}

NOINLINE void spec(int k) throw(my_error, int) { guard g(&live); thrower(k == 2 || k > 3 ? 0 : k); }
NOINLINE void quiet(int k) noexcept { guard g(&live); thrower(k); }
NOINLINE int many(int a, int b, int c, int d, int e, int f, int g, int h)
{
	guard x(&live);
	if (a == 77) throw a;
	return a + b * c - d + e * f - g + h;
}
NOINLINE int deep(int n, int k)
{
	guard g(&live);
	if (n == 0) { thrower(k); return 1; }
	try { return deep(n - 1, k) + n; }
	catch (other &o) { if (n > 2) throw; return n; }
	catch (int i) { if (n % 2) throw i + 1; throw; }
}
NOINLINE int middle(int k)
{
	std::vector<int> v(10, k);
	guard g(&live);

	try {
		spec(k);
		v.push_back(many(1, 2, 3, 4, 5, 6, k, v[1]));
		v.push_back(deep(5, k));
		thrower(k);
	} catch (my_error &e) {
		v.push_back(e.v);
		if (k == 1) throw;
	} catch (int i) {
		v.push_back(many(i + 69 * (k == 9), 2, 3, 4, 5, 6, 7, 8));
		try { many(77, i, i, i, i, i, i, i); } catch (int j) { v.push_back(j); }
	} catch (const std::string &s) {
		v.push_back((int)s.size());
	} catch (int *p) {
		v.push_back(*p + 5);
		try { throw; } catch (void *) { v.push_back(11); }
	}
	for (int x : v) sink += x;
	return v.back();
}
int main(int argc, char **argv)
{
	int n = 0, rounds = argc > 1 ? atoi(argv[1]) : 3;

	for (int r = 0; r < rounds; r++) {
		for (int k = 0; k < 8; k++) {
			try { n = n * 31 + middle(k); }
			catch (const std::exception &e) { n += 100 + e.what()[3]; }
			catch (base_error &) { n += 1000; }
			catch (...) { n += 7; }
		}
	}
	printf("%d %d %d\n", n, live, sink);
	fflush(stdout);
	if (argc > 2)
		quiet(1); // terminates: noexcept
	return live;
}
