# SPDX-License-Identifier: GPL-2.0-only
"""What users see: the contents that each read of a program must find.

The prediction follows from the rules of the system calls alone. Where these leave room, as with
MADV_FREE, or with a private mapping of a file that changes, nothing is predicted.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace

from ream.program.grammar import ADVICE, FILE_KINDS, MAP_ANONYMOUS, MREMAP_MAYMOVE, SHARINGS
from ream.program.scene import Call

ENOMEM, EINVAL = -12, -22
_READABLE, _WRITABLE = 1, 2
_LOCKED = 0x2000
_UNSURE = 0x40000 | SHARINGS["droppable"]  # huge pages that may be missing, and memory that goes
_KEEP_SIZE, _PUNCH = 1, 3
_UFFD_WP = 2
_DROPS = {ADVICE["dontneed"], ADVICE["dontneed-locked"]}
_HOLD_WHAT_IS_WRITTEN = ("shmem", "disk", "huge", "large", "blocks")
_SHIFTS = {ADVICE[name] for name in ("dontfork", "wipeonfork", "hwpoison",
                                     "guard-install", "guard-remove")}  # fmt: skip
"""Advice after which nothing is predicted for these pages."""


_LEAVE_VMAS = {"read", "write", "mincore", "msync", "move_pages", "migrating", "pin", "unpin",
               "uffd_copy", "uffd_zero", "uffd_move", "uffd_poison", "uffd_wp"}  # fmt: skip
"""Calls on pages that split no VMA."""


@dataclass(frozen=True)
class Content:
    """Content of one page: a value that is given, or what page `index` of step `line` wrote.

    All zero stands for a page of zeroes.
    """

    line: int = 0
    index: int = 0
    value: int = 0


ZEROES = Content()


@dataclass(frozen=True)
class Expected:
    """Pages that one read must find: page i holds what step `line` wrote as page index + i."""

    page: int
    nr: int
    content: Content


@dataclass(frozen=True)
class Prediction:
    """What a call returns if later expectations are to hold (None: anything), and what it reads."""

    returned: int | None = None
    expected: tuple[Expected, ...] = ()


@dataclass(frozen=True)
class _Page:
    """A page of a process. Its content is its own, or that of an object's page."""

    protection: int
    content: Content | None = None
    obj: int | None = None
    offset: int = 0
    shared: bool = False
    since: int = 0
    """Number of the call after which a private page of a file is the file's."""
    together: int = 0
    """Stands for all calls that may have split its VMA; pages with the same are in one."""
    may_be_locked: bool = False
    is_sure: bool = True
    """Whether it is known that the page can be accessed."""


@dataclass
class _Object:
    """A file, or memory that is shared without one."""

    nr: int
    is_sure: bool = True
    is_sealed: bool = False
    """Whether calls on it may be refused."""
    contents: dict[int, Content | None] = field(default_factory=dict)
    changed: dict[int, int] = field(default_factory=dict)
    """Number of the call that changed a page last."""


_LEAVES: Mapping[int, Callable[[_Page], bool]] = {
    ADVICE["free"]: lambda page: page.obj is None,
    ADVICE["remove"]: lambda page: page.shared,
}
"""Advice after which pages of a kind may hold something else."""

Pages = dict[int, _Page]


def predict(calls: Iterable[Call]) -> list[Prediction]:
    """Predict each call, in order."""
    seen = _Seen()
    return [seen.after(call) for call in calls]


class _Seen:
    """All processes and objects after the calls so far."""

    def __init__(self) -> None:
        self.processes: dict[int, Pages] = {0: {}}
        self.objects: dict[int, _Object] = {}
        self.histories: dict[tuple[int, int], int] = {}
        self.now = 0
        self.line = 0

    def after(self, call: Call) -> Prediction:
        self.now += 1
        self.line = call.line
        pages = self.processes.get(call.arguments.get("process", 0), {})
        if {"process", "page"} <= set(call.arguments) and call.name not in _LEAVE_VMAS:
            self._split(call, pages)
        rule = getattr(self, f"after_{call.name}", None)
        if rule is None:
            return Prediction()
        found = rule(call.arguments, pages)
        assert isinstance(found, Prediction)
        return found

    def _together(self, before: int) -> int:
        return self.histories.setdefault((before, self.now), len(self.histories))

    def _split(self, call: Call, pages: Pages) -> None:
        """Note which pages a call may give a VMA of their own."""
        for page in _range(call.arguments):
            if page in pages:
                there = pages[page]
                locked = there.may_be_locked or call.name == "mlock"
                together = self._together(there.together)
                pages[page] = replace(there, together=together, may_be_locked=locked)

    def after_open(self, its: Mapping[str, int], pages: Pages) -> Prediction:
        del pages
        is_sure = its["kind"] in {FILE_KINDS[kind] for kind in _HOLD_WHAT_IS_WRITTEN}
        self.objects[its["file"]] = _Object(its["nr"], is_sure)
        return Prediction(0)

    def after_mmap(self, its: Mapping[str, int], pages: Pages) -> Prediction:
        obj: int | None = its["file"]
        shared = bool(its["flags"] & SHARINGS["shared"])
        if its["flags"] & MAP_ANONYMOUS:
            obj = -self.now if shared else None
            self.objects[-self.now] = _Object(its["nr"])
        is_sure = (obj is None or self.objects[obj].is_sure) and not its["flags"] & _UNSURE
        first = _Page(
            its["protection"],
            content=ZEROES if obj is None else None,
            obj=obj,
            shared=shared,
            since=self.now,
            together=self._together(-1),
            may_be_locked=bool(its["flags"] & _LOCKED),
            is_sure=is_sure,
        )
        for nr, page in enumerate(_range(its)):
            pages[page] = replace(first, offset=its["offset"] + nr)
        return Prediction(None if obj is not None and self.objects[obj].is_sealed else 0)

    def after_munmap(self, its: Mapping[str, int], pages: Pages) -> Prediction:
        for page in _range(its):
            pages.pop(page, None)
        return Prediction(0)

    def after_mprotect(self, its: Mapping[str, int], pages: Pages) -> Prediction:
        """Change pages up to the first that is not mapped."""
        is_sure = True
        for page in _range(its):
            if page not in pages:
                return Prediction(ENOMEM if is_sure else None)
            is_sure = is_sure and pages[page].is_sure
            pages[page] = replace(pages[page], protection=its["protection"], is_sure=is_sure)
        return Prediction(0 if is_sure else None)

    def after_mremap(self, its: Mapping[str, int], pages: Pages) -> Prediction:
        old, new_nr = _range(its), its["new_nr"]
        moves = bool(its["flags"] & MREMAP_MAYMOVE)
        new = range(its["new_page"], its["new_page"] + new_nr) if moves else old
        if moves and new.start < old.stop and old.start < new.stop:
            return Prediction(EINVAL)
        if not moves and any(page in pages for page in range(old.stop, old.start + new_nr)):
            self._doubt(pages, range(old.stop, old.start + new_nr))
            return Prediction()  # there is no room, or it is not known to be there
        source = [pages[page] for page in old if page in pages]
        is_one = len({page.together for page in source}) == 1
        if len(source) != len(old) or not is_one or not all(page.is_sure for page in source):
            # Whether it fails depends on VMAs; what was at the new place may be gone.
            self._doubt(pages, old)
            for page in new:
                pages[page] = replace(pages.get(page, _Page(0)), is_sure=False)
            return Prediction()
        keeps = bool(its["flags"] & ~3)
        for page, there in zip(old, source, strict=True):
            if keeps:
                together = self._together(there.together)
                pages[page] = replace(_dropped(there, self.now), together=together)
            elif moves or page >= old.start + new_nr:
                del pages[page]
        source += [
            replace(_dropped(source[-1], self.now), offset=source[-1].offset + more)
            for more in range(1, new_nr - len(source) + 1)
        ]
        for nr, page in enumerate(range(new.start, new.start + new_nr)):
            pages[page] = replace(source[nr], together=self._together(source[nr].together))
        return Prediction(0)

    def after_madvise(self, its: Mapping[str, int], pages: Pages) -> Prediction:
        advice, mapped = its["advice"], [page for page in _range(its) if page in pages]
        if advice in _SHIFTS:
            self._doubt(pages, mapped)
        if advice in _LEAVES:
            for page in (page for page in mapped if _LEAVES[advice](pages[page])):
                self._store(pages, page, None)
        if advice not in _DROPS:
            return Prediction()
        if any(pages[page].may_be_locked or not pages[page].is_sure for page in mapped):
            for page in mapped:
                self._store(pages, page, None)
            return Prediction()
        for page in mapped:
            pages[page] = _dropped(pages[page], self.now)
        return Prediction(0 if len(mapped) == its["nr"] else ENOMEM)

    def after_mlockall(self, its: Mapping[str, int], pages: Pages) -> Prediction:
        del its
        for page, there in pages.items():
            pages[page] = replace(there, may_be_locked=True)
        return Prediction()

    def after_fork(self, its: Mapping[str, int], pages: Pages) -> Prediction:
        self.processes[its["child"]] = dict(pages)
        return Prediction(0)

    def after_exit(self, its: Mapping[str, int], pages: Pages) -> Prediction:
        del pages, self.processes[its["process"]]
        return Prediction()

    def after_write(self, its: Mapping[str, int], pages: Pages) -> Prediction:
        """Write pages up to the first at which the process gets a signal."""
        is_sure = True
        for nr, page in enumerate(_range(its)):
            there = pages.get(page)
            if not self._allows(there, _WRITABLE):
                return Prediction(nr if is_sure else None)
            assert there is not None
            is_sure = is_sure and there.is_sure
            self._store(pages, page, self._written(nr, its["value"]) if is_sure else None)
        return Prediction(its["nr"] if is_sure else None)

    def after_read(self, its: Mapping[str, int], pages: Pages) -> Prediction:
        found: list[Expected] = []
        for page in _range(its):
            there = pages.get(page)
            # A page of which nothing is known may be missing, and no page behind it is read then.
            if there is None or not there.is_sure or not self._allows(there, _READABLE):
                break
            content = self._content(there)
            if content is not None:
                _append(found, page, content)
        return Prediction(None, tuple(found))

    def after_uffd_register(self, its: Mapping[str, int], pages: Pages) -> Prediction:
        if its["mode"] != _UFFD_WP:
            self._doubt(pages, _range(its))
        return Prediction()

    def after_uffd_copy(self, its: Mapping[str, int], pages: Pages) -> Prediction:
        return self._filled(its, pages, [self._written(nr, 0) for nr in range(its["nr"])])

    def after_uffd_zero(self, its: Mapping[str, int], pages: Pages) -> Prediction:
        return self._filled(its, pages, [ZEROES] * its["nr"])

    def after_uffd_move(self, its: Mapping[str, int], pages: Pages) -> Prediction:
        source = range(its["from_page"], its["from_page"] + its["nr"])
        contents = [self._content(pages[page]) if page in pages else None for page in source]
        self._doubt(pages, source)
        return self._filled(its, pages, contents)

    def after_seal(self, its: Mapping[str, int], pages: Pages) -> Prediction:
        del pages
        obj = self.objects[its["file"]]
        obj.is_sealed, obj.is_sure = True, False
        for process in self.processes.values():
            its_pages = [page for page, there in process.items() if there.obj == its["file"]]
            self._doubt(process, its_pages)
        return Prediction()

    def after_truncate(self, its: Mapping[str, int], pages: Pages) -> Prediction:
        del pages
        obj = self.objects[its["file"]]
        if obj.is_sealed:
            return Prediction()
        self._change(its["file"], range(its["nr"], max(obj.nr, its["nr"])), ZEROES)
        obj.nr = its["nr"]
        for process in self.processes.values():
            for page, there in process.items():
                if there.obj == its["file"] and there.offset >= its["nr"]:
                    process[page] = replace(there, content=None)
        return Prediction(0)

    def after_fallocate(self, its: Mapping[str, int], pages: Pages) -> Prediction:
        del pages
        obj, mode = self.objects[its["file"]], its["mode"]
        if obj.is_sealed:
            return Prediction()
        if mode == _PUNCH:
            self._change(its["file"], _range(its), ZEROES)
            return Prediction(0)
        if mode not in {0, _KEEP_SIZE}:
            obj.is_sure = False
            return Prediction()
        if mode == 0:
            obj.nr = max(obj.nr, its["page"] + its["nr"])
        return Prediction(0)

    def after_pwrite(self, its: Mapping[str, int], pages: Pages) -> Prediction:
        del pages
        obj = self.objects[its["file"]]
        if obj.is_sealed or its["flags"]:  # it may be refused, or be done in part
            obj.is_sure = obj.is_sure and not its["flags"]
            return Prediction()
        for nr, page in enumerate(_range(its)):
            self._change(its["file"], (page,), self._written(nr, 0))
        obj.nr = max(obj.nr, its["page"] + its["nr"])
        return Prediction(its["nr"])

    def _written(self, nr: int, value: int) -> Content:
        return Content(0, 0, value) if value else Content(self.line, nr)

    def _allows(self, page: _Page | None, access: int) -> bool:
        """Whether an access may succeed."""
        if page is None or not page.is_sure:
            return page is not None
        is_beyond = page.obj is not None and page.offset >= self.objects[page.obj].nr
        return bool(page.protection & access) and not is_beyond

    def _content(self, page: _Page) -> Content | None:
        """Content of a page, None where it is not known."""
        if not page.is_sure or page.obj is None or page.content is not None:
            return page.content if page.is_sure else None
        obj = self.objects[page.obj]
        may_be_old = not page.shared and obj.changed.get(page.offset, 0) > page.since
        return None if may_be_old or not obj.is_sure else obj.contents.get(page.offset, ZEROES)

    def _store(self, pages: Pages, page: int, content: Content | None) -> None:
        """Give a page a content; None: it may have another one from now on."""
        there = pages[page]
        if there.shared and there.obj is not None:
            self._change(there.obj, (there.offset,), content)
        else:
            is_sure = there.is_sure and (content is not None or there.obj is None)
            pages[page] = replace(there, content=content, is_sure=is_sure)

    def _change(self, obj: int, offsets: Iterable[int], content: Content | None) -> None:
        for offset in offsets:
            self.objects[obj].contents[offset] = content
            self.objects[obj].changed[offset] = self.now

    def _doubt(self, pages: Pages, which: Iterable[int]) -> None:
        for page in which:
            if page in pages:
                pages[page] = replace(pages[page], is_sure=False)

    def _filled(
        self, its: Mapping[str, int], pages: Pages, contents: list[Content | None]
    ) -> Prediction:
        for page, content in zip(_range(its), contents, strict=True):
            if page in pages and not pages[page].shared:
                pages[page] = replace(pages[page], content=content, is_sure=content is not None)
        return Prediction(0)


def _dropped(page: _Page, now: int) -> _Page:
    """The page after its process gave up what it held of its own."""
    if page.shared:
        return page
    return replace(page, content=ZEROES if page.obj is None else None, since=now)


def _range(its: Mapping[str, int]) -> range:
    return range(its["page"], its["page"] + its["nr"])


def _append(found: list[Expected], page: int, content: Content) -> None:
    """Add a page to the last range if it goes on there, or else as a new one."""
    if found:
        last = found[-1]
        of = last.content
        goes_on = replace(of, index=of.index + last.nr) if of.line else of
        if last.page + last.nr == page and goes_on == content:
            found[-1] = replace(last, nr=last.nr + 1)
            return
    found.append(Expected(page, 1, content))
