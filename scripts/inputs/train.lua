-- SPDX-License-Identifier: Apache-2.0
-- Training work for the Lua interpreter: calls, strings, tables, closures,
-- metatables, coroutines. What test.lua does is chosen to be other work.
local scale = tonumber(arg and arg[1]) or 1

local function fib(n)
	if n < 2 then return n end
	return fib(n - 1) + fib(n - 2)
end

local function build_strings(n)
	local parts, len = {}, 0
	for i = 1, n do
		local s = "item" .. i .. ":" .. (i * 7 % 1000)
		parts[#parts + 1] = s:upper()
		if i % 50 == 0 then
			len = len + #table.concat(parts, ",")
			parts = {}
		end
	end
	return len
end

local function sort_tables(n)
	local seed, t = 42, {}
	for i = 1, n do
		seed = (seed * 1103515245 + 12345) % 2147483648
		t[i] = seed
	end
	table.sort(t)
	local u = {}
	for i = 1, n do u[i] = t[n - i + 1] end
	table.sort(u, function(a, b) return a % 1000 < b % 1000 end)
	return t[1] + u[#u] % 1000
end

local function closures(n)
	local function counter(step)
		local c = 0
		return function(x) c = c + step + x; return c end
	end
	local fs, sum = {}, 0
	for i = 1, 20 do fs[i] = counter(i) end
	for i = 1, n do sum = sum + fs[i % 20 + 1](i % 3) end
	return sum
end

local function sieve(n)
	local flags, count = {}, 0
	for i = 2, n do flags[i] = true end
	for i = 2, n do
		if flags[i] then
			count = count + 1
			for j = i * i, n, i do flags[j] = false end
		end
	end
	return count
end

local Point = {}
Point.__index = Point
Point.__add = function(a, b) return setmetatable({ x = a.x + b.x, y = a.y + b.y }, Point) end
Point.__eq = function(a, b) return a.x == b.x and a.y == b.y end
function Point.new(x, y) return setmetatable({ x = x, y = y }, Point) end
function Point:norm1() return math.abs(self.x) + math.abs(self.y) end

local function objects(n)
	local p, sum = Point.new(0, 0), 0
	for i = 1, n do
		p = p + Point.new(i % 5 - 2, 2 - i % 7)
		if p == Point.new(1, 1) then sum = sum + 1 end
		sum = sum + p:norm1() % 17
	end
	return sum
end

local function producer(n)
	local co = coroutine.wrap(function()
		for i = 1, n do coroutine.yield(i, i * 2) end
	end)
	local sum = 0
	for _ = 1, n do
		local a, b = co()
		sum = sum + a + b
	end
	return sum
end

local function words(n)
	local text = ("the quick brown fox jumps over the lazy dog "):rep(20)
	local count, order = {}, 0
	for _ = 1, n do
		for w in text:gmatch("%a+") do count[w] = (count[w] or 0) + 1 end
	end
	for _, c in pairs(count) do order = order + c end
	return order
end

local function matmul(n)
	local function make(f)
		local m = {}
		for i = 1, n do
			m[i] = {}
			for j = 1, n do m[i][j] = f(i, j) end
		end
		return m
	end
	local a, b = make(function(i, j) return i - j end), make(function(i, j) return i / j end)
	local trace = 0
	for i = 1, n do
		local row, c = a[i], {}
		for j = 1, n do
			local s = 0
			for k = 1, n do s = s + row[k] * b[k][j] end
			c[j] = s
		end
		trace = trace + c[i]
	end
	return trace
end

print("fib", fib(math.floor(31 + scale)))
print("strings", build_strings(600000 * scale))
print("sort", sort_tables(200000 * scale))
print("closures", closures(8000000 * scale))
print("sieve", sieve(3000000 * scale))
print("objects", objects(2000000 * scale))
print("coroutine", producer(1000000 * scale))
print("words", words(3000 * scale))
print("matmul", string.format("%.6f", matmul(200)))
