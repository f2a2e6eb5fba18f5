# SPDX-License-Identifier: GPL-2.0-only
"""lab/setup.sh and ./ream, in a checkout and on a machine that are made up."""

import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import typer

from arch_headers import SUBJECTS
from ream import __version__
from ream.cli import app
from ream.packages import MANAGERS, UNKNOWN, install_line, rows
from ream.paths import CHECKOUT

HOST_PROGRAMS = (
    *("cat", "dirname", "env", "flock", "grep", "mkdir", "mktemp", "mv", "readlink", "rm"),
    *("sed", "sh", "sha256sum", "sleep", "tail"),
)

NATIVE_PROGRAMS = ("gcc", "ld", "make", "flex", "bison", "bc", "git", "xz")
VM_PROGRAMS = ("qemu-system-x86_64", "ndctl", "daxctl", "busybox")
# By the name of their tools, Debian's name of their C library.
ARCHITECTURES = {
    "aarch64-linux-gnu": "arm64",
    "arm-linux-gnueabihf": "armhf",
    "powerpc64le-linux-gnu": "ppc64el",
    "riscv64-linux-gnu": "riscv64",
    "s390x-linux-gnu": "s390x",
    "sparc64-linux-gnu": "sparc64",
}
ARCH_EMULATORS = ("qemu-aarch64", "qemu-system-aarch64")
ARCH_PROGRAMS = (*(f"{tools}-gcc" for tools in ARCHITECTURES), *ARCH_EMULATORS)
COUNT_PROGRAMS = ("qemu-x86_64",)
ARCH_LIBRARIES = tuple(f"libc6-dev-{name}-cross" for name in ARCHITECTURES.values())

# Each notes how it was called. HERE is the made-up machine's directory.
FAKES = {
    "id": 'cat "$HERE/uid"',
    "dpkg-query": 'for last; do :; done; [ -e "$HERE/packages/$last" ] && echo "installed "',
    "apt-cache": '[ -e "$HERE/lists" ]',
    "apt-get": """
echo "apt-get $*" >>"$HERE/calls"
case "$*" in
*update) [ -e "$HERE/network" ] && : >"$HERE/lists" ;;
*install*)
	[ -e "$HERE/network" ] && [ -e "$HERE/lists" ] || { echo "E: Unable to fetch" >&2; exit 100; }
	for name; do
		: >"$HERE/packages/$name" 2>/dev/null || :
		[ "$name" != flex ] || { echo "#!/bin/sh" >"$HERE/bin/flex"; chmod +x "$HERE/bin/flex"; }
	done ;;
esac""",
    "python3": """
case "$*" in
-c*) exit 0 ;;
"-m venv "*)
	echo "venv" >>"$HERE/calls"
	mkdir -p "$3/bin" "$3/lib/python3.11/site-packages"
	cat "$0" >"$3/bin/python"; chmod +x "$3/bin/python" ;;
"-m pip "*)
	echo "pip $*" >>"$HERE/calls"
	[ -e "$HERE/network" ] || { echo "ERROR: No matching distribution found" >&2; exit 1; } ;;
-V) echo "Python 3.11.2" ;;
"-P -m ream"*) echo "ran: $*" ;;
esac""",
}


class Machine:
    """A machine with a checkout on it; its programs are stand-ins, but for a few of the host's."""

    def __init__(self, here: Path) -> None:
        self.here = here
        self.checkout = here / "my checkout"
        (self.checkout / "lab").mkdir(parents=True)
        for name in ("ream", "lab/setup.sh", "lab/packages.txt", "requirements.lock"):
            shutil.copy(CHECKOUT / name, self.checkout / name)
        shutil.copytree(CHECKOUT / "lab" / "help", self.checkout / "lab" / "help")
        (self.checkout / "lab" / "ream").mkdir()
        shutil.copy(CHECKOUT / "lab" / "ream" / "__init__.py", self.checkout / "lab" / "ream")
        (here / "bin").mkdir()
        for name in (*HOST_PROGRAMS, "chmod"):
            found = shutil.which(name)
            assert found is not None
            (here / "bin" / name).symlink_to(found)
        for name, body in FAKES.items():
            self.install(name, body)
        for name in (*NATIVE_PROGRAMS, *VM_PROGRAMS, *COUNT_PROGRAMS, *ARCH_PROGRAMS):
            self.install(name, "")
        (here / "packages").mkdir()
        for name in ("libc6-dev", "libelf-dev", *ARCH_LIBRARIES):
            (here / "packages" / name).touch()
        for name in ("network", "lists", "calls"):
            (here / name).touch()
        self.be(uid=0)

    def install(self, name: str, body: str) -> None:
        (self.here / "bin" / name).write_text(f"#!/bin/sh\n{body}\n")
        (self.here / "bin" / name).chmod(0o755)

    def lose(self, *names: str) -> None:
        for name in names:
            place = "packages" if name.endswith(("-dev", "-cross")) else "bin"
            (self.here / place / name).unlink()

    def be(self, *, uid: int) -> None:
        (self.here / "uid").write_text(f"{uid}\n")

    def calls(self) -> list[str]:
        return (self.here / "calls").read_text().splitlines()

    def run(self, *words: str | Path, cwd: Path | None = None, **more: str) -> tuple[int, str, str]:
        environment = {"PATH": str(self.here / "bin"), "HERE": str(self.here), **more}
        done = subprocess.run(
            [str(word) for word in words],
            cwd=cwd or self.here,
            env=environment,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        return done.returncode, done.stdout, done.stderr

    def set_up(self, *words: str, **more: str) -> tuple[int, str]:
        code, out, err = self.run(self.checkout / "lab" / "setup.sh", *words, **more)
        assert out == ""
        return code, err


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def test_the_environment_is_made_once_from_the_lock_file(machine: Machine) -> None:
    code, said = machine.set_up("native")
    assert (code, said) == (0, "ream: installing Python packages into .venv (a minute or two)\n")
    assert len(machine.calls()) == 2
    assert "--require-hashes" in machine.calls()[1]
    assert machine.set_up("native") == (0, "")
    assert len(machine.calls()) == 2


def test_our_package_is_found_from_the_environment(machine: Machine) -> None:
    machine.set_up("python")
    (pth,) = machine.checkout.glob(".venv/lib/python3*/site-packages/ream.pth")
    assert pth.read_text() == f"{machine.checkout}/lab\n"


def test_another_lock_file_makes_another_environment(machine: Machine) -> None:
    machine.set_up("python")
    with (machine.checkout / "requirements.lock").open("a") as lock:
        lock.write("# changed\n")
    machine.set_up("python")
    assert machine.calls().count("venv") == 2


def test_another_python_makes_another_environment(machine: Machine) -> None:
    machine.set_up("python")
    python = machine.checkout / ".venv" / "bin" / "python"
    python.write_text(python.read_text().replace("3.11.2", "3.13.0"))
    machine.set_up("python")
    assert machine.calls().count("venv") == 2


def test_a_checkout_that_moved_makes_its_environment_again(machine: Machine) -> None:
    machine.set_up("python")
    machine.checkout = machine.checkout.rename(machine.here / "elsewhere")
    assert machine.set_up("python")[0] == 0
    assert machine.calls().count("venv") == 2


def test_an_environment_that_was_not_finished_is_made_again(machine: Machine) -> None:
    (machine.here / "network").unlink()
    code, said = machine.set_up("python")
    assert code == 3
    assert said.splitlines()[-1] == (
        "ream: cannot install the Python packages: ERROR: No matching distribution found; "
        "is a package index reachable, and the disk not full?"
    )
    (machine.here / "network").touch()
    assert machine.set_up("python")[0] == 0
    assert machine.set_up("python") == (0, "")


def test_root_is_told_what_will_be_installed_and_gets_just_that(machine: Machine) -> None:
    machine.lose("flex", "libelf-dev")
    code, said = machine.set_up("native")
    assert code == 0
    assert said.splitlines()[0] == "ream: installing Debian packages: flex libelf-dev"
    (install,) = [call for call in machine.calls() if "install" in call and "apt-get" in call]
    assert install.endswith("install --no-install-recommends flex libelf-dev")
    assert machine.set_up("native") == (0, "")


def test_a_user_is_given_the_command_and_nothing_is_installed(machine: Machine) -> None:
    machine.lose("flex", "libelf-dev")
    machine.be(uid=1000)
    code, said = machine.set_up("native")
    assert code == 3
    assert said == (
        "ream: missing Debian packages; to install them: "
        "sudo apt-get install --no-install-recommends flex libelf-dev\n"
    )
    assert machine.calls() == []


@pytest.mark.parametrize(
    ("words", "environment"), [(("--no-install",), {}), ((), {"REAM_NO_INSTALL": "1"})]
)
def test_installing_can_be_forbidden(
    machine: Machine, words: tuple[str, ...], environment: dict[str, str]
) -> None:
    machine.lose("flex")
    code, said = machine.set_up(*words, "native", **environment)
    assert code == 3
    assert said.endswith("apt-get install --no-install-recommends flex\n")
    assert "forbidden" in said
    assert machine.calls() == []


def test_a_program_that_its_package_does_not_bring_is_named(machine: Machine) -> None:
    machine.lose("gcc")
    code, said = machine.set_up("native")
    assert code == 3
    assert said.endswith("ream: still not found after installing: gcc; is it on PATH?\n")


def test_empty_package_lists_are_fetched_first(machine: Machine) -> None:
    machine.lose("flex")
    (machine.here / "lists").unlink()
    assert machine.set_up("native")[0] == 0
    assert [call.split()[-1] for call in machine.calls()[:2]] == ["update", "flex"]


def test_without_a_network_one_line_says_so(machine: Machine) -> None:
    machine.lose("flex")
    (machine.here / "network").unlink()
    code, said = machine.set_up("native")
    assert code == 3
    assert said.splitlines()[1:] == [
        "ream: cannot install flex: E: Unable to fetch; is a package archive reachable?"
    ]


def test_a_system_with_no_manager_that_we_know_is_told_what_it_lacks(machine: Machine) -> None:
    machine.lose("flex", "ndctl", "apt-get")
    code, said = machine.set_up("native", "vm")
    assert (code, said) == (
        3,
        "ream: missing, and neither apt-get nor dnf, pacman or zypper is here: flex ndctl\n",
    )


@pytest.mark.parametrize(
    ("manager", "install", "packages"),
    [
        ("dnf", "dnf install", "git-core xz qemu-system-x86-core ndctl daxctl"),
        ("pacman", "pacman -S --needed", "git xz qemu-system-x86 ndctl"),
        ("zypper", "zypper install", "git-core xz qemu-x86 ndctl daxctl"),
    ],
)
def test_elsewhere_packages_are_named_and_nothing_is_installed(
    machine: Machine, manager: str, install: str, packages: str
) -> None:
    machine.lose("git", "xz", "qemu-system-x86_64", "ndctl", "daxctl", "apt-get")
    machine.install(manager, f'echo "{manager} $*" >>"$HERE/calls"')
    code, said = machine.set_up("native", "vm")
    assert code == 3
    assert said == (
        "ream: missing packages; to install them, by names that are untried here: "
        f"sudo {install} {packages}\n"
    )
    assert machine.calls() == []


def test_elsewhere_what_no_package_is_known_of_is_named_apart(machine: Machine) -> None:
    machine.lose("bison", "qemu-aarch64", "apt-get")
    machine.install("zypper", "")
    code, said = machine.set_up("native", "arch")
    assert (code, said.split(": ")[-1]) == (
        3,
        "sudo zypper install bison; no package is known of qemu-aarch64\n",
    )
    machine.install("bison", "")
    code, said = machine.set_up("native", "arch")
    assert (code, said) == (3, "ream: missing, and no package is known of qemu-aarch64\n")


def test_a_debian_with_another_manager_installed_is_a_debian(machine: Machine) -> None:
    machine.lose("flex")
    machine.install("dnf", "exit 1")
    assert machine.set_up("native")[0] == 0
    assert any("install --no-install-recommends flex" in call for call in machine.calls())


STAGES = {
    *("python", "native", "count", "vm", "arm64", "quick", "arch", "test", "sshd", "distros"),
    "optional",
}


def test_every_line_of_the_table_is_of_a_stage_and_has_a_package_for_each_manager() -> None:
    for row in rows():
        stage, kind, _, *packages = row
        assert len(packages) == len(MANAGERS), row
        assert stage in STAGES
        assert kind in {"program", "header", "perl", "venv"}
        assert packages[0] != UNKNOWN, row


@pytest.mark.parametrize(
    ("manager", "line"),
    [
        ("apt-get", "apt-get install openssh-client"),
        ("zypper", "zypper install openssh-clients"),
        ("brew", None),
    ],
)
def test_the_doctor_names_the_package_of_this_machine(
    monkeypatch: pytest.MonkeyPatch, manager: str, line: str | None
) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: name if name == manager else None)
    assert install_line("ssh") == line


def test_a_stage_that_does_not_build_needs_no_compiler(machine: Machine) -> None:
    machine.lose("gcc", "libelf-dev")
    assert machine.set_up("python")[0] == 0
    assert not [call for call in machine.calls() if "apt-get" in call]


def test_the_vm_stage_wants_qemu_and_what_init_runs(machine: Machine) -> None:
    assert machine.set_up("native", "vm")[0] == 0
    machine.lose(*VM_PROGRAMS)
    machine.be(uid=1000)
    code, said = machine.set_up("native", "vm")
    assert (code, said.endswith(" qemu-system-x86 ndctl daxctl\n")) == (3, True)


def test_only_the_vm_stage_needs_a_machine_to_boot(machine: Machine) -> None:
    machine.lose(*VM_PROGRAMS)
    assert machine.set_up("native")[0] == 0
    assert not [call for call in machine.calls() if "apt-get" in call]


def test_counting_wants_the_user_mode_of_qemu_and_nothing_else_does(machine: Machine) -> None:
    assert machine.set_up("native", "count")[0] == 0
    machine.lose("qemu-x86_64")
    machine.be(uid=1000)
    assert machine.set_up("native", "vm")[0] == 0
    code, said = machine.set_up("native", "count")
    assert (code, said.endswith("--no-install-recommends qemu-user\n")) == (3, True)
    code, _, said = machine.run(machine.checkout / "ream", "run", "fork", "--count")
    assert (code, said.endswith("--no-install-recommends qemu-user\n")) == (3, True)


def test_the_arch_stage_wants_every_compiler_a_library_for_it_and_an_emulator(
    machine: Machine,
) -> None:
    assert machine.set_up("arm64", "arch")[0] == 0
    assert not [call for call in machine.calls() if "apt-get" in call]
    machine.lose(*ARCH_PROGRAMS, *ARCH_LIBRARIES)
    machine.be(uid=1000)
    code, said = machine.set_up("arm64", "arch")
    assert code == 3
    arm64, *others = (
        (f"gcc-{tools}", f"libc6-dev-{libc}-cross") for tools, libc in ARCHITECTURES.items()
    )
    assert said.split("--no-install-recommends ")[1].split() == [
        *arm64,
        "qemu-user",
        "qemu-system-arm",
        *(name for both in others for name in both),
    ]


def test_what_is_there_of_the_arch_stage_is_not_asked_for_again(machine: Machine) -> None:
    machine.lose("s390x-linux-gnu-gcc", "libc6-dev-armhf-cross")
    code, said = machine.set_up("--no-install", "arch")
    assert code == 3
    assert said.endswith("--no-install-recommends libc6-dev-armhf-cross gcc-s390x-linux-gnu\n")


def test_only_the_arch_stage_needs_other_architectures(machine: Machine) -> None:
    machine.lose(*ARCH_PROGRAMS, *ARCH_LIBRARIES)
    assert machine.set_up("native", "vm")[0] == 0
    assert not [call for call in machine.calls() if "apt-get" in call]


def test_the_arch_stage_brings_what_its_driver_asks_for() -> None:
    wanted = {program for subject in SUBJECTS for program in subject.machine.programs}
    emulators = {program for program in wanted if program.startswith("qemu-")}
    assert wanted - emulators == {"gcc", *ARCH_PROGRAMS} - {*ARCH_EMULATORS}


def test_a_python_that_cannot_make_environments_is_a_missing_package(machine: Machine) -> None:
    machine.install("python3", "exit 1")
    machine.be(uid=1000)
    code, said = machine.set_up("python", REAM_PYTHON="python3")
    assert (code, said.endswith("--no-install-recommends python3-venv\n")) == (3, True)


@pytest.mark.parametrize("words", [(), ("live",), ("--install", "native")])
def test_an_unknown_stage_is_a_usage_error(machine: Machine, words: tuple[str, ...]) -> None:
    code, said = machine.set_up(*words)
    assert (code, said.startswith("usage: ")) == (2, True)


def test_two_set_ups_at_once_make_one_environment(machine: Machine) -> None:
    machine.install("python3", f"case $* in *venv*) sleep 0.5 ;; esac\n{FAKES['python3']}")
    environment = {"PATH": str(machine.here / "bin"), "HERE": str(machine.here)}
    words = [str(machine.checkout / "lab" / "setup.sh"), "python"]
    both = [
        subprocess.Popen(words, env=environment, stderr=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    said = [process.communicate(timeout=60)[1] for process in both]
    assert [process.returncode for process in both] == [0, 0]
    assert machine.calls().count("venv") == 1
    assert any("waiting for another set-up" in words for words in said)


# --- ./ream ----------------------------------------------------------------------------


def test_the_launcher_sets_up_and_passes_everything_on(machine: Machine) -> None:
    ream = machine.checkout / "ream"
    code, out, err = machine.run(ream, "run", "zone-device", "--series", "my patch.patch")
    assert (code, out) == (0, "ran: -P -m ream run zone-device --series my patch.patch\n")
    assert err.startswith("ream: installing Python packages")
    assert machine.run(ream, "list") == (0, "ran: -P -m ream list\n", "")


def test_the_launcher_works_through_a_symbolic_link_from_anywhere(machine: Machine) -> None:
    machine.set_up("python")
    (machine.here / "bin" / "ream").symlink_to(machine.checkout / "ream")
    (machine.here / "elsewhere").mkdir()
    ran = machine.run("env", "ream", "--help", cwd=machine.here / "elsewhere")
    assert ran == (0, "ran: -P -m ream --help\n", "")


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (("help",), "ream"),
        (("--help",), "ream"),
        (("help", "judge"), "judge"),
        (("judge", "--help"), "judge"),
        (("help", "help"), "help"),
        (("--version",), None),
    ],
)
@pytest.mark.parametrize("linked", [False, True])
def test_what_only_prints_what_the_repository_has_sets_nothing_up(
    machine: Machine, words: tuple[str, ...], text: str | None, linked: bool
) -> None:
    if linked:
        _link(machine)
    expected = f"ream {__version__}\n"
    if text:
        expected = (CHECKOUT / "lab" / "help" / f"{text}.txt").read_text()
    assert machine.run(machine.checkout / "ream", *words) == (0, expected, "")
    assert machine.calls() == []


def test_a_link_to_an_environment_of_other_packages_stays(machine: Machine) -> None:
    _link(machine)
    code, out, err = machine.run(machine.checkout / "ream", "list")
    assert (code, out, err.count("\n")) == (3, "", 1)
    assert "ream: .venv is a link, to ../theirs, which has not what requirements.lock asks" in err
    assert (machine.checkout / ".venv").is_symlink()
    assert (machine.here / "theirs" / "ream-stamp").exists()
    assert machine.calls() == []


def test_a_link_to_an_environment_of_the_same_packages_runs_the_code_of_its_checkout(
    machine: Machine,
) -> None:
    machine.install("python3", f'{FAKES["python3"]}\n[ "$1" != -P ] || echo "$PYTHONPATH"')
    machine.set_up("python")
    (machine.checkout / ".venv").rename(machine.here / "theirs")
    stamp = machine.here / "theirs" / "ream-stamp"
    stamp.write_text(stamp.read_text().replace(str(machine.checkout), "/other"))
    (machine.checkout / ".venv").symlink_to("../theirs")
    said = f"ran: -P -m ream list\n{machine.checkout}/lab\n"
    assert machine.run(machine.checkout / "ream", "list") == (0, said, "")


def _link(machine: Machine) -> None:
    (machine.here / "theirs").mkdir()
    (machine.here / "theirs" / "ream-stamp").write_text("of other packages\n/other\n")
    (machine.checkout / ".venv").symlink_to("../theirs")


BUILDING = ("bisect", "explore", "judge", "kit", "program", "replicate", "run", "which")
READING = (
    *("check", "compare", "completion", "doctor", "export", "help", "history", "list", "man"),
    *("merge", "pack", "plan", "report", "restore", "show", "site", "verify"),
)


def test_the_launcher_knows_of_each_command_whether_it_builds() -> None:
    group: Any = typer.main.get_command(app)
    assert sorted((*BUILDING, *READING)) == sorted(group.commands)


@pytest.mark.parametrize(
    ("words", "builds"),
    [
        *(((name,), True) for name in BUILDING),
        *(((name,), False) for name in READING),
        (("-v", "run", "fork"), True),
        (("judge", "my.patch"), True),
        (("replicate", "--all"), True),
        (("check", "last", "--baseline", "last-1"), False),
        ((), False),
        (("--help",), False),
        (("--version",), False),
        (("run", "--help"), False),
        (("judge", "--help"), False),
        (("run", "--help-all"), False),
        (("pack", "last", "--to", "records"), False),
        (("run", "--dry-run"), False),
        (("-v", "doctor"), False),
    ],
)
def test_only_commands_that_build_need_a_compiler(
    machine: Machine, words: tuple[str, ...], builds: bool
) -> None:
    machine.lose("gcc")
    machine.be(uid=1000)
    code, _, said = machine.run(machine.checkout / "ream", *words)
    assert (code == 3) is builds
    assert ("apt-get install --no-install-recommends gcc" in said) is builds


def test_a_judgement_also_needs_what_counts(machine: Machine) -> None:
    machine.lose("qemu-x86_64")
    machine.be(uid=1000)
    code, _, said = machine.run(machine.checkout / "ream", "judge", "my.patch")
    assert (code, said.endswith("--no-install-recommends qemu-user\n")) == (3, True)


def test_the_launcher_can_be_forbidden_to_install(machine: Machine) -> None:
    machine.lose("gcc")
    code, _, said = machine.run(machine.checkout / "ream", "--no-install", "run")
    assert (code, "forbidden" in said, machine.calls()) == (3, True, [])
    assert machine.run(machine.checkout / "ream", "--no-install", "list")[0] == 0


def test_a_set_up_that_was_done_costs_next_to_nothing() -> None:
    stamp = CHECKOUT / ".venv" / "ream-stamp"
    if not stamp.exists() or f"{CHECKOUT}\n" not in stamp.read_text():
        pytest.skip("not run from a checkout that was set up")
    # Were it out of date, this would fail, and not take away the environment that tests run in.
    settings = {**os.environ, "REAM_PYTHON": "/nonexistent/python"}
    words = (CHECKOUT / "lab" / "setup.sh", "--no-install", "python")
    before = os.times()
    subprocess.run(words, env=settings, check=True)
    after = os.times()
    cpu_s = after.children_user + after.children_system
    assert cpu_s - before.children_user - before.children_system < 0.3
