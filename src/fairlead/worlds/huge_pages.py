"""use_huge_pages: keeps the memory of a command in pages of 2 MiB, if the system offers them.

A simulation follows pointers through hundreds of megabytes. The processor remembers where about
2,000 pages are. With pages of 4 KiB, it often has to find a page first, which takes a sixth of the
CPU time.

Most Linux distributions provide huge pages only in ranges of memory for which a program requests
them with `madvise`. CPython makes no such request. It allocates objects in arenas of 1 MiB. Each
arena is a new mapping, which is smaller than a huge page. So `use_huge_pages` makes two changes:

1. It extends the heap of the C library once, by more than most commands need, and requests huge
   pages for the extension. The system provides a page when it is first used, so the unused part of
   the extension takes no memory.
2. It makes CPython allocate arenas from this heap, with `aligned_alloc`. CPython still releases an
   arena with `munmap`, which returns the memory to the system. The C library does not notice: it
   does not access a block between its allocation and `free`, and `free` is never called.

The addresses of a released arena are not used again, and the system cannot take back small free
blocks between released arenas. A server that runs for days would need more and more memory.
"""

from __future__ import annotations

import ctypes
import os
import resource
import sys
from mmap import PAGESIZE
from pathlib import Path
from typing import Final

_EXTENSION_BYTES_MAX: Final = 2000 << 20  # M_TOP_PAD is an int
_EXTENSION_BYTES_MIN: Final = 256 << 20
_HUGE_PAGE_BYTES: Final = 2 << 20
_PROBE_BYTES: Final = 8 << 20
_LATER_EXTENSION_BYTES: Final = 64 << 20
# Parameters of mallopt (malloc.h). By default, `free` would return the unused extension to the
# system, and each arena would be a mapping of its own. 32 MiB is the largest size that glibc
# accepts as the limit between the heap and mappings.
_M_TRIM_THRESHOLD: Final = -1
_M_TOP_PAD: Final = -2
_M_MMAP_THRESHOLD: Final = -3
_NEVER_TRIM: Final = -1
_MAPPED_BLOCK_BYTES_MIN: Final = 32 << 20
_MADV_HUGEPAGE: Final = 14  # mman.h; mmap.MADV_HUGEPAGE exists only on Linux
_SETTINGS: Final = Path("/sys/kernel/mm/transparent_hugepage")
_OVERCOMMIT: Final = Path("/proc/sys/vm/overcommit_memory")
_NEVER_OVERCOMMIT: Final = "2"
# Variables with which users choose or configure an allocator.
_USERS_CHOICES: Final = ("GLIBC_TUNABLES", "LD_PRELOAD", "PYTHONMALLOC")


class _ArenaAllocator(ctypes.Structure):
    """CPython's PyObjectArenaAllocator: `alloc(ctx, size)` and `free(ctx, arena, size)`."""

    _fields_ = (
        ("ctx", ctypes.c_void_p),
        ("alloc", ctypes.c_void_p),
        ("free", ctypes.c_void_p),
    )


def use_huge_pages() -> None:
    """Allocate further objects in huge pages, unless `obstacle` returns a reason not to.

    Call this function once, early in a process that ends with its command.
    """
    if obstacle():
        return
    library = ctypes.CDLL(None)
    extension_bytes = min(_memory_bytes() // 2, _EXTENSION_BYTES_MAX)
    if _extend_heap(library, extension_bytes):
        _allocate_arenas_from_heap(library)


def obstacle() -> str:
    """Return why this process must not or cannot use huge pages, or ""."""
    if sys.platform != "linux":
        return "the system is not Linux"
    for name in _USERS_CHOICES:
        if os.environ.get(name):
            return f"{name} is set"
    if not _has_huge_pages():
        return f"{_SETTINGS / 'enabled'} is not madvise or always"
    if not hasattr(ctypes.CDLL(None), "mallopt"):
        return "the C library is not glibc"
    return _limit()


def _limit() -> str:
    """Return what limits memory that a process reserves without using it, or ""."""
    limits = resource.RLIMIT_AS, resource.RLIMIT_DATA
    if any(resource.getrlimit(limit)[0] != resource.RLIM_INFINITY for limit in limits):
        return "ulimit -v or -d limits memory"
    try:
        if _OVERCOMMIT.read_text().strip() == _NEVER_OVERCOMMIT:
            return f"{_OVERCOMMIT} is {_NEVER_OVERCOMMIT}"
    except OSError:
        return f"{_OVERCOMMIT} cannot be read"
    return "there is little memory" if _memory_bytes() < 2 * _EXTENSION_BYTES_MIN else ""


def _has_huge_pages() -> bool:
    """Return whether the system provides huge pages of 2 MiB to programs that request them."""
    try:
        is_never = "[never]" in (_SETTINGS / "enabled").read_text()
        page_bytes = int((_SETTINGS / "hpage_pmd_size").read_text())
    except (OSError, ValueError):
        return False
    return not is_never and page_bytes == _HUGE_PAGE_BYTES


def _memory_bytes() -> int:
    return os.sysconf("SC_PHYS_PAGES") * PAGESIZE


def _extend_heap(library: ctypes.CDLL, extension_bytes: int) -> bool:
    """Extend the heap by `extension_bytes`, and request huge pages for the extension.

    Return whether both succeeded.
    """
    library.malloc.argtypes = (ctypes.c_size_t,)
    library.malloc.restype = ctypes.c_void_p
    library.free.argtypes = (ctypes.c_void_p,)
    library.sbrk.argtypes = (ctypes.c_ssize_t,)
    library.sbrk.restype = ctypes.c_void_p
    library.madvise.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)

    library.mallopt(_M_MMAP_THRESHOLD, _MAPPED_BLOCK_BYTES_MIN)
    library.mallopt(_M_TRIM_THRESHOLD, _NEVER_TRIM)
    library.mallopt(_M_TOP_PAD, extension_bytes)
    block = library.malloc(_PROBE_BYTES)
    library.mallopt(_M_TOP_PAD, _LATER_EXTENSION_BYTES)
    if block is None:
        return False
    library.free(block)
    end = library.sbrk(0)
    if not 0 < end - block <= extension_bytes + _EXTENSION_BYTES_MIN:  # not from the heap
        return False
    first = -(-block // _HUGE_PAGE_BYTES) * _HUGE_PAGE_BYTES
    last = end // _HUGE_PAGE_BYTES * _HUGE_PAGE_BYTES
    return bool(library.madvise(first, last - first, _MADV_HUGEPAGE) == 0)


def _allocate_arenas_from_heap(library: ctypes.CDLL) -> None:
    """Make CPython allocate arenas with `aligned_alloc(alignment, size)`.

    CPython passes the field `ctx` as the first argument. Arenas begin at the beginning of a page,
    because `munmap` accepts no other address.
    """
    allocator = _ArenaAllocator()
    ctypes.pythonapi.PyObject_GetArenaAllocator(ctypes.byref(allocator))
    allocator.ctx = PAGESIZE
    allocator.alloc = ctypes.cast(library.aligned_alloc, ctypes.c_void_p)
    ctypes.pythonapi.PyObject_SetArenaAllocator(ctypes.byref(allocator))
