# SPDX-License-Identifier: MIT
"""pairs.py TABLE: of a stat of entries and returns of all functions of a module, is each
entry of a function whose returns are counted a return, or declared a miss?"""
import json
import sys
from collections import Counter

with open(sys.argv[1], encoding="utf-8") as f:
    table = json.load(f)
entries, returns, followed = Counter(), Counter(), set()
for place in table["by_place"]:
    if place["return"]:
        followed.add(place["address"])
        returns[place["address"]] += place["hits"]
    else:
        entries[place["address"]] += place["hits"]
called = [a for a in followed if entries[a]]
calls = sum(entries[a] for a in called)
back = sum(returns.values())
missed = table.get("missed", 0)
more = [a for a in followed if returns[a] > entries[a]]
names = {p["address"]: p["place"] for p in table["by_place"] if p["return"]}
print(f"{len(called)} of {len(followed)} functions called, {calls} calls, {back} returns, "
      f"{missed} missed {table.get('misses', {})}", end="")
if calls != back + missed or more or not calls:
    print(f", which is not all: {calls - back - missed};",
          "more returns than calls:", ", ".join(names[a] for a in more[:5]))
    least = sorted(called, key=lambda a: returns[a] - entries[a])[:8]
    print("fewest:", ", ".join(f"{names[a]} {entries[a]}/{returns[a]}" for a in least))
    sys.exit(1)
