# SPDX-License-Identifier: GPL-2.0-only
"""Tables pasted from mails: every number as in experiments/*/published.toml, and none made up."""

import datetime as dt
import html
import random
import re
from collections.abc import Mapping
from email.message import EmailMessage
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ream.errors import BadUsage
from ream.folders import mails
from ream.mail.read import LAYOUTS, Imported, import_text
from ream.mail.write import to_toml, toml_value
from ream.published import Table, TableRow, load_file, load_tables, lookup
from ream.values import read_toml

MAILS = {path.stem: path.read_bytes() for path in mails()}
TABLES = load_tables()
NOTHING: Mapping[str, str | None] = {}

NBSP, THIN, MINUS = "\xa0", "\u2009", "\u2212"


def rows_of(mail: bytes) -> list[TableRow]:
    ((table, _),) = import_text(mail, NOTHING).tables
    return list(table.rows)


def printed(row: TableRow, table: Table) -> TableRow:
    """A line without what its source does not say."""
    params = {name: value for name, value in row.params.items() if name not in table.inferred}
    return row.model_copy(update={"params": params})


def by_params(rows) -> dict[tuple, TableRow]:
    return {tuple(sorted(row.params.items())): row for row in rows}


def test_every_mail_of_the_checkout_has_its_table_there() -> None:
    assert len(MAILS) == 8
    assert set(MAILS) <= {table.id for table in TABLES}


@pytest.mark.parametrize("name", MAILS)
def test_a_mail_gives_the_numbers_of_its_table_field_by_field(name: str) -> None:
    ours = lookup(TABLES, name)
    ((read, _),) = import_text(MAILS[name], {"id": name}).tables
    assert (read.id, read.experiment) == (ours.id, ours.experiment)
    assert (read.unit, read.better) == (ours.unit, ours.better)
    assert (read.cpus, read.node_gib) in (
        (ours.cpus, ours.node_gib),
        (None, None),  # not every mail says it
    )
    rows = [printed(row, ours) for row in ours.rows]
    found, wanted = by_params(read.rows), by_params(rows)
    assert found.keys() == wanted.keys()
    for params, row in wanted.items():
        assert dict(found[params].values) == dict(row.values), params
        assert dict(found[params].sd) == dict(row.sd), params
    assert [row.params for row in read.rows] == [row.params for row in rows]


@pytest.mark.parametrize("name", MAILS)
def test_what_is_written_reads_back_equal(name: str, tmp_path: Path) -> None:
    imported = import_text(MAILS[name], {"id": name, "author": 'A "B" \\ C\nÜ \x7f'})
    file = tmp_path / "out.toml"
    file.write_text(to_toml(imported), encoding="utf-8")
    assert load_file(file) == tuple(table for table, _ in imported.tables)
    assert file.read_text(encoding="utf-8").startswith("# SPDX-License-Identifier")


def test_what_a_mail_does_not_say_is_said_to_be_missing_and_not_made_up() -> None:
    text = to_toml(import_text(MAILS["zone-device-v4"], NOTHING))
    for field in ("title", "author", "machine"):
        assert f'{field} = "not said"  # not in the mail' in text
    assert "# date: not in the mail" in text
    given_too = to_toml(import_text(MAILS["zone-device-v4"], {"author": "Li Zhe"}))
    assert 'author = "Li Zhe"\n' in given_too
    assert "# base" not in text  # that it says
    assert 'base = "v7.1-rc6"' in text


def test_the_device_that_a_mail_does_not_name_is_marked_as_known_from_elsewhere() -> None:
    said = "rows = [  # not in the table: the device"
    assert said in to_toml(import_text(MAILS["zone-device-v3"], NOTHING))
    assert said not in to_toml(import_text(MAILS["zone-device-v4"], NOTHING))


def test_headers_that_are_pasted_too_are_facts() -> None:
    headers = (
        "From: Some Body <some@example.org>\nSubject: [PATCH] faster\n"
        "Date: Wed, 3 Jun 2026 16:01:52 +0800\nMessage-ID: <1@example>\n\n"
    )
    ((table, _),) = import_text(headers.encode() + MAILS["fork-pte-batch-v3"], NOTHING).tables
    assert (table.author, table.title) == ("Some Body", "[PATCH] faster")
    assert (table.date, table.message_id) == (dt.date(2026, 6, 3), "1@example")


@pytest.mark.parametrize(
    ("encoded", "read"),
    [
        ("=?utf-8?q?J=C3=B6rg?= B", "J\u00f6rg B"),
        ("=?iso-8859-1?b?SvZyZw==?=", "J\u00f6rg"),
        ("=?no-such?q?J?=", "=?no-such?q?J?="),
        ("=?utf-8?b?x?=", "=?utf-8?b?x?="),
    ],
)
def test_words_of_a_header_are_as_their_author_wrote_them(encoded: str, read: str) -> None:
    headers = f"From: {encoded} <j@example.org>\nSubject: {encoded}\n\n"
    ((table, _),) = import_text(headers.encode() + MAILS["fork-pte-batch-v3"], NOTHING).tables
    assert (table.author, table.title) == (read, read)


def test_a_mail_with_several_machines_gives_a_table_for_each() -> None:
    both = MAILS["deferred-init-skylake"] + b"\n\n" + MAILS["deferred-init-zen-guest-4cpu"]
    first, second = (table for table, _ in import_text(both, {"id": "boots"}).tables)
    assert (first.id, second.id) == ("boots-1", "boots-2")
    assert (first.cpus, second.cpus) == (104, 4)
    assert (len(first.rows), len(second.rows)) == (8, 5)
    assert "Skylake" in first.machine
    assert "EPYC" in second.machine
    assert "Skylake" not in second.machine


# --- what mailers do ------------------------------------------------------------------------


def quoted(mail: bytes, marks: str) -> bytes:
    lines = mail.decode().splitlines()
    return "\n".join(f"{marks}{line}" for line in lines).encode()


@pytest.mark.parametrize("name", MAILS)
@pytest.mark.parametrize("marks", ["> ", ">> ", "AB> ", "> > > ", "| ", "> | ", " >", ">\t", "   "])
def test_quote_marks_change_nothing(name: str, marks: str) -> None:
    assert rows_of(quoted(MAILS[name], marks)) == rows_of(MAILS[name])


@pytest.mark.parametrize("name", MAILS)
@pytest.mark.parametrize(
    ("what", "with_what"),
    [
        ("\n", "\r\n"),
        ("\n", "   \n"),
        (" ", NBSP),
        ("  ", "\t"),
        ("±", "+-"),
        ("±", " +/- "),
        ("±", " ± "),
        ("-", MINUS),
        ("|", "│"),
    ],
)
def test_other_signs_for_the_same_change_nothing(name: str, what: str, with_what: str) -> None:
    changed = MAILS[name].decode().replace(what, with_what).encode()
    assert rows_of(changed) == rows_of(MAILS[name])


@pytest.mark.parametrize("encoding", ["quoted-printable", "base64"])
def test_a_whole_mail_with_an_encoded_body_is_read_with_its_headers(encoding: str) -> None:
    message = EmailMessage()
    message["From"] = "Shivank Gärg <s@example.org>"
    message["Subject"] = "[RFC PATCH v4 0/6] faster"
    own = re.sub("(?m)^> ?", "", MAILS["migrate-offload-v4"].decode())
    message.set_content(own, cte=encoding)
    ((table, _),) = import_text(message.as_bytes(), NOTHING).tables
    assert list(table.rows) == rows_of(MAILS["migrate-offload-v4"])
    assert (table.author, table.title) == ("Shivank Gärg", "[RFC PATCH v4 0/6] faster")


@pytest.mark.parametrize("name", MAILS)
def test_a_mail_in_parts_is_read_once(name: str) -> None:
    text = MAILS[name].decode()
    message = EmailMessage()
    message["Subject"] = "both ways"
    message.set_content(text, cte="8bit")
    message.add_alternative(f"<pre>{html.escape(text)}</pre>", subtype="html")
    ((table, _),) = import_text(message.as_bytes(), NOTHING).tables
    assert (list(table.rows), table.title) == (rows_of(MAILS[name]), "both ways")


@pytest.mark.parametrize("name", MAILS)
def test_what_was_copied_from_a_pages_source_changes_nothing(name: str) -> None:
    quoted = "".join(f"> {line}\n" for line in MAILS[name].decode().splitlines())
    source = html.escape(quoted).replace("  ", "&nbsp; ")
    for sign in ("&plusmn;", "&#177;", "&#xB1;"):
        assert rows_of(source.replace("±", sign).encode()) == rows_of(MAILS[name])


@pytest.mark.parametrize("encoding", ["utf-16", "utf-8-sig"])
def test_a_byte_order_mark_changes_nothing(encoding: str) -> None:
    for mail in MAILS.values():
        assert rows_of(mail.decode().encode(encoding)) == rows_of(mail)


@given(st.binary(max_size=200))
def test_a_mail_that_says_it_is_encoded_and_is_not_is_refused(garbage: bytes) -> None:
    for head in (b"Content-Transfer-Encoding: base64\n\n", b"content-transfer-encoding:base64\n"):
        with pytest.raises(BadUsage):
            import_text(head + garbage, NOTHING)


def test_a_mail_in_latin_1_is_read() -> None:
    mail = MAILS["migrate-offload-v4"].decode().encode("latin-1")
    assert rows_of(mail) == rows_of(MAILS["migrate-offload-v4"])


def test_a_rule_that_a_mailer_wrapped_is_still_a_rule() -> None:
    mail = re.sub(rb"={80}", b"=" * 60 + b"\n" + b"=" * 20, MAILS["migrate-offload-v4"])
    assert rows_of(mail) == rows_of(MAILS["migrate-offload-v4"])


@settings(max_examples=60)
@given(st.sampled_from(sorted(MAILS)), st.integers(0, 2**32))
def test_quotes_spaces_and_rules_at_random_change_no_number(name: str, seed: int) -> None:
    draw = random.Random(seed)
    out = ["Some text of a reader, who quotes it:", ""] if draw.random() < 0.5 else []
    for line in MAILS[name].decode().splitlines():
        marks = "".join(draw.choice(["> ", ">", "| "]) for _ in range(draw.randrange(4)))
        if draw.random() < 0.2:
            out.append(marks + draw.choice("-=_+") * draw.randrange(3, 100))
        spaces = re.sub(
            " +", lambda _: draw.choice([" ", "  ", NBSP, THIN, "\t"]) * draw.randrange(1, 4), line
        )
        out.append(f"{marks}{spaces}{' ' * draw.randrange(3)}")
    out += ["", "A sentence after it.", "-- ", "signed 2026"] if draw.random() < 0.5 else []
    mail = draw.choice(["\n", "\r\n"]).join(out).encode()
    assert rows_of(mail) == rows_of(MAILS[name])


# --- what is no table, or half of one -------------------------------------------------------


def test_what_fits_no_layout_is_refused_with_its_line_and_the_layouts_that_are_known() -> None:
    with pytest.raises(BadUsage) as refused:
        import_text(b"Hello,\nsize,before,after\n4096,1.5,1.2\n", NOTHING)
    said = str(refused.value).splitlines()
    assert said[0].startswith("line 3: '4096,1.5,1.2': not understood")
    assert len(said) == 1 + len(LAYOUTS)


@pytest.mark.parametrize("empty", [b"", b"\n\n", b"> \n>\n", b"-----\n"])
def test_nothing_is_no_table(empty: bytes) -> None:
    with pytest.raises(BadUsage, match="no text"):
        import_text(empty, NOTHING)


@settings(max_examples=200)
@given(st.one_of(st.binary(max_size=400), st.text(max_size=400).map(str.encode)))
def test_garbage_is_refused_and_gives_no_rows(garbage: bytes) -> None:
    with pytest.raises(BadUsage):
        import_text(garbage, NOTHING)


@settings(max_examples=150)
@given(st.sampled_from(sorted(MAILS)), st.data())
def test_a_damaged_line_is_refused_or_its_numbers_are_those_printed(name: str, data) -> None:
    mail = MAILS[name].decode()
    place = data.draw(st.integers(0, len(mail) - 1))
    what = data.draw(st.sampled_from(["", "x", "|", "\n", "±", "9", ".", "-", "\x00", "٣"]))
    damaged = (mail[:place] + what + mail[place + 1 :]).encode()
    try:
        rows = [row for table, _ in import_text(damaged, NOTHING).tables for row in table.rows]
    except BadUsage:
        return
    # A digit changed gives another number: but only one, of those in the text.
    numbers = {float(text) for text in re.findall(r"[0-9]+(?:\.[0-9]+)?", damaged.decode())}
    for row in rows:
        for value in (*row.values.values(), *row.sd.values()):
            assert abs(value) in numbers
    assert len(rows) == len(rows_of(MAILS[name]))


def test_a_row_that_a_mailer_broke_is_refused_and_not_left_out() -> None:
    mail = MAILS["migrate-offload-v4"].decode().replace("| 13.18±0.08", "\n> | 13.18±0.08")
    with pytest.raises(BadUsage, match=r"line 16: '8 \| 4.32±0.24.*: not understood"):
        import_text(mail.encode(), NOTHING)


def test_a_row_that_is_there_twice_is_refused() -> None:
    with pytest.raises(BadUsage, match="is there twice"):
        import_text(MAILS["compact-dma"] + b"5 dma 1 2 3 - 0% 0% 0%\n", NOTHING)


def test_a_number_without_its_counterpart_is_refused() -> None:
    half = MAILS["deferred-init-triplett"].split(b"With this")[0]
    with pytest.raises(BadUsage, match="no number of the kernel published for node = 0"):
        import_text(half, NOTHING)
    no_base = MAILS["migrate-offload-v4"].split(b"b. DMA")[1]
    with pytest.raises(BadUsage, match="no line of the kernel before"):
        import_text(no_base, NOTHING)


@pytest.mark.parametrize(
    ("name", "what", "with_what"),
    [
        ("migrate-offload-v4", "3.55±0.19", "3,55±0,19"),
        ("migrate-offload-v4", "| 5.66±", "|\n5.66±"),
        ("zone-device-v4", "262.12", "262,12"),
        ("deferred-init-triplett", "in 304ms", "in 304 ms"),
    ],
)
def test_a_number_that_is_there_but_not_understood_is_not_called_missing(
    name: str, what: str, with_what: str
) -> None:
    changed = MAILS[name].decode().replace(what, with_what)
    assert changed != MAILS[name].decode()
    with pytest.raises(BadUsage, match=r"line \d+: .*not understood"):
        import_text(changed.encode(), NOTHING)


def test_a_table_of_fork_or_munmap_says_which_it_will_be_taken_for() -> None:
    text = to_toml(import_text(MAILS["fork-pte-batch-v3"], NOTHING))
    assert "# of fork(), unless id, title or method says unmap\n" in text


def test_an_experiment_that_is_not_the_layouts_is_refused() -> None:
    with pytest.raises(BadUsage, match="--experiment fork: the layout 'modes' has tables of comp"):
        import_text(MAILS["compact-dma"], {"experiment": "fork"})


@given(st.text(max_size=40).filter(lambda text: "\r" not in text))
def test_any_text_is_written_so_that_toml_gives_it_back(text: str) -> None:
    import tomllib  # noqa: PLC0415

    if any("\ud800" <= c <= "\udfff" for c in text):
        return
    assert tomllib.loads(f"a = {toml_value(text)}")["a"] == text


@given(st.one_of(st.integers(-(2**63), 2**63), st.floats(allow_nan=False, allow_infinity=False)))
def test_any_number_is_written_so_that_toml_gives_it_back(value: float) -> None:
    import tomllib  # noqa: PLC0415

    assert tomllib.loads(f"a = {toml_value(value)}")["a"] == value


def test_the_tables_of_the_checkout_survive_being_written(tmp_path: Path) -> None:
    from ream.mail.layout import Parsed  # noqa: PLC0415

    for table in TABLES:
        file = tmp_path / f"{table.id}.toml"
        parsed = Parsed(table.unit, table.better, table.method, table.rows)
        file.write_text(to_toml(Imported(((table, parsed),), ())), encoding="utf-8")
        assert Table.model_validate(read_toml(file)["table"][0]) == table
