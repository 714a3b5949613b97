-- SPDX-License-Identifier: Apache-2.0
local sums, s = {}, 0
for i = 1, 2000000 do sums[i % 1000] = (sums[i % 1000] or 0) + i end
for i = 1, 1e7 do s = s + i % 7 end
collectgarbage()
print(sums[1], sums[999], s, pcall(error, "raised"))
print(string.rep("ab", 5):gsub("a", "c"))
