# SPDX-License-Identifier: GPL-2.0-only
"""Rows whose folios may be copied by channels of an engine: threads, or a declared model of one."""

from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal, Self

from pydantic import Field, model_validator

from ream.experiment.shape import RowBase
from ream.values import Scalar

MAX_CHANNELS = 16  # dcbm's nr_dma_chan, and the published table's last line


@dataclass(frozen=True)
class EngineModel:
    """What a channel takes for a descriptor: `setup_ns` and its bytes at `mb_per_s` (10^6/s)."""

    setup_ns: int
    mb_per_s: int

    def __str__(self) -> str:
        return f"{self.setup_ns} ns a descriptor, {self.mb_per_s / 1000:g} GB/s a channel"

    def kept_words(self, late: int) -> str:
        """Remark whether a guest kept to the model. late: how often its threads were slower."""
        kept = f"could not be kept {late:,} times: its threads were slower" if late else "was kept"
        return f"the model ({self}) {kept}"


NOT_COUNTED = "the engine has no model here: who waits for a device executes no instructions"
"""Why a row with a model is not measured where instructions are counted."""


MODELS = MappingProxyType({"ptdma-v4-grid": EngineModel(setup_ns=570, mb_per_s=6180)})
"""Models by name. ptdma-v4-grid: the best fit to the 36 cells of the published table
migrate-offload-v4, by least squares of logarithms; docs/method.md shows how, and how well."""


class EngineRow(RowBase):
    """A row that may have channels.

    engine_model: none, channels are threads that copy as fast as they can; ptdma-v4-grid, a
    channel takes the time that MODELS has; declared, what engine_setup_ns and engine_mb_per_s say.
    """

    if TYPE_CHECKING:
        channels: int
        """Channels that copy at once. Each experiment has the field, with a default of its own."""
        buffer_bytes: int
        """Bytes of memory that are moved. Each experiment has this field, too."""

    engine_model: Literal["none", "ptdma-v4-grid", "declared"] = "none"
    engine_setup_ns: int | None = Field(default=None, ge=0, le=10**9)
    engine_mb_per_s: int | None = Field(default=None, gt=0, le=10**6)

    @model_validator(mode="after")
    def _its_engine_is_declared(self) -> Self:
        own = (self.engine_setup_ns, self.engine_mb_per_s)
        if self.engine_model != "none" and not self.channels:
            raise ValueError("engine_model is given, but no channels")
        if self.engine_model == "declared" and None in own:
            raise ValueError("engine_model = declared needs engine_setup_ns and engine_mb_per_s")
        if self.engine_model != "declared" and own != (None, None):
            raise ValueError("engine_setup_ns and engine_mb_per_s need engine_model = declared")
        return self

    @property
    def model(self) -> EngineModel | None:
        """What the engine's channels take; None: they are threads."""
        if self.engine_setup_ns is not None and self.engine_mb_per_s is not None:
            return EngineModel(self.engine_setup_ns, self.engine_mb_per_s)
        return MODELS.get(self.engine_model)

    @property
    def workers(self) -> int:
        """Channels that want a CPU; in a guest those of a model do, which copy meanwhile."""
        return 0 if self.model and self.stage == "native" else self.channels

    @property
    def stands_in(self) -> str | None:
        return "a CPU thread" if self.channels and not self.model else None

    @property
    def model_of_device(self) -> str | None:
        return f"{self.engine_model}: {self.model}" if self.model else None

    def engine_params(self) -> dict[str, Scalar | None]:
        """What stands for the engine, among a row's parameters."""
        return {
            "engine_model": self.engine_model if self.channels else None,
            "engine_setup_ns": self.model.setup_ns if self.model else None,
            "engine_mb_per_s": self.model.mb_per_s if self.model else None,
        }

    def model_words(self) -> str:
        """Words of a title: the name of the model and its numbers."""
        return f"engine modelled as {self.engine_model} ({self.model})"
