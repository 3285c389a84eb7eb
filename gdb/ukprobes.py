# SPDX-License-Identifier: MIT
"""
Backtraces of a process that ukprobe has probes in.

    (gdb) source /usr/local/share/ukprobes/gdb/ukprobes.py

A probed function that is followed to its return has a stub's address where its
caller's would be, and a thread may stand in a copy of probed code.  An unwinder
leads from there to where the program really is; a frame filter hides the frames
that are ours.  It reads what the agent keeps in the target (src/wire: ctl.h,
instance.h, site.h, detour.h, whose layouts these are) and changes nothing.

    stub      the call's instance has the return address, or the function that
              is about to be called by the stub's way in
    slot      the site's map has the original pc, and what to add to sp
    detour    its map or its entries' has both, and which registers are saved

Processes that probe themselves by the library are not known here.
"""

import struct

import gdb
from gdb.FrameDecorator import FrameDecorator
from gdb.unwinder import Unwinder, register_unwinder

MAGIC, VERSION = 0x6C746370706B75, 9
STUB_SIZE, WAY_IN, STUB_CALL = 24, 9, 10
WAY_IN_CALL, STUB_PUSH = 5, 5  # behind the first instructions of way in and stub
INSTANCE_SIZE, LIVE = 200, 1
SLOT_SIZE, SITE_PCS = 64, 8
DETOUR_SIZE, WINDOW_INSNS, FRAME_WORDS = 88, 8, 37
PC_BEFORE, PC_AFTER, PC_SAVED, PC_CALLS = 1, 2, 8, 8
WORD_SS = 20

# In the order of struct pt_regs, and as the hardware numbers them.
PT_REGS = "r15 r14 r13 r12 rbp rbx r11 r10 r9 r8 rax rcx rdx rsi rdi".split()
HARDWARE = "rax rcx rdx rbx rsp rbp rsi rdi r8 r9 r10 r11 r12 r13 r14 r15".split()
KEPT = [r for r in HARDWARE if r != "rsp"]


class Target:
    """What lies in one stopped process."""

    def __init__(self):
        self.memory = gdb.selected_inferior()
        ctl = self.find("ukprobes-ctl")
        magic, version = self.read("<QI", ctl) if ctl else (0, 0)
        if magic != MAGIC or version != VERSION:
            raise LookupError
        self.ctl = ctl
        priv, sites, _, self.stubs, self.chunk, self.a_chunk, self.instances = self.read(
            "<QIIQIII", ctl + 32)
        (off,) = self.read("<Q", priv + 4096)
        self.first = priv + off
        self.sites = self.read_sites(sites) if sites else []
        self.detours = self.read_detours()

    def find(self, name):
        for line in gdb.execute("info proc mappings", to_string=True).splitlines():
            if "memfd:" + name in line:
                return int(line.split()[0], 16)
        return None

    def read(self, fmt, addr):
        return struct.unpack(fmt, self.memory.read_memory(addr, struct.calcsize(fmt)))

    def read_sites(self, table):
        mask, _ = self.read("<II", self.ctl + table)
        offs = self.read("<%dI" % (mask + 1), self.ctl + table + 8)
        return [self.read("<QQ", self.ctl + off) + (self.ctl + off,) for off in offs if off]

    def read_detours(self):
        found = []
        (off,) = self.read("<I", self.ctl + 96)
        while off:
            addr, buf, shape, size = self.read("<QQIH", self.ctl + off)
            found.append((addr, buf, size, self.ctl + shape, self.ctl + off))
            (off,) = self.read("<I", self.ctl + off + 84)
        return found

    def instance(self, pc):
        """Of the call whose stub pc is in: where in it, return address, frame, function."""
        chunk, off = divmod(pc - self.stubs, self.chunk)
        i = chunk * self.a_chunk + off // STUB_SIZE
        if pc < self.stubs or off // STUB_SIZE >= self.a_chunk or i >= self.instances:
            return None
        ret_addr, frame, func, state = self.read("<QQ16xQ16xI", self.first + i * INSTANCE_SIZE)
        return (off % STUB_SIZE, ret_addr, frame, func) if state == LIVE else None

    def in_stub(self, pc, sp):
        """As original(), of a thread in a stub, or of a frame that returns to one."""
        found = self.instance(pc)
        if not found:
            return None
        at, ret_addr, frame, func = found
        if at in (0, WAY_IN_CALL):
            return func + 1, frame, {}
        if at == WAY_IN:
            return ret_addr, sp, {}
        if at == WAY_IN + STUB_PUSH:
            return ret_addr, sp + 8, {}
        return self.read("<Q", sp) + (sp + 8, {}) if at == WAY_IN + STUB_CALL else None

    def is_called(self, pc, sp):
        """Of a frame that seems to return to a copy: it is about to be called by its stub."""
        for addr, buf, size, shape, at in self.detours:
            (copy,) = self.read("<H", at + 36 + 4)
            if pc != buf + copy:
                continue
            (way_in,) = self.read("<Q", sp - 8 - 8 * FRAME_WORDS + 8 * WORD_SS)
            found = self.instance(way_in)
            if found and found[0] == 0 and found[2] == sp - 8:
                return found[1], sp, {}
        return None

    def in_slot(self, pc, sp):
        """As original()."""
        for addr, slot, at in self.sites:
            if not 0 <= pc - slot < SLOT_SIZE:
                continue
            (npc,) = self.read("<B", at + 22)
            for i in range(min(npc, SITE_PCS)):
                off, flags, sp_adj, delta = self.read("<BBhi", at + 72 + 8 * i)
                if off == pc - slot:
                    saved = {HARDWARE[flags >> 4]: sp} if flags & PC_SAVED else {}
                    return addr + delta + 1, sp + sp_adj, saved
        return None

    def in_detour(self, pc, sp):
        for addr, buf, size, shape, at in self.detours:
            if 0 <= pc - buf < size:
                found = self.boundary(pc - buf, shape, at)
                if not found or not found[1] & (PC_BEFORE | PC_AFTER | PC_CALLS):
                    return None
                delta, _, words, saves = found
                frame = sp + 8 * words - 8 * FRAME_WORDS
                saved = {r: frame + 8 * i for i, r in enumerate(PT_REGS)
                         if saves >> i & 1 and frame + 8 * i >= sp}
                return addr + delta + 1, sp + 8 * words, saved
        return None

    def boundary(self, off, shape, at):
        saves, length, npc = self.read("<IHB", shape)
        for i in range(WINDOW_INSNS):
            insn, _, entry, _ = self.read("<BBHH", at + 36 + 6 * i)
            if 0 <= off - entry < length:
                found = self.search(shape + 8, npc, off - entry)
                if found:
                    return (insn + found[0],) + found[1:] + (saves,)
        (npc,) = self.read("<B", at + 24)
        found = self.search(at + DETOUR_SIZE, npc, off)
        return found + (saves,) if found else None

    def search(self, table, n, off):
        for i in range(n):
            o, flags, words, delta = self.read("<HBBi", table + 8 * i)
            if o == off:
                return delta, flags, words
        return None

    def original(self, pc, sp):
        """
        Where the program is, as pc, sp and the registers that are in memory.  In
        copies pc is one more: gdb takes a caller's for that behind a call, and
        looks before it.
        """
        for find in (self.in_stub, self.is_called, self.in_slot, self.in_detour):
            found = find(pc, sp)
            if found:
                return found
        return None


class Cache:
    """Read once a stop; None where nothing of ours is."""

    target, known = None, False

    @classmethod
    def forget(cls, *_):
        cls.known = False

    @classmethod
    def get(cls):
        if not cls.known:
            cls.target, cls.known = None, True
            try:
                cls.target = Target()
            except (LookupError, gdb.error):
                pass
        return cls.target


class FrameId:
    def __init__(self, sp, pc):
        self.sp, self.pc = sp, pc


class UkprobesUnwinder(Unwinder):
    def __init__(self):
        super().__init__("ukprobes")

    def __call__(self, pending):
        if pending.architecture().name() != "i386:x86-64":
            return None
        reg_pc, reg_sp = pending.read_register("rip"), pending.read_register("rsp")
        pc, sp = int(reg_pc) & (1 << 64) - 1, int(reg_sp) & (1 << 64) - 1
        target = Cache.get()
        if not target:
            return None
        to = target.original(pc, sp)
        if not to:
            return None
        saved = to[2]
        info = pending.create_unwind_info(FrameId(reg_sp, reg_pc))
        info.add_saved_register("rip", gdb.Value(to[0]).cast(reg_pc.type))
        info.add_saved_register("rsp", gdb.Value(to[1]).cast(reg_sp.type))
        for name in KEPT:
            value = pending.read_register(name)
            if name in saved:
                value = gdb.Value(target.read("<q", saved[name])[0]).cast(value.type)
            info.add_saved_register(name, value)
        return info


class Original(FrameDecorator):
    """What our unwinder made of a copy."""

    def address(self):
        return super().address() - 1


class UkprobesFilter:
    """Leaves out the frames that are ours."""

    def __init__(self):
        self.name, self.priority, self.enabled = "ukprobes", 100, True
        gdb.frame_filters[self.name] = self

    def filter(self, frames):
        target, last = Cache.get(), False
        for frame in frames:
            inner = frame.inferior_frame()
            pc, sp = inner.pc(), int(inner.read_register("rsp")) & (1 << 64) - 1
            if target and target.original(pc, sp):
                last = target.in_slot(pc, sp) or target.in_detour(pc, sp)
                continue
            yield Original(frame) if last else frame
            last = False


for event in (gdb.events.stop, gdb.events.new_objfile, gdb.events.exited, gdb.events.cont):
    event.connect(Cache.forget)
UkprobesFilter()
register_unwinder(None, UkprobesUnwinder(), replace=True)
