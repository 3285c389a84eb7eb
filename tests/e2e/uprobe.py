# SPDX-License-Identifier: MIT
"""uprobe.py PID FILE OFFSET: one of the kernel's, by perf_event_open(), until stdin ends."""
import ctypes
import os
import struct
import sys

pid, path, offset = int(sys.argv[1]), sys.argv[2].encode(), int(sys.argv[3], 16)
with open("/sys/bus/event_source/devices/uprobe/type") as f:
    kind = int(f.read())
name = ctypes.create_string_buffer(path)
attr = ctypes.create_string_buffer(128)
# type, size, config, period, sample_type, read_format, flags, wakeup, bp_type, config1, config2
struct.pack_into("IIQQQQQIIQQ", attr, 0, kind, 128, 0, 0, 0, 0, 0, 0, 0, ctypes.addressof(name), offset)
fd = ctypes.CDLL(None, use_errno=True).syscall(298, attr, pid, -1, -1, 0)
if fd < 0:
    sys.exit("perf_event_open: " + os.strerror(ctypes.get_errno()))
print("set", flush=True)
sys.stdin.read()
print("count", struct.unpack("Q", os.read(fd, 8))[0], flush=True)
os.close(fd)
print("gone", flush=True)
