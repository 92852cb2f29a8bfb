"""Public architectures as tiny configurations with random weights: nothing is downloaded.

A row names a class of a library, what its configuration changes, and its inputs.  Sizes are chosen
so that a call takes milliseconds: two layers where the architecture allows it.
"""

import dataclasses
import importlib
import importlib.util
import os
import sys

import torch

BATCH = 2
TOKENS = 64
WORDS = 1000
SIDE = 64  # of images
FRAMES = 128  # of spectrograms
SAMPLES = 8000  # of sound

TEXT = {
    "vocab_size": WORDS, "hidden_size": 128, "num_hidden_layers": 2, "num_attention_heads": 4,
    "intermediate_size": 512, "max_position_embeddings": 128,
}  # fmt: skip
DECODER = TEXT | {"num_key_value_heads": 2}
SEQ2SEQ = {
    "vocab_size": WORDS, "d_model": 128, "encoder_layers": 2, "decoder_layers": 2,
    "encoder_attention_heads": 4, "decoder_attention_heads": 4, "encoder_ffn_dim": 512,
    "decoder_ffn_dim": 512, "max_position_embeddings": 128,
}  # fmt: skip
T5 = {
    "vocab_size": WORDS, "d_model": 128, "num_layers": 2, "num_decoder_layers": 2, "num_heads": 4,
    "d_kv": 32, "d_ff": 512,
}  # fmt: skip
IMAGE = {
    "hidden_size": 128, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 512,
    "image_size": SIDE, "patch_size": 8,
}  # fmt: skip
SOUND = {
    "hidden_size": 128, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 512,
    "conv_dim": (64,) * 7, "num_conv_pos_embeddings": 16, "num_conv_pos_embedding_groups": 4,
    "vocab_size": 32, "layerdrop": 0.0, "apply_spec_augment": False,
}  # fmt: skip
EXPERTS = {"num_experts_per_tok": 2, "pad_token_id": 0}


@dataclasses.dataclass(frozen=True)
class Architecture:
    """`make` gives the module, seeded by the caller; `inputs` its keyword arguments."""

    name: str
    make: object
    inputs: object

    def build(self, seed=0):
        register_missing_ops()
        torch.manual_seed(seed)
        module = self.make()
        torch.manual_seed(seed + 1)
        return module, self.inputs()


# Inputs.


def words(count=TOKENS, batch=BATCH):
    return torch.randint(3, WORDS - 2, (batch, count))


def text():
    return {"input_ids": words()}


def masked_text():
    mask = torch.ones(BATCH, TOKENS, dtype=torch.long)
    mask[0, TOKENS - 9 :] = 0
    return {"input_ids": words(), "attention_mask": mask}


def two_texts():
    return {"input_ids": words(), "decoder_input_ids": words(TOKENS // 2)}


def image():
    return {"pixel_values": torch.randn(BATCH, 3, SIDE, SIDE)}


def sound():
    return {"input_values": torch.randn(BATCH, SAMPLES)}


def text_and_image():
    return text() | image()


def spectrogram_and_text():
    return {
        "input_features": torch.randn(BATCH, 80, FRAMES),
        "decoder_input_ids": words(TOKENS // 2),
    }


def spectrogram():
    return {"input_values": torch.randn(BATCH, FRAMES, 64)}


def series():
    return {"past_values": torch.randn(BATCH, 64, 3), "future_values": torch.randn(BATCH, 8, 3)}


def text_with_places():
    left, top = (torch.randint(0, 50, (BATCH, TOKENS)) for _ in range(2))
    return text() | {"bbox": torch.stack([left, top, left + 9, top + 9], -1)}


def image_tokens_and_text():
    """Sixteen places of the text stand for the patches of the image."""
    ids = words()
    ids[:, :64] = WORDS - 1
    return {"input_ids": torch.cat([ids[:, :64], words(16)], 1)} | image()


# transformers.


def of_transformers(model, **changes):
    """A model of the library by its class's name; nested configurations are given as dicts."""

    def make():
        import transformers

        found = getattr(transformers, model)
        return found(found.config_class(**changes))

    return make


TRANSFORMERS = {
    # encoders
    "albert": ("AlbertForMaskedLM", TEXT | {"embedding_size": 64}, masked_text),
    "bert": ("BertForMaskedLM", TEXT, masked_text),
    "deberta_v2": (
        "DebertaV2ForMaskedLM",
        TEXT | {"relative_attention": True, "position_buckets": 32, "pos_att_type": ["p2c", "c2p"]},
        masked_text,
    ),
    "distilbert": (
        "DistilBertForMaskedLM",
        {"vocab_size": WORDS, "dim": 128, "n_layers": 2, "n_heads": 4, "hidden_dim": 512},
        masked_text,
    ),
    "electra": ("ElectraForPreTraining", TEXT | {"embedding_size": 64}, masked_text),
    "esm": ("EsmForMaskedLM", TEXT | {"pad_token_id": 1, "mask_token_id": 2}, masked_text),
    "fnet": ("FNetForMaskedLM", TEXT, text),
    "longformer": ("LongformerForMaskedLM", TEXT | {"attention_window": 16}, masked_text),
    "modernbert": (
        "ModernBertForMaskedLM",
        TEXT | {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2, "cls_token_id": 1,
                "sep_token_id": 2},
        masked_text,
    ),  # fmt: skip
    "mpnet": ("MPNetForMaskedLM", TEXT, masked_text),
    "roberta": ("RobertaForMaskedLM", TEXT, masked_text),
    "xlnet": (
        "XLNetLMHeadModel",
        {"vocab_size": WORDS, "d_model": 128, "n_layer": 2, "n_head": 4, "d_inner": 512},
        text,
    ),
    # decoders
    "bloom": ("BloomForCausalLM", {"vocab_size": WORDS, "hidden_size": 128, "n_layer": 2,
                                   "n_head": 4}, text),
    "falcon": ("FalconForCausalLM", TEXT, text),
    "gemma2": ("Gemma2ForCausalLM", DECODER | {"head_dim": 32, "sliding_window": 32}, text),
    "gemma3": ("Gemma3ForCausalLM", DECODER | {"head_dim": 32, "sliding_window": 32}, text),
    "gpt2": ("GPT2LMHeadModel", {"vocab_size": WORDS, "n_embd": 128, "n_layer": 2, "n_head": 4,
                                 "n_positions": 128}, text),
    "gpt_neox": ("GPTNeoXForCausalLM", TEXT, text),
    "gptj": ("GPTJForCausalLM", {"vocab_size": WORDS, "n_embd": 128, "n_layer": 2, "n_head": 4,
                                 "n_positions": 128, "rotary_dim": 16}, text),
    "llama": ("LlamaForCausalLM", DECODER, text),
    "opt": ("OPTForCausalLM", TEXT | {"ffn_dim": 512, "word_embed_proj_dim": 128}, text),
    "phi3": ("Phi3ForCausalLM", DECODER | {"pad_token_id": 0}, text),
    "qwen3": ("Qwen3ForCausalLM", DECODER | {"head_dim": 32}, text),
    # mixtures of experts
    "deepseek_v3": (
        "DeepseekV3ForCausalLM",
        TEXT | EXPERTS | {
            "num_key_value_heads": 4, "moe_intermediate_size": 64, "n_routed_experts": 8,
            "n_group": 2, "topk_group": 1, "kv_lora_rank": 32, "q_lora_rank": 48,
            "qk_rope_head_dim": 16, "qk_nope_head_dim": 32, "v_head_dim": 32,
            "first_k_dense_replace": 1,
        },
        text,
    ),  # fmt: skip
    "gpt_oss": ("GptOssForCausalLM", DECODER | EXPERTS | {
        "num_local_experts": 4, "head_dim": 32, "sliding_window": 32}, text),
    "mixtral": ("MixtralForCausalLM", DECODER | EXPERTS | {"num_local_experts": 4}, text),
    "switch_transformers": (
        "SwitchTransformersForConditionalGeneration",
        T5 | {
            "num_experts": 4, "num_sparse_encoder_layers": 1, "num_sparse_decoder_layers": 1,
            "router_jitter_noise": 0.0,  # drawn in the type of the values: fp64 draws others
        },
        two_texts,
    ),
    # state spaces
    "jamba": ("JambaForCausalLM", DECODER | EXPERTS | {
        "num_experts": 2, "attn_layer_period": 2, "attn_layer_offset": 1, "mamba_d_state": 8,
        "mamba_dt_rank": 8, "use_mamba_kernels": False}, text),
    "mamba": ("MambaForCausalLM", {"vocab_size": WORDS, "hidden_size": 128, "state_size": 8,
                                   "num_hidden_layers": 2}, text),
    "mamba2": ("Mamba2ForCausalLM", {
        "vocab_size": WORDS, "hidden_size": 128, "state_size": 16, "num_hidden_layers": 2,
        "num_heads": 8, "head_dim": 32, "n_groups": 2, "chunk_size": 32}, text),
    # encoders with decoders
    "bart": ("BartForConditionalGeneration", SEQ2SEQ, two_texts),
    "t5": ("T5ForConditionalGeneration", T5, two_texts),
    # sound
    "audio_spectrogram_transformer": (
        "ASTForAudioClassification",
        {"hidden_size": 128, "num_hidden_layers": 2, "num_attention_heads": 4,
         "intermediate_size": 512, "max_length": FRAMES, "num_mel_bins": 64},
        spectrogram,
    ),  # fmt: skip
    "hubert": ("HubertForCTC", SOUND, sound),
    "wav2vec2": ("Wav2Vec2ForCTC", SOUND, sound),
    "whisper": ("WhisperForConditionalGeneration", SEQ2SEQ | {
        "num_mel_bins": 80, "max_source_positions": FRAMES // 2, "max_target_positions": 64,
        "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2, "decoder_start_token_id": 1,
        "suppress_tokens": None, "begin_suppress_tokens": None}, spectrogram_and_text),
    # images
    "beit": ("BeitForImageClassification", IMAGE, image),
    "convnext": ("ConvNextForImageClassification", {
        "depths": [1, 1, 2, 1], "hidden_sizes": [24, 48, 96, 192], "image_size": SIDE}, image),
    "dinov2": ("Dinov2ForImageClassification", IMAGE, image),
    "segformer": ("SegformerForSemanticSegmentation", {
        "depths": [1, 1, 1, 1], "hidden_sizes": [16, 32, 64, 128], "decoder_hidden_size": 64},
        image),
    "swin": ("SwinForImageClassification", {
        "image_size": SIDE, "patch_size": 4, "embed_dim": 32, "depths": [2, 2],
        "num_heads": [2, 4], "window_size": 4}, image),
    "vit": ("ViTForImageClassification", IMAGE, image),
    # several kinds of inputs
    "blip": ("BlipForConditionalGeneration", {
        "text_config": TEXT | {"bos_token_id": 1, "pad_token_id": 0, "sep_token_id": 2},
        "vision_config": IMAGE}, text_and_image),
    "clip": ("CLIPModel", {"text_config": TEXT, "vision_config": IMAGE, "projection_dim": 64},
             text_and_image),
    "layoutlm": ("LayoutLMForMaskedLM", TEXT, text_with_places),
    "llava": ("LlavaForConditionalGeneration", {
        "text_config": DECODER | {"model_type": "llama"},
        "vision_config": IMAGE | {"model_type": "clip_vision_model"},
        "image_token_index": WORDS - 1}, image_tokens_and_text),
    "siglip": ("SiglipModel", {"text_config": TEXT | {"max_position_embeddings": TOKENS},
                               "vision_config": IMAGE}, text_and_image),
    "vilt": ("ViltModel", TEXT | IMAGE, text_and_image),
    # series
    "patchtst": ("PatchTSTForPrediction", {
        "num_input_channels": 3, "context_length": 64, "patch_length": 8, "patch_stride": 8,
        "d_model": 64, "num_hidden_layers": 2, "prediction_length": 8, "loss": "mse",
        "ffn_dim": 128}, series),
}  # fmt: skip


# timm.


def of_timm(model, **changes):
    def make():
        import timm

        return timm.create_model(model, num_classes=100, **changes)

    return make


def image_of(side):
    return lambda: {"x": torch.randn(BATCH, 3, side, side)}


SIDED = {"img_size": SIDE}
TIMM = {  # what the configuration changes, and the side of the image
    "cait_xxs24_224": (SIDED | {"depth": 2}, SIDE),
    "convnextv2_atto": ({"depths": (1, 1, 2, 1)}, SIDE),
    "deit_tiny_patch16_224": (SIDED | {"depth": 2}, SIDE),
    "efficientnet_b0": ({}, SIDE),
    "eva02_tiny_patch14_224": ({"img_size": 56, "depth": 2}, 56),
    "ghostnet_100": ({}, SIDE),
    "levit_128s": (SIDED, SIDE),
    "mixer_s16_224": (SIDED, SIDE),
    "mobilenetv3_small_100": ({}, SIDE),
    "poolformer_s12": ({}, SIDE),
    "regnety_002": ({}, SIDE),
    "resnest14d": ({}, SIDE),
    "xcit_nano_12_p8_224": (SIDED | {"depth": 2}, SIDE),
}


# torchvision.


def register_missing_ops():
    """A torchvision made for another torch has no ops, not even by name: its models need none."""
    found = importlib.util.find_spec("torchvision")
    if found is None or "torchvision" in sys.modules:
        return
    try:
        torch.ops.load_library(os.path.join(os.path.dirname(found.origin), "_C.so"))
    except OSError:
        library = torch.library.Library("torchvision", "DEF")
        for op in ("nms", "qnms"):
            library.define(f"{op}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
        _kept.append(library)


_kept = []


def of_torchvision(module, model, **changes):
    def make():
        models = importlib.import_module(f"torchvision.models{module}")
        return getattr(models, model)(weights=None, **changes)

    return make


def image_batch():
    return {"x": torch.randn(BATCH, 3, SIDE, SIDE)}


def images_and_boxes():
    images = [torch.rand(3, SIDE, SIDE) for _ in range(BATCH)]
    boxes = torch.tensor([[4.0, 4.0, 40.0, 40.0], [10.0, 20.0, 60.0, 50.0]])
    return {"images": images, "targets": [{"boxes": boxes, "labels": torch.tensor([1, 2])}] * BATCH}


def frames():
    return {"x": torch.randn(1, 3, 4, SIDE // 2, SIDE // 2)}


FEW = {"num_classes": 100}
BARE = {"weights_backbone": None}
TORCHVISION = {
    "deeplabv3_mobilenet_v3_large": (".segmentation", BARE, image_batch),
    "densenet121": ("", FEW, image_batch),
    "fcos_resnet50_fpn": (
        ".detection",
        BARE | {"min_size": SIDE, "max_size": SIDE, "num_classes": 5},
        images_and_boxes,
    ),
    "googlenet": ("", FEW | {"aux_logits": False, "init_weights": False}, image_batch),
    "mobilenet_v2": ("", FEW, image_batch),
    "r3d_18": (".video", FEW, frames),
    "resnet18": ("", FEW, image_batch),
    "shufflenet_v2_x1_0": ("", FEW, image_batch),
}


ARCHITECTURES = {
    **{n: Architecture(n, of_transformers(c, **k), i) for n, (c, k, i) in TRANSFORMERS.items()},
    **{n: Architecture(n, of_timm(n, **k), image_of(side)) for n, (k, side) in TIMM.items()},
    **{n: Architecture(n, of_torchvision(m, n, **k), i) for n, (m, k, i) in TORCHVISION.items()},
}
