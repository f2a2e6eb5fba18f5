# SPDX-License-Identifier: GPL-2.0-only
"""Whole threads as archives show them: every table by its own author, and nothing left unsaid."""

import datetime as dt
import re
from collections.abc import Mapping, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mail_texts import (
    BINDINGS,
    BOOTS,
    FOLIOS,
    FOLLOW_UP,
    GRIDS,
    MODES,
    NO_BLANKS,
    ORIGINAL,
    REPLY,
    UNKNOWN,
    quote,
)
from ream.errors import BadUsage
from ream.mail.read import Imported, import_text
from ream.mail.write import to_toml
from ream.paths import CHECKOUT
from ream.published import Table, load_file, load_tables, lookup
from ream.values import read_toml

TABLES = load_tables()
THREADS = CHECKOUT.parent / "shared" / "threads"
NOTHING: Mapping[str, str | None] = {}


def read(text: str, facts: Mapping[str, str | None] = NOTHING) -> Imported:
    return import_text(text.encode(), facts)


def tables_of(text: str) -> list[Table]:
    return [table for table, _ in read(text).tables]


# --- the threads themselves, where they lie beside the checkout -----------------------------

EXPECTED = {
    "000": ["zone-device-v4", "zone-device-private-popple"],
    "001": ["zone-device-v3"],
    "002": [table.id for table in TABLES if table.experiment == "deferred-init"],
    "003": ["fork-pte-batch-v3"],
    "004": ["migrate-offload-v4", "compact-dma"],
}
WHO = {
    "000": [("Li Zhe", dt.date(2026, 6, 3)), ("Alistair Popple", dt.date(2026, 6, 4))],
    "001": [("Li Zhe", dt.date(2026, 5, 26))],
    "002": [("Daniel Jordan", dt.date(2020, 6, 3))] * 7,
    "003": [("not said", None)],
    "004": [("Shivank Garg", dt.date(2026, 3, 9)), ("Garg, Shivank", dt.date(2026, 3, 18))],
}


def thread(number: str) -> Imported:
    (path,) = THREADS.glob(f"{number}_*.txt")
    return import_text(path.read_bytes(), NOTHING)


beside = pytest.mark.skipif(not THREADS.is_dir(), reason="no threads beside the checkout")


@beside
@pytest.mark.parametrize("number", EXPECTED)
def test_a_thread_of_the_archive_gives_every_published_table_of_it(number: str) -> None:
    read = [table for table, _ in thread(number).tables]
    wanted = [lookup(TABLES, name) for name in EXPECTED[number]]
    for table, ours in zip(read, wanted, strict=True):
        assert (table.experiment, table.unit, table.better) == (
            ours.experiment,
            ours.unit,
            ours.better,
        )
        assert [(dict(row.values), dict(row.sd)) for row in table.rows] == [
            (dict(row.values), dict(row.sd)) for row in ours.rows
        ]
        assert [_printed(row.params) for row in table.rows] == [
            _printed(row.params, ours.inferred) for row in ours.rows
        ]
        assert table.base in (ours.base, None)  # which may stand in another mail of the thread
        assert table.approximate == ours.approximate
        assert table.message_id in (ours.message_id, None)
        assert table.commit == ours.commit
        assert table.machine != "not said"
        assert table.cpus == ours.cpus
    assert [(table.author, table.date) for table in read] == WHO[number]


def _printed(params: Mapping[str, object], inferred: Sequence[str] = ()) -> dict[str, object]:
    """What a mail prints in a line, but for the machine, which our tables name shorter."""
    return {name: value for name, value in params.items() if name not in ("machine", *inferred)}


@beside
def test_only_the_mail_that_the_archive_robbed_of_its_id_has_none() -> None:
    ids = {n: [table.message_id for table, _ in thread(n).tables] for n in EXPECTED}
    assert ids["000"] == [
        lookup(TABLES, name).message_id for name in ("zone-device-v4", "zone-device-private-popple")
    ]
    assert ids["004"] == [
        lookup(TABLES, name).message_id for name in ("migrate-offload-v4", "compact-dma")
    ]
    assert ids["001"] == ids["003"] == [None]


@beside
def test_what_a_thread_says_besides_its_tables_is_named() -> None:
    assert any("58.2%" in said for said in thread("001").left)
    assert any("Run /sbin/init" in said for said in thread("002").left)
    assert [said.split(":")[0] for said in thread("004").left] == [
        "line 142",
        "line 144",
        "line 147",
    ]


# --- texts of our own, of the same shapes ---------------------------------------------------


def test_a_table_in_a_quotation_is_of_whom_it_quotes() -> None:
    quoted, own = tables_of(REPLY)
    assert (quoted.author, quoted.date) == ("Ada Author", dt.date(2026, 9, 7))
    assert quoted.message_id == "2026-maps-1@author.example.org"
    assert quoted.title == "[PATCH v2 0/3] mm: initialise maps with fewer stores"
    assert quoted.machine == "VM on an Intel Tiger Lake server"
    assert quoted.rows[1].values == {"before": 17.25, "published": 9.5}
    assert (own.author, own.message_id) == ("Carl Critic", "2026-critic-9@critic.example.org")
    assert own.title.startswith("Re: [PATCH v2 0/3]")


def test_a_sentence_that_a_replication_failed_is_a_table_of_ratios() -> None:
    own = tables_of(REPLY)[1]
    assert (own.unit, own.approximate, own.better) == ("ratio published/before", True, "lower")
    assert [(dict(row.params), dict(row.values)) for row in own.rows] == [
        (
            {"config": "private, 32 GiB, whole memremap_pages()", "machine": machine},
            {"published": 1.07},
        )
        for machine in ("elderly Intel", "recent Zen 9")
    ]
    assert "# made from the sentence's 7%" in to_toml(read(REPLY))


def test_a_patch_in_a_mail_is_no_table() -> None:
    assert read(REPLY).left == ()


def test_a_table_that_the_thread_has_in_the_original_is_made_once() -> None:
    imported = read(ORIGINAL + "\n" + REPLY)
    first, own = (table for table, _ in imported.tables)
    assert (first.author, own.author) == ("Ada Author", "Carl Critic")
    assert len(first.rows) == 4
    assert first.message_id == "2026-maps-1@author.example.org"
    said = [one for one in imported.left if "a quotation of the table of line" in one]
    assert len(said) == 1
    assert re.match(r"line \d+: 'nd_pmem rebind, ", said[0])
    # A reader who quotes a part only adds nothing, too.
    cut = REPLY.replace(quote(BINDINGS), quote(BINDINGS.split("\n\n", maxsplit=1)[0]))
    assert [len(table.rows) for table in tables_of(ORIGINAL + "\n" + cut)] == [4, 2]
    # Other numbers are another table.
    other = REPLY.replace("17.25", "17.26")
    assert len(tables_of(ORIGINAL + "\n" + other)) == 3


def test_a_subject_over_two_lines_is_whole() -> None:
    assert tables_of(ORIGINAL)[0].title == (
        "[PATCH v2 0/3] mm: initialise maps with fewer stores than there are fields"
    )
    assert tables_of(quote(ORIGINAL))[0].title == tables_of(ORIGINAL)[0].title


def test_a_page_without_blank_lines_has_its_table_and_its_sentence_is_named() -> None:
    imported = read(NO_BLANKS)
    ((table, _),) = imported.tables
    assert (table.author, table.date) == ("Ada Author", dt.date(2026, 9, 1))
    assert (table.title, table.base) == ("[PATCH v1 2/2] mm: write each map once", "v9.1-rc1")
    assert (table.machine, table.message_id) == ("AMD Milan server", None)
    assert [tuple(row.values.values()) for row in table.rows] == [
        (96, 84), (18.5, 10.5), (88, 81), (16.5, 9.25),
    ]  # fmt: skip
    (said,) = imported.left
    assert said.startswith("line 16: 'This lowers the average rebind time by roughly 43.2%")
    assert "by hand" in said


def test_a_page_of_a_commit_has_all_its_boots_and_its_log() -> None:
    imported = read(BOOTS)
    first, second, log = (table for table, _ in imported.tables)
    for table in (first, second, log):
        assert (table.author, table.commit) == ("Dora Developer", "0123456789")
        assert (table.title, table.date) == (
            "mm: initialise pages with threads",
            dt.date(2020, 5, 2),
        )
        assert table.message_id == "20200501.77-4-dora@example.org"
    assert [first.cpus, second.cpus, log.cpus] == [16, 4, 24]
    assert log.machine == "Tim's 24-CPU and 48G memory system"
    assert [dict(row.values) for row in log.rows] == [
        {"before": 71, "published": 12},
        {"before": 77, "published": 13},
    ]
    (said,) = imported.left
    assert said == (
        "line 31: '[ 0.500001] Run /sbin/init as init process': a boot message of no node;"
        " it is in no table"
    )


def test_two_tables_of_one_layout_in_a_mail_are_two_tables() -> None:
    fork, unmap = tables_of("[PATCH 0/2] mm: copy in batches\n\n" + FOLIOS)
    assert (fork.id, unmap.id) == ("fork-imported-1", "fork-imported-2")
    assert [fork.rows[1].values["published"], unmap.rows[1].values["published"]] == [0.0155, 0.0255]
    assert fork.machine == "Intel Xeon Bronze 1234 CPU"
    assert fork.title == "[PATCH 0/2] mm: copy in batches"
    assert "unmap" not in fork.method
    assert unmap.method.startswith("munmap()")
    assert len(tables_of(BINDINGS + "\n" + BINDINGS.replace("rc2", "rc3"))) == 2
    once = BINDINGS.replace("ms\n\ndax", "ms\n\nwords\n\ndax")
    assert len(tables_of(once)) == 1
    log = BOOTS[BOOTS.index("    Without") : BOOTS.index("Signed-off")]
    assert len(tables_of(log + "\n" + log.replace("71ms", "72ms"))) == 2
    assert len(tables_of(GRIDS + "\n" + GRIDS.replace("1.55±", "1.56±"))) == 2
    assert len(tables_of(MODES + "\n" + MODES.replace("1708", "1709"))) == 2


def test_a_mail_has_tables_of_two_layouts_one_of_them_quoted() -> None:
    imported = read(FOLLOW_UP)
    quoted, own = (table for table, _ in imported.tables)
    assert (quoted.experiment, own.experiment) == ("migrate", "compact")
    assert (quoted.author, quoted.date) == ("Sam Gray", None)  # 11/9 is November or September
    assert (quoted.message_id, quoted.base) == ("cover-0@example.com", "v9.3-rc4")
    assert (own.author, own.message_id) == ("Gray, Sam", "follow-up-1@example.com")
    machine = "AMD Zen 7 EPYC server (1 socket, 8 cores), v9.3-rc4, PTDMA hardware"
    assert (quoted.machine, own.machine) == (machine, machine)
    assert len(quoted.rows) == 9
    assert [row.values["wall_ms"] for row in own.rows] == [1708, 1887]
    (said,) = imported.left
    assert "wall time increases by 10.5%" in said


@pytest.mark.parametrize(
    ("when", "day"),
    [
        ("11/9/2026 5:37 PM, ", None),
        ("11/19/2026 5:37 PM, ", None),  # later than the mail that quotes it
        ("11/18/2026 5:37 PM, ", dt.date(2026, 11, 18)),
        ("9/12/2026 5:37 PM, ", dt.date(2026, 9, 12)),  # the ninth of December is later, too
        ("09.11.26 15:29, ", dt.date(2026, 11, 9)),
        ("Mon, Nov 9, 2026 at 05:37:00PM +0530, ", dt.date(2026, 11, 9)),
        ("Mon, 9 Nov 2026 17:37:00 +0530 ", dt.date(2026, 11, 9)),
        ("31 Feb 2026, ", None),
    ],
)
def test_the_day_of_a_quotation_is_the_one_that_it_can_only_be(when: str, day) -> None:
    quoted = tables_of(FOLLOW_UP.replace("11/9/2026 5:37 PM, ", when))[0]
    assert (quoted.author, quoted.date) == ("Sam Gray", day)


def test_an_attribution_over_two_lines_and_other_words_for_it_are_understood() -> None:
    for words in (
        "On Mon, Nov 9, 2026 at 05:37:00PM +0530, Sam Gray via a list of lists\nwrote:",
        "Sam Gray via a list of lists <lists@example.com> writes:",
        "* Sam Gray via a list of lists <lists@example.com> wrote:",
    ):
        text = FOLLOW_UP.replace("On 11/9/2026 5:37 PM, Sam Gray wrote:", words)
        assert tables_of(text)[0].author == "Sam Gray via a list of lists"


def test_a_quotation_of_nobody_is_not_of_who_quotes_it() -> None:
    text = FOLLOW_UP.replace("On 11/9/2026 5:37 PM, Sam Gray wrote:\n", "")
    quoted, own = tables_of(text)
    assert (quoted.author, quoted.title) == ("not said", "not said")
    assert (quoted.date, quoted.message_id) == (None, None)
    assert own.author == "Gray, Sam"


def test_a_quotation_in_a_quotation_is_of_the_inner_one() -> None:
    inner = "On 2026-11-01 10:00, Eve Elder wrote:\n" + quote(MODES)
    text = FOLLOW_UP.replace(MODES, "").replace("> This is the first RFC.\n", quote(inner))
    modes, grids = tables_of(text)
    assert (modes.experiment, modes.author) == ("compact", "Eve Elder")
    assert (modes.message_id, modes.date) == (None, dt.date(2026, 11, 1))
    assert grids.author == "Sam Gray"


def test_which_of_two_quotations_a_mail_answers_is_not_said() -> None:
    text = FOLLOW_UP + "\nOn 2026-11-02 10:00, Eve Elder wrote:\n" + quote(FOLIOS)
    tables = tables_of(text)
    assert [table.author for table in tables] == [
        "Sam Gray", "Gray, Sam", "Eve Elder", "Eve Elder",
    ]  # fmt: skip
    ids = [table.message_id for table in tables]
    assert ids == [None, "follow-up-1@example.com", None, None]


@pytest.mark.parametrize(
    ("header", "message_id"),
    [
        ("Message-ID: <a.1-2@x.example.org> (raw)", "a.1-2@x.example.org"),
        ("Message-Id:\n <a.1-2@x.example.org>", "a.1-2@x.example.org"),
        ("Message-ID: a.1-2@x.example.org", "a.1-2@x.example.org"),
        ("Message-ID: &lt;a.1-2@x.example.org&gt;", "a.1-2@x.example.org"),
        ("Message-ID: a.1-2 () x ! example ! org", "a.1-2@x.example.org"),
        ("Message-ID: <a.1-2 at x.example.org>", "a.1-2@x.example.org"),
        ("Message-ID: [email\xa0protected]", None),
        ("Message-ID: <[email protected]>", None),
        ("Message-ID: <a.1-2@xxxxxxxxxxxxx>", None),
        ("Message-ID: <a.1-2@x...>", None),
        ("Message-ID: see above", None),
    ],
)
def test_a_message_id_is_whole_or_not_there(header: str, message_id: str | None) -> None:
    text = re.sub(r"Message-ID: .*\n", f"{header}\n", ORIGINAL)
    ((table, _),) = read(text).tables
    assert table.message_id == message_id


@pytest.mark.parametrize(
    ("sender", "author", "day"),
    [
        ("From: Ada Author @ 2026-09-07  8:00 UTC (permalink / raw)", "Ada Author", True),
        ("From: ada at example.org (Ada Author)\nDate: Mon Sep  7 10:00:00 2026", "Ada Author", 1),
        ("From: =?utf-8?q?=C3=84da?= <a@b.c>\nDate: Mon, 07 Sep 2026 10:00:00 -0000", "Äda", True),
        ("Author: Ada Author <ada@example.org>\nDate:   2026-09-07", "Ada Author", True),
        ("From: <ada@example.org>\nDate: yesterday", "not said", False),
    ],
)
def test_a_sender_is_read_as_archives_show_it(sender: str, author: str, day: bool) -> None:
    ((table, _),) = read(f"Some words.\n\n{sender}\n\n{MODES}").tables
    assert table.author == author
    assert table.date == (dt.date(2026, 9, 7) if day else None)


def test_a_mailbox_of_encoded_mails_is_read_mail_by_mail() -> None:
    from email.message import EmailMessage  # noqa: PLC0415

    box = b""
    for name, text in (("Ada", MODES), ("Eve", GRIDS)):
        message = EmailMessage()
        message["From"] = f"{name} <{name}@example.org>"
        message["Date"] = "Mon, 7 Sep 2026 10:00:00 +0200"
        message.set_content(text, cte="base64")
        box += b"From mboxrd@z Mon Sep  7 08:00:00 2026\n" + message.as_bytes() + b"\n"
    tables = [table for table, _ in import_text(box, NOTHING).tables]
    assert [(table.author, table.experiment) for table in tables] == [
        ("Ada", "compact"),
        ("Eve", "migrate"),
    ]


# --- nothing is left out unsaid -------------------------------------------------------------


def test_a_table_of_no_layout_is_named_beside_those_that_are_read() -> None:
    imported = read(f"{MODES}\nAnd:\n\n{UNKNOWN}\nreads: 4096 MB/s\n")
    assert len(imported.tables) == 1
    why = "not understood: numbers in no layout that is known"
    assert imported.left == (
        f"line 9: 'build 101.5 99.5 -2%' (to line 10): {why}",
        f"line 12: 'reads: 4096 MB/s': {why}",
    )
    told = to_toml(imported)
    assert "# In no table:\n#   line 9: 'build 101.5" in told


def test_a_damaged_table_is_named_and_the_others_are_read() -> None:
    broken = MODES.replace("622952     623181", "622952\n 623181")
    imported = read(f"{FOLIOS}\n{broken}")
    assert [table.experiment for table, _ in imported.tables] == ["fork", "fork"]
    assert len(imported.left) == 1
    assert re.match(r"line 1[0-9]: .*not understood; the layout 'modes' looks", imported.left[0])
    half = GRIDS.split("b. DMA", maxsplit=1)[0]
    (said,) = read(f"{FOLIOS}\n{half}").left
    assert "there is no line of the patched kernel" in said


def test_a_table_that_ends_where_the_next_begins_is_whole() -> None:
    squeezed = re.sub(r"\n\n+", "\n", BOOTS)
    assert [len(table.rows) for table in tables_of(squeezed)] == [2, 2, 2]


def test_a_text_with_results_in_sentences_alone_names_them_and_how_to_write_them() -> None:
    text = "From: Ada Author <a@b.c>\nDate: Mon, 7 Sep 2026 10:00:00 +0200\n\n"
    text += "I tried it. My builds got 4% slower on both. That is all.\n"
    with pytest.raises(BadUsage) as refused:
        read(text)
    said = str(refused.value).splitlines()
    assert said[0].startswith("line 4: 'My builds got 4% slower on both.': a result in a sentence")
    skeleton = "\n".join(line for line in said if line.startswith("  ") and "=" in line)
    assert 'author = "Ada Author"' in skeleton


def test_the_skeleton_is_a_table_that_can_be_loaded(tmp_path) -> None:
    with pytest.raises(BadUsage) as refused:
        read("Here it got 4% slower.\n")
    said = str(refused.value)
    (tmp_path / "mine.toml").write_text(said[said.index("  [[table]]") :])
    (table,) = load_file(tmp_path / "mine.toml")
    assert (table.id, table.author, table.approximate) == ("mine", "not said", True)


def test_an_experiment_chooses_among_the_tables_of_a_mail() -> None:
    imported = read(FOLLOW_UP, {"experiment": "compact", "id": "mine"})
    ((table, _),) = imported.tables
    assert (table.id, table.experiment) == ("mine", "compact")
    assert any("left out: the layout 'channels' has tables of migrate" in s for s in imported.left)


@pytest.mark.parametrize("text", [ORIGINAL, REPLY, NO_BLANKS, BOOTS, FOLIOS, FOLLOW_UP])
def test_what_is_written_of_a_thread_reads_back_equal(text: str, tmp_path) -> None:
    imported = read(text + "\nIt \x07 is 3% slower \x85 here.\n")
    file = tmp_path / "out.toml"
    file.write_text(to_toml(imported), encoding="utf-8")
    assert load_file(file) == tuple(table for table, _ in imported.tables)
    assert read_toml(file)["table"]


PARTS: Sequence[str] = [
    line
    for text in (ORIGINAL, REPLY, NO_BLANKS, BOOTS, FOLIOS, GRIDS, MODES, FOLLOW_UP, UNKNOWN)
    for line in (text, *text.splitlines(keepends=True), *re.split(r"(?<=\n)\n", text))
]


@settings(max_examples=300, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.one_of(st.sampled_from(PARTS), st.text(max_size=60)),
            st.sampled_from(["", "> ", "> > ", " ", "| "]),
        ),
        max_size=12,
    )
)
def test_any_thread_gives_only_numbers_that_are_in_it(parts) -> None:
    text = "".join(
        "".join(marks + line for line in part.splitlines(keepends=True)) for part, marks in parts
    )
    try:
        imported = read(text.encode("utf-8", "replace").decode())
    except BadUsage:
        return
    assert imported.tables
    numbers = {float(found) for found in re.findall(r"[0-9]+(?:\.[0-9]+)?", text)}
    slower = {round(1 + one / 100, 6) for one in numbers}
    for table, _ in imported.tables:
        for row in table.rows:
            for value in (*row.values.values(), *row.sd.values()):
                assert abs(value) in (slower if table.approximate else numbers)
        assert table.message_id is None or table.message_id in text
    to_toml(imported)
