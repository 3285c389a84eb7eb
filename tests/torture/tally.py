#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""What the runs of one module came to, in a folder of its own.

    tally.py add DIR MODULE LIST TABLE MAPS ERR   one run: what "ukprobe list" and
                                                  "stat --json" said, the target's maps
    tally.py row DIR MODULE                       its line of the table

Addresses become offsets in the file, so runs add up.  After each run the counts
are held against the code: control goes from an instruction that is no branch to
the next one, so that one was hit as often at least, and exactly as often where
nothing else leads there.  A count that breaks this is wrong, and "add" fails.
"""
import json
import os
import pickle
import re
import subprocess
import sys

# An ending thread or process, an exception or a signal may leave between two instructions.
SLACK = 64


class Code:
    """Instructions of a file: next address, and what ends a straight line."""

    FLOW = re.compile(r"(bnd |notrack |rep |repz |repnz |addr32 |data16 |cs |ds |\(bad\))*"
                      r"(j|call|ret|loop|xbegin|xabort|syscall|sysenter|int|ud|hlt|iret|\(bad\))")

    def __init__(self, path):
        self.order = []
        self.flow = set()
        self.targets = set()
        out = subprocess.Popen(["objdump", "-d", "-w", "--no-show-raw-insn", path],
                               stdout=subprocess.PIPE, text=True, errors="replace")
        for line in out.stdout:
            colon = line.find(":")
            if not line.startswith(" ") or colon < 0:
                continue
            at = int(line[:colon], 16)
            text = line[colon + 1:].strip()
            self.order.append(at)
            if self.FLOW.match(text):
                self.flow.add(at)
                word = re.search(r"\b([0-9a-f]+)(?: <|$)", text)
                if word and "*" not in text:
                    self.targets.add(int(word.group(1), 16))
            else:
                # lea and mov of a code address
                word = re.search(r"# ([0-9a-f]+)", text)
                if word and text.startswith("lea"):
                    self.targets.add(int(word.group(1), 16))
                if text.startswith("endbr"):
                    self.targets.add(at)
        if out.wait():
            sys.exit(f"objdump could not read {path}")


class Module:
    def __init__(self, path):
        self.path = path
        self.code = Code(path)
        self.entries = self.find_entries()
        self.form = {}       # offset: "jump" or why not
        self.hits = {}
        self.refused = {}    # reason: most places in one run
        self.runs = 0
        self.traps = 0

    def find_entries(self):
        text = subprocess.run(["readelf", "-wf", self.path], capture_output=True, text=True,
                              errors="replace").stdout
        return {int(m, 16) for m in re.findall(r" FDE .* pc=([0-9a-f]+)\.\.", text)}


def find_map(maps, module):
    """The bias of the module's code, and its file."""
    for line in open(maps):
        f = line.split(None, 5)
        path = f[5].strip() if len(f) > 5 else ""
        name = os.path.basename(path)
        if "x" in f[1] and path.startswith("/") and (
                name == module or name.startswith(module + ".") or
                name.startswith(module + "-")):
            start, offset = int(f[0].split("-")[0], 16), int(f[2], 16)
            return start - offset - delta(path, offset), path
    sys.exit(f"{module} is not in {maps}")


def delta(path, offset):
    """p_vaddr - p_offset of the segment that is mapped from offset."""
    text = subprocess.run(["readelf", "-lW", path], capture_output=True, text=True).stdout
    for line in text.splitlines():
        f = line.split()
        if len(f) > 6 and f[0] == "LOAD":
            at, vaddr, size = (int(x, 16) for x in (f[1], f[2], f[4]))
            if at & ~4095 <= offset < at + size and "E" in "".join(f[6:-1]):
                return vaddr - at
    return 0


def read_list(m, path, bias):
    forms = {}
    for line in open(path):
        f = line.split(None, 4)
        if len(f) < 5:
            continue
        why = f[4].strip()
        for word in ("[OPTIMIZED]", "[DISABLED]"):
            why = why.replace(word, "").strip()
        forms[int(f[0], 16) - bias] = "jump" if why.startswith("jump") else why.removeprefix("int3: ")
    # The best form that it was seen in; a launched run was looked at too early.
    for at, form in forms.items():
        if m.form.get(at) != "jump" and (at not in m.form or "on its way" not in form):
            m.form[at] = form
    return forms


def read_refused(m, path):
    for line in open(path, errors="replace"):
        found = re.match(r"ukprobe: +(\d+): (.*)|ukprobe: (\d+) places are not probed: (.*)", line)
        if found:
            n, why = (found.group(1) or found.group(3)), (found.group(2) or found.group(4))
            m.refused[why] = max(m.refused.get(why, 0), int(n))


def check_counts(m, hits):
    """Pairs of neighbours whose counts cannot both be right."""
    wrong = []
    code = m.code
    for here, after in zip(code.order, code.order[1:]):
        if here in code.flow or here not in hits or after not in hits:
            continue
        a, b = hits[here], hits[after]
        if b + SLACK < a or (b < a and a - b > a // 1000 and a - b > 8):
            wrong.append((here, a, after, b))
    return wrong


def add(folder, module, listing, table, maps, err):
    store = os.path.join(folder, module + ".tally")
    bias, path = find_map(maps, module)
    if os.path.exists(store):
        with open(store, "rb") as f:
            m = pickle.load(f)
    else:
        m = Module(path)
    forms = read_list(m, listing, bias)
    read_refused(m, err)
    with open(table) as f:
        result = json.load(f)
    hits = {int(p["address"], 16) - bias: p["hits"] for p in result["by_place"]}
    for at, n in hits.items():
        m.hits[at] = m.hits.get(at, 0) + n
        m.form.setdefault(at, "not seen in the list")
    m.traps += sum(n for at, n in hits.items() if forms.get(at) != "jump")
    m.runs += 1
    wrong = check_counts(m, hits)
    with open(store, "wb") as f:
        pickle.dump(m, f)
    jumps = sum(form == "jump" for form in forms.values())
    print(f"places {len(hits)} jump {jumps} hit {result['hit']} hits {result['hits']}")
    for here, a, after, b in wrong[:20]:
        print(f"WRONG COUNT: {a} at {here:#x} ({forms.get(here)}), "
              f"{b} at {after:#x} ({forms.get(after)})")
    return 1 if wrong else 0


def percent(part, whole):
    return f"{100 * part / whole:.1f}" if whole else "-"


def row(folder, module):
    with open(os.path.join(folder, module + ".tally"), "rb") as f:
        m = pickle.load(f)
    probed = len(m.form)
    hit = sum(n > 0 for n in m.hits.values())
    jumps = sum(form == "jump" for form in m.form.values())
    entries = [at for at in m.entries if at in m.form]
    entry_jumps = sum(m.form[at] == "jump" for at in entries)
    refused = sum(m.refused.values())
    print(f"{module:<16} {probed:>8} {refused:>8} {hit:>8} {percent(hit, probed):>6} "
          f"{jumps:>8} {percent(jumps, probed):>6} {probed - jumps:>7} "
          f"{percent(entry_jumps, len(entries)):>7} {sum(m.hits.values()):>12}")
    why = {}
    for form in m.form.values():
        if form != "jump":
            why[form] = why.get(form, 0) + 1
    for reason, n in sorted(why.items(), key=lambda x: -x[1]):
        print(f"    base form {n:>8}  {reason}")
    for reason, n in sorted(m.refused.items(), key=lambda x: -x[1]):
        print(f"    refused   {n:>8}  {reason}")
    return 0


if __name__ == "__main__":
    if sys.argv[1:2] == ["add"] and len(sys.argv) == 8:
        sys.exit(add(*sys.argv[2:]))
    if sys.argv[1:2] == ["row"] and len(sys.argv) == 4:
        sys.exit(row(*sys.argv[2:]))
    sys.exit(__doc__)
