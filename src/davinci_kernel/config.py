"""Typed configuration. One documentation line per field; defaults are the published 14B launch script's.

A run is configured by a YAML file and ``key=value`` overrides: ``davinci train configs/x.yaml skill.k=4``.
`load_config` merges them (OmegaConf) and validates the result (pydantic); an unknown key or a bad value raises
`UserError` naming the field.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, TypeVar

from omegaconf import OmegaConf
from omegaconf.errors import OmegaConfBaseException
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from yaml import YAMLError

from davinci_kernel.errors import UserError


class _Config(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)


class SkillConfig(_Config):
    enable: bool = True
    """Run selection and summary agents over a skill library; False: the policy agent alone."""
    mode: Literal["agent", "bm25"] = "agent"
    """`agent`: skills chosen by the selection agent; `bm25`: the top recalled skills in every scheme (ablation)."""
    k: int = Field(3, ge=1)
    """Selection inferences per task; k + 1 schemes with the null scheme."""
    top_bm25: int = Field(20, ge=1)
    """Skills recalled by BM25 for the selection agent."""
    fallback_sample: int = Field(30, ge=0)
    """Skills sampled (seeded) when nothing is recalled."""
    top_k_select: int = Field(3, ge=1)
    """Most skills that one selection may name."""
    selection_weight: float = Field(0.3, ge=0)
    """Factor on selection advantages."""
    summary_weight: float = Field(0.5, ge=0)
    """Factor on summary advantages."""
    selection_reduce: Literal["max", "mean", "first"] = "max"
    """How a rollout's turns become one number for the selection reward."""
    selection_aggregate: Literal["mean", "max"] = "mean"
    """How a pool's rollouts become one selection reward."""
    summary_n: int = Field(8, ge=1)
    """Summary inferences per trigger."""
    max_new_skills: int = Field(2, ge=1)
    """Most skills that one summary may propose."""
    max_content_tokens: int = Field(512, ge=1)
    """Longest skill body, in tokens of the policy's tokenizer."""
    trigger_min_relative_speedup: float = Field(1.2, ge=0)
    """Summary trigger: best / turn-1 speedup."""
    trigger_min_absolute_speedup: float = Field(1.2, ge=0)
    """Summary trigger: best speedup."""
    verify_min_relative_speedup: float = Field(1.2, ge=0)
    """Verification: speedup with the new skill / turn-1 speedup."""
    verify_min_absolute_speedup: float = Field(1.2, ge=0)
    """Verification: speedup with the new skill."""
    verify_repeats: int = Field(2, ge=1)
    """Accepting measurements in a row; the lower end of the last one's interval must pass too."""
    task_chars: int = Field(1000, ge=1)
    """Characters of the task that the selection agent sees."""
    select_max_tokens: int = Field(1024, ge=1)
    """New tokens of a selection answer."""
    summary_max_tokens: int = Field(2048, ge=1)
    """New tokens of a summary answer."""
    merge_similarity: float = Field(0.85, ge=0, le=1)
    """Content similarity from which a new skill is merged into an existing one."""
    save_freq: int = Field(1, ge=1)
    """Steps between library snapshots."""
    library_root: str = ""
    """Snapshots of an earlier library to start from; empty: start with none."""
    train_selection: bool = True
    """Train on selection rows (removed only after advantages)."""
    train_summary: bool = True
    """Train on summary rows (removed only after advantages)."""


class RolloutConfig(_Config):
    rollout_n: int = Field(4, ge=1)
    """Policy rollouts per scheme."""
    max_turn: int = Field(3, ge=1)
    """Policy turns."""
    temperature: float = Field(1.0, ge=0)
    """Sampling temperature of all three agents."""
    top_p: float = Field(1.0, gt=0, le=1)
    """Nucleus of policy sampling."""
    max_prompt_tokens: int = Field(24576, ge=1)
    """A turn whose prompt would be longer is not played."""
    max_response_tokens: int = Field(8192, ge=1)
    """New tokens of a policy answer."""
    reward_upper: float = Field(6.0, gt=0)
    """Upper clip of the speedup in the reward."""
    reward_lower: float = Field(0.0, ge=0)
    """Lower clip of the speedup in the reward."""
    coverage_weight: float = Field(0.5, ge=0)
    """Weight w of coverage (PR) in the reward."""
    backend: Literal["cpp", "triton", "cuda"] = "cpp"
    """Backend that the policy writes for."""
    failure_reward: float = Field(0.0, le=0)
    """Reward of an incorrect or dishonest turn; 0 is the paper's."""


class RLConfig(_Config):
    algorithm: Literal["trloo"] = "trloo"
    """Advantage estimator of the policy agent."""
    batch_tasks: int = Field(16, ge=1)
    """Tasks per step (B)."""
    steps: int = Field(300, ge=1)
    """Optimizer steps."""
    learning_rate: float = Field(1e-6, gt=0)
    """AdamW learning rate."""
    warmup_steps: int = Field(0, ge=0)
    """Linear warm-up."""
    weight_decay: float = Field(0.0, ge=0)
    """AdamW weight decay."""
    grad_clip: float = Field(1.0, gt=0)
    """Gradient norm."""
    gamma: float = Field(1.0, ge=0, le=1)
    """Discount over turns."""
    clip_low: float = Field(0.2, gt=0)
    """PPO clip below."""
    clip_high: float = Field(0.28, gt=0)
    """PPO clip above."""
    loss_agg: Literal["seq-mean-token-sum", "token-mean", "seq-mean-token-mean"] = "seq-mean-token-sum"
    """Aggregation of the token losses."""
    loss_scale_factor: float = Field(1000.0, gt=0)
    """Divisor of `seq-mean-token-sum`."""
    cross_scheme_normalization: bool = True
    """Divide a task's policy advantages by their mean absolute value over valid tokens."""
    tis_cap: float | None = None
    """Truncated importance sampling cap between trainer and rollout; None: off (2.0 in the literature)."""
    rollout_rs: Literal["none", "token", "turn", "sequence", "geometric", "turn_geo"] = "geometric"
    """Level of mismatch rejection sampling (MRS)."""
    rollout_rs_low: float = 0.999
    """MRS keeps ratios from here."""
    rollout_rs_high: float = 1.001
    """MRS keeps ratios up to here."""
    token_veto: float = Field(1e-4, ge=0)
    """A token with a smaller ratio rejects its row; 0: off."""
    coverage_rs: bool = True
    """Profiling-based rejection sampling (PRS)."""
    coverage_rs_low: float = 0.3
    """PRS keeps no correct turn with coverage below this."""
    coverage_rs_width: float = Field(0.1, gt=0)
    """PRS keep-probability rises from 0 to 1 over this width."""
    coverage_rs_keep_speedup: float | None = None
    """A turn at least this fast is kept whatever its coverage."""
    max_oversample: int = Field(5, ge=1)
    """Rollout batches per step at most, until batch_tasks tasks' worth of valid rows exist."""
    micro_batch_tokens: int = Field(16384, ge=1)
    """Tokens (padded) per forward and backward."""
    sft_replay_rows: int = Field(0, ge=0)
    """Cold-start rows mixed into every step; 0: none."""
    sft_replay_coef: float = Field(0.5, ge=0)
    """Weight of their negative log-likelihood (mean over tokens)."""
    save_freq: int = Field(10, ge=1)
    """Steps between checkpoints."""
    keep_checkpoints: int = Field(2, ge=1)
    """Newest checkpoints kept."""
    batch_invariant: bool = False
    """Generate each completion alone, so that a resumed run repeats its tokens bit by bit; slower."""


class GymConfig(_Config):
    num_correct_trials: int = Field(3, ge=1)
    """Correctness trials with fresh inputs."""
    distribution_trials: bool = True
    """Extra trials with changed value distributions."""
    tolerance: Literal["default", "kernelbench", "kernelgym"] = "default"
    """Tolerance policy."""
    tolerance_overrides: dict[Literal["float64", "float32", "half", "float8"], float] = {}
    """Tolerances by dtype that replace the policy's."""
    baseline: Literal["eager", "compile", "max-autotune"] = "eager"
    """The reference that is timed: eager, or under torch.compile."""
    min_processes: int = Field(3, ge=1)
    """Timed candidate processes at least."""
    max_processes: int = Field(6, ge=1)
    """Timed candidate processes at most."""
    rounds: int = Field(8, ge=3)
    """Interleaved rounds per process."""
    target_interval: float = Field(0.15, gt=0)
    """Stop at this relative half-width of the 95 % interval."""
    max_interval: float = Field(0.5, gt=0)
    """Wider than this is too noisy."""
    compile_timeout: float = Field(60.0, gt=0)
    """Seconds for compiling."""
    run_timeout: float = Field(30.0, gt=0)
    """Seconds per run."""
    memory_limit_gb: float = Field(8.0, gt=0)
    """Memory of a candidate."""
    num_threads: int = Field(0, ge=0)
    """Threads of both sides; 0: all."""
    compile_slots: int = Field(0, ge=0)
    """Candidates compiled at once; 0: one per core."""
    cache_verdicts: bool = True
    """Give identical candidates of a task the verdict already measured (off in grading)."""


class TasksConfig(_Config):
    source: str = "generator"
    """`generator`, `suite`, a KernelBench folder, a .jsonl or .parquet file, or an HF hub id."""
    split: str = "train"
    """Split of the generator or the hub data set."""
    levels: tuple[int, ...] = ()
    """Levels kept; empty: all."""
    limit: int = Field(0, ge=0)
    """Tasks kept after shuffling with the seed; 0: all (generator: 512)."""
    options: dict[str, Any] = {}
    """Further arguments of the generator or the suite (shapes, operators, size)."""


class TrainConfig(_Config):
    """One RL run."""

    run_dir: str = "runs/rl"
    """Where everything of the run is written."""
    model_path: str
    """HF model directory or hub id to start from."""
    seed: int = 0
    """Seed of sampling, data order and initialisation."""
    device: str = "auto"
    """`auto`, `cpu`, `cuda`, `cuda:1` ..."""
    dtype: Literal["float32", "bfloat16"] = "float32"
    """Parameter dtype."""
    tasks: TasksConfig = TasksConfig()
    skill: SkillConfig = SkillConfig()
    rollout: RolloutConfig = RolloutConfig()
    rl: RLConfig = RLConfig()
    gym: GymConfig = GymConfig()
    sft_data: str = ""
    """Cold-start parquet for replay rows."""
    loggers: tuple[Literal["wandb", "tensorboard"], ...] = ()
    """Further sinks of metrics.jsonl's content."""


class SFTConfig(_Config):
    """One supervised run."""

    run_dir: str = "runs/sft"
    """Where the trained model is written."""
    model_path: str
    """HF model directory or hub id to start from."""
    data: str
    """Parquet with messages, tools, enable_thinking."""
    seed: int = 0
    """Seed of order and initialisation."""
    device: str = "auto"
    """`auto`, `cpu`, `cuda` ..."""
    dtype: Literal["float32", "bfloat16"] = "float32"
    """Parameter dtype."""
    learning_rate: float = Field(2e-5, gt=0)
    """AdamW peak learning rate."""
    warmup_steps: int = Field(0, ge=0)
    """Linear warm-up; cosine decay to a tenth afterwards."""
    weight_decay: float = Field(0.0, ge=0)
    """AdamW weight decay."""
    beta2: float = Field(0.999, gt=0, lt=1)
    """AdamW decay of the squared gradients; short runs want less, such as 0.98."""
    grad_clip: float = Field(1.0, gt=0)
    """Gradient norm."""
    batch_size: int = Field(64, ge=1)
    """Rows per optimizer step."""
    epochs: float = Field(4.0, gt=0)
    """Passes over the data."""
    max_steps: int = Field(0, ge=0)
    """Stop after this many optimizer steps; 0: by epochs."""
    max_length: int = Field(32768, ge=1)
    """Longest row in tokens; longer ones are dropped and counted."""
    micro_batch_tokens: int = Field(16384, ge=1)
    """Tokens (padded) per forward and backward."""
    validation_fraction: float = Field(0.02, ge=0, lt=1)
    """Rows held out for the validation loss."""
    save_freq: int = Field(500, ge=1)
    """Steps between resumable checkpoints."""


class SmallModelConfig(_Config):
    layers: int = Field(3, ge=1)
    """Transformer layers."""
    width: int = Field(128, ge=8)
    """Hidden size."""
    heads: int = Field(4, ge=1)
    """Attention heads."""
    mlp: int = Field(384, ge=8)
    """MLP size."""
    vocab_size: int = Field(2048, ge=300)
    """BPE vocabulary, trained on the cold-start corpus."""


class ColdStartConfig(_Config):
    """What the procedural teacher builds. Rows per kind: see `davinci_kernel.sft.Mix`."""

    tasks: TasksConfig = TasksConfig()
    """Generated tasks for single kernels and selections."""
    measured_tasks: int = Field(96, ge=1)
    """Tasks whose trajectories the gym measures."""
    turns: int = Field(3, ge=2)
    """Turns of a measured trajectory."""
    policy: int = Field(6000, ge=0)
    """Rows of single kernels."""
    policy_skill: int = Field(5000, ge=0)
    """Rows of single kernels with skills in the prompt."""
    trajectories: int = Field(4000, ge=0)
    """Multi-turn rows."""
    selection: int = Field(2500, ge=0)
    """Rows of `select_skills`."""
    summary: int = Field(2500, ge=0)
    """Rows of `update_skill_library`."""
    gym: GymConfig = GymConfig()
    seed: int = 0
    """Seed of tasks, plans and rows."""


class QuickstartConfig(_Config):
    """The whole loop on one machine: cold start, SFT, RL, grading before and after."""

    model: SmallModelConfig = SmallModelConfig()
    cold_start: ColdStartConfig = ColdStartConfig()
    sft: dict[str, Any] = {}
    """Fields of SFTConfig; run_dir, model_path, data and seed are set by the quickstart."""
    rl: dict[str, Any] = {}
    """Fields of TrainConfig; run_dir, model_path and seed are set by the quickstart."""
    grade_tasks: int = Field(40, ge=2)
    """Held-out tasks graded before and after RL."""
    grade_samples: int = Field(1, ge=1)
    """Samples per held-out task."""
    grade_gym: GymConfig = GymConfig()
    """How graded kernels are judged; verdicts are never cached in grading."""


ConfigT = TypeVar("ConfigT", bound=BaseModel)


def load_config(schema: type[ConfigT], path: str | Path | None, overrides: Sequence[str] = ()) -> ConfigT:
    """Merge a YAML file with ``key=value`` overrides and validate.

    Raises:
        UserError: missing or malformed file, unknown key, value out of range; the message names it.
    """
    where = str(path) if path else "arguments"
    try:
        base = OmegaConf.load(path) if path else OmegaConf.create({})
        for item in overrides:
            if "=" not in item:
                raise UserError(f"override {item!r}: expected key=value, such as skill.k=4")
        merged = OmegaConf.merge(base, OmegaConf.from_dotlist(list(overrides)))
        data = OmegaConf.to_container(merged, resolve=True)
    except FileNotFoundError:
        raise UserError(f"{where}: no such file") from None
    except IsADirectoryError:
        raise UserError(f"{where}: is a directory, expected a YAML file") from None
    except (YAMLError, UnicodeDecodeError, OmegaConfBaseException) as error:
        raise UserError(f"{where}: not a valid YAML configuration: {str(error).splitlines()[0]}") from None
    if not isinstance(data, dict):
        raise UserError(f"{where}: expected a mapping of fields at the top level")
    return validated(schema, data, where)


def validated(schema: type[ConfigT], data: dict[Any, Any], where: str) -> ConfigT:
    """Build a configuration; `where` names its source in errors. Raises UserError naming the field."""
    try:
        return schema.model_validate(data)
    except ValidationError as error:
        first = error.errors()[0]
        name = ".".join(str(part) for part in first["loc"]) or where
        more = f" (and {error.error_count() - 1} more)" if error.error_count() > 1 else ""
        reason = "unknown field" if first["type"] == "extra_forbidden" else first["msg"]
        raise UserError(f"{where}: {name}: {reason}{more}") from None


def dump_config(config: BaseModel, path: str | Path) -> None:
    """Write a resolved configuration as YAML."""
    Path(path).write_text(OmegaConf.to_yaml(OmegaConf.create(config.model_dump(mode="json"))))
