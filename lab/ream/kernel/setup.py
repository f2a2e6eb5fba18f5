# SPDX-License-Identifier: GPL-2.0-only
"""How kernels are built where somebody asks for another way than ours: --config and --cc."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from ream.errors import BadUsage
from ream.files import read_given
from ream.kernel.arch import X86_64, Arch, arch_of
from ream.kernel.build import GCC, declared, options, suited, unmet_options
from ream.kernel.cache import Step
from ream.kernel.running import hosted_config, is_whole, left_out, running_config
from ream.nearest import hint
from ream.paths import KERNEL_CONFIG
from ream.values import read_toml

UNHOSTED = KERNEL_CONFIG / "native.unhosted.toml"
"""Options that the native stage cannot have, and why."""

SUFFIX = ".config"
RUNNING = "running"
"""The name of the running kernel's options, natively."""

LARGEST_BYTES = 1 << 20
"""A whole .config has a third of that."""

_LINE = re.compile(r"(?:CONFIG_\w+=.+|# CONFIG_\w+ is not set|#.*|)(?:\s*# with(?:out)? \w+)?")

_BOOT = re.compile(r"^# boot (\S+=\S+)$", re.MULTILINE)


@dataclass(frozen=True)
class Setup:
    """What a kernel is built with besides its source: another one is another build."""

    config: str = ""
    """Options over ours, a fragment; empty: ours alone."""
    name: str = ""
    """The options as the user knows them: the name of a file."""
    cc: str = GCC
    arch: str = X86_64.name

    @property
    def target(self) -> Arch:
        """The architecture."""
        return arch_of(self.arch)

    @property
    def asked(self) -> str:
        """The options without comments, which are no part of a kernel."""
        kept = re.compile(r"(?!#)|# CONFIG_")
        return "\n".join(one for one in self.config.splitlines() if kept.match(one))

    @property
    def word(self) -> str:
        """What --config takes for the same options in the same stage; of a file its name."""
        is_own = (KERNEL_CONFIG / self.name).is_file()
        return self.name.removesuffix(SUFFIX).partition("-")[2] if is_own else self.name

    @property
    def boot(self) -> tuple[str, ...]:
        """What the boot of a hosted computer is told, by lines `# boot NAME=VALUE`."""
        return tuple(_BOOT.findall(self.config))

    def label(self, tree: str) -> str:
        """The label of a kernel source that is built like this."""
        of = "" if self.arch == X86_64.name else f" for {self.arch}"
        return f"{tree}{of}, configured by {self.name}" if self.config else f"{tree}{of}"


OURS = Setup()


def wanted_setup(
    config: str | None,
    cc: str,
    stage: str,
    arch: str = X86_64.name,
    *,
    step: Step | None = None,
) -> Setup:
    """What --config, --cc and --arch ask for.

    cc: the name of a program, or its path. step: told what is left out of a whole configuration.
    Raises what `named_config` does, BadUsage for no program or architecture, CannotRunHere where
    that cannot be compiled for.
    """
    its = arch_of(arch)
    if not its.is_here:
        its.require_tools()
    if not cc or re.search(r"\s", cc):
        raise BadUsage(f"--cc {cc!r}: one word, the name or the path of a compiler")
    program = str(Path(cc).absolute()) if "/" in cc else cc
    setup = OURS if config is None else named_config(config, stage)
    if step and (left := left_out(setup.config)):
        step(f"{setup.name}: what costs memory management time is taken; left out: {left}")
    return replace(setup, cc=program, arch=its.name)


def named_config(words: str, stage: str) -> Setup:
    """The options that --config asks for: a file, or one of kernel/config for this stage.

    `running` are those of the kernel that this machine runs. Natively of these, as of any whole
    .config, what memory management does is taken, as far as it can be hosted.
    Raises BadUsage if there is none, for a line that is no option, and in the native stage for
    options that a hosted kernel cannot have.
    """
    path = Path(words)
    if stage == "native" and words.removesuffix(SUFFIX) == RUNNING:
        return Setup(running_config(), RUNNING)
    if not path.is_file():
        known = sorted(
            file.name.removeprefix(f"{stage}-").removesuffix(SUFFIX)
            for file in KERNEL_CONFIG.glob(f"{stage}-*{SUFFIX}")
        )
        name = words.removesuffix(SUFFIX)
        if name not in known:
            raise BadUsage(
                f"--config {words}: no such file, and none of the {stage} stage's own"
                f" ({', '.join([*known, *([RUNNING] if stage == 'native' else [])])})"
                f"{hint(name, known)}"
            )
        path = KERNEL_CONFIG / f"{stage}-{name}{SUFFIX}"
    text = read_given(path, largest_bytes=LARGEST_BYTES, what="options")
    lines = (line.strip() for line in text.splitlines())
    if faulty := next((line for line in lines if not _LINE.fullmatch(line)), None):
        raise BadUsage(
            f"{path}: {faulty!r} is no option: neither CONFIG_NAME=VALUE nor"
            " # CONFIG_NAME is not set"
        )
    if stage != "native" and _BOOT.search(text):
        raise BadUsage(f"{path}: lines `# boot` are for hosted computers, of the native stage")
    if stage == "native" and is_whole(text):
        return Setup(hosted_config(options(text)), path.name)
    if stage == "native" and (refused := [*refusals(text, unhosted())]):
        raise BadUsage(f"{path}: the native stage cannot have {'; '.join(refused)}")
    return Setup(text, path.name)


def unhosted(*, several: bool = False) -> dict[str, str]:
    """Options that no hosted kernel can have, each with the reason.

    several: those instead that a program can have which hosts one kernel, and no other program.
    """
    held = read_toml(UNHOSTED)
    of_all = {name: why for name, why in held.items() if isinstance(why, str)}
    return held["several_kernels"] if several else of_all


def refusals(text: str, reasons: Mapping[str, str]) -> Iterator[str]:
    """The options that a fragment turns on and that have a reason against it, each with that."""
    for name, value in options(text).items():
        if name in reasons and value != "n":
            yield f"CONFIG_{name}: {reasons[name]}"


def check_options(fragment: str, setup: Setup, held: str, tree: Path, label: str) -> None:
    """Raise BadUsage naming options of a setup that a .config does not hold.

    fragment: ours. An option of ours that the setup's keep from holding is named, too.
    """
    asked = suited(setup.config, tree, setup.target)
    if not (unmet := unmet_options(f"{fragment}\n{asked}", held)):
        return
    theirs = options(asked)
    names = [line.partition(":")[0].removeprefix("CONFIG_") for line in unmet]
    there = declared(tree, tuple(sorted(names)), setup.target)
    said = []
    for name, line in zip(names, unmet, strict=True):
        if name not in there:
            why = f"{label} has no such option"
        elif name in theirs:
            why = "what it depends on is off, or something else decides it"
        else:
            why = "ours, which does not hold with these options"
        said.append(f"{line} ({why})")
    raise BadUsage(f"{setup.name}: {'; '.join(said)}")
