"""Log files of public repositories of an eighth list; the answers were committed before the program ran."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from tests.world.case import Case, each
from tests.world.logs import assert_number_and_loss, bar
from tests.world.test_causes_drawn import FRAME
from tests.world.test_progress_drawn import FINE, GITHUB, WRONG, rows

DEEPSPEED = "[2025-08-14 11:27:15,112] [INFO] [config.py:1018:print]   "
CSM = "2025-08-19 05:1{k}:18,387 - __main__ - INFO - "
RAY = "\x1b[36m(TaskRunner pid=1651349)\x1b[0m "
EPISODES = "2025-03-08 18:2{k}:05,774 - INFO - "


def csm_epochs(last: int, k: int) -> str:
    """One run of a loop that tells each epoch before it begins and when its validation is over."""
    said = CSM.format(k=k)
    return f"{said}Loading CSM model: sesame/csm-1b\n" + "".join(
        f"{said}Starting epoch {n}/{last}\n{said}Calculating validation loss at step {n - 1}...\n{said}Validation loss: 11.863026\n{said}Calculating validation loss at end of epoch {n}...\n"
        f"{said}Epoch {n} validation loss: 11.887467\n{said}Saved checkpoint to finetuned_model/checkpoint-epoch-{n}\n"
        for n in range(1, last + 1)
    )  # fmt: skip


def hf_rows(first: float, steps: int) -> str:
    """What transformers prints, without a bar: each row tells its epoch."""
    return "".join(
        f"{{'loss': 0.1454, 'grad_norm': 2.0149331092834473, 'learning_rate': 5.011801730920536e-06, 'epoch': {first + n / 50:.2f}}}\n"
        for n in range(steps + 1)
    )


# Seed 4281, the first fifteen of the 95 repositories of progress_eighth_files.txt whose file is there and is the log of a training.
DRAWN_31 = (
    Case("five-epochs-with-leading-zeros", GITHUB + "bbl3449608112/SimCLR", rows("epoch=00{n} contrastive_loss=4.262607 lr=0.000904508", 1, 6), (5, FINE), WRONG),
    Case("a-first-step-behind-a-configuration", GITHUB + "linskybing/LLM",
         "".join(f"{DEEPSPEED}{name} ..... {value}\n" for name, value in (("loss_scale", 0), ("steps_per_print", 100), ("train_batch_size", 8), ("zero_stage", 2), ("max_steps", 100)))
         + '        "reduce_bucket_size": 5.000000e+08, \n        "prefetch_bucket_size": 5.000000e+07\n    }\n}\n[Step 0/100] Loss: 5.0492 | Tokens/s: 25.51 | GPU Mem (GB): 12.81\n', (None, FINE), WRONG),
    Case("a-bar-at-its-total-and-then-an-exception", GITHUB + "Tensionteng/twenty-four-point-game",
         "".join(bar("", 321, *range(10 * n, 10 * n + 10), rate="1.26s/it") + f"\n{{'loss': 0.0644, 'grad_norm': 0.39882805943489075, 'learning_rate': 1e-05, 'num_tokens': 794909.0, 'epoch': {n / 10.7:.2f}}}\n" for n in range(20, 32))
         + bar("", 321, 320, 321, rate="1.26s/it") + "swanlab: Error happened while training\n" + FRAME + "KeyError: 'labels'\n", (321, FINE), WRONG),
    Case("episodes-in-russian-of-several-runs", GITHUB + "tonclap/FrozenLake",
         EPISODES.format(k=1) + "Модель загружена из models\\0998_ep30000.pth\n" + "".join(f"{EPISODES.format(k=2)}Эпизод {n} завершён за {6 + n % 9} шагов, награда: 1.00\n" for n in range(1, 301))
         + "".join(f"{EPISODES.format(k=3)}Дообученная модель сохранена в models\\0998_ep30000_finetuned.pth\n{EPISODES.format(k=3)}Загружено 8 карт, на которых модель ошибалась.\n" + "".join(
             f"{EPISODES.format(k=4)}Дообучение, эпизод {n}: средний процент успеха за последние 100 эпизодов = 74.00%\n" for n in range(100, last, 100)) for last in (700, 500, 300))
         + f"{EPISODES.format(k=5)}Загружено 8 карт, на которых модель ошибалась.\n{EPISODES.format(k=5)}Дообученная модель сохранена в models\\0998_ep30000_finetuned.pth\n", # Written down was 200, and counts as wrong: the short last runs tell it in other words, and the episodes of the first are watched.
         (300, FINE), WRONG),
    Case("a-bar-of-lightning-that-is-ended", GITHUB + "TengFeiyang01/EAGNet",
         "nohup: ignoring input\nGlobal seed set to 2023\nGPU available: True (cuda), used: True\n" + "".join(2 * f"\rEpoch 0:  31%|███       | {n}/3999 [1:07:35<2:33:02,  3.31s/it, v_num=29, train_intent_loss_step=1.410, train_total_loss=5.390]" for n in range(900, 1226))
         + "\n" + FRAME + "RuntimeError: DataLoader worker (pid 4020404) is killed by signal: Terminated. \n", (1225, FINE), WRONG),
    Case("measures-before-each-bar", GITHUB + "RCVLab-AiimLab/crowd_counting",
         "\r  0%|          | 0/1200 [00:00<?, ?it/s]/w/dataset.py:73: H5pyDeprecationWarning: The default file mode will change to 'r'\n" + "".join(
             f"\rEpoch [0][{n}/1200] Time/b 0.29 (0.2{n % 10}) Loss 39{n}.3125 (317.{n}) :  {n // 12}%|▋         | {n}/1200 [00:25<04:48,  3.81it/s]\rEpoch [0][{n}/1200] Time/b 0.29 (0.2{n % 10}) Loss 39{n}.3125 (317.{n}) :  {n // 12}%|▋         | {n + 1}/1200 [00:25<04:48,  3.81it/s]"
             for n in range(30, 204)) + "\n", (204, FINE), WRONG),
    Case("a-bar-that-never-began", GITHUB + "Saeroi-an/AI",
         "\r  0%|          | 0/50 [00:00<?, ?it/s]" + "".join(f"[INFO] Processing image 1/1: /data/cord_sample/images/00{n}.jpg\n[SUCCESS] get_image_info returned PIL image with size: (896, 1204)\n" for n in (210, 132, 42, 456, 189, 490, 451))
         + "[rank0]: Traceback (most recent call last):\n[rank0]:     batch_samples.append(next(epoch_iterator))\n[rank0]: IndexError: list index out of range\n[2025-10-14 20:11:49,741] [INFO] [launch.py:319:sigkill_handler] Killing subprocess 107471\n", # Written down was that there is none. The bar of the training stands at 0, which is watched as well: arguable.
         (0, FINE), WRONG),
    Case("a-second-training-of-twenty-epochs", GITHUB + "othmaneechc/SpeedTransformer",
         "".join(f"2025-10-07 0{k}:58:15,352 - INFO - Initializing DataProcessor for fine-tuning...\n" + "".join(
             f"2025-10-07 0{k}:58:15,352 - INFO - [Epoch {n}/{last}]\n2025-10-07 0{k}:58:20,276 - INFO - Train Loss: 0.1013, Train Acc: 0.9599\n2025-10-07 0{k}:58:20,276 - INFO - Val   Loss: 0.4553, Val   Acc: 0.8744\n2025-10-07 0{k}:58:20,334 - INFO -   -> No improvement (1/7)\n"
             for n in range(1, last + 1)) + f"2025-10-07 0{k}:22:24,493 - INFO - Test Loss: 0.4726, Test Accuracy: 0.8613\n        walk       0.88      0.99      0.93      8924\n    accuracy                           0.86     34530\n" for k, last in ((7, 60), (8, 20))), (20, FINE), WRONG),
    Case("five-epochs-in-two-runs", GITHUB + "hussainkazarani/csm-complete", csm_epochs(5, 1) + csm_epochs(5, 2) + CSM.format(k=3) + "Finetuning completed successfully!\n", (5, FINE), WRONG),
    Case("every-second-step-between-answers", GITHUB + "Tianshi-Xu/assignment5-alignment",
         "".join(f"2025-09-16 21:23:50,436 - train - INFO - prompt: A conversation between User and Assistant.\nUser: Deanna has $44$ pieces of candy.\nAssistant: <think>\n2025-09-16 21:23:50,436 - train - INFO - model output:  Let $x$ \nbe the number of kids.\n"
                 f"2025-09-16 21:23:50,436 - train - INFO - wrong_format_wrong_answer:22\n2025-09-16 21:23:50,436 - train - INFO - Step {e - 1} eval_acc: 0.54\n" + "".join(f"2025-09-16 21:26:38,609 - train - INFO - Step {n} loss: 58.211036682128906 token_entropy: 0.8872703909873962\n" for n in range(e + 1, e + 32, 2))
                 for e in (0, 32, 64, 96)) + "2025-09-16 21:30:43,933 - train - INFO - Step 127 eval_acc: 0.54\n2025-09-16 21:30:43,935 - train - INFO - Best loss: 21.828353881835938\n", (127, FINE), WRONG),
    Case("a-bar-between-empty-lines-of-ray", GITHUB + "LeiLiLab/WALAR",
         "".join(f"{RAY}                                 {name!r}: {value!r},\n" for name, value in (("kl_loss_type", "low_var_kl"), ("n", 8), ("use_kl_loss", True), ("total_epochs", 1)))
         + "".join(f"{RAY}\nTraining Progress:   0%|          | {n}/15625 [36:51<289:24:03, 66.82s/it]\n" for n in range(34)), (33, FINE), WRONG),
    Case("a-single-epoch", GITHUB + "hoanghelloworld/ASM1-Development-LLM-model",
         "load 8544 data from data/sst-train.txt\nload 1101 data from data/sst-dev.txt\nsave the model to finetune-1-2e-05.pt\nepoch 0: train loss :: 1.696, train acc :: 0.412, dev acc :: 0.391\nload 2210 data from data/sst-test.txt\ntest acc :: 0.390\n", (None, FINE), WRONG),
    Case("a-bar-that-begins-anew-and-a-full-disk", GITHUB + "DaichiWarasuga/dl_lecture_competition_pub",
         "nohup: 入力を無視します\n" + "".join(bar("", 311, *range(312), rate="2.61s/it") + "\ntrain acc: 0.5473\ntrain simple acc: 0.5087\n" for _ in range(3)) + FRAME
         + "RuntimeError: [enforce fail at inline_container.cc:337] . unexpected pos 198959360 vs 198959248\n", (311, FINE), WRONG),
    Case("a-table-of-several-runs-with-commas", GITHUB + "BirkTorpmannHagen/Master",
         "id,epoch,train_loss,balanced_acc,acc\n" + "".join(f"{k},{n}.0,0.0110797065{n}24207,0.3550739242021067,0.7824933687002652\n" for k in ("0.0", "1") for n in range(100)), (99, FINE), WRONG),
    Case("a-first-step-of-a-sixth-epoch", GITHUB + "Lukas1121/LogSentinel",
         "nohup: ignoring input\n  LogSentinel -- Fine-tuning\n  Checkpoint: epoch=3  val_loss=0.6101\n" + "".join("".join(f"    step  {n:3d}/328  loss 0.5384\n" for n in range(20, 328, 20)) + f"[Unfrozen] Epoch {e}/500 -- train: 0.5243  val: 0.6080  ppl: 1.84  (70s)\n  New best saved  (val_loss=0.6080)\n"
                                                                                                        for e in range(1, 6)) + "    step   20/328  loss 0.5243\n", (20, FINE), WRONG),
)  # fmt: skip

# The next fifteen of them.
DRAWN_32 = (
    Case("epochs-of-transformers-without-a-bar", GITHUB + "AnikaTha/ChatMD", "using cuda\n" + hf_rows(0.02, 999) + "{'train_runtime': 15475.849, 'train_samples_per_second': 13.153, 'train_steps_per_second': 0.822, 'train_loss': 0.1479127787662752, 'epoch': 20.0}\n", (20, FINE), WRONG),
    Case("a-training-that-tells-only-its-end", GITHUB + "tsrrodrigues/Wizard_QLoRA_Finetuning",
         "".join(f"2025-01-07 20:41:01,765 - INFO - Iniciando processamento de exemplo...\n2025-01-07 20:41:01,766 - DEBUG - Tamanho dos tokens da questão: {400 + 37 * n % 90}\n2025-01-07 20:41:01,770 - DEBUG - Tamanho dos tokens da resposta: {1000 + 53 * n % 170}\n" for n in range(60))
         + "2025-01-08 16:11:07,189 - INFO - Trainer configurado com sucesso\n2025-01-08 16:11:07,190 - INFO - Iniciando treinamento...\n2025-01-08 16:30:31,730 - INFO - Treinamento concluído com sucesso\n", (None, FINE), WRONG),
    Case("eight-steps-in-several-runs", GITHUB + "denizyuret/peft-debug",
         "$ ./train.py --output_dir=out --num_train_epochs=1\nLoading checkpoint shards: 100% 2/2 [00:07<00:00,  3.54s/it]\n" + 3 * "{'train_runtime': 11.2237, 'train_samples_per_second': 0.713, 'train_steps_per_second': 0.713, 'train_loss': 1.527357816696167, 'epoch': 1.0}\n100% 8/8 [00:11<00:00,  1.40s/it]\n",
         (8, FINE), WRONG),
    Case("updates-of-fairseq-and-then-a-full-disk", GITHUB + "Fsoft-AIC/RoPADet",
         "".join(f'[2022-06-06 10:06:00,317][train_inner][INFO] - {{"epoch": {1 + n // 800}, "update": {n / 794:.3f}, "loss": "0.209", "ce_loss": "0.269", "ppl": "1.16", "wps": "138.2", "num_updates": "{n}", "lr": "4.5e-05", "gnorm": "3.1", "loss_scale": "64", "train_wall": "46", "wall": "2900"}}\n' + (
             f'[2022-06-06 10:06:13,971][fairseq_cli.train][INFO] - begin validation on "valid" subset\n[ 67  91  34  14]\nSENSE:  0.48281016428017637\n[2022-06-06 10:05:28,121][valid][INFO] - {{"epoch": {1 + n // 800}, "valid_loss": "0.339", "valid_num_updates": "{n}"}}\n'
             f"[2022-06-06 10:05:28,122][fairseq.checkpoint_utils][INFO] - Preparing to save checkpoint for epoch {1 + n // 800} @ {n} updates\n" if n % 1000 == 0 else "") for n in range(200, 14201, 200))
         + "Traceback (most recent call last):\n  File \"/e/lib/python3.8/multiprocessing/util.py\", line 146, in get_temp_dir\n    tempdir = tempfile.mkdtemp(prefix='pymp-')\nOSError: [Errno 28] No space left on device: '/tmp/pymp-h1k1iebk'\n", (14200, FINE), WRONG),
    Case("steps-of-fourteen-epochs-behind-a-prompt", GITHUB + "FairyStriker/SmallObjectDetection_KSU",
         "(SOD_env) user-511@z640:~/small_object_detect$ python train4.py \n🔥 사용 중인 디바이스: cuda | GPU 개수: 2개\n" + "".join("".join(f"Epoch [{e}/15] | Step [{n}/10086] | Loss: 3.2074\n" for n in range(0, 10086, 10)) + f"💾 모델 저장 완료: swin_dino_ep{e}.pth\n" for e in (13, 14)), (10080, FINE), WRONG),
    Case("an-epoch-of-minimind-at-its-end", GITHUB + "Coicozoi/minimind-from-scratch",
         "Model Params: 30.03M\nGenerating train split: 0 examples [00:00, ? examples/s]\n" + "".join(f"Epoch:[1/1]({n}/39695), loss: 2.0374, logits_loss: 2.0374, aux_loss: 0.0000, lr: 0.00005000, epoch_time: 0.0min\n" for n in (*range(38000, 39695, 10), 39695)), (39695, FINE), WRONG),
    Case("batches-of-torch-7", GITHUB + "caunion/16824hw1", "display not found. unable to plot\t\n{\n  gpu : 0\n}\n" + "".join(f"Epoch: [{e}][{n}/500]\tTime 0.834 DataTime 0.004, loss 2.6722636\t\n" for e in (3, 4, 5) for n in range(1, 501 if e < 5 else 129)), (128, FINE), WRONG),
    Case("a-bar-before-a-signal-of-deepspeed", GITHUB + "Jingchensun/MobileVLM",
         ">>> Start Multi-task Training ...\n" + "".join(f"{{'loss': 1.2549, 'learning_rate': 3.9645205528775745e-05, 'epoch': 0.18}}\n\n\r 18%|█▊        | {n}/24758 [2:55:31<14:50:24,  2.62s/it]\n\r 18%|█▊        | {n + 1}/24758 [2:55:31<14:50:24,  2.62s/it]\n" for n in range(4200, 4374))
         + FRAME + "KeyboardInterrupt\n[2025-07-12 22:03:35,891] [INFO] [launch.py:315:sigkill_handler] Killing subprocess 1051855\nDone.\n", (4374, FINE), WRONG),
    Case("ten-epochs-that-validate-a-step", GITHUB + "benjaminsinzore/streaming_gpu", 3 * (CSM.format(k=0) + "Loading CSM model: sesame/csm-1b\n") + csm_epochs(10, 1) + CSM.format(k=2) + "Finetuning completed successfully!\n", (10, FINE), WRONG),
    Case("an-early-stop-behind-a-name-in-brackets", GITHUB + "bjorvack/lorcana-training",
         "".join(f"[pretrain] epoch {n:3d}/40  train=5.1676  heldout=5.2357  lr=6.80e-05  {'(best)' if n % 3 else ''}\n" for n in range(1, 29)) + "[pretrain] early stop after 28 epochs (no improvement for 6)\npretrain-encoder: best epoch 22, held-out total 5.1822. wrote artifacts/encoder\n", (28, FINE), WRONG),
    Case("a-first-epoch-behind-other-runs", GITHUB + "fablevi/ipex_csm_lora",
         "".join(f"{CSM.format(k=0)}Transcribed: egri_csillagok_{n}_48k.wav -> A tisztek sátorai 8 szögletű\n" for n in range(3567, 3600)) + csm_epochs(13, 1)
         + 2 * (f"{CSM.format(k=2)}Loading CSM model: sesame/csm-1b\n{CSM.format(k=2)}Starting finetuning process\n{CSM.format(k=2)}Initial validation loss: 11.706221\n{CSM.format(k=2)}Starting epoch 1/13\n"), (1, FINE), WRONG),
    Case("epochs-between-saved-models", GITHUB + "yunsaijc/Eso-LLaVA", hf_rows(4.92, 254) + "save models to /w/checkpoints/lora-llava-v1.6-vicuna-13b/checkpoint-900 \n{'train_runtime': 11174.986, 'train_samples_per_second': 2.553, 'train_steps_per_second': 0.081, 'train_loss': 0.049970862741166557, 'epoch': 10.0}\n", (10, FINE), WRONG),
    Case("a-resumed-step-of-ten", GITHUB + "Pratic2001/Qwen3-Non-MOE", "nohup: ignoring input\n[Resume] loaded config from checkpoint\nModel params : 299,392,704  (0.299B)\n" + "".join(f"step   {n} | loss 13.8173 | lr 1.59e-04 | grad 0.768 | 37.3k tok/s | mfu 37.51%\n" for n in range(52450, 57351, 10)), (57350, FINE), WRONG),
    Case("a-trainer-that-refuses-its-data", GITHUB + "varshetshrikar/Shikra-MLLM-Referential-Dialogue-Magic",
         "06/17/2025 17:55:57 - INFO - mllm.config.config - data_args = dict(\n    target_processor=dict(boxes=dict(type='PlainBoxFormatter')),\nlogging_nan_inf_filter=True,\nmax_steps=-1,\nsave_steps=500,\n" + FRAME
         + "ValueError: The train_dataset does not implement __len__, max_steps has to be specified. The number of steps needs to be known in advance for the learning rate scheduler.\n", (None, FINE), WRONG),
    Case("an-evaluation-beside-epochs-of-transformers", GITHUB + "CqGao112/CN-Mini-Phi3",
         DEEPSPEED + "steps_per_print .............. inf\n" + "".join(f"{{'loss': 4.4824, 'grad_norm': 0.07362212240695953, 'learning_rate': 1.1540593996759441e-07, 'epoch': {n / 24:.2f}}}\n" + (
             f"{{'eval_loss': 4.502864360809326, 'eval_runtime': 103.3129, 'eval_samples_per_second': 1245.479, 'eval_steps_per_second': 5.198, 'epoch': {n / 24:.2f}}}\n" if n % 6 == 0 else "") for n in range(1, 49)).replace("2.00", "1.99")
         + "{'train_runtime': 6311.5782, 'train_samples_per_second': 294.0, 'train_steps_per_second': 0.076, 'train_loss': 4.597211497453238, 'epoch': 1.99}\n", (1.99, FINE), WRONG),
)  # fmt: skip

MEGATRON = " iteration     {n}/  500000 | consumed samples:        51200 | elapsed time per iteration (ms): 300.2 | learning rate: 7.500E-05 | global batch size:     8 | lm loss: 2.496638E+00 | loss scale: 1.0 | grad norm: 0.573 | number of skipped iterations:   0 | number of nan iterations:   0 |"
GLUE = "[07/29/2025 14:29:15 gluefactory INFO] "
DINO = "Epoch: [{e}/100]  [{n:4d}/1562]  eta: 0:01:06  loss: 4.248554 (4.165713)  lr: 0.000063 (0.000064)  wd: 0.247650 (0.245125)  time: 0.503517  data: 0.000151  max mem: 11027\n"
PINN = "[2026-03-22 22:42:42,285][{who}][INFO] - "

# The next fifteen of them, but for one whose answer had been seen.
DRAWN_33 = (
    Case("a-bar-of-an-evaluation-below-a-finished-one", GITHUB + "iiicellled/Clean-Code-Qwen",
         "nohup: 忽略输入\n" + bar("Loading checkpoint shards: ", 4, 0, 1, 2, 3, 4) + "\n" + "".join(bar("", 181, *range(10 * n, min(182, 10 * n + 10)), rate="9.65s/it") + f"\n{{'loss': 0.401, 'grad_norm': 0.21096178889274597, 'learning_rate': 6.3729468701907006e-06, 'epoch': {n / 18:.2f}}}\n"
                                                                                                               + (bar("", 100, *range(1, 101), rate="2.26it/s").replace("]\r", "]\x1b[A\r") + "\n{'eval_loss': 0.4172849953174591, 'eval_runtime': 44.4951, 'eval_steps_per_second': 2.247, 'epoch': 0.55}\n" if n == 10 else "") for n in range(19))
         + "{'train_runtime': 1810.426, 'train_samples_per_second': 0.8, 'train_steps_per_second': 0.1, 'train_loss': 0.48589169682718775, 'epoch': 1.0}\n" + bar("", 100, *range(1, 101), rate="2.26it/s") + "\n", (181, FINE), WRONG),
    Case("a-bar-of-examples-and-no-checkpoint", GITHUB + "YuanWind/transformers_wind",
         "nohup: ignoring input\nStart to build dataset...\n" + bar("", 1000000, 0, 253390, 547767, 841230, 1000000, rate="2774663.32it/s") + "\n" + FRAME + 'ValueError: No valid checkpoint found in output directory (outputs)\n', (None, FINE), WRONG),
    Case("a-test-set-behind-iterations-of-megatron", GITHUB + "KungYork/Megatron-LM",
         "and will be removed in future. Use torchrun.\n" + rows(MEGATRON, 5600, 5801) + "> building lambada dataset from /data/lambada_test.json ...\n > found 5153 samples.\n" + rows("> working on iteration: {n}", 0, 61, 30), (5800, FINE), WRONG),
    Case("a-tuning-without-any-number", GITHUB + "sgsikorski/NLP-Project", "INFO:__main__:Loaded Dataset\nINFO:__main__:Add 10 pretrained sentiments\nINFO:__main__:Add 10 pretrained entities\nINFO:__main__:Loaded meta-llama/Llama-3.2-1B\nINFO:__main__:Finetuning done!\n", (None, FINE), WRONG),
    Case("a-bar-that-is-done-behind-loaded-weights", GITHUB + "vivsn289/Benchmarking-vanilla-llm-to-validate-forgetting",
         bar("Loading weights: ", 201, *range(0, 202, 3)) + "\n" + "".join(bar(" ", 3252, *range(25 * n, min(3253, 25 * n + 26)), rate="6.38s/it") + f"\n{{'loss': '0.47{n}', 'grad_norm': '0.1416', 'learning_rate': '3.128e-07', 'entropy': '0.9176', 'epoch': '{n / 65:.3f}'}}\n" for n in range(100, 131))
         + "{'train_runtime': '7476', 'train_samples_per_second': '13.91', 'train_steps_per_second': '0.435', 'train_loss': '0.4697', 'epoch': '2'}\nDone. Model saved to ./tinyllama-alpaca-sft\n", (3252, FINE), WRONG),
    Case("steps-of-two-trainings-behind-a-pipe", GITHUB + "DanielPuentee/gpt-from-zero",
         2 * ("2026-02-03 13:24:23.568 | INFO     | __main__:train:91 - Using device: cpu\n" + "".join(f"2026-02-03 14:53:28.706 | INFO     | __main__:train:172 - Step {n}, Loss: 0.4967\n" + (
             f"2026-02-03 13:28:07.026 | INFO     | __main__:train:176 - Epoch {n // 1500} completed. Average loss: 0.6725\n2026-02-03 13:28:07.044 | INFO     | __main__:train:197 - Checkpoint saved: checkpoints/model_epoch{n // 1500}.pt\n" if n % 1500 == 0 else "") for n in range(100, 7601, 100))
              + "2026-02-03 14:53:56.941 | INFO     | __main__:train:199 - Training completed!\n"), (7600, FINE), WRONG),
    Case("a-bar-of-quarter-hours-and-its-epoch", GITHUB + "lrlbbzl/llm_tkgc",
         "2023-11-11 11:45:14,866 - INFO: Data size: 149690, batch size: 500, training epoch: 30.\n" + "".join(bar("", 300, *range(301), rate="2.89s/it") + f"\n2023-11-11 19:01:50,570 - INFO: Epoch 00{n} in static KGE | Ave Loss: 5.5246 \n" for n in range(20, 30)), (300, FINE), WRONG),
    Case("a-finished-bar-with-a-loss-behind-it", GITHUB + "Phiwain/LLM",
         "".join(f"\rSFT:  {n * 100 // 375}%|████▉     | {n}/375 [24:18<33:19, 10.41s/it]" + (f"\rSFT:  {n * 100 // 375}%|████▉     | {n}/375 [24:18<33:19, 10.41s/it, loss 0.0005]" if n % 10 == 0 else "") for n in range(150, 376)) + "\nSauvegarde du modèle SFT: checkpoints/sft_model.pt\nDone!\n", (375, FINE), WRONG),
    Case("a-folder-that-exists", GITHUB + "farewillwell/test", "========== 2026-06-03 03:06:58 ==========\nConfig: pi0_libero_low_mem_finetune\nSteps: 3000\n" + FRAME + "FileExistsError: Checkpoint directory /w/sft already exists. Use --overwrite or --resume\n", (None, FINE), WRONG),
    Case("an-iteration-between-bars-of-evaluations", GITHUB + "Ethrora/lg_w-_da",
         f"nohup: ignoring input\n{GLUE}Starting experiment sp+lg_da_megadepth\n" + "".join("".join(f"{GLUE}[E {e} | it {n}] loss {{total 1.338E+00, last 5.620E-01, assignment_nll 5.620E-01, num_matchable 3.1E+02}}\n" for n in range(0, 1600 if e < 15 else 1101, 100))
                                                                             + ("".join(f"\rEvaluation:  {n // 3}%|##6       | {n}/300 [02:11<04:14,  1.16s/it]" for n in range(301)) + f"\n{GLUE}[Validation] {{match_recall 8.398E-01}}\n{GLUE}New best val: loss/total=0.488367934068044\n" if e < 15 else "") for e in range(11, 16)), (1100, FINE), WRONG),
    Case("an-assertion-before-the-first-step", GITHUB + "YoonKyonghwan/EfficientCenterFormer", "2023-12-31 09:44:10,356 - INFO - Distributed training: False\n2023-12-31 09:44:10,356 - INFO - torch.backends.cudnn.benchmark: False\n" + FRAME
         + "RuntimeError: CUDA error: no kernel image is available for execution on the device\nFor debugging consider passing CUDA_LAUNCH_BLOCKING=1.\n", (None, FINE), WRONG),
    Case("features-behind-a-hundred-epochs-of-dino", GITHUB + "SongxiYoung/dino-main",
         "Will run the code on one GPU.\n| distributed init (rank 0): env://\n" + "".join(DINO.format(e=e, n=n) for e in (97, 98, 99) for n in (*range(0, 1562, 10), 1561)) + "".join(f"  [{n}/79]  eta: 0:00:06    time: 0.166728  data: 0.000295  max mem: 876\n" for n in (*range(0, 78, 10), 78))
         + " Total time: 0:00:14 (0.181220 s / it)\nFeatures are ready!\n10-NN classifier result: Top1: 0.57, Top5: 27.06\n20-NN classifier result: Top1: 0.61, Top5: 13.15\n", (1561, FINE), WRONG),
    Case("a-best-epoch-beside-every-five-hundredth", GITHUB + "saitejasrivilli/maxwell-pinn",
         "".join(f"{PINN.format(who='__main__')}epoch  {n} | loss 1.8996e-03 (pde 1.8996e-03, bc 0.0000e+00) | lr 4.63e-05\n{PINN.format(who='src.transfer')}Checkpoint saved → outputs/pretrain_cylinder/ckpt_best.pt  (epoch {n + 172 - n % 1000 // 10}, loss 6.1262e-04)\n" for n in range(5500, 15000, 500))
         + f"{PINN.format(who='__main__')}epoch  15000 | loss 1.8996e-03 (pde 1.8996e-03, bc 0.0000e+00) | lr 4.63e-05\n{PINN.format(who='__main__')}Training complete. Best loss: 6.1262e-04\n", (15000, FINE), WRONG),
    Case("a-count-and-an-average-of-colbert", GITHUB + "bclavie/ColBERT",
         "nohup: ignoring input\n" + "".join(f"#>>>    5.21 5.13 \t\t|\t\t 0.08000000000000007\n[Mar 29, 16:{34 + n // 900}:{n % 60:02d}] {n} 5.{688099201616324 - n * 37}\nTrue\n\t\t\t\t 0.2314811646938324 4.277426719665527\n" for n in range(800, 1017)) + "#> Saving a checkpoint to /w/checkpoints/colbert ..\n#> Joined...\nSaved checkpoint to None...\n",
         (1016, FINE), WRONG),
    Case("the-first-step-of-twenty-eight", GITHUB + "ywhijn/moe-project-7101", "[INFO|2024-12-04 06:01:59] llamafactory.hparams.parser:355 >> Process rank: 0, device: cuda:0, n_gpu: 1\n  \"use_cache\": true,\n" + bar("", 28, 0, 1, rate="31.96s/it") + "\n", (1, FINE), WRONG),
)  # fmt: skip


@each(*DRAWN_31, *DRAWN_32, *DRAWN_33)
def test_the_number_and_the_loss_of_a_file_of_the_eighth_list(
    case: Case, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    assert_number_and_loss(case, tmp_path, record_property)
