-- SPDX-License-Identifier: Apache-2.0
-- Test work for the Lua interpreter, unlike train.lua: numerical kernels,
-- back-tracking, pattern substitution, parsing, varargs, goto, pcall.
local short = arg and arg[1] == "short"
local function n(long, little) return short and little or long end

local function nbody(steps)
	local sun = 4 * math.pi * math.pi
	local b = {
		{ 0, 0, 0, 0, 0, 0, sun },
		{ 4.84, -1.16, -0.10, 0.60, 2.81, -0.02, 0.00095 * sun },
		{ 8.34, 4.12, -0.40, -1.01, 1.81, 0.008, 0.00028 * sun },
		{ 12.89, -15.11, -0.22, 1.08, 0.86, -0.01, 0.00004 * sun },
		{ 15.37, -25.91, 0.17, 0.97, 0.59, -0.03, 0.00005 * sun },
	}
	for _ = 1, steps do
		for i = 1, 5 do
			local p = b[i]
			for j = i + 1, 5 do
				local q = b[j]
				local dx, dy, dz = p[1] - q[1], p[2] - q[2], p[3] - q[3]
				local d2 = dx * dx + dy * dy + dz * dz
				local mag = 0.01 / (d2 * d2 ^ 0.5)
				local pm, qm = p[7] * mag, q[7] * mag
				p[4] = p[4] - dx * qm; p[5] = p[5] - dy * qm; p[6] = p[6] - dz * qm
				q[4] = q[4] + dx * pm; q[5] = q[5] + dy * pm; q[6] = q[6] + dz * pm
			end
		end
		for i = 1, 5 do
			local p = b[i]
			p[1] = p[1] + 0.01 * p[4]; p[2] = p[2] + 0.01 * p[5]; p[3] = p[3] + 0.01 * p[6]
		end
	end
	return b[1][1] + b[2][2] + b[3][3]
end

local function spectral(size)
	local function a(i, j)
		local ij = i + j - 1
		return 1.0 / (ij * (ij - 1) * 0.5 + i)
	end
	local function times(x, transposed)
		local y = {}
		for i = 1, size do
			local s = 0
			for j = 1, size do
				s = s + (transposed and a(j, i) or a(i, j)) * x[j]
			end
			y[i] = s
		end
		return y
	end
	local u, v = {}, nil
	for i = 1, size do u[i] = 1 end
	for _ = 1, 4 do
		v = times(times(u, false), true)
		u = times(times(v, false), true)
	end
	local uv, vv = 0, 0
	for i = 1, size do uv = uv + u[i] * v[i]; vv = vv + v[i] * v[i] end
	return math.sqrt(uv / vv)
end

local function queens(size)
	local count, cols, up, down = 0, {}, {}, {}
	local function place(row)
		if row > size then
			count = count + 1
			return
		end
		for c = 1, size do
			if cols[c] or up[row + c] or down[row - c] then goto continue end
			cols[c], up[row + c], down[row - c] = true, true, true
			place(row + 1)
			cols[c], up[row + c], down[row - c] = nil, nil, nil
			::continue::
		end
	end
	place(1)
	return count
end

local function mandelbrot(size)
	local inside = 0
	for py = 0, size - 1 do
		local ci = 2.0 * py / size - 1.0
		for px = 0, size - 1 do
			local cr = 2.0 * px / size - 1.5
			local zr, zi, k = 0.0, 0.0, 0
			while k < 50 and zr * zr + zi * zi <= 4.0 do
				zr, zi = zr * zr - zi * zi + cr, 2.0 * zr * zi + ci
				k = k + 1
			end
			if k == 50 then inside = inside + 1 end
		end
	end
	return inside
end

local function patterns(rounds)
	local log = {}
	for i = 1, 200 do
		log[i] = string.format("%04d-%02d-%02d host%d GET /a/b%d?x=%x 200 %d", 2000 + i % 30,
			i % 12 + 1, i % 28 + 1, i % 9, i, i * 31, i * 997 % 5000)
	end
	local text, total = table.concat(log, "\n"), 0
	for _ = 1, rounds do
		for y, m, path, size in text:gmatch("(%d+)%-(%d+)%-%d+ %w+ GET (%S+) 200 (%d+)") do
			total = total + y % 7 + m + #path + size % 10
		end
		local changed, k = text:gsub("x=(%x+)", function(h) return "y=" .. tonumber(h, 16) end)
		total = total + #changed + k + select(2, text:gsub("%s+", " "))
		if text:find("no such thing", 1, true) then total = 0 end
	end
	return total
end

-- A little calculator: recursive descent, errors through pcall.
local function calculate(rounds)
	local pos, src
	local expression
	local function peek() return src:match("^%s*(.)", pos) end
	local function take()
		local s, e = src:find("^%s*.", pos)
		pos = e + 1
		return src:sub(e, e), s
	end
	local function atom()
		local s, e = src:find("^%s*%d+", pos)
		if s then
			pos = e + 1
			return tonumber(src:sub(s, e))
		end
		if peek() ~= "(" then error("unexpected " .. tostring(peek())) end
		take()
		local v = expression()
		if peek() ~= ")" then error("expected )") end
		take()
		return v
	end
	local function term()
		local v = atom()
		while peek() == "*" or peek() == "/" do
			local op, w = take(), atom()
			v = op == "*" and v * w or v // w
		end
		return v
	end
	expression = function()
		local v = term()
		while peek() == "+" or peek() == "-" do
			local op, w = take(), term()
			v = op == "+" and v + w or v - w
		end
		return v
	end
	local sum, bad = 0, 0
	for i = 1, rounds do
		src, pos = string.format("(%d + 3) * (7 - %d) / 2 + %s", i % 100, i % 5,
			i % 10 == 0 and "x" or "11"), 1
		local ok, v = pcall(expression)
		if ok then sum = sum + v else bad = bad + 1 end
	end
	return sum, bad
end

local function varargs(rounds)
	local function pack(...) return select("#", ...), ... end
	local sum = 0
	for i = 1, rounds do
		local t = { pack(i, i + 1, nil, i & 7) }
		sum = sum + t[1] + (t[5] << 2 ~ 5) + #tostring(t[2])
	end
	return sum
end

print("nbody", string.format("%.9f", nbody(n(240000, 30000))))
print("spectral", string.format("%.9f", spectral(n(240, 70))))
print("queens", queens(n(9, 8)))
print("mandelbrot", mandelbrot(n(400, 120)))
print("patterns", patterns(n(400, 45)))
print("calculate", calculate(n(120000, 15000)))
print("varargs", varargs(n(1200000, 150000)))
