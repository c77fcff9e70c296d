"""Memory settings of the server process."""

import subprocess
import sys

import pytest

COUNT_MAPPED = """
import ctypes, sys
from fairlead.worlds.local.server.serve import map_large_blocks

class MallInfo(ctypes.Structure):  # malloc.h: struct mallinfo2
    _fields_ = [(name, ctypes.c_size_t) for name in (
        "arena", "ordblks", "smblks", "hblks", "hblkhd", "usmblks", "fsmblks", "uordblks",
        "fordblks", "keepcost")]

libc = ctypes.CDLL(None)
libc.malloc.restype, libc.malloc.argtypes = ctypes.c_void_p, [ctypes.c_size_t]
libc.free.argtypes = [ctypes.c_void_p]
libc.mallinfo2.restype = MallInfo
if sys.argv[1] == "fixed":
    map_large_blocks()
libc.free(libc.malloc(8 << 20))  # glibc would now map only blocks above 8 MiB
before = libc.mallinfo2().hblks
blocks = [libc.malloc(4 << 20) for _ in range(5)]
print(libc.mallinfo2().hblks - before)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="glibc only")
@pytest.mark.parametrize(("mode", "mapped"), [("fixed", 5), ("default", 0)])
def test_large_blocks_are_allocated_with_mmap(mode: str, mapped: int) -> None:
    command = (sys.executable, "-c", COUNT_MAPPED, mode)
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    assert int(done.stdout) == mapped
