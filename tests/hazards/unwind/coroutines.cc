// SPDX-License-Identifier: Apache-2.0
// C++20 coroutines: frames hold code addresses, and a number selects where to resume. Exceptions
// leave coroutines, and suspended coroutines are destroyed.
// flags: -std=c++20 -fcoroutines
// only: gcc
#include <coroutine>
#include <cstdio>
#include <stdexcept>
#include <utility>

#include "../hazard.h"

static int destroyed;
struct guard {
	~guard() { destroyed++; }
};

template <typename T> struct generator {
	struct promise_type {
		T value;
		generator get_return_object()
		{
			return generator{std::coroutine_handle<promise_type>::from_promise(*this)};
		}
		std::suspend_always initial_suspend() { return {}; }
		std::suspend_always final_suspend() noexcept { return {}; }
		std::suspend_always yield_value(T v)
		{
			value = v;
			return {};
		}
		void return_void() {}
		void unhandled_exception() { throw; }
	};
	std::coroutine_handle<promise_type> handle;
	explicit generator(std::coroutine_handle<promise_type> h) : handle(h) {}
	generator(generator &&o) : handle(std::exchange(o.handle, {})) {}
	~generator()
	{
		if (handle)
			handle.destroy();
	}
	bool next()
	{
		handle.resume();
		return !handle.done();
	}
	T value() { return handle.promise().value; }
};

static generator<long> numbers(long from, int kind)
{
	guard g;

	for (long i = from;; i++) {
		switch (kind) {
		case 0: co_yield i; break;
		case 1: co_yield i *i; break;
		case 2:
			if (i > from + 5)
				throw std::runtime_error("enough");
			co_yield -i;
			break;
		case 3:
			if (i > from + 3)
				co_return;
			co_yield i ^ 0x55;
			break;
		default: co_yield hazard_next(); co_yield i;
		}
	}
}

static generator<long> outer(int kind)
{
	guard g;
	auto in = numbers(kind * 10, kind);

	try {
		while (in.next())
			co_yield in.value() * 2;
	} catch (const std::exception &) {
		destroyed += 1000;
	}
	co_yield 77;
}

int main()
{
	long sum = 0;

	for (int kind = 0; kind < 5; kind++) {
		auto g = outer(kind);

		for (int i = 0; i < 15 && g.next(); i++)
			sum = sum * 31 + g.value();
	}
	printf("%ld %d\n", sum, destroyed);
	return 0;
}
