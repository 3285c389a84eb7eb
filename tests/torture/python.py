# SPDX-License-Identifier: MIT
"""Runs the interpreter's own tests of the modules named and says how each test
went: nothing that depends on time or addresses.  Modules are imported first; the
tests start when a line comes."""
import gc
import importlib
import io
import sys
import unittest
import warnings

class Result(unittest.TestResult):
    def say(self, test, how):
        real.write(f"{how} {test.id()}\n")

    def addSuccess(self, test):
        self.say(test, "ok")

    def addFailure(self, test, err):
        self.say(test, "failed")

    def addError(self, test, err):
        self.say(test, "error " + err[0].__name__)

    def addSkip(self, test, reason):
        self.say(test, "skipped")

    def addExpectedFailure(self, test, err):
        self.say(test, "expected failure")


def tests_of(name):
    module, _, only = name.partition(":")
    loaded = importlib.import_module("test." + module)
    suite = unittest.defaultTestLoader.loadTestsFromModule(loaded)
    return [t for t in flat(suite) if not only or any(o in t.id() for o in only.split("+"))]


def flat(suite):
    for t in suite:
        if isinstance(t, unittest.TestSuite):
            yield from flat(t)
        else:
            yield t


from test import support  # noqa: E402
support.use_resources = []
support.verbose = False
real = sys.stdout
# Tests may leave a trace function, or print.
tests = [(n, tests_of(n)) for n in sys.argv[1:]]
warnings.simplefilter("ignore")
sys.stdin.readline()
for name, some in tests:
    result = Result()
    sys.stdout, sys.stderr, saved = io.StringIO(), io.StringIO(), sys.stderr
    try:
        unittest.TestSuite(some).run(result)
    finally:
        sys.stdout, sys.stderr = real, saved
    gc.collect()
    real.write(f"{name}: {len(some)} tests\n")
real.flush()
print("END-OF-RUN", flush=True)
sys.stdin.readline()
