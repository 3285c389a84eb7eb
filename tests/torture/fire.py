# SPDX-License-Identifier: MIT
"""Three threads that parse, match, pack and throw, for as many rounds as a line says."""
import json
import re
import sys
import threading
import zlib


def work(k, rounds):
    acc = 0
    for i in range(rounds):
        text = json.dumps({"a": [i, k, "x%d" % i], "b": {"c": i * 1.5}})
        if json.loads(text)["a"][0] != i:
            acc ^= 0xbad
        acc = zlib.crc32(re.sub(r"\d", "#", text).encode(), acc)
        try:
            if i % 7 == 0:
                raise ValueError(i)
        except ValueError as e:
            acc ^= e.args[0]
    result[k] = acc


result = [0] * 3
rounds = int(sys.stdin.readline())
threads = [threading.Thread(target=work, args=(k, rounds)) for k in range(3)]
for t in threads:
    t.start()
for t in threads:
    t.join()
print(result, flush=True)
sys.stdin.readline()
