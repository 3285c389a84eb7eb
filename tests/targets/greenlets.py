# SPDX-License-Identifier: MIT
"""Greenlets that switch from within C functions (sorting, substituting, mapping), so
that their C stacks are copied away and back.  Each line that comes in names a case and
how often.  "goes" leaves some away until "comes"."""
import re
import sys
from functools import reduce

from greenlet import greenlet, getcurrent


def away(value):
    return getcurrent().parent.switch(value)


def sorts(n):
    return sorted(range(n), key=lambda v: away(v) * -7 % 11)


def substitutes(n):
    return re.sub("[0-9]", lambda m: str(away(int(m.group())) % 10), "0123456789"[:n])


def maps(n):
    return list(map(lambda v: away(v) + 1, range(n)))


def deep(n):
    return away(n) if n == 0 else reduce(lambda a, b: a + b, [deep(n - 1), n])


def fails(n):
    try:
        return max(range(n), key=lambda v: 1 // (n // 2 - away(v)))
    except ZeroDivisionError:
        return "caught"


ALL = [sorts, substitutes, maps, deep, fails]


def begin(n):
    some = [greenlet(f) for f in ALL]
    return [(g, g.switch(3 + n % 6)) for g in some]


def end(some):
    said = []
    while some:
        g, value = some.pop(0)
        value = g.switch(value)
        if g.dead:
            said.append(str(value))
        else:
            some.append((g, value))
    return " ".join(sorted(said))


kept = None
print("ready", flush=True)
for line in sys.stdin:
    case, times = line.split()
    for i in range(int(times)):
        if case == "runs":
            result = end(begin(i))
        elif case == "goes":
            result, kept = "", begin(5)
        elif case == "comes":
            result = end(kept)
    print("result", case, result, flush=True)
    print("done", case, flush=True)
