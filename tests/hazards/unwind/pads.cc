// SPDX-License-Identifier: Apache-2.0
// Landing pads: in hot and in cold code, only for cleanups, for rethrown and nested exceptions,
// function-try-blocks, destructors that catch, exceptions that are stored and thrown elsewhere.
// moves: main
// flags: -pthread
// link: -pthread
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "../hazard.h"

static int alive, order;

struct guard {
	int n;
	explicit guard(int n) : n(n) { alive++; }
	~guard()
	{
		alive--;
		order = order * 31 + n;
	}
};

struct base {
	virtual ~base() {}
	virtual int what() const { return 1; }
};
struct left : virtual base {
	int what() const override { return 2; }
};
struct right : virtual base {
	int what() const override { return 3; }
};
struct both : left, right {
	int what() const override { return 4; }
};

KEEP int thrower(int n)
{
	guard g(n);

	switch (n % 9) {
	case 1: throw n;
	case 2: throw std::string("two");
	case 3: throw left();
	case 4: throw both();
	case 5: throw std::out_of_range("five");
	case 6: throw static_cast<const char *>("six");
	case 7: throw std::make_unique<int>(n);
	default: return n;
	}
}

KEEP int cleanup_only(int n)
{
	guard a(n + 1), b(n + 2);
	std::string s(n % 40, 'x');
	std::vector<guard> v;

	v.reserve(4);
	v.emplace_back(n + 3);
	return thrower(n) + (int)s.size();
}

struct member {
	guard g;
	int v;
	explicit member(int n) try : g(n), v(cleanup_only(n)) {
		order += v;
	} catch (int) {
		order = order * 7 + 1;
		throw std::runtime_error("from a function-try-block");
	}
};

KEEP int rethrows(int n)
{
	try {
		member m(n);
		return m.v;
	} catch (const std::runtime_error &) {
		guard g(77);
		try {
			throw;
		} catch (const std::exception &) {
			order += 5;
			throw;
		}
	}
}

struct catches_in_destructor {
	int n;
	~catches_in_destructor()
	{
		try {
			cleanup_only(n);
		} catch (...) {
			order = order * 3 + 2;
		}
	}
};

KEEP int all(int n)
{
	catches_in_destructor d{n + 1};

	try {
		return rethrows(n);
	} catch (const base &b) {
		return 100 * b.what();
	} catch (const std::string &s) {
		return (int)s.size();
	} catch (const std::out_of_range &e) {
		return e.what()[0];
	} catch (const char *s) {
		return s[1];
	} catch (const std::exception &) {
		return 5000;
	} catch (...) {
		return 6000;
	}
}

static int compare_throws(const void *a, const void *b)
{
	int x = *(const int *)a, y = *(const int *)b;

	if (x + y == 19)
		throw x * y;
	return x - y;
}

/* Through C code without exceptions but with unwind information. */
KEEP int through_c()
{
	int v[16];

	for (int i = 0; i < 16; i++)
		v[i] = (i * 7 + 3) % 16;
	try {
		qsort(v, 16, sizeof(v[0]), compare_throws);
	} catch (int e) {
		return e;
	}
	return -1;
}

KEEP void nested(int depth)
{
	try {
		if (!depth)
			throw std::runtime_error("bottom");
		nested(depth - 1);
	} catch (...) {
		std::throw_with_nested(std::runtime_error("level"));
	}
}

KEEP int depth_of(const std::exception &e)
{
	try {
		std::rethrow_if_nested(e);
	} catch (const std::exception &inner) {
		return 1 + depth_of(inner);
	}
	return 1;
}

/* A loop whose hot part throws and catches repeatedly. */
KEEP long often(int times)
{
	long sum = 0;

	for (int i = 0; i < times; i++) {
		try {
			if (i % 3 == 0)
				throw i;
			sum += i;
		} catch (int v) {
			sum -= v;
			continue;
		}
		sum ^= 5;
	}
	return sum;
}

int main()
{
	std::exception_ptr kept;
	long sum = 0;

	for (int i = 0; i < 60; i++)
		sum = sum * 31 + all(i);
	printf("%ld %d %d\n", sum, order, alive);
	printf("%d %ld\n", through_c(), often(1000));
	try {
		nested(9);
	} catch (const std::exception &e) {
		printf("%d deep\n", depth_of(e));
	}
	std::thread([&] {
		try {
			cleanup_only(4);
		} catch (...) {
			kept = std::current_exception();
		}
	}).join();
	try {
		std::rethrow_exception(kept);
	} catch (const right &r) {
		printf("kept %d\n", r.what());
	}
	printf("%d alive\n", alive);
	return 0;
}
