"""How well-known trainers write their logs, as a table with one row per trainer.

Trainers of language models have a file of their own. This file has those for vision, speech,
translation and reinforcement learning, and the list of all. If batches are counted from 0 in each
epoch, the batch is used, because it shows a hang soonest.
"""

import re
from collections.abc import Mapping

from sentinel.checks.log.language_trainers import FALLBACK_TRAINERS, LANGUAGE_TRAINERS
from sentinel.checks.log.trainer_row import BAR_REGEX, Trainer

_LOSS_REGEX = r"[-+\d.naife]+"
"""A number, or a word for NaN or infinity."""

OTHER_TRAINERS = (
    Trainer(
        name="detectron2", source="detectron2/utils/events.py of facebookresearch/detectron2, CommonMetricPrinter",
        words=("total_loss: ",), numbers={"iter": r"\biter: (\d+) +total_loss: "},
        loss="total_loss", seconds=(r"\biter: (?:(?!iter: )[^\n]){0,2000}  time: ([\d.]+)", 1.0),
        done=r"Overall training speed: ",
    ),
    Trainer(
        name="MMEngine/MMCV", source="mmengine/runner/log_processor.py of open-mmlab/mmengine;"
        " mmcv/runner/hooks/logger/text.py of open-mmlab/mmcv",
        words=("Epoch(train)", "Epoch [", "Iter(train)", "Iter ["),
        numbers={
            "batch": r"Epoch(?:\(train\))? +\[\d+\]\[ *(\d+)/\d+\]\s+(?:base_)?lr: ",
            "iter": r"Iter(?:\(train\))? +\[ *(\d+)/\d+\]\s+(?:base_)?lr: ",
        },
        loss="loss", norm="grad_norm", seconds=(r", time: ([\d.]+), data_time: ", 1.0),
        variants={r"\bxtuner\b": "XTuner"},
    ),
    Trainer(
        name="Ultralytics YOLO", source="ultralytics/engine/trainer.py of ultralytics/ultralytics; train.py of"
        " ultralytics/yolov5", words=("G  ",),
        numbers={"batch": rf"\d/\d+ +[\d.]+G +(?:{_LOSS_REGEX} +){{3,12}}\d+: +(?:{BAR_REGEX}|\d+% [━╸─ ]+)(\d+)/\d+ "},
        done=r"\d epochs completed in [\d.]+ hours",
    ),
    Trainer(
        name="a copy of PyTorch's examples", source="imagenet/main.py and mnist/main.py of pytorch/examples",
        words=("Epoch: [", "Train Epoch: "),
        numbers={
            "batch": r"(?i)Epoch: ?\[\d+(?:/\d+)?\] ?\[ *(\d+)(?:/\d+)?\],?\s+(?:Time|Loss|lr|BT)\b",
            "sample": r"Train Epoch: \d+ \[(\d+)/\d+ \(\d+%\)\]\s+Loss: ",
        },
        loss="Loss",
    ),
    Trainer(
        name="timm", source="train.py of huggingface/pytorch-image-models", words=("Train: ",),
        numbers={"batch": r"Train: \d+ \[ *(\d+)/\d+ +\( *\d+%\)\] "}, loss="Loss", norm="grad_norm",
    ),
    Trainer(
        name="Swin Transformer", source="main.py of microsoft/Swin-Transformer", words=("Train: [",),
        numbers={"batch": r"Train: \[\d+/\d+\]\[ *(\d+)/\d+\]\s+eta "}, loss="loss", norm="grad_norm",
    ),
    Trainer(
        name="Keras", source="keras/src/utils/progbar.py of keras-team/keras, Progbar.update",
        words=(" - loss: ", "/step - ", "Epoch "),
        numbers={
            "batch": r"^ *(\d+)/(?:\d+|Unknown)[ \t]+(?:\[[=>.]{20,40}\]|[━╺╸─=]{10,40})[^\n]{0,80} - (?:\w+: |ETA)",
            "batch of many": r"^ *(\d+)/Unknown +- \d+m?s [^\n]{0,80} - \w+: ",
            "epoch": r"^Epoch (\d+)/\d+$",
        },
        needs=r"^ *\d+/(?:\d+|Unknown)[ \t]+(?:\[[=>.]{20,40}\] - |[━╺╸─=]{10,40} |- \d+m?s )", loss="loss",
    ),
    Trainer(
        name="PaddlePaddle", source="tools/program.py of PaddlePaddle/PaddleOCR; ppdet/engine/callbacks.py of"
        " PaddlePaddle/PaddleDetection; paddleseg/core/train.py of PaddlePaddle/PaddleSeg;"
        " paddlenlp/trainer/trainer_callback.py of PaddlePaddle/PaddleNLP; ppcls/utils/logger.py of PaddleClas",
        words=("epoch: [", "Epoch: [", "[TRAIN] epoch: ", "global step ", "global_step: ", "[Train][Epoch"),
        numbers={
            "global_step": r"epoch: \[\d+/\d+\], (?:global_step|iter): (\d+), ",
            "iter": r"\[TRAIN\] epoch: \d+, iter: (\d+)/\d+, loss: ",
            "batch": r"Epoch: \[\d+\] \[ *(\d+)/ *\d+\] learning_rate: ",
            "step": r"global step (\d+), epoch: \d+, ",
            "global step": r"loss: \S+, learning_rate: \S+, global_step: (\d+), ",
            "batch of the epoch": r"\[Train\]\[Epoch \d+/\d+\]\[Iter: (\d+)/\d+\]",
        },
        loss="loss", variants={
            r"\bppocr\b": "PaddleOCR", r"\bppdet\b": "PaddleDetection", r"\[TRAIN\] epoch: ": "PaddleSeg",
            r"\[Train\]\[Epoch ": "PaddleClas",
        },
    ),
    Trainer(
        name="MindSpore", source="mindspore/python/mindspore/train/callback/_loss_monitor.py of mindspore-ai/mindspore;"
        " mindformers/core/callback/callback.py of mindspore-lab/mindformers", words=("loss is ", "per_step_time: "),
        numbers={
            "step": r"epoch: \d+,? step: (\d+), loss is ",
            "step of the epoch": r"Epoch:\[ *\d+/ *\d+\], step:\[ *(\d+)/ *\d+\], loss: ?\S+",
        },
        loss="loss",
    ),
    Trainer(
        name="nnU-Net", source="nnunetv2/training/nnUNetTrainer/nnUNetTrainer.py of MIC-DKFZ/nnUNet", words=("poch",),
        numbers={"epoch": r"^(?:[\d:. -]{8,30}: )?(?:Epoch |epoch: +)(\d+) *$"},
        needs=r"Current learning rate: |New best EMA pseudo Dice|This epoch took [\d.]+ s", loss="train_loss",
    ),
    Trainer(
        name="ESPnet", source="espnet2/train/reporter.py of espnet/espnet", words=("epoch:train:",),
        numbers={"batch": r"\depoch:train:\d+-(\d+)batch: "}, loss="loss",
    ),
    Trainer(
        name="icefall", source="egs/librispeech/ASR/zipformer/train.py of k2-fsa/icefall", words=("loss[",),
        numbers={"batch": r"Epoch \d+, batch (\d+), (?:[\w ]+: \d+, ){0,2}loss\["}, loss="loss",
    ),
    Trainer(
        name="WeNet", source="wenet/utils/executor.py of wenet-e2e/wenet", words=("TRAIN Batch ",),
        numbers={"batch": r"TRAIN Batch \d+/(\d+) loss "}, loss="loss",
    ),
    Trainer(
        name="Coqui TTS", source="trainer/logging/console_logger.py of coqui-ai/Trainer", words=("GLOBAL_STEP: ",),
        numbers={"GLOBAL_STEP": r"-- STEP: \d+(?:/-?\d+)? -- GLOBAL_STEP: (\d+)"}, loss="loss",
    ),
    Trainer(
        name="VITS", source="train.py of jaywalnut310/vits", words=("Train Epoch: ",),
        numbers={"step": rf"\bINFO\s+\[(?:{_LOSS_REGEX}, ){{2,9}}(\d+), [\d.e-]+\]"},
        needs=r"Train Epoch: \d+ \[\d+%\]",
    ),
    Trainer(
        name="RETURNN", source="returnn/torch/engine.py of rwth-i6/returnn, _print_process", words=(" train, step ",),
        numbers={"step": r"\bep \d+ train, step (\d+), "}, seconds=(r", ([\d.]+) sec/step, elapsed ", 1.0),
    ),
    Trainer(
        name="OpenNMT-py", source="onmt/utils/statistics.py of OpenNMT/OpenNMT-py", words=("; acc: ",),
        numbers={"step": r"Step (\d+)/ *\d+; acc: "}, loss="xent",
    ),
    Trainer(
        name="Marian", source="src/training/scheduler.h of marian-nmt/marian", words=(" : Up. ",),
        numbers={"update": r"Ep\. \d+ : Up\. ([\d,]+) : Sen\. "},
    ),
    Trainer(
        name="flair", source="flair/trainers/trainer.py of flairNLP/flair", words=(" - iter ",),
        numbers={"iter": r"epoch \d+ - iter (\d+)/\d+ - (?:time \(sec\): [\d.]+ - )?loss "}, loss="loss",
    ),
    Trainer(
        name="SpeechBrain", source="speechbrain/utils/train_logger.py of speechbrain/speechbrain",
        words=(" - train loss: ",), numbers={"epoch": r"\bepoch: (\d+)[^\n]{0,300} - train loss: "}, loss="train loss",
    ),
    Trainer(
        name="TensorFlow's Estimator", source="tensorflow_estimator/python/estimator/estimator.py of"
        " tensorflow/estimator; research/object_detection/model_lib_v2.py of tensorflow/models",
        words=(", step = ", " per-step time "),
        numbers={
            "step": r"(?:^|[\s:])loss = \S+, step = (\d+)",
            "Step": r"Step (\d+) per-step time ",
        },
        loss="loss",
    ),
    Trainer(
        name="Caffe", source="src/caffe/solver.cpp of BVLC/caffe", words=("solver.cpp:",),
        numbers={"iteration": r"solver\.cpp:\d+\] +Iteration (\d+)(?: \([^)\n]{0,80}\))?, loss = "}, loss="loss",
        done=r"Optimization Done\.",
    ),
    Trainer(
        name="darknet", source="examples/detector.c of pjreddie/darknet", words=(" avg",),
        numbers={"iteration": rf"^ *(\d+): {_LOSS_REGEX}, {_LOSS_REGEX} avg(?: loss)?, "},
    ),
    Trainer(
        name="BasicSR", source="basicsr/utils/logger.py of XPixelGroup/BasicSR", words=("][epoch:",),
        numbers={"iter": r"\]\[epoch: *\d+, iter: *([\d,]+), lr:"},
    ),
    Trainer(
        name="pix2pix/CycleGAN", source="util/visualizer.py of junyanz/pytorch-CycleGAN-and-pix2pix", words=("(epoch: ",),
        numbers={"iters": r"\(epoch: \d+, iters: (\d+), (?:time|data): "}, loss="G_GAN",
    ),
    Trainer(
        name="kohya sd-scripts", source="train_network.py of kohya-ss/sd-scripts", words=("avr_loss=",),
        numbers={"step": rf"steps: *{BAR_REGEX}(\d+)/\d+ \[[^\n]{{0,80}}avr_loss="}, loss="avr_loss", covers=("accelerate",),
    ),
    Trainer(
        name="MiniMind", source="trainer/train_pretrain.py of jingyaogong/minimind", words=("Epoch:[",),
        numbers={"batch": r"Epoch:\[\d+/\d+\] ?\((\d+)/\d+\),? loss:"}, loss="loss",
    ),
    Trainer(
        name="InternEvo", source="internlm/train/pipeline.py of InternLM/InternEvo", words=("tflops",),
        numbers={"step": r"tflops=[\d.]+,step=(\d+),loss="}, loss="loss",
    ),
    Trainer(
        name="torchtune", source="torchtune/training/metric_logging.py of meta-pytorch/torchtune, DiskLogger;"
        " recipes/full_finetune_distributed.py", words=("|Loss: ", " | loss:"),
        numbers={"step": r"\b\d+\|(\d+)\|Loss: ", "step of the file": r"^Step (\d+) \| (?:\w+:\S+ ){2,}"}, loss="loss",
    ),
    Trainer(
        name="OpenRLHF", source="openrlhf/trainer/ppo_trainer.py and sft_trainer.py of OpenRLHF/OpenRLHF",
        words=("Train epoch", "Train step of epoch", "Episode ["),
        numbers={
            "episode": rf"Episode \[\d+/\d+\]: *{BAR_REGEX}(\d+)/\d+ \[",
            "step": rf"Train (?:epoch \[\d+/\d+\]|step of epoch \d+): *{BAR_REGEX}(\d+)/\d+ \[",
        },
    ),
    Trainer(
        name="NeMo-RL", source="nemo_rl/algorithms/grpo.py of NVIDIA-NeMo/RL", words=("= Step ",),
        numbers={"step": r"={8} Step (\d+)/\d+ ={8}"}, loss="Loss",
    ),
    Trainer(
        name="RSL-RL", source="rsl_rl/runners/on_policy_runner.py of leggedrobotics/rsl_rl", words=("Learning iteration ",),
        numbers={"iteration": r"Learning iteration (\d+)/\d+"}, loss="Mean value_function loss",
    ),
    Trainer(
        name="LeRobot", source="src/lerobot/utils/logging_utils.py of huggingface/lerobot, MetricsTracker.__str__",
        words=(" smpl:",), numbers={"step": r"\bstep:(\d{1,6}[KMBTQ]?) smpl:"}, loss="loss", norm="grdn",
        seconds=(r" updt_s:([\d.]+)", 1.0),
    ),
    Trainer(
        name="Stable-Baselines3", source="stable_baselines3/common/logger.py of DLR-RM/stable-baselines3",
        words=("total_timesteps",), numbers={"total_timesteps": r"\| +total_timesteps +\| (\d+) +\|"}, loss="loss",
    ),
    Trainer(
        name="CatBoost", source="catboost/libs/loggers/logger.h of catboost/catboost", words=("learn: ",),
        numbers={"iteration": r"^(\d+):[ \t]+learn: "}, loss="learn",
    ),
    Trainer(
        name="XGBoost or LightGBM", source="python-package/xgboost/callback.py of dmlc/xgboost; python-package/lightgbm/callback.py of"
        " microsoft/LightGBM", words=("]\ttrain",),
        numbers={"round": r"^(?:\[[\d:]{8}\] )?\[(\d+)\]\ttrain[\w' -]{1,40}: ?[-+\d.n]"},
    ),
    Trainer(
        name="Pax", source="paxml/summary_utils.py of google/paxml", words=("step_i: ",),
        numbers={"step": r"step_i: (\d+), (?:training )?loss: "}, loss="loss",
    ),
)  # fmt: skip

TRAINERS = (*LANGUAGE_TRAINERS, *OTHER_TRAINERS, *FALLBACK_TRAINERS)


DONE_PATTERN = re.compile("|".join(row.done for row in TRAINERS if row.done))
"""Lines that say that a training has reached its end, of any trainer."""


def list_trainer_phases() -> Mapping[str, tuple[str, str]]:
    """Every phase by its name, with the patterns of all lines that begin and end it."""
    begins: dict[str, dict[str, None]] = {}
    ends: dict[str, dict[str, None]] = {}
    for row in TRAINERS:
        for name, (begin, end) in row.phases.items():
            begins.setdefault(name, {})[begin] = None
            if end:
                ends.setdefault(name, {})[end] = None
    return {name: ("|".join(begins[name]), "|".join(ends.get(name, {}))) for name in begins}
