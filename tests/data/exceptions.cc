// SPDX-License-Identifier: Apache-2.0
// Exceptions through moved frames: cleanups, catch in the same function, rethrow, nested, types
// that match by base class, exceptions that end a thread's work, std::terminate from noexcept.
#include <cstdio>
#include <cstdlib>
#include <csetjmp>
#include <csignal>
#include <exception>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>
#include <unistd.h>
#include <sys/wait.h>

static bool quiet;

struct Trace {
	const char *name;
	explicit Trace(const char *n) : name(n)
	{
		if (!quiet)
			std::printf("+%s ", name);
	}
	~Trace()
	{
		if (!quiet)
			std::printf("-%s ", name);
	}
};

struct Base { virtual ~Base() = default; int code = 1; };
struct Derived : Base { Derived() { code = 2; } };

__attribute__((noinline)) static int deep(int n, int kind)
{
	Trace t(n % 2 ? "odd" : "even");

	if (n == 0) {
		switch (kind) {
		case 0: throw 42;
		case 1: throw std::runtime_error("runtime");
		case 2: throw Derived();
		case 3: throw std::string("string");
		case 4: throw 2.5;
		default: return 7;
		}
	}
	std::unique_ptr<int> held(new int(n));
	return deep(n - 1, kind) + *held;
}

__attribute__((noinline)) static int catches(int kind)
{
	try {
		return deep(3, kind);
	} catch (int v) {
		std::printf("int %d ", v);
		return v;
	} catch (const std::exception &e) {
		std::printf("std %s ", e.what());
		return 100;
	} catch (Base &b) {
		std::printf("base %d ", b.code);
		return 200 + b.code;
	} catch (const std::string &s) {
		std::printf("string %s ", s.c_str());
		throw;
	}
}

__attribute__((noinline)) static int same_function(int n)
{
	int sum = 0;

	for (int i = 0; i < n; i++) {
		try {
			Trace t("loop");
			if (i % 3 == 1)
				throw i;
			sum += 1;
		} catch (int v) {
			sum += 10 * v;
			try {
				if (v > 4)
					throw std::to_string(v);
			} catch (const std::string &s) {
				sum += static_cast<int>(s.size()) * 1000;
			}
		}
	}
	return sum;
}

__attribute__((noinline)) static void nested(int n)
{
	try {
		deep(n, 1);
	} catch (...) {
		std::throw_with_nested(std::logic_error("outer"));
	}
}

__attribute__((noinline)) static void cannot_throw(int kind) noexcept
{
	Trace t("noexcept");

	deep(1, kind);
}

static void on_terminate()
{
	std::printf("terminate\n");
	std::fflush(stdout);
	_exit(9);
}

__attribute__((noinline)) static int in_child(int kind)
{
	std::fflush(stdout);
	pid_t pid = fork();
	int status = 0;

	if (pid == 0) {
		std::set_terminate(on_terminate);
		cannot_throw(kind);
		_exit(3);
	}
	waitpid(pid, &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

struct Frame {
	std::vector<int> v;
	explicit Frame(int n) : v(n)
	{
		if (n > 3)
			throw std::length_error("frame");
	}
};

__attribute__((noinline)) static int constructs(int n)
{
	int made = 0;

	try {
		std::vector<Frame> frames;
		for (int i = 0; i < n; i++) {
			frames.emplace_back(i);
			made++;
		}
	} catch (const std::length_error &e) {
		std::printf("%s ", e.what());
	}
	return made;
}

int main()
{
	for (int kind = 0; kind < 6; kind++) {
		try {
			std::printf("-> %d\n", catches(kind));
		} catch (const std::string &s) {
			std::printf("again %s\n", s.c_str());
		} catch (...) {
			std::printf("other\n");
		}
	}
	std::printf("same %d\n", same_function(9));
	try {
		nested(2);
	} catch (const std::exception &e) {
		std::printf("%s ", e.what());
		try {
			std::rethrow_if_nested(e);
		} catch (const std::exception &inner) {
			std::printf("in %s\n", inner.what());
		}
	}
	std::printf("child %d\n", in_child(0));
	std::printf("child %d\n", in_child(5));
	std::printf("made %d\n", constructs(10));
	quiet = true;
	for (int i = 0; i < 2000; i++)
		try {
			deep(0, i % 5);
		} catch (...) {
		}
	std::printf("done\n");
	return 0;
}
