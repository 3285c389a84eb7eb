-- SPDX-License-Identifier: MIT
-- Work for an interpreter: calls in calls, errors that are caught, coroutines, sorting by
-- a function, patterns, floating results, metamethods, and collecting what is left.
local function fib(n)
	return n < 2 and n or fib(n - 1) + fib(n - 2)
end

local function fails(n)
	if n == 0 then
		error({ code = 7 })
	end
	return fails(n - 1) + 1
end

local sum = fib(9)
for i = 1, 4 do
	local ok, e = pcall(fails, i % 9)
	sum = sum + (ok and 0 or e.code)
	ok, e = pcall(string.rep)
	sum = sum + #e
end

local function walk(t, depth)
	if depth > 0 then
		coroutine.yield(depth)
		walk(t, depth - 1)
	end
end
for i = 1, 5 do
	for d in coroutine.wrap(function() walk({}, i) end) do
		sum = sum + d
	end
end

local list = {}
for i = 1, 30 do
	list[i] = (i * 7919) % 101 + i / 3
end
table.sort(list, function(a, b) return a > b end)
for i = 1, #list do
	sum = sum + math.sqrt(list[i]) * math.sin(i) + math.fmod(list[i], 7)
end

local vector = setmetatable({}, {
	__index = function(t, k) return k * 2 end,
	__add = function(a, b) return b + 1 end,
	__len = function() return 3 end,
	__call = function(self, x) return x .. "!" end,
})
local words = {}
for i = 1, 9 do
	sum = (vector + sum) + vector[i] + #vector
	words[#words + 1] = vector(string.format("%d %5.3f %s", i, i / 7, ("x"):rep(i % 5)))
end
local text = table.concat(words, ",")
sum = sum + select(2, text:gsub("(%d+)%s([%d.]+)", "%2 %1"))
for w in text:gmatch("%w+") do
	sum = sum + (tonumber(w) or #w)
end
words, list = nil, nil
collectgarbage()
print(string.format("%.9g", sum), string.format("%q", 1 / 3), #text)
