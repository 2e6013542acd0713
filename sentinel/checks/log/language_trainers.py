"""How trainers of language models write their logs, as a table with one row per trainer.

`source` is the file in the trainer's repository that prints the line. The first row that fits a
line is used. So a fork stands before the trainer that it is based on.
"""

from sentinel.checks.log.trainer_row import (
    BAR_REGEX,
    BARE_BAR_REGEX,
    CHECKPOINT,
    EVALUATION,
    Trainer,
)

_MEGATRON_PHASES = {
    CHECKPOINT: (r"saving checkpoint at iteration", r"successfully saved checkpoint"),
    EVALUATION: (r"Evaluating (?:on|iter)", r"validation loss at iteration"),
}

LANGUAGE_TRAINERS = (
    Trainer(
        name="GPT-NeoX",
        source="megatron/logging.py of EleutherAI/gpt-neox, training_log",
        words=("samples/sec: ",),
        numbers={"iteration": r"samples/sec: [\d.]+ \| iteration +(\d+)/ *\d+ \|"},
        loss="lm_loss",
        norm="grad_norm",
        seconds=(r"elapsed time per iteration \(ms\): ([\d.]+)", 1e-3),
        covers=("Megatron-LM", "Megatron-DeepSpeed", "DeepSpeed"),
        phases=_MEGATRON_PHASES,
    ),
    Trainer(
        name="Megatron-DeepSpeed",
        source="megatron/training.py of bigscience-workshop/Megatron-DeepSpeed, training_log",
        words=("consumed tokens: ", "per iteration (s): "),
        numbers={
            "iteration": r"iteration +(\d+)/ *\d+ \| consumed samples: +\d+ \|"
            r" (?:consumed tokens:|elapsed time per iteration \(s\))"
        },
        loss="lm loss",
        norm="grad norm",
        seconds=(r"elapsed time per iteration \(s\): ([\d.]+)", 1.0),
        covers=("Megatron-LM", "DeepSpeed"),
        phases=_MEGATRON_PHASES,
    ),
    Trainer(
        name="Megatron-LM",
        source="megatron/training/training.py of NVIDIA/Megatron-LM, training_log",
        done=r"\[after training is done\]",
        words=("elapsed time per iteration",),
        numbers={"iteration": r"iteration +(\d+)/ *\d+ \|[^\n]{0,200}elapsed time per iteration"},
        loss="lm loss",
        norm="grad norm",
        seconds=(r"elapsed time per iteration \(ms\): ([\d.]+)", 1e-3),
        variants={
            r"\[deepspeed\]|DeepSpeed info:|\[INFO\] \[(?:engine|logging|config)\.py:"
            r"|deepspeed\.initialize|DeepSpeedEngine|deepspeed_config": "Megatron-DeepSpeed"
        },
        covers=("DeepSpeed",),
        phases=_MEGATRON_PHASES,
    ),
    Trainer(
        name="NeMo",
        source="nemo/lightning/pytorch/callbacks/progress_printer.py and progress_bar.py of"
        " NVIDIA/NeMo; nemo/collections/nlp/models/language_modeling of its first version",
        words=("reduced_train_loss", "train_step_timing", "Training epoch ", "consumed_samples="),
        numbers={
            "iteration": r"Training epoch \d+, iteration (\d+)/\d+ \|",
            "batch": rf"Epoch \d+:(?: *:)? *(?:{BAR_REGEX})?(\d+)(?:/\d+|it) \[[^\n]{{0,400}}"
            r"(?:reduced_train_loss|train_step_timing|consumed_samples)",
        },
        loss="reduced_train_loss",
        norm="grad_norm",
        seconds=(r"train_step_timing in s[=:] ?([\d.]+)", 1.0),
        covers=("Lightning", "Megatron-LM"),
    ),
    Trainer(
        name="Lightning",
        source="src/lightning/pytorch/callbacks/progress/tqdm_progress.py and rich_progress.py of"
        " Lightning-AI/pytorch-lightning",
        done=r"`Trainer\.fit` stopped: `max_",
        words=("Epoch ",),
        numbers={
            "batch": rf"Epoch \d+: *(?:{BAR_REGEX})?(\d+)(?:/\d+|it) \[",
            "step": r"Epoch \d+/-?\d+ [━╸╺ ]{2,400}(?<= )(\d+)/\d+ ",
        },
        loss="train_loss",
        norm="grad_norm",
        needs=r"v_num[=:]|LOCAL_RANK: \d+ - CUDA_VISIBLE_DEVICES|GPU available: |Lightning|"
        r"lightning",
        phases={
            EVALUATION: (r"Sanity Checking|Validation DataLoader", r""),
        },
    ),
    Trainer(
        name="torchtitan",
        source="torchtitan/components/metrics.py of pytorch/torchtitan, MetricsProcessor.log",
        done=r"Training completed",
        words=("memory: ",),
        numbers={
            "step": r"(?<!validate )step: +(\d+) +loss: +\S+ +(?:grad_norm: +\S+ +)?memory: +[\d.]+GiB"
        },
        loss="loss",
        norm="grad_norm",
        phases={
            CHECKPOINT: (
                r"Saving the checkpoint",
                r"Finished saving the checkpoint",
            ),
            EVALUATION: (r"Running validation|Starting validation", r"Finished validation"),
        },
    ),
    Trainer(
        name="lingua",
        source="apps/main/train.py of facebookresearch/lingua",
        words=("  acc: ",),
        numbers={"step": r"step: (\d+)  acc: \d+  loss: "},
        loss="loss",
        norm="grad",
        seconds=(r"  iter: +([\d.]+)", 1.0),
    ),
    Trainer(
        name="OLMo",
        source="olmo/train.py of allenai/OLMo, log_metrics_to_console;"
        " src/olmo_core/train/callbacks/console_logger.py of allenai/OLMo-core",
        words=("[step=",),
        numbers={"step": r"\[step=(\d+)/(?:\d+|\?\?\?),epoch="},
        loss="train/CrossEntropyLoss",
        norm="optim/total_grad_norm",
        seconds=(r"throughput/device/batches_per_second=([\d.]+)", -1.0),
    ),
    Trainer(
        name="metaseq or fairseq",
        source="metaseq/logging/progress_bar/json_progress_bar.py of facebookresearch/metaseq;"
        " fairseq/logging/progress_bar.py of facebookresearch/fairseq, JsonProgressBar",
        variants={r"\bfairseq[._]": "fairseq", r"\bmetaseq\b": "metaseq"},
        done=r"\| done training in ",
        words=("train_inner | {",),
        numbers={"num_updates": r'train_inner \| \{[^\n]{0,2000}"num_updates": "?(\d+)'},
        loss="loss",
        norm="gnorm",
        seconds=(r'"ups": "?([\d.]+)', -1.0),
    ),
    Trainer(
        name="fairseq",
        source="fairseq/logging/progress_bar.py of facebookresearch/fairseq, SimpleProgressBar",
        words=("train_inner | epoch", "| epoch "),
        numbers={"num_updates": r"\| epoch +\d+: +\d+ / \d+ [^\n]{0,500}num_updates=(\d+)"},
        loss="loss",
        norm="gnorm",
        seconds=(r" ups=([\d.]+)", -1.0),
    ),
    Trainer(
        name="verl",
        source="verl/utils/logger/aggregate_logger.py of volcengine/verl, concat_dict_to_str; names from"
        " verl/trainer/ppo/metric_utils.py",
        words=(" - timing_s/", " - training/global_step:", " - train/loss:"),
        done=r"Final validation metrics: |Training Progress: 100%\|",
        numbers={"step": r"(?:^|\s)step:(\d+) - [\w./@-]+:[-\dni]"},
        loss="actor/pg_loss",
        norm="actor/grad_norm",
        seconds=(r" - timing_s/step:([\d.]+)", 1.0),
    ),
    Trainer(
        name="llm.c",
        source="train_gpt2.cu of karpathy/llm.c",
        words=("train loss ", "z)| norm "),
        numbers={
            "step": r"step +(\d+)/\d+ \| (?:train )?loss \S+ \([+-]\w[\w.]*z\)\|",
            "first step": r"step +(\d+)/\d+: train loss \S+ \(",
        },
        loss="loss",
        norm="norm",
        seconds=(r"\| ([\d.]+) ms \|", 1e-3),
    ),
    Trainer(
        name="nanochat",
        source="scripts/base_train.py of karpathy/nanochat",
        words=("| lrm: ", "| loss: "),
        numbers={
            "step": r"step (\d+)(?:/\d+)? \([\d.]+%\) \| loss: \S+ \| (?:grad norm: \S+ \| )?lrm: "
        },
        loss="loss",
        norm="grad norm",
        seconds=(r"\| dt: ([\d.]+)ms", 1e-3),
    ),
    Trainer(
        name="build-nanogpt",
        source="train_gpt2.py of karpathy/build-nanogpt",
        words=("| norm: ",),
        numbers={"step": r"step +(\d+) \| loss: \S+ \| lr:? \S+ \| norm: \S+ \| dt: "},
        loss="loss",
        norm="norm",
        seconds=(r"\| dt: ([\d.]+)ms", 1e-3),
    ),
    Trainer(
        name="modded-nanogpt",
        source="train_gpt.py of KellerJordan/modded-nanogpt",
        words=("train_time:", " trn:", " tel:"),
        numbers={
            "step": r"\bstep:(\d+)/\d+ (?:\w+:\S+ ){0,6}train_time:",
            "s": r"^s:(\d+) (?:trn|tel|val):",
        },
        loss="train_loss",
        seconds=(r"step_avg:([\d.]+)ms", 1e-3),
    ),
    Trainer(
        name="nanoGPT",
        source="train.py of karpathy/nanoGPT",
        words=("iter ",),
        numbers={"iter": r"(?:^|[\s:])iter (\d+): loss [-+.\w]+, time [\d.]+ ?m?s"},
        loss="loss",
        seconds=(r", time ([\d.]+)ms", 1e-3),
    ),
    Trainer(
        name="litgpt",
        source="litgpt/pretrain.py, litgpt/finetune/lora.py of Lightning-AI/litgpt",
        words=("iter ",),
        numbers={
            "iter": r"Epoch \d+ \| iter (\d+) step \d+ \| loss train: ",
            "iteration": r"(?:^|\s)iter (\d+)(?: step \d+)?: loss \S+, (?:iter|train) time: [\d.]+ ?ms",
        },
        loss="loss train",
        seconds=(r"iter time: ([\d.]+) ?ms", 1e-3),
    ),
    Trainer(
        name="nanotron",
        source="src/nanotron/logging/base.py of huggingface/nanotron, LoggerWriter",
        words=("consumed_tokens: ", "time_per_iteration_ms: "),
        numbers={
            "iteration": r"iteration: (\d+) / \d+ \|[^\n]{0,80}"
            r"(?:consumed_tokens|consumed_samples|time_per_iteration_ms|elapsed_time_per_iteration_ms): "
        },
        loss="lm_loss",
        norm="grad_norm",
    ),
    Trainer(
        name="LLM Foundry/Composer",
        source="composer/loggers/console_logger.py of mosaicml/composer",
        words=("[batch=", "[token=", "[epoch=", "[sample="),
        numbers={
            "batch": r"(?:^|: ) *(?:\[epoch=\d+\])?\[(?:batch|sample|token|iteration)=(\d+)(?:/\d+)?\]:",
            "epoch": r"(?:^|: ) *\[epoch=(\d+)/\d+\]:",
        },
        loss="loss/train/total",
        norm="l2_norm/grad/global",
        seconds=(r"Train throughput/batches_per_sec: ([\d.]+)", -1.0),
    ),
    Trainer(
        name="MaxText",
        source="src/MaxText/metric_logger.py of AI-Hypercomputer/maxtext",
        words=("completed step: ",),
        numbers={"step": r"completed step: (\d+), seconds: "},
        loss="loss",
        seconds=(r"completed step: \d+, seconds: +([\d.]+)", 1.0),
        phases={
            CHECKPOINT: (
                r"Started (?:async )?saving checkpoint",
                r"Finished (?:async[ _])?sav(?:ing|e)\b",
            ),
        },
    ),
    Trainer(
        name="levanter",
        source="src/levanter/callbacks/_metrics.py of stanford-crfm/levanter, pbar_logger;"
        " tqdm_loggable/tqdm_logging.py",
        words=("Progress on:train",),
        numbers={"step": r"Progress on:train ([\d.]+[kM]?)(?:it)?/"},
        loss="loss",
    ),
    Trainer(
        name="DeepSpeed-Chat",
        source="applications/DeepSpeed-Chat/training/step*/main.py of microsoft/DeepSpeedExamples",
        words=("PPO Epoch: ", "ppo_ep: ", "Rank: "),
        numbers={
            "step": r"(?i)epoch: \d+ ?\| ?step: (\d+) ?\| ?ppo[_ ]ep(?:och)?: ",
            "batch": r"Epoch: \d+, Step: (\d+), Rank: \d+, loss = ",
        },
        loss="Actor Loss",
        seconds=(r"\|E2E latency=([\d.]+)s", 1.0),
        covers=("DeepSpeed",),
    ),
    Trainer(
        name="Hugging Face Trainer",
        source="src/transformers/trainer_callback.py of huggingface/transformers, ProgressCallback"
        " and PrinterCallback",
        done=r"'train_runtime': ",
        words=("'epoch': ",),
        numbers={
            "step": BARE_BAR_REGEX,
            "global step": r"'global_step/max_steps': '(\d+)/",
            "global_step": r"\{[^{}\n]{0,600}'loss': [^{}\n]{0,1500}'global_step': (\d+)",
            "epoch": r"\{[^{}\n]{0,600}'(?:loss|eval_loss)': [^{}\n]{0,1500}'epoch': '?([\d.]+)",
        },
        needs=r"\{[^{}\n]{0,600}'(?:loss|eval_loss|train_loss|train_runtime)': [^{}\n]{0,1500}"
        r"'epoch': '?[\d.]+",
        loss="loss",
        norm="grad_norm",
        variants={
            r"(?i)\baxolotl\b": "axolotl",
            r"\bllama-?factory\b|LLaMA-Factory": "LLaMA-Factory",
            r"'global_step/max_steps': '": "ms-swift",
        },
        covers=("DeepSpeed", "accelerate"),
        phases={
            CHECKPOINT: (r"Saving (?:model )?checkpoint to", r""),
            EVALUATION: (r"\*\*\* ?Running (?:Evaluation|Prediction)", r""),
        },
    ),
    Trainer(
        name="accelerate",
        source="examples/pytorch/*/run_*_no_trainer.py of huggingface/transformers; examples of"
        " huggingface/diffusers",
        words=("%|",),
        numbers={"step": rf"(?:^|Steps: ) *{BAR_REGEX}(\d+)/\d+ \["},
        needs=r"Total optimization steps = |\[accelerate[.\]]|accelerate\.(?:utils|commands|accelerator)",
        loss="loss",
    ),
    Trainer(
        name="DeepSpeed",
        source="deepspeed/runtime/engine.py, deepspeed/runtime/pipe/engine.py and"
        " deepspeed/utils/timer.py of deepspeedai/DeepSpeed",
        words=("skipped=", "iter time (s): ", "RunningAvgSamplesPerSec="),
        numbers={
            "steps": r"steps: (\d+) loss: \S+ [^\n]{0,200}iter time \(s\): ",
            "step": r"\bstep=(\d+), skipped=\d+, lr=",
            "global_step": r"global_step=(\d+), RunningAvgSamplesPerSec=",
        },
        tier="library",
        loss="loss",
        seconds=(r"iter time \(s\): ([\d.]+)", 1.0),
        variants={
            r"\bLOCAL_RANK: \d+ - CUDA_VISIBLE_DEVICES|^GPU available: ": "Lightning",
            r"\{'train_runtime': ": "Hugging Face Trainer",
            r"Beginning of Epoch \d+/\d+, Total Micro Batches|\*{5} Evaluating (?:perplexity|reward)"
            r"|Model Parameters: [\d.]+ B, Latency: ": "DeepSpeed-Chat",
        },
        phases={
            CHECKPOINT: (r"\[Torch\] Saving \S+", r"\[Torch\] Saved \S+"),
        },
    ),
)

FALLBACK_TRAINERS = (
    Trainer(
        name="MLPerf (MLLOG)",
        source="mlperf_logging/mllog/mllog.py and constants.py of mlcommons/logging",
        done=r'"key": "run_stop"[^\n]{0,400}"status": "success"',
        words=(":::MLL",),
        numbers={
            "samples": r':::MLL[^\n]{0,300}"key": "(?:tracked_stats|train_loss|throughput)"'
            r'[^\n]{0,600}"samples_count": ([\d.]+)',
            "step": r':::MLL[^\n]{0,300}"key": "(?:tracked_stats|train_loss|throughput)"'
            r'[^\n]{0,600}"(?:step|step_num)": ([\d.]+)',
        },
        tier="library",
        loss="train_loss",
        seconds=(r'"train_step_time": ([\d.]+)', 1.0),
        phases={
            EVALUATION: (
                r':::MLL[^\n]{0,300}"key": "eval_start"',
                r':::MLL[^\n]{0,300}"key": "eval_stop"',
            ),
        },
    ),
    Trainer(
        name="torchvision's MetricLogger",
        source="references/classification/utils.py of pytorch/vision; util/misc.py of"
        " facebookresearch/detr and utils.py of facebookresearch/deit, dino and mae; dinov2/logging/helpers.py",
        words=("  eta: ",),
        numbers={
            "batch": r"(?:\[\d+(?:/\d+)?\]|\bTraining) +\[ *(\d+)/\d+\] +eta: ",
            "epoch": r"(?i:epoch|train):? +\[(\d+)(?:/\d+)?\] +\[ *\d+/\d+\] +eta: ",
        },
        tier="library",
        loss="loss",
        norm="grad_norm",
        seconds=(r"\] +eta: (?:(?!eta: )[^\n]){0,2000}  time: ([\d.]+)", 1.0),
    ),
    Trainer(
        name="tqdm",
        source="tqdm/std.py of tqdm/tqdm, format_meter",
        words=("it/s", "s/it", "%|"),
        numbers={
            "count": rf"{BAR_REGEX}([\d.]+[kMG]?)/[\d.]+[kMG]? \[\d",
            "it": r"(?:^|\s)(\d+)it \[\d",
        },
        tier="bar",
    ),
    Trainer(
        name="W&B",
        source="wandb/sdk/wandb_run.py of wandb/wandb",
        words=("wandb: ",),
        tier="bar",
    ),
)
