# SPDX-License-Identifier: GPL-2.0-only
"""Other configurations and compilers for the kernels, as --config and --cc ask for them."""

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
"""File of options that the native stage cannot have, with the reasons."""

SUFFIX = ".config"
RUNNING = "running"
"""Value of --config for the options of the running kernel."""

LARGEST_BYTES = 1 << 20
"""Largest file of options; a whole .config has a third of that."""

_LINE = re.compile(r"(?:CONFIG_\w+=.+|# CONFIG_\w+ is not set|#.*|)(?:\s*# with(?:out)? \w+)?")

_BOOT = re.compile(r"^# boot (\S+=\S+)$", re.MULTILINE)


@dataclass(frozen=True)
class Setup:
    """What a kernel is built with besides its source. Different setups are different builds."""

    config: str = ""
    """A fragment of options on top of ream's; empty: only ream's."""
    name: str = ""
    """The user's name of the options: the name of a file."""
    cc: str = GCC
    arch: str = X86_64.name

    @property
    def target(self) -> Arch:
        """The architecture of the kernel."""
        return arch_of(self.arch)

    @property
    def asked(self) -> str:
        """The options without comments, which do not affect a kernel."""
        kept = re.compile(r"(?!#)|# CONFIG_")
        return "\n".join(one for one in self.config.splitlines() if kept.match(one))

    @property
    def word(self) -> str:
        """The value of --config for the same options in the same stage; for a file, its name."""
        is_own = (KERNEL_CONFIG / self.name).is_file()
        return self.name.removesuffix(SUFFIX).partition("-")[2] if is_own else self.name

    @property
    def boot(self) -> tuple[str, ...]:
        """Parameters of the boot of a hosted computer, from lines `# boot NAME=VALUE`."""
        return tuple(_BOOT.findall(self.config))

    def label(self, tree: str) -> str:
        """Return the label of a kernel source that is built with this setup."""
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
    """Return the setup for --config, --cc and --arch.

    cc: the name of a program, or its path. step: called with what is left out of a whole
    configuration. Raises what `named_config` raises, BadUsage for an unknown program or
    architecture, CannotRunHere if that cannot be compiled for.
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
    """Return the options that --config names: a file, or one of kernel/config for this stage.

    `running` names those of the running kernel. From these, as from any whole .config, the native
    stage uses the options of memory management that hosted kernels can have.
    Raises BadUsage if there is no such file, for a line that is no option, and in the native stage
    for options that a hosted kernel cannot have.
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
    """Return options that no hosted kernel can have, with the reasons.

    several: instead, options that are possible only in a program that hosts a single kernel.
    """
    held = read_toml(UNHOSTED)
    of_all = {name: why for name, why in held.items() if isinstance(why, str)}
    return held["several_kernels"] if several else of_all


def refusals(text: str, reasons: Mapping[str, str]) -> Iterator[str]:
    """Yield the options that a fragment enables and that cannot be hosted, with the reasons."""
    for name, value in options(text).items():
        if name in reasons and value != "n":
            yield f"CONFIG_{name}: {reasons[name]}"


def check_options(fragment: str, setup: Setup, held: str, tree: Path, label: str) -> None:
    """Raise BadUsage naming options of a setup that a .config does not satisfy.

    fragment: ream's options. Those that the setup's options prevent are named, too.
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
