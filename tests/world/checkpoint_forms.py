"""How trainers lay out their checkpoints: the names of one step, and what says where to resume."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Form:
    """One trainer's folder."""

    name: str
    """Of the trainer, in words joined by hyphens."""
    source: str
    """The file of the trainer that writes these names."""
    files: tuple[str, ...]
    """Paths of one step; `{n}` is its number. The first part of each lies in the folder."""
    match: str
    """As somebody writes it who read the documentation of `clean`."""
    complete: str = ""
    """A file that only a whole one holds, where the trainer writes one."""
    pointer: str = ""
    """The file that says where to resume, or `-> name` for a link of that name."""
    text: str = ""
    """What the pointer holds; of a link, where it leads."""
    note: tuple[str, str] = ("", "")
    """Name and text of a file beside them that names none, whatever its name says."""
    names_newest: bool = True
    """Whether somebody would give the pointer to `checkpoint` as its `latest`."""
    staging: str = ""
    """The name of a step, in place of its first part, until it is whole."""
    empty: tuple[str, ...] = ()
    """Names of files that have no byte in a whole one."""
    beside: tuple[str, ...] = ()
    """What the trainer writes into the folder as well: pictures with the number of a step, weights and
    configurations without one. `clean` leaves all of it."""


def ranks(form: str, count: int = 4) -> tuple[str, ...]:
    """The same name for each rank."""
    return tuple(form.replace("{r}", str(rank)) for rank in range(count))


MEGATRON = "https://github.com/NVIDIA/Megatron-LM/blob/main/megatron/training/checkpointing.py"
TRANSFORMERS = "https://github.com/huggingface/transformers/blob/main/src/transformers/trainer.py"
ORBAX = "https://github.com/google/orbax/blob/main/checkpoint/orbax/checkpoint/_src/path/step.py"
DEEPSPEED = "https://github.com/deepspeedai/DeepSpeed/blob/master/deepspeed/runtime/engine.py"
COMPOSER = "https://github.com/mosaicml/composer/blob/main/composer/callbacks/checkpoint_saver.py"
TORCH_DCP = "https://github.com/pytorch/torchtitan/blob/main/torchtitan/components/checkpoint.py"
TENSORFLOW = (
    "https://github.com/tensorflow/tensorflow/blob/master/tensorflow/python/training/saver.py"
)
FAIRSEQ = "https://github.com/facebookresearch/fairseq/blob/main/fairseq/checkpoint_utils.py"
FVCORE = "https://github.com/facebookresearch/fvcore/blob/main/fvcore/common/checkpoint.py"
LIGHTNING = (
    "https://lightning.ai/docs/pytorch/stable/api/lightning.pytorch.callbacks.ModelCheckpoint.html"
)

HF = (
    "checkpoint-{n}/model.safetensors",
    "checkpoint-{n}/optimizer.pt",
    "checkpoint-{n}/trainer_state.json",
)
DISTCP = (*ranks("step-{n}/__{r}_0.distcp"), "step-{n}/.metadata")

FORMS = (
    Form("nanochat", "karpathy/nanochat, nanochat/checkpoint_manager.py",
         ("model_{n:06d}.pt", "meta_{n:06d}.json", *ranks("optim_{n:06d}_rank{r}.pt")),
         r"(?:model|meta|optim)_(\d+)(?:_rank\d+)?\.(?:pt|json)"),
    Form("nanochat-with-complete", "karpathy/nanochat, nanochat/checkpoint_manager.py",
         (*ranks("optim_{n:06d}_rank{r}.pt"), "model_{n:06d}.pt", "meta_{n:06d}.json"),
         r"(?:model|meta|optim)_(\d+)(?:_rank\d+)?\.(?:pt|json)", "meta_*.json"),
    Form("megatron", MEGATRON,
         (*ranks("iter_{n:07d}/mp_rank_0{r}/model_optim_rng.pt"),),
         r"iter_(\d+)", "", "latest_checkpointed_iteration.txt", "{n}"),
    Form("megatron-dist-checkpoint", MEGATRON,
         ("iter_{n:07d}/common.pt", *ranks("iter_{n:07d}/__{r}_0.distcp"), "iter_{n:07d}/.metadata"),
         r"iter_(\d+)", ".metadata", "latest_checkpointed_iteration.txt", "{n}"),
    Form("deepspeed", DEEPSPEED,
         ("global_step{n}/mp_rank_00_model_states.pt",
          *ranks("global_step{n}/bf16_zero_pp_rank_{r}_mp_rank_00_optim_states.pt")),
         r"global_step(\d+)", "", "latest", "global_step{n}"),
    Form("verl", "verl, utils/checkpoint/fsdp_checkpoint_manager.py",
         (*ranks("global_step_{n}/actor/model_world_size_4_rank_{r}.pt"), "global_step_{n}/data.pt"),
         r"global_step_(\d+)", "data.pt", "latest_checkpointed_iteration.txt", "{n}"),
    Form("openrlhf", "OpenRLHF, utils/deepspeed/deepspeed.py",
         ("global_step{n}/mp_rank_00_model_states.pt", *ranks("global_step{n}/zero_rank_{r}.pt")),
         r"global_step(\d+)", "", "latest", "global_step{n}\n"),
    Form("nemo-2", "NVIDIA/NeMo, nemo/lightning/pytorch/callbacks/model_checkpoint.py",
         ("m--step={n}/weights/common.pt", *ranks("m--step={n}/weights/__{r}_0.distcp")),
         r"m--step=(\d+)", "", "-> m-last", "m--step={n}"),
    Form("nemo-rl", "NVIDIA-NeMo/RL, nemo_rl/utils/checkpoint.py",
         ("step_{n}/policy/weights/w.safetensors", "step_{n}/policy/optimizer/o.pt",
          "step_{n}/training_info.json"),
         r"(?:tmp_)?step_(\d+)", "training_info.json", "", "", "tmp_step_{n}"),
    Form("nemo-automodel", "NVIDIA-NeMo/Automodel, components/checkpoint/checkpointing.py",
         ("epoch_0_step_{n}/model/w.safetensors", "epoch_0_step_{n}/optim/o.pt"),
         r"epoch_\d+_step_(\d+)", "", "-> LATEST", "epoch_0_step_{n}"),
    Form("composer-rank-files", COMPOSER, ranks("ep0-ba{n}-rank{r}.pt"),
         r"ep\d+-ba(\d+)-rank\d+\.pt", "", "-> latest-rank0.pt", "ep0-ba{n}-rank0.pt"),
    Form("composer-without-a-group", COMPOSER, ranks("ep0-ba{n}-rank{r}.pt"),
         r"ep\d+-ba\d+-rank\d+\.pt", "*rank3.pt", "-> latest-rank0.pt", "ep0-ba{n}-rank0.pt"),
    Form("composer-sharded", COMPOSER,
         (*ranks("ep0-ba{n}/__{r}_0.distcp"), "ep0-ba{n}/.metadata"),
         r"ep\d+-ba(\d+)", ".metadata", "-> latest", "ep0-ba{n}"),
    Form("fairseq-shards", FAIRSEQ, ranks("checkpoint_1_{n}-shard{r}.pt"),
         r"checkpoint_\d+_(\d+)-shard\d+\.pt"),
    Form("fairseq", FAIRSEQ, ("checkpoint_1_{n}.pt",), r"checkpoint_\d+_(\d+)\.pt"),
    Form("metaseq", "facebookresearch/metaseq, metaseq/checkpoint_utils.py",
         ranks("checkpoint_{n}-model_part-0-shard{r}.pt"),
         r"checkpoint_(\d+)-model_part-\d+-shard\d+\.pt", "*shard3.pt"),
    Form("tensorflow-saver", TENSORFLOW,
         ("model.ckpt-{n}.data-00000-of-00002", "model.ckpt-{n}.data-00001-of-00002",
          "model.ckpt-{n}.index", "model.ckpt-{n}.meta"),
         r"model\.ckpt-(\d+)\..*", "*.meta", "checkpoint",
         'model_checkpoint_path: "model.ckpt-{n}"\n'),
    Form("tensorflow-2", "tensorflow/python/checkpoint/checkpoint_management.py",
         ("ckpt-{n}.data-00000-of-00001", "ckpt-{n}.index"), r"ckpt-(\d+)\..*", "", "checkpoint",
         'model_checkpoint_path: "ckpt-{n}"\nall_model_checkpoint_paths: "ckpt-{n}"\n'),
    Form("keras", "keras/src/callbacks/model_checkpoint.py", ("epoch-{n}.weights.h5",),
         r"epoch-(\d+)\.weights\.h5"),
    Form("hugging-face-trainer", TRANSFORMERS, HF, r"checkpoint-(\d+)", "trainer_state.json",
         "trainer_state.json", '{{"best_model_checkpoint": "/old/out/checkpoint-{n}"}}'),
    Form("hugging-face-4-37", TRANSFORMERS, HF, r"(?:tmp-)?checkpoint-(\d+)", "trainer_state.json",
         "best_step.txt", "{n}", "tmp-checkpoint-{n}"),
    Form("hugging-face-split", TRANSFORMERS,
         ("checkpoint-{n}/model-00001-of-00002.safetensors",
          "checkpoint-{n}/model-00002-of-00002.safetensors",
          "checkpoint-{n}/trainer_state.json"),
         r"checkpoint-(\d+)", "trainer_state.json"),
    Form("llama-factory", "hiyouga/LLaMA-Factory, src/llamafactory/train/callbacks.py",
         (*HF, "checkpoint-{n}/adapter_model.safetensors"), r"checkpoint-(\d+)",
         "trainer_state.json", "best.json", '{{"best_step": {n}, "eval_loss": 1.25}}'),
    Form("diffusers", "huggingface/diffusers, examples/text_to_image/train_text_to_image.py",
         ("checkpoint-{n}/unet/diffusion_pytorch_model.safetensors", "checkpoint-{n}/optimizer.bin",
          "checkpoint-{n}/scheduler.bin"),
         r"checkpoint-(\d+)"),
    Form("bigcode", "bigcode-project/Megatron-LM, megatron/checkpointing.py",
         ranks("iter_{n:07d}/mp_rank_0{r}/model_rng.pt"), r"iter_(\d+)", "",
         "latest_checkpointed_iteration.txt", "{n}\n"),
    Form("lightning", LIGHTNING, ("epoch=0-step={n}.ckpt",), r"epoch=\d+-step=(\d+)\.ckpt", "",
         "-> last.ckpt", "epoch=0-step={n}.ckpt"),
    Form("lightning-best-path", LIGHTNING, ("epoch=0-step={n}.ckpt",),
         r"epoch=\d+-step=(\d+)\.ckpt", "", "best_model_path.txt",
         "/home/ann/run/epoch=0-step={n}.ckpt"),
    Form("orbax", ORBAX, ("{n}/default/manifest.ocdbt", "{n}/_CHECKPOINT_METADATA"),
         r"(\d+).*", "_CHECKPOINT_METADATA", "", "", "{n}.orbax-checkpoint-tmp-7"),
    Form("maxtext", "AI-Hypercomputer/maxtext, with Orbax on an object store",
         ("{n}/items/d/w.bin", "{n}/commit_success.txt"), r"(\d+)", "commit_success.txt", "best_f1.txt",
         "gs://bucket/run/{n}?generation=17"),
    Form("flax", "google/flax, flax/training/checkpoints.py", ("checkpoint_{n}",),
         r"checkpoint_(\d+)"),
    Form("t5x", "google-research/t5x, t5x/checkpoints.py",
         ("checkpoint_{n}/checkpoint", "checkpoint_{n}/target.w/0.0"), r"checkpoint_(\d+)(?:\.tmp.*)?",
         "checkpoint", "", "", "checkpoint_{n}.tmp-1699999999"),
    Form("paxml", "google/paxml, paxml/checkpoint_paths.py",
         ("checkpoint_{n:08d}/state/w", "checkpoint_{n:08d}/metadata/metadata"),
         r"(?:tmp_\d+\.)?checkpoint_(\d+)", "", "", "", "tmp_1699999999.checkpoint_{n:08d}"),
    Form("torchtitan", TORCH_DCP, DISTCP, r"step-(\d+)", ".metadata"),
    Form("torchtune", "pytorch/torchtune, torchtune/training/checkpointing/_checkpointer.py",
         ("epoch_{n}/ft-model-00001-of-00002.safetensors",
          "epoch_{n}/ft-model-00002-of-00002.safetensors"), r"epoch_(\d+)"),
    Form("litgpt", "Lightning-AI/litgpt, litgpt/pretrain.py",
         ("step-{n:08d}/lit_model.pth", "step-{n:08d}/model_config.yaml"), r"step-(\d+)",
         "model_config.yaml"),
    Form("olmo", "allenai/OLMo, olmo/checkpoint.py",
         (*ranks("step{n}/model/rank{r}.pt"), *ranks("step{n}/train/rank{r}.pt")),
         r"step(\d+)(?:-tmp)?", "", "-> latest", "step{n}", "step{n}-tmp"),
    Form("levanter", "marin-community/levanter, src/levanter/checkpoint.py",
         ("step-{n}/model/w.zarr", "step-{n}/metadata.json"), r"step-(\d+)", "metadata.json"),
    Form("timm", "huggingface/pytorch-image-models, timm/utils/checkpoint_saver.py",
         ("checkpoint-{n}.pth.tar",), r"checkpoint-(\d+)\.pth\.tar"),
    Form("detectron2", FVCORE, ("model_{n:07d}.pth",), r"model_(\d+)\.pth", "", "last_checkpoint",
         "model_{n:07d}.pth"),
    Form("mmengine", "open-mmlab/mmengine, mmengine/hooks/checkpoint_hook.py", ("epoch_{n}.pth",),
         r"epoch_(\d+)\.pth", "", "last_checkpoint", "/home/ann/work/epoch_{n}.pth"),
    Form("yolo", "ultralytics, ultralytics/engine/trainer.py, save_period", ("epoch{n}.pt",),
         r"epoch(\d+)\.pt"),
    Form("gan-pair", "hand-written, as in VITS: G_1000.pth and D_1000.pth",
         ("G_{n}.pth", "D_{n}.pth"), r"[GD]_(\d+)\.pth"),
    Form("guided-diffusion", "openai/guided-diffusion, guided_diffusion/train_util.py",
         ("model{n:06d}.pt", "ema_0.9999_{n:06d}.pt", "opt{n:06d}.pt"),
         r"(?:model|ema_0\.9999_|opt)(\d+)\.pt", "opt*.pt"),
)  # fmt: skip
