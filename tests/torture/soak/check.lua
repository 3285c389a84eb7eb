-- SPDX-License-Identifier: MIT
-- wrk: what nginx has to answer; one that differs is counted, and told in the end.
local bodies = { ["/a"] = string.rep("a", 100) .. "\n", ["/b"] = string.rep("bc", 20000) .. "\n" }
local asked = { "/a", "/b", "/gone" }
local n = 0
wrong = 0
local threads = {}
function setup(thread)
	table.insert(threads, thread)
end
function request()
	n = n + 1
	return wrk.format("GET", asked[n % 2 + 1])
end
function response(status, headers, body)
	if status ~= 200 or (body ~= bodies["/a"] and body ~= bodies["/b"]) then
		wrong = wrong + 1
	end
end
function done(summary)
	local all = 0
	for _, t in ipairs(threads) do
		all = all + t:get("wrong")
	end
	local e = summary.errors
	print(string.format("result %d %d", summary.requests, all + e.connect + e.read + e.write + e.status + e.timeout))
end
