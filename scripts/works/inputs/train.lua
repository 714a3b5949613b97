-- SPDX-License-Identifier: Apache-2.0
-- Training work for the Lua interpreter: a broad mix of what scripts do (calls, strings, patterns,
-- tables, closures, metatables, coroutines, numbers). test.lua runs other programs.
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

-- Configuration text: split, match, look up, convert; templates filled in from it.
local function configuration(rounds)
	local lines, sum = {}, 0
	for i = 1, 60 do
		lines[i] = ("  key_%d = %d.%d ; note %s"):format(i, i * 3, i % 10, ("z"):rep(i % 9))
	end
	local text = table.concat(lines, "\n")
	for r = 1, rounds do
		local values = {}
		for line in text:gmatch("[^\n]+") do
			local key, value = line:match("^%s*([%w_]+)%s*=%s*([%d.]+)")
			values[key] = tonumber(value) + r
			local at = line:find(";", 1, true)
			sum = sum + (line:byte(at + 7) or 0) + #line:sub(at + 2, -1)
		end
		local filled = ("<{key_1}|{key_20}|{none}>"):gsub("{([%w_]+)}", function(name)
			return values[name] and ("%.1f"):format(values[name])
		end)
		sum = sum + #filled + #filled:reverse() + select(2, filled:gsub("|", ", "))
		if filled:lower() < "<4" then sum = sum + 1 end
	end
	return sum
end

-- Splits arithmetic into tokens; a stack machine runs it. Bad input raises an error.
local function tokens(rounds)
	local function tokenise(src)
		local out, at = {}, 1
		while at <= #src do
			local s, e, number = src:find("^%s*(%d+)", at)
			if s then
				out[#out + 1] = math.tointeger(number) or 0
			else
				s, e, number = src:find("^%s*([-+*%%^])", at)
				if not s then error({ at = at }) end
				out[#out + 1] = number
			end
			at = e + 1
		end
		return out
	end
	local function run(list)
		local stack, top = {}, 0
		for _, t in ipairs(list) do
			if type(t) == "number" then
				top = top + 1
				stack[top] = t
			else
				local b, a = stack[top], stack[top - 1]
				top = top - 1
				if t == "+" then stack[top] = a + b
				elseif t == "-" then stack[top] = a - b
				elseif t == "*" then stack[top] = a * b
				elseif t == "%" then stack[top] = b ~= 0 and a % b or 0
				else stack[top] = a ^ 0.5 end
			end
		end
		return stack[1]
	end
	local sum, failed = 0, 0
	for i = 1, rounds do
		local ok, v = pcall(function()
			return run(tokenise(i .. " 3 * 17 + " .. (i % 11 == 0 and "?" or i % 13) .. " %"))
		end)
		if ok then sum = sum + v else failed = failed + v.at end
	end
	return sum, failed
end

local function fft(bits)
	local n = 1 << bits
	local re, im = {}, {}
	for i = 0, n - 1 do re[i], im[i] = math.sin(i * 0.1), 0.0 end
	local j = 0
	for i = 0, n - 2 do
		if i < j then re[i], re[j], im[i], im[j] = re[j], re[i], im[j], im[i] end
		local m = n >> 1
		while m >= 1 and j & m ~= 0 do j = j ~ m; m = m >> 1 end
		j = j | m
	end
	local len = 2
	while len <= n do
		local angle = -2 * math.pi / len
		for first = 0, n - 1, len do
			for k = 0, len // 2 - 1 do
				local wr, wi = math.cos(angle * k), math.sin(angle * k)
				local a, b = first + k, first + k + len // 2
				local xr, xi = re[b] * wr - im[b] * wi, re[b] * wi + im[b] * wr
				re[b], im[b] = re[a] - xr, im[a] - xi
				re[a], im[a] = re[a] + xr, im[a] + xi
			end
		end
		len = len * 2
	end
	return re[1] * re[1] + im[1] * im[1]
end

local function runge_kutta(steps)
	local x, v, h = 1.0, 0.0, 0.001
	local function force(p) return -p * (1.0 + 0.1 * p * p) end
	for _ = 1, steps do
		local k1, l1 = v, force(x)
		local k2, l2 = v + h / 2 * l1, force(x + h / 2 * k1)
		local k3, l3 = v + h / 2 * l2, force(x + h / 2 * k2)
		local k4, l4 = v + h * l3, force(x + h * k3)
		x = x + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
		v = v + h / 6 * (l1 + 2 * l2 + 2 * l3 + l4)
	end
	return x, v
end

local function life(size, rounds)
	local grid = {}
	for i = 1, size * size do grid[i] = i * i % 7 < 3 end
	for _ = 1, rounds do
		local new = {}
		for y = 0, size - 1 do
			for x = 0, size - 1 do
				local near = 0
				for dy = -1, 1 do
					for dx = -1, 1 do
						if dx == 0 and dy == 0 then goto skip end
						if grid[(y + dy) % size * size + (x + dx) % size + 1] then near = near + 1 end
						::skip::
					end
				end
				local at = y * size + x + 1
				new[at] = near == 3 or (near == 2 and grid[at])
			end
		end
		grid = new
	end
	local alive = 0
	for i = 1, #grid do if grid[i] then alive = alive + 1 end end
	return alive
end

local function permutations(n, rounds)
	local p, flips = {}, 0
	for r = 1, rounds do
		for i = 1, n do p[i] = (i * 5 + r) % n + 1 end
		for _ = 1, 12 do
			local first = p[1]
			if first == 1 then break end
			for i = 1, first // 2 do p[i], p[first - i + 1] = p[first - i + 1], p[i] end
			flips = flips + 1
		end
	end
	return flips
end

local function trees(depth, rounds)
	local function make(d)
		return d == 0 and {} or { make(d - 1), make(d - 1) }
	end
	local function count(t) return t[1] and 1 + count(t[1]) + count(t[2]) or 1 end
	local sum = 0
	for _ = 1, rounds do sum = sum + count(make(depth)) end
	return sum
end

local function arguments(rounds)
	local function total(...)
		local s = 0
		for i = 1, select("#", ...) do s = s + (select(i, ...) or 0) end
		return s, ...
	end
	local sum = 0
	for i = 1, rounds do
		local packed = table.pack(total(i, i % 5, nil, 2.5))
		sum = sum + packed[1] + packed.n + #tostring(i // 3)
		sum = sum + math.max(table.unpack({ i % 3, i % 4, i % 7 }))
	end
	return sum
end

print("fib", fib(math.floor(29 + scale)))
print("strings", build_strings(200000 * scale))
print("sort", sort_tables(60000 * scale))
print("closures", closures(2500000 * scale))
print("sieve", sieve(1000000 * scale))
print("objects", objects(700000 * scale))
print("coroutine", producer(350000 * scale))
print("words", words(800 * scale))
print("matmul", string.format("%.6f", matmul(140)))
print("configuration", configuration(2500 * scale))
print("tokens", tokens(60000 * scale))
print("fft", string.format("%.6f", fft(15)))
print("runge_kutta", string.format("%.6f %.6f", runge_kutta(400000 * scale)))
print("life", life(64, 25 * scale))
print("permutations", permutations(11, 60000 * scale))
print("trees", trees(14, 8 * scale))
print("arguments", arguments(250000 * scale))
