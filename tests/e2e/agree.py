#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What a trace says against what the compiler's own instrumentation has written.

    agree.py NM TRACE HOOKS [--same-run] [--values NAME...] [--doubles NAME...]

NM is "nm" of the instrumented program, TRACE has the events e (entries) and x (returns,
with the fields v=$retval, d=$retval:f64 and ns=$duration), HOOKS is from
tests/targets/hooks.c.  In each thread, and these in the order of their first calls, both
have the same entries and exits in the same order.  A value that HOOKS has behind an exit is
that of the trace.  With --same-run both are of one process: the time that the probe saw
is not less than the compiler's, and almost always little more.
"""
import argparse
import re
import struct
import sys

ENTER, EXIT, VALUE = range(3)
# In each program, and not the compiler's; __wrap_* is ours.
RUNTIME = {"_start", "_init", "_fini", "deregister_tm_clones", "register_tm_clones",
           "__do_global_dtors_aux", "frame_dummy", "_dl_relocate_static_pie"}
LINE = re.compile(r"-(\d+) +\[\d+\] \S+ +[\d.]+: ([ex]): \(([^+ )]+)\S*(?: <- ([^+)]+)\))?(.*)")


def fail(*what):
    print(*what)
    sys.exit(1)


def read_names(path):
    names = {}
    for line in open(path):
        word = line.split()
        if len(word) == 3 and word[1] in "tT":
            names.setdefault(int(word[0], 16), word[2])
    return names


def read_hooks(path, names):
    """Threads in order of their first call; of each [kind, name, time, value]."""
    threads, skipped = {}, set()
    for time, what, tid, kind in struct.iter_unpack("<QQII", open(path, "rb").read()):
        calls = threads.setdefault(tid, [])
        if kind == VALUE:
            if calls[-1][0] != EXIT:
                fail("a value without an exit")
            calls[-1][3] = what
        else:
            calls.append([kind, names[what], time, None])
    return list(threads.values())


def read_trace(path, known):
    threads = {}
    for line in open(path, errors="replace"):
        m = LINE.search(line)
        if not m:
            fail("no such line:", line)
        tid, event, place, func, rest = m.groups()
        name = place if event == "e" else func
        if name in known:
            fields = dict(f.split("=") for f in rest.split()) if event == "x" else None
            threads.setdefault(tid, []).append([ENTER if event == "e" else EXIT, name, fields])
    return list(threads.values())


def same_order(trace, hooks):
    if len(trace) != len(hooks):
        fail(f"{len(trace)} threads in the trace, {len(hooks)} in the program")
    for mine, theirs in zip(trace, hooks):
        for i, (a, b) in enumerate(zip(mine, theirs)):
            if a[:2] != b[:2]:
                fail(f"call {i}: the trace has {mine[i - 3:i + 3]},\nthe program", theirs[i - 3:i + 3])
        if len(mine) != len(theirs):
            fail(f"{len(mine)} entries and exits, {len(theirs)} in the program",
                 (mine + theirs)[min(len(mine), len(theirs)):][:3])


def compare_values(trace, hooks, ints, doubles):
    n = 0
    for mine, theirs in zip(trace, hooks):
        for a, b in zip(mine, theirs):
            if b[3] is None:
                continue
            bits = struct.pack("<Q", b[3])
            if b[1] in doubles:
                got, want = float(a[2]["d"]), struct.unpack("<d", bits)[0]
                same = struct.pack("<d", got) == bits or (got != got and want != want)
            else:
                got, want = int(a[2]["v"], 16) & 0xffffffff, b[3] & 0xffffffff
                same = got == want
            if not same:
                fail(f"{b[1]} has returned {want}, the trace says {got}")
            n += 1
            (doubles if b[1] in doubles else ints)[b[1]] += 1
    return n


def durations(trace, hooks):
    """What the probe saw more than the compiler, in ns, of each call that came back."""
    more, total = [], 0
    for mine, theirs in zip(trace, hooks):
        stack = []
        for a, b in zip(mine, theirs):
            if b[0] == ENTER:
                stack.append(b)
                continue
            while stack[-1][1] != b[1]:  # left by longjmp()
                stack.pop()
            took = b[2] - stack.pop()[2]
            total += took
            more.append((int(a[2]["ns"]) - took, took))
    return more, total


def main():
    p = argparse.ArgumentParser()
    p.add_argument("nm")
    p.add_argument("trace")
    p.add_argument("hooks")
    p.add_argument("--same-run", action="store_true")
    p.add_argument("--values", nargs="*", default=[])
    p.add_argument("--doubles", nargs="*", default=[])
    o = p.parse_args()
    names = read_names(o.nm)
    hooks = read_hooks(o.hooks, names)
    own = {n for n in names.values() if n not in RUNTIME and not n.startswith("__wrap_")}
    trace = read_trace(o.trace, own)
    same_order(trace, hooks)
    calls = sum(c[0] == ENTER for t in hooks for c in t)
    back = sum(c[0] == EXIT for t in hooks for c in t)
    said = f"{len(hooks)} threads, {calls} calls, {back} came back"
    ints, doubles = dict.fromkeys(o.values, 0), dict.fromkeys(o.doubles, 0)
    said += f", {compare_values(trace, hooks, ints, doubles)} values"
    never = [name for d in (ints, doubles) for name, n in d.items() if not n]
    if never:
        fail("no value of", never)
    if o.same_run:
        more, total = durations(trace, hooks)
        # The clock is adjusted by up to 0.05 %.
        less = [(m, took) for m, took in more if m < -100 - took / 1000]
        if less:
            fail(f"{len(less)} calls took longer by the compiler's hooks:", less[:5])
        far = sum(m > 20000 + took / 100 for m, took in more)
        more = sorted(m for m, took in more)
        said += f", the probe's time is {more[len(more) // 2]} ns more at the median"
        if far * 100 > len(more):
            fail(f"{far} of {len(more)} durations are further away than 20 us and 1 %", said)
        said += f", {far} further than 20 us and 1 %"
    print(said)


main()
