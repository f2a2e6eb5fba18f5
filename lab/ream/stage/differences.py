# SPDX-License-Identifier: GPL-2.0-only
"""Describes differences between memory and the oracle, which a runner reports as numbers.

The words are added here because a change of the runner's sources makes another benchmark. They are
what differs by the kernel's names, what that means for a process, and then the numbers.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import partial

from ream.program.entries import VM_FLAGS, bits, frame, is_mapping, words

_WORD, _INT = 64, 32
_NUMBER = r"0x[0-9a-f]+|0"
_SAID = re.compile(
    rf"^(?P<who>.*?: )(?P<what>(?:[^:\n]|:(?! )|:(?= \d+ is ))+?) is (?P<it>{_NUMBER}),"
    rf" the oracle says (?P<right>{_NUMBER})$",
    re.MULTILINE,
)
_EXPECTED = re.compile(
    rf"(?P<what>entry \d+ of the (?:parent|child)|flags of VMA \d+):"
    rf" (?P<it>{_NUMBER}), expected (?P<right>{_NUMBER})$",
    re.MULTILINE,
)
_WORDS_ALONE = (
    (
        rf"byte of a (target|source)'s frame, which should hold page (\d+) is ({_NUMBER}), .*",
        r"byte of a \1's frame, which should hold page \2, is wrong: what was written is lost (\3)",
    ),
    (
        r"what is not to be on the caller's list, page (\d+) is .*",
        r"page \1 is on the caller's list, and must not be: its folio has a second owner",
    ),
    (r"(a broken link of .*?)(?: 0)? is 0, the oracle says 0", r"\1"),
    (r"(the limit of a batch is not that of earlier rows): .*", r"\1"),
    (rf"(\d+ calls found the zone contiguous), the oracle says ({_NUMBER}|\d+)", r"\1, not \2"),
)
"""Messages without useful numbers, and their descriptions."""
_DESCRIPTOR = re.compile(
    r"of the (?P<side>sources|targets): byte (?P<byte>\d+) of descriptor (?P<at>\d+) differs\n"
    rf".*: that word, of descriptor \d+ is (?P<it>{_NUMBER}),"
    rf" the oracle says (?P<right>{_NUMBER})$",
    re.MULTILINE,
)
_DESCRIBED = ("flags", "_mapcount", "_refcount")
"""Fields at the same place in all descriptors. Others are parts of a folio in some."""
_ENTRY = re.compile(r"(?<!of )\bentry(?:, used meanwhile,)? \d+$|^entry \d+ of the ")
_FIELD = re.compile(r"^(?:page|folio)->(\S+)(?: of \w+ \d+)?$")
_COUNT = re.compile(r"^(?P<name>.*?):? (?P<at>\d+)$")

RSS = ("MM_FILEPAGES", "MM_ANONPAGES", "MM_SWAPENTS", "MM_SHMEMPAGES")
_NAMES: Mapping[str, Sequence[str]] = {
    "the parent's counter": [f"the parent's {name}" for name in RSS],
    "the child's counter": [f"the child's {name}" for name in RSS],
    "the counter of /proc/vmstat": (
        *("pgmigrate_success", "pgmigrate_fail", "thp_migration_success"),
        *("thp_migration_fail", "thp_migration_split"),
    ),
    "the nodes' statistic": [
        f"{name} of node {node}"
        for name in ("NR_ISOLATED_ANON", "NR_ISOLATED_FILE", "NR_ANON_MAPPED", "NR_ANON_THPS")
        for node in (0, 1)
    ],
}
"""Names of numbers that are printed in sequence, in their order."""
_ADDRESSES = ("address", "the end of", "pfn", "byte", "word")
"""Words in the names of numbers that are not counts."""

_OLD = "a CPU may go on to use translations that are gone"
_MORE = "more is flushed than has to be, which costs time alone"
_TABLES = "the kernel counts other page tables than there are, and complains when the process exits"
_FREE = "watermarks are compared with a wrong number of free pages"
_RSS = "/proc/PID/status shows a wrong size, and the kernel complains when the process exits"
_TOO: Sequence[tuple[str, str, str]] = (
    ("folios freed", "memory is lost", "memory is freed that is still in use"),
    (
        "calls of swap_duplicate()",
        "a swap slot is freed while an entry still names it",
        "a swap slot is never freed",
    ),
    (
        "calls of free_swap_and_cache()",
        "swap slots are never freed",
        "swap slots are freed that are still in use",
    ),
    (
        "calls of folio_mark_dirty()",
        "what a process has written may be lost when the page is reclaimed",
        "clean pages are written back",
    ),
    (
        "calls of folio_mark_accessed()",
        "reclaim takes pages that were used for idle ones",
        "reclaim takes idle pages for ones that were used",
    ),
    (
        "calls of deferred_split_folio()",
        "a folio that is unmapped in part keeps all of its memory",
        "a folio is queued to be split that need not be",
    ),
    ("flushes before the end of a VMA", _OLD, _MORE),
    ("flushes", _OLD, _MORE),
    ("the first address that is flushed", _MORE, _OLD),
    ("the end of what is flushed", _OLD, _MORE),
    ("entries outside", "", "an operation has changed what is mapped elsewhere"),
    (
        "the steps of mm->write_protect_seq",
        "get_user_pages_fast() may pin a page while fork() shares it",
        "get_user_pages_fast() gives way where it need not",
    ),
    (
        "whether the child is on the mmlist",
        "swapoff does not find the child's pages",
        "swapoff looks at a process without pages in swap",
    ),
    (
        "pages read while a flush",
        "",
        "what another CPU writes to them meanwhile is lost",
    ),
    ("references to the anon_vma", "it is freed while in use", "it is never freed"),
    (
        "tlb_flush_batched of address space",
        "who changes entries later does not flush first, and " + _OLD,
        "",
    ),
    ("mm->pgtables_bytes", _TABLES, _TABLES),
    ("calls of arch_tlbbatch_flush()", _OLD, _MORE),
    ("calls of flush_tlb_mm_range()", _OLD, _MORE),
    ("left in mm->", "", "operations on the address space flush later for nothing"),
    (
        "managed_pages",
        "memory is never used by the page allocator",
        "watermarks are computed from memory that is not there",
    ),
    ("NR_FREE_PAGES", _FREE, _FREE),
    ("the parent's MM_", _RSS, _RSS),
    ("the child's MM_", _RSS, _RSS),
    ("MM_ANONPAGES of address space", _RSS, _RSS),
)
"""What too few or too many mean, by the beginning of a name."""

_UNUSED = "reclaim takes the page for one that was not used"
_BITS: Mapping[str, tuple[str, str]] = {
    "writable": (
        "each write takes a fault",
        "the process can write without a fault, also where it shares the page",
    ),
    "dirty": ("what was written may be lost when the page is reclaimed", "a clean page is written"),
    "saved-dirty": (
        "what was written may be lost when the page is reclaimed",
        "a clean page is written",
    ),
    "accessed": (_UNUSED, "reclaim takes the page for one that was used"),
    "soft-dirty": (
        "who follows writes by soft-dirty bits, as CRIU does, misses one",
        "who follows writes by soft-dirty bits, as CRIU does, saves the page again",
    ),
    "uffd-wp": (
        "userfaultfd is not told of the next write",
        "userfaultfd is told of a write that it did not ask for",
    ),
    "user": ("the process cannot use the page", "the process can use what is the kernel's"),
    "no-exec": ("the page can be executed", "the page cannot be executed"),
    "exclusive": (
        "a page that is the process's alone is copied when it is written",
        "a page that is shared counts as the process's alone, and is not copied when written",
    ),
}
"""What a missing or an extra bit of an entry means for a process."""


MOST_FLAGS = 6
"""The most flags that are named."""
ENTIRELY_MAPPED = 0x800000
"""The bit of _nr_pages_mapped for a huge entry that maps the folio. Source: mm/internal.h."""


def in_words(said: str, facts: Mapping[str, int], *, decodes: bool = True) -> str:
    """Return a runner's output with each difference from the oracle in words.

    facts: facts of the kernel; those that begin with PG_ are bits of a page's flags. decodes:
    whether entries are those of x86-64 and can be decoded.
    """
    for text, instead in _WORDS_ALONE:
        said = re.sub(f"{text}$", instead, said, flags=re.MULTILINE)
    said = _DESCRIPTOR.sub(partial(_descriptor, facts=facts), said)
    its = partial(_difference, facts=facts, decodes=decodes)
    for pattern in (_SAID, _EXPECTED):
        said = pattern.sub(its, said)
    return said


def _difference(found: re.Match[str], facts: Mapping[str, int], *, decodes: bool) -> str:
    what, is_, right = found["what"], int(found["it"], 16), int(found["right"], 16)
    raw = f"({found['it']}, where {found['right']} is right)"
    if field := _FIELD.match(what):
        text = _field(what, field[1], is_, right, facts)
    elif _ENTRY.search(what):
        text = f"{what} {_entry(is_, right)} {raw}" if decodes else f"{what} is wrong {raw}"
    elif what.startswith("flags of VMA"):
        text = f"{what} {_flags(is_, right, dict(enumerate(VM_FLAGS)))} {raw}"
    elif any(word in what for word in _ADDRESSES):
        name = _called(what)
        meaning = _meaning(name, is_, right)
        text = f"{name} is {found['it']}, and {found['right']} is right{meaning}"
    else:
        text = _count(what, _signed(is_, _WORD), _signed(right, _WORD))
    return found.groupdict().get("who", "") + text


# --- Entries ---------------------------------------------------------------------------


def _entry(is_: int, right: int) -> str:
    """Describe how an entry differs from the expected one."""
    if not is_:
        return f"is empty, and must not be: the process has lost the page; {words(right)} is right"
    if not right:
        return f"is left, and must be empty: the process can go on to use the page; {words(is_)}"
    moved = frame(is_) != frame(right)
    if is_mapping(is_) and is_mapping(right):
        said = [_set_and_unset(bits(is_), bits(right))]
        said += [_other_frame(is_, right)] if moved else []
        if any(said):
            return "; it ".join(filter(None, said)) + _means(bits(is_), bits(right))
    elif not (is_mapping(is_) or is_mapping(right) or moved) and bits(is_) != bits(right):
        return _set_and_unset(bits(is_), bits(right)) + _means(bits(is_), bits(right))
    return f"is {words(is_)}, where {words(right)} is right"


def _other_frame(is_: int, right: int) -> str:
    whose = "the process sees another page's memory"
    return f"is of frame {frame(is_):#x}, where {frame(right):#x} is right: {whose}"


def _means(is_: Sequence[str], right: Sequence[str]) -> str:
    """Describe what the first differing bit means for a process; empty if it is not known."""
    for name, (missing, set_) in _BITS.items():
        if (name in is_) != (name in right):
            return f": {set_ if name in is_ else missing}"
    return ""


def _set_and_unset(is_: Sequence[str], right: Sequence[str]) -> str:
    wrong = [name for name in is_ if name not in right]
    missing = [name for name in right if name not in is_]
    said = [f"is {' and '.join(wrong)}, and must not be"] if wrong else []
    said += [f"is not {' or '.join(missing)}, and must be"] if missing else []
    return "; it ".join(said)


# --- Fields and counts -----------------------------------------------------------------


def _field(what: str, names: str, is_: int, right: int, facts: Mapping[str, int]) -> str:
    """Describe how a field of a descriptor differs."""
    raw = f"({is_:#x}, where {right:#x} is right)"
    if names.startswith(("flags", "_flags")):
        bit_names: dict[int, str] = {}
        for name, bit in sorted(facts.items()):
            if name.startswith("PG_"):
                bit_names[bit] = f"{bit_names[bit]}/{name}" if bit in bit_names else name
        return f"{what} {_flags(is_, right, bit_names)} {raw}"
    if "_nr_pages_mapped" in names:
        return f"{what} is {_pages_mapped(is_)}, and {_pages_mapped(right)} is right {raw}"
    if "mapcount" in names:
        return _number(what, _mappings(is_), _mappings(right), "mapping", _MAPPINGS)
    if "refcount" in names:
        its = _signed(is_, _INT), _signed(right, _INT)
        return _number(what, *its, "reference", _REFERENCES)
    return f"{what} is {is_:#x}, and {right:#x} is right"


_MAPPINGS = "a page that is still mapped may count as unmapped", "a page counts as mapped for ever"
_REFERENCES = "the page is freed while it is in use", "the page is never freed"


def _pages_mapped(value: int) -> str:
    """Describe the mapped pages of a folio, and whether a huge entry maps all of it."""
    nr = f"{value & (ENTIRELY_MAPPED - 1)} pages"
    return f"{nr} and ENTIRELY_MAPPED" if value & ENTIRELY_MAPPED else nr


def _descriptor(found: re.Match[str], facts: Mapping[str, int]) -> str:
    """Describe how a descriptor differs, from the word that a runner prints."""
    byte, place = int(found["byte"]), f"descriptor {found['at']} of the {found['side']}"
    word = byte & ~(_WORD // 8 - 1)
    for name in _DESCRIBED:
        at, nr_bits = facts.get(f"page.{name}", -1), _WORD if name == "flags" else _INT
        if 0 <= byte - at < nr_bits // 8 and at >= 0:
            both = (int(found[one], 16) >> 8 * (at - word) for one in ("it", "right"))
            is_, right = (one & ((1 << nr_bits) - 1) for one in both)
            return _field(f"page->{name} of {place}", name, is_, right, facts)
    return f"byte {byte} of {place} is wrong ({found['it']}, where {found['right']} is right)"


def _mappings(value: int) -> int:
    """Return the number of mappings in a counter that begins at -1."""
    return _signed(value, _INT) + 1


def _number(what: str, is_: int, right: int, unit: str, means: tuple[str, str]) -> str:
    nr = abs(is_ - right)
    many = f"{nr} {unit}{'' if nr == 1 else 's'} too {'many' if is_ > right else 'few'}"
    return f"{what} is {is_}, and {right} is right: {many}, so {means[is_ > right]}"


def _flags(is_: int, right: int, names: Mapping[int, str]) -> str:
    """Name the flags that are set or missing, or count them if they are many."""
    if (nr := (is_ ^ right).bit_count()) > MOST_FLAGS:
        return f"is wrong in {nr} bits"
    return _set_and_unset([*_named(is_, names)], [*_named(right, names)])


def _named(value: int, names: Mapping[int, str]) -> Iterator[str]:
    for bit in range(_WORD):
        if value >> bit & 1:
            yield names.get(bit, f"bit {bit}")


def _count(what: str, is_: int, right: int) -> str:
    name = _called(what)
    at_all = name.removesuffix(", bound 0").removesuffix(", bound 1")
    bound = "" if at_all == name else "at least " if name.endswith("0") else "at most "
    return f"{at_all} is {is_}, and {bound}{right} is right{_meaning(name, is_, right)}"


def _called(what: str) -> str:
    """Return the name of a number to which a runner adds an index."""
    if not (found := _COUNT.match(what)):
        return what
    names, at = _NAMES.get(found["name"], ()), int(found["at"])
    if at < len(names):
        return names[at]
    # A name before a colon is a single number, whose index has no meaning.
    return found["name"] if f"{found['name']}:" in what else what


def _meaning(name: str, is_: int, right: int) -> str:
    for begin, few, many in _TOO:
        if name.startswith(begin) or f": {begin}" in name:
            its = many if is_ > right else few
            return f": {its}" if its else ""
    return ""


def _signed(value: int, nr_bits: int) -> int:
    """Return a number as a signed integer of this many bits."""
    value &= (1 << nr_bits) - 1
    return value - (1 << nr_bits) if value >> nr_bits - 1 else value
