"""Causes in whole log files of public repositories, half of which end well; the answers were committed before the program ran."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from tests.world.case import Case, each
from tests.world.logs import assert_cause, bar
from tests.world.test_causes_drawn import COST, GITHUB

TIME_LIMIT = "slurmstepd: error: *** JOB {n} ON {host} CANCELLED AT 2022-06-29T15:25:08 DUE TO TIME LIMIT ***\n"
MODULES = "Loaded module: python3/3.7.5\nLoaded dependency [cudnn/v7.6.5.32-prod-cuda-10.0]: cuda/10.0\nLoaded module: cudnn/v7.6.5.32-prod-cuda-10.0\n"
DETECTOR = 'Traceback (most recent call last):\n  File "train.py", line 352, in <module>\n    main()\n  File "train.py", line 348, in main\n    main_worker(args.gpu, ngpus_per_node, args)\n'
FRAMES = (
    'Traceback (most recent call last):\n  File "/w/train.py", line 51, in <module>\n    main()\n'
)
SMI = (
    "Sun Aug {day} 00:40:32 2025       \n+---------------------------------------------------------------------------------------+\n"
    "| NVIDIA-SMI 535.129.03             Driver Version: 535.129.03   CUDA Version: 12.2     |\n|-----------------------------------------+----------------------+----------------------+\n"
    "| GPU  Name                 Persistence-M | Bus-Id        Disp.A | Volatile Uncorr. ECC |\n"
)

# Seed 4251, the first fifteen of the 83 repositories of causes_files.txt that can be had and hold such a file.
DRAWN_21 = (
    Case("bars-that-reach-their-ends", GITHUB + "npatel8798/Crop-Classification-and-Segmentation-using-Deep-Learning-and-Computer-Vision-Techniques",
         "/home/a/export_medians_multi.py:321: TqdmWarning: Iterable length 4617 > 1000 but `chunksize` is not set. This may seriously degrade multiprocess performance.\n"
         + bar("", 1540, *range(1490, 1541), rate="18.91s/it") + "\n", "", COST),
    Case("particles-until-the-time-is-up", GITHUB + "PNL-MasonYu/WHAM_OpenMC",
         "".join(f" WARNING: Negative value(s) found on probability table for nuclide Ar36 at {n}K\n" for n in (250, 294, 600, 900)) + "".join(
             f" WARNING: Particle {n} underwent maximum number of events.\n" for n in range(19471, 19511)) + TIME_LIMIT.format(n=59536, host="hpc160"), "time limit", COST),
    Case("a-page-that-is-written", GITHUB + "princekx/EqWaves_MOGREPS",
         "/opt/scitools/lib/python3.6/site-packages/matplotlib/contour.py:1230: UserWarning: No contour levels were found within the data range.\n  warnings.warn(\"No contour levels were found\"\n"
         "Computations are done for 2020-01-14 00:00:00. Just skipping to plots...\nKelvin\n</tr>\n</table>\n    </body>\n    </html>\n    \n/scratch/a/plots/wave_static_page.html is written. \n", "", COST),
    Case("a-warning-above-a-time-limit", GITHUB + "domenicrosati/longform_edit_model_evals",
         "\nDue to MODULEPATH changes, the following have been reloaded:\n  1) libfabric/1.10.1     2) openmpi/4.0.3     3) ucx/1.8.0\n\n" + "".join(
             f"09/11/2023 17:25:{n} - INFO - easyeditor.editors.editor -   Evaluation took 0.05097889{n}\n" for n in range(10, 33))
         + "/home/a/transformers/tokenization_utils_base.py:2395: UserWarning: `max_length` is ignored when `padding`=`True` and there is no truncation strategy.\n  warnings.warn(\n"
         "Setting `pad_token_id` to `eos_token_id`:50256 for open-end generation.\n" + TIME_LIMIT.format(n=20942500, host="ng30703"), "time limit", COST),
    Case("five-runs-below-each-other", GITHUB + "Fschoeller/EfficientDet.Pytorch",
         "".join(MODULES + DETECTOR + f"{said}\n" for said in (
             "ValueError: too many values to unpack (expected 2)", "RuntimeError: The size of tensor a (13) must match the size of tensor b (12) at non-singleton dimension 3",
             "TypeError: list indices must be integers or slices, not str", "ValueError: Could not find a format to read the specified file in mode 'i'")) + MODULES,
         "Could not find a format to read", COST),
    Case("group-boundaries-until-the-time-is-up", GITHUB + "trowray/acrB",
         "      BOMLEV (  0) IS NOT REACHED. WRNLEV IS  5\n" + 12 * (" NBONDA>>  Maximum group spatial extent (12A) exceeded.\n   Size is       12.42 Angstroms and starts with atom:       1\n"
                                                                     "   Please check group boundary definitions.\n") + TIME_LIMIT.format(n=510763, host="gollum153"), "time limit", COST),
    Case("images-behind-the-last-batch", GITHUB + "Ebiquity/image_generator",
         "Dataset size: 112120 images.\n" + "".join(f"GAN training: time elapsed = {69266 + n}.67 [s] | epoch=20 | batch= [{n}/3503]\n" for n in range(2951, 3502, 50)) + "Generating new images!\n", "", COST),
    Case("a-table-of-fewer-columns", GITHUB + "Dany546/vllmcluster",
         "\nInactive Modules:\n  1) CUDA/11.6.0                     8) binutils/2.37-GCCcore-11.2.0\n\nwandb: Tracking run with wandb version 0.23.1\nwandb: W&B syncing is set to `offline` in this directory.\n"
         "[INFO] Found 158 existing embeddings ...\nTraceback (most recent call last):\n  File \"/home/a/clustering.py\", line 615, in distance_matrix_db\n    emb_cursor.executemany(\n"
         "sqlite3.OperationalError: table predictions has 11 columns but 7 values were supplied\n", "table predictions has 11 columns", COST),
    Case("many-jobs-are-cancelled", GITHUB + "ChristianTorres1994/cosipy_peru",
         "".join(f"slurmstepd: error: *** JOB 4882{n:02d} ON m01{n} CANCELLED AT 2019-09-25T12:33:09 ***\n" for n in range(14, 27)), "cancelled", COST),
    Case("a-pool-of-three-dimensions", GITHUB + "albe89/deceptionDetection",
         "2019-05-09 14:49:11.315396: W tensorflow/core/common_runtime/bfc_allocator.cc:267] Allocator (GPU_0_bfc) ran out of memory trying to allocate 2.39GiB.  Current allocation summary follows.\n" + "".join(
             f"2019-05-09 14:49:11.317562: I tensorflow/core/common_runtime/bfc_allocator.cc:632] Chunk at 0x7f438d000f{n} of size 2048\n" for n in range(10, 40))
         + "2019-05-09 14:49:11.318542: W tensorflow/core/framework/op_kernel.cc:1273] OP_REQUIRES failed at cudnn_pooling_gpu.cc:160 : Resource exhausted: OOM when allocating tensor with shape[2,64,400,112,112]"
         " and type float on /job:localhost/replica:0/task:0/device:GPU:0 by allocator GPU_0_bfc\nTraceback (most recent call last):\n  File \"/e/session.py\", line 1439, in __call__\n    run_metadata_ptr)\n"
         "tensorflow.python.framework.errors_impl.ResourceExhaustedError: OOM when allocating tensor with shape[2,64,400,112,112] and type float on /job:localhost/replica:0/task:0/device:GPU:0 by allocator"
         " GPU_0_bfc\n\t [[{{node training/Adam/gradients/pool1/MaxPool3D_grad/MaxPool3DGrad}} = MaxPool3DGrad[T=DT_FLOAT]]]\nHint: If you want to see a list of allocated tensors when OOM happens, add"
         " report_tensor_allocations_upon_oom to RunOptions for current allocation info.\n", "CUDA out of memory", COST),
    Case("two-jobs-of-one-file", GITHUB + "jshe2304/smilesVAE", "".join(TIME_LIMIT.format(n=n, host="midway3-0284") for n in (20457810, 20468948)), "time limit", COST),
    Case("a-script-that-prints-its-commands", GITHUB + "anugrahat/ParGaMD_MPS_TACC",
         "++ '[' -n '' ']'\n++++ local cmd=activate\n++++ case \"$cmd\" in\n" + "".join(
             f"+ (( w<=WORKERS_PER_GPU ))\n+ export CUDA_VISIBLE_DEVICES=0\n+ CUDA_VISIBLE_DEVICES=0\n+ echo 'Launching worker {n} on GPU 0...'\n"
             "+ w_run --work-manager=zmq --n-workers=1 --zmq-mode=client --zmq-read-host-info=/w/west_zmq_info.json --zmq-comm-mode=tcp\n+ (( w++ ))\n" for n in range(1, 9)), "", COST),
    Case("composites-that-are-plotted", GITHUB + "princekx/SEAPy_Climate",
         "begin\nT1>={1981/12/01}\nT2<={2008/12/01}\nstash=3332\n" + "".join(f"nw = {n}, ntStrt = {31 * n}, ntLast ={31 * n + 96} \n" for n in range(40, 60)) + "Plotted /w/u-by782_summer_phase_composites.png\n"
         "244\n49\n69\n233\nPlotted /w/u-by782_winter_phase_composites.png\n", "", COST),
    Case("a-command-that-its-script-quotes", GITHUB + "RafaelGreg18/tcc-def",
         "Criando modelo\nCriando perfis\n" + 2 * ("Loading project configuration... \nSuccess\nCommand '['flower-simulation', '--app', '.', '--num-supernodes', '100', '--backend-config', '{\"client-resources\":"
         " {\"num-cpus\": 1, \"num-gpus\": 0}}', '--run-config', \"seed=42 num-rounds=150 selection-name='random' use-battery=true\"]' returned non-zero exit status 1.\n"), "non-zero exit status 1", COST),
    Case("the-same-warning-of-many-workers", GITHUB + "JustinV200/Keystroke-Synthesizer",
         30 * ("/home/a/transformers/convert_slow_tokenizer.py:558: UserWarning: The sentencepiece tokenizer that you are converting to a fast tokenizer uses the byte fallback option which is not implemented in"
               " the fast tokenizers.\n  warnings.warn(\n"), "", COST),
)  # fmt: skip

# The second fifteen of the 83.
DRAWN_22 = (
    Case("a-module-that-is-unknown", GITHUB + "nmank/ModuleRefinement",
         'Lmod has detected the following error: The following module(s) are unknown:\n"python"\n\nPlease check the spelling or version number. Also try "module spider ..."\nIt is also possible your cache file is'
         ' out-of-date; it may help to try:\n  $ module --ignore_cache load "python"\n\nAlso make sure that all modulefiles written in TCL start with the string\n#%Module\n\n\n\n', "module(s) are unknown", COST),
    Case("families-that-are-found", GITHUB + "pwynn25/Bioinformatics-Association",
         "Restoring modules from user's default\nLmod Warning: The following modules were not loaded: defaultenv\nRunning all-by-other comparisons...\n       61% completed,  00:0:01 (hh:mm:ss) est. time remaining.\n"
         "Classification Time: 00:00:15 (hh:mm:ss) Elapsed Time\nThe results have been saved to:\n  /w/sample.db-rmod.log     - Execution log.  Useful for reproducing results.\n\nThe RepeatModeler stockholm file is"
         " formatted so that it can\neasily be submitted to the Dfam database.  Please consider contributing\ncurated families to this open database.  For more information contact help@dfam.org.\n", "", COST),
    Case("steps-that-wait-for-a-node", GITHUB + "ZINZINBIN/Data-assimilation-MHD-turbulence",
         "".join(f"srun: Step created for StepId=1971760.{n}\n" for n in range(4, 20)) + 9 * "srun: Job 1971760 step creation still disabled, retrying (Requested nodes are busy)\n"
         + "".join(f"srun: Step created for StepId=1971760.{n}\n" for n in range(31, 40)), "", COST),
    Case("greetings-of-two-processes", GITHUB + "ShawRong/introduction",
         'Greetings from process 0 of 2!\nGreetings from process 1 of 2!\n"mpi_hello.c", line 30: warning: variable-length array treated as a fixed size array [vla_treated_as_fixed_size_array]\n'
         '     char       greeting[MAX_STRING];  /* String storing message */\n                         ^\n\nRemark: individual warnings can be suppressed with "--diag_suppress <warning-name>"\n\n'
         "Greetings from process 0 of 2!\nGreetings from process 1 of 2!\n", "", COST),
    Case("a-tracker-whose-server-is-late", GITHUB + "MukundShankar-dev/TMR",
         bar("Preloading the dataset: ", 21944, *range(10374, 10700, 33), rate="321.43it/s") + "\n/e/lightning_fabric/plugins/environments/slurm.py:204: The `srun` command is available on your system but is not used.\n"
         "wandb: ERROR Error while calling W&B API: context deadline exceeded (<Response [500]>)\nwandb: - 0.005 MB of 0.005 MB uploaded\nwandb: Run history:\nwandb:   val_motion_contrastive 0.83282\n"
         "wandb:     val_text_contrastive 0.66935\nwandb: \nwandb: Synced 6 W&B file(s), 0 media file(s), 2 artifact file(s) and 0 other file(s)\nwandb: Find logs at: ./wandb/run-20240912_135857-x3bw6y5l/logs\n", "", COST),
    Case("a-conda-that-was-not-set-up-and-a-script-that-goes-on", GITHUB + "yuanhaol123/WEHA_EPR",
         "+ cd /w/test-weha_epr\n+ source env.sh\n++ conda activate westpa-2.0\n\nCommandNotFoundError: Your shell has not been properly configured to use 'conda activate'.\nTo initialize your shell, run\n\n"
         "    $ conda init <SHELL_NAME>\n\nSee 'conda init --help' for more information and options.\n\n\n++ module purge\n" + "".join(
             f"+++ export MPI_ROOT{n}\n+++ OMPI_MCA_mpi_warn_on_fork=0\n" for n in range(20)) + "+ echo 'environment is: '\n+ env\n+ sort\n+ w_run --work-manager=zmq --n-workers=4 --zmq-mode=client"
         " --zmq-comm-mode=tcp\n+ echo 'Shutting down.  Hopefully this was on purpose?'\n", "", COST),
    Case("two-ranks-that-write-at-once", GITHUB + "Viola868/deepseek_training",
         FRAMES + "ModuleNotFoundError: No module named 'deepspeed.accelerator'\n" + FRAMES + "ModuleNotFoundError: No module named 'deepspeed.accelerator'\n" + "".join(
             f'  File "training_swanlab.py", line 232\n  File "training_swanlab.py", line 232\n        optim="adamw_bnb_8bit"\noptim="adamw_bnb_8bit"\n    ^\n    {said}\n'
             for said in ("SyntaxErrorSyntaxError: : invalid syntaxinvalid syntax\n", "SyntaxError^\n: SyntaxErrorinvalid syntax: \ninvalid syntax")),
         # Written down was SyntaxError, of the last run, and counts as wrong: a log that begins with a traceback does not tell where a run begins.
         "No module named 'deepspeed.accelerator'", COST),
    Case("the-last-of-many-runs-is-cancelled", GITHUB + "HEISENYAN/openvla-oft",
         "".join(SMI.format(day=day) + end for day, end in ((17, FRAMES + "tensorflow_datasets.core.registered.DatasetNotFoundError: Dataset aloha_game not found.\nAvailable datasets:\n\t- abstract_reasoning\n\t- accentdb\n"),
                                                           (18, FRAMES + "ModuleNotFoundError: No module named 'dlimp'\n"),
                                                           (21, "  0%|          | 0/100005 [00:00<?, ?it/s]cfg.use_diffusion: False\nvla.train()\n" + 4 * (
                                                               'W0000 00:00:1755715039.994192 1917530 op_level_cost_estimator.cc:699] Error in PredictCost() for the op: op: "CropAndResize" attr { key: "T" value { type: DT_FLOAT } }\n')
                                                            + "slurmstepd: error: *** JOB 267039 ON dgx-06 CANCELLED AT 2025-08-21T02:53:05 ***\n"))), "cancelled", COST),
    Case("an-index-of-a-string-in-a-pool", GITHUB + "fibonacci-2/aladdin",
         "\rGenerating test split: 100%|██████████| 14455/14455 [00:00<00:00, 65034.91 examples/s]\nmultiprocessing.pool.RemoteTraceback: \n\"\"\"\n" + FRAMES + "TypeError: string indices must be integers, not 'str'\n"
         '"""\n\nThe above exception was the direct cause of the following exception:\n\n' + FRAMES + "TypeError: string indices must be integers, not 'str'\n", "string indices must be integers", COST),
    Case("maps-of-a-probability", GITHUB + "princekx/mogreps_cold_surge",
         "2021-09-02 12:00:00\nDoing date : 20210902_12Z\n" + 9 * ("/e/iris/coords.py:1410: UserWarning: Collapsing a non-contiguous coordinate. Metadata may not be fully descriptive.\n  warnings.warn(msg.format(self.name()))\n")
         + "Plotted /w/Cold_surge_ProbMaps_20210902_12Z_T168h_Pr30_Sp15.png\n['20210810', '20210902']\n./Cold_surge_EnsMean_20210902_12Z_T0h.png\n/w/CS_static.html is written. \n", "", COST),
    Case("a-daemon-that-is-stopped-on-purpose", GITHUB + "anvart/stormwatch",
         "\n###claudio06: pre-setup script###\n\n\n###claudio06: stopping collectd###\n\n\n###claudio07: stopping collectd###\n\n" + 2 * "Stopping statistics collection and monitoring daemon: collectd.\n", "", COST),
    Case("a-row-of-settings-and-a-result", GITHUB + "kuruonur1/1e9",
         "opt      toy  log              activation    drates              n_batch    bnorm      lr    fepoch  n_hidden        norm\nadam       0  best_model_main  relu          [0.25, 0.2, 0.3]        128        1  0.0006"
         "       500  [2048, 1024]      21\nloading data...\nloading data done.\ndcost with best model: 29.9594800925\n", "", COST),
    Case("factories-that-are-there-already", GITHUB + "HojinSohn/Fine-Tuning-Bert-StockPrediction",
         "2025-01-25 09:57:10.594758: E external/local_xla/xla/stream_executor/cuda/cuda_fft.cc:477] Unable to register cuFFT factory: Attempting to register factory for plugin cuFFT when one has already been registered\n"
         "WARNING: All log messages before absl::InitializeLog() is called are written to STDERR\nE0000 00:00:1737817030.680528 1887713 cuda_blas.cc:1418] Unable to register cuBLAS factory: Attempting to register factory"
         " for plugin cuBLAS when one has already been registered\nSome weights of BertForSequenceClassification were not initialized from the model checkpoint at bert-base-uncased and are newly initialized:"
         " ['classifier.bias', 'classifier.weight']\nYou should probably TRAIN this model on a down-stream task to be able to use it for predictions and inference.\n"
         "/e/transformers/optimization.py:591: FutureWarning: This implementation of AdamW is deprecated and will be removed in a future version.\n  warnings.warn(\n", "", COST),
    Case("a-server-that-its-script-saw-killed", GITHUB + "vdkhoi20/thesis",
         '[rank: 0] Seed set to 42\n`text_config_dict` is provided which will be used to initialize `CLIPTextConfig`. The value `text_config["id2label"]` will be overriden.\n  "trained_betas": null\n}\n'
         '  deprecate("steps_offset!=1", "1.0.0", deprecation_message, standard_warn=False)\nINFO:     Started server process [427394]\nINFO:     Application startup complete.\nINFO:     Uvicorn running on'
         " http://0.0.0.0:8000 (Press CTRL+C to quit)\n/var/spool/slurm/d/job21518/slurm_script: line 23: 427394 Killed                  uvicorn api_main:app --host 0.0.0.0 --port 8000\n", "host out of memory", COST),
    Case("one-line-of-slurm", GITHUB + "kelsokitowski/SSTsafe", "slurmstepd: error: *** JOB 39819691 ON dcc-core-46 CANCELLED AT 2025-11-17T19:19:41 ***\n", "cancelled", COST),
)  # fmt: skip


@each(*DRAWN_21, *DRAWN_22)
def test_the_cause_in_a_log_file(
    case: Case, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    assert_cause(case, tmp_path, record_property)
