"""Whole models and blocks in plain PyTorch, random weights: what figures are named after.

Each workload is a function of sizes that answers with a module and its inputs.  `planning` holds
the sizes of the name; `small` such that a kernel takes a moment on ptxsim; `cpu` what a CPU is
timed at, `planning` where left out.
"""

import dataclasses
from collections.abc import Callable

from benchmarks.bert import bert_base
from benchmarks.workloads import blocks, digits
from benchmarks.workloads.adamw import adamw_step
from benchmarks.workloads.asr import asr
from benchmarks.workloads.crnn import crnn
from benchmarks.workloads.dien import dien
from benchmarks.workloads.nmt import nmt
from benchmarks.workloads.speech import speech
from benchmarks.workloads.transformer import transformer, transformer_loss


@dataclasses.dataclass(frozen=True)
class Workload:
    build: Callable  # (**sizes) -> (module, inputs)
    planning: dict
    small: dict
    terms: int  # of the longest sum that meets in an element, for the error bound
    cpu: dict | None = None
    infers: bool = True  # has a mode without gradients of its own
    trains: bool = True  # may run a training step: its inputs are not stepped in place

    def make(self, scale="planning"):
        """(module that infers, inputs) at "planning", "small" or "cpu"."""
        sizes = self.cpu or self.planning if scale == "cpu" else getattr(self, scale)
        module, inputs = self.build(**sizes)
        return module.eval(), inputs


BERT = {"batch": 1, "length": 128}
SMALL_BERT = {"batch": 2, "length": 13, "layers": 1, "vocabulary": 101, "width": 48, "heads": 3,
              "hidden": 96}  # fmt: skip
BASE = {"layers": 6, "width": 512, "heads": 8, "hidden": 2048, "vocabulary": 37000}
SMALL_BASE = {"layers": 1, "width": 32, "heads": 4, "hidden": 64, "vocabulary": 101}
ASR = {"batch": 1, "frames": 300, "mels": 80, "width": 256, "heads": 4, "blocks": 6, "kernel": 31}
SMALL_ASR = {"batch": 2, "frames": 28, "mels": 16, "width": 32, "heads": 4, "blocks": 1,
             "kernel": 5}  # fmt: skip
CRNN = {"batch": 1, "width": 100, "base": 64, "hidden": 256, "classes": 37}
SMALL_CRNN = {"batch": 2, "width": 16, "base": 4, "hidden": 24, "classes": 11}
ROWS = {"batch": 128, "steps": 28, "width": 28, "hidden": 128, "classes": 10}
SMALL_ROWS = {"batch": 5, "steps": 4, "width": 12, "hidden": 16, "classes": 10}
TEXT = {"batch": 4, "length": 512, "width": 768, "heads": 12}
SMALL_TEXT = {"batch": 2, "length": 19, "width": 48, "heads": 3}
GPT2 = {"layers": 12, "width": 768, "vocabulary": 50257, "positions": 1024}

WORKLOADS = {
    "nmt": Workload(
        nmt,
        {"batch": 64, "length": 17, "width": 1024, "heads": 8, "hidden": 4096, "layers": 1},
        {"batch": 2, "length": 17, "width": 48, "heads": 3, "hidden": 96, "layers": 1}, 4096,
    ),
    "bert": Workload(bert_base, BERT, SMALL_BERT, 3072),
    "bert_batch32": Workload(
        bert_base, BERT | {"batch": 32}, SMALL_BERT | {"batch": 5}, 3072, cpu=BERT | {"batch": 8}
    ),
    "transformer": Workload(
        transformer, BASE | {"batch": 1, "length": 64}, SMALL_BASE | {"batch": 1, "length": 11},
        2048, trains=False,
    ),
    "transformer_loss": Workload(
        transformer_loss, BASE | {"batch": 64, "length": 64},
        SMALL_BASE | {"batch": 3, "length": 11}, 37000,
        cpu=BASE | {"batch": 4, "length": 64}, infers=False,
    ),
    "dien": Workload(
        dien,
        {"batch": 256, "history": 100, "items": 100_000, "kinds": 1000, "embedding": 18,
         "hidden": 36},
        {"batch": 5, "history": 4, "items": 101, "kinds": 7, "embedding": 6, "hidden": 12}, 256,
    ),
    "asr": Workload(asr, ASR, SMALL_ASR, 5120),
    "asr_batch8": Workload(asr, ASR | {"batch": 8}, SMALL_ASR | {"batch": 3}, 5120),
    "crnn": Workload(crnn, CRNN, SMALL_CRNN, 4608),
    "crnn_batch8": Workload(crnn, CRNN | {"batch": 8}, SMALL_CRNN | {"batch": 3}, 4608),
    "speech": Workload(
        speech,
        {"batch": 8, "mels": 80, "frames": 100, "hidden": 256, "layers": 4, "classes": 64},
        {"batch": 2, "mels": 8, "frames": 7, "hidden": 12, "layers": 2, "classes": 5}, 512,
        infers=False,
    ),
    "lr": Workload(
        digits.lr, {"batch": 100, "features": 784, "classes": 10},
        {"batch": 7, "features": 33, "classes": 10}, 784, infers=False,
    ),
    "rnn": Workload(digits.rnn, ROWS, SMALL_ROWS, 512, infers=False),
    "birnn": Workload(digits.birnn, ROWS, SMALL_ROWS, 512, infers=False),
    "word2vec": Workload(
        digits.word2vec, {"batch": 128, "vocabulary": 50_000, "width": 200, "negatives": 64},
        {"batch": 7, "vocabulary": 101, "width": 12, "negatives": 5}, 200, infers=False,
    ),
    "gpt2_block": Workload(blocks.gpt2_block, TEXT, SMALL_TEXT, 3072),
    "vit_block": Workload(
        blocks.vit_block, {"batch": 8, "length": 197, "width": 768, "heads": 12}, SMALL_TEXT, 3072
    ),
    "llama_block": Workload(
        blocks.llama_block,
        {"batch": 1, "length": 512, "width": 2048, "heads": 32, "groups": 8, "hidden": 5632},
        {"batch": 2, "length": 19, "width": 64, "heads": 4, "groups": 2, "hidden": 96}, 5632,
    ),
    "unet_resblock": Workload(
        blocks.unet_resblock,
        {"batch": 2, "channels": 320, "out": 640, "size": 32, "groups": 32, "embedding": 1280},
        {"batch": 2, "channels": 8, "out": 16, "size": 9, "groups": 4, "embedding": 12}, 20480,
    ),
    "mixer_block": Workload(
        blocks.mixer_block,
        {"batch": 16, "patches": 196, "width": 768, "of_patches": 384, "of_channels": 3072},
        {"batch": 2, "patches": 19, "width": 48, "of_patches": 24, "of_channels": 96}, 3072,
    ),
    "moe_router": Workload(
        blocks.moe_router, {"tokens": 4096, "width": 2048, "experts": 64},
        {"tokens": 37, "width": 48, "experts": 8}, 4096,
    ),
    "adamw_step": Workload(
        adamw_step, GPT2, {"layers": 1, "width": 16, "vocabulary": 37, "positions": 8}, 1,
        cpu=GPT2 | {"layers": 2, "vocabulary": 5025}, trains=False,
    ),
}  # fmt: skip
